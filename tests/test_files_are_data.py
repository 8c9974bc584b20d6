"""Files are data: to open one, or what came in a message, runs no code and reads no other file."""

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from test_cli import call_here

import asynchebb as ah
from asynchebb import files, notation

# A class that would pass as a rule, in a file that leaves a mark when it is run.
EVIL = "open('RAN', 'w').write('')\nfrom asynchebb.rules import Oja as X\n"
PARTS = ("rule", "dynamics", "schedule", "weights", "bursts")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("evil.py", "Crossbars(6).py"):
        (tmp_path / name).write_text(EVIL)
    return tmp_path


def run_file():
    run = ah.Run(ah.asynchronous(n=10, m=36), ah.Phase(ah.Crossbars(6), samples=4, hold=20, snapshots=1))
    ah.record(run, "run.nc").close()


def model_in_file():
    X = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
    ah.save_model(ah.AsyncHebbian(10, max_iter=1, hold=20, random_state=0).fit(X), "model.nc")


@pytest.mark.parametrize("text", ["evil.py:X()", "{folder}/evil.py:X()", "own evil.py:X()", "FromArray('evil.py')"])
@pytest.mark.parametrize("part", PARTS)
def test_no_attribute_of_a_file_runs_code(folder, part, text):
    run_file()
    model_in_file()
    text = text.format(folder=folder)
    for file in ("run.nc", "model.nc"):
        shutil.copy(file, "evil.nc")
        with h5py.File("evil.nc", "r+") as content:
            if part not in content.attrs:
                continue
            content.attrs[part] = text
        files.seal(Path("evil.nc"))  # whoever can write a file knows how to seal it
        with pytest.raises(ah.InputError, match="schedule|bursts" if part == "bursts" else part):
            ah.load_model("evil.nc") if file == "model.nc" else ah.network_of(ah.open_run("evil.nc"))
        assert not (folder / "RAN").exists()


@pytest.mark.parametrize("text", ["Crossbars(6).py:X()", "evil.py:X()", "Crossbars(FromArray('evil.py'))"])
def test_no_stimulus_of_a_file_runs_code(folder, text):
    run_file()
    with h5py.File("run.nc", "r+") as content:
        content["stimulus"][0] = text
    files.seal(Path("run.nc"))
    done = call_here("show", "run.nc")
    assert done.returncode == 0, done.stderr
    assert not (folder / "RAN").exists()


def test_only_what_a_person_names_is_read_and_run(folder):
    with pytest.raises(ah.InputError, match=r"rule is 'evil.py:X\(\)'; it must be written like"):
        notation.parse("rule", "evil.py:X()")
    with pytest.raises(ah.InputError, match="it must be one of Crossbars, Bars"):
        notation.parse("stimulus", "FromArray('images.npy')")
    assert not (folder / "RAN").exists()
    np.save("images.npy", np.ones((3, 4)))
    assert notation.parse_named("stimulus", "FromArray('images.npy')").m == 4
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass X:\n    a: int = 1\n"
    )
    assert notation.parse_named("rule", "mine.py:X(a=3)").a == 3
