"""Figures of saved runs, and how values show themselves in a notebook."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from test_cli import SMALL, call_here, refused

import asynchebb as ah
from asynchebb import thumbnails

PHASES = (ah.Phase(ah.Crossbars(6), 20, 50, snapshots=2), ah.Phase(ah.Squares(6), 20, 50, snapshots=2))


@pytest.fixture(scope="module")
def two_phases(tmp_path_factory):
    run = ah.Run(ah.asynchronous(20, 36, reading="notebook"), PHASES)
    return ah.record(run, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def discrete(tmp_path_factory):
    run = ah.Run(ah.discrete(20, 36, reading="notebook"), PHASES)
    return ah.record(run, tmp_path_factory.mktemp("runs"))


def lines(axes):
    return [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]


def test_every_plot_over_time_marks_where_a_phase_ends(two_phases, discrete):
    for figure in (ah.plot.error(two_phases), ah.plot.similarity(two_phases, discrete), ah.plot.run(two_phases)):
        over_time = [axes for axes in figure.axes if axes.get_xlabel() == "Euler step"]
        assert len(over_time) == 1 and lines(over_time[0]) == [1000]
    [over_time, *_] = ah.plot.compare([two_phases, discrete]).axes
    assert lines(over_time) == [1000]
    said = [text.get_text() for text in over_time.get_legend().get_texts()]
    assert said[0].startswith("A: Asynchronous Hebbian") and said[1].startswith("B: Discrete Hebbian")


def test_runs_are_told_apart_by_what_differs(tmp_path):
    def saved(**changes):
        network = ah.asynchronous(10, 36, **{k: v for k, v in changes.items() if k != "seed"})
        return ah.record(ah.Run(network, PHASES[0], seed=changes.get("seed", 0)), tmp_path)

    one, other = saved(), saved(seed=3, schedule=ah.Asynchronous(r_b=0.2))
    assert ah.plot.differences([one, other]) == [
        "Asynchronous(r_b=0.75, r_r=100), seed 0",
        "Asynchronous(r_b=0.2, r_r=100), seed 3",
    ]


def test_both_errors_of_each_probe_are_drawn(two_phases):
    drawn = [line for line in ah.plot.error(two_phases).axes[0].lines if len(line.get_xdata()) == 5]
    assert len(drawn) == 4
    assert np.array_equal(drawn[0].get_ydata(), two_phases.error[:, 0])
    assert np.array_equal(drawn[3].get_ydata(), two_phases.error_last[:, 1])


def test_similarity_is_that_of_the_metrics(two_phases, discrete):
    def drawn(figure):
        return next(line.get_ydata() for line in figure.axes[0].lines if len(line.get_xdata()) == 5)

    similarity = ah.metrics.weight_similarity
    with_other = [similarity(two_phases.W[k].values, discrete.W[k].values).mean() for k in range(5)]
    np.testing.assert_allclose(drawn(ah.plot.similarity(two_phases, discrete)), with_other)
    own = drawn(ah.plot.similarity(two_phases, weights="M"))
    assert own[-1] == pytest.approx(1) and own[0] < 1


def test_a_raster_shows_each_burst():
    network = ah.asynchronous(30, 36, reading="notebook", schedule=ah.Asynchronous(r_b=0.1, r_r=20))
    X = ah.Crossbars(6).sample(np.random.default_rng(0), 4)
    _, traces = ah.advance(network, network.init(np.random.default_rng(0)), X, 100, trace=("burst",))
    axes = ah.plot.raster(traces, hold=100).axes[0]
    points = axes.collections[0].get_offsets()
    assert len(points) == traces["burst"].sum() > 0
    assert np.array_equal(np.unique(points[:, 0]), np.flatnonzero(traces["burst"].any(axis=1)))
    assert [line.get_xdata()[0] for line in axes.lines] == [100, 200, 300]


def test_widths_are_those_of_journals(two_phases):
    assert ah.plot.error(two_phases).get_figwidth() == 3.5
    assert ah.plot.activity(two_phases, width="double").get_figwidth() == 7.2
    assert ah.plot.fields(two_phases, width=5).get_figwidth() == 5


def test_fields_of_files_states_and_estimators(two_phases, tmp_path):
    X = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
    model = ah.AsyncHebbian(10, max_iter=1, random_state=0).fit(X)
    file = two_phases.encoding["source"]
    for source in (two_phases, file, ah.state_at(two_phases), model):
        canvas = ah.plot.fields(source, most=9).axes[0].images[0].get_array()
        assert canvas.shape == (22, 22)  # nine fields of 6 × 6 and the gaps between them


def test_a_figure_shows_itself_sharp(two_phases):
    png, size = ah.plot.error(two_phases)._repr_png_()
    width, height = Image.open(io.BytesIO(png)).size
    assert (width, height) == (2 * size["width"], 2 * size["height"]) and size["width"] == 336


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run: ah.plot.error(3), "source is 3; it must be a saved run"),
        (lambda run: ah.plot.error(run, width="wide"), "width is 'wide'; it must be single, double or a number"),
        (lambda run: ah.plot.similarity(run, weights="u"), "weights is 'u'; it must be one of W, M"),
        (lambda run: ah.plot.similarity(run, run.isel(snapshot=slice(3))), "other has snapshots at other steps"),
        (lambda run: ah.plot.raster(np.zeros(3)), r"bursts has shape \(3,\); it must be \(steps, neurons\)"),
        (lambda run: ah.plot.raster({"y": np.zeros((3, 3))}), 'bursts has neither "burst" nor "spikes"'),
        (lambda run: ah.plot.compare([run]), "sources has length 1; it must hold 2 to 8 runs"),
        (lambda run: ah.plot.fields(run, most=0), "most is 0"),
        (lambda run: ah.plot.compare(run, run), "sources is a value of class Dataset; it must be a list of saved runs"),
        (lambda run: ah.plot.fields(run, shape=(3, 3)), r"shape is \(3, 3\); it must be \(height, width\)"),
        (lambda run: ah.plot.fields(ah.AsyncHebbian()), "it must be fitted"),
        (lambda run: ah.plot.compare([run, run], names=["a"]), "names has 1 names; there are 2 runs"),
    ],
)
def test_bad_arguments(call, said, two_phases):
    with pytest.raises(ah.InputError, match=said):
        call(two_phases)


def test_the_command_compares_runs(tmp_path):
    for model in ("asynchronous", "discrete"):
        assert call_here("run", *SMALL, "--model", model, "--out", tmp_path / f"{model}.nc").returncode == 0
    files = [tmp_path / "asynchronous.nc", tmp_path / "discrete.nc"]
    done = call_here("show", *files)
    assert done.returncode == 0 and (tmp_path / "comparison.png").exists()
    assert "Asynchronous Oja" in done.stdout and re.search(r"reconstruction error, mean.*\d\.\d+.*\d\.\d+", done.stdout)


def test_run_takes_several_phases_a_threshold_and_a_refractory_period(tmp_path):
    phases = ("--phase", "Crossbars(6)", "--phase", "Squares(6), samples=20, hold=10")
    small = ("--n", 20, "--samples", 30, "--hold", 20, "--snapshots", 2, "--r-b", 0.3, "--r-r", 50)
    assert call_here("run", *phases, *small, "--out", tmp_path).returncode == 0
    [file] = tmp_path.glob("*.nc")
    assert re.fullmatch(r"asynchronous-oja-crossbars6\+squares6-n20-seed0-[0-9a-f]{20}\.nc", file.name)
    dataset = ah.open_run(file)
    assert dataset.step.values.tolist() == [0, 300, 600, 700, 800] and len(dataset.stimulus) == 2
    assert dataset.attrs["schedule"] == "Asynchronous(r_b=0.3, r_r=50.0)"
    assert "phase and stimulus are both given" in refused("run", *phases, "--stimulus", "Bars(6)")
    assert "after the stimulus it may have samples=…" in refused("run", "--phase", "Bars(6), speed=3")
    assert "all must have equally many" in refused("run", "--phase", "Bars(6)", "--phase", "Bars(7)")
    assert "the discrete model has none" in refused("run", "--model", "discrete", "--r-b", 1)
    assert "--schedule sets that" in refused("run", "--schedule", "Discrete()", "--r-b", 1)
    assert "looks like a file; it must be a folder or a .nc file" in refused("run", *phases, "--out", "a.csv")


# In a notebook


def pictures(html):
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(one)))) for one in found]


def test_a_network_shows_its_equations_and_constants():
    html = ah.asynchronous(50, 36)._repr_html_()
    assert "50 neurons with 36 inputs" in html and "Δw_ij = η (y_i x_j − y_i² w_ij)" in html and "r_b = 0.75" in html


def test_stimuli_show_samples():
    [picture] = pictures(ah.Crossbars(6)._repr_html_())
    assert picture.shape == (8, 12 * 8)
    first = ah.Crossbars(6).sample(np.random.default_rng(0), 1).reshape(6, 6)
    assert np.array_equal(picture[1:7, 1:7], (255 * first).astype(np.uint8))
    [signed] = pictures(ah.Patches(8)._repr_html_())
    assert signed.shape == (10, 120) and abs(int(np.median(signed)) - 127) < 12
    assert pictures(ah.FromArray(np.random.default_rng(0).random((5, 7)))._repr_html_())


def test_a_state_and_a_run_show_pictures(two_phases):
    html = ah.state_at(two_phases)._repr_html_()
    assert "W 20 × 36" in html and pictures(html)[0].shape == (16, 96)
    run = ah.Run(ah.asynchronous(20, 36), PHASES)
    assert len(pictures(run._repr_html_())) == 2 and run.identity in run._repr_html_()


def test_shapes_are_guessed():
    assert thumbnails.guessed_shape(36) == (6, 6) and thumbnails.guessed_shape(72) == (1, 72)
