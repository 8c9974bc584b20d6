"""The gpu engine: its kernels, which run here on a CPU, too; batches; and what is said without a GPU."""

import gc
import os
import subprocess

import emulated
import numpy as np
import pytest
from against_reference import BARS, compared
from test_gpu_equations import EveryOther, Powers, Saturating, Trembling, Wrapping
from test_gpu_sweeps import a_run

import asynchebb as ah
from asynchebb import engines
from asynchebb.checks import InputError
from asynchebb.engines.gpu import channels, device, program
from asynchebb.engines.gpu.batch import Batch, bytes_of
from asynchebb.network import VANISHING, State

needs_compiler = emulated.needs_compiler
on_a_gpu = pytest.mark.gpu


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
        (ah.Potential(), ah.Hebbian(), Powers(0.03, 400)),
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
    for engine in ("gpu", "reference"):
        call = engines.call(network, state.copy(), X, 60, means=True)
        engines.carry_out([call], engine)
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


def test_networks_whose_awake_neurons_outgrow_their_room_agree_with_the_reference(card):
    """Between few slots with many rows for those that are near, and many slots, it is tried again and again."""
    for seed in range(4):
        compared(ah.Network(160, 36, ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.9, 60)), False, 4, 30, (), seed)


# On a GPU


@needs_compiler
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("network", [ah.asynchronous(60, 36, reading="notebook"), ah.asynchronous(90, 36)], ids=repr)
def test_networks_that_take_turns_get_the_same_bits(network, blocks, host):
    states = [network.init(np.random.default_rng(seed)) for seed in range(5)]
    Xs = [BARS.sample(np.random.default_rng(seed), 18 + 7 * (seed % 3)) for seed in range(5)]  # turns are of nine
    alone = [ah.advance(network, state, X, 300, "gpu")[0] for state, X in zip(states, Xs, strict=True)]
    host.multiprocessors = blocks
    together, _ = ah.advance_many(network, states, Xs, 300, "gpu")
    for one, other in zip(alone, together, strict=True):
        assert all(np.array_equal(getattr(one, name), array) for name, array in other._asdict().items())


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
def test_more_networks_than_the_card_has_room_for_get_the_same_bits():
    network = ah.asynchronous(reading="notebook")
    states = [network.init(np.random.default_rng(seed)) for seed in range(300)]
    X = ah.Crossbars(14).sample(np.random.default_rng(1), 16)
    together, _ = ah.advance_many(network, states, X, 500, "gpu")
    halves = [ah.advance_many(network, half, X, 500, "gpu")[0] for half in (states[:150], states[150:])]
    for one, other in zip(together, halves[0] + halves[1], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@on_a_gpu
@pytest.mark.parametrize("n", [600, 1500])
def test_networks_too_large_for_one_layout_agree_with_the_reference(n):
    compared(ah.Network(n, 36, ah.Potential(), ah.Hebbian(), ah.Asynchronous(0.3, 20)), False, 2, 60)
    compared(
        ah.Network(n, 36, ah.Projected(), ah.Oja(), ah.Discrete(), ah.Gaussian(scale=100 / n)), True, 2, 40, ("y",)
    )
