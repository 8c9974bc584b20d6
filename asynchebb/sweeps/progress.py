"""The progress bar of a running sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from asynchebb.sweeps.folder import Status


@contextmanager
def bar(folder: str | Path) -> Iterator[Callable[[Status], object]]:
    """A progress bar in the terminal or notebook: runs done, running, failed, time left."""
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,.0f}/{task.total:,.0f} runs"),
        progress.TextColumn("{task.fields[rest]}"),
    )
    with progress.Progress(*columns) as shown:
        tasks: list[progress.TaskID] = []

        def on_status(status: Status) -> None:
            if not tasks:  # only once the sweep has begun: it may still be rejected
                tasks.append(shown.add_task(str(folder), total=status.total, rest=""))
            rest = f"{status.running} running, {status.failed} failed{time_left(status)}"
            shown.update(tasks[0], completed=status.done + status.failed, rest=rest)

        yield on_status


def time_left(status: Status) -> str:
    return "" if status.seconds_left is None else f", {timedelta(seconds=round(status.seconds_left))} left"
