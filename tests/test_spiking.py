"""Spiking networks: what their neurons do, when they learn, and how they become the rate network."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import nnls

import asynchebb as ah
from asynchebb import engines, metrics, noise
from asynchebb.engines import cpu, traces

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
        _, seen = one_neuron(dynamics, drive, 8_000, engine)
        assert seen["y"][1_000:].mean() == pytest.approx(drive, rel=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dynamics", SPIKING, ids=repr)
def test_a_rate_decays_down_to_the_smallest_normal_numbers_and_is_then_zero(dynamics, dtype, engine):
    network = ah.Network(3, 1, dynamics, schedule=ah.Frozen())
    smallest = 2.0**-100  # far below any rate that matters, far above what makes arithmetic slow
    state = network.init(np.random.default_rng(0), dtype)
    state = state._replace(W=np.zeros((3, 1), dtype), M=np.zeros((3, 3), dtype), u=np.full(3, -0.05, dtype))
    before = np.array([1e-20, 1.06 * smallest, 1.05 * smallest], dtype)  # a step takes 5 % of it
    after, _ = ah.advance(network, state._replace(y=before), np.zeros((1, 1), dtype), 1, engine)
    np.testing.assert_allclose(after.y, [0.95e-20, 1.06 * 0.95 * smallest, 0], rtol=1e-6)


def test_a_leaky_neuron_is_silent_below_its_rheobase(engine):
    leaky = ah.LeakyIntegrateAndFire(theta=0.05, tau_m=0.5)
    assert not one_neuron(leaky, 0.099, 5_000, engine)[1]["spikes"].any()
    assert one_neuron(leaky, 0.102, 5_000, engine)[1]["spikes"].any()


def test_a_homeostatic_neuron_reaches_its_target(engine):
    dynamics = ah.HomeostaticIntegrateAndFire(target=0.4, tau_h=5)
    for drive in (0.2, 2.0):
        state, seen = one_neuron(dynamics, drive, 8_000, engine)
        assert seen["y"][-4_000:].mean() == pytest.approx(0.4, rel=0.02)
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

    def spikes(state):
        return ah.advance(network, state, X[:5], 50, engine, ("spikes",))[1]["spikes"]

    other = network.init(np.random.default_rng(7), np.float64)
    assert np.array_equal(spikes(state), spikes(network.init(np.random.default_rng(0), np.float64)))
    assert not np.array_equal(spikes(state), spikes(state._replace(t=other.t)))
    assert learning()[1].t == 0


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
    cpu.response().read_out(np.ascontiguousarray(Y[0]), read := np.empty_like(Y[0]))
    np.testing.assert_allclose(read[6], Y[0, 3:7].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(read[0], Y[0, 0], rtol=1e-12)


@pytest.mark.parametrize("dynamics", [*SPIKING, ah.HomeostaticRelaxing()], ids=repr)
def test_rows_settle_independently_of_each_other_and_of_the_number_of_threads(dynamics):
    network, state, X = learning(dynamics=dynamics)
    alone, several = (engines.settle(network, state, X, 40, at_most=threads) for threads in (1, 3))
    assert np.array_equal(alone, several) and (alone > 0).any()
    assert np.array_equal(engines.settle(network, state, X[::-1].copy(), 40), alone[::-1])
    shown = ah.respond(network, state, X, 40, from_rest=True).rates
    if not isinstance(dynamics, ah.EscapeNoise):  # there it goes on from stimulus to stimulus
        np.testing.assert_allclose(shown, alone, rtol=1e-9, atol=1e-12)


def test_neurons_that_would_fire_more_than_once_per_step_are_reported(engine, recwarn):
    """One in four neurons is driven at more than θ/dt = 5; then all are; few spikes say nothing."""
    network = ah.Network(4, 1, FIRE, schedule=ah.Frozen())
    state = network.init(np.random.default_rng(0), np.float64)._replace(M=np.zeros((4, 4)))
    some, all_ = (state._replace(W=np.array(drives)[:, None]) for drives in ([6.0, 3, 3, 3], [6.0] * 4))
    x = np.ones((1, 1))
    ah.advance(network, all_, x, 50, engine)
    assert not recwarn
    with pytest.warns(
        ah.LateSpikes, match=r"use a smaller dt or a larger theta: no rate can exceed theta/dt, which is 5"
    ):
        ah.advance(network, some, x, 1000, engine)
    for run in (ah.advance, ah.respond):
        with pytest.raises(ah.InputError, match=r"% of the spikes come late.* dt must be smaller, or theta larger"):
            run(network, all_, x, 1000, engine)
    with pytest.raises(ah.InputError, match="come late"):
        engines.settle(network, engines.prepare(network, all_), x, 1000, engine)


def test_bursts_do_not_count_spikes_from_before_the_network_was_put_to_rest(engine):
    network = ah.Network(1, 1, FIRE, schedule=ah.Bursts(3, 20, 0))
    state = network.init(np.random.default_rng(0), np.float64)._replace(W=np.full((1, 1), 1.001), M=np.zeros((1, 1)))
    bursts = [
        ah.advance(network, state, np.ones((3, 1)), 12, engine, ("burst",), rest)[1]["burst"] for rest in (False, True)
    ]
    assert bursts[0].any() and not bursts[1].any()  # two spikes in each presentation


@dataclass(frozen=True)
class MoreThan:
    """A gate of one's own that subtracts."""

    most: float = 2
    window: int = 30

    def gate(self, y_i, n_i, c_i, k, hold):
        beta_i = (n_i - self.most) * y_i > 0.05
        return beta_i, (c_i + 1) * (beta_i == 0)


def test_a_gate_of_ones_own_may_count_spikes_too():
    network, state, X = learning(schedule=MoreThan())
    fast, seen = ah.advance(network, state, X, 50, "cpu", ("burst",))
    slow, seen_slow = ah.advance(network, state, X, 50, "reference", ("burst",))
    assert seen["burst"].any() and np.array_equal(seen["burst"], seen_slow["burst"])
    np.testing.assert_allclose(fast.W, slow.W, rtol=1e-9, atol=1e-9)
    for window, says in ((0, "MoreThan.window is 0; it must be a whole number of at least 1"), (2.5, "window is 2.5")):
        with pytest.raises(ah.InputError, match=says):
            learning(schedule=MoreThan(window=window))


def test_states_of_six_arrays_go_on_as_before():
    run = ah.Run(ah.asynchronous(20, 9), ah.Phase(ah.Crossbars(3), 4, 20, snapshots=2))
    first, second, third = ah.simulate(run)
    bare = second._replace(state=ah.State(*second.state[:6]))
    (again,) = ah.simulate(run, after=bare)
    assert np.array_equal(again.state.W, third.state.W)
    network, state, X = learning(dynamics=ah.HomeostaticIntegrateAndFire())
    ah.advance(network, state._replace(t=0), X[:1], 5)
    for wrong in (dict(h=np.zeros(7)), dict(recent=np.zeros((3, 7), np.uint8))):
        with pytest.raises(ah.InputError, match=r"has shape .* it must be empty or"):
            ah.advance(network, state._replace(**wrong), X[:1], 5)
    assert (first.state.t, third.state.t) == (0, 80)


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
    class LeftOut:  # s_i would be kept as h_i
        def step(self, u_i, y_i, h_i, drive_i):
            s_i = u_i > 1.0
            return u_i, y_i, s_i

    with pytest.raises(ah.InputError, match="its method step returns u_i, y_i, s_i; it must be u_i, y_i, h_i or"):
        ah.Network(dynamics=LeftOut())

    @dataclass(frozen=True)
    class Misjudged(ah.IntegrateAndFire):
        @property
        def decay(self):
            return 1 - self.dt

    with pytest.raises(ah.InputError, match=r"whose decay is 0.99, but .* its step makes 0.2375 of y_i = 0.25"):
        ah.Network(dynamics=Misjudged())

    @dataclass(frozen=True)
    class Swapped:
        def step(self, y_i, u_i, drive_i):
            return u_i, y_i

    with pytest.raises(ah.InputError, match=r"step must be step\(self, u_i, \[y_i\], \[h_i\], drive_i, \[noise_i\]\)"):
        ah.Network(dynamics=Swapped())

    @dataclass(frozen=True)
    class Misread:  # n_i would be given the rate
        def gate(self, n_i, c_i, k, hold):
            return n_i > 0, c_i

    with pytest.raises(ah.InputError, match=r"gate must be gate\(self, y_i, \[n_i\], c_i, k, hold\)"):
        ah.Network(dynamics=FIRE, schedule=Misread())


@dataclass(frozen=True)
class Jitter:
    """Rates with noise: neither memory nor spikes."""

    dt: float = 0.05

    def step(self, u_i, drive_i, noise_i):
        u_i = u_i + self.dt * (drive_i + noise_i - 0.5)
        return u_i, u_i * (u_i > 0)


def test_noise_alone_may_be_taken():
    network, state, X = learning(dynamics=Jitter())
    fast, _ = ah.advance(network, state, X, 50, "cpu")
    slow, _ = ah.advance(network, state, X, 50, "reference")
    np.testing.assert_allclose(fast.W, slow.W, rtol=1e-9, atol=1e-9)
    still = ah.advance(network, state, np.zeros((1, 36)), 50)[0]
    assert (still.u != 0).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: ah.IntegrateAndFire(theta=0), "IntegrateAndFire.theta is 0; it must be a number above 0"),
        (lambda: ah.IntegrateAndFire(tau=-1), "IntegrateAndFire.tau is -1; it must be a number above 0"),
        (lambda: ah.IntegrateAndFire(dt=0.3), "IntegrateAndFire.tau is 0.2; it must be at least dt, which is 0.3"),
        (lambda: ah.EscapeNoise(delta=0), "EscapeNoise.delta is 0; it must be a number above 0"),
        (lambda: ah.LeakyIntegrateAndFire(tau_m=0), "tau_m is 0; it must be a number above 0"),
        (lambda: ah.LeakyIntegrateAndFire(tau_m=0.001), "tau_m is 0.001; it must be at least dt, which is 0.01"),
        (lambda: ah.Relaxing(dt=0.3), "Relaxing.tau is 0.2; it must be at least dt, which is 0.3"),
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
    with pytest.raises(ah.InputError, match=r"bursts is 3; it must be a schedule, like ah.Bursts\(\), or None"):
        ah.AsyncHebbian(30, bursts=3).fit(X)
    model.set_params(bursts=ah.Bursts(spikes=2, window=30), bursts__r_r=20).partial_fit(X)
    assert model.state_.recent.shape == (30, 30) and model.get_params()["bursts__r_r"] == 20
    ah.save_model(model, tmp_path / "model.nc")
    again = ah.load_model(tmp_path / "model.nc")
    assert again.bursts == ah.Bursts(2, 30, 20) and np.array_equal(again.transform(X), model.transform(X))
    assert model.prune(X).partial_fit(X).state_.recent.shape[0] == 30


def test_spikes_become_the_rate_network_in_proportion_to_their_size():
    """What θ makes of the fields that the rate network changes, relative to that change: a tenth at the smallest θ, and
    about proportional to θ, on average over six networks."""
    dt, sizes, apart = 0.001, np.array([0.08, 0.04, 0.02, 0.01]), []
    for seed in range(6):
        X = ah.Crossbars(6).sample(np.random.default_rng(seed + 100), 10)

        def learned(dynamics, seed=seed, X=X):
            network = ah.Network(60, 36, dynamics, ah.Hebbian(0.02), ah.Asynchronous(0.5, 200), ah.Exponential())
            state = network.init(np.random.default_rng(seed), np.float64)
            return state.W, ah.advance(network, state, X, 2500, from_rest=True)[0].W

        before, rate = learned(ah.Relaxing(dt, 0.2))
        change = 1 - metrics.weight_similarity(rate, before)
        fields = [learned(ah.IntegrateAndFire(dt, theta, 0.2))[1] for theta in sizes]
        changed = change > 0.02
        assert changed.sum() > 20
        apart.append(
            [(1 - metrics.weight_similarity(W, rate))[changed].mean() / change[changed].mean() for W in fields]
        )
    apart = np.mean(apart, axis=0)
    assert (np.diff(apart) < 0).all() and apart[-1] < 0.1
    assert 0.75 < np.polyfit(np.log(sizes), np.log(apart), 1)[0] < 1.5


def test_a_frozen_spiking_network_can_be_traced_and_leaves_its_weights(engine):
    network, state, X = learning()
    after, seen = ah.advance(network.frozen(), state, X, 20, engine, traces.NAMES)
    assert np.array_equal(after.W, state.W) and np.array_equal(after.M, state.M)
    assert seen["spikes"].any() and not seen["burst"].any() and not seen["updates"].any()


def test_gates_and_rules_see_filtered_spikes_in_the_place_of_rates(engine):
    network, state, X = learning(schedule=ah.Asynchronous(0.2, 10))
    _, seen = ah.advance(network, state, X, 50, engine, ("y", "burst"))
    assert (seen["y"][seen["burst"]] > 0.2).all() and seen["burst"].any()
