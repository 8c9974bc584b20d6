"""kill -9 at random moments, the same command again, and the comparison with an undisturbed run."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VICTIM = Path(__file__).parent / "victim"
OUT = "out"
PATIENCE = 20  # seconds for workers to notice that their parent is dead


@dataclass(frozen=True)
class Command:
    """A command under torture."""

    text: str
    reach: float = 1.0  # kills come within this share of an undisturbed run's time and file operations
    most: int = 6  # kills before it is left in peace
    has_workers: bool = False  # half of the kills hit the parent alone


COMMANDS = {
    "run": Command(f"run --n 120 --stimulus Crossbars(10) --samples 1500 --hold 200 --snapshots 12 --out {OUT}"),
    "sweep": Command(
        "sweep run --n 60 --stimulus Crossbars(8) --samples 300 --hold 100 --vary seed=range(12) --workers 2 "
        f"--out {OUT}",
        has_workers=True,
    ),
    "learn": Command(f"learn Crossbars(8) --n 60 --passes 2 --hold 150 --settle 100 --out {OUT}"),
    # It takes a minute, so it is killed every few seconds on its way.
    "reproduce": Command(f"reproduce --scale smoke --workers 2 --out {OUT}", reach=0.1, most=50, has_workers=True),
}


@dataclass(frozen=True)
class Moment:
    """When a command is killed, and whom the kill hits."""

    whom: str  # "group" or "parent"
    seconds: float | None = None  # after its start
    operation: int = 0  # or at this file operation in its folder,
    delay: float = 0.0  # and so many seconds later

    def __str__(self) -> str:
        when = f"after {self.seconds:.2f} s" if self.seconds is not None else f"at file operation {self.operation}"
        return f"{when}{f' + {1000 * self.delay:.0f} ms' * bool(self.delay)} ({self.whom})"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    says: str
    seconds: float
    operations: list[str]  # in its folder

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Tally:
    """What has been done to a command, and what came of it."""

    completions: int = 0
    places: Counter[str] = field(default_factory=Counter)  # where kills hit
    bad: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.places.total()


def environment(folder: Path, moment: Moment | None) -> dict[str, str]:
    """What a command in this folder has to know in order to be killed."""
    whom, number, delay = (moment.whom, moment.operation, moment.delay) if moment else ("", 0, 0.0)
    tally = folder.with_suffix(".tally")
    tally.unlink(missing_ok=True)
    told = {"OUT": folder.resolve() / OUT, "TALLY": tally.resolve(), "NUMBER": number, "DELAY": delay, "WHOM": whom}
    return {
        **{f"TORTURE_{name}": str(value) for name, value in told.items()},
        "PYTHONPATH": os.pathsep.join(filter(None, [str(VICTIM), os.environ.get("PYTHONPATH")])),
        "SOURCE_DATE_EPOCH": "0",  # Matplotlib writes the date into a PDF
    }


def operations(folder: Path) -> list[str]:
    """The file operations of the last command in this folder: "open runs/ID.json"."""
    tally = folder.with_suffix(".tally")
    return [line.strip() for line in tally.read_text(errors="replace").splitlines()] if tally.exists() else []


def start(command: Command, folder: Path, moment: Moment | None = None, limit: float = 600) -> Ended:
    """Run the command in this folder until it ends, or until the kill."""
    folder.mkdir(exist_ok=True)
    errors = folder.with_suffix(".err")
    began = time.monotonic()
    with open(errors, "w") as said:
        process = subprocess.Popen(
            [sys.executable, VICTIM / "command.py", *command.text.split()],
            cwd=folder,
            env={**os.environ, **environment(folder, moment)},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            process.wait(limit if moment is None or moment.seconds is None else moment.seconds)
        except subprocess.TimeoutExpired:
            whole = moment is None or moment.whom == "group"
            (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
    took = time.monotonic() - began
    if process.returncode == 0 or moment is None or moment.whom == "group":
        wait_for_group(process.pid)  # workers of a parent that was killed alone may go on for a moment
    return Ended(process.returncode, errors.read_text()[-500:], took, operations(folder))


def wait_for_group(group: int) -> None:
    """Wait until no process of the group is alive."""
    deadline = time.monotonic() + PATIENCE
    while alive := [*members(group)]:
        if time.monotonic() > deadline:
            raise AssertionError(f"processes {alive} outlive their parent")
        time.sleep(0.05)


def members(group: int) -> Iterator[int]:
    """The living processes of a group."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state not in "ZX":
            yield int(entry.name)


def contents(folder: Path) -> dict[str, str]:
    """All that lies in the folder: a digest of each file, leaving out time and memory; "" for a folder."""
    entries = sorted(folder.rglob("*"))
    return {
        str(entry.relative_to(folder)): "" if entry.is_dir() else hashlib.sha256(_lasting(entry)).hexdigest()
        for entry in entries
    }


def _lasting(file: Path) -> bytes:
    """What a file holds except time and memory, which a reproduction reports, and judges as claim S."""
    content = file.read_bytes()
    if file.name == "work.json":
        return b"" if json.loads(content) else b"empty"
    if file.name == "claims.json":
        told = json.loads(content)
        told["claims"] = [claim for claim in told["claims"] if claim["id"] != "S"]
        return json.dumps({name: value for name, value in told.items() if name not in ("work", "sha256")}).encode()
    if file.name in EFFORT:
        for effort in EFFORT[file.name]:
            content = re.sub(effort, b"", content, flags=re.DOTALL | re.MULTILINE)
        content = b" ".join(content.split())  # but for the empty lines around it
    return content


EFFORT = {
    "claims.md": [rb"^\| S \|[^\n]*\n"],
    "measured.md": [rb"\n## S:.*?(?=\n## |\Z)"],
    "index.html": [
        rb'<section id="made">.*?</section>',
        rb'<details class="claim" id="claim-S">.*?</details>',
        rb'<p class="lead">.*?</p>',  # counts claims
        rb"<details><summary><b>Work</b>: Time and memory.*?</details>",
    ],
}


def differences(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """How one folder differs from another, each in some words."""
    names = {"is left over": found.keys() - wanted.keys(), "is missing": wanted.keys() - found.keys()}
    names["differs"] = {name for name in found.keys() & wanted.keys() if found[name] != wanted[name]}
    return [f"{name} {how}" for how, of in names.items() for name in sorted(of)]


def undisturbed(command: Command, folder: Path) -> tuple[Ended, dict[str, str]]:
    """How the command ends in peace, and what it leaves."""
    shutil.rmtree(folder, ignore_errors=True)
    ended = start(command, folder)
    if ended.code:
        raise RuntimeError(f"{command.text} ended with {ended.code} in peace: {ended.says}")
    return ended, contents(folder / OUT)


def a_moment(command: Command, life: Ended, chance: random.Random) -> Moment:
    """A random moment of the command's life: half of them by the clock, half by its file operations."""
    whom = chance.choice(["group", "parent"]) if command.has_workers else "group"
    if chance.random() < 0.5:
        return Moment(whom, seconds=chance.uniform(0.02, 1) * command.reach * life.seconds)
    operation = chance.randint(1, max(1, round(command.reach * len(life.operations))))
    return Moment(whom, operation=operation, delay=chance.choice([0, 0, chance.uniform(0, 0.03)]))


def torture(command: Command, kills: int, chance: random.Random, folder: Path) -> Iterator[Tally]:
    """Kill the command this often, and let it end after each few kills; yields the tally after each end."""
    undisturbed(command, folder / "first")  # compiles what is not compiled yet
    life, wanted = undisturbed(command, folder / "undisturbed")
    first = contents(folder / "first" / OUT)
    if unequal := differences(first, wanted):
        raise RuntimeError(f"two undisturbed runs differ: {'; '.join(unequal)}")
    tally = Tally()
    while tally.kills < kills:
        place = folder / f"{tally.completions + 1}"
        moments: list[str] = []
        for _ in range(chance.randint(1, min(command.most, kills - tally.kills))):
            ended = start(command, place, moment := a_moment(command, life, chance))
            if not ended.killed:
                break
            tally.places[where(ended)] += 1
            moments.append(f"{moment}: {ended.operations[-1] if ended.operations else 'before any file'}")
        else:
            ended = start(command, place, limit=10 * life.seconds + 60)
        tally.completions += 1
        wrong = differences(contents(place / OUT), wanted)
        wrong += [f"exit code {ended.code}: {ended.says}"] * bool(ended.code)
        wrong += ["a traceback is shown"] * ("Traceback" in ended.says)
        if wrong:
            tally.bad.append(f"{'; '.join(wrong)} [killed {', then '.join(moments)}; see {place}]")
        else:
            shutil.rmtree(place)
        yield tally


def where(ended: Ended) -> str:
    """In which part of its life a command was killed, by the last file operation in its folder."""
    if not ended.operations:
        return "starting"
    path = ended.operations[-1].partition(" ")[2]
    for pattern, part in PARTS.items():
        if re.search(pattern, path):
            return part
    return "preparing"


PARTS = {
    r"\.(png|pdf|html|md)\b|claims\.json|figures": "drawing and reporting",
    r"measured": "measuring",
    r"\.part|course": "saving parts",
    r"\.nc\b": "writing results",
    r"\.(json|claim|runs)\b|unfinished": "keeping accounts",
}
