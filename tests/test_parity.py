"""The fast engines compute what the reference computes, for every combination of equations."""

import ctypes
import importlib
import os
import subprocess
import sys
import threading
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asynchebb as ah
from asynchebb import equations, notation
from asynchebb.engines import cpu, traces
from asynchebb.engines.cpu import units
from asynchebb.network import VANISHING

FAST = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
DYNAMICS = notation.variants("dynamics")
LAZY = [name for name, cls in DYNAMICS.items() if getattr(cls, "additive", False)]
STEP_BY_STEP = [name for name in DYNAMICS if name not in LAZY]
COUNTING = {"Bursts": lambda: ah.Bursts(spikes=2, window=30, r_r=20), "AtSpikes": ah.AtSpikes}
SCHEDULES = {
    name: cls if name != "Asynchronous" else lambda: ah.Asynchronous(r_b=0.3, r_r=20)
    for name, cls in notation.variants("schedule").items()
    if name not in COUNTING
}


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("rule", notation.variants("rule"))
@pytest.mark.parametrize("dynamics", LAZY)
@pytest.mark.parametrize("from_rest", [False, True], ids=["carried over", "from rest"])
def test_every_combination_agrees_with_the_reference(from_rest, dynamics, rule, schedule, engine):
    """In float64, to 1e-9, over 3,000 steps, traces included."""
    network = ah.Network(
        n=100,
        m=36,
        dynamics=notation.variants("dynamics")[dynamics](),
        rule=notation.variants("rule")[rule](),
        schedule=SCHEDULES[schedule](),
    )
    state = network.init(np.random.default_rng(0), np.float64)
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 30)

    def advance(engine, *trace):
        return ah.advance(network, state, X, 100, engine, trace, from_rest)

    fast, fast_traces = advance(engine, "updates", "active", "y")
    slow, slow_traces = advance("reference", *traces.NAMES)
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)
    for name in ("updates", "active"):
        assert np.array_equal(fast_traces[name], slow_traces[name]), name
    np.testing.assert_allclose(fast_traces["y"], slow_traces["y"], rtol=1e-9, atol=1e-9)
    followed, followed_traces = advance(engine, "burst")
    assert np.array_equal(followed_traces["burst"], slow_traces["burst"])
    assert all(map(np.array_equal, followed, fast))  # what is traced makes no difference: see test_traces.py


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize(
    ("dynamics", "schedule"),
    [
        (dynamics, schedule)
        for dynamics in STEP_BY_STEP
        for schedule in (*SCHEDULES, *COUNTING)
        if schedule not in COUNTING or equations.spikes(DYNAMICS[dynamics]())
    ],
)
def test_networks_that_are_run_step_by_step_agree_with_the_reference_spike_by_spike(dynamics, schedule, engine):
    """With every rule, carried over and from rest, over 600 steps."""
    spiking = equations.spikes(DYNAMICS[dynamics]())
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 10)
    for rule in notation.variants("rule").values():
        network = ah.Network(60, 36, DYNAMICS[dynamics](), rule(), {**SCHEDULES, **COUNTING}[schedule]())
        state = network.init(np.random.default_rng(0), np.float64)
        for from_rest in (False, True):
            fast, fast_traces = ah.advance(network, state, X, 60, engine, traces.NAMES, from_rest)
            slow, slow_traces = ah.advance(network, state, X, 60, "reference", traces.NAMES, from_rest)
            for name in ah.State._fields:
                what = f"{name}, {network.rule}, from_rest={from_rest}"
                np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), 1e-9, 1e-9, err_msg=what)
            np.testing.assert_allclose(fast_traces.pop("y"), slow_traces.pop("y"), rtol=1e-9, atol=1e-9)
            for name, traced in fast_traces.items():
                assert np.array_equal(traced, slow_traces[name]), f"{name}, {network.rule}"
            assert (fast_traces["spikes"].sum() > 100) == spiking


@pytest.fixture
def records(monkeypatch):
    """What the cpu engine's loop has counted in each call."""
    loop, seen = cpu.loop, []

    class Watched:
        def __init__(self, module):
            self.module = module

        def __getattr__(self, name):
            return getattr(self.module, name)

        def run(self, address):
            self.module.run(address)
            kind = units.held_type(np.dtype(np.float64))
            seen.append(np.frombuffer((ctypes.c_char * kind.itemsize).from_address(address), kind)[0].copy())

    monkeypatch.setattr(cpu, "loop", lambda *key: Watched(loop(*key)))
    return seen


@pytest.mark.parametrize("dynamics", [ah.Potential(0.06), ah.Projected(0.06)], ids=repr)
def test_few_neurons_are_run_at_most_steps_and_the_results_are_right(dynamics, records):
    """The tests here would say nothing of blocks that were kept, blocks that were undone, and lanes that were put to
    sleep, if there were none."""
    schedule = ah.Asynchronous(r_b=0.2, r_r=50)
    network = ah.asynchronous(n=300, m=36, dynamics=dynamics, schedule=schedule, reading="notebook")
    state = network.init(np.random.default_rng(0), np.float64)
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 10)
    fast, _ = ah.advance(network, state, X, hold=200, engine="cpu")
    slow, _ = ah.advance(network, state, X, hold=200, engine="reference")
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert records[-1]["run_apart"] > 0 and records[-1]["undone"] > 0
    _, seen = ah.advance(network, fast, X, hold=200, engine="cpu", trace=("y",))
    assert records[-1]["run_apart"] == 10 * 199  # all steps but each last one
    active = seen["y"].reshape(10, 200, 300)[:, :-1] > 0
    been_active = np.logical_or.accumulate(active, axis=1)
    # Lanes are the active neurons and few others, since those that fall silent are put to sleep.
    assert active.sum() <= records[-1]["lane_steps"] < been_active.sum()


@pytest.mark.parametrize(
    ("dynamics", "rule", "schedule", "from_rest"),
    [
        (ah.Projected(), ah.Hebbian(0.01), ah.Asynchronous(r_b=0.1, r_r=5), True),
        (ah.Potential(), ah.Oja(0.01), ah.Continuous(), False),
    ],
    ids=["asynchronous", "continuous"],
)
@pytest.mark.slow
def test_a_large_network_on_all_cores_has_the_same_bits_as_on_one(dynamics, rule, schedule, from_rest, monkeypatch):
    """And those bits are right. So many neurons are active that the cores share every pass."""
    network = ah.Network(1600, 36, dynamics, rule, schedule, ah.Gaussian(scale=0.2))
    state = network.init(np.random.default_rng(0), np.float64)
    state.M[:] *= 1e-3  # hardly any inhibition,
    state.W[1040:] = 0  # and no drive for the others, which are left out
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 2)

    def advance(engine, wide=100, cores=None):
        monkeypatch.setattr(cpu, "WIDE", wide)
        available = numba.get_num_threads()
        numba.set_num_threads(cores or available)
        try:
            return ah.advance(network, state, X, 40, engine, ("active",), from_rest)
        finally:
            numba.set_num_threads(available)

    all_cores, traced = advance("cpu")
    one_core, _ = advance("cpu", cores=1)
    alone, _ = advance("cpu", wide=10_000)
    slow, _ = advance("reference")
    for name in ah.State._fields:
        assert np.array_equal(getattr(one_core, name), getattr(all_cores, name)), name
        for fast in (all_cores, alone):
            np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert np.median(traced["active"]) ** 2 > cpu.loop(np.dtype(np.float64), True).SPREAD_LANES


sizes = st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65])  # around whole vectors


@pytest.mark.parametrize("engine", FAST)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    n=sizes,
    m=sizes,
    dynamics=st.sampled_from([*DYNAMICS.values()]),
    dt=st.floats(0.002, 0.05),
    rule=st.sampled_from([*notation.variants("rule").values()]),
    eta=st.floats(1e-4, 0.3),
    schedule=st.one_of(
        st.builds(ah.Asynchronous, r_b=st.floats(0, 1), r_r=st.integers(0, 40)),
        st.sampled_from([ah.Discrete(), ah.Continuous(), ah.Frozen()]),
    ),
    hold=st.integers(1, 90),
    from_rest=st.booleans(),
    seed=st.integers(0, 100),
)
def test_networks_of_any_size_and_constants_agree_with_the_reference(
    n, m, dynamics, dt, rule, eta, schedule, hold, from_rest, seed, engine
):
    large_spikes = {"theta": 0.5} if equations.spikes(dynamics()) else {}  # or many would come late at large dt
    network = ah.Network(n, m, dynamics(dt, **large_spikes), rule(eta), schedule)
    rng = np.random.default_rng(seed)
    state = network.init(rng, np.float64)
    X = rng.random((6, m)) * (rng.random((6, m)) < 0.5)
    fast, fast_traces = ah.advance(network, state, X, hold, engine, ("y", "updates"), from_rest)
    slow, slow_traces = ah.advance(network, state, X, hold, "reference", ("y", "updates"), from_rest)
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(fast_traces["y"], slow_traces["y"], rtol=1e-9, atol=1e-9)
    assert np.array_equal(fast_traces["updates"], slow_traces["updates"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loop_stays_within_its_room(dtype, monkeypatch):
    """Its functions know places in memory and no lengths: what lies around its arrays must be as it was."""
    around, guarded = 4096, []

    def aligned(shape, kind):
        size = shape[0] * shape[1] * kind.itemsize
        space = np.full(size + 2 * around + 64, 0xA5, np.uint8)
        start = around + -(space.ctypes.data + around) % 64
        guarded.append((space, start, start + size))
        return space[start : start + size].view(kind).reshape(shape)

    monkeypatch.setattr(cpu, "_aligned", aligned)
    monkeypatch.setattr(cpu, "_last_room", threading.local())
    for n in (*range(1, 50), 63, 65, 76, 97, 130):
        rng = np.random.default_rng(n)
        for dynamics in (ah.Potential(0.05), ah.Projected(0.05), ah.IntegrateAndFire(0.05, theta=0.5)):
            for schedule in (ah.Asynchronous(0.1, 5), ah.Continuous(), ah.Discrete()):
                network = ah.Network(n, 9, dynamics, ah.Hebbian(0.05), schedule, ah.Gaussian(scale=4 / (n + 4)))
                ah.advance(network, network.init(rng, dtype), rng.random((6, 9)) * (rng.random((6, 9)) < 0.4), hold=80)
        dark = ah.Network(n, 9, ah.Projected(), ah.Hebbian(), ah.Frozen())  # all fall asleep, and none are left
        ah.advance(dark, dark.init(rng, dtype), np.zeros((2, 9)), hold=80, from_rest=True)
        state = dark.init(rng, dtype)  # half of them are active, and the others wake together
        W, M, u = np.ones((n, 9), dtype), np.zeros((n, n), dtype), np.repeat([1.0, -0.06], [n - n // 2, n // 2])
        waking = replace(dark, dynamics=ah.Potential())
        ah.advance(waking, state._replace(W=W, M=M, u=u, y=np.maximum(u, 0)), np.ones((1, 9)) / 9, hold=100)
    assert len(guarded) > 100
    for space, start, end in guarded:
        assert (space[:start] == 0xA5).all() and (space[end:] == 0xA5).all()


@pytest.mark.slow
def test_code_just_compiled_has_the_same_bits_as_in_a_later_process(tmp_path):
    """A large network's, whose threads a later process has to start by itself. Its passes and the loop come from a
    first process, a rule from a later one, and all is loaded in the last."""
    code = """
import hashlib, sys, numpy as np, asynchebb as ah
from asynchebb.engines import cpu
cpu.WIDE = 10
network = ah.asynchronous(n=60, m=36, rule=getattr(ah, sys.argv[1])(), schedule=ah.Asynchronous(r_b=0.5, r_r=20))
X = ah.Crossbars(6).sample(np.random.default_rng(0), 40)
state, _ = ah.advance(network, network.init(np.random.default_rng(1)), X, hold=100)
print([hashlib.sha256(np.ascontiguousarray(z)).hexdigest() for z in state])
"""
    environment = {**os.environ, "ASYNCHEBB_CACHE": str(tmp_path)}

    def run(rule):
        done = subprocess.run([sys.executable, "-c", code, rule], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout, "compiling Projected" in done.stderr, f"compiling {rule}" in done.stderr

    runs = [run(rule) for rule in ("Hebbian", "Hebbian", "Oja", "Oja")]
    assert [run[1:] for run in runs] == [(True, True), (False, False), (False, True), (False, False)]
    assert runs[0][0] == runs[1][0] != runs[2][0] == runs[3][0]


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("stimulus", [ah.Bars(6), ah.Squares(6), ah.Digits(6), ah.Patches(6)], ids=repr)
def test_grey_and_empty_images_agree_with_the_reference(stimulus, engine):
    network = ah.Network(n=100, m=stimulus.m, schedule=ah.Asynchronous(r_b=0.3, r_r=20))
    state = network.init(np.random.default_rng(0), np.float64)
    X = stimulus.sample(np.random.default_rng(1), 20)
    X[3] = 0
    fast, _ = ah.advance(network, state, X, hold=100, engine=engine)
    slow, _ = ah.advance(network, state, X, hold=100, engine="reference")
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize(
    ("rule", "schedule"),
    [
        (ah.Oja(eta=0.4), ah.Continuous()),  # ηλ > 1 whenever a rate is above 1.6: rows are rectified
        (ah.Hebbian(eta=0.3), ah.Continuous()),  # scales shrink within a hold
        (ah.Hebbian(eta=1.0), ah.Asynchronous(r_b=0.2, r_r=3)),  # and vanish
        (ah.Foldiak(eta=0.05, p=0.7), ah.Asynchronous(r_b=0.2, r_r=3)),  # φ takes weights to 0
    ],
    ids=repr,
)
def test_rates_at_which_shortcuts_end_agree_with_the_reference(rule, schedule, engine):
    network = ah.Network(n=24, m=36, dynamics=ah.Projected(), rule=rule, schedule=schedule)
    state = network.init(np.random.default_rng(0), np.float64)
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 10)
    fast, fast_traces = ah.advance(network, state, X, hold=50, engine=engine, trace=("burst",))
    slow, slow_traces = ah.advance(network, state, X, hold=50, engine="reference", trace=("burst",))
    assert np.array_equal(fast_traces["burst"], slow_traces["burst"]) and fast_traces["burst"].any()
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("model", [ah.asynchronous, ah.continuous, ah.discrete])
def test_float32_follows_the_reference_while_rounding_allows(model, engine):
    network = model(n=60, m=36)
    state = network.init(np.random.default_rng(0))
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 4)
    fast, _ = ah.advance(network, state, X, hold=100, engine=engine)
    slow, _ = ah.advance(network, state, X, hold=100, engine="reference")
    assert fast.W.dtype == slow.W.dtype == np.float32
    np.testing.assert_allclose(fast.W, slow.W, atol=1e-5)
    np.testing.assert_allclose(fast.y, slow.y, atol=1e-4)


@pytest.mark.parametrize("engine", FAST)
def test_potentials_below_zero_agree_under_projected_dynamics(engine):
    """A state that other dynamics have left: neurons far below zero wake at the first step."""
    trained = ah.asynchronous(n=200, m=36, reading="notebook")
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 20)
    state, _ = ah.advance(trained, trained.init(np.random.default_rng(0), np.float64), X, hold=100)
    assert state.u.min() < -1
    network = ah.Network(n=200, m=36, dynamics=ah.Projected(), schedule=ah.Frozen())
    fast, _ = ah.advance(network, state, X[:5], hold=100, engine=engine)
    slow, _ = ah.advance(network, state, X[:5], hold=100, engine="reference")
    np.testing.assert_allclose(fast.y, slow.y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize(("eta", "hold"), [(0.2, 500), (0.1, 1000), (0.05, 2000)])
def test_a_row_that_fades_within_one_hold_keeps_its_direction(eta, hold, engine):
    """In float32 a factor of (1 − η) at each of these steps would leave nothing."""
    network = ah.Network(n=60, m=36, dynamics=ah.Potential(), rule=ah.Hebbian(eta), schedule=ah.Continuous())
    state = network.init(np.random.default_rng(0))
    state.u[:5], state.y[:5] = -1e6, 0
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 1)
    for name in (engine, "reference"):
        after, _ = ah.advance(network, state, X, hold=hold, engine=name)
        for A, B in ((state.W, after.W), (state.M, after.M)):
            assert ah.metrics.weight_similarity(A, B)[:5] == pytest.approx(np.ones(5), abs=1e-4), name
            assert B[:5].max(axis=1) == pytest.approx(np.full(5, VANISHING), rel=1e-3, abs=0), name


@pytest.mark.parametrize("engine", [*FAST, "reference"])
def test_a_row_that_grew_and_then_faded_within_a_hold_keeps_its_direction(engine):
    network = ah.Network(3, 1, ah.Potential(), ah.Hebbian(0.2), ah.Continuous())
    state = network.init(np.random.default_rng(0))
    state.W[:], state.M[:] = [[0], [1], [1]], [[0, 5, 5], [0, 1, 0], [0, 0, 1]]
    state.u[:], state.y[:] = [0.3, 1, 1], [0.3, 1, 1]  # the first one is active for a few steps
    after, traced = ah.advance(network, state, np.ones((1, 1)), hold=500, engine=engine, trace=("y",))
    assert traced["y"][0, 0] > 0 and not traced["y"][20:, 0].any()
    assert after.M[0].max() == pytest.approx(VANISHING, rel=1e-3, abs=0)


@pytest.mark.parametrize("name", ["columns", "lanes", "wide", "loop"])
def test_the_parts_of_the_loop_cannot_be_imported_by_themselves(name):
    with pytest.raises(ImportError, match=r"asynchebb\.engines\.cpu compiles it"):
        importlib.import_module(f"asynchebb.engines.cpu.{name}")
