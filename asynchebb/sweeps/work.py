"""Computing the runs of a sweep: the task that a worker runs, and the distribution of tasks to workers.

Any executor with `submit(function, argument)` will do: this machine's cores, a Dask cluster, Slurm.
Workers need only this package and access to the sweep's folder, which holds the runs to compute and
their results.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from asynchebb import engines
from asynchebb.checks import InputError, one_of
from asynchebb.contracts import Call, Executor, Task
from asynchebb.engines import gpu
from asynchebb.engines.gpu import device
from asynchebb.files import disk_is_full
from asynchebb.network import Network, State
from asynchebb.runs.layout import NOT_MEASURES
from asynchebb.runs.recording import saving
from asynchebb.runs.run import Run
from asynchebb.runs.saved import summary
from asynchebb.runs.silence import instability, trouble
from asynchebb.runs.simulate import Diverged
from asynchebb.sweeps.executors import Local, Stopped, cancel, check, is_death, renew
from asynchebb.sweeps.folder import SILENT, UNSTABLE, Claim, Folder, Points, Status, abandoned, claimed
from asynchebb.threads import one_thread

# A task takes several short runs: up to this many Euler steps, or a fraction 1/TASKS of all steps if that is less.
STEPS_PER_TASK, TASKS = 4_000_000, 32
SIDE_BY_SIDE, WEIGHTS = 528, 2**32  # runs that a GPU computes at a time, and the bytes of their weights, at most
TRIES = 3  # for a run whose process keeps dying
PATIENCE = 20  # seconds


# On a worker


def run_task(task: tuple[str, str, str, list[int], int]) -> str | None:
    """Compute these runs of a sweep: one after another, or on a GPU side by side. An error in one is recorded, and the
    others continue.

    Runs that another process is computing are left to it and only waited for. Returns the reason if no
    run could be computed at all.
    """
    path, file, engine, indices, number = task
    folder = Folder(path)
    if not _soon(lambda: Path(file).exists()):
        return f"a worker does not see {file}; workers must see the sweep's folder under the same path"
    try:
        engines.resolved(engine)
    except InputError as error:
        return str(error)
    runs = _runs_of(file)
    left = [runs[index] for index in indices]
    with one_thread():
        while left:
            at_once = _side_by_side(left) if engine == "gpu" else 1
            some, left = [run for run in left[:at_once] if not folder.has_ended(run.identity)], left[at_once:]
            reasons: list[str] = []
            with ExitStack() as stack:
                claims = [(run, stack.enter_context(claimed(folder, run.identity))) for run in some]
                mine = [(run, claim) for run, claim in claims if claim is not None]
                works = [(run, _work(run, folder, engine, claim, reasons)) for run, claim in mine]
                _carry_out(works, engine, number)
            if reasons:
                return reasons[0]
            left += [run for run, claim in claims if claim is None]
            if claims and not mine:
                time.sleep(0.5 / max(1, len(left) // at_once))
    return None


def _side_by_side(runs: Sequence[Run]) -> int:
    """How many of these runs are computed at a time: as many as fill a GPU, unless their weights take too much room."""
    sizes = [run.network.n * (run.network.n + run.network.m) * np.dtype(run.dtype).itemsize for run in runs]
    fit = int(np.searchsorted(np.cumsum(sizes), WEIGHTS, "right"))
    return max(1, min(fit, SIDE_BY_SIDE))


def _carry_out(works: Sequence[tuple[Run, Generator[Call, State, None]]], engine: str, number: int) -> None:
    """Carry out the runs: on a GPU side by side."""
    if engine == "gpu":
        device.choose(number)
        gpu.load([*_programs(run for run, _ in works)])
        engines.side_by_side([work for _, work in works], engine, number)
    else:
        for _, work in works:
            engines.result_of(work, engine)


def _programs(runs: Iterable[Run]) -> Iterator[tuple[Network, int, bool, np.dtype]]:
    """What a GPU has to run for these runs: each network, and the frozen one that is tested."""
    for run in runs:
        yield from ((run.network, phase.hold, phase.from_rest, np.dtype(run.dtype)) for phase in run.phases)
        yield from ((run.network.frozen(), probe.hold, probe.from_rest, np.dtype(run.dtype)) for probe in run.probes)


@lru_cache(maxsize=1)
def _runs_of(file: str) -> list[Run]:
    import cloudpickle

    return cloudpickle.loads(Path(file).read_bytes())


def _soon(condition: Callable[[], bool]) -> bool:
    """Is the condition true, or soon? Changes on a network file system may take a while to reach other machines."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _work(run: Run, folder: Folder, engine: str, claim: Claim, reasons: list[str]) -> Generator[Call, State, None]:
    """The run, as the calls that it consists of; the reason if nothing could be saved is added to `reasons`."""
    try:
        saved = saving(run, folder.file(run.identity, "nc"), engine, lambda steps: claim.touch())
        file, whole = yield from saved
        folder.write(folder.file(run.identity, "json"), measures(run, file, whole))
        folder.file(run.identity, "failed").unlink(missing_ok=True)
    except (Exception, SystemExit) as error:
        try:
            if disk_is_full(error):
                raise
            message = f"{type(error).__name__}: {error}"
            if isinstance(error, Diverged):  # the rest of its message is clear from the point of the grid
                message = f"it diverged: weights or rates are no longer finite at step {error.step:,}"
            trace = "".join(traceback.format_exception(error))
            content = {"run": repr(run), "error": message, "traceback": trace}
            folder.write(folder.file(run.identity, "failed"), content)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            reasons.append(f"nothing can be written to {str(folder.path)!r} ({reason})")


def measures(run: Run, file: Path, whole: Mapping[str, Any] | None) -> dict[str, Any]:
    """The measures at the end of a saved run; lists with one entry per probe if there are several."""
    import h5py

    if whole is None:  # not in memory
        with h5py.File(file) as source:
            if "diverged_at_step" in source.attrs:
                raise Diverged(run, int(source.attrs["diverged_at_step"]), file)
            return measures(run, file, source)
    troubles = {SILENT: trouble(whole, run), UNSTABLE: instability(run.network, np.asarray(whole["M"][0]))}
    content = {**summary(whole, run=run), **{name: int(bool(what)) for name, what in troubles.items()}}
    if len(run.probes) > 1:
        per_probe = [name for name in content if name in whole and name not in NOT_MEASURES]
        content |= {name: [float(value) for value in whole[name][-1]] for name in per_probe}
    return content


# Distributing the tasks


def engine_for(name: str, executor: Executor, runs: int) -> str:
    """The engine for so many runs. Workers elsewhere may have a GPU where this machine has none, and vice versa."""
    name = one_of("engine", name, engines.CHOICES)
    if isinstance(executor, Local) or name not in ("gpu", "auto"):
        return engines.resolved(name, runs)
    return "gpu" if name == "gpu" else "cpu"


def run_points(
    points: Points,
    runs: Sequence[Run],
    executor: Executor,
    engine: str,
    new: Iterable[str],
    retry_failed: bool,
    on_status: Callable[[Status], object],
) -> Status:
    """Compute all runs of a sweep that are not finished; `new` ones may have been damaged or failed since."""
    folder = points.folder
    for sentence in folder.set_aside_damaged(new):
        print(f"asynchebb: {sentence}", file=sys.stderr, flush=True)
    if retry_failed:
        folder.forget_failures(new)
    runs = [*{run.identity: run for run in runs}.values()]
    file = folder.write_runs(points.name, runs)
    try:
        return _run_unfinished(points, runs, file, executor, engine, on_status)
    finally:
        file.unlink(missing_ok=True)


def _run_unfinished(
    points: Points,
    runs: Sequence[Run],
    file: Path,
    executor: Executor,
    engine: str,
    on_status: Callable[[Status], object],
) -> Status:
    """Compute all runs that are not finished; return the final status."""
    folder, deaths, steps, idle = points.folder, Counter[str](), STEPS_PER_TASK, 0
    while missing := [run for run in runs if not folder.has_ended(run.identity)]:
        # Runs whose process has died come last; one at a time where one death kills all workers, to find the culprit.
        batch = [run for run in missing if run.identity not in deaths]
        if not batch:
            batch = missing[:1] if getattr(executor, "all_die_with_one", False) else missing
        tasks = _submit(executor, points, file, engine, batch, steps)
        try:
            dead, died = _wait(tasks, executor, points, on_status)
        finally:
            cancel(executor, [task for task, _ in tasks])
        unfinished = {run.identity: run for run in batch if not folder.has_ended(run.identity)}
        if not unfinished:
            continue
        if died is None:
            if _soon(partial(_all_ended, folder, [*unfinished])):
                continue
            raise Stopped("workers must see the sweep's folder under the same path; their results are not in it")
        # The death of a process on another machine shows only when its claim expires.
        lost = [one for one in dead if one in unfinished and abandoned(folder.file(one, "claim"))]
        idle = 0 if lost or len(unfinished) < len(batch) else idle + 1
        if idle == TRIES:
            raise Stopped(f"the workers keep dying ({died!r})")
        for identity in lost:
            deaths[identity] += 1
            folder.file(identity, "claim").unlink(missing_ok=True)
            if deaths[identity] >= TRIES:
                error = f"its process died {TRIES} times, the last time with {died!r}"
                folder.write(folder.file(identity, "failed"), {"run": repr(unfinished[identity]), "error": error})
        steps = 1  # from now on, one run per task
        renew(executor)
    status = points.status()
    on_status(status)
    return status


def _all_ended(folder: Folder, identities: Sequence[str]) -> bool:
    return all(map(folder.has_ended, identities))


def _submit(
    executor: Executor, points: Points, file: Path, engine: str, runs: Sequence[Run], steps: int
) -> list[tuple[Task, list[Run]]]:
    """Submit the runs in portions; returns the tasks with their runs."""
    number = {identity: index for index, identity in enumerate(dict.fromkeys(points.identities))}
    path, tasks = str(points.folder.path), []
    jobs = getattr(executor, "jobs", None)
    if engine == "gpu":  # each task fills a GPU
        if isinstance(executor, Local):
            jobs = device.count()
        else:
            jobs = max(getattr(executor, "workers", jobs) or 1, -(-len(runs) // SIDE_BY_SIDE))
    portions = _portions(runs, min(steps, sum(run.steps for run in runs) // TASKS), jobs)
    try:
        with getattr(executor, "batch", nullcontext)():
            for card, portion in enumerate(portions):
                task = (path, str(file), engine, [number[run.identity] for run in portion], card)
                tasks.append((executor.submit(run_task, task), portion))
    except Exception as error:
        raise Stopped(f"the executor does not accept tasks ({error!r})") from error
    return tasks


def _portions(runs: Sequence[Run], steps: int, jobs: int | None) -> list[list[Run]]:
    """Split the runs into one portion per job or, without a number of jobs, into portions of about this many steps."""
    if jobs:
        return [portion for k in range(jobs) if (portion := [*runs[k::jobs]])]
    portions: list[list[Run]] = [[]]
    size = 0
    for run in runs:
        if portions[-1] and size + run.steps > steps:
            portions.append([])
            size = 0
        portions[-1].append(run)
        size += run.steps
    return portions


def _wait(
    tasks: list[tuple[Task, list[Run]]], executor: Executor, points: Points, on_status: Callable[[Status], object]
) -> tuple[list[str], BaseException | None]:
    """Wait until all tasks or all runs have ended; returns the runs of tasks whose worker died, and the error."""
    dead: list[str] = []
    died, shown = None, 0.0
    while tasks:
        ended = {id(task) for task, _ in tasks if task.done()}
        for task, portion in tasks:
            if id(task) not in ended:
                continue
            try:
                reason = task.result()
            except (Exception, CancelledError) as error:
                if not is_death(error):
                    raise Stopped(f"the workers cannot run the tasks: {error!r}") from error
                died, dead = error, [*dead, *(run.identity for run in portion)]
            else:
                if reason:
                    raise Stopped(reason)
        tasks = [(task, portion) for task, portion in tasks if id(task) not in ended]
        if time.monotonic() - shown > 0.5:
            check(executor)
            on_status(status := points.status())
            # Other processes may have finished the runs. (The folder is searched only if the counts suggest so.)
            if status.done + status.failed == status.total and _all_ended(points.folder, points.identities):
                break
            shown = time.monotonic()
        time.sleep(0.02)
    return dead, died
