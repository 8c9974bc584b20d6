"""What the experiments measure, against oracles: small made-up results of which the numbers are known by hand."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.decomposition import MiniBatchNMF

import asynchebb as ah
from asynchebb.reproduction.experiments import capacity, fig1, fig2, figF, sequences
from asynchebb.reproduction.readings import PAPER, PRESET, READINGS, SETTLED
from asynchebb.reproduction.results import SAME
from asynchebb.reproduction.scale import SCALES
from asynchebb.runs.layout import FORMAT

SMOKE = SCALES["smoke"]
BARS = ah.Crossbars(SMOKE.p)


class Made(dict):
    """Made-up results: saved runs by the experiment's own names, and the runs that they are said to be of."""

    def __init__(self, saved, runs=(), engine="reference"):
        super().__init__(saved)
        self.runs, self.engine = dict(runs), engine


def noise(count):
    """Fields that resemble no bar and no cross."""
    return np.random.default_rng(5).random((count, BARS.m))


def test_figure_1_counts_fields_errors_and_active_neurons_of_the_snapshots_that_it_says():
    factors = BARS.factors()  # of 12 bars
    cross = np.maximum(factors[0], factors[6])
    W = np.stack([factors[0], factors[1], factors[1], cross, *noise(36)])
    rates = np.linspace(2, 1, 40)
    error = np.array([0.9, 0.5, 0.3, 0.4, 0.2])
    saved = {
        "step": np.arange(5) * 100,
        "W": np.stack([noise(40)] * 4 + [W]),
        "mean_activity": np.tile(rates, (5, 2, 1)),
        "trace_y": np.stack([np.zeros(40)] * 4 + [np.r_[4.0, 0.41, 0.39, np.zeros(37)]]),
        "trace_active": np.r_[np.full(15, 99.0), 1, 2, 3, 4, 5],
        "error": np.stack([error, error + 1], axis=1),
        "error_last": np.stack([error + 2, error + 3], axis=1),
        "gini": np.tile([0.25, 0.75], (5, 1)),
        "active_neurons": np.tile([7.0, 8.0], (5, 1)),
    }
    assert (PAPER, SETTLED) == (0, 1)
    found = fig1._measure(saved, BARS)
    assert found["bars"] == 3 / 40 and found["crosses"] == 1 / 40 and found["factors"] == 2 / 12
    assert found["error"] == 0.2 and found["error_settled"] == pytest.approx(3.2)
    assert found["unsteadiness"] == pytest.approx(np.std([0.1, -0.2]))
    assert found["gini"] == 0.25 and found["active"] == 7 and found["active_learning"] == 3
    assert found["wide_learning"] == 2  # above a tenth of 4
    y = saved["trace_y"][-1]
    assert found["gini_learning"] == pytest.approx(np.abs(y[:, None] - y).sum() / (2 * 40 * y.sum()))


def turned(W, cosine):
    """Rows at this cosine with the rows of W."""
    other = np.random.default_rng(3).random(W.shape)
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    across = other - (other * unit).sum(axis=1, keepdims=True) * unit
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return cosine * unit + np.sqrt(1 - cosine**2) * across


def test_figure_2_compares_weights_with_those_of_the_discrete_network_at_the_same_step():
    n = SMOKE.n
    start, end = noise(n), np.random.default_rng(6).random((n, BARS.m))
    M = np.random.default_rng(7).random((2, n, n))
    active = np.arange(n) < 10  # of which the first five match
    cosine = np.where(np.arange(n) < 5, 0.99, np.where(active, 0.9, 0.5))[:, None]

    def saved(W, M_end):
        rates = np.zeros((2, 2, n))
        rates[:, :, active] = 1.0
        return {
            "step": np.array([0, 1000]),
            "W": np.stack([start, W]),
            "M": np.stack([M[0], M_end]),
            "mean_activity": rates,
        }

    discrete, alike = saved(end, M[1]), saved(turned(end, cosine), M[1])
    found = fig2.likeness(alike, discrete)
    assert SAME == 0.95
    assert found["same_W"] == 5 / n and found["same_active_W"] == 0.5
    assert found["similarity_W"] == pytest.approx(cosine.mean())
    assert found["same_M"] == found["same_active_M"] == 1 and found["similarity_M"] == pytest.approx(1)


class Saved(dict):
    """A saved run's arrays by name."""

    attrs: ClassVar = {"format": FORMAT}


@pytest.mark.parametrize("model", ["asynchronous", "continuous", "discrete"])
def test_figure_2_counts_synapses_as_the_equations_change_them(model):
    """By hand, from the weights before and after each step of the same presentations."""
    hold = 20
    network = READINGS[PRESET]._replace(r_b=0.05).network(model, 8, 9)
    run = ah.Run(network, ah.Phase(ah.Crossbars(3), 5, hold, 1, from_rest=True))
    states = [network.init(np.random.default_rng(k), np.float64) for k in range(2)]
    saved = Saved(step=np.array([0, 100]))
    saved |= {name: np.stack([getattr(state, name) for state in states]) for name in ah.State._fields}
    key = PRESET, model, 0
    numbers = {}
    fig2._count(*key, Made({key: saved}, {key: run}), lambda reading, name, value: numbers.setdefault(name, value))
    for snapshot, when in enumerate(("untrained", "trained")):
        X = ah.Crossbars(3).sample(np.random.default_rng(snapshot), fig2.WINDOW)
        _, traced = ah.advance(network, states[snapshot], X, hold, "reference", ("y", "burst"), True)
        changed, products = [], []
        for step, (y, gate) in enumerate(zip(traced["y"], traced["burst"], strict=True)):
            x, leak = X[step // hold], y**2  # Oja's
            pre = np.concatenate([np.tile(x, (8, 1)), np.tile(y, (8, 1))], axis=1)
            products.append(np.count_nonzero(gate[:, None] * y[:, None] * pre))
            changed.append(np.count_nonzero(gate[:, None] * ((y[:, None] * pre != 0) | (leak[:, None] != 0))))
        assert numbers[f"{model}_updates_{when}"] == np.mean(changed) > 0
        assert numbers[f"{model}_products_{when}"] == np.mean(products)
        assert numbers[f"{model}_{when}_window"] == np.cumsum(changed).tolist()
    if model == "discrete":
        assert numbers["discrete_staircase"] == 1


def test_steadiness_is_how_alike_fields_are_a_snapshot_later_in_the_second_half():
    W = [noise(3)]
    for cosine in (0.1, 0.2, 0.7, 0.9):  # the first two lie in the first half
        W.append(turned(W[-1], cosine))
    saved = {"step": np.arange(5), "W": np.stack(W), "mean_activity": np.ones((5, 2, 3))}
    assert figF._steadiness(saved) == pytest.approx(0.8)


def test_capacity_takes_the_worst_set_and_the_largest_rise():
    error = {  # before, and after each of the sets
        0.75: [[1.0, 0.8, 0.5], [0.2, 0.8, 0.5], [0.25, 0.2, 0.5], [0.3, 0.6, 0.1]],
        1: [[1.0, 1.0, 1.0]] * 4,
        2: [[1.0, 1.0, 1.0], [0.5, 1.0, 1.0], [0.5, 0.5, 1.0], [0.5, 0.5, 0.5]],
    }
    factors = BARS.factors()

    def saved(n, r_b):
        after = np.resize(factors[:2], (n, BARS.m))
        end = np.vstack([after[:1], noise(n - 1)])  # one of two bars is still shown
        return {
            "phase": np.array([0, 0, 1, 2]),
            "error_last": np.array(error[r_b]),
            "W": np.stack([noise(n), after, after, end]),
        }

    keys = [(n, r_b) for n in capacity.neurons(SMOKE) for r_b in capacity.THRESHOLDS]
    found = capacity.measure(SMOKE, Made({key: saved(*key) for key in keys}))[PRESET]
    assert found["worst"][:3] == pytest.approx([0.75, 1.0, 0.5]) and found["bars_kept"] == [0.5] * len(keys)
    assert found["rise"][:3] == pytest.approx([0.4, 0, 0])
    for share in capacity.SHARES:
        assert found[f"worst_{share}"] == pytest.approx([0.75]) and found[f"rise_{share}"] == pytest.approx([0.4])
        assert found[f"learnt_{share}"] == pytest.approx([0.25])


def test_nmf_errors_are_those_of_scikit_learns_model_after_each_set():
    sets = ah.Crossbars(6), ah.Squares(6)
    E = sequences.nmf_errors(SMOKE, sets)
    model = MiniBatchNMF(min(sequences.COMPONENTS, SMOKE.n), batch_size=100, random_state=0, max_iter=50)
    for p, stimulus in enumerate(sets):
        model.partial_fit(stimulus.sample(np.random.default_rng([8, p]), 100))
        for s, other in enumerate(sets):
            X = other.sample(np.random.default_rng([9, s]), SMOKE.tested)
            again = model.transform(X) @ model.components_
            cosines = [x @ z / (np.linalg.norm(x) * np.linalg.norm(z)) for x, z in zip(X, again, strict=True)]
            assert E[p, s] == pytest.approx(1 - np.mean(cosines))
