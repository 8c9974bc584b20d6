"""A sweep's folder, which any number of processes on any number of machines may read and write at once.

    grids/ID.json    what a sweep is made of: its axes, and the identity of the run at each point
    grids/ID.HOST.PROCESS.runs    the runs themselves, for the workers of this process, until they are done
    runs/ID.nc       a run, as `record` keeps it; written whole or not at all
    runs/ID.json     its measures: it is done
    runs/ID.failed   its error: it failed
    runs/ID.claim    a process is at work on it, and touches this file every few seconds

Names say all, so that a look into the folder tells how a sweep stands. Nothing relies on locks,
which not every network file system has: should two processes run the same, both write the same.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import re
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from asynchebb.checks import InputError
from asynchebb.files import atomic, make_writable
from asynchebb.simulate import Phase, Probe, Run

FORMAT = "asynchebb sweep"
DIGEST = "sha256"  # in a run's measures: of its file
OURS = ("grids", "runs", "unfinished")
ENOUGH = 5  # runs, to tell from them how long the others take
BEAT, SILENCE = 5.0, 60.0  # seconds between two touches of a claim, and after which it is taken for abandoned


class Folder:
    """Where each thing stands."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.grids, self.runs, self.unfinished = (self.path / name for name in ("grids", "runs", "unfinished"))

    def file(self, identity: str, kind: str) -> Path:
        return self.runs / f"{identity}.{kind}"

    def has_ended(self, identity: str) -> bool:
        done = self.file(identity, "json").exists() and self.file(identity, "nc").exists()
        return done or self.file(identity, "failed").exists()

    def prepare(self) -> None:
        """Make it, unless there is something else in it."""
        if self.path.is_dir() and not self._grid_files():
            others = (entry for entry in self.path.glob("*") if entry.name not in OURS)
            within = (entry for name in OURS for entry in (self.path / name).glob("*") if not _is_ours(entry))
            if other := next(itertools.chain(others, within), None):
                raise InputError(
                    f"out is {str(self.path)!r}, which holds other files ({other.relative_to(self.path)}); "
                    "it must be a new or empty folder, or one with a sweep in it"
                )
        make_writable("out", self.path, self.grids, self.runs)

    def _grid_files(self) -> list[Path]:
        return [file for file in self.grids.glob("*.json") if read(file).get("format") == FORMAT]

    def write(self, file: Path, content: dict[str, Any]) -> None:
        self._write(file, json.dumps(content, indent=1).encode())

    def _write(self, file: Path, content: bytes) -> None:
        """In one go: whoever looks sees all of it, or nothing."""
        try:
            self.unfinished.mkdir(exist_ok=True)
            with atomic(file, self.unfinished) as temporary:
                temporary.write_bytes(content)
        except FileNotFoundError:  # another process has just tidied up
            if not file.parent.exists():
                raise
            self._write(file, content)

    def forget_failures(self, points: Points) -> None:
        """So that they are tried again. What a run that diverged has left is the failure itself."""
        for identity in points.identities:
            if self.file(identity, "failed").exists():
                if not self.file(identity, "json").exists():
                    self.file(identity, "nc").unlink(missing_ok=True)
                self.file(identity, "failed").unlink(missing_ok=True)

    def set_aside_damaged(self, points: Points) -> list[str]:
        """Runs whose file is no longer what it was are put aside, so that they are run again: what became of each."""
        said = []
        for identity in dict.fromkeys(points.identities):
            file, measured = self.file(identity, "nc"), self.file(identity, "json")
            if file.exists() and not self.file(identity, "failed").exists() and not _is_whole(file, measured):
                aside = file.with_suffix(".nc.damaged")
                os.replace(file, aside)
                measured.unlink(missing_ok=True)
                said.append(f"{file} is not as it was written; it is now {aside.name}, and is run again")
        return said

    def tidy(self) -> None:
        """Remove what processes that were killed have left, if none is at work."""
        claims = [*self.runs.glob("*.claim")]
        if all(map(abandoned, claims)):
            abandoned_runs = [file for file in self.grids.glob("*.runs") if _is_left_over(file)]
            for left in (*claims, *abandoned_runs, *filter(_is_ours, self.unfinished.glob("*"))):
                left.unlink(missing_ok=True)
            with suppress(OSError):  # there is none, or another process writes there just now
                self.unfinished.rmdir()

    def write_grid(
        self, title: str, axes: list[list[dict[str, Any]]], runs: list[Run], work: list[int] | None = None
    ) -> Points:
        """Put down what the sweep is made of. It has the date of the sweep's last start, and the newest comes first.

        `work` is how long each run takes beside the others, by default its steps: the time left is told by it.
        """
        content = {
            "format": FORMAT,
            "run": title,
            "axes": axes,
            "n": max(run.network.n for run in runs),
            "m": max(run.network.m for run in runs),
            "probes": max(len(run.probes) for run in runs),
            "dtype": max(run.dtype for run in runs),
            **({"labels": labels} if (labels := _own_labels(runs)) else {}),
            "runs": [run.identity for run in runs],
            "work": work or [run.steps for run in runs],
        }
        name = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
        self.write(self.grids / f"{name}.json", content)
        return Points(self, name, content)

    def write_runs(self, name: str, runs: Sequence[Run]) -> Path:
        """Put the runs down for the workers, with the classes of the user's own in them: where the workers are, there
        may be no file that these stand in."""
        import cloudpickle

        known = cloudpickle.list_registry_pickle_by_value()
        mine = [module for module in _modules(runs) if module.__name__ not in known]
        for module in mine:
            cloudpickle.register_pickle_by_value(module)
        try:
            self._write(self._runs_file(name), cloudpickle.dumps([*runs]))
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise InputError(f"the runs cannot be sent to workers ({error})") from error
        finally:
            for module in mine:
                cloudpickle.unregister_pickle_by_value(module)
        return self._runs_file(name)

    def forget_runs(self, name: str) -> None:
        self._runs_file(name).unlink(missing_ok=True)

    def _runs_file(self, name: str) -> Path:
        return self.grids / f"{name}.{socket.gethostname()}.{os.getpid()}.runs"

    def grid_names(self) -> list[str]:
        """The sweeps in this folder, the one started last at the end."""
        files = self._grid_files()
        if not files:
            raise InputError(f"folder is {str(self.path)!r}; it must be a sweep's folder, but there is no sweep in it")
        return [file.stem for file in sorted(files, key=lambda file: file.stat().st_mtime)]

    def points(self, name: str | None = None) -> Points:
        """A sweep of this folder, by default the one started last."""
        names = self.grid_names()
        if name is not None and name not in names:
            raise InputError(f"grid is {name!r}; the sweeps in {str(self.path)!r} are {', '.join(names)}")
        name = name or names[-1]
        return Points(self, name, read(self.grids / f"{name}.json"))


def _own_labels(runs: Iterable[Run]) -> dict[str, str]:
    """What measures of the user's own are called."""
    recorded = {measure for run in runs for probe in run.probes for measure in probe.measures}
    return {measure.name: measure.label for measure in sorted(recorded, key=repr) if not measure.is_own}


def digest(file: Path) -> str:
    """Tells whether a file is still what it was."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _is_whole(file: Path, measured: Path) -> bool:
    """Is it as it was written; or, if that is not known (its process was killed right then), can it be read?"""
    if DIGEST in (known := read(measured)):
        return known[DIGEST] == digest(file)
    import h5py

    try:
        with h5py.File(file) as source:
            return source.attrs["identity"] == file.stem
    except (OSError, KeyError, RuntimeError):
        return False


def _is_ours(file: Path) -> bool:
    """Is it called as a sweep calls its files?"""
    name = r"\.?[0-9a-f]{12,20}\.(json|failed|claim|nc|nc\.damaged|parts|.+\.runs)(\..+\.\d+)?"
    return re.fullmatch(name, file.name) is not None


def _is_left_over(runs: Path) -> bool:
    """Is the process that has put these runs down dead?"""
    found = re.fullmatch(r"[0-9a-f]{12}\.(.+)\.(\d+)\.runs", runs.name)
    return found is not None and found[1] == socket.gethostname() and not _alive(int(found[2]))


def _modules(runs: Sequence[Run]) -> list[ModuleType]:
    """The modules that the runs' parts are from, but this package's."""
    names = set()
    for run in runs:
        shown: tuple[Phase | Probe, ...] = (*run.phases, *run.probes)
        for part in (*vars(run.network).values(), *(part.stimulus for part in shown)):
            names.add(type(part).__module__)
    return [sys.modules[name] for name in names if name.partition(".")[0] not in ("asynchebb", "builtins", "__main__")]


def read(file: Path) -> dict[str, Any]:
    """What a JSON file says; nothing if it is not there or damaged."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    except (OSError, ValueError):
        return {}


@dataclass(frozen=True)
class Status:
    """How many runs of a sweep are done, running, failed and waiting, and how long it may yet take."""

    done: int
    running: int
    failed: int
    waiting: int
    seconds_left: float | None  # None: not known, or nobody is at work on it

    @property
    def total(self) -> int:
        return self.done + self.running + self.failed + self.waiting


@dataclass(frozen=True)
class Points:
    """A sweep as its folder has it."""

    folder: Folder
    name: str
    content: dict[str, Any]

    @property
    def identities(self) -> list[str]:
        return self.content["runs"]

    @cached_property
    def work(self) -> dict[str, int]:
        return dict(zip(self.identities, self.content.get("work") or self.content["steps"], strict=True))

    def failures(self) -> dict[str, str]:
        """What the runs that failed have failed with, by their values on the axes."""
        failures = {}
        for identity, values in zip(self.identities, self._values(), strict=True):
            file = self.folder.file(identity, "failed")
            if file.exists() and not self.folder.file(identity, "json").exists():
                failures[values] = read(file)["error"]
        return failures

    def _values(self) -> list[str]:
        """Each point: "schedule.r_b=0.5, seed=2"."""
        groups = [
            [", ".join(f"{axis['name']}={axis['values'][k]}" for axis in group) for k in range(len(group[0]["values"]))]
            for group in self.content["axes"]
        ]
        return [", ".join(values) for values in itertools.product(*groups)]

    @property
    def started(self) -> float:
        """When the sweep was started the last time."""
        return (self.folder.grids / f"{self.name}.json").stat().st_mtime

    def status(self) -> Status:
        """As a look at the names in the folder tells."""
        kinds: dict[str, dict[str, os.DirEntry]] = {"json": {}, "nc": {}, "failed": {}, "claim": {}}
        for entry in os.scandir(self.folder.runs) if self.folder.runs.exists() else ():
            identity, _, kind = entry.name.partition(".")
            if kind in kinds and identity in self.work:
                kinds[kind][identity] = entry
        done = {one: entry for one, entry in kinds["json"].items() if one in kinds["nc"]}
        failed = kinds["failed"].keys() - done.keys()
        claimed = kinds["claim"].keys() - done.keys() - failed
        running = [one for one in claimed if not abandoned(Path(kinds["claim"][one].path))]
        waiting = len(self.work) - len(done) - len(failed) - len(running)
        left = sum(self.work.values()) - sum(self.work[one] for one in (*done, *failed))
        return Status(len(done), len(running), len(failed), waiting, self._time(done, left) if running else None)

    def _time(self, done: dict[str, os.DirEntry], left: int) -> float | None:
        """How long the work that is left takes, at the pace of the last hundred runs since the sweep was started."""
        recent = sorted((entry.stat().st_mtime, one) for one, entry in done.items())[-100:]
        recent = [(when, one) for when, one in recent if when > self.started]
        if len(recent) < ENOUGH:
            return None
        return left * (recent[-1][0] - recent[0][0]) / sum(self.work[one] for _, one in recent[1:])


class Claim:
    """One's hold on a run: the others leave it alone while it is touched now and then."""

    def __init__(self, file: Path) -> None:
        self.file, self.touched = file, time.monotonic()

    def touch(self) -> None:
        now = time.monotonic()
        if now - self.touched > BEAT:
            self.touched = now
            with suppress(FileNotFoundError):  # another took it for abandoned: it runs the same
                os.utime(self.file)


@contextmanager
def claimed(folder: Folder, identity: str) -> Iterator[Claim | None]:
    """A claim on this run; None if another process is at work on it."""
    file = folder.file(identity, "claim")
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        if not abandoned(file):
            yield None
            return
        descriptor = os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(descriptor, "w") as out:
            json.dump({"host": socket.gethostname(), "process": os.getpid()}, out)
        yield Claim(file)
    finally:
        file.unlink(missing_ok=True)


def abandoned(claim: Path) -> bool:
    """Has the process that made it died, or not been heard of for long?"""
    try:
        if time.time() - claim.stat().st_mtime > SILENCE:
            return True
    except FileNotFoundError:
        return False  # it was taken back this moment
    made_by = read(claim)
    return made_by.get("host") == socket.gethostname() and not _alive(made_by.get("process", 0))


def _alive(process: int) -> bool:
    """On this machine; one that was killed and only waits to be buried is not."""
    if Path("/proc/self/stat").exists():
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False
    if os.name != "posix":
        return True  # its claim tells, in a while
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True
