"""The command line where something is missing: room on the disk, rights, a home, an open standard output.

Each call runs in a process forked from one that has imported everything: a new Python would take seconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import multiprocessing
import os
import resource
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
LAST_CAPABILITY = 63
PR_CAPBSET_DROP = 24
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["hostile_server"])


@functools.cache
def start_server() -> None:
    """Start the process that calls are forked from."""
    path = [os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])]
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(path)):  # it does not get sys.path
        forkserver.ensure_running()


def call(text: str, folder: Path, *prepare: tuple[Any, ...]) -> Any:
    """Run `asynchebb` with these arguments in this folder, after calling each function in `prepare` with its values."""
    return ended(begin(text, folder, *prepare))


def begin(text: str, folder: Path, *prepare: tuple[Any, ...]) -> Any:
    """Begin what `call` does; `ended` waits for its end."""
    start_server()
    said = [folder.parent / f"{uuid.uuid4().hex}.{name}" for name in ("out", "err")]
    process = SERVER.Process(target=_run, args=(text.split(), folder, prepare, said))
    process.start()
    return text, process, said


def ended(begun: Any, limit: float = 300) -> Any:
    text, process, said = begun
    process.join(limit)
    if process.is_alive():
        process.kill()
        pytest.fail(f"{text} hangs")
    return subprocess.CompletedProcess(text, process.exitcode, *(one.read_text() for one in said))


def _run(arguments: list[str], folder: Path, prepare: tuple[Any, ...], said: list[Path]) -> None:
    from asynchebb import cli

    for descriptor, file in zip((1, 2), said, strict=True):
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, descriptor)
        os.close(target)
    sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", closefd=False) for descriptor in (1, 2))
    os.environ["COLUMNS"] = "200"
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    os.chdir(folder)
    for function, *values in prepare:
        function(*values)
    sys.argv = ["asynchebb", *arguments]
    cli.main()


def sentence(done: Any) -> str:
    """The one sentence that a call fails with: nothing else is on standard error, and the exit code is 1 or 2."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode in (1, 2), f"exit code {done.returncode}: {done.stderr}"
    assert len(lines) == 1 and lines[0].startswith("asynchebb: "), done.stderr
    return lines[0]


def save_all_the_time() -> None:
    """Save each part of a run or a training, however quickly it was made."""
    from asynchebb.own_data import learn
    from asynchebb.runs import recording

    recording.NOT_WORTH_A_FILE = learn.SAVE_EVERY = 0.0


def with_threads_for_workers() -> None:
    """Have threads do what workers do: new processes would take seconds each."""
    from asynchebb.sweeps import executors

    executors.local = lambda workers=None: ThreadPoolExecutor(1)  # type: ignore[return-value, assignment]


def files_of_at_most(size: int) -> None:
    """Limit the size of files, as `ulimit -f` does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def without_privileges() -> None:
    """Give up what root may do, here and in all children: permissions count again."""
    if os.geteuid() == 0:
        for capability in range(LAST_CAPABILITY):
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
        if LIBC.capset(header, (ctypes.c_uint32 * 6)()):
            raise OSError(ctypes.get_errno(), "capset")


def close(*descriptors: int) -> None:
    """Close these descriptors, as `>&-` does: 0 is standard input, 1 output."""
    for descriptor in descriptors:
        os.close(descriptor)
        setattr(sys, ("stdin", "stdout", "stderr")[descriptor], None)  # as Python does when it starts


def leave() -> None:
    """Write to a reader that has gone, as `| true` does."""
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.close(reader)
    sys.stdout = os.fdopen(1, "w", closefd=False)


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[str], None]]:
    """Mount a disk of so many bytes here; yields a function that changes its size."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")

    def resize(to: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={to}", folder], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
