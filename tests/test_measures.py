"""Measures: declared once, a user's own like the package's, and read from values instead of their text."""

from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr
from test_cli import call_here, refused

import asynchebb as ah
from asynchebb import measures, metrics
from asynchebb.runs.saved import summary
from asynchebb.sweeps import plots

BARS = ah.Crossbars(4)


@ah.measure("contrast of the fields", better="more")
def contrast(W):
    return W.std() / W.mean()


def run_with(*recorded, stimulus=BARS, **changes):
    probe = ah.Probe(stimulus, samples=3, hold=10, measures=recorded or ah.USUAL)
    return ah.Run(ah.asynchronous(n=20, m=16, **changes), ah.Phase(stimulus, 6, 20, snapshots=2), probe)


def test_a_measure_of_ones_own_stands_in_the_file_the_summary_sweeps_and_plots(tmp_path):
    run = run_with(*ah.USUAL, contrast)
    dataset = ah.record(run, tmp_path)
    expected = [contrast(W) for W in dataset.W.values]
    np.testing.assert_allclose(dataset.contrast[:, 0], expected)
    assert dataset.contrast.attrs["long_name"] == "contrast of the fields"
    assert summary(dataset)["contrast"] == pytest.approx(expected[-1])
    swept = ah.sweep(run, {"seed": [0, 1], "schedule.r_b": [0.5, 0.75]}, tmp_path / "sweep", workers=1, progress=False)
    assert swept.contrast.sel({"seed": 0, "schedule.r_b": 0.75}) == pytest.approx(expected[-1])
    assert "contrast of the fields" in plots.measure(swept, "contrast").get_suptitle()


def test_a_plain_function_is_a_measure_too(tmp_path):
    def strongest(rates):
        """The largest settled rate."""
        return rates.max()

    dataset = ah.record(run_with("error", strongest), tmp_path)
    assert dataset.strongest.attrs["long_name"] == "The largest settled rate"
    assert float(dataset.strongest[-1, 0]) > 0 and "gini" not in dataset


def test_an_edited_measure_is_another_run_and_the_usual_ones_leave_the_identity_alone():
    def edited(W):
        return W.std() + W.mean()

    edited = measures.Measure("contrast", "contrast of the fields", edited, "more")

    def times(k):
        return measures.Measure("contrast", "contrast of the fields", lambda W: k * W.std(), "more")

    own = contrast, edited, times(1), times(2)
    identities = {run_with().identity, *(run_with(*ah.USUAL, measure).identity for measure in own)}
    assert len(identities) == 5 and run_with(*ah.USUAL, times(2)).identity in identities
    known = ah.Run(ah.asynchronous(n=40, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=50, snapshots=2))
    assert known.identity == "4643a9c984dc8630414f"  # as if probes did not name their measures


def test_each_measure_says_what_it_needs_and_is_left_out_without_it():
    rng = np.random.default_rng(0)
    W, factors = rng.random((10, 16)), BARS.factors()
    assert measures.MEASURES["single_fields"].of({"W": W}) is None
    assert measures.MEASURES["single_fields"].of({"W": W, "factors": factors}) == metrics.count_fields(W, BARS).single
    for measure in measures.MEASURES.values():
        assert measure.label and {*measure.needs} <= {*measures.NEEDS} and measure.better in measures.BETTER


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "Probe.measures is empty"),
        (("errr",), "Probe.measures is 'errr'; it must be one of error"),
        (("error", "error"), "Probe.measures names error twice"),
        ((3,), "Probe.measures holds 3"),
        ((lambda weights: 0,), "needs 'weights'; it may need errors, rates"),
        ((measures.Measure("gini", "mine", lambda W: 0.0),), "a name that the package uses"),
    ],
)
def test_a_measure_that_cannot_be_is_refused(given, said):
    if given and callable(given[0]) and not isinstance(given[0], measures.Measure):
        given[0].__name__ = "own"
    with pytest.raises(ah.InputError, match=said.replace("(", r"\(")):
        ah.Probe(BARS, measures=given)


def test_a_measure_that_gives_no_number_or_lacks_what_it_needs_is_named():
    def rows(W):
        return W.mean(axis=1)

    with pytest.raises(ah.InputError, match="the measure rows gave an array of shape"):
        list(ah.simulate(run_with(rows)))
    digits = ah.Digits(4)
    with pytest.raises(ah.InputError, match="the measure factors_found needs factors"):
        list(ah.simulate(run_with("factors_found", stimulus=digits)))


# Values are not recovered from their printed text


@dataclass(frozen=True)
class Hebbian:
    """A rule of one's own with the name of the package's."""

    eta: float = 0.01
    floor = 0.0

    def leak_w(self, y_i):
        return 0.5

    def leak_m(self, y_i):
        return 0.5

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
class Crossbars:
    """A stimulus of one's own with the name of the package's, and other factors."""

    p: int = 4

    @property
    def m(self):
        return self.p**2

    @property
    def shape(self):
        return self.p, self.p

    def factors(self):
        return np.eye(self.m)

    def sample(self, rng, count):
        return np.eye(self.m)[rng.integers(self.m, size=count)]


def test_a_rule_of_ones_own_does_not_come_back_as_the_packages(tmp_path):
    run = run_with(rule=Hebbian(0.02))
    dataset = ah.record(run, tmp_path)
    with pytest.raises(ah.InputError, match=r"the rule is Hebbian\(eta=0.02\), whose class is not the package's"):
        ah.network_of(dataset)
    assert ah.network_of(dataset, rule=Hebbian(0.02)) == run.network
    with pytest.raises(ah.InputError, match="what is given is 'stimulus'"):
        ah.network_of(dataset, rule=Hebbian(0.02), stimulus=BARS)


def test_a_stimulus_of_ones_own_is_scored_by_its_own_factors(tmp_path):
    run = run_with(stimulus=Crossbars())
    dataset = ah.record(run, tmp_path)
    assert isinstance(dataset, xr.Dataset) and str(dataset.stimulus.values[0]) == "own Crossbars(p=4)"
    assert "factors" not in summary(dataset)  # not those of the package's Crossbars
    found = summary(dataset, run=run)
    counted = metrics.count_fields(dataset.W[-1].values, Crossbars())
    assert found["factors"] == 16 and found["single_fields"] == counted.single
    swept = ah.sweep(run, {"seed": [0]}, tmp_path / "sweep", workers=1, progress=False)
    assert swept.factors.values.tolist() == [16]


def test_the_measures_are_listed():
    listed = call_here("list").stdout
    for measure in measures.MEASURES.values():
        assert f"  {measure.name}({', '.join(measure.needs)})\n      {measure.label}" in listed


def test_the_command_line_records_measures_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text("def largest(W):\n    'The largest weight.'\n    return W.max()\n")
    small = ["--stimulus", "Crossbars(4)", "--n", "20", "--samples", "6", "--hold", "10"]
    done = call_here("run", *small, "--measure", "mine.py:largest", "--measure", "hoyer", folder=tmp_path)
    assert done.returncode == 0 and "The largest weight" in done.stdout, done.stderr
    assert "mine.py has the functions largest" in refused("run", *small, "--measure", "mine.py:other", folder=tmp_path)
    assert "must be one of error" in refused("run", *small, "--measure", "eror", folder=tmp_path)
    swept = ["--vary", "seed=range(2)", "--workers", "1", "--out", "swept", "--measure", "mine.py:largest"]
    done = call_here("sweep", "run", *small, *swept, folder=tmp_path)
    assert done.returncode == 0 and ah.open_sweep(tmp_path / "swept").largest.notnull().all(), done.stderr
