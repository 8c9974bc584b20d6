"""How networks are laid out on a GPU: which program runs them, and what fits in its shared memory."""

import subprocess
from functools import partial

import emulated
import numpy as np
import pytest

import asynchebb as ah
from asynchebb.engines import gpu
from asynchebb.engines.gpu import program

FLOAT = np.dtype(np.float32)


class Card:
    """As large as an H200."""

    geometries, multiprocessors = program.geometries(232_448, 233_472, 90), 132


def with_constant_leak(dynamics, n=500):
    return ah.Network(n, 36, dynamics, ah.Hebbian(), ah.Continuous(), ah.Gaussian())


@pytest.mark.parametrize(
    "network, layout, from_rest",
    [
        (ah.asynchronous(reading="notebook"), "few", "more"),
        (ah.continuous(reading="notebook"), "few", 16),
        (ah.discrete(reading="notebook"), "many", "more"),
        (ah.asynchronous(reading="notebook").frozen(), "many", "more"),  # it may have been a discrete one
        (ah.asynchronous(), "more", "more"),
        (ah.asynchronous(n=100), "few", "few"),
        (ah.asynchronous(n=600), "more", "more"),
        (ah.asynchronous(n=2000), "all", "all"),
        (ah.continuous(), 16, 16),  # hundreds of neurons are active
        (ah.continuous(n=200), 8, 8),
        (ah.continuous(n=600), "all", "all"),
        (with_constant_leak(ah.Potential()), 16, 16),  # silent neurons learn at every step
        (with_constant_leak(ah.Relaxing()), 16, 16),
        (with_constant_leak(ah.HomeostaticRelaxing()), "all", "all"),
        (with_constant_leak(ah.IntegrateAndFire()), "all", "all"),
    ],
)
def test_a_layout_depends_on_the_network_alone(network, layout, from_rest):
    """Not on its state: a run may be cut anywhere and goes on to the same bits."""
    of = Card.geometries[FLOAT, program.HALF_LARGE if network.n <= 512 else program.LARGE]
    if from_rest == "more" and network.n <= 512:  # they would be run step by step for most of a short hold
        assert gpu.geometry_of(Card, network, 50, True, FLOAT, 1000).cluster
    for rest, expected in ((False, layout), (True, from_rest)):
        found = gpu.geometry_of(Card, network, 500, rest, FLOAT, 1000)
        assert found.cluster == expected if isinstance(expected, int) else found == getattr(of, expected)


def in_a_cluster(network, hold=500, from_rest=False):
    return gpu.geometry_of(Card, network, hold, from_rest, FLOAT, 1).cluster > 0


def test_networks_of_which_hundreds_of_neurons_are_active_are_run_by_clusters():
    """As counted in networks trained for a million steps: more than there are slots."""
    potential, projected = partial(ah.asynchronous, reading="notebook"), ah.asynchronous
    assert not in_a_cluster(potential(), 50) and not in_a_cluster(potential(schedule=ah.Asynchronous(1, 0)), 50)
    assert in_a_cluster(ah.discrete(reading="notebook"), 50) and in_a_cluster(ah.continuous(reading="notebook"), 150)
    without_threshold = potential(schedule=ah.Asynchronous(0, 100))
    assert in_a_cluster(without_threshold) and in_a_cluster(without_threshold, 50)
    assert not in_a_cluster(without_threshold.frozen(), 50)  # it learns nothing: there are no more than there were
    assert not in_a_cluster(potential(schedule=ah.Asynchronous(0.1, 100)))
    for r_r, crowded in ((0, True), (10, True), (50, True), (70, False), (100, False)):
        assert in_a_cluster(projected(schedule=ah.Asynchronous(0.75, r_r)), 500, True) == crowded
    assert not in_a_cluster(projected(n=200, schedule=ah.Asynchronous(0.75, 10)), 500, True)  # there is room for all


class Unforeseen:
    def gate(self, y_i, c_i, k, hold):
        return {}[c_i], c_i


def test_a_schedule_that_cannot_be_foreseen_has_no_say_in_the_layout():
    assert gpu._again(Unforeseen(), 500) == gpu.SOON + 1 and not gpu._learns_at_any_rate(Unforeseen(), 500)


def test_layouts_fit_in_the_shared_memory_of_smaller_cards():
    for block, multiprocessor, capability in (
        (232_448, 233_472, 90),
        (166_912, 167_936, 80),
        (101_376, 102_400, 120),
    ):
        for (dtype, neurons), of in program.geometries(block, multiprocessor, capability).items():
            for one in (of.few, of.more, of.many):
                assert max(one.columns, one.slots) >= 64 and one.neurons == neurons
                needed = program.bytes_needed(one, dtype.itemsize)
                assert needed <= block and one.blocks * (needed + 1024) <= multiprocessor
            largest = max((one.cluster for one in of.clusters), default=0)
            assert largest == {90: 16, 80: 0, 120: 8}[capability]
    small = program.geometries(16_384, 32_768, 75)[FLOAT, program.LARGE]
    assert not small.few.apart  # all step by step


@emulated.needs_compiler
@pytest.mark.parametrize("which", ["few", "more", "many"])
@pytest.mark.parametrize(("dtype", "neurons"), Card.geometries, ids=str)
def test_a_block_takes_no_more_shared_memory_than_was_counted(dtype, neurons, which, tmp_path):
    geometry, network = getattr(Card.geometries[dtype, neurons], which), ah.asynchronous()
    counted, memory = program.bytes_needed(geometry, dtype.itemsize), "Near" if geometry.columns else "Awake"
    source = program.source(emulated.Host.words, program.classes_of(network), dtype, geometry)
    file = tmp_path / "block.cpp"
    size = f"sizeof({memory})"
    file.write_text(f"{source}\nstatic_assert({size} <= {counted} && {size} > {counted} - 2048);\n")
    subprocess.run([emulated.COMPILER, "-std=c++17", "-w", "-fsyntax-only", file], check=True)
