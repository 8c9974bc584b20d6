"""Spiking networks: what their neurons do, when they learn, and how they become the rate network."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import nnls

import asynchebb as ah
from asynchebb import engines, metrics, noise
from asynchebb.engines import traces
from asynchebb.runs.testing import read_out

FIRE = ah.IntegrateAndFire()
SPIKING = [FIRE, ah.LeakyIntegrateAndFire(), ah.EscapeNoise(), ah.HomeostaticIntegrateAndFire()]


def one_neuron(dynamics, drive, steps, engine, trace=("spikes", "y")):
    """A single neuron without inhibition, driven by a constant."""
    network = ah.Network(1, 1, dynamics, schedule=ah.Frozen())
    state = network.init(np.random.default_rng(0), np.float64)
    state = state._replace(W=np.full((1, 1), drive), M=np.zeros((1, 1)))
    return ah.advance(network, state, np.ones((1, 1)), steps, engine, trace)


def learning(n=60, m=36, dtype=np.float64, seed=0, **parts):
    parts = {"dynamics": FIRE, "rule": ah.Hebbian(0.02), "schedule": ah.Asynchronous(0.3, 20), **parts}
    network = ah.Network(n, m, weights=ah.Exponential(), **parts)
    X = ah.Crossbars(6).sample(np.random.default_rng(seed + 1), 40)
    return network, network.init(np.random.default_rng(seed), dtype), X


def test_a_neuron_spikes_at_the_times_that_arithmetic_gives(engine):
    """The drive 1 fills θ = 0.05 in five steps; the first spike takes one more, since u must exceed θ."""
    _, seen = one_neuron(FIRE, 1.001, 100, engine)
    assert np.flatnonzero(seen["spikes"])[:4].tolist() == [4, 9, 14, 19]
    y, expected = 0.0, []
    for spike in seen["spikes"][:, 0]:
        y = y * (1 - 0.01 / 0.2) + 0.05 / 0.2 * spike
        expected.append(y)
    np.testing.assert_allclose(seen["y"][:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("drive", [0.3, 1.0, 2.7])
def test_the_mean_rate_of_a_neuron_is_its_drive(drive, engine):
    """A spike is worth θ, so that y follows the drive whatever θ and τ are. Nor does noise change the mean, where the
    drive is too large for an early spike to take u down to −θ, where it stops."""
    noisy = [ah.EscapeNoise()] if drive >= 1 else []
    for dynamics in (FIRE, ah.IntegrateAndFire(theta=0.2, tau=0.5), *noisy):
        _, seen = one_neuron(dynamics, drive, 20_000, engine)
        assert seen["y"][2_000:].mean() == pytest.approx(drive, rel=0.01)


def test_a_leaky_neuron_is_silent_below_its_rheobase(engine):
    leaky = ah.LeakyIntegrateAndFire(theta=0.05, tau_m=0.5)
    assert not one_neuron(leaky, 0.099, 5_000, engine)[1]["spikes"].any()
    assert one_neuron(leaky, 0.102, 5_000, engine)[1]["spikes"].any()


def test_a_homeostatic_neuron_reaches_its_target(engine):
    dynamics = ah.HomeostaticIntegrateAndFire(target=0.4, tau_h=5)
    for drive in (0.2, 2.0):
        state, seen = one_neuron(dynamics, drive, 20_000, engine)
        assert seen["y"][-10_000:].mean() == pytest.approx(0.4, rel=0.02)
        assert state.h[0] == pytest.approx(drive - 0.4, abs=0.1)


def test_escape_noise_spikes_as_often_as_its_hazard_says(engine):
    """Without drive and at the threshold, spikes come with probability 1 − exp(−dt ρ); each starts from there again."""
    network = ah.Network(400, 1, ah.EscapeNoise(theta=0.05, rho=20.0, delta=0.02), schedule=ah.Frozen())
    state = network.init(np.random.default_rng(0), np.float64)
    state = state._replace(W=np.zeros((400, 1)), M=np.zeros((400, 400)), u=np.full(400, 0.05))
    total = 0
    for _ in range(25):
        after, seen = ah.advance(network, state, np.ones((1, 1)), 1, engine, ("spikes",))
        total += seen["spikes"].sum()
        state = state._replace(t=after.t)
    p = 1 - np.exp(-0.01 * 20.0)
    assert abs(total - 10_000 * p) < 4 * np.sqrt(10_000 * p * (1 - p))


def test_random_numbers_are_those_of_splitmix64():
    """The first numbers of seed 1234567, as published with the algorithm's reference code."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    increments = (np.arange(1, 5, dtype=np.uint64) * np.uint64(noise.INCREMENT)) + np.uint64(1234567)
    inverse = np.uint64(pow(noise.INCREMENT, -1, 2**64))  # of which counter it is the scrambled one
    assert noise.splitmix64(increments * inverse).tolist() == expected
    drawn = np.concatenate([noise.uniform(t, 500, np.dtype(np.float32)) for t in range(200)])
    assert drawn.min() >= 0 and drawn.max() < 1 and abs(drawn.mean() - 0.5) < 4 / np.sqrt(12 * drawn.size)


@pytest.mark.parametrize("dynamics", SPIKING, ids=repr)
@pytest.mark.parametrize("schedule", [ah.Asynchronous(0.3, 20), ah.Bursts(2, 30, 20)], ids=repr)
def test_a_run_may_be_cut_anywhere(dynamics, schedule, engine):
    network, state, X = learning(dynamics=dynamics, schedule=schedule, dtype=np.float32)
    whole, _ = ah.advance(network, state, X, 37, engine)
    part, _ = ah.advance(network, state, X[:11], 37, engine)
    rest, _ = ah.advance(network, part, X[11:], 37, engine)
    assert all(np.array_equal(a, b) for a, b in zip(whole, rest, strict=True))
    assert whole.t - state.t == 40 * 37


def test_noise_follows_the_seed_and_no_other_network_draws(engine):
    network, state, X = learning(dynamics=ah.EscapeNoise())
    again, _, _ = ah.advance(network, state, X[:5], 50, engine, ("spikes",))[1], None, None
    other = network.init(np.random.default_rng(7), np.float64)
    assert state.t != other.t and learning()[1].t == 0
    moved, _, _ = ah.advance(network, state._replace(t=other.t), X[:5], 50, engine, ("spikes",))[1], None, None
    assert not np.array_equal(again["spikes"], moved["spikes"])


def test_a_burst_is_so_many_spikes_within_the_window(engine):
    network, state, X = learning(schedule=ah.Bursts(spikes=3, window=25, r_r=40))
    after, seen = ah.advance(network, state, X, 60, engine, ("spikes", "burst"))
    spikes, bursts = seen["spikes"].astype(int), seen["burst"]
    total = np.concatenate([np.zeros((1, 60), int), spikes.cumsum(axis=0)])
    steps = np.arange(len(spikes))
    within = total[1:] - total[np.maximum(0, steps - 24)]
    since = np.full(60, 10**6)
    for step in steps:
        expected = (within[step] >= 3) & (since > 40)
        assert np.array_equal(bursts[step], expected)
        since = np.where(expected, 0, since + 1)
    assert 20 < bursts.sum() < spikes.sum() / 3
    assert np.array_equal(after.recent.sum(axis=0), spikes[-25:].sum(axis=0))


def test_pair_based_learning_changes_the_weights_at_spikes_alone_whatever_the_rate_is(engine):
    network, state, X = learning(schedule=ah.AtSpikes(), rule=ah.SpikePairs(0.1))
    _, seen = ah.advance(network, state, X, 20, engine, ("spikes", "burst"))
    assert np.array_equal(seen["spikes"], seen["burst"]) and seen["spikes"].any()
    W, M = state.W.copy(), state.M.copy()
    after, seen = ah.advance(network, state, X[:1], 8, engine, ("spikes", "y"))
    for spiked, y in zip(seen["spikes"], seen["y"], strict=True):
        W[spiked] += 0.1 * (X[0] - W[spiked])
        M[spiked] += 0.1 * (y - M[spiked])
    assert seen["spikes"].any()
    np.testing.assert_allclose(after.W, W, rtol=1e-12)
    np.testing.assert_allclose(after.M, M, rtol=1e-12)


def settled_rates(theta, dt, engine="cpu"):
    """Six neurons that inhibit each other, shown one stimulus: their mean rates; and what arithmetic says they are."""
    rng = np.random.default_rng(3)
    A = rng.random((6, 6))
    M, b = A @ A.T, rng.random(6)
    network = ah.Network(6, 1, ah.IntegrateAndFire(dt, theta, 0.2), schedule=ah.Frozen())
    state = network.init(np.random.default_rng(0), np.float64)._replace(W=b[:, None], M=M)
    L = np.linalg.cholesky(M + np.eye(6))
    expected, _ = nnls(L.T, np.linalg.solve(L, b))
    _, seen = ah.advance(network, state, np.ones((1, 1)), round(400 / dt), engine, ("y",))
    return seen["y"][round(100 / dt) :].mean(axis=0), expected


def test_mean_rates_settle_where_the_rate_network_does():
    """y = [b − My]₊: the non-negative least squares solution with M + 1, since filtered spikes leak."""
    rates, expected = settled_rates(0.05, 0.01)
    assert 0 < np.count_nonzero(expected) < 6  # some neuron is silenced
    np.testing.assert_allclose(rates, expected, atol=0.02)
    assert (rates[expected == 0] < 0.01).all()


def test_reading_out_is_the_mean_over_the_second_half_and_so_is_settling(engine):
    network, state, X = learning()
    _, seen = ah.advance(network.frozen(), state, X[:3], 80, engine, ("y",), from_rest=True)
    Y = seen["y"].reshape(3, 80, -1)
    expected = Y[:, 40:].mean(axis=1)
    response = ah.respond(network, state, X[:3], 80, engine, from_rest=True)
    np.testing.assert_allclose(response.rates, expected, rtol=1e-12)
    np.testing.assert_allclose(engines.settle(network, state, X[:3], 80, engine), expected, rtol=1e-12)
    np.testing.assert_allclose(read_out(Y[0])[6], Y[0, 3:7].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(read_out(Y[0])[0], Y[0, 0], rtol=1e-12)


def test_noise_in_settling_does_not_depend_on_the_number_of_threads():
    network, state, X = learning(dynamics=ah.EscapeNoise())
    alone, several = (engines.settle(network, state, X, 40, at_most=threads) for threads in (1, 3))
    assert np.array_equal(alone, several)


def test_neurons_that_would_fire_more_than_once_per_step_are_reported(engine):
    with pytest.warns(
        ah.LateSpikes, match=r"use a smaller dt or a larger theta: no rate can exceed theta/dt, which is 5"
    ):
        network = ah.Network(2, 1, FIRE, schedule=ah.Frozen())
        state = network.init(np.random.default_rng(0), np.float64)
        state = state._replace(W=np.array([[6.0], [1.0]]), M=np.zeros((2, 2)))
        ah.advance(network, state, np.ones((1, 1)), 12, engine)
    with pytest.raises(ah.InputError, match=r"% of the spikes come late.* dt must be smaller, or theta larger"):
        one_neuron(FIRE, 50.0, 200, engine)


def test_a_state_without_what_the_network_needs_is_completed(engine):
    network, state, X = learning(dynamics=ah.HomeostaticIntegrateAndFire(), schedule=ah.Bursts(2, 30, 20))
    bare = ah.State(*state[:6])
    first, _ = ah.advance(network, state, X, 20, engine)
    second, _ = ah.advance(network, bare, X, 20, engine)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert first.h.any() and first.recent.shape == (30, 60)


@dataclass(frozen=True)
class Adapting:
    """Dynamics of one's own: a rate with memory and a slow current, without spikes."""

    dt: float = 0.02
    slow: float = 0.01

    def step(self, u_i, y_i, h_i, drive_i):
        u_i = u_i + self.dt * (drive_i - u_i - h_i)
        y_i = np.maximum(y_i + self.dt * (u_i - y_i), 0.0)
        h_i = h_i + self.slow * (y_i - h_i)
        return u_i, y_i, h_i


@dataclass(frozen=True)
class CoinToss:
    """And spikes that are nothing but chance, with no common decay."""

    p: float = 0.02

    def step(self, u_i, y_i, drive_i, noise_i):
        spike = noise_i < self.p
        return u_i + drive_i * 0.0, y_i * y_i / (y_i + 0.1) + 0.3 * spike, spike


@pytest.mark.parametrize("dynamics", [Adapting(), CoinToss()], ids=repr)
def test_dynamics_with_memory_of_ones_own_run_on_every_engine(dynamics):
    network, state, X = learning(dynamics=dynamics, schedule=ah.Asynchronous(0.2, 10))
    fast, seen = ah.advance(network, state, X, 50, "cpu", ("y", "burst", "spikes"))
    slow, seen_slow = ah.advance(network, state, X, 50, "reference", ("y", "burst", "spikes"))
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert np.array_equal(seen["burst"], seen_slow["burst"]) and seen["burst"].any()
    assert np.array_equal(seen["spikes"], seen_slow["spikes"])
    assert seen["spikes"].any() == isinstance(dynamics, CoinToss)


def test_what_a_step_returns_must_fit_what_it_takes():
    @dataclass(frozen=True)
    class Forgets:
        def step(self, u_i, y_i, h_i, drive_i):
            return u_i, y_i

    with pytest.raises(
        ah.InputError, match="its method step must end by returning u_i, y_i, h_i or u_i, y_i, h_i, s_i"
    ):
        ah.Network(dynamics=Forgets())

    @dataclass(frozen=True)
    class Swapped:
        def step(self, y_i, u_i, drive_i):
            return u_i, y_i

    with pytest.raises(ah.InputError, match=r"step must be step\(self, u_i, \[y_i\], \[h_i\], drive_i, \[noise_i\]\)"):
        ah.Network(dynamics=Swapped())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: ah.IntegrateAndFire(theta=0), "IntegrateAndFire.theta is 0; it must be a number above 0"),
        (lambda: ah.IntegrateAndFire(tau=-1), "IntegrateAndFire.tau is -1; it must be a number above 0"),
        (lambda: ah.IntegrateAndFire(dt=0.3), "IntegrateAndFire.tau is 0.2; it must be at least dt, which is 0.3"),
        (lambda: ah.EscapeNoise(delta=0), "EscapeNoise.delta is 0; it must be a number above 0"),
        (lambda: ah.LeakyIntegrateAndFire(tau_m=0), "tau_m is 0; it must be a number above 0"),
        (lambda: ah.HomeostaticIntegrateAndFire(target=-1), "target is -1; it must be a number of at least 0"),
        (lambda: ah.Bursts(window=0), "Bursts.window is 0; it must be a whole number of at least 1"),
        (lambda: ah.Bursts(spikes=0), "Bursts.spikes is 0; it must be a whole number of at least 1"),
        (lambda: ah.Bursts(spikes=5, window=4), "Bursts.spikes is 5; it must be at most window, which is 4"),
        (lambda: ah.Network(schedule=ah.Bursts()), "counts spikes, but dynamics is Projected"),
    ],
)
def test_it_is_refused_in_a_sentence(wrong, says):
    with pytest.raises(ah.InputError, match=says):
        wrong()


@pytest.mark.parametrize("dynamics", [ah.EscapeNoise(), ah.HomeostaticIntegrateAndFire()], ids=repr)
def test_a_spiking_run_is_saved_and_resumes_in_the_same_bits(dynamics, tmp_path):
    network, _, _ = learning(dynamics=dynamics, schedule=ah.Bursts(2, 30, 20))
    run = ah.Run(network, ah.Phase(ah.Crossbars(6), 12, 50, snapshots=3), trace=("active", "spikes"))
    snapshots = [*ah.simulate(run)]
    assert np.isfinite(snapshots[-1].measures["error_last"]).all() and snapshots[-1].traces["spikes"].any()
    for snapshot in ah.simulate(run, after=snapshots[1]):
        last = snapshot
    assert all(np.array_equal(a, b) for a, b in zip(last.state, snapshots[-1].state, strict=True))
    with ah.record(run, tmp_path / "run.nc") as saved:
        kept = ah.state_at(saved)
        assert {"recent", "t"} <= {*saved} and ("h" in saved) == isinstance(dynamics, ah.HomeostaticIntegrateAndFire)
        assert ah.network_of(saved) == network
        X = ah.Crossbars(6).sample(np.random.default_rng(5), 4)
        on, _ = ah.advance(network, kept, X, 50)
        expected, _ = ah.advance(network, last.state, X, 50)
    assert all(np.array_equal(a, b) for a, b in zip(on, expected, strict=True))


def test_a_rate_networks_file_has_nothing_that_only_spiking_ones_need(tmp_path):
    run = ah.Run(ah.asynchronous(10, 9), ah.Phase(ah.Crossbars(3), 2, 20))
    with ah.record(run, tmp_path / "run.nc") as saved:
        assert not {"h", "recent"} & {*saved}


def test_an_estimator_may_spike(tmp_path):
    X = ah.Crossbars(6).sample(np.random.default_rng(0), 60)
    model = ah.AsyncHebbian(30, dynamics=FIRE, rule=ah.Hebbian(0.02), r_b=0.3, max_iter=2, hold=60, random_state=0)
    codes = model.fit(X).transform(X)
    assert codes.shape == (60, 30) and (codes > 0).any() and model.score(X) > 0.5
    ah.save_model(model, tmp_path / "model.nc")
    assert np.array_equal(ah.load_model(tmp_path / "model.nc").transform(X), codes)
    model.set_params(dynamics=ah.HomeostaticIntegrateAndFire(target=0.1)).partial_fit(X)
    assert model.state_.h.any()
    ah.save_model(model, tmp_path / "model.nc")
    assert np.array_equal(ah.load_model(tmp_path / "model.nc").state_.h, model.state_.h)
    assert model.prune(X).state_.h.shape == model.prune(X).state_.u.shape


def test_spikes_become_the_rate_network_as_they_become_small():
    """W after learning, as a function of θ: 1 − cos to the rate network's falls as θ does."""
    dt, hold = 0.002, 250
    X = ah.Crossbars(6).sample(np.random.default_rng(1), 60)
    schedule, weights = ah.Asynchronous(0.3, 100), ah.Exponential()

    def learned(dynamics):
        network = ah.Network(60, 36, dynamics, ah.Hebbian(0.02), schedule, weights)
        state = network.init(np.random.default_rng(0), np.float64)
        u, y = network.rest(np.float64)
        return ah.advance(network, state._replace(u=u, y=y), X, 10 * hold)[0].W

    rate = learned(ah.Relaxing(dt, 0.2))
    apart = [
        1 - np.mean(metrics.weight_similarity(learned(ah.IntegrateAndFire(dt, theta, 0.2)), rate))
        for theta in (0.08, 0.04, 0.02)
    ]
    assert apart[0] > apart[1] > apart[2]


def test_a_frozen_spiking_network_can_be_traced_and_leaves_its_weights(engine):
    network, state, X = learning()
    after, seen = ah.advance(network.frozen(), state, X, 20, engine, traces.NAMES)
    assert np.array_equal(after.W, state.W) and np.array_equal(after.M, state.M)
    assert seen["spikes"].any() and not seen["burst"].any() and not seen["updates"].any()


def test_replacing_the_dynamics_replaces_nothing_else(engine):
    """Of a rate network: its gates and rule see filtered spikes in the place of rates."""
    network, state, X = learning(schedule=ah.Asynchronous(0.2, 10))
    _, seen = ah.advance(network, state, X, 50, engine, ("y", "burst"))
    assert (seen["y"][seen["burst"]] > 0.2).all()
    frozen = replace(network, schedule=ah.Frozen())
    assert not ah.advance(frozen, state, X, 50, engine, ("burst",))[1]["burst"].any()
