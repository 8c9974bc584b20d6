"""Parameter sweeps: a grid of runs, saved in one folder, none of them computed twice.

`grid.py` defines the runs, `folder.py` stores them and tracks progress, `work.py` distributes them to
one of the executors in `executors.py`, and `dataset.py` opens them as one labelled dataset.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import engines
from asynchebb import progress as display
from asynchebb.checks import InputError, instance, path, true_or_false
from asynchebb.contracts import Executor
from asynchebb.runs.run import Run
from asynchebb.runs.silence import SilentNetwork, UnstableNetwork
from asynchebb.sweeps import executors
from asynchebb.sweeps.dataset import open_sweep
from asynchebb.sweeps.executors import Stopped as Stopped
from asynchebb.sweeps.folder import SILENT, TROUBLES, UNSTABLE, Folder, Points, Status
from asynchebb.sweeps.folder import DamagedRuns as DamagedRuns
from asynchebb.sweeps.grid import Grid, grid
from asynchebb.sweeps.sampling import Range as Range
from asynchebb.sweeps.sampling import search_runs, space_of
from asynchebb.sweeps.work import engine_for, run_points

if TYPE_CHECKING:
    import xarray

GRACE = 5  # seconds for which a sweep may have neither runs nor a process: between the batches of a search
MANY_RUNS, MANY_STEPS = 10_000, 10**11  # a larger grid may be a mistake


def sweep(
    run: Run,
    vary: Mapping[str, Iterable],
    out: str | Path,
    *,
    zip: Sequence[str] | Sequence[Sequence[str]] = (),
    workers: int | None = None,
    executor: Executor | None = None,
    engine: str = "cpu",
    retry_failed: bool = False,
    yes: bool = False,
    progress: bool = True,
) -> xarray.Dataset:
    """Run every combination of these values, none of them twice, and open all results as one dataset.

    `vary` maps field names to values: {"schedule.r_b": [0.5, 1, 2], "seed": range(4)}. Axes named together in
    `zip` vary together instead of multiplying. Runs are computed by `workers` processes on this machine (by
    default one per core) or by an `executor`: a Dask client, or anything with the interface of
    concurrent.futures.Executor. If interrupted or killed, the same call resumes. A run that fails is recorded
    with its error, and retried with `retry_failed`. A very large grid needs `yes`. `progress` shows a progress bar.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=1))
    >>> with ThreadPoolExecutor(1) as threads:  # or, without an executor, one process per core
    ...     dataset = ah.sweep(run, {"schedule.r_b": [0.5, 1]}, "sweep", executor=threads, progress=False)
    >>> dataset.error.sizes
    Frozen({'schedule.r_b': 2})
    """
    made = grid(run, vary, zip)
    for name, value in (("retry_failed", retry_failed), ("yes", yes), ("progress", progress)):
        true_or_false(name, value)
    chosen = executors.local(workers) if executor is None else nullcontext(executors.adapted(executor))
    with bar(str(out)) if progress else nullcontext(lambda status: None) as on_status:
        _, status = run_grid(made, out, chosen, engine, retry_failed=retry_failed, yes=yes, on_status=on_status)
    return _opened(out, None, status)


def _opened(out: str | Path, name: str | None, status: Status) -> xarray.Dataset:
    """The dataset, with a warning about runs that failed, learned nothing or are unstable."""
    if status.failed:
        warnings.warn(f"{status.failed} of {status.total} runs failed; see dataset.failure", stacklevel=3)
    dataset = open_sweep(out, name)
    for trouble, category in ((SILENT, SilentNetwork), (UNSTABLE, UnstableNetwork)):
        runs = dataset["run"].values[(dataset[trouble] == 1).values] if trouble in dataset else []
        if count := len({*runs}):  # several points may have the same run
            message = f"{count} of {status.total} runs {TROUBLES[trouble]}; see dataset.{trouble}"
            warnings.warn(message, category, stacklevel=3)
    return dataset


@contextmanager
def bar(name: str) -> Iterator[Callable[[Status], object]]:
    """Shows runs done, running and failed, and the time left."""
    with display.shown("runs") as begin:
        update = begin(name, None)
        yield lambda status: update(status.done + status.failed, status.total, status.in_words)


def search(
    run: Run,
    space: Mapping[str, Range | Iterable],
    out: str | Path,
    *,
    measure: str = "error",
    goal: str | None = None,
    trials: int = 50,
    seeds: int = 1,
    sampler: Any = "adaptive",
    batch: int = 8,
    workers: int | None = None,
    executor: Executor | None = None,
    engine: str = "cpu",
    retry_failed: bool = False,
    progress: bool = True,
) -> xarray.Dataset:
    """Search a space of parameters for the least (or most) of a measure; open all trials as one dataset.

    `space` maps field names to a Range or to possible values: {"rule.eta": ah.Range(1e-4, 1e-1, log=True), "rule":
    [ah.Hebbian(), ah.Oja()]}. Each trial has `seeds` runs, saved in the folder `out` as a sweep's are, and counts by
    the mean of its measure at the end. `sampler` is "random"; "adaptive", which tries values near the best so far
    (Optuna's TPE); or a sampler of Optuna. Trials are chosen `batch` at a time, and the next after those have run. The
    same call resumes an interrupted search, and with more `trials` continues it. The rest is as in `sweep`.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=1))
    >>> space = {"rule.eta": ah.Range(1e-4, 1e-1, log=True)}
    >>> with ThreadPoolExecutor(1) as threads:  # or, without an executor, one process per core
    ...     found = ah.search(run, space, "search", trials=3, sampler="random", executor=threads, progress=False)
    >>> found.error.sizes
    Frozen({'trial': 3, 'seed': 1})
    """
    checked = space_of(instance("run", run, Run), space)
    for name, value in (("retry_failed", retry_failed), ("progress", progress)):
        true_or_false(name, value)
    chosen = executors.local(workers) if executor is None else nullcontext(executors.adapted(executor))
    with bar(str(out)) if progress else nullcontext(lambda status: None) as on_status:
        points = search_runs(
            run, checked, out, chosen, engine, measure=measure, goal=goal, trials=trials, seeds=seeds, sampler=sampler,
            batch=batch, retry_failed=retry_failed, on_status=on_status,
        )  # fmt: skip
    return _opened(out, points.name, points.status())


def watched(points: Points) -> None:
    """Show the progress of a sweep that other processes run, until all runs have ended or nobody works on them.

    A search chooses more runs as it goes, so what it has is read again each time.
    """
    idle, seen = 0, False
    with bar(points.name) as on_status:
        while idle < GRACE:
            points = points.folder.points(points.name)
            on_status(status := points.status())
            if status.running or points.folder.is_started(points.name):
                idle, seen = 0, True
            elif not status.waiting and not seen:
                return  # it had ended before
            else:
                idle += 1
            time.sleep(1)


def run_grid(
    made: Grid,
    out: str | Path,
    executor: AbstractContextManager[Executor],
    engine: str = "cpu",
    *,
    retry_failed: bool = False,
    yes: bool = False,
    on_status: Callable[[Status], object] = lambda status: None,
) -> tuple[Points, Status]:
    """Compute all runs of the grid. All input is checked before anything starts."""
    if made.size > MANY_RUNS and not yes:
        ends = made.at(*(0 for _ in made.shape)), made.at(*(size - 1 for size in made.shape))
        raise _too_large(made, made.size * sum(run.steps for run in ends) // 2)
    runs = [*made]
    if (steps := sum(run.steps for run in runs)) > MANY_STEPS and not yes:
        raise _too_large(made, steps)
    return run_all(repr(made.run), made.axes, runs, out, executor, engine, retry_failed, on_status)


def run_all(
    title: str,
    axes: list[list[dict[str, Any]]],
    runs: list[Run],
    out: str | Path,
    executor: AbstractContextManager[Executor],
    engine: str = "cpu",
    retry_failed: bool = False,
    on_status: Callable[[Status], object] = lambda status: None,
    work: list[int] | None = None,
) -> tuple[Points, Status]:
    """Compute the runs that are not finished yet, and save them in the folder with these axes."""
    folder, prepared = Folder(path("out", out)), False
    try:
        with executor as opened:
            engine = engine_for(engine, opened, len(runs))
            folder.prepare()
            prepared = True
            points = folder.write_grid(title, axes, runs, work)
            return points, run_points(points, runs, opened, engine, points.identities, retry_failed, on_status)
    finally:
        if prepared:
            folder.tidy()


def _too_large(made: Grid, steps: int) -> InputError:
    run = made.at(*(size - 1 for size in made.shape))
    n, m, cores = run.network.n, run.network.m, executors.cores()
    tested = made.size * (run.steps_with_tests - run.steps)
    needed = timedelta(seconds=round((steps + tested) * seconds_a_step(run) / cores))
    gigabytes = made.size * len(run.stops()) * (n * m + n * n) * np.dtype(run.dtype).itemsize / 1e9
    return InputError(
        f"the grid has {made.size:,} runs with {steps:,} Euler steps in total: about {needed} on {cores} cores "
        f"and {gigabytes:,.1f} GB on disk; to run it anyway, pass --yes (in Python yes=True)"
    )


def seconds_a_step(run: Run) -> float:
    """Seconds per Euler step, measured in a short trial of the run's untrained network on one core."""
    phase = run.phases[0]
    state = engines.prepare(run.network, run.network.init(np.random.default_rng(0), run.dtype))
    X = phase.stimulus.sample(np.random.default_rng(1), 64)
    engines.advance_in_place(run.network, state, X[:1], 1, "cpu", ())  # may have to compile first
    start, shown, hold = time.perf_counter(), 0, min(phase.hold, 1000)
    while time.perf_counter() - start < 0.3:
        engines.advance_in_place(run.network, state, X[shown % 64 : shown % 64 + 1], hold, "cpu", ())
        shown += 1
    return (time.perf_counter() - start) / (shown * hold)
