"""Executors: this machine's cores, a Dask cluster, Slurm, or an executor of the user's own.

Scheduling is left to loky, Dask and Slurm. Each context manager here is open for the duration of a
sweep and yields an object with `submit(function, argument)`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from asynchebb.checks import InputError, at_least, shown
from asynchebb.contracts import Executor, Task
from asynchebb.notation import pieces
from asynchebb.threads import cores

ANSWER = 5  # seconds a scheduler has to answer
MOST_WORKERS = 1024  # processes on this machine, which all start at once

# Exceptions raised when a worker has died, by class name: not all of these libraries need be installed.
DEATHS = ("KilledWorker", "FutureCancelledError", "UncompletedJobError")


class Stopped(RuntimeError):
    """A sweep could not continue. Finished runs are saved, and the same sweep resumes from there.

    >>> try:
    ...     raise ah.Stopped("the scheduler does not answer")
    ... except ah.Stopped as error:
    ...     print(error)
    the scheduler does not answer
    """


def is_death(error: BaseException) -> bool:
    """Did the worker die, as opposed to its task raising an error?"""
    return isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ in DEATHS


def cancel(executor: Executor, tasks: list[Task]) -> None:
    """Cancel the tasks that have not finished."""
    if not isinstance(executor, Local):  # its processes are stopped instead
        for task in tasks:
            if not task.done():
                task.cancel()


def check(executor: Executor) -> None:
    """Raise `Stopped` if the executor has lost its workers."""
    if hasattr(executor, "check"):
        executor.check()


def renew(executor: Executor) -> None:
    """After workers have died: replace our own; a cluster restarts its workers itself."""
    if hasattr(executor, "renew"):
        executor.renew()


@contextmanager
def local(workers: int | None = None) -> Iterator[Local]:
    """Processes on this machine, by default one per core."""
    workers = cores() if workers is None else workers
    executor = Local(at_least(1, MOST_WORKERS)("workers", workers))
    try:
        yield executor
    finally:
        executor.stop()


class Local:
    """loky processes: they can use classes defined in a notebook, and are replaced when one is killed."""

    all_die_with_one = True

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._start()

    def _start(self) -> None:
        from loky import ProcessPoolExecutor

        # loky replaces workers that hold large arrays for a while; the user need not know.
        warnings.filterwarnings("ignore", "A worker was restarted", UserWarning)
        one = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
        self._pool = ProcessPoolExecutor(self.workers, initializer=_watch_parent, initargs=(os.getpid(),), env=one)

    def submit(self, function: Callable[..., Any], argument: Any) -> Task:
        return self._pool.submit(function, argument)

    def stop(self) -> None:
        self._pool.shutdown(wait=True, kill_workers=True)

    def renew(self) -> None:
        self.stop()
        self._start()


def _watch_parent(parent: int) -> None:
    """Set up a worker: it leaves Ctrl-C to its parent, and exits when the parent is gone, even if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def dask(address: str) -> Iterator[OnDask]:
    """The workers of a Dask scheduler, like tcp://host:8786."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError('dask needs the package distributed: pip install "asynchebb[dask]"') from None
    try:
        # A client that finds no scheduler cannot even be closed, so look for one first.
        asyncio.run(asyncio.wait_for(_check_scheduler(address), ANSWER))
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except (Exception, MemoryError) as error:  # something else may answer at that address, with anything
        raise InputError(
            f"dask is {address!r}; it must be the address of a scheduler, like tcp://host:8786, but none answers there "
            f"within {ANSWER} s ({type(error).__name__})"
        ) from None
    if not client.scheduler_info()["workers"]:
        print(f"asynchebb: {address} has no workers yet; waiting for some", file=sys.stderr, flush=True)
    logging.disable(logging.ERROR)  # `Stopped` reports what matters in Dask's verbose log
    try:
        with client:
            yield OnDask(client)
    finally:
        logging.disable(logging.NOTSET)


async def _check_scheduler(address: str) -> None:
    """Raise an error unless a Dask scheduler answers at this address."""
    from distributed import rpc

    if not re.fullmatch(r"\w+://.+:\d+", address):
        raise ValueError("not an address")
    async with rpc(address, timeout=ANSWER) as scheduler:
        if (await scheduler.identity())["type"] != "Scheduler":
            raise ValueError("not a scheduler")


def adapted(executor: Any) -> Executor:
    """Wrap the user's executor if it is a Dask client; return any other unchanged."""
    if hasattr(executor, "get_executor") and hasattr(executor, "scheduler_info"):
        return OnDask(executor)
    if not callable(getattr(executor, "submit", None)):
        raise InputError(f"executor is {shown(executor)}; it must be a Dask client or have submit(function, argument)")
    return executor


class OnDask:
    """The workers of a Dask client."""

    def __init__(self, client: Any) -> None:
        self._client, self._executor = client, client.get_executor(pure=False)
        self._seen = time.monotonic()

    @property
    def workers(self) -> int:
        return len(self._client.scheduler_info()["workers"])

    def submit(self, function: Callable[..., Any], argument: Any) -> Task:
        return self._executor.submit(function, argument)

    def check(self) -> None:
        """Raise `Stopped` if the scheduler is gone: the client would leave its tasks pending forever."""
        now = time.monotonic()
        if self._client.status == "running":
            self._seen = now
        elif now - self._seen > ANSWER:
            raise Stopped("the Dask scheduler is gone")

    def renew(self) -> None:
        if self._client.status != "running":
            raise Stopped("the Dask scheduler is gone")


@contextmanager
def slurm(options: str, jobs: int | None, folder: Path) -> Iterator[OnSlurm]:
    """Slurm jobs, by default an array of 32. The options are Slurm's own: partition=short,time=60."""
    try:
        import submitit
    except ImportError:
        raise InputError('slurm needs the package submitit: pip install "asynchebb[slurm]"') from None
    jobs = 32 if jobs is None else jobs
    jobs = at_least(1)("workers", jobs)
    if shutil.which("sbatch") is None:
        raise InputError("slurm needs the command sbatch, which is not available here; run this on a submit host")
    executor = submitit.SlurmExecutor(folder)
    configure(executor, options)
    yield OnSlurm(executor, jobs)


def configure(executor: Any, options: str) -> None:
    """Pass options like partition=short,time=60 to submitit's executor; those it does not know go to sbatch."""
    executor.update_parameters(job_name="asynchebb", cpus_per_task=1, time=None)  # else submitit asks for five minutes
    others: dict[str, Any] = {}
    for option in _options(options):
        name, equals, value = (part.strip() for part in option.partition("="))
        name = name.replace("-", "_")
        if not equals or not name or not value:
            raise InputError(f"slurm is {options!r}; it must be written like partition=short,time=60")
        value = value[1:-1] if value[:1] in "'\"" and value[-1:] == value[:1] and len(value) > 1 else value
        given: Any = int(value) if value.isdigit() else value
        try:
            executor.update_parameters(**{name: given})
        except ValueError:  # it does not know this one
            others[name] = given
    executor.update_parameters(additional_parameters=others)


def _options(text: str) -> list[str]:
    """Split at commas, except within brackets, quotes and lists: nodelist=a1,a2,time=60 are two options."""
    found: list[str] = []
    for piece in pieces(text):
        if "=" in piece or not found:
            found.append(piece)
        else:
            found[-1] += f",{piece}"
    return found


class OnSlurm:
    """An array of Slurm jobs."""

    def __init__(self, executor: Any, jobs: int) -> None:
        self._executor, self.jobs = executor, jobs
        self.batch = executor.batch
        self._queue, self._asked = set[str](), -60.0

    def submit(self, function: Callable[..., Any], argument: Any) -> SlurmTask:
        return SlurmTask(self._executor.submit(function, argument), self)

    def queue(self) -> tuple[set[str], float]:
        """The jobs in Slurm's queue and the time of that query, which is made only every few seconds for all tasks."""
        if time.monotonic() - self._asked > 5 and shutil.which("squeue"):
            command = ["squeue", "-h", "-r", "-o", "%i", "-u", str(os.getuid())]
            with suppress(subprocess.TimeoutExpired):
                answer = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER)
                if answer.returncode == 0:
                    self._queue, self._asked = set(answer.stdout.split()), time.monotonic()
        return self._queue, self._asked


class SlurmTask:
    """A job that also counts as ended once it has left the queue: submitit relies on accounting, which may be off."""

    def __init__(self, job: Any, slurm: OnSlurm) -> None:
        self._job, self._slurm = job, slurm
        self._asked = self._seen = time.monotonic()

    def done(self) -> bool:
        if self._job.done():
            return True
        queue, asked = self._slurm.queue()
        if asked > self._asked:
            self._asked = asked
            self._seen = asked if self._job.job_id in queue else self._seen
        return self._asked - self._seen > 10  # the result file may take a while to appear

    def result(self) -> Any:
        if not self._job.done():
            raise BrokenExecutor(f"job {self._job.job_id} has left the queue without a result")
        return self._job.result()

    def cancel(self) -> None:
        self._job.cancel()
