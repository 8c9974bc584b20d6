"""Data as people have it, and the commands that learn from them; the examples."""

import base64
import gzip
import importlib.util
import io
import re
import struct
from concurrent.futures import Future
from pathlib import Path

import loky
import numpy as np
import pytest
import xarray
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from test_cli import call, call_here, refused

import asynchebb as ah
from asynchebb import engines, notation, tables
from asynchebb.engines import reference
from asynchebb.estimators import model_file
from asynchebb.files import read_json
from asynchebb.own_data import compare, learn, load
from asynchebb.own_data.compare import methods, trial

DIGITS = load_digits()


def small(n=12, **changes):
    return ah.AsyncHebbian(n, **{"random_state": 0, "hold": 50, "settle": 50, "max_iter": 2, **changes})


def idx(array, code):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


# Reading


def test_named_sets_and_stimuli():
    digits, crossbars, bars = (load.load(text) for text in ("digits", "crossbars", "Bars(6, probability=0.2)"))
    assert np.array_equal(digits.X, DIGITS.images) and np.array_equal(digits.labels, DIGITS.target)
    assert crossbars.stimulus == ah.Crossbars(8) and crossbars.X.shape == (2000, 64) and crossbars.labels is None
    assert bars.stimulus == ah.Bars(6, 0.2) and bars.shape == (6, 6)
    assert load.load("Patches(6)").shape == (2, 6, 6)


def test_files_of_numpy_are_read_and_mapped(tmp_path):
    np.save(tmp_path / "x.npy", DIGITS.images[:20].astype(np.uint8))
    found = load.load(str(tmp_path / "x.npy"))
    assert isinstance(found.X, np.memmap) and found.X.dtype == np.uint8 and found.shape == (8, 8)
    np.savez(tmp_path / "all.npz", images=DIGITS.images[:20], target=DIGITS.target[:20], about=np.zeros(3))
    found = load.load(str(tmp_path / "all.npz"))
    assert np.array_equal(found.X, DIGITS.images[:20]) and np.array_equal(found.labels, DIGITS.target[:20])
    np.savez(tmp_path / "two.npz", one=DIGITS.data[:20], other=DIGITS.data[20:40])
    assert np.array_equal(load.load(str(tmp_path / "two.npz"), "other").X, DIGITS.data[20:40])
    np.save(tmp_path / "y.npy", DIGITS.target[:20])
    assert np.array_equal(load.load(str(tmp_path / "x.npy"), labels=str(tmp_path / "y.npy")).labels, DIGITS.target[:20])


def test_netcdf_is_read(tmp_path):
    dataset = xarray.Dataset(
        {"frames": (("sample", "y", "x"), DIGITS.images[:9]), "label": ("sample", DIGITS.target[:9])}
    )
    dataset.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    found = load.load(str(tmp_path / "x.nc"))
    assert np.array_equal(found.X, DIGITS.images[:9]) and np.array_equal(found.labels, DIGITS.target[:9])


@pytest.mark.parametrize("zipped", [False, True])
def test_mnists_files_are_read_with_their_labels(zipped, tmp_path):
    images, labels = DIGITS.images[:30].astype(np.uint8), DIGITS.target[:30].astype(np.uint8)
    end = ".gz" if zipped else ""
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        content = idx(array, 8)
        (tmp_path / f"train-{name}-ubyte{end}").write_bytes(gzip.compress(content) if zipped else content)
    found = load.load(str(tmp_path / f"train-images-idx3-ubyte{end}"))
    assert np.array_equal(found.X, images) and np.array_equal(found.labels, labels) and found.shape == (8, 8)
    floats = np.linspace(0, 1, 24, dtype=">f4").reshape(4, 6)
    (tmp_path / "floats").write_bytes(idx(floats, 13))
    assert np.array_equal(load.load(str(tmp_path / "floats")).X, floats)


def test_a_folder_of_images_is_read_with_its_folders_as_labels(tmp_path):
    for number, image in enumerate(DIGITS.images[:6].astype(np.uint8)):
        folder = tmp_path / "images" / ("even" if number % 2 == 0 else "odd")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.png")
    found = load.load(str(tmp_path / "images"))
    assert np.array_equal(found.X, DIGITS.images[[0, 2, 4, 1, 3, 5]]) and [*found.labels] == ["even"] * 3 + ["odd"] * 3
    assert load.load(str(tmp_path / "images" / "odd")).labels is None
    (tmp_path / "images" / "odd" / ".hidden.png").write_text("not an image")
    assert len(load.load(str(tmp_path / "images")).X) == 6
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "images" / "odd" / "small.png")
    with pytest.raises(ah.InputError, match=r"differ in size: 0.png is \(8, 8\), small.png \(4, 4\)"):
        load.load(str(tmp_path / "images"))


def test_images_of_many_bits_or_with_transparency_keep_what_they_show(tmp_path):
    deep = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    (tmp_path / "deep").mkdir()
    Image.fromarray(deep).save(tmp_path / "deep" / "0.png")
    assert np.array_equal(load.load(str(tmp_path / "deep")).X[0], deep)
    (tmp_path / "clear").mkdir()
    drawing = np.full((8, 8, 4), 255, np.uint8)
    drawing[:4, :, 3] = 0  # white everywhere, of which the upper half is transparent
    Image.fromarray(drawing).save(tmp_path / "clear" / "0.png")
    assert np.array_equal(load.load(str(tmp_path / "clear")).X[0], np.repeat([0, 255], 32).reshape(8, 8))
    (tmp_path / "pages").mkdir()
    pages = [Image.fromarray(image.astype(np.uint8)) for image in DIGITS.images[:3]]
    pages[0].save(tmp_path / "pages" / "0.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(ah.InputError, match="it has 3 pages"):
        load.load(str(tmp_path / "pages"))


def test_what_looks_like_labels_but_is_not_is_no_hindrance(tmp_path):
    xarray.Dataset(
        {"frames": (("time", "y", "x"), DIGITS.images[:9])}, {"y": np.arange(8), "x": np.arange(8)}
    ).to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
    assert load.load(str(tmp_path / "grid.nc")).labels is None
    np.savez(tmp_path / "hot.npz", X=DIGITS.data[:9], y=np.eye(10)[DIGITS.target[:9]])
    assert load.load(str(tmp_path / "hot.npz")).labels is None
    np.savez(tmp_path / "labels.npz", mine=DIGITS.target[:9])
    found = load.load(str(tmp_path / "hot.npz"), labels=str(tmp_path / "labels.npz"))
    assert np.array_equal(found.labels, DIGITS.target[:9])


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("no data at all")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY nothing more")
    (tmp_path / "cut").write_bytes(idx(np.zeros((5, 4, 4), np.uint8), 8)[:-3])
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    np.save(tmp_path / "line.npy", np.zeros(5))
    np.save(tmp_path / "nan.npy", np.array([[0.1, 0.2], [0.3, np.nan]]))
    np.savez(tmp_path / "whole.npz", X=DIGITS.data[:30])
    (tmp_path / "short.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:500])
    (tmp_path / "bad-idx3.gz").write_bytes(gzip.compress(idx(np.zeros((5, 4, 4), np.uint8), 8))[:-9])
    np.savez(tmp_path / "two.npz", one=np.zeros((3, 4)), other=np.zeros((3, 4)))
    for name, said in {
        "missing": "there is no such file",
        "empty": "holds no images",
        "text.txt": "an unsupported kind of file",
        "broken.npy": "cannot be read",
        "cut": r"should hold \(5, 4, 4\) numbers",
        "words.npy": "must hold real numbers",
        "line.npy": r"an array of shape \(5,\)",
        "nan.npy": r"not finite, at \(1, 1\)",
        "short.npz": "cannot be read",
        "bad-idx3.gz": "cannot be read",
        "two.npz": "array is not given.*one, other",
    }.items():
        with pytest.raises(ah.InputError, match=said):
            load.load(str(tmp_path / name))
    with pytest.raises(ah.InputError, match=r"array is 'third'.*one, other"):
        load.load(str(tmp_path / "two.npz"), "third")
    with pytest.raises(ah.InputError, match=r"labels is 'no.npy'; there is no such file"):
        load.load("digits", labels="no.npy")
    with pytest.raises(ah.InputError, match=r"array is 'X'; 'digits' is not a file of several arrays"):
        load.load("digits", "X")
    np.save(tmp_path / "y.npy", np.zeros(7))
    with pytest.raises(ah.InputError, match=r"labels has shape \(7,\); there are 1797 samples"):
        load.load("digits", labels=str(tmp_path / "y.npy"))


# Learning


def test_learn_is_fit_and_leaves_a_model_a_picture_and_a_page(tmp_path):
    shown = load.load("digits")._replace(X=DIGITS.images[:100], labels=DIGITS.target[:100])
    measures = learn.learn(small(), shown, tmp_path, "the command")
    model = ah.load_model(tmp_path / "model.nc")
    fitted = small().fit(DIGITS.images[:100])
    assert all(np.array_equal(a, b) for a, b in zip(model.state_, fitted.state_, strict=True))
    assert measures["samples"] == 200 and measures["error"] == pytest.approx(1 - fitted.score(DIGITS.images[:100]))
    assert (tmp_path / "fields.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text()
    assert "the command" in page and "http" not in page
    assert "12 of 12 neurons have learned a field" in page.partition("</h1>")[2][:200]  # the verdict comes first


def test_the_page_shows_all_fields_in_the_course_of_training(tmp_path):
    data = load.load("Crossbars(6)")
    model = ah.AsyncHebbian(40, r_b=2.0, hold=100, max_iter=1, random_state=0)
    learn.learn(model, data._replace(X=data.X[:300]), tmp_path)
    page = (tmp_path / "report.html").read_text()
    trained = int((model.state_.c < ah.network.NEVER_UPDATED).sum())
    assert 0 < trained < 40 and f"{40 - trained} untrained neurons" in page and f"{trained} of 40 neurons" in page
    titles = re.findall(r'title="neuron (\d+) · mean rate [\d.e-]+ · nearest factor (\d+) \(cosine ([\d.]+)\)"', page)
    assert sorted(int(neuron) for neuron, *_ in titles) == [*range(40)]
    nearest, cosine = ah.metrics.nearest_factors(model.components_, ah.Crossbars(6))
    assert all(int(k) == nearest[int(i)] and float(c) == round(cosine[int(i)], 2) for i, k, c in titles)
    sheets = re.findall(r"--s\d+:url\(data:image/png;base64,([^)]+)\)", page)
    slider = re.search(r'type="range" min="0" max="(\d+)"', page)
    assert len(sheets) == int(slider[1]) + 1 > 3
    last = np.asarray(Image.open(io.BytesIO(base64.b64decode(sheets[-1]))))
    assert last.shape == (2 * 8, 20 * 8)  # two rows of twenty fields of 6 × 6 with their edges twice
    activity = model.transform(data.X[:300]).mean(axis=0)
    first = model.components_[np.argmax(np.where(model.state_.c < ah.network.NEVER_UPDATED, activity, -1))]
    assert np.array_equal(last[1:7, 1:7], np.round(255 * first / first.max()).reshape(6, 6).astype(np.uint8))
    again = ah.AsyncHebbian(40, r_b=2.0, hold=100, max_iter=1, random_state=0)
    before = page
    learn.learn(again, data._replace(X=data.X[:300]), tmp_path)  # nothing is trained again, and nothing is lost
    assert (tmp_path / "report.html").read_text() == before


def test_learning_that_is_broken_off_goes_on_and_ends_in_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(learn, "SAVE_EVERY", 0.0)
    shown = load.Data("some", DIGITS.data[:200])
    learn.learn(small(), shown, tmp_path / "whole")

    def stop(done, of):
        if done > 250:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn.learn(small(), shown, tmp_path / "broken", on_progress=stop)
    assert not (tmp_path / "broken" / "model.nc").exists()
    learn.learn(small(r_b=2), load.Data("other", DIGITS.data[:70]), tmp_path / "broken")  # leaves the part alone
    (tmp_path / "broken" / "model.nc").unlink()
    begun_at: list[int] = []
    learn.learn(small(), shown, tmp_path / "broken", on_progress=lambda done, of: begun_at.append(done))
    assert begun_at[0] > 200 and not [*(tmp_path / "broken").glob("*.part.nc")]
    (one, notes), (other, others) = (model_file.read(tmp_path / name / "model.nc", {}) for name in ("whole", "broken"))
    assert all(np.array_equal(a, b) for a, b in zip(one.state_, other.state_, strict=True)) and notes == others
    learn.learn(small(), shown, tmp_path / "whole", on_progress=lambda done, of: begun_at.append(-done))
    assert begun_at[-1] == -400  # nothing but the end: it was learned before
    changed = DIGITS.data[:200].copy()
    changed[1, 5] += 1
    for network, samples in (
        (small(r_b=2), shown),
        (small(from_rest=True), shown),
        (small(), load.Data("some", changed)),
    ):
        with pytest.raises(ah.InputError, match="a model of other data or parameters"):
            learn.learn(network, samples, tmp_path / "whole")


def test_a_rule_of_ones_own_that_was_edited_is_another_model(tmp_path):
    shown = load.Data("some", DIGITS.data[:20])

    def mine(leak):
        path = tmp_path / "mine.py"
        path.write_text(
            "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mine:\n    eta: float = 0.01\n"
            f"    def leak_w(self, y_i):\n        return {leak}\n"
            "    def leak_m(self, y_i):\n        return 1.0\n"
            "    def rate(self, y_i, a_i):\n        return self.eta, a_i\n"
        )
        return small(rule=notation.parse_named("rule", f"{path}:Mine()"), engine="reference", hold=5, settle=5)

    learn.learn(mine("1.0"), shown, tmp_path / "out")
    learn.learn(mine("1.0"), shown, tmp_path / "out")
    with pytest.raises(ah.InputError, match="a model of other data or parameters"):
        learn.learn(mine("2.0"), shown, tmp_path / "out")
    learn.encode(
        model_file.read(tmp_path / "out" / "model.nc", {"rule": ah.Hebbian()})[0], shown, tmp_path / "codes.npy"
    )


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_measures_do_not_depend_on_the_scale(factor, tmp_path):
    one, other = (
        learn.learn(small(), load.Data("some", k * DIGITS.data[:60]), tmp_path / str(k)) for k in (1.0, factor)
    )
    assert other == pytest.approx(one, rel=1e-3)


def test_data_that_are_no_pictures_are_drawn_as_rows_and_curves(tmp_path):
    for name, X in (("rates", DIGITS.data[:30, :40]), ("tall", DIGITS.data[:30].reshape(30, 64, 1))):
        assert load.Data(name, X).shape == (1, X.shape[1])
        learn.learn(small(), load.Data(name, X), tmp_path / name)
        assert "(black)" in (tmp_path / name / "report.html").read_text()


def test_signed_data_are_split_on_the_way(tmp_path):
    shown = load.Data("signed", DIGITS.images[:60] - 8.0)
    learn.learn(small(), shown, tmp_path)
    model = ah.load_model(tmp_path / "model.nc")
    assert [type(part).__name__ for _, part in model.steps] == ["OnOff", "AsyncHebbian"]
    learn.encode(model, shown, tmp_path / "codes.npy")
    assert np.array_equal(np.load(tmp_path / "codes.npy"), model.transform(shown.X).astype(np.float32))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_are_read_and_written(suffix, tmp_path):
    import pandas as pd

    table = pd.DataFrame(DIGITS.data[:40]).rename(columns=str).assign(label=[f"d{k}" for k in DIGITS.target[:40]])

    def write(table, name, **options):
        if suffix == ".parquet":
            table.to_parquet(tmp_path / name)
        else:
            table.to_csv(tmp_path / name, index=False, sep="," if suffix == ".csv" else "\t", **options)
        return str(tmp_path / name)

    file = write(table, f"x{suffix}")
    data = load.load(file)
    assert np.array_equal(data.X, DIGITS.data[:40]) and [*data.labels[:2]] == ["d0", "d1"]
    model = ah.AsyncHebbian(8, max_iter=1, hold=20, random_state=0).fit(data.X)
    learn.encode(model, data, tmp_path / f"codes{suffix}")
    again = load.load(str(tmp_path / f"codes{suffix}"))
    np.testing.assert_allclose(again.X, model.transform(data.X), rtol=1e-6)
    assert np.array_equal(again.labels, data.labels)
    if suffix != ".parquet":  # numbers alone, without a header
        bare = write(table.drop(columns="label"), f"bare{suffix}", header=False)
        assert np.array_equal(load.load(bare).X, DIGITS.data[:40])
        counted = write(pd.DataFrame(DIGITS.data[:40]), f"counted{suffix}")  # pandas' own header: 0, 1, 2, …
        assert np.array_equal(load.load(counted).X, DIGITS.data[:40])
        table.to_csv(tmp_path / f"rows{suffix}", sep="," if suffix == ".csv" else "\t")  # and its row numbers
        rows = load.load(str(tmp_path / f"rows{suffix}"))
        assert np.array_equal(rows.X, DIGITS.data[:40])
        assert rows.how == "64 features, columns 0 … 63; labels: label; row numbers left out: Unnamed: 0"
        table.rename_axis("id").to_csv(tmp_path / f"id{suffix}", sep="," if suffix == ".csv" else "\t")
        assert np.array_equal(load.load(str(tmp_path / f"id{suffix}")).X, DIGITS.data[:40])
    else:
        nullable = write(
            pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": [0.5, 1.0], "c": [True, False]}), "n.parquet"
        )
        assert load.load(nullable).X.tolist() == [[1, 0.5, 1], [2, 1, 0]]
    space = write(pd.DataFrame({"x": [1.0, 2], "y": [3.0, 4], "z": [5.0, 6]}), f"space{suffix}")
    assert load.load(space).X.shape == (2, 3) and load.load(space).labels is None
    assert load.load(space, labels="y").X.shape == (2, 2)
    with pytest.raises(ValueError, match="a table without rows"):
        load.load(write(table.iloc[:0], f"empty{suffix}"))
    named = write(table.rename(columns={"label": "digit"}), f"named{suffix}")
    assert [*load.load(named, labels="digit").labels[:2]] == ["d0", "d1"]
    with pytest.raises(ValueError, match="whose column 'digit' does not hold numbers"):
        load.load(named)
    with pytest.raises(ValueError, match=r"labels is 'none'; .* has the columns 0, 1"):
        load.load(named, labels="none")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"data is .* Parquet needs pyarrow"):
        load.load(str(tmp_path / "x.parquet"))
    with pytest.raises(ValueError, match=r"out is .* Parquet needs pyarrow"):
        learn.encode(None, None, tmp_path / "x.parquet")


def test_the_commands_learn_and_encode(tmp_path):
    np.savez(tmp_path / "x.npz", X=DIGITS.images[:60], y=DIGITS.target[:60])
    done = call("learn", "x.npz", "--n", 8, "--passes", 1, "--hold", 50, "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-3:] == ["out/model.nc", "out/fields.png", "out/report.html"]
    assert "reconstruction error" in done.stdout
    done = call_here("encode", "out/model.nc", "x.npz", "--out", "codes.npz", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for out in ("x.npz", "out"):
        assert "out is" in refused("encode", "out/model.nc", "x.npz", "--out", out, folder=tmp_path)
    with np.load(tmp_path / "codes.npz") as codes:
        assert codes["codes"].shape == (60, 8) and np.array_equal(codes["labels"], DIGITS.target[:60])
        assert np.array_equal(codes["codes"], ah.load_model(tmp_path / "out/model.nc").transform(DIGITS.images[:60]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("learn", "nothing"), "there is no such file"),
        (("learn", "digits", "--n", "0"), "n is 0; it must be a whole number of at least 1"),
        (("learn", "digits", "--r-b", "-1"), "Asynchronous.r_b is -1.0; it must be a number of at least 0"),
        (
            ("learn", "digits", "--model", "discrete", "--r-b", "2"),
            "r_b is given, but the discrete model does not use it",
        ),
        (("learn", "digits", "--seed", "-1"), "seed is -1; it must be a whole number of at least 0"),
        (("compare", "digits", "--n", "0"), "n is 0; it must be a whole number of at least 1"),
        (("learn", "digits", "--scale", "big"), "scale is 'big'; it must be norm, none or a number"),
        (("learn", "digits", "--model", "deep"), "model is 'deep'; it must be one of asynchronous"),
        (("encode", "nothing.nc", "digits"), "there is no such file"),
        (("compare", "digits", "--method", "SVM"), "method is 'SVM'; the methods are 'asynchronous'"),
    ],
)
def test_what_a_command_cannot_use_is_said_in_a_sentence(arguments, said, tmp_path):
    assert said in refused(*arguments, folder=tmp_path)
    assert not [*tmp_path.iterdir()]


# Comparing


class Here:
    """Does what is submitted at once, in this process: a process for each measurement takes long to start."""

    def __init__(self, workers, timeout):
        self.submitted = Future()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, function, *arguments):
        self.submitted.set_result(function(*arguments))
        return self.submitted


def test_compare_measures_what_it_says_and_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setattr(loky, "ProcessPoolExecutor", Here)
    shown = load.Data("some", DIGITS.images[:400], DIGITS.target[:400])
    methods = ("asynchronous", "IncrementalPCA", "raw data")
    outcome = compare.compare(shown, 8, tmp_path, seeds=2, passes=1, methods=methods)
    assert set(outcome["methods"]) == {*methods} and read_json("x", tmp_path / "comparison.json") == outcome
    network, pca, raw = (outcome["methods"][method]["mean"] for method in methods)
    assert set(network) >= {*trial.MEASURES} - {"recovery", "factors_found", "megabytes"} and set(network) - set(
        pca
    ) == {"weights_error", "weights_forgetting"}
    assert set(raw) == {"hoyer", "active", "linear_probe", "neighbours"}
    assert 0 < pca["residual"] < network["residual"] < 1 and raw["linear_probe"] > 0.8
    table = (tmp_path / "comparison.md").read_text()
    assert table.count("|") > 50 and "±" in table and (tmp_path / "comparison.png").stat().st_size > 10_000
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "measured").iterdir()}
    compare.compare(shown, 8, tmp_path, seeds=2, passes=1, methods=methods)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "measured").iterdir()} == files


def test_labels_that_are_no_classes_are_left_out_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(loky, "ProcessPoolExecutor", Here)
    shown = load.Data("some", DIGITS.images[:40], np.arange(40))
    outcome = compare.compare(shown, 4, tmp_path, seeds=1, passes=1, methods=("raw data",))
    assert "linear_probe" not in outcome["methods"]["raw data"]["mean"]
    assert "labels are left out" in (tmp_path / "comparison.md").read_text()


def test_every_method_is_measured_by_the_same_measures():
    bars = ah.Crossbars(6)
    X, _ = compare.prepared(load.Data("bars", bars.sample(np.random.default_rng(0), 200), None, bars))
    assert np.sqrt(np.mean(np.sum(X**2, axis=1))) == pytest.approx(27**0.5)
    for method in methods.OTHERS:
        found, components = trial.measure(method, X, None, bars, 10, 0, 1)
        assert {"error", "residual", "readout", "hoyer", "recovery", "fit_seconds"} <= {*found}
        assert ("learned_per_second" in found) == (method != "FastICA") and components.shape == (10, 36)
    assert "left_out" in trial.measure("FastICA", X, None, bars, 50, 0, 1)[0]


def test_independent_components_span_the_principal_ones_even_if_a_corner_is_dark():
    X = compare.prepared(load.load("digits"))[0]
    assert not X[:, 0].any()  # scikit-learn's FastICA would lose components by it
    errors = []
    for model in (methods.make("FastICA", 16, 0, 1), PCA(16)):
        model.fit(X)
        errors.append(np.sum((model.inverse_transform(model.transform(X)) - X) ** 2))
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


QUOTED = {
    "reconstruction error, 1 − cos": "error",
    "reconstruction error": "error",
    "the same by the paper's Wᵀy": "weights_error",
    "accuracy, logistic regression on the codes": "linear_probe",
    "accuracy, 5 nearest neighbours": "neighbours",
    "forgetting, two classes at a time": "forgetting",
    "forgetting of Wᵀy": "weights_forgetting",
    "samples per second, `partial_fit`": "learned_per_second",
    "samples per second, `transform`": "encoded_per_second",
    "bars found, of 16": "factors_found",
    "bars found": "factors_found",
}


def test_the_readme_quotes_what_was_measured():
    root = Path(__file__).parent.parent
    measured, of = {}, ""
    for line in (root / "docs" / "comparison.md").read_text().splitlines():
        of = line[3:].removesuffix(" components") if line.startswith("## ") else of
        measure, *cells = (cell.strip().partition(" ±")[0] for cell in line.strip("| ").split("|"))
        measured[of, measure] = cells[1:9]
    row = r"^\| (digits|crossbars|patches)(?:, (\d+) components)?: (.*?) \| (.*) \|$"
    rows = re.findall(row, (root / "README.md").read_text(), re.M)
    assert len(rows) == 14
    for of, components, says, cells in rows:
        where = f"{of}: {components or 32}"
        assert cells.split(" | ") == measured[where, trial.MEASURES[QUOTED[says]].label], (where, says)


def test_the_docs_say_the_samples_a_second_that_were_measured():
    root = Path(__file__).parent.parent
    said = re.search(
        r"learns\s([\d,]+)\ssamples\sper\ssecond\sin\sbatches\sand\s([\d,]+)\sone\sby\sone.*encodes\s([\d,]+)",
        (root / "docs" / "streams.md").read_text(),
        re.DOTALL,
    )
    measured = (root / "benchmarks" / "estimator.md").read_text()
    names = ("partial_fit, batches of 100", "partial_fit, one sample a call", "transform")
    for name, number in zip(names, said.groups(), strict=True):
        assert f"| {name} | {number} |" in measured


# Examples

EXAMPLES = {
    "bars": {"samples": 10},
    "digits_probe": {"samples": 60},
    "class_incremental": {"passes": 1},
    "natural_patches": {"samples": 20},
    "own_rule": {"samples": 10},
    "spiking": {"samples": 10},
    "stream": {"frames": 30},
}


def test_all_examples_are_tested():
    others = {"retention_search"}  # a study of its own, which takes hours
    assert {file.stem for file in (Path(__file__).parent.parent / "examples").glob("*.py")} == {*EXAMPLES} | others


class Brief:
    """The engine that need not be compiled, a few steps a sample: an example's code is tested, not what it shows."""

    threads = reference.threads

    def advance(network, state, X, hold, *rest, **options):
        return reference.advance(network, state, X, min(hold, 3), *rest, **options)


@pytest.mark.filterwarnings("ignore:nothing was learned")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_and_draw(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "module", lambda *engine: Brief)
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(**EXAMPLES[name])
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
