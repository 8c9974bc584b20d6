"""A kill or two per command, and the same command again; `make torture` kills each a hundred times."""

import importlib.util
import os
import re
import signal

import pytest
from hostile import call, save_all_the_time, with_threads_for_workers
from torture import kills
from torture.kills import OUT, Moment

COMMANDS = {
    "run": f"run --n 30 --stimulus Crossbars(6) --samples 40 --hold 100 --snapshots 4 --out {OUT}",
    "learn": f"learn Crossbars(6) --n 20 --passes 2 --hold 20 --settle 20 --out {OUT}",
    "sweep": f"sweep run --n 30 --stimulus Crossbars(6) --samples 20 --hold 50 --vary seed=0,1 --workers 1 --out {OUT}",
    "reproduce": f"reproduce fig3 --scale smoke --workers 1 --out {OUT}",
}


def under_torture(folder, moment):
    os.setpgid(0, 0)  # the kill hits the whole group
    os.environ.update(kills.environment(folder, moment))
    torturer = importlib.util.spec_from_file_location("torturer", kills.VICTIM / "sitecustomize.py")
    torturer.loader.exec_module(importlib.util.module_from_spec(torturer))


def run(name, folder, moment=None):
    """Run a command in a process that may be killed; returns its exit code."""
    folder.mkdir(exist_ok=True)
    tortured = (under_torture, folder, moment)
    done = call(COMMANDS[name], folder, (save_all_the_time,), (with_threads_for_workers,), tortured)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A function: what a command leaves in peace, and its file operations."""
    at, found = tmp_path_factory.mktemp("undisturbed"), {}

    def of(name):
        if name not in found:
            assert run(name, at / name) == 0
            found[name] = kills.contents(at / name / OUT), kills.operations(at / name)
        return found[name]

    return of


def kill_and_resume(name, operation, wanted, folder):
    assert run(name, folder, Moment("group", operation=operation)) == -signal.SIGKILL
    assert run(name, folder) == 0
    assert kills.differences(kills.contents(folder / OUT), wanted) == []


# A file operation and which one of its kind: by the clock, a kill would hardly ever come while a file is written.
MOMENTS = [
    ("run", r"os.rename .*-00002.npz", 1),  # a part is whole, but has not got its name
    ("run", r"os.remove .*-cpu-0000\d.npz\b", -2),  # the run has been written, and its parts are being removed
    ("learn", r"open .course", 7),  # between two files that belong together, whichever comes first
    ("learn", r"open .model.*part", 7),
    ("sweep", r"os.rename unfinished.*json", 3),  # the second run is saved, its measures are not
    ("reproduce", r"os.rename figures", 3),
]


@pytest.mark.parametrize(("name", "kind", "which"), MOMENTS)
def test_a_command_that_is_killed_ends_as_if_it_had_not_been(name, kind, which, undisturbed, tmp_path):
    wanted, operations = undisturbed(name)
    alike = [number for number, operation in enumerate(operations, 1) if re.match(kind, operation)]
    kill_and_resume(name, alike[which if which < 0 else which - 1], wanted, tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "learn"])
def test_a_command_can_be_killed_at_every_file_operation(name, undisturbed, tmp_path):
    wanted, operations = undisturbed(name)
    for number in range(1, len(operations) + 1):
        kill_and_resume(name, number, wanted, tmp_path / str(number))
