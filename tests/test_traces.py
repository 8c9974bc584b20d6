"""What is recorded makes no difference to what is computed, and is the same whatever else is recorded."""

from functools import cache
from itertools import combinations

import emulated
import numpy as np
import pytest
from test_gpu_equations import EveryOther, Saturating

import asynchebb as ah
from asynchebb import engines
from asynchebb.engines import cpu, gpu, traces

HOLDS = [50, 64, 100, 500]
SUBSETS = [names for count in range(1, len(traces.NAMES)) for names in combinations(traces.NAMES, count)]
SINGLE = [(name,) for name in traces.NAMES]
NETWORKS = {
    "from rest": ah.asynchronous(n=150, m=36),
    "asynchronous": ah.asynchronous(n=150, m=36, reading="notebook"),
    "discrete": ah.discrete(n=150, m=36, reading="notebook"),
    # Gates of silent neurons are open and change nothing, or are so now and then, or let weights leak.
    "continuous": ah.continuous(n=150, m=36, reading="notebook"),
    "now and then": ah.Network(150, 36, ah.Potential(0.06), Saturating(), EveryOther()),
    "projected": ah.Network(90, 36, ah.Projected(0.06), Saturating(), EveryOther()),
    "constant leak": ah.Network(40, 36, ah.Potential(), ah.Hebbian(), ah.Continuous()),
    "rectified": ah.Network(100, 36, ah.Potential(), ah.Hebbian(0.5), ah.Asynchronous(0.3, 10)),
    "spiking": ah.Network(40, 36, ah.IntegrateAndFire(), ah.Oja(), ah.Bursts(2, 30, 20)),
}


@cache
def start(name):
    """A network that has learned a little: most of its neurons are silent."""
    network, X = NETWORKS[name], ah.Crossbars(6).sample(np.random.default_rng(1), 5)
    return ah.advance(network, network.init(np.random.default_rng(0), np.float64), X, 200)[0]


def advance(name, dtype, hold, trace, engine, settles=False, means=False):
    """The new state, its traces, and what it settles to."""
    network, X = NETWORKS[name], ah.Crossbars(6).sample(np.random.default_rng(2), 1 if hold > 100 else 3)
    state = start(name)._replace(W=start(name).W.astype(dtype))
    settled = np.zeros((len(X), network.n), dtype) if settles else None
    own = engines.prepare(network, state).copy()
    call = engines.call(network, own, X, hold, trace, name == "from rest", settled, means)
    engines.carry_out([call], engine)
    return call.state, call.traces, settled


def check(name, dtype, hold, engine, subsets):
    """Each subset leaves the bits that none and all leave; in float64 traces are those of the reference engine."""
    plain, *_ = advance(name, dtype, hold, (), engine)
    state, everything, _ = advance(name, dtype, hold, traces.NAMES, engine)
    same(state, plain, traces.NAMES)
    for trace in subsets:
        state, seen, _ = advance(name, dtype, hold, trace, engine)
        same(state, plain, trace)
        for one in trace:
            assert np.array_equal(getattr(seen, one), getattr(everything, one)), (trace, one)
    state, _, settled = advance(name, dtype, hold, (), engine, settles=True)
    same(state, plain, "settled")
    if engine == "gpu":
        state, *_ = advance(name, dtype, hold, (), engine, means=True)
        same(state, plain, "means")
    assert everything.burst.any()
    if dtype == np.float64:
        _, expected, settled_there = advance(name, dtype, hold, traces.NAMES, "reference", settles=True)
        for one in ("updates", "active", "burst", "spikes"):
            assert np.array_equal(getattr(everything, one), getattr(expected, one)), one
        np.testing.assert_allclose(everything.y, expected.y, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(settled, settled_there, rtol=1e-9, atol=1e-9)


def same(state, other, why):
    for name in ah.State._fields:
        assert getattr(state, name).tobytes() == getattr(other, name).tobytes(), (why, name)


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whatever_is_traced_the_bits_are_the_same(dtype, name, hold):
    check(name, dtype, hold, "cpu", SUBSETS)


@pytest.mark.slow
def test_on_all_cores_too(monkeypatch):
    monkeypatch.setattr(cpu, "WIDE", 100)
    check("now and then", np.float64, 100, "cpu", SINGLE)


@pytest.mark.parametrize(
    "hold", [hold if hold == 100 else pytest.param(hold, marks=pytest.mark.slow) for hold in HOLDS]
)
@pytest.mark.parametrize("name", NETWORKS)
def test_on_a_gpu_too(name, hold, card):
    check(name, np.float64, hold, "gpu", SINGLE if hold == 100 else [("burst",)])


@pytest.mark.slow
@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_on_a_gpu_too_with_every_subset(dtype, name, hold, card):
    check(name, dtype, hold, "gpu", SUBSETS)


def test_networks_here_are_laid_out_on_a_gpu_in_every_way():
    double, found = np.dtype(np.float64), set()
    of = emulated.Host.geometries[double, 512]
    for name, network in NETWORKS.items():
        for hold in HOLDS:
            rest = name == "from rest"
            found.add(gpu.geometry_of(emulated.Host, network, hold, rest, double, 1))
    assert {of.few, of.more, of.many, of.all} <= found and found & {*of.clusters}
