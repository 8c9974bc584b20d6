"""Networks that clusters of blocks run, with M in their shared memory: those of which many neurons are active."""

from dataclasses import replace

import against_reference
import emulated
import numpy as np
import pytest
from against_reference import BARS

import asynchebb as ah
from asynchebb import engines, notation
from asynchebb.engines import gpu
from asynchebb.engines.gpu import device
from asynchebb.network import VANISHING

TRACES = ("updates", "active", "y", "burst")
SIZES = (40, 70, 100)  # two blocks, and four, of which one may have few neurons or none


@pytest.fixture(autouse=True)
def no_neuron_apart(monkeypatch):
    """What could be run with awake neurons apart is run by clusters, too."""
    monkeypatch.setattr(gpu, "_apart", lambda *arguments: None)


def laid_out(network, hold=80):
    return gpu.geometry_of(device.current(), network, hold, False, np.dtype(np.float64), 1)


def compared(network, from_rest, stimuli=4, hold=80, trace=TRACES):
    assert laid_out(network, hold).cluster
    return against_reference.compared(network, from_rest, stimuli, hold, trace)


RULES = [cls() for cls in notation.variants("rule").values()]
SCHEDULES = [ah.Asynchronous(0.3, 20), ah.Asynchronous(0.2, 0), ah.Discrete(), ah.Continuous(), ah.Frozen()]


@pytest.mark.parametrize(
    ("dynamics", "rule", "schedule"),
    [
        *((ah.Projected(), rule, schedule) for rule in RULES for schedule in SCHEDULES),
        *((ah.Relaxing(), rule, schedule) for rule, schedule in zip(RULES, SCHEDULES, strict=False)),
    ],
    ids=repr,
)
def test_all_that_they_run_agrees_with_the_reference(dynamics, rule, schedule, card):
    n = SIZES[(RULES.index(rule) + SCHEDULES.index(schedule)) % len(SIZES)]
    for from_rest in (False, True):
        compared(ah.Network(n, 36, dynamics, rule, schedule), from_rest)


def test_silent_neurons_that_drift_learn_too(card):
    compared(ah.Network(70, 36, ah.Potential(), ah.Hebbian(), ah.Continuous()), False)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 65, 128])
def test_any_number_of_neurons(n, card):
    network = ah.Network(n, 36, ah.Projected(), ah.Hebbian(), ah.Asynchronous(0.3, 20))
    compared(network, True)
    assert laid_out(network).cluster == next(size for size in (1, 2, 4) if n <= 32 * size)


@pytest.mark.parametrize(("pixels", "hold"), [(1, 7), (10, 1), (14, 3)])
def test_any_number_of_pixels_and_any_hold(pixels, hold, card):
    network = ah.Network(40, pixels * pixels, ah.Projected(0.1), ah.Oja(0.05), ah.Asynchronous(0.1, 2))
    state = network.init(np.random.default_rng(0), np.float64)
    X = np.random.default_rng(1).random((6, pixels * pixels))
    for from_rest in (False, True):
        ours, theirs = (
            ah.advance(network, state, X, hold, engine, (), from_rest)[0] for engine in ("gpu", "reference")
        )
        for name in ah.State._fields:
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("rule", "schedule"),
    [
        (ah.Oja(eta=0.4), ah.Continuous()),  # rows are rectified
        (ah.Hebbian(eta=1.5), ah.Discrete()),
        (ah.Hebbian(eta=1.0), ah.Asynchronous(r_b=0.2, r_r=3)),  # scales vanish
        (ah.Hebbian(eta=0.9), ah.Continuous()),
        (ah.Foldiak(eta=0.05, p=0.7), ah.Asynchronous(r_b=0.2, r_r=3)),  # φ takes weights to 0
        (ah.Falconbridge(eta=0.05, p=0.7), ah.Continuous()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [24, 70])
def test_rates_at_which_shortcuts_end(n, rule, schedule, card):
    *_, seen = compared(ah.Network(n, 36, ah.Projected(), rule, schedule), False, 6, 50, ("y", "burst"))
    assert seen["burst"].any()


@pytest.mark.parametrize("eta", [0.1, 0.7])  # at the end of holds, and within them
def test_rows_that_only_fade_keep_their_direction(eta, card):
    network = ah.Network(70, 36, ah.Potential(), ah.Hebbian(eta), ah.Continuous(), ah.Gaussian(scale=0.2))
    ours, theirs, _ = compared(network, False, 60, 20, ())
    for found, wanted in ((ours.M, theirs.M), (ours.W, theirs.W)):
        faded = wanted.max(axis=1) < 1e-20
        assert faded.any() and np.allclose(found[faded].max(axis=1) / VANISHING, 1, atol=0.01)
        found, wanted = (rows[faded] / rows[faded].max(axis=1, keepdims=True) for rows in (found, wanted))
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("from_rest", [False, True], ids=["carried over", "from rest"])
@pytest.mark.parametrize(
    ("rule", "schedule"),
    [
        (ah.Hebbian(), ah.Asynchronous(0.2, 10)),
        (ah.Oja(), ah.Continuous()),
        (ah.Foldiak(), ah.Discrete()),
        (ah.Hebbian(0.9), ah.Discrete()),
    ],
    ids=repr,
)
def test_a_run_may_be_cut_at_any_stimulus(rule, schedule, from_rest, card):
    network = ah.Network(100, 36, ah.Projected(), rule, schedule)
    state, X = network.init(np.random.default_rng(0)), BARS.sample(np.random.default_rng(1), 9)
    assert laid_out(network).cluster
    whole, _ = ah.advance(network, state, X, 41, "gpu", from_rest=from_rest)
    for first in (1, 4):
        part, _ = ah.advance(network, state, X[:first], 41, "gpu", from_rest=from_rest)
        part, _ = ah.advance(network, part, X[first:], 41, "gpu", from_rest=from_rest)
        for name in ah.State._fields:
            assert np.array_equal(getattr(part, name), getattr(whole, name)), (first, name)


@emulated.needs_compiler
@pytest.mark.parametrize("from_rest", [False, True], ids=["carried over", "from rest"])
@pytest.mark.parametrize(
    ("rule", "schedule", "hold"),
    [
        (ah.Oja(0.05), ah.Asynchronous(0.2, 3), 10),
        pytest.param(ah.Foldiak(0.05, 0.7), ah.Asynchronous(0.2, 3), 10, marks=pytest.mark.slow),
        pytest.param(ah.Oja(0.4), ah.Asynchronous(0.2, 3), 10, marks=pytest.mark.slow),
        (ah.Oja(), ah.Frozen(), 1),  # from rest, blocks need half of the lists only
        pytest.param(ah.Oja(), ah.Frozen(), 2, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_it_makes_no_difference_which_threads_are_ahead(rule, schedule, hold, from_rest, host, monkeypatch):
    monkeypatch.setattr(host, "words", f"#define IN_ANY_ORDER 1\n{host.words}")
    trace = TRACES if hold > 2 else ()
    compared(ah.Network(100, 36, ah.Projected(), rule, schedule), from_rest, 200 // hold, hold, trace)


def test_networks_in_a_batch_get_the_bits_they_get_alone(card):
    networks = [
        ah.Network(n, 36, dynamics, ah.Hebbian(eta), ah.Asynchronous(r_b, 5))
        for n, dynamics, eta, r_b in (
            (100, ah.Projected(), 0.01, 0.1),
            (66, ah.Projected(0.02), 0.05, 0.2),
            (120, ah.Projected(), 0.01, 0.3),
            (40, ah.Projected(), 0.02, 0.1),
            (40, ah.Relaxing(), 0.02, 0.1),
            (40, ah.Potential(), 0.02, 0.1),
        )
    ]
    states = [network.init(np.random.default_rng(seed)) for seed, network in enumerate(networks)]
    Xs = [BARS.sample(np.random.default_rng(seed), 2 + seed) for seed in range(len(networks))]
    holds = [30 + 7 * k for k in range(len(networks))]
    together, traces = ah.advance_many(networks, states, Xs, holds, "gpu", ("y",))
    for network, state, X, hold, found, seen in zip(networks, states, Xs, holds, together, traces, strict=True):
        alone, trace = ah.advance(network, state, X, hold, "gpu", ("y",))
        assert all(map(np.array_equal, found, alone)) and np.array_equal(seen["y"], trace["y"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_frozen_is_shared_and_left_alone(dtype, card):
    network = ah.Network(100, 36, ah.Projected(), ah.Foldiak(), ah.Continuous())
    state = network.init(np.random.default_rng(0), dtype)
    W, M = state.W.copy(), state.M.copy()
    X = BARS.sample(np.random.default_rng(0), 20).astype(dtype)
    assert laid_out(network.frozen()).cluster
    ours, theirs = (engines.settle(network, state, X, 60, engine) for engine in ("gpu", "reference"))
    np.testing.assert_allclose(ours, theirs, atol=1e-4 if dtype == np.float32 else 1e-9)
    assert np.array_equal(state.W, W) and np.array_equal(state.M, M)
    after, _ = ah.advance(network.frozen(), state, X[:2], 60, "gpu")
    assert np.array_equal(after.W, W) and np.array_equal(after.M, M)


def test_single_precision_stays_close_for_a_while(card):
    network = ah.Network(100, 36, ah.Projected(), ah.Oja(), ah.Continuous())
    state, X = network.init(np.random.default_rng(0)), BARS.sample(np.random.default_rng(1), 3)
    ours, theirs = (ah.advance(network, state, X, 50, engine)[0] for engine in ("gpu", "reference"))
    for name in ("W", "M", "y"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-4, err_msg=name)


def test_large_networks_and_spiking_ones_are_not_for_them(card):
    network = ah.Network(40, 36, ah.Projected(), ah.Hebbian(), ah.Continuous())
    assert laid_out(network).cluster and not laid_out(replace(network, n=2000)).cluster
    assert not laid_out(ah.Network(40, 36, ah.IntegrateAndFire(), ah.Oja(), ah.Bursts(2, 30, 20))).cluster
