"""Where something may not be written or read: one sentence, nothing lost, and elsewhere the same command works."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from hostile import call, close, leave, sentence, with_threads_for_workers, without_privileges
from test_cli import COMMAND
from torture.kills import contents

RUN = "run --stimulus Crossbars(6) --n 30 --samples 40 --hold 100 --snapshots 3"
LEARN = "learn Crossbars(6) --n 30 --passes 1 --hold 20 --settle 20"
SWEEP = "sweep run --stimulus Crossbars(6) --n 20 --samples 20 --hold 20 --vary seed=range(2) --workers 1"
NOBODY = 65534
THREADS = ((with_threads_for_workers,),)
NO_RIGHTS = (*THREADS, (without_privileges,))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A run, a model and a sweep, in folders that they share with nothing else."""
    at = tmp_path_factory.mktemp("results")
    for text in (f"{RUN} --out runs/run.nc", f"{LEARN} --out learned", f"{SWEEP} --out sweep"):
        done = call(text, at, *THREADS)
        assert done.returncode == 0, done.stderr
    return at


@pytest.fixture
def forbid():
    """A function that takes a right away from everybody, and gives folders to another user; undone at the end."""
    changed = []

    def take(path, mode):
        changed.append((path, path.stat().st_mode))
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)

    yield take
    for path, mode in reversed(changed):
        path.chmod(mode)


@pytest.fixture
def theirs(results, forbid, tmp_path):
    """The results, in folders of another user that everybody may read."""
    at = shutil.copytree(results, tmp_path / "theirs")
    for folder in (*(entry for entry in at.rglob("*") if entry.is_dir()), at):
        forbid(folder, 0o555)
    return at


def grid_in(results):
    [grid] = (results / "sweep" / "grids").glob("*.json")
    return grid.stem


@pytest.mark.parametrize(
    "text",
    [
        f"{RUN} --out there/run.nc",
        f"{LEARN} --out there/new",
        f"{SWEEP} --out there/new",
        "encode {at}/learned/model.nc Crossbars(6) --out there/codes.npy",
        "encode {at}/learned/model.nc Crossbars(6) --out there/new/codes.csv",
        "show {at}/runs/run.nc --out there/run.png",
        "movie {at}/runs/run.nc --out there/run.gif",
        "compare digits --out there/new",
        "reproduce fig3 --scale smoke --out there/new",
        "sweep plot {at}/sweep --measure error --out there/plot.png",
        "sweep export {at}/sweep there/table.csv",
    ],
)
def test_a_folder_of_another_user_is_refused_and_left_alone(text, results, forbid, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    forbid(there, 0o555)
    done = call(text.format(at=results), tmp_path, *NO_RIGHTS)
    assert "there" in sentence(done) and "Permission denied" in sentence(done)
    assert contents(tmp_path) == {"there": ""}


@pytest.mark.parametrize(
    "text",
    [
        "show runs/run.nc --out ../mine/run.png",
        "encode learned/model.nc Crossbars(6) --out ../mine/codes.npy",
        "sweep status sweep",
        "sweep plot sweep --measure error --out ../mine/plot.png",
    ],
)
def test_results_of_another_user_can_be_read(text, theirs, tmp_path):
    (tmp_path / "mine").mkdir()
    done = call(text, theirs, *NO_RIGHTS)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        f"{RUN} --out runs/run.nc",
        f"{LEARN} --out learned",
        f"{SWEEP} --out sweep",
        "show runs/run.nc",
        "movie runs/run.nc",
        "sweep plot sweep --measure error",
        "sweep rm sweep {grid} --yes",
    ],
)
def test_results_of_another_user_are_left_alone(text, theirs):
    before = contents(theirs)
    done = call(text.format(grid=grid_in(theirs)), theirs, *NO_RIGHTS)
    assert "ermission denied" in sentence(done)
    assert contents(theirs) == before


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("show runs/run.nc --out ../run.png", "runs/run.nc"),
        ("movie runs/run.nc --out ../run.gif", "runs/run.nc"),
        ("encode learned/model.nc Crossbars(6) --out ../codes.npy", "learned/model.nc"),
        ("encode learned/model.nc ../data.npy --out ../codes.npy", "../data.npy"),
        ("learn ../data.npy --out ../learned", "../data.npy"),
        ("sweep status sweep", "sweep"),
        ("sweep status sweep", "sweep/grids"),
        ("sweep plot sweep --measure error --out ../plot.png", "sweep/runs"),
        (f"{RUN} --out runs/run.nc", "runs"),
        (f"{RUN} --out runs/run.nc", "runs/run.nc"),
        (f"{LEARN} --out learned", "learned/model.nc"),
        ("run --rule ../mine.py:Mine() --out ../runs", "../mine.py"),
    ],
)
def test_what_may_not_be_read_is_named(text, file, theirs, forbid):
    np.save(theirs.parent / "data.npy", np.ones((20, 36)))
    (theirs.parent / "mine.py").touch()
    forbid(theirs / file, 0o000)
    done = call(text, theirs, *NO_RIGHTS)
    assert str(file).removeprefix("../") in sentence(done)
    assert "ermission denied" in sentence(done) or "is not readable" in sentence(done)


def test_an_unreadable_run_of_another_user_is_no_damage(theirs, forbid):
    """A sweep that several users share: what one may not read must not be renamed or computed again."""
    for folder in (theirs / "sweep", *(theirs / "sweep").iterdir()):
        forbid(folder, 0o777)
    run = next((theirs / "sweep" / "runs").glob("*.nc"))
    forbid(run, 0o000)
    done = call(f"{SWEEP} --out sweep", theirs, *NO_RIGHTS)
    assert "ermission denied" in sentence(done) and run.name in sentence(done)
    assert run.exists() and not [*run.parent.glob("*.damaged")]


def in_a_new_process(text, folder, **environment):
    return subprocess.run(
        [COMMAND, *text.split()],
        **{"cwd": folder, "env": {**os.environ, **environment}, "capture_output": True, "text": True},
        **{"stdin": subprocess.DEVNULL, "preexec_fn": without_privileges},
    )


def nowhere(tmp_path, forbid):
    """Variables that put home and all caches where nothing may be written."""
    locked = tmp_path / "locked"
    locked.mkdir()
    forbid(locked, 0o555)
    names = (
        "HOME",
        "ASYNCHEBB_CACHE",
        "NUMBA_CACHE_DIR",
        "MPLCONFIGDIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "TMPDIR",
    )
    return {name: str(locked / name) for name in names}


@pytest.mark.slow
def test_without_a_home_and_without_caches_a_run_ends_well(tmp_path, forbid):
    text = f"{RUN} --samples 5 --engine reference --out out"
    done = in_a_new_process(text, tmp_path, **nowhere(tmp_path, forbid))
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.slow
def test_without_a_home_and_without_caches_workers_compile_for_themselves(tmp_path, forbid):
    done = in_a_new_process(f"{SWEEP} --out out", tmp_path, **nowhere(tmp_path, forbid))
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


OUTPUT = (f"{RUN} --out out", "list")


@pytest.mark.parametrize("text", OUTPUT)
def test_a_reader_that_leaves_early_is_no_error_to_speak_of(text, tmp_path):
    done = call(text, tmp_path, (leave,))
    assert done.returncode in (0, 1) and not done.stderr, done.stderr


@pytest.mark.parametrize("text", OUTPUT)
@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_closed_streams_are_no_hindrance(text, closed, tmp_path):
    done = call(text, tmp_path, (close, *closed))
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_question_that_nobody_can_answer_is_answered_with_no(results):
    before = contents(results)
    done = call(f"sweep rm sweep {grid_in(results)}", results, (close, 0))
    assert sentence(done) == "asynchebb: nothing was done"
    assert contents(results) == before
