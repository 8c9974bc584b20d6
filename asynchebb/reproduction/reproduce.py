"""The whole reproduction in one command: run what has not been run yet, then measure, judge, draw and report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from asynchebb import engines, provenance
from asynchebb.checks import InputError, one_of
from asynchebb.contracts import Executor
from asynchebb.drawing import figures
from asynchebb.dynamics import Potential, Projected
from asynchebb.engines.gpu import device
from asynchebb.files import is_folder, make_writable, read_json, read_json_if_whole, write_json, write_text
from asynchebb.reproduction import effort, report
from asynchebb.reproduction.claims import Numbers, judge, overall
from asynchebb.reproduction.experiments import (
    Experiment,
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
    spiking,
    third_set,
)
from asynchebb.reproduction.findings import Finding, Judged, Outcome
from asynchebb.reproduction.readings import PRESET, READINGS
from asynchebb.reproduction.results import Key, Results
from asynchebb.reproduction.scale import SCALES, Scale
from asynchebb.runs.run import Run
from asynchebb.schedules import Continuous
from asynchebb.sweeps import executors, run_all
from asynchebb.sweeps.folder import SILENT, Folder, Status, error_in

_ALL: tuple[Experiment, ...] = (
    *(fig1, background, fig2, rates, fig3, third_set, search, robustness, figA, figC, figF),
    *(patches, sequences, capacity, spiking),
)
EXPERIMENTS = {module.__name__.rpartition(".")[2]: module for module in _ALL}


def experiments(names: Sequence[str], scale: Scale) -> list[str]:
    """The experiments with these names, or with figures of these names; all experiments if no name is given."""
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
    executor: AbstractContextManager[Executor],
    workers: int,
    engine: str = "cpu",
    retry_failed: bool = False,
    on_status: Callable[[Status], object] = lambda status: None,
    say: Callable[[str], object] = lambda sentence: None,
    beside: Path | None = None,
) -> Outcome:
    """Run these experiments at this scale, skipping runs that are done, and write the report.

    `workers` is the executor's number of workers, 0 if unknown. `beside` is the folder of another reproduction, whose
    verdicts appear next to these in claims.md.
    """
    one_of("scale", scale_name, SCALES)
    scale = SCALES[scale_name]
    wanted = experiments(names, scale)
    other = _claims_in(beside) if beside else None
    runs = {name: module.runs(scale) for name, module in EXPERIMENTS.items()}
    _check(out)
    needed = {name: runs[name] for name in wanted}
    silent = _run(needed, out, executor, engine, retry_failed, on_status, scale_name, workers)
    if silent:
        say(f"{len(silent)} runs learned nothing or have died: {'; '.join(silent)}")
    failures: dict[str, str] = {}
    started, done = time.perf_counter(), []
    for name in EXPERIMENTS:
        why = {_label(name, key): why for key, run in runs[name].items() if (why := _failure(out, run))}
        failures |= why if name in wanted else {}
        if not why:  # experiments run earlier are reported too
            done.append(name)
    say(f"measuring and drawing {', '.join(done)}")
    findings = [_finding(name, scale, numbers) for name, numbers in _measure(done, wanted, scale, out, engine).items()]
    effort.add(out, scale_name, drawing=time.perf_counter() - started)
    work = effort.so_far(out, scale_name)
    if judged := effort.judged(work):
        findings.append(Finding("work", "Time and memory", {}, [judged]))
    outcome = Outcome(scale_name, findings, failures, work)
    pictures = out / "figures"
    content = report.as_json(outcome)
    write_json(out / "claims.json", content)
    write_text(out / "claims.md", report.markdown(content, other))
    write_text(out / "measured.md", report.measured(content))
    write_text(out / "index.html", report.page(outcome, pictures))
    return outcome


def _claims_in(folder: Path) -> dict[str, Any]:
    if not (folder / "claims.json").is_file():
        raise InputError(f"beside is {str(folder)!r}; it must be the folder of a reproduction, with a claims.json")
    return read_json("beside", folder / "claims.json")


def _check(out: Path) -> None:
    """Refuse a folder that holds other files, so that nothing is overwritten."""
    is_folder("out", out)
    if out.is_dir() and not sweep_folder(out).is_dir() and any(out.iterdir()):
        raise InputError(
            f"out is {str(out)!r}, which holds other files; it must be new or empty, or the folder of a reproduction"
        )
    make_writable("out", out, out)


def _run(
    runs: Mapping[str, Mapping[Key, Run]],
    out: Path,
    executor: AbstractContextManager[Executor],
    engine: str,
    retry_failed: bool,
    on_status: Callable[[Status], object],
    scale_name: str,
    workers: int,
) -> list[str]:
    """Compute all runs, each only once even if several experiments need it, and add the time taken to the total."""
    labels: dict[str, str] = {}
    different: dict[str, Run] = {}
    for name, of in runs.items():
        for key, run in of.items():
            labels.setdefault(run.identity, _label(name, key))
            different.setdefault(run.identity, run)
    # Longest first, so that no long run is left to a single core at the end.
    in_order = sorted(different.values(), key=_work_of, reverse=True)
    axes = [[{"name": "experiment", "values": [labels[run.identity] for run in in_order]}]]
    work = [_work_of(run) for run in in_order]
    kept = Folder(sweep_folder(out))
    missing = [run for run in in_order if not kept.has_ended(run.identity)]
    started = time.perf_counter()
    try:
        title = f"reproduction, {scale_name} scale"
        points, _ = run_all(title, axes, in_order, kept.path, executor, engine, retry_failed, on_status, work)
    finally:
        done = [run for run in missing if kept.has_ended(run.identity)]
        if done:
            gpu = device.name() if engines.resolved(engine, len(missing)) == "gpu" else ""
            effort.add(out, scale_name, time.perf_counter() - started, workers, done, gpu=gpu)
    return points.troubled(SILENT)


def sweep_folder(out: Path) -> Path:
    """Where the runs are saved, in the format of a sweep."""
    return out / "sweep"


def _work_of(run: Run) -> int:
    """The run's approximate cost relative to others, including its tests, as measured at small scale."""
    network = run.network
    usual, continuous = COSTS.get(type(network.dynamics), COSTS[Projected])
    return int(run.steps * network.n * (continuous if isinstance(network.schedule, Continuous) else usual))


COSTS = {Potential: (1, 2.5), Projected: (2, 20)}  # per step: usually, and in a continuous network


def _label(name: str, key: Key) -> str:
    return f"{name}: {', '.join(map(str, key))}"


def _failure(out: Path, run: Run) -> str | None:
    folder = Folder(sweep_folder(out))
    if folder.file(run.identity, "json").exists():
        return None
    failed = folder.file(run.identity, "failed")
    return error_in(failed) if failed.exists() else "it was not run"


def _measure(names: list[str], redrawn: list[str], scale: Scale, out: Path, engine: str) -> dict[str, Numbers]:
    """The numbers of each experiment; experiments are measured and drawn in parallel on this machine's cores, which do
    what is left to be computed, too: little for each, and a GPU may be open to one process only."""
    engine = "cpu" if engine in ("gpu", "auto") else engine
    with executors.local() as pool:
        slowest_first = sorted(names, key=lambda name: name not in ("patches", "fig2"))
        tasks = {
            name: pool.submit(measure_and_draw, (name, scale, out, engine, name in redrawn)) for name in slowest_first
        }
        return {name: tasks[name].result() for name in names}


def measure_and_draw(what: tuple[str, Scale, Path, str, bool]) -> Numbers:
    """The numbers of an experiment. They and its figures are reused until the runs or the code change."""
    name, scale, out, engine, redraw = what
    module = EXPERIMENTS[name]
    runs: Mapping[Key, Run] = module.runs(scale)
    results = Results(runs, Folder(sweep_folder(out)).runs, engine)
    fingerprint = provenance.identity([provenance.code(), scale, sorted(run.identity for run in runs.values())])
    file = out / "measured" / f"{name}.json"
    content = read_json_if_whole(file)
    is_new = content.get("fingerprint") != fingerprint
    try:
        numbers: Numbers = module.measure(scale, results) if is_new else content["numbers"]
        if is_new or redraw:
            (out / "figures").mkdir(exist_ok=True)
            for picture, figure in module.draw(scale, results, numbers).items():
                for kind in ("png", "pdf"):
                    figures.save(figure, out / "figures" / f"{picture}.{kind}")
                    figure.set_layout_engine("none")  # the layout is final
    finally:
        results.close()
    if unknown := {*numbers} - {*READINGS}:
        raise ValueError(f"{name} measures under {', '.join(unknown)}; the readings are {', '.join(READINGS)}")
    if is_new:
        file.parent.mkdir(exist_ok=True)
        write_json(file, {"fingerprint": fingerprint, "numbers": numbers})
    return numbers


def _finding(name: str, scale: Scale, numbers: Numbers) -> Finding:
    module, claims = EXPERIMENTS[name], []
    for claim in module.CLAIMS:
        if not any(measured in numbers[reading] for reading in numbers for measured in claim.shows):
            raise ValueError(f"claim {claim.id} shows {', '.join(claim.shows)}, none of which {name} measures")
        verdicts = {reading: judge(claim, numbers[reading]) for reading in READINGS if reading in numbers}
        claims.append(Judged(claim, verdicts, overall(verdicts, PRESET)))
    return Finding(name, module.TITLE, module.captions(scale), claims)
