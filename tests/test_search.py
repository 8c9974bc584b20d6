"""Searches of a space of parameters, in a sweep's folder."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from test_cli import call_here, refused

import asynchebb as ah
from asynchebb.sweeps import Folder, dataset, executors, plots, sampling
from asynchebb.sweeps.grid import pair_from_text

BASE = ah.Run(ah.asynchronous(20, 16, reading="notebook"), ah.Phase(ah.Crossbars(4), samples=20, hold=20, snapshots=1))
SPACE = {"rule.eta": ah.Range(1e-4, 1e-1, log=True), "schedule.r_b": [0.1, 0.5]}


def search(folder, **changes):
    options = {"trials": 6, "batch": 3, "progress": False, "sampler": "random", **changes}
    with ThreadPoolExecutor(1) as executor:  # a process would take longer to start than all runs
        return ah.search(BASE, options.pop("space", SPACE), folder, executor=executor, **options)


@pytest.mark.parametrize("sampler", ["random", "adaptive"])
def test_a_search_can_be_repeated_and_continued(sampler, tmp_path):
    first = search(tmp_path / "a", sampler=sampler)
    assert first.sizes["trial"] == 6 and first.error.dims == ("trial", "seed")
    assert ((first["rule.eta"] >= 1e-4) & (first["rule.eta"] <= 1e-1)).all()
    assert {*first["schedule.r_b"].values} <= {0.1, 0.5}
    made = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "a" / "runs").glob("*.nc")}
    more = search(tmp_path / "a", sampler=sampler, trials=8)
    assert more.isel(trial=slice(6))["rule.eta"].identical(first["rule.eta"])
    for file, when in made.items():
        assert (tmp_path / "a" / "runs" / file).stat().st_mtime_ns == when  # nothing was run again
    assert len(Folder(tmp_path / "a").grid_names()) == 1  # that of all trials, none of batches
    assert search(tmp_path / "b", sampler=sampler, trials=8).error.identical(more.error)
    assert search(tmp_path / "b", sampler=sampler, trials=2).sizes["trial"] == 8  # it keeps what it has


def test_an_adaptive_search_tries_values_near_the_best(tmp_path, monkeypatch):
    """On a measure that is known: the learning rate's distance from 0.03, on a logarithmic scale."""

    def distance(folder, runs, measure):
        return float(np.mean([abs(np.log10(run.network.rule.eta / 0.03)) for run in runs]))

    monkeypatch.setattr(sampling, "_mean", distance)
    monkeypatch.setattr(sampling, "run_points", lambda *rest: None)
    space = sampling.space_of(BASE, {"rule.eta": ah.Range(1e-6, 1, log=True)})
    found = {}
    for sampler in ("adaptive", "random"):
        options = dict(measure="error", goal=None, trials=60, seeds=1, sampler=sampler, batch=5)
        points = sampling.search_runs(BASE, space, tmp_path / sampler, executors.local(1), "cpu", **options)
        tried = points.content["axes"][0][1]["values"]
        found[sampler] = np.mean([abs(np.log10(eta / 0.03)) for eta in tried[30:]])
    assert found["adaptive"] < 0.5 * found["random"]


def test_optunas_own_samplers_can_be_given(tmp_path):
    import optuna

    assert search(tmp_path, sampler=optuna.samplers.QMCSampler(seed=1), trials=3).sizes["trial"] == 3


def test_seeds_are_averaged_and_failures_left_out(tmp_path):
    found = search(tmp_path, seeds=3, trials=2)
    assert found.error.sizes == {"trial": 2, "seed": 3}
    mean, sd = plots.of_trials(found, "error")
    assert mean == pytest.approx(found.error.mean("seed").values) and (sd > 0).all()
    runs = [ah.Run(BASE.network, BASE.phases, seed=k) for k in range(2)]
    assert sampling._mean(Folder(tmp_path), runs, "error") is None  # these have no results
    probed = [{"error": [0.1, 0.3]}, {}]  # two probes, and a seed that failed
    for run, content in zip(runs, probed, strict=True):
        Folder(tmp_path).write(Folder(tmp_path).file(run.identity, "json"), content)
    assert sampling._mean(Folder(tmp_path), runs, "error") is None
    assert sampling._mean(Folder(tmp_path), runs[:1], "error") == pytest.approx(0.2)


def test_whole_numbers_and_values_of_a_kind():
    space = sampling.space_of(BASE, {"hold": ah.Range(10.5, 13.5), "rule": [ah.Hebbian(), ah.Oja()]})
    assert space["hold"] == sampling.Whole(11, 13, False)
    drawn = sampling.Random(space, 0).ask(50)
    assert sampling._axes([{"rule": ah.Oja(), "rule.eta": 0.1}], 0, 1)[0][1]["values"] == ["Oja"]
    assert {trial["hold"] for trial in drawn} == {11, 12, 13} and {*map(type, space["rule"])} == {ah.Hebbian, ah.Oja}
    even, log = (sampling.Random({"x": ah.Range(1, 100, log=log)}, 0).ask(2000) for log in (False, True))
    below = [np.mean([trial["x"] < 10 for trial in drawn]) for drawn in (even, log)]
    assert below[0] == pytest.approx(0.09, abs=0.03) and below[1] == pytest.approx(0.5, abs=0.05)
    holds = sampling.Random(sampling.space_of(BASE, {"hold": ah.Range(10, 1000, log=True)}), 0).ask(2000)
    assert np.mean([trial["hold"] < 100 for trial in holds]) == pytest.approx(0.5, abs=0.05)
    assert {type(trial["hold"]) for trial in holds} == {int} and min(trial["hold"] for trial in holds) >= 10


@dataclass(frozen=True)
class Failing:
    """A stimulus that cannot be drawn."""

    m: int = 16

    def sample(self, rng, count):
        raise RuntimeError("no picture today")


def test_failures_and_silent_networks_are_told(tmp_path):
    base = ah.Run(ah.asynchronous(20, 16), ah.Phase(ah.Crossbars(4), 5, 5, snapshots=1), (ah.Probe(Failing()),))
    with pytest.warns(UserWarning, match="2 of 2 runs failed"):
        ah.search(base, {"rule.eta": [0.01]}, tmp_path / "a", trials=1, seeds=2, workers=1, sampler="random")
    with pytest.warns(ah.SilentNetwork, match="2 of 2 runs learned nothing"):
        search(tmp_path / "b", space={"schedule.r_b": [100.0, 200.0]}, trials=2)


def test_text():
    assert pair_from_text("rule.eta=log(1e-4, 1e-1)") == ("rule.eta", (1e-4, 1e-1, True))
    assert pair_from_text("r=linear(0, 2)") == ("r", (0, 2, False))
    assert pair_from_text("r=linear(0, 2, 5)")[1] is None and pair_from_text("r=1,2")[1] is None
    space = sampling.space_from_text(BASE, ["rule.eta=log(1e-4, 1e-1)", "hold=range(5, 8)"])
    assert space == {"rule.eta": ah.Range(1e-4, 1e-1, log=True), "hold": [5, 6, 7]}


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"space": {}}, "space is empty"),
        ({"space": {"seed": [1, 2]}}, "space names seed; it must be left out"),
        ({"space": {"rule.eta": []}}, "space gives rule.eta no value"),
        ({"space": {"rule.etta": [1]}}, "names 'rule.etta'"),
        ({"space": {"rule.eta": ah.Range(-1, 1)}}, "eta is -1"),
        ({"measure": "gini"}, "neither less nor more is better; goal must say which"),
        ({"measure": "beauty"}, "measure is 'beauty'; it must be one of error"),
        ({"goal": "most"}, "goal is 'most'; it must be one of less, more"),
        ({"sampler": "grid"}, "sampler is 'grid'; it must be one of adaptive, random"),
        ({"trials": 0}, "trials is 0"),
        ({"measure": "code_error"}, "measure is 'code_error'; it must be one of error"),
        ({"space": {"hold": ah.Range(10.2, 10.8)}}, "must span at least two whole numbers"),
    ],
)
def test_bad_searches_are_refused_before_anything_is_written(changes, says, tmp_path):
    with pytest.raises(ah.InputError, match=says):
        search(tmp_path / "F", **changes)
    assert not (tmp_path / "F" / "grids").exists() or not [*(tmp_path / "F" / "grids").iterdir()]


def test_ranges_are_checked():
    for low, high, log in ((1, 1, False), (0, 1, True), (2, 1, False)):
        with pytest.raises(ah.InputError, match="Range is from"):
            ah.Range(low, high, log)


def test_without_optuna(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ah.InputError, match="needs the package optuna"):
        search(tmp_path, sampler="adaptive")


def test_the_command(tmp_path):
    arguments = ("--stimulus", "Crossbars(4)", "--n", 20, "--samples", 20, "--hold", 20, "--workers", 1, "--out", "S")
    vary = ("--vary", "rule.eta=log(1e-3, 1e-1)", "--vary", "rule=Hebbian(),Oja()")
    done = call_here("sweep", "search", *arguments, *vary, "--trials", 4, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the best trials, by" in done.stdout and "4 trials: S" in done.stdout
    assert call_here("sweep", "plot", tmp_path / "S").returncode == 0 and (tmp_path / "S" / "error.png").exists()
    table = dataset.table(ah.open_sweep(tmp_path / "S"))
    assert [*table.columns[:4]] == ["trial", "seed", "rule.eta", "rule"] and len(table) == 4
    assert "neither less nor more is better" in refused("sweep", "search", *vary, "--objective", "gini")
    assert "written like log(1e-4, 1e-1)" in refused("sweep", "search", "--vary", "rule.eta=log(a, 1)")
