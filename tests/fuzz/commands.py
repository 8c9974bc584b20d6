"""The command line with odd words. Each command runs in a folder of its own, that holds files which are not what they
seem; those that would not end by themselves run in a process of their own."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from asynchebb import cli

from . import odd
from .judge import of_error
from .verdicts import CLEAR, HANG, RAW, UNNAMED, WORKS, Verdict

PATIENCE = 120  # seconds that a command in a process of its own may take
SMALL = {"n": "6", "samples": "3", "hold": "5", "snapshots": "1", "stimulus": "Crossbars(6)"}
NUMBERS = ("nan", "inf", "-1", "0", "1e3", "abc", "é😀", "9" * 30, "1.5", "", "0x10", "1_0", "--")
VALUES = (
    *("", "(", "Oja(", "Crossbars(10**9)", "Crossbars(1000000)", "__import__('os')", "nothing.py:X()", "/etc/passwd"),
    *("Oja(eta=nan)", "Oja(eta='x')", "Bars(6, probability=1e400)", "FromArray('nothing.npy')", "Crossbars(p=6)(p=6)"),
    *("Oja(**{})", "é", "lambda: 1", "{}", "broken.py:X()", "()" * 3000, "[" * 300, "-" * 5000 + "1"),
)
FILES = (
    *(
        "nothing",
        "",
        "text.nc",
        "afolder.nc",
        "foreign.nc",
        "claims.nc",
        "claims_model.nc",
        "/dev/null",
        "/",
        "x" * 300,
    ),
    *("bad.csv", "cut.nc", "\udcff.nc"),
)
DATA = (
    *(*FILES, "bin.csv", "empty.csv", "one.csv", "nan.csv", "objects.npy", "complex.npy", "zeros.npy", "negative.npy"),
    *("huge.npy", "texts.npy", "records.npy", "5d.npy", "same.npy", "cut.npy", "lying.npy", "broken.npz", "t.png"),
    *("pictures", "empty", "idx-ubyte", "Crossbars(1)", "Patches(9999)", "Crossbars(100000)"),
)
AXES = (
    *("seed", "seed=", "=1", "seed=range(10**9)", "seed=range(1000000000000)", "seed=range(-1)", "seed=[", "seed=1,1"),
    *("seed=" + "9" * 5000, "rule.eta=nan", "rule.eta=log(0,1,3)", "rule.eta=linear(0,1,1000000000)", "rule.eta.x=1"),
    *("rule.eta=log(1e-4,1e-1,4", "n=1e9", "n=None", "hold=()", "nope=1", "model=x", "é=1", "stimulus=nothing.py:X()"),
)


class Command(NamedTuple):
    """Words for the command line."""

    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join(word if len(word) < 40 else f"{word[:36]}…" for word in self.words)

    def judged(self) -> Verdict:
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(_files(), folder, dirs_exist_ok=True)
            os.chdir(folder)
            try:
                return _alone(self.words) if self.words[:1] == ("live",) else _here(self.words)
            finally:
                os.chdir(before)


def cases(seed: int | None = None) -> list[Command]:
    """Each odd word where it may stand; with a seed, also two odd options of one command."""
    found = [*_run(), *_of_files(), *_of_data(), *_sweeps(), *_others()]
    if seed is not None:
        rng = np.random.default_rng(seed)
        for _ in range(len(found)):
            changes = {name: odds[rng.integers(len(odds))] for name, odds in _two(rng)}
            found.append(_with(("run",), SMALL | changes | {"out": "o"}))
    return [Command(words) for words in found]


def _two(rng: np.random.Generator) -> Iterator[tuple[str, tuple[str, ...]]]:
    options = [*_options().items()]
    for k in rng.permutation(len(options))[:2]:
        yield options[k]


def _options() -> dict[str, tuple[str, ...]]:
    numbers = ("n", "samples", "hold", "snapshots", "seed", "r-b", "r-r")
    parts = ("stimulus", "phase", "rule", "schedule", "dynamics", "weights")
    names = ("model", "reading", "dtype", "engine", "measure")
    return dict.fromkeys(numbers, NUMBERS) | dict.fromkeys(parts + names, VALUES)


def _with(words: tuple[str, ...], options: dict[str, str]) -> tuple[str, ...]:
    return (*words, *(word for name, value in options.items() for word in (f"--{name}", value)))


def _run() -> Iterator[tuple[str, ...]]:
    for name, odds in _options().items():
        # A stimulus stands beside no phase.
        small = {key: value for key, value in SMALL.items() if not (name == "phase" and key == "stimulus")}
        yield from (_with(("run",), small | {name: value, "out": "o"}) for value in odds)
    outs = (
        "",
        "/dev/null",
        "/proc/x",
        "a\nb",
        "x" * 300,
        "text.nc",
        "afolder.nc",
        "o.csv",
        "foreign.nc",
        "s3://b/x.nc",
    )
    yield from (_with(("run",), SMALL | {"out": out}) for out in outs)


def _of_files() -> Iterator[tuple[str, ...]]:
    for file in FILES:
        yield from (("show", file), ("movie", file), ("encode", file, "zeros.npy"))
        yield from (("sweep", "status", file), ("sweep", "plot", file), ("sweep", "export", file, "t.csv"))
        yield ("sweep", "rm", file, "0", "--yes")
    yield from (("show",), ("show", "claims.nc", "claims.nc"))
    yield from (("movie", "claims.nc", "--seconds", "nan"), ("movie", "claims.nc", "--neurons", "-1"))


def _of_data() -> Iterator[tuple[str, ...]]:
    few = {"passes": "1", "hold": "5", "settle": "5", "n": "4", "out": "learned"}
    for data in DATA:
        yield _with(("learn", data), few)
        yield ("compare", data, "--n", "2", "--seeds", "1", "--passes", "1", "--method", "x", "--out", "co")
    for name in ("n", "scale", "passes", "settle", "seed"):
        yield from (_with(("learn", "same.npy"), few | {name: value}) for value in NUMBERS)
    for name in ("array", "labels"):
        yield from (_with(("learn", "same.npy"), few | {name: value}) for value in ("", "x", "bin.csv", "cut.npy", "/"))


def _sweeps() -> Iterator[tuple[str, ...]]:
    files = ("x.toml", "y.toml", "z.toml", "w.toml", "nothing.toml", "/", "bin.csv", "lists.toml", "deep.toml")
    yield from (("sweep", "run", file, "--workers", "1", "--out", "so") for file in files)
    small = {key: SMALL[key] for key in ("n", "stimulus", "samples", "hold")}
    for axis in AXES:
        yield _with(("sweep", "run"), small | {"vary": axis, "workers": "1", "out": "so"})
        yield _with(("sweep", "search"), small | {"vary": axis, "trials": "0", "workers": "1", "out": "so"})
    for workers in ("0", "-1", "10000000", "x"):
        yield _with(("sweep", "run"), small | {"vary": "seed=0", "workers": workers, "out": "so"})
    for option, value in {"zip": "x,y", "dask": "nowhere", "slurm": "x", "out": "o.csv"}.items():
        yield _with(("sweep", "run"), small | {"vary": "seed=0", option: value})


def _others() -> Iterator[tuple[str, ...]]:
    yield from (("list", "x"), ("doctor", "x"), ("--nope",), ("é",), ("sweep",), ("sweep", "x"), ("\udcff",))
    yield from (
        ("reproduce", "nofig"),
        ("reproduce", "fig1", "--scale", "x"),
        ("reproduce", "x", "--beside", "nowhere"),
    )
    yield from (("live", "--port", value, "--no-browser") for value in ("-1", "99999999", "x"))
    yield from (("live", "--host", "no.such.host.invalid", "--no-browser"), ("live", "--n", "0", "--no-browser"))
    yield from (("live", "--stimulus", value, "--no-browser") for value in ("Crossbars(1000000)", "Oja()", "x"))


@cache
def _files() -> str:
    """A folder with files for the commands, to be copied for each."""
    folder, before = tempfile.mkdtemp(), Path.cwd()
    os.chdir(folder)
    try:
        odd.make_files()
        _make_files()
    finally:
        os.chdir(before)
    return folder


def _make_files() -> None:
    texts = {
        "bad.csv": "a,b\n1,2\n3\n4,x\n",
        "empty.csv": "",
        "one.csv": "a,b\n1,2\n",
        "nan.csv": "a,b\n1,nan\n2,3\n",
        "x.toml": "n=[1]",
        "z.toml": "vary=3",
        "w.toml": 'n=6\nsamples=3\nhold=5\nstimulus="Crossbars(6)"\n[vary]\nseed=[]\n',
        "lists.toml": 'stimulus="Crossbars(6)"\nzip=[[1]]\n[vary]\nseed=[[1], {}]\n',
        "deep.toml": "x=" + "[" * 5000 + "]" * 5000,
        "broken.py": "1/0\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("y.toml").write_bytes(b"\xff\xfe")
    Path("bin.csv").write_bytes(bytes(range(256)) * 9)
    arrays = {
        "objects": np.array([{}], object),
        "complex": np.ones((3, 4)) * 1j,
        "zeros": np.zeros((5, 4)),
        "negative": -np.ones((5, 4)),
        "huge": np.full((5, 4), 1e308),
        "texts": np.full((3, 3), "a"),
        "records": np.zeros(3, [("a", float)]),
        "5d": np.ones((2, 2, 2, 2, 2)),
        "same": np.ones((6, 4)),
    }
    for name, array in arrays.items():
        np.save(name, array, allow_pickle=True)
    whole = Path("zeros.npy").read_bytes()
    Path("cut.npy").write_bytes(whole[:100])
    Path("lying.npy").write_bytes(whole.replace(b"(5, 4), }" + b" " * 11, b"(999999999999, 4), }"))
    Path("broken.npz").write_bytes(b"PK\x03\x04 broken")
    Path("t.png").write_bytes(b"\x89PNG broken")
    Path("pictures").mkdir()
    Path("pictures/a.png").write_bytes(b"\x89PNG broken")
    Path("empty").mkdir()
    Path("idx-ubyte").write_bytes(b"\0\0\x08\x03" + b"\xff\xff\xff\xff" * 3 + b"12")


def _here(words: tuple[str, ...]) -> Verdict:
    """Run the command in this process: a new one takes seconds to import what this one has."""
    ignored: list[str] = []
    with (
        mock.patch.object(sys, "argv", ["asynchebb", *words]),
        mock.patch.object(sys, "unraisablehook", lambda error: ignored.append(str(error.exc_value))),
        contextlib.redirect_stdout(io.StringIO()) as stdout,
        contextlib.redirect_stderr(io.StringIO()) as stderr,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            cli.main()
        except SystemExit as end:
            code = 0 if end.code is None else int(end.code)
        except Exception as error:
            verdict = of_error(error, [])
            return Verdict(RAW, verdict.says, verdict.place)
    return _of_words(code, stderr.getvalue(), ignored, stdout.getvalue())


def _alone(words: tuple[str, ...]) -> Verdict:
    """Run the command in a process of its own, which Ctrl-C ends if it begins to serve a page."""
    command = [sys.executable, "-c", "from asynchebb.cli import main; main()", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        if any(b"Ctrl-C" in line for line in process.stdout):
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Verdict(HANG, f"no end within {PATIENCE} s")
    return _of_words(process.returncode, said.decode(errors="replace"))


def _of_words(code: int, said: str, ignored: Sequence[str] = (), shown: str = "") -> Verdict:
    """What it said on standard error, and showed: the help of a group of commands, or what failed of a sweep."""
    lines = said.strip().splitlines()
    last = lines[-1] if lines else ""
    if "Traceback" in said or "Exception ignored" in said or ignored or code not in (0, 1, 2):
        return Verdict(RAW, f"exit code {code}: {(ignored or [last])[-1][:200]}", "command line")
    if not code:
        return Verdict(WORKS, last[:200])
    sentences = [line for line in lines if line.startswith("asynchebb: ") and "warning" not in line]
    clear = len(sentences) == 1 or (code == 1 and "1 failed" in shown) or (code == 2 and "Usage:" in shown)
    return Verdict(CLEAR if clear and len(last) < 2000 else UNNAMED, f"exit code {code}: {said[-200:]}")
