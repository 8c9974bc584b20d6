"""Measures against oracles: double sums, loops, hand-made fields."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asynchebb as ah
from asynchebb import metrics
from asynchebb.engines import cpu


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("active", [0, 1, 3, 4, 30, 41])
def test_the_errors_of_a_test_are_those_of_the_cosines(dtype, active):
    rng = np.random.default_rng(active)
    W, x, Y = rng.random((41, 9)).astype(dtype), rng.random(9), np.zeros((21, 41), dtype)
    Y[:, rng.permutation(41)[:active]] = rng.random(active)
    Y[5:12] *= rng.random((7, 41)) < 0.5
    Y[20] = 0
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    found, of_nothing = np.empty((2, 21))
    cpu.response().reconstruct(W, x, Y, found)
    cpu.response().reconstruct(W, 0 * x, Y, of_nothing)
    np.testing.assert_allclose(found, 1 - metrics.reconstruction_cosines(W, x, Y), rtol=0, atol=tolerance)
    assert found[20] == 1 and (of_nothing == 1).all()


activity = st.lists(st.floats(0, 100, allow_subnormal=False), min_size=2, max_size=30).map(np.array)


@given(activity)
def test_gini_is_the_papers_double_sum(y):
    if y.sum() > 1e-6:
        expected = np.abs(y[:, None] - y).sum() / (2 * len(y) * y.sum())
        assert metrics.gini(y) == pytest.approx(expected, abs=1e-9)


@given(activity)
def test_sparseness_lies_between_equality_and_one_neuron_doing_all(y):
    one = np.zeros(len(y))
    one[0] = 3.0
    for measure in (metrics.gini, metrics.hoyer, metrics.treves_rolls):
        assert -1e-9 <= measure(y) <= measure(one) + 1e-9
        assert measure(np.full(len(y), 2.0)) == pytest.approx(0, abs=1e-9)
        assert measure(np.zeros(len(y))) == 0
    assert metrics.hoyer(one) == pytest.approx(1)
    assert metrics.gini(one) == pytest.approx(1 - 1 / len(y)) == metrics.treves_rolls(one)


@pytest.mark.parametrize("model", [ah.asynchronous, ah.continuous, ah.discrete])
def test_reconstruction_error_is_the_papers_sum_on_the_frozen_network(model, engine):
    network = model(n=20, m=25, reading="notebook")
    state = network.init(np.random.default_rng(0), np.float64)
    X = ah.Crossbars(5).sample(np.random.default_rng(1), 4)
    W, M, u, y = state.W, state.M, state.u, state.y
    errors = []
    for x in X:  # activity carries over from one stimulus to the next
        for _ in range(30):
            u = u + 0.01 * (W @ x - M @ y)
            y = np.maximum(u, 0)
            z = W.T @ y
            errors.append(1 - x @ z / (np.linalg.norm(x) * np.linalg.norm(z)) if y.any() else 1.0)
    before = state.copy()
    error = ah.reconstruction_error(network, state, X, hold=30, engine=engine)
    assert error.mean == pytest.approx(np.mean(errors), abs=1e-12)
    assert error.last == pytest.approx(np.mean(errors[29::30]), abs=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip(state, before, strict=True))


def test_a_silent_network_or_an_empty_image_has_error_1(engine):
    network = ah.Network(n=5, m=9, dynamics=ah.Potential())
    state = network.init(np.random.default_rng(0))
    silent = state._replace(u=np.full(5, -1e6, np.float32), y=np.zeros(5, np.float32))
    assert ah.reconstruction_error(network, silent, np.ones((2, 9)), 5, engine) == (1, 1, 0)
    assert ah.reconstruction_error(network, state, np.zeros((1, 9)), 5, engine) == (1, 1, 0)


def test_similarity_counts_a_rows_direction_however_small_it_has_become():
    A = np.random.default_rng(0).random((4, 30)).astype(np.float32)
    B = A.copy()
    B[1] *= np.float32(1e-30)
    B[2] = 0
    B[3] = A[3][::-1]
    similarity = metrics.weight_similarity(A, B)
    assert similarity[:2] == pytest.approx([1, 1], abs=1e-6) and similarity[2] == 0 and 0 < similarity[3] < 1


def test_similarity_is_a_cosine_of_parallel_rows_too():
    """The sums of products of a direction with itself are a few 1e-16 above 1, or below."""
    A = np.random.default_rng(0).random((2000, 7))
    assert metrics.weight_similarity(A, A).max() == 1 and metrics.weight_similarity(A, -A).min() == -1


def test_reconstructions_are_judged_by_direction_and_by_what_is_left():
    X, again = np.random.default_rng(0).random((2, 5, 8))
    again[3] = X[4] = 0
    by_hand = [
        1 - x @ y / np.sqrt(x @ x * (y @ y)) if x.any() and y.any() else 1 for x, y in zip(X, again, strict=True)
    ]
    assert metrics.reconstruction_errors(X, again) == pytest.approx(by_hand)
    left = sum((x - y) ** 2 for x, y in zip(X.ravel(), again.ravel(), strict=True))
    assert metrics.residual(X, again) == pytest.approx(left / sum(x**2 for x in X.ravel()))
    assert metrics.residual(X, X) == metrics.residual(0 * X, 0 * X) == 0 and metrics.residual(X, 0 * X) == 1
    assert metrics.residual(1e-9 * X, 1e-9 * again) == pytest.approx(metrics.residual(X, again))


def test_mean_similarity_tells_active_neurons_from_all():
    A = np.eye(4)
    B = np.array([A[0], A[0], A[2], A[2]])
    assert metrics.mean_similarity(A, B, np.array([1.0, 0, 0.2, 0])) == (0.5, 1.0)
    assert np.isnan(metrics.mean_similarity(A, B, np.zeros(4)).active)


def test_arrays_that_cannot_be_written_can_be_measured(engine):
    network = ah.Network(n=40, m=9)
    state = network.init(np.random.default_rng(0))
    expected = ah.reconstruction_error(network, state, np.ones((2, 9)), 20, engine)
    for array in state:
        array.flags.writeable = False
    assert ah.reconstruction_error(network, state, np.ones((2, 9)), 20, engine) == expected


def test_fields_are_counted_by_template():
    bars = ah.Crossbars(6)
    factors = bars.factors()
    rng = np.random.default_rng(0)
    W = np.array(
        [
            factors[0],
            3 * factors[0] + 0.05 * rng.random(36),
            factors[7],
            np.maximum(factors[0], factors[7]),
            np.maximum(factors[3], factors[9]) * 1e-30,
            rng.random(36),
            np.zeros(36),
        ]
    )
    assert metrics.count_fields(W, bars) == metrics.Fields(single=3, mixed=2, unstructured=2, distinct=2)
    assert metrics.count_fields(factors, bars) == (12, 0, 0, 12)


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        (0.86, 0, 0),  # cosines with the first factor and with the second; the rest is in a pixel of no factor
        (0.84, 0, -1),
        (0, 0.86, 1),
        (0.86 / 2**0.5, 0.86 / 2**0.5, -2),
        (0.84 / 2**0.5, 0.84 / 2**0.5, -1),
        (0.93, 0.367, 0),  # the pair has 0.92
        (0.9, 0.435, -2),  # the pair has 0.94
    ],
)
def test_a_field_shows_what_is_nearest_with_a_cosine_above_085(first, second, shown):
    field = np.array([[first, second, np.sqrt(1 - first**2 - second**2)]])
    assert metrics.tuned_to(field, np.eye(2, 3)).tolist() == [shown]
    assert metrics.count_fields(field, np.eye(2, 3)) == (shown >= 0, shown == -2, shown == -1, shown >= 0)
    which, cosine = metrics.nearest_factors(field, np.eye(2, 3))
    assert which == (second > first) and cosine == pytest.approx(max(first, second))


def test_a_field_that_is_as_near_to_a_factor_as_to_a_pair_shows_neither(monkeypatch):
    one_within_the_other = np.array([[1.0, 1, 0], [1, 0, 0]])
    assert metrics.tuned_to(np.array([[1.0, 1, 0]]), one_within_the_other).tolist() == [-1]
    monkeypatch.setattr(metrics, "MATCH", 1.0)  # and one that is just as near as it must not be
    assert metrics.tuned_to(np.eye(1, 3), np.eye(2, 3)).tolist() == [-1]
    assert metrics.tuned_to(np.ones((1, 4)), np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])).tolist() == [-1]


def test_a_field_is_what_stands_out_of_its_background():
    assert metrics.without_background(np.array([[1, 1, 3, 0], [2, 2, 2, 5]])).tolist() == [[0, 0, 2, 0], [0, 0, 0, 3]]


def test_each_factor_is_matched_with_a_neuron_of_its_own():
    factors = ah.Squares(14).factors()
    W = np.concatenate([factors[::-1], np.random.default_rng(0).random((9, 196))])
    assert metrics.factor_recovery(W, ah.Squares(14)) == pytest.approx(np.ones(16))
    twice = np.concatenate([factors[:1], factors[:1]])  # two neurons, one factor
    recovered = metrics.factor_recovery(twice, ah.Squares(14))
    assert recovered[0] == pytest.approx(1) and recovered[1:].sum() == pytest.approx(0)


def test_dead_and_duplicate_units_are_counted():
    assert metrics.dead_units(np.array([0, 0.1, 0, 2, 0])) == 3
    a, b = np.eye(2, 5)
    assert metrics.duplicate_units(np.array([a, b, 2 * a, a + b, b, np.zeros(5), np.zeros(5)])) == 2
    many = np.random.default_rng(0).random((700, 3))
    cosine = np.tril(many @ many.T / np.outer(*[np.linalg.norm(many, axis=1)] * 2), -1)
    assert metrics.duplicate_units(many) == (cosine.max(axis=1) > 0.95).sum()


def ones(*shape):
    return np.ones(shape)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (
            lambda k: metrics.reconstruction_cosines(ones(3, 4), ones(4 + k), ones(2, 3)),
            r"W has .* must be \(3, [35]\)",
        ),
        (
            lambda k: metrics.reconstruction_cosines(ones(3, 4), ones(4), ones(2, 3 + k)),
            r"W has .* must be \([24], 4\)",
        ),
        (lambda k: metrics.reconstruction_errors(ones(3, 4), ones(3 + k, 4)), "X has shape .* both must be the same"),
        (lambda k: metrics.residual(ones(3, 4), ones(3, 4 + k)), "X has shape .* both must be the same"),
        (lambda k: metrics.weight_similarity(ones(3, 4), ones(3, 4 + k)), "A has shape .* both must be the same"),
        (lambda k: metrics.mean_similarity(ones(3, 4), ones(3, 4), ones(3 + k)), "activity has .* equally many"),
        (lambda k: metrics.count_fields(ones(3, 36 + k), ah.Crossbars(6)), r"W has shape .* must be \(n, 36\)"),
        (lambda k: metrics.forgetting(ones(3, 3 + k)), "E has shape .* equally many of each and at least 2"),
        (lambda k: metrics.backward_transfer(ones(2 + k, 2)), "E has shape .* equally many of each and at least 2"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(measured, said):
    measured(0)
    for difference in (-1, 1):
        with pytest.raises(ah.InputError, match=said):
            measured(difference)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (lambda: metrics.gini(np.array([1, -0.01])), "activity holds -0.01; all must be at least 0"),
        (lambda: metrics.forgetting(ones(1, 1)), "equally many of each and at least 2"),
        (lambda: metrics.count_fields(ones(2, 36), ah.Digits(6)), "must be a set of known factors: Crossbars, Bars"),
        (lambda: metrics.count_fields(ones(2, 36), ah.Crossbars), "must be a set of known factors: Crossbars, Bars"),
    ],
)
def test_what_cannot_be_measured_is_refused(measured, said):
    with pytest.raises(ah.InputError, match=said):
        measured()


@pytest.mark.parametrize("measure", [metrics.gini, metrics.hoyer, metrics.treves_rolls])
def test_sparseness_does_not_depend_on_the_unit_of_rates(measure):
    y = np.array([0.0, 1, 2, 4])
    assert 0 < measure(1e-6 * y) == pytest.approx(measure(y)) == pytest.approx(measure(1e6 * y))


def test_measures_of_one_neuron_and_at_their_threshold():
    assert metrics.hoyer(np.array([3.0])) == metrics.gini(np.array([3.0])) == metrics.treves_rolls(np.array([3.0])) == 0
    assert metrics.duplicate_units(np.eye(2)[[0, 0, 1]], threshold=1.0) == 0
    assert metrics.duplicate_units(np.eye(2)[[0, 0, 1]], threshold=0.0) == 1


def test_forgetting_and_transfer_read_the_matrix_of_phases_and_sets():
    E = np.array([[0.1, 0.9, 0.8], [0.05, 0.2, 0.7], [0.6, 0.1, 0.2]])
    assert metrics.forgetting(E) == pytest.approx(((0.6 - 0.05) + (0.1 - 0.2)) / 2)
    assert metrics.backward_transfer(E) == pytest.approx(((0.1 - 0.6) + (0.2 - 0.1)) / 2)


def test_the_matrix_of_errors_has_a_row_a_phase_and_a_column_a_set():
    network = ah.Network(n=20, m=36)
    states = [network.init(np.random.default_rng(seed)) for seed in range(2)]
    sets = [stimulus.sample(np.random.default_rng(0), 3) for stimulus in (ah.Crossbars(6), ah.Squares(6))]
    E = ah.error_matrix(network, states, sets, hold=10)
    assert E.shape == (2, 2)
    assert E[1, 0] == ah.reconstruction_error(network, states[1], sets[0], hold=10).last
