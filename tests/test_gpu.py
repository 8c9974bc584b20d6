"""The gpu engine: its equations and its kernels, which run here on a CPU; and what is special about it on a GPU."""

import ctypes
import gc
import inspect
import itertools
import os
import subprocess
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import SimpleNamespace

import emulated
import numpy as np
import pytest
from against_reference import BARS, compared

import asynchebb as ah
from asynchebb import engines, equations, notation
from asynchebb.checks import InputError
from asynchebb.engines import gpu
from asynchebb.engines.gpu import channels, device, program, translate
from asynchebb.engines.gpu.batch import Batch, bytes_of
from asynchebb.engines.together import Together
from asynchebb.network import VANISHING, State
from asynchebb.runs import simulate, testing

needs_compiler = emulated.needs_compiler
on_a_gpu = pytest.mark.gpu


# Equations


@needs_compiler
def test_translated_equations_compute_what_the_python_ones_do(tmp_path):
    """All of the package's, on random numbers, to the last bit but for transcendental functions."""
    parts = ["#include <cmath>\nusing namespace std;\n#define DEVICE static inline\ntypedef double real;"]
    parts.append(translate.FUNCTIONS)
    for kind, methods in equations.METHODS.items():
        for name, cls in notation.variants(kind).items():
            parts.append(f"namespace {name} {{\n{translate.functions(kind, cls)}}}\n")
            for method, form in methods.items():
                types = {
                    one: "long long" if one in translate.WHOLE_NUMBERS else "real" for one in translate_names(form)
                }
                takes = ", ".join(f"{types[one]} {one}" for one in form.all_taken)
                given = " ".join(f"{types[one]} out_{one};" for one in form.all_given)
                results = ", ".join(f"out_{one}" for one in form.all_given)
                copied = " ".join(f"out[{place}] = out_{one};" for place, one in enumerate(form.all_given))
                called = f"{name}::{method}(constants, {', '.join(form.all_taken)}, {results});"
                parts.append(
                    f'extern "C" void {name}_{method}(const real* constants, {takes}, double* out) '
                    f"{{ {given} {called} {copied} }}"
                )
    source, library = tmp_path / "equations.cpp", tmp_path / "equations.so"
    source.write_text("\n".join(parts))
    subprocess.run([emulated.COMPILER, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    compiled, rng, compared = ctypes.CDLL(str(library)), np.random.default_rng(0), 0
    for kind, methods in equations.METHODS.items():
        for name, cls in notation.variants(kind).items():
            record = cls()
            constants = np.array([*equations.constants(record).values(), 0.0])
            for method, form in methods.items():
                takes, gives = equations.takes_and_gives(kind, method, cls)
                for _ in range(100):
                    values = {one: random_value(rng, one) for one in form.all_taken}
                    out = (ctypes.c_double * 4)()
                    arguments = (
                        ctypes.c_longlong(value) if isinstance(value, int) else ctypes.c_double(value)
                        for value in values.values()
                    )
                    getattr(compiled, f"{name}_{method}")(ctypes.c_void_p(constants.ctypes.data), *arguments, out)
                    wanted = getattr(record, method)(*(values[one] for one in takes))
                    found = dict(zip(form.all_given, out, strict=False))
                    for one, value in zip(gives, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
                        assert found[one] == pytest.approx(float(value), rel=1e-15, abs=1e-15), (name, method, values)
                        compared += 1
    assert compared > 5_000


def translate_names(form):
    return {*form.all_taken, *form.all_given}


def random_value(rng, name):
    if name in translate.WHOLE_NUMBERS:
        return int(rng.integers(0, 300))
    if name == "noise_i":
        return float(rng.random())
    return float(abs(rng.normal())) + (name == "a_i") if name in ("y_i", "a_i") else float(rng.normal())


@dataclass(frozen=True)
class Saturating:
    """A rule of a user's own, with what the package's do not use: powers, np functions, truths as numbers."""

    eta: float = 0.01
    most: float = 2.0
    floor = 0.0

    def leak_w(self, y_i):
        return np.minimum(y_i, self.most) ** 2 / (1 + np.exp(-y_i))

    def leak_m(self, y_i):
        high = y_i > self.most
        return np.sqrt(np.abs(y_i)) * (high == 0) + np.tanh(y_i) * high

    def rate(self, y_i, a_i):
        a_i = a_i + np.log(1 + y_i)
        return self.eta / (1 + a_i), a_i


@dataclass(frozen=True)
class Trembling(ah.Potential):
    """Additive, and noisy."""

    def step(self, u_i, drive_i, noise_i):
        u_i = u_i + self.dt * (drive_i + noise_i - 0.5)
        return u_i, u_i * (u_i > 0)


@dataclass(frozen=True)
class EveryOther:
    """A schedule of a user's own: every other step for bursting neurons, and once in between for silent ones."""

    r_b: float = 0.3
    every: int = 7

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i > 1) | (c_i > self.every * 5)
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class Wrapping(ah.Asynchronous):
    """Its count starts again by itself."""

    def gate(self, y_i, c_i, k, hold):
        return (y_i > self.r_b) & (c_i > self.r_r), (c_i + 1) * (c_i < 50)


@dataclass(frozen=True)
class Saturated(ah.Asynchronous):
    """Its count ends somewhere."""

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i > self.r_r)
        return beta_i, np.minimum(c_i + 1, 100) * (beta_i == 0)


@dataclass(frozen=True)
class TooLarge(ah.Hebbian):
    def leak_w(self, y_i):
        y_i = y_i + 1
        return y_i * 99999999999999999999


def test_an_equation_that_cannot_be_translated_names_the_line_and_the_construct():
    line = inspect.getsourcelines(TooLarge.leak_w)[1] + 2
    wanted = rf"TooLarge.leak_w has `9{{20}}` in line {line} \(Constant\), which cannot be translated for a GPU"
    with pytest.raises(InputError, match=wanted):
        translate.functions("rule", TooLarge)
    typed = type("Typed", (ah.Hebbian,), {"leak_m": eval("lambda self, y_i: 1.0")})
    with pytest.raises(InputError, match="Typed, whose method leak_m has no source"):
        translate.functions("rule", typed)


def test_how_long_silent_gates_are_certainly_closed():
    assert [gpu.quiet(one, 50) for one in (ah.Asynchronous(), ah.Asynchronous(r_b=0), ah.Frozen())] == [50, 50, 50]
    assert gpu.quiet(ah.Discrete(), 50) == 49 and gpu.quiet(ah.Continuous(), 50) == 0
    assert gpu.quiet(EveryOther(), 50) == 0 and gpu.quiet(Wrapping(), 50) == 0 and gpu.quiet(Saturated(), 50) == 0


# The kernels


@pytest.mark.parametrize("from_rest", [False, True], ids=["carried over", "from rest"])
@pytest.mark.parametrize(
    ("dynamics", "rule", "schedule"),
    [
        (ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.3, 20)),
        (ah.Potential(), ah.Oja(), ah.Continuous()),
        (ah.Potential(), ah.Hebbian(), ah.Discrete()),
        (ah.Projected(), ah.Pehlevan(), ah.Asynchronous(0.3, 20)),
        (ah.Projected(), ah.Foldiak(), ah.Discrete()),
        (ah.Projected(0.06), Saturating(), EveryOther()),
        (ah.Potential(0.06), Saturating(), EveryOther()),
        (ah.Potential(), ah.Oja(), Wrapping(0.3, 20)),
        (Trembling(), ah.Hebbian(), ah.Asynchronous(0.3, 20)),
        (ah.IntegrateAndFire(), ah.Oja(), ah.Bursts(2, 30, 20)),
        (ah.EscapeNoise(), ah.SpikePairs(), ah.AtSpikes()),
        (ah.HomeostaticRelaxing(), ah.Hebbian(), ah.Asynchronous(0.1, 5)),
    ],
    ids=repr,
)
def test_the_kernels_agree_with_the_reference(dynamics, rule, schedule, from_rest, card):
    compared(ah.Network(100, 36, dynamics, rule, schedule), from_rest)


@pytest.mark.parametrize("n", [1, 31, 65, 200])
def test_any_number_of_neurons(n, card):
    compared(ah.Network(n, 36, ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.3, 20)), False, stimuli=4)
    compared(ah.Network(n, 36, ah.Projected(), ah.Hebbian(), ah.Asynchronous(0.3, 20)), True, stimuli=4)


@pytest.mark.parametrize(
    ("rule", "schedule"),
    [
        (ah.Oja(eta=0.4), ah.Continuous()),  # rows are rectified
        (ah.Hebbian(eta=1.0), ah.Asynchronous(r_b=0.2, r_r=3)),  # scales vanish
        (ah.Foldiak(eta=0.05, p=0.7), ah.Asynchronous(r_b=0.2, r_r=3)),  # φ takes weights to 0
    ],
    ids=repr,
)
def test_rates_at_which_shortcuts_end(rule, schedule, card):
    network = ah.Network(24, 36, ah.Projected(), rule, schedule)
    *_, seen = compared(network, False, 6, 50, ("burst", "updates"))
    assert seen["burst"].any()


@pytest.mark.parametrize("schedule", [ah.Asynchronous(0.2, 10), ah.Continuous(), ah.Discrete()], ids=repr)
@pytest.mark.parametrize("dynamics", [ah.Potential(), ah.Projected()], ids=repr)
def test_a_run_may_be_cut_at_any_stimulus(dynamics, schedule, card):
    network = ah.Network(100, 36, dynamics, ah.Hebbian(), schedule)  # columns of M lag behind by up to eight stimuli
    state, X = network.init(np.random.default_rng(0)), BARS.sample(np.random.default_rng(1), 21)
    whole, _ = ah.advance(network, state, X, 40, "gpu")
    for first in (1, 5, 15):
        part, _ = ah.advance(network, state, X[:first], 40, "gpu")
        part, _ = ah.advance(network, part, X[first:], 40, "gpu")
        for name in ah.State._fields:
            assert np.array_equal(getattr(part, name), getattr(whole, name)), (first, name)


@pytest.mark.parametrize(
    "network",
    [
        ah.Network(100, 36, ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.2, 10)),
        ah.Network(100, 36, ah.Potential(), ah.Hebbian(), ah.Discrete()),
        ah.Network(100, 36, ah.Projected(), ah.Oja(), ah.Asynchronous(0.2, 10)),
        ah.Network(40, 36, ah.IntegrateAndFire(), ah.Oja(), ah.Asynchronous(0.2, 10)),
    ],
    ids=repr,
)
def test_means_of_rates_are_those_of_all_of_them(network, card):
    state = engines.prepare(network, network.init(np.random.default_rng(0), np.float64))
    X = BARS.sample(np.random.default_rng(1), 5)
    _, seen = ah.advance(network, state, X, 60, "reference", ("y",))
    call = engines.call(network, state, X, 60, means=True)
    engines.carry_out([call], "gpu")
    np.testing.assert_allclose(call.traces.means, seen["y"].reshape(5, 60, -1).mean(axis=1), rtol=1e-9, atol=1e-12)


def test_rows_that_only_fade_keep_their_direction(card):
    network = ah.Network(100, 36, ah.Potential(), ah.Hebbian(0.7), ah.Discrete(), ah.Gaussian(scale=0.2))
    fast, *_ = compared(network, False, 80, 20, ())
    faded = fast.M.max(axis=1) < 1e-20
    assert faded.any() and np.allclose(fast.M[faded].max(axis=1) / VANISHING, 1, atol=0.01)
    state = network.init(np.random.default_rng(0), np.float64)
    before = state.M[faded] / state.M[faded].max(axis=1, keepdims=True)
    np.testing.assert_allclose(fast.M[faded] / fast.M[faded].max(axis=1, keepdims=True), before, rtol=1e-9)


def test_a_network_that_drives_most_of_its_neurons_has_more_active_ones_than_slots(card):
    network = ah.Network(100, 36, ah.Projected(), ah.Hebbian(0.05), ah.Asynchronous(0.1, 5), ah.Gaussian(scale=0.01))
    *_, seen = compared(network, True, 4, 60)
    assert seen["active"].max() == 100


@pytest.mark.parametrize("dynamics", [ah.Potential(), ah.Projected(), ah.IntegrateAndFire()], ids=repr)
def test_several_blocks_share_a_large_network(dynamics, card, monkeypatch):
    monkeypatch.setattr(program, "LARGE", 100)
    monkeypatch.setattr(program, "SHARED_BY", program.Geometry(32))
    network = ah.Network(130, 36, dynamics, ah.Hebbian(0.05), ah.Asynchronous(0.1, 5), ah.Gaussian(scale=0.1))
    compared(network, True, 3, 40)
    alone, _ = ah.advance_many(
        network, [network.init(np.random.default_rng(0))], BARS.sample(np.random.default_rng(1), 2), 20, "gpu"
    )
    monkeypatch.setattr(program, "LARGE", 1000)
    by_one, _ = ah.advance_many(
        network, [network.init(np.random.default_rng(0))], BARS.sample(np.random.default_rng(1), 2), 20, "gpu"
    )
    np.testing.assert_allclose(alone[0].W, by_one[0].W, atol=1e-6)


# Batches


def a_batch():
    networks = [
        ah.asynchronous(40, 36, reading="notebook"),
        ah.asynchronous(64, 36, schedule=ah.Asynchronous(0.2, 10)),
        ah.discrete(50, 36),
        ah.Network(30, 36, ah.IntegrateAndFire(), ah.Oja(), ah.Asynchronous(0.3, 20)),
    ]
    states = [network.init(np.random.default_rng(seed)) for seed, network in enumerate(networks)]
    Xs = [BARS.sample(np.random.default_rng(seed), 3 + seed) for seed in range(len(networks))]
    return networks, states, Xs, [40, 60, 50, 30], [False, True, True, False]


@pytest.mark.parametrize(
    "engine", ["cpu", "reference", pytest.param("emulated", marks=needs_compiler), pytest.param("gpu", marks=on_a_gpu)]
)
def test_networks_in_a_batch_get_the_same_bits_as_alone(engine, request):
    if engine == "emulated":
        request.getfixturevalue("host")
        engine = "gpu"
    networks, states, Xs, hold, from_rest = a_batch()
    together, seen = ah.advance_many(networks, states, Xs, hold, engine, ("active",), from_rest)
    again, _ = ah.advance_many(networks[::-1], states[::-1], Xs[::-1], hold[::-1], engine, ("active",), from_rest[::-1])
    for k, network in enumerate(networks):
        alone, trace = ah.advance(network, states[k], Xs[k], hold[k], engine, ("active",), from_rest[k])
        for name, array in alone._asdict().items():
            assert np.array_equal(getattr(together[k], name), array), name
            assert np.array_equal(getattr(again[-1 - k], name), array), name
        assert np.array_equal(seen[k]["active"], trace["active"])


def test_one_network_and_one_stimulus_set_serve_for_all_states():
    network = ah.asynchronous(20, 36)
    states = [network.init(np.random.default_rng(seed)) for seed in range(3)]
    X = BARS.sample(np.random.default_rng(0), 4)
    many, _ = ah.advance_many(network, states, X, 30, "cpu")
    for state, advanced in zip(states, many, strict=True):
        assert np.array_equal(advanced.W, ah.advance(network, state, X, 30)[0].W)
    with pytest.raises(InputError, match="Xs has 2 entries; it must have one for each of the 3 states"):
        ah.advance_many(network, states, [X, X], 30)


def test_a_batch_is_split_where_memory_is_short_and_says_what_is_needed_where_it_cannot(host, monkeypatch):
    networks, states, Xs, hold, from_rest = a_batch()
    whole, _ = ah.advance_many(networks, states, Xs, hold, "gpu", from_rest=from_rest)
    launches, launch = [], emulated.Host.launch
    monkeypatch.setattr(emulated.Host, "launch", lambda *given: launches.append(given[-1]) or launch(*given))
    host.room = 150_000
    split, _ = ah.advance_many(networks[:3], states[:3], Xs[:3], hold[:3], "gpu", from_rest=from_rest[:3])
    assert len(launches) == 3 and np.array_equal(split[2].W, whole[2].W)
    host.room = 1_000
    with pytest.raises(
        InputError, match=r"n = 40 and m = 36 needs 0\.00 GB of the GPU's memory .* 0\.00 GB are available"
    ):
        ah.advance_many(networks, states, Xs, hold, "gpu")


@needs_compiler
def test_a_batch_is_split_where_the_card_has_less_memory_than_it_said(host, monkeypatch):
    networks, states, Xs, hold, from_rest = a_batch()
    whole, _ = ah.advance_many(networks, states, Xs, hold, "gpu", from_rest=from_rest)
    most, refused, allocate = max(channel.size for channel in host._channels), [], emulated.Host.memory

    def scarce(self, size):
        if sum(channel.size for channel in self._channels) + size > most:
            refused.append(size)
            raise channels.Full
        return allocate(self, size)

    monkeypatch.setattr(emulated.Host, "memory", scarce)
    host.free_all()
    split, _ = ah.advance_many(networks, states, Xs, hold, "gpu", from_rest=from_rest)
    assert refused and all(np.array_equal(one.W, other.W) for one, other in zip(split, whole, strict=True))
    most = 10_000
    host.free_all()
    with pytest.raises(InputError, match="n = 64 and m = 36 needs"):
        ah.advance_many(networks[1], states[1:2], Xs[1:2], 10, "gpu")


@needs_compiler
def test_memory_is_kept_whatever_was_in_it(host, monkeypatch):
    """A large batch, a small one with traces in both precisions, a frozen one, and the large one again."""
    allocated, allocate = [], emulated.Host.memory
    monkeypatch.setattr(emulated.Host, "memory", lambda self, size: allocated.append(size) or allocate(self, size))
    networks, states, Xs, hold, from_rest = a_batch()
    frozen = [network.frozen() for network in networks]
    double = [State(*(a.astype(np.float64) if a.dtype == np.float32 else a for a in state)) for state in states]
    pairs = [networks[0], networks[0]], [states[0], double[0]], [Xs[0][:2]] * 2
    requests = [
        (networks, states, Xs, hold, "gpu", ("active",), from_rest),
        (*pairs, 20, "gpu", ("y", "burst", "updates")),
        (frozen, states, Xs, 20, "gpu", ("y",), True),
        (networks, states, Xs, hold, "gpu", ("active",), from_rest),
    ]
    for given in requests:
        kept, kept_traces = ah.advance_many(*given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, "current", emulated.Host)
            fresh, fresh_traces = ah.advance_many(*given)
        for one, other in zip(kept, fresh, strict=True):
            assert all(map(np.array_equal, one, other))
        for one, other in zip(kept_traces, fresh_traces, strict=True):
            assert all(np.array_equal(one[name], other[name]) for name in other)
    allocated.clear()
    ah.advance_many(*requests[0])
    assert not allocated


@needs_compiler
def test_a_thread_gives_its_memory_back_at_its_end(host):
    networks, states, Xs, hold, _ = a_batch()
    for _ in engines.in_threads(lambda k: ah.advance(networks[k], states[k], Xs[k], hold[k], "gpu"), range(4), 4):
        pass
    gc.collect()
    assert not len(host._channels)


def test_weights_that_are_shared_or_frozen_stay_on_the_card():
    network = ah.asynchronous(40, 36)
    state = engines.prepare(network, network.init(np.random.default_rng(0)))
    X, geometry = BARS.sample(np.random.default_rng(0), 2), program.Geometry(64)

    def laid_out(network, count):
        batch = Batch([engines.call(network, state, X, 10) for _ in range(count)], [{}] * count, geometry)
        return batch.size, batch.taken.stop - batch.taken.start

    weights = 4 * 40 * (36 + 64)
    learning, frozen, shared = laid_out(network, 1), laid_out(network.frozen(), 1), laid_out(network.frozen(), 2)
    assert learning[0] == frozen[0] and learning[1] - frozen[1] >= weights
    assert 2 * frozen[0] - shared[0] >= weights
    assert bytes_of(engines.call(network, state, X, 10), geometry) >= learning[0]


def test_settling_shares_the_weights_on_the_card(card):
    network = ah.asynchronous(50, 36)
    state = network.init(np.random.default_rng(0))
    X = BARS.sample(np.random.default_rng(0), 130).astype(np.float32)
    ours, theirs = (engines.settle(network, state, X, 60, engine) for engine in ("gpu", "reference"))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


# Runs and sweeps


def a_run(**changes):
    phase, probe = ah.Phase(BARS, 12, 40, snapshots=3), ah.Probe(BARS, samples=10, hold=60)
    return ah.Run(ah.asynchronous(30, 36, schedule=ah.Asynchronous(0.2, 10)), [phase], [probe], **changes)


def test_a_run_is_resumed_to_the_same_bits(card):
    whole = [*ah.simulate(a_run(), "gpu")]
    rest = [*ah.simulate(a_run(), "gpu", after=whole[1])]
    assert np.array_equal(whole[-1].state.W, rest[-1].state.W) and np.array_equal(whole[-1].state.M, rest[-1].state.M)
    [*_, slow] = ah.simulate(a_run(), "reference")
    assert whole[-1].measures["error"] == pytest.approx(slow.measures["error"], abs=1e-3)


def test_a_live_page_runs_on_it(card):
    if not os.environ.get("CI"):
        pytest.importorskip("uvicorn", reason="the live page needs uvicorn (pip install 'asynchebb[live]')")
    network = ah.asynchronous(30, 36)
    page = ah.live(network, BARS, engine="gpu")
    while page._session.simulation.step < 3000:
        time.sleep(0.05)
    page.stop()
    simulation = page._session.simulation
    run = ah.Run(network, ah.Phase(BARS, simulation.samples, simulation.setting.hold, 1, simulation.setting.from_rest))
    *_, last = ah.simulate(run, "gpu")
    assert simulation.engine == "gpu" and np.array_equal(page.state.W, last.state.W)


def test_works_side_by_side_give_the_same_as_one_after_another(card, tmp_path):
    from asynchebb.runs.recording import save_run, saving

    runs = [a_run(seed=seed) for seed in range(3)] + [replace(a_run(), network=ah.discrete(20, 36))]
    works = [saving(run, tmp_path / f"{k}.nc", "gpu", lambda steps: None) for k, run in enumerate(runs)]
    engines.side_by_side(works, "gpu")
    for k, run in enumerate(runs):
        save_run(run, tmp_path / f"alone{k}.nc", "gpu", lambda steps: None)
        assert (tmp_path / f"{k}.nc").read_bytes() == (tmp_path / f"alone{k}.nc").read_bytes()


@pytest.mark.parametrize(("overhead", "step", "wanted"), [(0.05, 6e-6, 512), (0.05, 3e-5, 268), (9.0, 5e-6, 268)])
def test_calls_take_two_seconds_but_are_not_tiny_where_the_host_is_slow(overhead, step, wanted, monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(simulate, "time", clock)
    run, shown = ah.Run(ah.asynchronous(500, 36), [ah.Phase(BARS, 2000, 500)]), []
    for X, _ in simulate._stimuli(run, 0, 0, 2000, on_gpu=True):
        shown.append(X)
        clock.now += overhead + len(X) * 500 * step
    assert [len(X) for X in shown[1:3]] == [wanted] * 2
    monkeypatch.undo()
    assert np.array_equal(
        np.concatenate(shown), np.concatenate([X for X, _ in simulate._stimuli(run, 0, 0, 2000, False)])
    )


def test_short_presentations_make_no_short_calls():
    run = ah.Run(ah.asynchronous(500, 36), [ah.Phase(BARS, 50_000, 10)])
    *_, long = [len(X) * 10 for X, _ in itertools.islice(simulate._stimuli(run, 0, 0, 50_000, on_gpu=True), 2)]
    assert long > 2**18


def test_a_test_of_the_paper_is_one_call():
    network = ah.asynchronous(500, 36)
    X = BARS.sample(np.random.default_rng(0), 60)
    test = testing.responding(network, network.init(np.random.default_rng(0)), X, 150, False, on_gpu=True)
    assert len(next(test).X) == 60


class Engine:
    """Notes which calls are carried out together. Those with a hold of 1 wait for the event."""

    AT_ONCE = 2, 1

    def __init__(self):
        self.seen, self.begun, self.event = [], [], threading.Event()
        self.begin = self.begun.append

    def choose(self, card):
        pass

    def alike(self, call):
        return call.hold, call.hold == 9, 0.4

    def answers(self, calls):
        self.seen.append([call.hold for call in calls])
        if calls[0].hold == 1:
            assert self.event.wait(10)
        return [call.state for call in calls]


def asks(*holds, at_end=lambda: None):
    network = ah.asynchronous(10, 36)
    state = network.init(np.random.default_rng(0))
    for hold in holds:
        state = yield engines.call(network, state, np.ones((1, 36)), hold)
    at_end()


def test_a_work_does_not_wait_for_slower_ones():
    engine = Engine()
    Together([asks(1, 2), asks(2, 3, 4, 5, at_end=engine.event.set)], engine).carry_out()
    assert sorted(itertools.chain(*engine.seen)) == [1, 2, 2, 3, 4, 5]


def test_short_calls_do_not_wait_for_long_ones():
    engine = Engine()
    Together([asks(1), asks(1), asks(1), asks(9, 9, at_end=engine.event.set)], engine).carry_out()
    assert sorted(itertools.chain(*engine.seen)) == [1, 1, 1, 9, 9]


def test_calls_that_wait_are_carried_out_together_as_far_as_they_fit(monkeypatch):
    monkeypatch.setattr(Engine, "AT_ONCE", (1, 1))
    monkeypatch.setattr("asynchebb.engines.together.cores", lambda: 1)  # the first work is the first to ask
    engine = Engine()
    together = Together([asks(1), *(asks(2) for _ in range(5))], engine, card=3)

    def wait():
        while sum(map(len, together._waiting.values())) < 5:
            time.sleep(0.01)
        engine.event.set()

    threading.Thread(target=wait, daemon=True).start()
    together.carry_out()
    assert engine.seen == [[1], [2, 2], [2, 2], [2]] and engine.begun == [3]


def test_an_error_of_the_engine_stops_all_works_and_closes_them():
    engine, works = Engine(), [asks(1, 2) for _ in range(4)]
    engine.answers = lambda calls: 1 / 0
    with pytest.raises(ZeroDivisionError):
        Together(works, engine).carry_out()
    assert all(inspect.getgeneratorstate(work) == inspect.GEN_CLOSED for work in works)


def test_an_error_in_one_work_leaves_the_others():
    network = ah.asynchronous(10, 36)
    results = []

    def work(seed):
        state = network.init(np.random.default_rng(seed))
        X = BARS.sample(np.random.default_rng(0), 2)
        try:
            state = yield engines.call(network, state, X, 10)
            results.append(seed)
        except InputError as error:
            results.append(str(error))

    class Refusing(Engine):
        def answers(self, calls):
            return [InputError("too large") if call.state.W[0, 0] == marked else call.state for call in calls]

    marked = network.init(np.random.default_rng(1)).W[0, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "module", lambda *name: Refusing())
        engines.side_by_side([work(0), work(1), work(2)], "gpu")
    assert sorted(map(str, results)) == ["0", "2", "too large"]


class Here:
    """An executor that does everything at once, in this process."""

    def submit(self, function, argument):
        task = Future()
        try:
            task.set_result(function(argument))
        except BaseException as error:
            task.set_exception(error)
        return task


def test_a_sweep_runs_side_by_side_what_differs_in_anything(card, tmp_path):
    vary = {"seed": range(2), "model": ["asynchronous", "discrete"], "n": [20, 30]}
    ours = ah.sweep(a_run(), vary, tmp_path / "gpu", executor=Here(), engine="gpu", progress=False)
    theirs = ah.sweep(a_run(), vary, tmp_path / "reference", executor=Here(), engine="reference", progress=False)
    assert ours.error.values == pytest.approx(theirs.error.values, abs=1e-3)
    assert {one.attrs["engine"] for one in map(ah.open_run, (tmp_path / "gpu" / "runs").glob("*.nc"))} == {"gpu"}


@needs_compiler
def test_a_sweep_whose_card_is_lost_stops_and_resumes_to_the_same_bits(host, tmp_path, monkeypatch):
    vary, launch, left = {"seed": range(3)}, emulated.Host.launch, [4]

    def fails(self, *given):
        left[0] -= 1
        if left[0] < 0:
            raise device.Lost("the GPU failed (unspecified launch failure)")
        launch(self, *given)

    whole = ah.sweep(a_run(), vary, tmp_path / "whole", executor=Here(), engine="gpu", progress=False)
    monkeypatch.setattr(emulated.Host, "launch", fails)
    with pytest.raises(ah.sweeps.Stopped, match="the GPU failed"):
        ah.sweep(a_run(), vary, tmp_path / "lost", executor=Here(), engine="gpu", progress=False)
    monkeypatch.setattr(emulated.Host, "launch", launch)
    resumed = ah.sweep(a_run(), vary, tmp_path / "lost", executor=Here(), engine="gpu", progress=False)
    assert np.array_equal(resumed.error.values, whole.error.values)
    assert np.array_equal(resumed.W.values, whole.W.values)


# Without a GPU


@pytest.mark.skipif(device.missing() is None, reason="there is a GPU")
def test_without_a_gpu_it_says_what_is_missing_and_what_to_install(tmp_path):
    network = ah.asynchronous(10, 36)
    state, X = network.init(np.random.default_rng(0)), BARS.sample(np.random.default_rng(0), 2)
    for ask in (
        lambda: ah.advance(network, state, X, 5, "gpu"),
        lambda: ah.advance_many(network, [state], X, 5, "gpu"),
        lambda: ah.record(a_run(), tmp_path / "run.nc", "gpu"),
        lambda: ah.sweep(a_run(), {"seed": [0]}, tmp_path / "sweep", engine="gpu", progress=False),
        lambda: ah.AsyncHebbian(10, engine="gpu").fit(X),
    ):
        with pytest.raises(InputError, match=r"engine is 'gpu', but .*(CuPy|GPU).*; or use the engine cpu"):
            ask()
    auto, _ = ah.advance_many(network, [state] * 40, X, 5, "auto")
    assert np.array_equal(auto[0].W, ah.advance(network, state, X, 5)[0].W)


def test_cupy_is_not_imported_unless_it_is_asked_for():
    code = "import sys, asynchebb, asynchebb.sweeps, asynchebb.engines.gpu; sys.exit('cupy' in sys.modules)"
    assert subprocess.run([os.sys.executable, "-c", code]).returncode == 0


@needs_compiler
@pytest.mark.parametrize(
    ("dynamics", "schedule"), [(ah.Potential(), ah.Asynchronous(0.3, 10)), (ah.Projected(), ah.Discrete())], ids=repr
)
def test_it_makes_no_difference_which_threads_of_a_block_are_ahead(dynamics, schedule, host, monkeypatch):
    network = ah.Network(150, 36, dynamics, ah.Oja(0.01), schedule)
    state, X = network.init(np.random.default_rng(0)), BARS.sample(np.random.default_rng(1), 2)
    in_turn, _ = ah.advance(network, state, X, 120, "gpu", from_rest=True)
    monkeypatch.setattr(host, "words", f"#define IN_ANY_ORDER 1\n{host.words}")
    in_any_order, _ = ah.advance(network, state, X, 120, "gpu", from_rest=True)
    assert all(map(np.array_equal, in_turn, in_any_order))


# On a GPU


@on_a_gpu
def test_float32_agrees_in_measures_over_a_long_run():
    run = ah.Run(ah.asynchronous(200, 196), [ah.Phase(ah.Crossbars(14), 400, 200, snapshots=1, from_rest=True)])
    ours, theirs = ([*ah.simulate(run, engine)][-1].measures["error"][0] for engine in ("gpu", "reference"))
    assert ours == pytest.approx(theirs, abs=0.02)


@on_a_gpu
def test_two_hundred_networks_twice_have_the_same_bits():
    network = ah.asynchronous(reading="notebook")
    states = [network.init(np.random.default_rng(seed)) for seed in range(300)]
    X = ah.Crossbars(14).sample(np.random.default_rng(1), 4)
    first, second = (ah.advance_many(network, states, X, 500, "gpu")[0] for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)) and one.is_finite()


@on_a_gpu
@pytest.mark.parametrize("n", [600, 1500])
def test_networks_too_large_for_one_layout_agree_with_the_reference(n):
    compared(ah.Network(n, 36, ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.3, 20)), False, 2, 60)
    compared(
        ah.Network(n, 36, ah.Projected(), ah.Oja(), ah.Discrete(), ah.Gaussian(scale=100 / n)), True, 2, 40, ("y",)
    )
