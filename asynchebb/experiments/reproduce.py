"""Everything by one command: run what has not been run, measure, judge, draw, report."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from asynchebb import figures
from asynchebb.checks import InputError, one_of
from asynchebb.dynamics import Potential, Projected
from asynchebb.engines import cpu
from asynchebb.experiments import (
    background,
    capacity,
    fig1,
    fig2,
    fig3,
    figA,
    figC,
    figF,
    patches,
    rates,
    robustness,
    search,
    sequences,
    third_set,
)
from asynchebb.experiments.claims import NOT_RUN, Claim, Numbers, Part, Verdict, judge, overall
from asynchebb.experiments.readings import PRESET, READINGS
from asynchebb.experiments.results import Key, Results
from asynchebb.experiments.scale import SCALES, Scale
from asynchebb.files import make_writable, write_text
from asynchebb.network import Network
from asynchebb.schedules import Continuous
from asynchebb.simulate import Run
from asynchebb.sweeps import executors, run_all
from asynchebb.sweeps.folder import Folder, Status, read

EXPERIMENTS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        *(fig1, background, fig2, rates, fig3, third_set, search, robustness, figA, figC, figF),
        *(patches, sequences, capacity),
    )
}


class Judged(NamedTuple):
    """A claim, the verdict under each reading, and the one over all."""

    claim: Claim
    verdicts: dict[str, Verdict]
    overall: str

    def under(self, reading: str) -> str:
        return self.verdicts[reading].holds if reading in self.verdicts else NOT_RUN

    @property
    def tried(self) -> dict[str, Verdict]:
        """Those of the readings under which it was judged."""
        return {reading: verdict for reading, verdict in self.verdicts.items() if verdict.holds != NOT_RUN}


class Finding(NamedTuple):
    """What one experiment has given."""

    name: str
    title: str
    figures: dict[str, str]  # captions by the picture's name
    claims: list[Judged]


class Outcome(NamedTuple):
    scale: str
    findings: list[Finding]
    failures: dict[str, str]  # what was wrong with a run, by its name
    work: dict[str, Any]  # what it took, where


def experiments(names: Sequence[str], scale: Scale) -> list[str]:
    """The experiments of these names, which may be those of figures; of none, all."""
    draws = {figure: name for name, module in EXPERIMENTS.items() for figure in module.captions(scale)}
    known = {name: name for name in EXPERIMENTS} | draws
    for name in names:
        if name not in known:
            raise InputError(f"figures names {name!r}; it must name some of {', '.join(known)}")
    wanted = {known[name] for name in names} or {*EXPERIMENTS}
    return [name for name in EXPERIMENTS if name in wanted]


def reproduce(
    names: Sequence[str],
    scale_name: str,
    out: Path,
    executor: AbstractContextManager[Any],
    workers: int,
    engine: str = "cpu",
    retry_failed: bool = False,
    on_status: Callable[[Status], object] = lambda status: None,
    say: Callable[[str], object] = lambda sentence: None,
    beside: Path | None = None,
) -> Outcome:
    """Do these experiments at this scale, as far as that has not been done, and write the report.

    `workers` is how many the executor has; 0 if that is not known. The verdicts of another reproduction, whose folder
    is `beside`, stand next to these in claims.md.
    """
    from asynchebb import report

    one_of("scale", scale_name, SCALES)
    scale = SCALES[scale_name]
    wanted = experiments(names, scale)
    other = _claims_in(beside) if beside else None
    runs = {name: module.runs(scale) for name, module in EXPERIMENTS.items()}
    _check(out)
    _run({name: runs[name] for name in wanted}, out, executor, engine, retry_failed, on_status, scale_name, workers)
    failures: dict[str, str] = {}
    started, done = time.perf_counter(), []
    for name in EXPERIMENTS:
        why = {_label(name, key): why for key, run in runs[name].items() if (why := _failure(out, run))}
        failures |= why if name in wanted else {}
        if not why:  # those that were run before are reported too
            done.append(name)
    say(f"measuring and drawing {', '.join(done)}")
    findings = [_finding(name, scale, numbers) for name, numbers in _measure(done, wanted, scale, out, engine).items()]
    _add_work(out, scale_name, drawing=time.perf_counter() - started)
    work = _work(out, scale_name)
    if work["workers"] and work["peak_memory"]:
        findings.append(Finding("work", "Time and memory", {}, [_judge_work(work)]))
    outcome = Outcome(scale_name, findings, failures, work)
    pictures = out / "figures"
    content = report.as_json(outcome)
    write_text(out / "claims.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_text(out / "claims.md", report.markdown(content, other))
    write_text(out / "index.html", report.page(outcome, pictures))
    return outcome


def _claims_in(folder: Path) -> dict[str, Any]:
    content = read(folder / "claims.json")
    if "claims" not in content:
        raise InputError(f"beside is {str(folder)!r}; it must be the folder of a reproduction, with its claims.json")
    return content


def _check(out: Path) -> None:
    """Nothing of another's is overwritten."""
    if out.is_dir() and not sweep_folder(out).is_dir() and any(out.iterdir()):
        raise InputError(
            f"out is {str(out)!r}, which holds other files; it must be a new or empty folder, or that of a reproduction"
        )
    make_writable("out", out, out)


def _run(
    runs: Mapping[str, Mapping[Key, Run]],
    out: Path,
    executor: AbstractContextManager[Any],
    engine: str,
    retry_failed: bool,
    on_status: Callable[[Status], object],
    scale_name: str,
    workers: int,
) -> None:
    """Have all runs done, each once whoever needs it; what that takes is added to what it took before."""
    labels: dict[str, str] = {}
    different: dict[str, Run] = {}
    for name, of in runs.items():
        for key, run in of.items():
            labels.setdefault(run.identity, _label(name, key))
            different.setdefault(run.identity, run)
    # The longest first: the last ones should not keep one core busy alone.
    in_order = sorted(different.values(), key=_work_of, reverse=True)
    axes = [[{"name": "experiment", "values": [labels[run.identity] for run in in_order]}]]
    work = [_work_of(run) for run in in_order]
    kept = Folder(sweep_folder(out))
    missing = [run for run in in_order if not kept.has_ended(run.identity)]
    started = time.perf_counter()
    try:
        if workers and engine == "cpu":
            _compile(missing, workers)
        title = f"reproduction, {scale_name} scale"
        run_all(title, axes, in_order, kept.path, executor, engine, retry_failed, on_status, work)
    finally:
        done = [run for run in missing if kept.has_ended(run.identity)]
        if done:
            _add_work(out, scale_name, time.perf_counter() - started, workers, done)


def _compile(runs: Sequence[Run], workers: int) -> None:
    """Compile all that the runs need, side by side: else one worker would wait for what another one compiles."""
    needed = {
        cpu.loop_of(network, run.dtype): (network, run.dtype)
        for run in runs
        for network in (run.network, run.network.frozen())
    }
    missing = [what for name, what in needed.items() if not cpu.compiled(name)]
    if missing:
        with executors.local(min(workers, len(missing))) as pool:
            for task in [pool.submit(_warm_up, what) for what in missing]:
                task.result()


def _warm_up(what: tuple[Network, str]) -> bool:
    return cpu.warm_up(*what)


def sweep_folder(out: Path) -> Path:
    """Where the runs are kept, as a sweep's are."""
    return out / "sweep"


def _work_of(run: Run) -> int:
    """Roughly how long it takes beside others, its tests included, as seen at small scale."""
    network = run.network
    slow = COSTS[type(network.dynamics)][isinstance(network.schedule, Continuous)]
    return int(run.steps * network.n * slow)


COSTS = {Potential: (1, 2.5), Projected: (2, 20)}  # and those of continuous networks


def _label(name: str, key: Key) -> str:
    return f"{name}: {', '.join(map(str, key))}"


def _failure(out: Path, run: Run) -> str | None:
    folder = Folder(sweep_folder(out))
    if folder.file(run.identity, "json").exists():
        return None
    return read(folder.file(run.identity, "failed")).get("error", "it was not run")


def _measure(names: list[str], redrawn: list[str], scale: Scale, out: Path, engine: str) -> dict[str, Numbers]:
    """The numbers of each experiment, measured and drawn side by side on this machine's cores."""
    with executors.local() as pool:
        slowest_first = sorted(names, key=lambda name: name not in ("patches", "fig2"))
        tasks = {
            name: pool.submit(measure_and_draw, (name, scale, out, engine, name in redrawn)) for name in slowest_first
        }
        return {name: tasks[name].result() for name in names}


def measure_and_draw(what: tuple[str, Scale, Path, str, bool]) -> Numbers:
    """The numbers of an experiment. They and its pictures are kept as long as neither the runs nor the code changes."""
    name, scale, out, engine, redraw = what
    module = EXPERIMENTS[name]
    runs: Mapping[Key, Run] = module.runs(scale)
    results = Results(runs, Folder(sweep_folder(out)).runs, engine)
    made_of = json.dumps([code(), scale, sorted(run.identity for run in runs.values())])
    fingerprint = hashlib.sha256(made_of.encode()).hexdigest()
    file = out / "measured" / f"{name}.json"
    content = read(file)
    is_new = content.get("fingerprint") != fingerprint
    try:
        numbers: Numbers = module.measure(scale, results) if is_new else content["numbers"]
        if is_new or redraw:
            (out / "figures").mkdir(exist_ok=True)
            for picture, figure in module.draw(scale, results, numbers).items():
                for kind in ("png", "pdf"):
                    figures.save(figure, out / "figures" / f"{picture}.{kind}")
                    figure.set_layout_engine("none")  # it is laid out now
    finally:
        results.close()
    if unknown := {*numbers} - {*READINGS}:
        raise ValueError(f"{name} measures under {', '.join(unknown)}; the readings are {', '.join(READINGS)}")
    if is_new:
        file.parent.mkdir(exist_ok=True)
        write_text(file, json.dumps({"fingerprint": fingerprint, "numbers": numbers}))
    return numbers


def _finding(name: str, scale: Scale, numbers: Numbers) -> Finding:
    module, claims = EXPERIMENTS[name], []
    for claim in module.CLAIMS:
        verdicts = {reading: judge(claim, numbers[reading]) for reading in READINGS if reading in numbers}
        claims.append(Judged(claim, verdicts, overall(verdicts, PRESET)))
    return Finding(name, module.TITLE, module.captions(scale), claims)


@cache
def code() -> str:
    """A digest of the whole package."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


# What it took

WORK = Claim(
    "S",
    "App. D",
    "A simulation takes a few hours on a desktop, and less than 4 GB.",
    "a few hours, 4 GB",
    {
        "hours": "hours for ten million Euler steps on one core, mean of all runs here, their tests included",
        "gigabytes": "memory of the largest process (GB)",
    },
    (
        Part("ten million steps take less than three hours", lambda v: v.hours < 3),
        Part("no process takes more than 4 GB", lambda v: v.gigabytes < 4),
    ),
)


def _judge_work(work: Mapping[str, Any]) -> Judged:
    hours = work["seconds"] * work["workers"] / max(1, work["steps"]) * 1e7 / 3600
    verdict = judge(WORK, {"hours": [hours], "gigabytes": [work["peak_memory"] / 1e9]})
    return Judged(WORK, {PRESET: verdict}, verdict.holds)


def _work(out: Path, scale: str) -> dict[str, Any]:
    nothing = {"seconds": 0.0, "drawing": 0.0, "runs": 0, "steps": 0, "peak_memory": 0, "workers": 0}
    found = read(out / "work.json").get(scale)
    return nothing | (found if isinstance(found, dict) else {})


def _add_work(
    out: Path, scale: str, seconds: float = 0.0, workers: int = 0, done: Sequence[Run] = (), drawing: float = 0.0
) -> None:
    """Of all calls so far at this scale, those broken off too; of measuring and drawing, the longest."""
    before = _work(out, scale)
    now = {
        "seconds": before["seconds"] + seconds,
        "drawing": max(before["drawing"], drawing),
        "runs": before["runs"] + len(done),
        "steps": before["steps"] + sum(run.steps for run in done),
        "peak_memory": max(before["peak_memory"], peak_memory()),
        "workers": workers or before["workers"],
    }
    write_text(out / "work.json", json.dumps({**read(out / "work.json"), scale: now}, indent=1) + "\n")


def peak_memory() -> int:
    """Bytes that the largest of this process and its workers has held; 0 where the system does not tell."""
    try:
        import resource
        import sys
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
