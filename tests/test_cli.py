"""The command line, as a person calls it: in a process of its own."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import cli, metrics, notation

COMMAND = Path(sys.executable).with_name("asynchebb")
SMALL = ["--stimulus", "Crossbars(6)", "--n", "30", "--samples", "40", "--hold", "30", "--snapshots", "4"]


def call(*arguments, folder=None):
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run([COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, text=True, env=environment)


def call_here(*arguments, folder="."):
    """The same in this process, where a new one would only take longer: `main` is all that the command calls."""
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", [str(COMMAND), *map(str, arguments)]),
        contextlib.redirect_stdout(io.StringIO()) as stdout,
        contextlib.redirect_stderr(io.StringIO()) as stderr,
        pytest.raises(SystemExit) as end,
    ):
        cli.main()
    return subprocess.CompletedProcess(arguments, end.value.code or 0, stdout.getvalue(), stderr.getvalue())


def refused(*arguments, folder="."):
    """What a call is refused with: one sentence on standard error, exit code 2, no traceback."""
    done = call_here(*arguments, folder=folder)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("asynchebb: "), done.stderr
    return done.stderr


def test_run_ends_in_a_table_a_file_and_a_picture_and_show_draws_it_again(tmp_path):
    done = call("run", *SMALL, "--out", "kept", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for measure in ("reconstruction error", "Gini", "factors found"):
        assert measure in done.stdout
    file, picture = (tmp_path / line for line in done.stdout.splitlines()[-2:])
    assert file.suffix == ".nc" and picture.read_bytes().startswith(b"\x89PNG")
    with ah.open_run(file) as dataset:
        assert dataset.attrs["network"] == repr(ah.asynchronous(30, 36))
    picture.unlink()
    again = call_here("show", file)
    assert again.returncode == 0 and picture.exists() and "Gini" in again.stdout


def test_parameters_are_typed_as_the_values_they_are(tmp_path):
    done = call(
        *("run", *SMALL, "--model", "discrete", "--rule", "Foldiak(p=0.1)", "--dynamics", "Projected(dt=0.02)"),
        *("--schedule", "Asynchronous(r_b=2, r_r=50)", "--weights", "Gaussian(rectified=True)", "--seed", "3"),
        *("--dtype", "float64", "--engine", "reference", "--snapshots", "1", "--out", tmp_path / "one.nc"),
    )
    assert done.returncode == 0, done.stderr
    with ah.open_run(tmp_path / "one.nc") as dataset:
        assert ah.network_of(dataset) == ah.Network(
            30, 36, ah.Projected(0.02), ah.Foldiak(p=0.1), ah.Asynchronous(2, 50), ah.Gaussian(rectified=True)
        )
        assert dataset.attrs["seed"] == 3 and dataset.W.dtype == np.float64 and dataset.attrs["engine"] == "reference"


def test_a_rule_in_the_users_own_file_runs(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n"
        "    eta: float = 0.01\n"
        "    def leak_w(self, y_i):\n        return y_i\n"
        "    def leak_m(self, y_i):\n        return 1.0\n"
        "    def rate(self, y_i, a_i):\n        return self.eta, a_i\n"
    )
    done = call("run", *SMALL, "--rule", "mine.py:Mine(eta=0.02)", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with ah.open_run(next((tmp_path / "runs").glob("*.nc"))) as dataset:
        assert dataset.attrs["rule"] == "own Mine(eta=0.02)"
    assert call_here("show", next((tmp_path / "runs").glob("*.nc"))).returncode == 0


@pytest.mark.parametrize("stimulus", ["Bars(6)", "Diagonals(6)", "Squares(6)", "Digits(8)", "Patches(6)", "data.npy"])
def test_any_stimulus_can_be_run(stimulus, tmp_path):
    np.save(tmp_path / "data.npy", np.random.default_rng(0).random((9, 3, 4)))
    text = "FromArray('data.npy')" if stimulus == "data.npy" else stimulus
    done = call_here("run", "--stimulus", text, "--n", 20, "--samples", 5, "--hold", 20, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_version_is_the_packages():
    assert call("--version").stdout.strip() == ah.__version__


def test_the_package_can_be_run_as_the_command():
    done = subprocess.run([sys.executable, "-m", "asynchebb", "--version"], capture_output=True, text=True)
    assert done.stdout.strip() == ah.__version__, done.stderr


def test_a_terminal_that_lacks_our_letters_shows_others(tmp_path):
    call_here("run", *SMALL, "--out", tmp_path / "one.nc")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    with (
        mock.patch.object(sys, "argv", [str(COMMAND), "show", str(tmp_path / "one.nc")]),
        contextlib.redirect_stdout(terminal),
        pytest.raises(SystemExit) as end,
    ):
        cli.main()
    assert not end.value.code
    assert b"\nTreves?Rolls" in terminal.buffer.getvalue().replace(b"| ", b"")


@pytest.mark.slow
def test_warmup_compiles_each_model_once(tmp_path):
    first, second = call("warmup", folder=tmp_path), call("warmup", folder=tmp_path)
    assert first.returncode == second.returncode == 0, first.stderr
    assert [line.split(":")[0] for line in first.stdout.splitlines()[:3]] == list(ah.network.MODELS)
    assert second.stdout.count("already compiled") == 3 and second.stderr == ""


def test_list_names_every_variant_and_metric():
    done = call_here("list")
    assert done.returncode == 0
    for kind in notation.MODULES:
        for name, cls in notation.variants(kind).items():
            assert name in done.stdout and cls.__doc__.splitlines()[0] in done.stdout
    for name in ("reconstruction_cosines", "gini", "weight_similarity", "count_fields", "forgetting"):
        assert name in done.stdout and getattr(metrics, name).__doc__.splitlines()[0] in done.stdout
    assert "Δw_ij = η (y_i x_j − w_ij)" in done.stdout
    assert ">>>" not in done.stdout  # examples are for the reference


def test_help_does_not_wait_for_what_it_does_not_need():
    code = "import sys; sys.argv = ['asynchebb', '--help']\nfrom asynchebb import cli\n"
    code += "try: cli.main()\nexcept SystemExit: pass\nprint('loaded', *sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split("loaded")[-1]
    assert not {"numba", "xarray", "matplotlib", "scipy", "sklearn", "pandas", "h5py"} & set(loaded.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "Hebian"], "rule is 'Hebian'; it must be one of Hebbian, Oja, Foldiak, Falconbridge, Pehlevan"),
        (["--rule", "Foldiak(q=1)"], "the fields of Foldiak are: eta, p"),
        (["--rule", "Foldiak(p=-1)"], "Foldiak.p is -1; it must be a number of at least 0"),
        (["--rule", "Hebbian(eta=0)"], "Hebbian.eta is 0; it must be a number above 0"),
        (["--rule", "Hebbian(eta='x')"], "Hebbian.eta is 'x'; it must be a finite number"),
        (["--rule", "import os"], "rule is 'import os'; it must be written like Name(field=value)"),
        (["--rule", "__import__('os')"], "rule is '__import__'; it must be one of"),
        (["--rule", "none.py:Mine()"], "rule names the file 'none.py'; there is no such Python file"),
        (["--rule", "Crossbars(6)"], "rule is 'Crossbars'; it must be one of"),
        (["--schedule", "Asynchronous(r_b=-1)"], "Asynchronous.r_b is -1; it must be a number of at least 0"),
        (["--schedule", "Asynchronous(r_r=-5)"], "Asynchronous.r_r is -5"),
        (["--dynamics", "Potential(dt=0)"], "Potential.dt is 0; it must be a number above 0"),
        (["--weights", "Uniform"], "weights is 'Uniform'; it must be one of Exponential, Gaussian"),
        (["--stimulus", "Crossbars(1)"], "Crossbars.p is 1; it must be a whole number of at least 2"),
        (
            ["--stimulus", "FromArray('no.npy')"],
            "FromArray.data is 'no.npy'; it must be an array of numbers or a .npy file",
        ),
        (["--stimulus", "FromArray('nan.npy')"], "FromArray.data holds nan; stimuli must be finite and in [0, 1]"),
        (["--stimulus", "FromArray('several.npz')"], "FromArray.data is 'several.npz'; it must be an array of numbers"),
        (["--stimulus", "FromArray('empty.npy')"], "FromArray.data is 'empty.npy'"),
        (["--stimulus", "5"], "stimulus is '5'; it must be one of Crossbars, Bars"),
        (["--stimulus", "'abc'"], "it must be one of Crossbars, Bars"),
        (["--stimulus", "nothing.py:NoPixels()"], "sample(rng, count) and a number m of pixels"),
        (["--n", "many"], "Invalid value for '--n'"),
        (["--nn", "5"], "--nn"),
        (["--model", "synchronous"], "model is 'synchronous'; it must be one of asynchronous, continuous, discrete"),
        (["--engine", "tpu"], "engine is 'tpu'; it must be one of cpu, gpu, reference, auto"),
        (["--dtype", "float16"], "dtype is 'float16'; it must be float32 or float64"),
        (["--n", "0"], "n is 0; it must be a whole number of at least 1"),
        (["--samples", "0"], "samples is 0"),
        (["--hold", "0"], "hold is 0; it must be a whole number of at least 1"),
        (["--seed", "-1"], "seed is -1; it must be a whole number of at least 0"),
        (["--out", "a_file/runs"], "it must be a writable folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_in_a_sentence(arguments, said, tmp_path):
    (tmp_path / "a_file").write_text("")
    np.save(tmp_path / "nan.npy", np.array([[0.1, np.nan]]))
    np.savez(tmp_path / "several.npz", a=np.eye(2), b=np.eye(3))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "nothing.py").write_text("class NoPixels:\n    sample = None\n")
    before = sorted(tmp_path.iterdir())
    given = dict(zip(SMALL[::2], SMALL[1::2], strict=True)) | dict([arguments])
    sentence = refused("run", *(word for pair in given.items() for word in pair), folder=tmp_path)
    assert said in sentence
    assert sorted(tmp_path.iterdir()) == before  # nothing half done is left


def test_a_file_of_another_program_or_cut_short_is_refused_and_left_alone(tmp_path):
    import xarray

    call_here("run", *SMALL, "--out", tmp_path / "good.nc")
    (tmp_path / "short.nc").write_bytes((tmp_path / "good.nc").read_bytes()[:5000])
    xarray.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    (tmp_path / "text.nc").write_text("not a NetCDF file")
    for name, said in {
        "short.nc": "truncated",
        "other.nc": "another program",
        "text.nc": "another program",
        "absent.nc": "no such file",
    }.items():
        path = tmp_path / name
        before = path.read_bytes() if path.exists() else None
        assert said in refused("show", path)
        if before is not None:
            refused("run", *SMALL, "--out", path)
            assert path.read_bytes() == before
    for out in (tmp_path / "nowhere" / "x.png", tmp_path / "x.xyz"):
        assert "it must be a writable image file" in refused("show", tmp_path / "good.nc", "--out", out)
    assert "holds another run" in refused("run", *SMALL, "--seed", 1, "--out", tmp_path / "good.nc")


def test_a_stimulus_that_cannot_be_drawn_leaves_nothing_behind(tmp_path):
    done = call("run", "--stimulus", "Patches(400)", "--n", 5, "--samples", 1, folder=tmp_path)
    assert done.returncode == 2 and "the smallest photograph" in done.stderr and "steps" not in done.stdout
    assert not [*(tmp_path / "runs").iterdir()]


def test_an_interrupted_run_says_how_to_go_on(tmp_path):
    arguments = [COMMAND, "run", *SMALL, "--samples", "1000000", "--out", str(tmp_path)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not [*tmp_path.glob("*.parts/*-00000.npz")]:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130 and "Traceback" not in said
    assert "the same command resumes from the last snapshot" in said


def test_a_run_that_diverges_says_so_without_a_traceback(tmp_path):
    done = call("run", *SMALL, "--rule", "Oja(eta=1e30)", "--model", "continuous", folder=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "no longer finite at step" in done.stderr and "Oja(eta=1e+30)" in done.stderr
    assert "earlier snapshots are saved in runs/" in done.stderr and len([*(tmp_path / "runs").glob("*.nc")]) == 1
