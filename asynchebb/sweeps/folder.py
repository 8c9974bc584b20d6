"""A sweep's folder, which many processes on many machines may read and write concurrently.

    grids/ID.json    the definition of a sweep: its axes, and the identity of the run at each point
    grids/ID.PLACE.PROCESS.CALL.runs    the runs themselves, for the workers of one call, until they finish
    runs/ID.nc       a run, as saved by `record`; written atomically
    runs/ID.json     its measures: the run is finished
    runs/ID.failed   its error: the run failed
    runs/ID.claim    a process is computing the run; it touches this file every few seconds

File names hold all the information, so that a directory listing shows the progress of a sweep. There
are no locks, which not every network file system supports: if two processes compute the same run,
both write the same file. What a file says is checked before it is believed: names of runs are
identities and nothing else, and only files that carry them are ever deleted.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import pickle
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from asynchebb import checks, files
from asynchebb.checks import InputError, shown
from asynchebb.files import is_folder, make_writable
from asynchebb.runs.run import Phase, Probe, Run

FORMAT = "asynchebb sweep"
# Keys in a run's measures, 1 if it is in this trouble.
SILENT, UNSTABLE = "silent", "unstable"
TROUBLES = {SILENT: "learned nothing or have died", UNSTABLE: "are unstable: dt is too long for their initial weights"}
DAMAGED = "is damaged"
OURS = ("grids", "runs", "unfinished")
NAME, IDENTITY = "[0-9a-f]{12}", "[0-9a-f]{20}"  # of a sweep, and of a run
ENOUGH = 5  # finished runs needed to estimate the remaining time
BEAT, SILENCE = 5.0, 60.0  # seconds between touches of a claim, and after which it counts as abandoned


class Folder:
    """The paths of a sweep's files, and operations on them."""

    def __init__(self, path: str | Path) -> None:
        self.path = checks.path("folder", path).absolute()
        self.grids, self.runs, self.unfinished = (self.path / name for name in ("grids", "runs", "unfinished"))

    def file(self, identity: str, kind: str) -> Path:
        """The file of a run."""
        return self.runs / f"{identity}.{kind}"

    def has_ended(self, identity: str) -> bool:
        done = self.file(identity, "json").exists() and self.file(identity, "nc").exists()
        return done or self.file(identity, "failed").exists()

    def prepare(self) -> None:
        """Create the folder; refuse one that holds other files."""
        is_folder("out", self.path)
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
        if not self.grids.is_dir():
            return []
        return [file for file in self.grids.iterdir() if re.fullmatch(f"{NAME}\\.json", file.name)]

    def write(self, file: Path, content: dict[str, Any]) -> None:
        """Write JSON atomically: other processes see the whole file or none."""
        self._write(file, lambda: files.write_json(file, content, self.unfinished))

    def _write(self, file: Path, write: Callable[[], None]) -> None:
        try:
            self.unfinished.mkdir(exist_ok=True)
            write()
        except FileNotFoundError:  # another process has just tidied up
            if not file.parent.exists():
                raise
            self._write(file, write)

    def forget_failures(self, identities: Iterable[str]) -> None:
        """Delete the failures, so that these runs are retried; the file of a diverged run records only its failure."""
        for identity in identities:
            if self.file(identity, "failed").exists():
                if not self.file(identity, "json").exists():
                    self.file(identity, "nc").unlink(missing_ok=True)
                self.file(identity, "failed").unlink(missing_ok=True)

    def set_aside_damaged(self, identities: Iterable[str]) -> list[str]:
        """Rename runs whose file has changed since it was written, so that they are run again, and delete damaged
        measures and errors, so that they are taken again; returns messages."""
        messages = []
        for identity in dict.fromkeys(identities):
            file, measured, failed = (self.file(identity, kind) for kind in ("nc", "json", "failed"))
            for said in (measured, failed):
                if said.exists() and not files.read_json_if_whole(said):
                    said.unlink(missing_ok=True)
                    messages.append(f"{said} was damaged; it is made again")
            if file.exists() and not failed.exists() and not files.is_whole(file):
                aside = file.with_suffix(".nc.damaged")
                os.replace(file, aside)
                measured.unlink(missing_ok=True)
                messages.append(f"{file} is damaged; it was renamed to {aside.name} and is run again")
        return messages

    def tidy(self) -> None:
        """Remove leftovers of killed processes, unless a process is still working here."""
        claims = [*self.runs.glob("*.claim")]
        if all(map(abandoned, claims)):
            abandoned_runs = [file for file in self.grids.glob("*.runs") if _is_left_over(file)]
            for left in (*claims, *abandoned_runs, *filter(_is_ours, self.unfinished.glob("*"))):
                left.unlink(missing_ok=True)
            with suppress(OSError):  # it does not exist, or another process is writing there
                self.unfinished.rmdir()

    def write_grid(
        self,
        title: str,
        axes: list[list[dict[str, Any]]],
        runs: list[Run],
        work: list[int] | None = None,
        name: str | None = None,
    ) -> Points:
        """Write the sweep's definition; the file's date is that of the sweep's last start.

        `work` is the relative cost of each run, by default its number of steps, used to estimate the time left. The
        definition is named by its content, or has a `name` under which it grows.
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
        name = name or hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
        _check_definition(self.grids / f"{name}.json", content)
        self.write(self.grids / f"{name}.json", content)
        return Points(self, name, content)

    def write_runs(self, name: str, runs: Sequence[Run]) -> Path:
        """Write the runs for the workers, including the code of user-defined classes: the files that define them may
        not exist where the workers run."""
        import cloudpickle

        # Another thread of this process may run the same sweep, and workers read a file once.
        file = self.grids / f"{name}.{files.mark()}.runs"
        known = cloudpickle.list_registry_pickle_by_value()
        mine = [module for module in _modules(runs) if module.__name__ not in known]
        for module in mine:
            cloudpickle.register_pickle_by_value(module)
        try:
            pickled = cloudpickle.dumps([*runs])
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise InputError(f"the runs cannot be sent to workers ({error})") from error
        finally:
            for module in mine:
                cloudpickle.unregister_pickle_by_value(module)

        def write() -> None:
            with files.atomic(file, self.unfinished) as temporary:
                temporary.write_bytes(pickled)

        self._write(file, write)
        return file

    def is_started(self, name: str) -> bool:
        """Has a process written the runs of this sweep for its workers, and not yet removed them?"""
        return any(not _is_left_over(file) for file in self.grids.glob(f"{name}.*.runs"))

    def grid_names(self) -> list[str]:
        """The sweeps in this folder, the latest last."""
        files = self._grid_files()
        if not files:
            raise InputError(f"folder is {str(self.path)!r}; it must be a sweep's folder, but there is no sweep in it")
        return [file.stem for file in sorted(files, key=lambda file: file.stat().st_mtime)]

    def points(self, name: str | None = None) -> Points:
        """A sweep in this folder, by default the latest."""
        names = self.grid_names()
        if name is not None and (not isinstance(name, str) or name not in names):
            raise InputError(f"grid is {shown(name)}; the sweeps in {str(self.path)!r} are {', '.join(names)}")
        name = name or names[-1]
        file = self.grids / f"{name}.json"
        content = files.read_json("folder", file)
        _check_definition(file, content)
        return Points(self, name, content)

    def runs_of(self, name: str) -> list[str]:
        """The runs of a sweep that no other sweep in the folder has."""
        others = [self.points(other) for other in self.grid_names() if other != name]
        shared = {identity for points in others for identity in points.identities}
        return [*dict.fromkeys(one for one in self.points(name).identities if one not in shared)]

    def remove_grid(self, name: str) -> int:
        """Delete a sweep and its runs, except those of other sweeps in the folder; returns how many runs it deletes."""
        if self.points(name).status().running:
            raise InputError(f"grid is {name!r}, which is running; stop it first")
        mine = {*self.runs_of(name)}
        for file in self.runs.iterdir() if self.runs.exists() else ():
            if file.name.partition(".")[0] in mine and _is_ours(file):
                shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
        (self.grids / f"{name}.json").unlink(missing_ok=True)
        return len(mine)


def _own_labels(runs: Iterable[Run]) -> dict[str, str]:
    """Labels of user-defined measures."""
    recorded = {measure for run in runs for probe in run.probes for measure in probe.measures}
    return {measure.name: measure.label for measure in sorted(recorded, key=repr) if not measure.is_own}


def _check_definition(file: Path, content: dict[str, Any]) -> None:
    """Refuse a definition that `write_grid` cannot have written: whoever can write to the folder chooses its words."""
    try:
        axes = [axis for group in content["axes"] for axis in group]
        lengths = [len(group[0]["values"]) for group in content["axes"]]
        fits = (
            content["format"] == FORMAT
            and all(isinstance(content[name], int) and content[name] >= 1 for name in ("n", "m", "probes"))
            and content["dtype"] in ("float32", "float64")
            and isinstance(content["run"], str)
            and all(isinstance(axis["name"], str) for axis in axes)
            and all(
                len(axis["values"]) == n for n, group in zip(lengths, content["axes"], strict=True) for axis in group
            )
            and all(re.fullmatch(IDENTITY, identity) for identity in content["runs"])
            and len(content["runs"]) == len(content["work"]) == math.prod(lengths)
            and all(isinstance(work, int | float) for work in content["work"])
        )
    except (LookupError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise InputError(
            f"folder holds {str(file)!r}, which is not a sweep's definition; delete it or put it elsewhere"
        )


def _is_ours(file: Path) -> bool:
    """Does its name match those of a sweep's files, finished or temporary?"""
    name = rf"\.?({NAME}|{IDENTITY})\.(json|failed|claim|nc|nc\.damaged|parts|{files.MARK}\.runs)(\.{files.MARK})?"
    return re.fullmatch(name, file.name) is not None


def _is_left_over(runs: Path) -> bool:
    """Is the process that wrote these runs dead?"""
    return files.is_left_over(runs.name.partition(".")[2].removesuffix(".runs"))


def _modules(runs: Sequence[Run]) -> list[ModuleType]:
    """The modules that define the runs' parts, excluding this package's."""
    names = set()
    for run in runs:
        shown: tuple[Phase | Probe, ...] = (*run.phases, *run.probes)
        for part in (*vars(run.network).values(), *(part.stimulus for part in shown)):
            names.add(type(part).__module__)
        names |= {measure.function.__module__ for probe in run.probes for measure in probe.measures if measure.function}
    here = ("asynchebb", "builtins", "__main__", None)  # None: a function not defined in a module
    return [sys.modules[name] for name in names if (name and name.partition(".")[0]) not in here]


@dataclass(frozen=True)
class Status:
    """How many runs of a sweep are done, running, failed and waiting, and the estimated time left."""

    done: int
    running: int
    failed: int
    waiting: int
    seconds_left: float | None  # None: not known, or no process is running

    @property
    def total(self) -> int:
        return self.done + self.running + self.failed + self.waiting

    @property
    def in_words(self) -> str:
        left = "" if self.seconds_left is None else f", {timedelta(seconds=round(self.seconds_left))} left"
        return f"{self.running} running, {self.failed} failed{left}"


@dataclass(frozen=True)
class Points:
    """A sweep as stored in its folder."""

    folder: Folder
    name: str
    content: dict[str, Any]

    @property
    def identities(self) -> list[str]:
        return self.content["runs"]

    @cached_property
    def work(self) -> dict[str, int]:
        return dict(zip(self.identities, self.content["work"], strict=True))

    def failures(self) -> dict[str, str]:
        """The errors of the failed runs, by their values on the axes."""
        failures = {}
        for identity, values in zip(self.identities, self._values(), strict=True):
            file = self.folder.file(identity, "failed")
            if file.exists() and not self.folder.file(identity, "json").exists():
                failures[values] = error_in(file)
        return failures

    def troubled(self, trouble: str) -> list[str]:
        """The runs in this trouble, by their values on the axes."""
        points = dict(zip(self.identities, self._values(), strict=True))
        measured = ((values, self.folder.file(identity, "json")) for identity, values in points.items())
        return [values for values, file in measured if files.read_json_if_whole(file).get(trouble)]

    def _values(self) -> list[str]:
        """Each point: "schedule.r_b=0.5, seed=2"."""
        groups = [
            [", ".join(f"{axis['name']}={axis['values'][k]}" for axis in group) for k in range(len(group[0]["values"]))]
            for group in self.content["axes"]
        ]
        return [", ".join(values) for values in itertools.product(*groups)]

    @property
    def axes_in_words(self) -> str:
        """The axes and how many values each has: "schedule.r_b (3) × seed (4)"."""
        groups = self.content["axes"]
        sizes = ("|".join(axis["name"] for axis in group) + f" ({len(group[0]['values'])})" for group in groups)
        return " × ".join(sizes)

    def facts(self) -> dict[str, Any]:
        """The sweep and its progress, for other programs."""
        axes = {axis["name"]: axis["values"] for group in self.content["axes"] for axis in group}
        started = datetime.fromtimestamp(self.started).isoformat(sep=" ", timespec="seconds")
        about = {"grid": self.name, "run": self.content["run"], "axes": axes, "started": started}
        troubles = {f"{trouble}_runs": self.troubled(trouble) for trouble in TROUBLES}
        return about | asdict(self.status()) | {"failures": self.failures(), **troubles}

    @property
    def started(self) -> float:
        """Time of the sweep's last start."""
        return (self.folder.grids / f"{self.name}.json").stat().st_mtime

    def status(self) -> Status:
        """Progress, as read from the file names in the folder."""
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
        """Estimated seconds left, at the pace of the last hundred runs since the sweep was started."""
        recent = sorted((entry.stat().st_mtime, one) for one, entry in done.items())[-100:]
        recent = [(when, one) for when, one in recent if when > self.started]
        if len(recent) < ENOUGH:
            return None
        return left * (recent[-1][0] - recent[0][0]) / sum(self.work[one] for _, one in recent[1:])


class DamagedRuns(UserWarning):
    """Files of a sweep's runs are damaged; the runs count as failed.

    >>> import warnings
    >>> warnings.simplefilter("error", ah.DamagedRuns)  # stop instead of warning
    """


def error_in(failed: Path) -> str:
    """The error of a failed run, as its file says."""
    return str(files.read_json_if_whole(failed).get("error", f"{failed} {DAMAGED}"))


class Claim:
    """A process's claim on a run: others leave the run alone as long as the claim is touched regularly."""

    def __init__(self, file: Path) -> None:
        self.file, self.touched = file, time.monotonic()

    def touch(self) -> None:
        now = time.monotonic()
        if now - self.touched > BEAT:
            self.touched = now
            with suppress(FileNotFoundError):  # another process considered it abandoned and computes the same run
                os.utime(self.file)


@contextmanager
def claimed(folder: Folder, identity: str) -> Iterator[Claim | None]:
    """Claim this run; yields None if another process is computing it."""
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
            json.dump({"place": files.place(), "process": os.getpid()}, out)
        yield Claim(file)
    finally:
        file.unlink(missing_ok=True)


def abandoned(claim: Path) -> bool:
    """Has the process that made the claim died, or not touched it for too long?"""
    try:
        if time.time() - claim.stat().st_mtime > SILENCE:
            return True
    except FileNotFoundError:
        return False  # it was released just now
    try:
        made_by = json.loads(claim.read_text(encoding="utf-8"))
        return made_by["place"] == files.place() and not files.is_alive(int(made_by["process"]))
    except (OSError, ValueError, LookupError, TypeError):  # it is being written, or has just been released
        return False
