"""How far long work has come, as a terminal, a notebook and a log show it."""

import os
import pty
import re
import select
import subprocess
import sys
from types import SimpleNamespace

import pytest
from test_cli import COMMAND

import asynchebb as ah
from asynchebb import progress


def a_run():
    return ah.Run(ah.asynchronous(10, 16), ah.Phase(ah.Crossbars(4), samples=8, hold=20, snapshots=2))


def in_terminal(*arguments, folder):
    """What a command shows in a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    text = b""
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment
    )
    os.close(theirs)
    while process.poll() is None or select.select([ours], [], [], 0.1)[0]:
        try:
            text += os.read(ours, 4096)
        except OSError:  # the terminal is closed
            break
    os.close(ours)
    return process.wait(), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())


def test_a_terminal_shows_steps_speed_and_what_is_left(tmp_path):
    code, text = in_terminal(
        *("run", "--n", 10, "--stimulus", "Crossbars(4)", "--samples", 20, "--hold", 20, "--snapshots", 2),
        folder=tmp_path,
    )
    assert code == 0 and "starting" in text[:100]  # before what takes long to import
    assert "27,400/27,400 steps" in text and "steps/s" in text  # 400 of training and three tests of 60 × 150


def test_an_error_stands_alone(tmp_path):
    (tmp_path / "runs").write_text("a file, not a folder")
    code, text = in_terminal("run", "--n", 10, "--stimulus", "Crossbars(4)", "--samples", 20, folder=tmp_path)
    assert code == 2 and text.strip().splitlines()[-1].startswith("asynchebb: path is")


def test_a_log_has_a_line_now_and_then(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(progress, "LOG_EVERY", 0.0)
    ah.record(a_run(), tmp_path, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert re.match(r"\d\d:\d\d:\d\d training: [\d,]+/27,160 steps \(\d+%\)", lines[0]) and "(100%)" in lines[-1]
    monkeypatch.setattr(progress, "LOG_EVERY", 60.0)
    ah.record(a_run(), tmp_path / "other", progress=True)
    assert not capsys.readouterr().err  # shorter than a minute


def test_a_notebook_shows_a_line_that_updates_itself(monkeypatch, tmp_path):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    fake = SimpleNamespace(HTML=str, display=lambda what, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=fake))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr("builtins.get_ipython", type("ZMQInteractiveShell", (), {}), raising=False)
    ah.record(a_run(), tmp_path, progress=True)
    assert '<progress value="27160" max="27160"></progress> 27,160/27,160 steps' in shown[-1]


def test_speed_and_time_left_are_those_of_the_last_half_minute(monkeypatch):
    now = iter([0.0, 100.0, 101.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    task = progress.Task("training", "steps", 1000)
    for done in (0, 100, 200):
        task.update(done, None, "")
    assert task.rest == "100 steps/s, 0:00:08 left"
    assert progress.Task("x", "runs", None).rest == "" == progress.Task("x", "runs", None).count


@pytest.mark.parametrize("progress_shown", [False, True])
def test_a_callback_hears_of_every_step(progress_shown, tmp_path):
    heard = []
    ah.record(a_run(), tmp_path, progress=progress_shown, on_progress=heard.append)
    assert heard[0] == 0 and heard == sorted(heard) and heard[-1] == a_run().steps_with_tests
