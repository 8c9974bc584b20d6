"""The time and memory that a reproduction takes, and what the paper claims about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asynchebb.files import read_json_if_whole, write_json
from asynchebb.reproduction.claims import Claim, Part, judge
from asynchebb.reproduction.findings import Judged
from asynchebb.reproduction.readings import PRESET
from asynchebb.runs.run import Run

WORK = Claim(
    "S",
    "App. D",
    "A simulation takes a few hours on a desktop, and less than 4 GB of memory.",
    "a few hours, 4 GB",
    {
        "hours": "hours per ten million Euler steps on one core, averaged over all runs here, including their tests",
        "gigabytes": "peak memory of the largest process (GB)",
    },
    (
        Part("ten million steps take less than three hours", lambda v: v.hours < 3),
        Part("every process takes less than 4 GB", lambda v: v.gigabytes < 4),
    ),
)


def judged(work: Mapping[str, Any]) -> Judged | None:
    """The verdict; None if the runs were computed by other processes, or on a GPU, many by one process."""
    if work["gpu"] or not (work["workers"] and work["peak_memory"]):
        return None
    hours = work["seconds"] * work["workers"] / max(1, work["steps"]) * 1e7 / 3600
    verdict = judge(WORK, {"hours": [hours], "gigabytes": [work["peak_memory"] / 1e9]})
    return Judged(WORK, {PRESET: verdict}, verdict.holds)


def so_far(out: Path, scale: str) -> dict[str, Any]:
    nothing = {"seconds": 0.0, "drawing": 0.0, "runs": 0, "steps": 0, "peak_memory": 0, "workers": 0, "gpu": ""}
    found = read_json_if_whole(out / "work.json").get(scale)
    return nothing | (found if isinstance(found, dict) else {})


def add(
    out: Path,
    scale: str,
    seconds: float = 0.0,
    workers: int = 0,
    done: Sequence[Run] = (),
    drawing: float = 0.0,
    gpu: str = "",
) -> None:
    """Update the totals over all calls at this scale, including interrupted ones; for drawing, record the longest.
    `gpu` is the GPU that has computed the runs, if one has."""
    before = so_far(out, scale)
    now = {
        "seconds": before["seconds"] + seconds,
        "drawing": max(before["drawing"], drawing),
        "runs": before["runs"] + len(done),
        "steps": before["steps"] + sum(run.steps for run in done),
        "peak_memory": max(before["peak_memory"], peak_memory()),
        "workers": workers or before["workers"],
        "gpu": gpu or before["gpu"],
    }
    write_json(out / "work.json", {**read_json_if_whole(out / "work.json"), scale: now})


def peak_memory() -> int:
    """Peak memory in bytes of this process or its largest worker; 0 if the system does not report it."""
    try:
        import resource
        import sys
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
