"""The model's laws, on every engine."""

import numpy as np
import pytest
from scipy.optimize import nnls

import asynchebb as ah
from asynchebb import equations, notation
from asynchebb.engines import cpu
from asynchebb.network import VANISHING

DYNAMICS = [cls() for cls in notation.variants("dynamics").values()]
RULES = [cls() for cls in notation.variants("rule").values()]
SCHEDULES = [cls() for cls in notation.variants("schedule").values()]


def started(n=16, p=5, dtype=np.float64, seed=0, **parts):
    if equations.window(parts.get("schedule", ah.Frozen())):
        parts.setdefault("dynamics", ah.IntegrateAndFire())
    network = ah.asynchronous(n, p * p, "notebook", **parts)
    X = ah.Crossbars(p).sample(np.random.default_rng(seed + 1), 40)
    return network, network.init(np.random.default_rng(seed), dtype), X


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_one_step_is_the_printed_equations(rule, engine):
    """Entry by entry, from the equations as the paper prints them."""
    network, state, X = started(rule=rule, schedule=ah.Continuous())
    W, M, u, y, a = state.W, state.M, state.u, state.y, state.a
    x = X[0]
    n, m = W.shape
    drive = [sum(W[i, j] * x[j] for j in range(m)) - sum(M[i, j] * y[j] for j in range(n)) for i in range(n)]
    y = [max(u[i] + 0.01 * drive[i], 0.0) for i in range(n)]
    p = getattr(rule, "p", None)
    leaks = {
        "Hebbian": lambda y: (1, 1),
        "Oja": lambda y: (y**2, y**2),
        "Foldiak": lambda y: (y, 0),
        "Falconbridge": lambda y: (y**2, 0),
        "Pehlevan": lambda y: (y**2, y**2),
        "SpikePairs": lambda y: (y, y),
    }
    after, _ = ah.advance(network, state, X[:1], hold=1, engine=engine)
    for i in range(n):
        eta = 1 / (a[i] + y[i] ** 2) if isinstance(rule, ah.Pehlevan) else rule.eta
        if isinstance(rule, ah.SpikePairs):
            eta = rule.eta / y[i] if y[i] > 0 else 0
        leak_w, leak_m = leaks[type(rule).__name__](y[i])
        for j in range(m):
            assert after.W[i, j] == pytest.approx(max(0, W[i, j] + eta * (y[i] * x[j] - leak_w * W[i, j])), abs=1e-13)
        for j in range(n):
            change = eta * (y[i] * y[j] - leak_m * M[i, j] - (p**2 if p else 0))
            assert after.M[i, j] == pytest.approx(max(0, M[i, j] + change), abs=1e-13)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_splitting_the_stimuli_into_blocks_changes_no_bit(schedule, engine):
    network, state, X = started(schedule=schedule, dtype=np.float32)
    whole, traces = ah.advance(network, state, X, hold=40, engine=engine, trace=("updates", "burst"))
    first, early = ah.advance(network, state, X[:13], hold=40, engine=engine, trace=("updates", "burst"))
    both, late = ah.advance(network, first, X[13:], hold=40, engine=engine, trace=("updates", "burst"))
    assert same(whole, both)
    for name in traces:
        assert np.array_equal(traces[name], np.concatenate([early[name], late[name]]))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_advance_never_changes_its_arguments(schedule, engine):
    network, state, X = started(schedule=schedule)
    before, shown = state.copy(), X.copy()
    for array in (*state, X):
        array.flags.writeable = False
    after, _ = ah.advance(network, state, X, hold=20, engine=engine)
    assert same(state, before) and np.array_equal(X, shown)
    assert not any(np.shares_memory(a, b) for a in after for b in state)


def test_a_frozen_network_does_not_change(engine):
    network, state, X = started(schedule=ah.Frozen())
    after, traces = ah.advance(network, state, X, hold=20, engine=engine, trace=("updates", "burst"))
    assert np.array_equal(after.W, state.W) and np.array_equal(after.M, state.M) and np.array_equal(after.a, state.a)
    assert not traces["updates"].any() and not traces["burst"].any()
    assert not np.array_equal(after.y, state.y)


@pytest.mark.parametrize("dynamics", DYNAMICS, ids=repr)
@pytest.mark.parametrize("rule", [*RULES, ah.Oja(eta=2.0), ah.Hebbian(eta=1.5), ah.Foldiak(eta=1.0, p=0.5)], ids=repr)
def test_weights_and_rates_are_never_negative(dynamics, rule, engine):
    network, state, X = started(dynamics=dynamics, rule=rule, schedule=ah.Continuous())
    with np.errstate(over="ignore", invalid="ignore"):
        after, traces = ah.advance(network, state, X[:5], hold=20, engine=engine, trace=("y",))
    assert not (after.W < 0).any() and not (after.M < 0).any() and not (traces["y"] < 0).any()


@pytest.mark.parametrize("r_r", [0, 1, 7, 50])
def test_two_updates_of_a_neuron_are_at_least_r_r_plus_2_steps_apart(r_r, engine):
    network, state, X = started(schedule=ah.Asynchronous(r_b=0.2, r_r=r_r))
    _, traces = ah.advance(network, state, X, hold=50, engine=engine, trace=("burst",))
    gaps = np.concatenate([np.diff(np.flatnonzero(burst)) for burst in traces["burst"].T])
    assert len(gaps) and gaps.min() == r_r + 2


def test_a_neuron_bursts_only_above_r_b_and_c_counts_the_steps_since(engine):
    network, state, X = started(schedule=ah.Asynchronous(r_b=0.5, r_r=10))
    assert (state.c > 10).all()
    after, traces = ah.advance(network, state, X, hold=30, engine=engine, trace=("burst", "y"))
    burst, y = traces["burst"], traces["y"]
    assert burst.any() and (y[burst] > 0.5).all()
    for i in range(network.n):
        updates = np.flatnonzero(burst[:, i])
        since = len(burst) - 1 - updates[-1] if len(updates) else state.c[i] + len(burst)
        assert after.c[i] == since


def test_a_discrete_network_changes_at_the_last_step_of_each_hold(engine):
    network, state, X = started(schedule=ah.Discrete())
    _, traces = ah.advance(network, state, X, hold=25, engine=engine, trace=("burst", "updates"))
    steps = np.arange(len(X) * 25)
    assert np.array_equal(traces["burst"].any(axis=1), steps % 25 == 24)
    assert set(traces["updates"]) == {0, network.n * (network.n + network.m)}  # Hebb's leak takes from every synapse


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_updates_count_the_synapses_that_differ_after_a_step(rule, engine):
    """With weights that are all above 0, so that nothing is rectified away."""
    network, state, X = started(rule=rule, schedule=ah.Asynchronous(r_b=0.3, r_r=20))
    state = state._replace(M=state.M + 0.1)
    for x in X[:20]:
        after, traces = ah.advance(network, state, x[None], hold=1, engine=engine, trace=("updates", "active", "y"))
        differ = np.count_nonzero(after.W != state.W) + np.count_nonzero(after.M != state.M)
        assert traces["updates"] == [differ]
        assert traces["active"] == [np.count_nonzero(after.y > 0)]
        assert np.array_equal(traces["y"], [after.y])
        state = after


@pytest.mark.parametrize("dynamics", [ah.Potential(), ah.Projected(), ah.Relaxing()], ids=repr)
def test_the_settled_state_is_the_non_negative_least_squares_solution(dynamics, engine):
    network, state, X = started(n=6, dynamics=dynamics, schedule=ah.Frozen())
    A = np.random.default_rng(3).random((6, 6))
    M = A @ A.T + np.eye(6)  # positive definite: the settled state is unique
    L = np.linalg.cholesky(M + np.eye(6) if isinstance(dynamics, ah.Relaxing) else M)  # it has a leak
    settled, _ = ah.advance(network, state._replace(M=M), X[:1], hold=20_000, engine=engine)
    expected, _ = nnls(L.T, np.linalg.solve(L, state.W @ X[0]))
    assert expected.min() == 0  # some neuron is silenced, or the test would not see the rectifying
    np.testing.assert_allclose(settled.y, expected, atol=1e-6)


def test_a_silent_neurons_row_keeps_its_direction_for_ever(engine):
    """It decays by 0.5 a stimulus: 300 of them would leave nothing in float32."""
    network, state, X = started(n=4, dtype=np.float32, rule=ah.Hebbian(eta=0.5), schedule=ah.Discrete())
    state.u[0] = state.y[0] = 0
    state.u[0] = -1e6
    X = np.concatenate([X] * 8)
    after, _ = ah.advance(network, state, X, hold=1, engine=engine)
    assert after.W[0].max() == pytest.approx(VANISHING) and after.M[0].max() == pytest.approx(VANISHING)
    assert ah.metrics.weight_similarity(after.W, state.W)[0] == pytest.approx(1, abs=1e-5)
    assert ah.metrics.weight_similarity(after.M, state.M)[0] == pytest.approx(1, abs=1e-5)


def test_a_rule_that_wipes_a_row_out_may_do_so(engine):
    """η = 1 leaves y_i x_j alone of a row, and nothing of a silent neuron's."""
    network, state, X = started(n=4, rule=ah.Hebbian(eta=1.0), schedule=ah.Discrete())
    state.u[0], state.y[0] = -1e6, 0
    after, _ = ah.advance(network, state, X[:1], hold=1, engine=engine)
    assert not after.W[0].any() and not after.M[0].any()


def test_initial_weights_are_those_the_paper_and_the_notebook_name():
    rng = np.random.default_rng
    network = ah.asynchronous(n=400, m=300, reading="notebook")
    state = network.init(rng(0))
    assert state.W.dtype == state.M.dtype == np.float32
    assert state.W.mean() == pytest.approx(1 / 20, rel=0.02) and state.M.std() == pytest.approx(1 / 20, rel=0.02)
    assert (state.y == np.maximum(state.u, 0)).all() and state.u.std() == pytest.approx(1, rel=0.1)
    absolute = ah.Network(n=400, m=300, weights=ah.Gaussian()).init(rng(0))
    rectified = ah.Network(n=400, m=300, weights=ah.Gaussian(rectified=True)).init(rng(0))
    assert absolute.W.mean() == pytest.approx(np.sqrt(2 / np.pi), rel=0.02) and absolute.W.min() > 0
    assert (rectified.W == 0).mean() == pytest.approx(0.5, abs=0.01)


def test_gaussian_weights_of_large_networks_shrink_if_they_are_to():
    def drawn(n, **given):
        return ah.Gaussian(scale=0.2, **given).draw(np.random.default_rng(0), (4, 5), n)

    for n in (1, 499, 500):
        assert np.array_equal(drawn(n, shrinks_from=500), drawn(n))
    np.testing.assert_allclose(drawn(2000, shrinks_from=500), drawn(2000) / 4, rtol=1e-15)
    for odd in (0, 2.5, True, "500"):
        with pytest.raises(ah.InputError, match=r"Gaussian.shrinks_from is .*; it must be a whole number"):
            ah.Gaussian(shrinks_from=odd)


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (np.ones(3), r"Own.draw has shape \(3,\); it must be \(4, 3\)"),
        (np.ones((3, 4)), r"Own.draw has shape \(3, 4\); it must be \(4, 3\)"),
        (np.ones((4, 3)) * 1j, r"Own.draw has dtype complex128; it must hold real numbers"),
        (np.full((4, 3), 1e300), r"Own.draw has weights that are not finite in float32"),
        (np.full((4, 3), np.nan), r"Own.draw has weights that are negative or not a number"),
        (None, r"Own.draw is None; it must hold real numbers"),
    ],
    ids=["a row", "transposed", "imaginary", "too large", "nan", "none"],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_weights_of_ones_own_must_have_the_shape_asked_for_and_be_finite(drawn, said):
    class Own:
        def draw(self, rng, shape, n):
            return drawn

    with pytest.raises(ah.InputError, match=said):
        ah.Network(4, 3, weights=Own()).init(np.random.default_rng(0))


@pytest.mark.parametrize("model", ah.network.MODELS)
def test_a_preset_of_2000_neurons_is_stable_and_learns_on_the_cpu_engine(model, monkeypatch):
    monkeypatch.setattr(cpu, "WIDE", 10_000)  # on one core: that loop is compiled for other tests, too
    stimulus, hold = ah.Crossbars(14), 500
    X, test = (stimulus.sample(np.random.default_rng(seed), count) for seed, count in ((1, 40), (2, 10)))
    network = ah.network.MODELS[model](n=2000)
    start = network.init(np.random.default_rng(0))
    end, traces = ah.advance(network, start, X, hold, trace=("active", "updates"), from_rest=True)
    active = traces["active"].reshape(len(X), hold)
    assert (active[:, 1:] > active[:, :-1] / 2).all()  # where dt·λ(M) is too large, all fall silent at every other step
    assert (traces["updates"] > 0).mean() > {"asynchronous": 0.05, "continuous": 0.99, "discrete": 0.9 / hold}[model]
    before, after = (ah.reconstruction_error(network, state, test, 100, from_rest=True) for state in (start, end))
    assert after.last < before.last


def test_the_precision_asked_for_rounds_the_same_draws():
    network = ah.Network(n=30, m=25)
    single, double = (network.init(np.random.default_rng(5), dtype) for dtype in (np.float32, np.float64))
    assert np.array_equal(single.W, double.W.astype(np.float32))
    assert np.array_equal(single.M, double.M.astype(np.float32))


def test_presets_are_the_papers_models():
    assert ah.asynchronous(reading="notebook").schedule == ah.Asynchronous(r_b=1.0, r_r=100)
    assert ah.asynchronous().schedule == ah.Asynchronous(r_b=0.75, r_r=100)
    assert [preset().rule for preset in ah.network.MODELS.values()] == [ah.Oja(0.002), ah.Oja(0.001), ah.Oja(0.01)]
    assert ah.asynchronous(reading="notebook").rule == ah.discrete(reading="notebook").rule == ah.Hebbian(eta=0.01)
    assert ah.continuous().rule == ah.Oja(eta=0.001) and ah.continuous().schedule == ah.Continuous()
    assert ah.discrete(n=7, m=9, dynamics=ah.Potential()) == ah.Network(
        7, 9, ah.Potential(), rule=ah.Oja(eta=0.01), schedule=ah.Discrete()
    )
