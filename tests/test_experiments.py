"""The paper's experiments: what is run, how claims are judged, and the whole reproduction at smoke scale."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from test_cli import call, refused

import asynchebb as ah
from asynchebb import files, metrics
from asynchebb.checks import InputError
from asynchebb.drawing import movies
from asynchebb.reproduction import effort, report
from asynchebb.reproduction.claims import FAILS, HOLDS, IN_PART, NOT_RUN, Claim, Means, Part, judge, overall
from asynchebb.reproduction.experiments import fig2, fig3, gabor, robustness
from asynchebb.reproduction.readings import PRESET, READINGS, WHOLE, network_of, readings
from asynchebb.reproduction.reproduce import EXPERIMENTS, experiments, reproduce
from asynchebb.reproduction.results import Results, ends, fate_of_fields, products
from asynchebb.reproduction.scale import SCALES
from asynchebb.sweeps import executors

ALL_CLAIMS = [claim for module in EXPERIMENTS.values() for claim in module.CLAIMS]
SMOKE = ("reproduce", "--scale", "smoke")


# Judging

TWO_PARTS = Claim("t", "", "", "", {"a": "", "b": ""}, [Part("a", lambda v: v.a > 1), Part("b", lambda v: v["b"] > 1)])


def test_a_claim_holds_if_all_its_parts_do_for_the_mean_over_seeds():
    assert judge(TWO_PARTS, {"a": [0, 4], "b": [2, 2]}).holds == HOLDS
    assert judge(TWO_PARTS, {"a": [0, 4], "b": [2, 0]}).holds == IN_PART
    assert judge(TWO_PARTS, {"a": [0, 1], "b": [2, 0]}).holds == FAILS
    assert judge(TWO_PARTS, {"c": [0, 1]}).holds == NOT_RUN
    with pytest.raises(ValueError, match=r"claim .* shows b, which is not measured; is it misspelt"):
        judge(TWO_PARTS, {"a": [0, 1]})
    verdict = judge(TWO_PARTS, {"a": [1, 2, 3], "b": [0, 0, 0]})
    assert verdict.mean == {"a": 2, "b": 0} and verdict.sd == {"a": 1, "b": 0}
    assert verdict.parts == {"a": True, "b": False}
    assert judge(TWO_PARTS, {"a": [1], "b": [0]}).sd == {"a": None, "b": None}
    uneven = judge(TWO_PARTS, {"a": [0, 4], "b": [2]})  # only the first seed has both
    assert uneven.seeds == {"a": 0, "b": 1} and uneven.sd == {"a": pytest.approx(8**0.5), "b": None}
    given = TWO_PARTS._replace(parts=[TWO_PARTS.parts[0]._replace(is_given=True), TWO_PARTS.parts[1]])
    assert judge(given, {"a": [2], "b": [0]}).holds == FAILS and judge(given, {"a": [0], "b": [2]}).holds == IN_PART


@pytest.mark.parametrize(
    ("preset", "other", "expected"),
    [
        (HOLDS, FAILS, HOLDS),
        (IN_PART, FAILS, IN_PART),
        (FAILS, HOLDS, IN_PART),
        (FAILS, IN_PART, FAILS),
        (FAILS, NOT_RUN, FAILS),
        (NOT_RUN, HOLDS, HOLDS),
        (NOT_RUN, FAILS, FAILS),
        (NOT_RUN, NOT_RUN, NOT_RUN),
    ],
)
def test_overall_counts_the_presets_reading_first(preset, other, expected):
    verdicts = {
        PRESET: judge(TWO_PARTS, {})._replace(holds=preset),
        "other": judge(TWO_PARTS, {})._replace(holds=other),
    }
    assert overall(verdicts, PRESET) == expected


def test_readings_that_disagree_without_the_presets_hold_in_part():
    one, other = (judge(TWO_PARTS, {})._replace(holds=holds) for holds in (HOLDS, FAILS))
    assert overall({"one": one, "other": other}, PRESET) == IN_PART
    assert overall({"one": one, "same": one}, PRESET) == HOLDS


def test_every_claim_of_the_paper_is_judged():
    wanted = {"1a", "1b", "1c", "1d", "1e", "1f", "2a", "2b", "2c", "2d", "2e", "2f", "2g", "2h, 2i", "3a", "3b", "3c"}
    assert wanted | {"A", "C", "F"} <= {claim.id for claim in ALL_CLAIMS}  # S is judged by what the runs took


@pytest.mark.parametrize("claim", ALL_CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_is_judged_by_the_measures_it_shows_and_each_part_can_hold_and_fail(claim):
    class Seen(Means):
        def __getitem__(self, name):
            asked.add(name)
            return super().__getitem__(name)

    asked, outcomes = set(), {part.says: set() for part in claim.parts}
    rng = np.random.default_rng(0)
    for _ in range(3000):
        size = 10.0 ** rng.uniform(-2, 1)
        means = Seen({name: float(rng.random() * size) for name in claim.shows})
        if claim.id == "J":  # shares of parts that hold: all of them, or not
            means = Seen({name: float(rng.integers(2)) for name in claim.shows})
        if claim.id in ("N", "V14"):
            means["asynchronous_orientations"] = means["patches_spiking_orientations"] = float(rng.integers(7, 9))
        if claim.id == "2g":
            means["discrete_staircase"] = float(rng.integers(2))
        for part in claim.parts:
            outcomes[part.says].add(bool(part.holds(means)))
    assert asked <= set(claim.shows)
    assert all(found == {True, False} for found in outcomes.values()), outcomes
    assert "{" not in claim.instead.format(**{name: "0.5" for name in claim.shows})


def test_the_readme_and_the_docs_have_every_claim_and_agree():
    here = Path(__file__).parents[1]
    docs, readme = ((here / file).read_text() for file in ("docs/claims.md", "README.md"))
    in_docs = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| (.) [a-z ]+ \| (.) [a-z ]+ \|", docs, re.M)
    in_readme = re.findall(r"^\| ([✓◐✗]) \| ([✓◐✗·]) \| ([^|]+) \| ([^|]+) \|", readme, re.M)
    assert {claim for claim, *_ in in_docs} == {claim.id for claim in ALL_CLAIMS} | {"S"}
    assert [(claim, says, small, paper) for small, paper, claim, says in in_readme] == in_docs


def test_the_report_at_the_papers_scale_has_the_verdicts_and_the_figures_that_the_docs_refer_to():
    docs = Path(__file__).parents[1] / "docs"
    page, claims = ((docs / file).read_text() for file in ("paper_scale.md", "claims.md"))
    on_page = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| (.) [a-z ]+ \|", page, re.M))
    assert on_page == dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| . [a-z ]+ \| ([^·]) [a-z ]+ \|", claims, re.M))
    assert {*on_page} == {claim.id for claim in ALL_CLAIMS}
    pictures = re.findall(r"\]\((images/paper/\w+[-\w]*\.png)\)", page)
    assert len(pictures) > 20 and {docs / name for name in pictures} == {*(docs / "images" / "paper").iterdir()}


def test_time_and_memory_are_judged_only_where_each_run_had_a_core_to_itself(tmp_path):
    runs = [*EXPERIMENTS["fig1"].runs(SCALES["smoke"]).values()][:2]
    effort.add(tmp_path, "smoke", 10, 2, runs)
    work = effort.so_far(tmp_path, "smoke")
    assert effort.judged(work).claim.id == "S" and report.command("smoke", work) == "asynchebb reproduce --scale smoke"
    effort.add(tmp_path, "smoke", 1, 2, runs[:1], gpu="NVIDIA H200")
    effort.add(tmp_path, "smoke", drawing=1)
    work = effort.so_far(tmp_path, "smoke")
    assert work["runs"] == 3 and work["gpu"] == "NVIDIA H200" and effort.judged(work) is None
    assert report.command("smoke", work) == "asynchebb reproduce --scale smoke --engine gpu"


def test_the_tables_on_spiking_neurons_are_those_that_were_measured():
    docs = Path(__file__).parents[1] / "docs"
    measured = {*(docs / "measured.md").read_text().splitlines()}
    tables = [line for line in (docs / "spiking.md").read_text().splitlines() if line.startswith("| ")]
    assert len(tables) > 30 and {*tables} <= measured


# What is run


def test_figures_are_found_by_their_experiment_or_their_own_name_and_unknown_ones_are_refused():
    scale = SCALES["smoke"]
    assert experiments([], scale) == [*EXPERIMENTS]
    assert experiments(["figC3", "fig1"], scale) == ["fig1", "figC"]
    with pytest.raises(InputError, match="figures names 'fig9'; it must name some of fig1, background, fig2"):
        experiments(["fig9"], scale)
    drawn = {name for module in EXPERIMENTS.values() for name in module.captions(scale)}
    paper = {"fig1", "fig2", "fig3", "figA1", "figA2", *(f"fig{k}{j}" for k in "CF" for j in "1234")}
    assert paper <= drawn


def test_runs_that_figures_share_are_the_same_run():
    scale = SCALES["small"]
    runs = {name: {run.identity for run in module.runs(scale).values()} for name, module in EXPERIMENTS.items()}
    assert runs["figF"] <= runs["fig1"] | runs["fig3"]
    assert runs["fig1"] <= runs["fig2"]
    assert runs["figA"] & runs["fig2"] and runs["figC"] & runs["fig2"] and runs["search"] <= runs["fig1"] | runs["fig3"]
    assert runs["background"] <= runs["fig1"] and runs["rates"] & runs["fig1"]


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_scales_have_the_sizes_that_they_say(scale):
    steps = {"small": 1_000_000, "paper": 10_000_000}[scale]
    for run in EXPERIMENTS["fig2"].runs(SCALES[scale]).values():
        wanted = steps if run.phases[0].hold == 500 else SCALES[scale].short_hold_steps
        assert abs(run.steps - wanted) < 500 and run.network.n == 500 and run.network.m == 196
    kept = {run.identity: run for module in EXPERIMENTS.values() for run in module.runs(SCALES[scale]).values()}
    size = sum(len(run.stops()) * run.network.n * (run.network.n + run.network.m) * 4 for run in kept.values())
    assert size < 2e9
    for reading in readings(SCALES[scale]):
        seeds = {seed for name, _, seed in EXPERIMENTS["fig1"].runs(SCALES[scale]) if name == reading}
        assert seeds == ({0, 1, 2} if reading in WHOLE else {0})


def test_the_first_reading_is_the_presets():
    assert next(iter(READINGS)) == PRESET
    for model, preset in ah.network.MODELS.items():
        assert network_of(READINGS[PRESET], model, SCALES["small"]) == preset()


# Measures


def test_products_are_the_synapses_whose_hebbian_product_is_not_zero(engine):
    bars = ah.Crossbars(5)
    run = ah.Run(ah.asynchronous(12, 25, schedule=ah.Asynchronous(r_b=0.1, r_r=3)), [ah.Phase(bars, 3, hold=20)])
    X = bars.sample(np.random.default_rng(0), 3)
    state = run.network.init(np.random.default_rng(1))
    _, traces = ah.advance(run.network, state, X, 20, engine, ("y", "burst"))
    counted = products(run, traces | {"X": X})
    for t in range(60):
        y, x, gate = traces["y"][t], X[t // 20], traces["burst"][t]
        by_hand = np.count_nonzero(np.outer(y * gate, x)) + np.count_nonzero(np.outer(y * gate, y))
        assert counted[t] == by_hand
    assert counted.max() > 0


def test_the_fate_of_fields_tells_kept_redundant_and_taken_ones_apart():
    sets = ah.Crossbars(6), ah.Squares(6), ah.Diagonals(6)
    bars, squares, noise = sets[0].factors(), sets[1].factors(), np.random.default_rng(0).random((2, 36))
    before = np.stack([bars[0], bars[0], bars[1], bars[2], noise[0], noise[1]])
    # One of two neurons of bar 0, the only one of bar 1, and a free one come to show squares.
    after = np.stack([bars[0], squares[0], squares[1], bars[2], squares[2], noise[1]])
    fate = fate_of_fields(before, after, sets)
    assert fate == {"bars_kept": 2 / 3, "fields_kept": 0.5, "took_up": 3.0, "taken_from_free": 2 / 3}
    assert list(metrics.tuned_to(before, sets[0])) == [0, 0, 1, 2, -1, -1]
    assert list(metrics.tuned_to(np.maximum(bars[:1], bars[7:8]), sets[0])) == [-2]


@pytest.mark.parametrize("orientation", [0.0, 0.7, 2.0, 3.0])
def test_a_gabor_function_is_found_again(orientation):
    made = gabor.gabor(
        np.indices((12, 12)), np.array([1, 5.0, 6.0, np.log(1.8), np.log(2.6), orientation - np.pi / 2, 0.2, 0.4])
    )
    found = gabor.fit(made)
    assert found.explained > 0.999 and found.frequency == pytest.approx(0.2, abs=0.01)
    apart = abs(found.orientation - orientation % np.pi)
    assert min(apart, np.pi - apart) < 0.02 and found.width == pytest.approx(np.sqrt(1.8 * 2.6), rel=0.05)
    assert gabor.fit(np.random.default_rng(0).random((12, 12))).explained < 0.5
    assert gabor.fit(np.zeros((12, 12))).explained == 0


def test_figure_2_compares_networks_of_the_same_start_and_stimuli():
    runs = fig2.runs(SCALES["smoke"])
    starts = [
        next(ah.simulate(runs[PRESET, model, 1], engine="reference")).state for model in ("asynchronous", "discrete")
    ]
    assert np.array_equal(starts[0].W, starts[1].W) and np.array_equal(starts[0].M, starts[1].M)
    assert runs[PRESET, "asynchronous", 1].phases == runs[PRESET, "discrete", 1].phases


# The whole: one test, so that it is made once


def test_the_whole_is_made_by_one_command_and_goes_on_whatever_happens_to_it(tmp_path):
    folder = tmp_path / "whole"
    done = call(*SMOKE, "--out", folder)
    assert done.returncode == 0, done.stderr
    every_figure_is_drawn_and_every_claim_is_judged(folder, done)
    the_report_needs_nothing_but_itself(folder)
    results_open_runs_by_the_experiments_own_names(folder)
    a_damaged_run_is_named_and_run_again_and_the_others_are_only_drawn_again(folder)
    a_run_that_fails_is_named_and_the_rest_is_reported(folder)


def without_times(folder):
    content = files.read_json("claims", folder / "claims.json")
    content.pop("work")
    content["claims"] = [claim for claim in content["claims"] if claim["id"] != "S"]
    return content


def every_figure_is_drawn_and_every_claim_is_judged(folder, done):
    for module in EXPERIMENTS.values():
        for name in module.captions(SCALES["smoke"]):
            assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    content = json.loads((folder / "claims.json").read_text())
    claims = {claim["id"]: claim for claim in content["claims"]}
    assert {*claims} == {claim.id for claim in ALL_CLAIMS} | {"S"}
    for claim in claims.values():
        for verdict in claim["readings"].values():
            assert {*verdict["mean"]} == {*claim["measures"]} and all(np.isfinite([*verdict["mean"].values()]))
        if claim["id"] != "S":  # what is written about a claim follows from the numbers that are written with it
            [judged] = [one for one in ALL_CLAIMS if one.id == claim["id"]]
            verdicts = {name: judge(judged, of["values"]) for name, of in claim["readings"].items()}
            assert {name: verdict._asdict() for name, verdict in verdicts.items()} == claim["readings"]
            assert claim["holds"] == overall(verdicts, PRESET) != NOT_RUN
    assert {*claims["1a"]["readings"]} == {*WHOLE}
    assert content["scale"]["name"] == "smoke" and content["versions"]["asynchebb"] == ah.__version__
    assert content["work"]["runs"] > 100 and content["work"]["seconds"] > 0
    assert "does not hold" in done.stdout and str(folder / "index.html") in done.stdout


def the_report_needs_nothing_but_itself(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!data:|#|figures/)[^"]*"', page) and "<script" not in page
    assert "@import" not in page and "url(" not in page
    drawn = sum(len(module.captions(SCALES["smoke"])) for module in EXPERIMENTS.values())
    assert page.count("data:image/png;base64,") == drawn
    for claim in ALL_CLAIMS:
        assert f'id="claim-{claim.id.replace(", ", "-")}"' in page
    for file in re.findall(r'href="(figures/[^"]*)"', page):
        assert (folder / file).exists()


def a_damaged_run_is_named_and_run_again_and_the_others_are_only_drawn_again(folder):
    before = {claim["id"]: claim for claim in without_times(folder)["claims"]}
    kept = folder / "sweep" / "runs"
    times = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.nc")}
    damaged = kept / f"{min(run.identity for run in fig3.runs(SCALES['smoke']).values())}.nc"
    whole = damaged.read_bytes()
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 1  # one bit, which HDF5 itself would not notice
    damaged.write_bytes(spoilt)
    again = call(*SMOKE, "fig3", "--out", folder)
    assert again.returncode == 0 and str(damaged) in again.stderr and "is run again" in again.stderr, again.stderr
    assert damaged.with_suffix(".nc.damaged").read_bytes() == spoilt
    assert damaged.read_bytes() == whole
    after = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.nc")}
    assert {name for name in times if times[name] != after[name]} == {damaged.name}
    now = {claim["id"]: claim for claim in without_times(folder)["claims"]}
    assert now == before  # what was run before is still in the report


def test_reproduce_refuses_what_it_does_not_know(tmp_path):
    def refusal(names=(), scale="smoke", engine="reference", out=tmp_path / "new"):
        with pytest.raises(InputError) as refused_with:
            reproduce(names, scale, out, executors.local(1), 1, engine)
        return str(refused_with.value)

    assert "scale is 'large'; it must be one of smoke, small, paper" in refused("reproduce", "--scale", "large")
    assert "figures names 'fig7'; it must name some of fig1" in refusal(["fig7"])
    assert "engine is 'foo'" in refusal(engine="foo")
    assert not [*tmp_path.glob("new/*")]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    assert "which holds other files" in refusal(out=tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["index.html"]
    (tmp_path / "file").write_text("")
    assert "out is" in refusal(out=tmp_path / "file")


def a_run_that_fails_is_named_and_the_rest_is_reported(folder):
    runs = robustness.runs(SCALES["smoke"])
    own = {run.identity for run in runs.values()} - {run.identity for run in fig3.runs(SCALES["smoke"]).values()}
    victim = folder / "sweep" / "runs" / sorted(own)[0]
    kept = victim.with_suffix(".json").read_bytes()
    victim.with_suffix(".json").unlink()
    files.write_json(victim.with_suffix(".failed"), {"run": "", "error": "it broke"})
    try:
        done = call(*SMOKE, "robustness", "fig3", "--out", folder)
        assert done.returncode == 1 and "it broke" in done.stderr
        ids = {claim["id"] for claim in json.loads((folder / "claims.json").read_text())["claims"]}
        assert "3a" in ids and "T" not in ids
        assert "it broke" in (folder / "index.html").read_text()
    finally:
        victim.with_suffix(".failed").unlink()
        victim.with_suffix(".json").write_bytes(kept)


def results_open_runs_by_the_experiments_own_names(folder):
    runs = fig3.runs(SCALES["smoke"])
    results = Results(runs, folder / "sweep" / "runs", "cpu")
    kept = results[PRESET, "discrete", 0]
    assert kept["W"].shape[1:] == (SCALES["smoke"].n, 36) and len(results) == len(runs)
    assert ends(kept) == [
        int(np.flatnonzero(np.asarray(kept["phase"]) == phase)[-1])
        for phase in range(len(runs[PRESET, "discrete", 0].phases))
    ]
    results.close()


# Movies


def test_a_movie_of_a_whole_run_has_a_frame_for_each_snapshot(tmp_path):
    from PIL import Image

    run = ah.Run(ah.asynchronous(20, 36), [ah.Phase(ah.Crossbars(6), 8, hold=20, snapshots=4)])
    ah.record(run, tmp_path / "run.nc").close()
    done = call("movie", "run.nc", "--neurons", 9, "--seconds", 2, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "run.gif") as movie:
        pause = 3  # at 2.5 frames a second
        assert 5 <= movie.n_frames <= 5 + pause  # equal frames may be joined into a longer one
    assert "there is no such file" in refused("movie", "other.nc", folder=tmp_path)
    with ah.open_run(tmp_path / "run.nc") as dataset:
        with pytest.raises(InputError, match=r"must be a \.gif or \.mp4 file"):
            movies.write(dataset, tmp_path / "run.avi")
        with pytest.raises(InputError, match="neurons is 0"):
            movies.write(dataset, tmp_path / "run.gif", neurons=0)
        if movies.KINDS[".mp4"].isAvailable():
            movies.write(dataset, tmp_path / "run.mp4", neurons=9)
            assert (tmp_path / "run.mp4").stat().st_size > 0
        else:
            with pytest.raises(InputError, match="needs the program ffmpeg"):
                movies.write(dataset, tmp_path / "run.mp4")
