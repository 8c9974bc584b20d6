"""Several writers of one result: threads, processes, and containers that share a name and number processes alike."""

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hostile import SERVER, begin, call, ended, save_all_the_time, start_server
from test_cli import COMMAND
from torture.kills import contents

import asynchebb as ah
from asynchebb.runs import recording

RUN = ah.Run(
    ah.asynchronous(n=20, m=36),
    ah.Phase(ah.Crossbars(6), samples=40, hold=50, snapshots=4),
    ah.Probe(ah.Crossbars(6), samples=5, hold=50),
)
WRITERS = 4
LEARN = "learn Crossbars(6) --n 30 --passes 1 --hold 20 --settle 20 --out out"
SWEEP = "sweep run --stimulus Crossbars(6) --n 60 --samples 300 --hold 100 --vary seed=range(8) --workers 1 --out out"
CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc")  # a container's view: processes are numbered from 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What one writer leaves."""
    folder = tmp_path_factory.mktemp("alone")
    ah.record(RUN, folder / "run.nc").close()
    return contents(folder)


@pytest.fixture(params=["parts on disk", "all in memory"])
def parts(request, monkeypatch):
    if request.param == "parts on disk":
        monkeypatch.setattr(recording, "NOT_WORTH_A_FILE", 0.0)


def at_once(work, number=WRITERS):
    """Do the work in so many threads that start together; returns the errors."""
    gate, errors = threading.Barrier(number), []

    def begin():
        gate.wait()
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("times", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_that_record_one_run_leave_it_whole(times, parts, whole, tmp_path):
    for number in range(times):
        folder = tmp_path / str(number)
        assert not at_once(lambda folder=folder: ah.record(RUN, folder / "run.nc").close())
        assert contents(folder) == whole


def record_as(file, number, gate):
    """Record the run in a process that takes itself for process `number`, if one is given."""
    os.getpid = (lambda: number) if number else os.getpid
    recording.NOT_WORTH_A_FILE = 0.0
    gate.wait()
    ah.record(RUN, file).close()


@pytest.mark.parametrize("number", [None, 1], ids=["each of its own number", "all of number 1"])
@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_processes_that_record_one_run_leave_it_whole(times, number, whole, tmp_path):
    start_server()
    for trial in range(times):
        folder, gate = tmp_path / str(trial), SERVER.Barrier(WRITERS)
        task = (folder / "run.nc", number, gate)
        processes = [SERVER.Process(target=record_as, args=task) for _ in range(WRITERS)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0] * WRITERS
        assert contents(folder) == whole


def all_as(wanted, begun, folder):
    for done in [ended(one) for one in begun]:
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert contents(folder) == wanted


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_trainings_in_one_folder_end_as_one_would(times, tmp_path):
    (tmp_path / "alone").mkdir()
    assert call(LEARN, tmp_path / "alone").returncode == 0
    for number in range(times):
        folder = tmp_path / str(number)
        folder.mkdir()
        begun = [begin(LEARN, folder, (save_all_the_time,), (time.sleep, 0.1 * late)) for late in range(WRITERS)]
        all_as(contents(tmp_path / "alone"), begun, folder)


def begin_new(command, folder):
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["processes", "containers"])
@pytest.mark.parametrize("text", [LEARN, SWEEP], ids=["learn", "sweep"])
def test_commands_in_one_folder_end_as_one_would(text, kind, tmp_path):
    apart = CONTAINER if kind == "containers" else ()
    if apart and subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("only root may number processes from 1")
    for name, number in (("alone", 1), ("together", 3)):
        (tmp_path / name).mkdir()
        begun = [begin_new([*apart, COMMAND, *text.split()], tmp_path / name) for _ in range(number)]
        said = [process.communicate()[1] for process in begun]
        assert [process.returncode for process in begun] == [0] * number, said
        assert not [errors for errors in said if "Traceback" in errors], said
    assert contents(tmp_path / "together") == contents(tmp_path / "alone")


def test_threads_that_run_one_sweep_leave_what_one_leaves(tmp_path):
    def sweep(folder):
        with ThreadPoolExecutor(2) as executor:
            ah.sweep(RUN, {"seed": range(6)}, folder, executor=executor).close()

    sweep(tmp_path / "alone")
    assert not at_once(lambda: sweep(tmp_path / "together"), 2)
    assert contents(tmp_path / "together") == contents(tmp_path / "alone")
