"""Which runs a sweep is made of."""

from dataclasses import dataclass

import numpy as np
import pytest

import asynchebb as ah
from asynchebb.sweeps.grid import axis_from_text, grid, varied

BASE = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=30, hold=20, snapshots=1))


@dataclass(frozen=True)
class Picky(ah.Hebbian):
    h: float = 1.0

    def __post_init__(self):
        if self.h > 1.5:
            raise ValueError("too large")


PICKY = ah.Run(ah.asynchronous(20, 36, rule=Picky()), BASE.phases)
TWO = ah.Run(ah.discrete(n=20, m=36), [ah.Phase(ah.Crossbars(6), 30, 20), ah.Phase(ah.Squares(6), 30, 20)])


def test_axes_multiply_in_the_order_given_the_last_one_fastest():
    made = grid(BASE, {"schedule.r_b": [0.5, 2], "seed": range(3)})
    assert made.shape == (2, 3) and made.size == 6
    assert [(run.network.schedule.r_b, run.seed) for run in made] == [(b, s) for b in (0.5, 2) for s in range(3)]
    assert len({run.identity for run in made}) == 6


def test_tied_axes_go_together():
    made = grid(BASE, {"n": [10, 20], "hold": [5, 6], "seed": [0, 1, 2]}, [("hold", "n")])
    assert made.shape == (2, 3)
    points = [(run.network.n, run.phases[0].hold, run.seed) for run in made]
    assert points == [(n, hold, seed) for n, hold in ((10, 5), (20, 6)) for seed in range(3)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n": 7}, lambda run: run.network.n == 7),
        ({"rule": ah.Oja(), "rule.eta": 0.5}, lambda run: run.network.rule == ah.Oja(eta=0.5)),
        ({"rule.eta": 0.5, "rule": ah.Oja()}, lambda run: run.network.rule == ah.Oja(eta=0.5)),
        ({"model": "continuous"}, lambda run: run.network == ah.continuous(20, 36)),
        ({"rule.eta": 0.2, "model": "continuous"}, lambda run: run.network.rule == ah.Oja(eta=0.2)),
        ({"dynamics.dt": 0.02}, lambda run: run.network.dynamics == ah.Projected(dt=0.02)),
        ({"weights": ah.Gaussian()}, lambda run: run.network.weights == ah.Gaussian()),
        ({"stimulus": ah.Bars(8)}, lambda run: run.network.m == 64 and run.probes == (ah.Probe(ah.Bars(8)),)),
        ({"stimulus.p": 10}, lambda run: run.network.m == 100 and run.phases[0].stimulus == ah.Crossbars(10)),
        ({"hold": 50}, lambda run: run.phases[0].hold == 50),
        ({"samples": 9}, lambda run: run.steps == 180),
        ({"dtype": "float64", "seed": 4}, lambda run: (run.dtype, run.seed) == ("float64", 4)),
    ],
)
def test_a_field_is_named_as_one_would_say_it(changes, expected):
    assert expected(varied(BASE, changes))


def test_whole_numbers_out_of_a_range_are_whole_numbers():
    made = grid(BASE, {"hold": np.linspace(10, 20, 2), "schedule.r_b": np.linspace(1, 2, 2)})
    assert [axis.values for (axis,) in made.groups] == [(10, 20), (1.0, 2.0)]
    assert [type(axis.values[0]) for (axis,) in made.groups] == [int, float]


def test_fields_of_phases_are_those_of_all_or_of_one():
    assert [phase.hold for phase in varied(TWO, {"hold": 7}).phases] == [7, 7]
    assert [phase.hold for phase in varied(TWO, {"phases.1.hold": 7, "hold": 9}).phases] == [9, 7]


def test_probes_of_ones_own_stay_while_others_follow_the_stimulus():
    mine = ah.Run(BASE.network, BASE.phases, [ah.Probe(ah.Squares(6), 5, 5)])
    assert varied(mine, {"stimulus": ah.Bars(6)}).probes == mine.probes
    assert varied(BASE, {"stimulus": ah.Bars(6)}).probes == (ah.Probe(ah.Bars(6)),)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("seed=0,1,2", [0, 1, 2]),
        ("schedule.r_b = 0.5, 1e1", [0.5, 10.0]),
        ("schedule.r_b=linear(0, 2, 5)", [0, 0.5, 1, 1.5, 2]),
        ("rule.eta=log(1e-3, 1e-1, 3)", [1e-3, 1e-2, 1e-1]),
        ("hold=log(10, 1000, 4)", [10, 46, 215, 1000]),
        ("seed=range(2, 10, 4)", [2, 6]),
        ("rule=Hebbian(eta=0.02), Oja()", [ah.Hebbian(eta=0.02), ah.Oja()]),
        ("stimulus=Bars(6, probability=0.1),Crossbars(6)", [ah.Bars(6, probability=0.1), ah.Crossbars(6)]),
        ("model=asynchronous,discrete", ["asynchronous", "discrete"]),
        ("weights.rectified=True,False", [True, False]),
        ("phases.0.hold=3", [3]),
    ],
    ids=str,
)
def test_axes_are_written_as_text(text, values):
    name, along = axis_from_text(BASE, text)
    assert name == text.partition("=")[0].strip()
    numbers = all(isinstance(value, int | float) for value in values)
    assert along == (pytest.approx(values) if numbers else values)


def test_a_rule_of_ones_own_file_stands_beside_others(tmp_path):
    rule = "class Mine(Hebbian):\n    pass\n"
    (tmp_path / "mine.py").write_text(f"from asynchebb.rules import Hebbian\n{rule}")
    _, (mine, oja) = axis_from_text(BASE, f"rule={tmp_path}/mine.py:Mine(eta=0.5),Oja()")
    assert type(mine).__name__ == "Mine" and mine.eta == 0.5 and oja == ah.Oja()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: [*grid(BASE, {"rule.q": [1]})],
            "vary names 'rule.q', which is not a field .* rule, rule.eta, schedule",
        ),
        (lambda: [*grid(BASE, {"speed": [1]})], "vary names 'speed'"),
        (lambda: [*grid(BASE, {"m": [1]})], "vary names 'm'"),
        (lambda: [*grid(BASE, {"r_b": [1]})], r"vary names 'r_b', .* \(did you mean schedule.r_b\?\)"),
        (lambda: [*grid(BASE, {"model": ["discrete"], "schedule.r_b": [1]})], "this run; Discrete has no r_b"),
        (lambda: [*grid(BASE, {"schedule.r_b": 1})], "vary gives schedule.r_b 1; it must be given a list of values"),
        (lambda: [*grid(BASE, {"stimulus": ["Bars(6)"]})], r"stimulus is 'Bars\(6\)'; it must be a value with sample"),
        (lambda: [*grid(PICKY, {"rule.h": [1, 2]})], "rule.h the value 2, which Picky rejects .too large"),
        (lambda: [*grid(BASE, {"phases.3.hold": [1]})], "vary names 'phases.3.hold'"),
        (lambda: grid(BASE, {}), "vary is empty; it must name at least one field to vary, of model, n"),
        (lambda: grid(BASE, {"seed": []}), "vary gives seed no value"),
        (lambda: grid(BASE, {"seed": [1, 1]}), "vary gives seed the value 1 twice"),
        (lambda: grid(BASE, {"rule.eta": [0.1, np.float64(0.1)]}), "rule.eta the value 0.1 twice"),
        (
            lambda: grid(BASE, {"seed": [1], "n": [1, 2]}, [("seed", "n")]),
            "seed has 1, n has 2; they must have",
        ),
        (lambda: grid(BASE, {"seed": [1]}, [("seed", "n")]), "zip is 'n'; it must be one of seed"),
        (lambda: grid(BASE, {"seed": [1], "n": [2]}, [("seed", "n"), ("n",)]), "zip names n twice"),
        (lambda: grid(None, {"seed": [1]}), "run is None; it must be a Run"),
        (lambda: [*grid(BASE, {"hold": [2.5]})], "Phase.hold is 2.5; it must be a whole number"),
        (lambda: [*grid(BASE, {"seed": [-1]})], "seed is -1"),
        (lambda: [*grid(BASE, {"model": ["sparse"]})], "model is 'sparse'; it must be one of asynchronous"),
        (lambda: axis_from_text(BASE, "seed"), "vary is 'seed'; it must be written like name=value"),
        (lambda: axis_from_text(BASE, "rule=Hebb()"), "rule is 'Hebb'; it must be one of Hebbian"),
        (lambda: axis_from_text(BASE, "rule.eta=log(0, 1, 3)"), "vary gives rule.eta the range"),
        (lambda: axis_from_text(BASE, "rule.eta=linear(0, 1)"), "vary gives rule.eta the range"),
        (lambda: axis_from_text(BASE, "seed=1 2"), "vary gives seed the value '1 2'; it must be a number"),
    ],
)
def test_a_bad_grid_is_refused_in_a_sentence(call, said):
    with pytest.raises(ah.InputError, match=said):
        call()


def test_default_probes_follow_the_phases_and_keep_the_measures():
    bars = ah.Crossbars(4)
    probe = ah.Probe(bars, measures=(*ah.USUAL, "hoyer"))
    run = ah.Run(ah.asynchronous(n=10, m=16), ah.Phase(bars, 5, 10), probe)
    changed = varied(run, {"from_rest": True, "stimulus": ah.Squares(6)})
    assert changed.probes == (ah.Probe(ah.Squares(6), from_rest=True, measures=(*ah.USUAL, "hoyer")),)


def test_another_model_takes_its_rule_from_the_reading_of_most_parts():
    notebook = ah.asynchronous(n=10, m=16, reading="notebook", weights=ah.Gaussian(scale=0.3))
    run = ah.Run(notebook, ah.Phase(ah.Crossbars(4), 5, 10))
    assert varied(run, {"model": "discrete"}).network.rule == ah.discrete(reading="notebook").rule
    run = ah.Run(ah.asynchronous(n=10, m=16), ah.Phase(ah.Crossbars(4), 5, 10))
    assert varied(run, {"model": "discrete"}).network.rule == ah.discrete().rule
