"""Doing the runs of a sweep: what a worker does, and what the process does that hands out the work.

Whatever has `submit(function, argument)`, as executors do, can do the work: this machine's cores,
a Dask cluster, Slurm. It needs this package and the sweep's folder, nothing else: what is to be
done and what is done stands there.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from asynchebb.files import disk_is_full
from asynchebb.recording import NOT_MEASURES, keep, summary
from asynchebb.simulate import Diverged, Run
from asynchebb.sweeps.executors import Stopped, cancel, check, is_death, renew
from asynchebb.sweeps.folder import DIGEST, Claim, Folder, Points, Status, abandoned, claimed, digest

# Short runs are handed out several at a time: as many as make this many Euler steps, or a thirty-second part of all.
STEPS_A_TASK, TASKS = 4_000_000, 32
TRIES = 3  # of a run whose process dies each time
PATIENCE = 20  # seconds


# A worker


def work(task: tuple[str, str, str, list[int]]) -> str | None:
    """Do these runs of a sweep one after another. What one of them raises is kept, and the others go on.

    Those that another process is at work on are left to it, and only waited for. If no run at all
    could go on, the answer says why.
    """
    path, file, engine, indices = task
    folder = Folder(path)
    if not seen(lambda: Path(file).exists()):
        return f"a worker does not see {file}; workers must see the sweep's folder under the same path"
    runs = _runs_of(file)
    left = deque(runs[index] for index in indices)
    with one_thread():
        while left:
            run = left.popleft()
            if folder.has_ended(run.identity):
                continue
            with claimed(folder, run.identity) as claim:
                if claim is None:
                    left.append(run)
                elif said := _do(run, folder, engine, claim):
                    return said
            if claim is None:
                time.sleep(0.5 / len(left))
    return None


@lru_cache(maxsize=1)
def _runs_of(file: str) -> list[Run]:
    import cloudpickle

    return cloudpickle.loads(Path(file).read_bytes())


def seen(condition: Callable[[], bool]) -> bool:
    """Is it so, or soon? A network file system may take a while to show on one machine what another has done."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _do(run: Run, folder: Folder, engine: str, claim: Claim) -> str | None:
    try:
        file, whole = keep(run, folder.runs, engine, lambda steps: claim.touch())
        content = {**measures(run, file, whole), DIGEST: digest(file)}
        folder.write(folder.file(run.identity, "json"), content)
        folder.file(run.identity, "failed").unlink(missing_ok=True)
    except (Exception, SystemExit) as error:
        try:
            if disk_is_full(error):
                raise
            told = "".join(traceback.format_exception(error))
            said = f"{type(error).__name__}: {error}"
            if isinstance(error, Diverged):  # all else that it says is said by the point of the grid
                said = f"it diverged: weights or rates are no longer finite at step {error.step:,}"
            content = {"run": repr(run), "error": said, "traceback": told}
            folder.write(folder.file(run.identity, "failed"), content)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            return f"nothing can be written to {str(folder.path)!r} ({reason})"
    return None


def measures(run: Run, file: Path, whole: Mapping[str, Any] | None) -> dict[str, Any]:
    """The measures of a kept run at its end; of several probes, a list of what each shows."""
    import h5py

    if whole is None:  # it is not in memory
        with h5py.File(file) as source:
            if "diverged_at_step" in source.attrs:
                raise Diverged(run, int(source.attrs["diverged_at_step"]), file)
            return measures(run, file, source)
    content = summary(whole, run=run)
    if len(run.probes) > 1:
        of_each = [name for name in content if name in whole and name not in NOT_MEASURES]
        content |= {name: [float(value) for value in whole[name][-1]] for name in of_each}
    return content


@contextmanager
def one_thread() -> Iterator[None]:
    """Each worker has a core of its own, and more threads would only wait for each other."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with _threads(len(sys.modules)).limit(limits=1):
            yield
    finally:
        numba.set_num_threads(before)


@lru_cache(maxsize=1)
def _threads(modules: int) -> Any:
    """The libraries that use threads. To look for them takes milliseconds, so only if something new was imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# Handing out the work


def do_all(
    points: Points, runs: Sequence[Run], executor: Any, engine: str, on_status: Callable[[Status], object]
) -> Status:
    """Have all runs done that are not; how things stand then."""
    folder, deaths, steps, idle = points.folder, Counter[str](), STEPS_A_TASK, 0
    file = folder.write_runs(points.name, runs)
    while missing := [run for run in runs if not folder.has_ended(run.identity)]:
        # Runs whose process has died come last. Where it takes all others along, one at a time: whose fault is it?
        these = [run for run in missing if run.identity not in deaths]
        if not these:
            these = missing[:1] if getattr(executor, "all_die_with_one", False) else missing
        tasks = _submit(executor, points, file, engine, these, steps)
        try:
            dead, died = _wait(tasks, executor, points, on_status)
        finally:
            cancel(executor, [task for task, _ in tasks])
        still = {run.identity: run for run in these if not folder.has_ended(run.identity)}
        if not still:
            continue
        if died is None:
            if seen(partial(_all_ended, folder, [*still])):
                continue
            raise Stopped("workers must see the sweep's folder under the same path; what they did is not in it")
        # Of a process on another machine, its silence will tell that it has died.
        fallen = [one for one in dead if one in still and abandoned(folder.file(one, "claim"))]
        idle = 0 if fallen or len(still) < len(these) else idle + 1
        if idle == TRIES:
            raise Stopped(f"the workers die again and again ({died!r})")
        for identity in fallen:
            deaths[identity] += 1
            folder.file(identity, "claim").unlink(missing_ok=True)
            if deaths[identity] >= TRIES:
                error = f"its process died {TRIES} times, at last of {died!r}"
                folder.write(folder.file(identity, "failed"), {"run": repr(still[identity]), "error": error})
        steps = 1  # from now on each run is a task of its own
        renew(executor)
    status = points.status()
    on_status(status)
    return status


def _all_ended(folder: Folder, identities: Sequence[str]) -> bool:
    return all(map(folder.has_ended, identities))


def _submit(
    executor: Any, points: Points, file: Path, engine: str, runs: Sequence[Run], steps: int
) -> list[tuple[Any, list[Run]]]:
    """Hand the runs out in portions: the tasks, and what each is to do."""
    number = {identity: index for index, identity in enumerate(dict.fromkeys(points.identities))}
    path, tasks = str(points.folder.path), []
    portions = _portions(runs, min(steps, sum(run.steps for run in runs) // TASKS), getattr(executor, "jobs", None))
    try:
        with getattr(executor, "batch", nullcontext)():
            for portion in portions:
                task = (path, str(file), engine, [number[run.identity] for run in portion])
                tasks.append((executor.submit(work, task), portion))
    except Exception as error:
        raise Stopped(f"the executor takes no work ({error!r})") from error
    return tasks


def _portions(runs: Sequence[Run], steps: int, jobs: int | None) -> list[list[Run]]:
    """The runs in as many portions as there are jobs; or, of any number of them, of about so many steps each."""
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
    tasks: list[tuple[Any, list[Run]]], executor: Any, points: Points, on_status: Callable[[Status], object]
) -> tuple[list[str], BaseException | None]:
    """Until all tasks or all runs have ended: the runs of those tasks whose worker died, and what of."""
    dead: list[str] = []
    died, shown = None, 0.0
    while tasks:
        ended = {id(task) for task, _ in tasks if task.done()}
        for task, portion in tasks:
            if id(task) not in ended:
                continue
            try:
                said = task.result()
            except (Exception, CancelledError) as error:
                if not is_death(error):
                    raise Stopped(f"the workers cannot do the work: {error!r}") from error
                died, dead = error, [*dead, *(run.identity for run in portion)]
            else:
                if said:
                    raise Stopped(said)
        tasks = [(task, portion) for task, portion in tasks if id(task) not in ended]
        if time.monotonic() - shown > 0.5:
            check(executor)
            on_status(status := points.status())
            # Others may have done it. (The folder is looked through only if its names say so.)
            if status.done + status.failed == status.total and _all_ended(points.folder, points.identities):
                break
            shown = time.monotonic()
        time.sleep(0.02)
    return dead, died
