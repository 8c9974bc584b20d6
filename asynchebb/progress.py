"""How far long work has come: a bar in a terminal, a line that updates itself in a notebook, a log elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from html import escape
from typing import Any, Protocol

LOG_EVERY = 60.0  # seconds between the lines of a log
REFRESH = 0.2  # seconds between updates in a notebook
RECENT = 30.0  # seconds over which the speed is measured


class Update(Protocol):
    """Tells how much is done, of how much if that was not known before; `rest` replaces speed and time left."""

    def __call__(self, done: int, of: int | None = None, rest: str = "") -> None: ...


class Task:
    """Work whose progress is shown."""

    def __init__(self, name: str, unit: str, total: int | None) -> None:
        self.name, self.unit, self.total = name, unit, total
        self.done, self._rest = 0, ""
        self._recent: deque[tuple[float, int]] = deque()

    def update(self, done: int, of: int | None, rest: str) -> None:
        self.done, self.total, self._rest = done, self.total if of is None else of, rest
        now = time.monotonic()
        self._recent.append((now, done))
        while now - self._recent[0][0] > RECENT and len(self._recent) > 2:
            self._recent.popleft()

    @property
    def count(self) -> str:
        return "" if self.total is None else f"{self.done:,}/{self.total:,} {self.unit}"

    @property
    def rest(self) -> str:
        """Speed and time left, if they are known."""
        if self._rest or len(self._recent) < 2 or self.total is None:
            return self._rest
        (since, before), (now, done) = self._recent[0], self._recent[-1]
        if not (speed := (done - before) / max(now - since, 1e-9)) > 0:
            return ""
        left = timedelta(seconds=round((self.total - done) / speed))
        return f"{speed:,.0f} {self.unit}/s, {left} left" if done < self.total else f"{speed:,.0f} {self.unit}/s"


@contextmanager
def shown(unit: str) -> Iterator[Callable[[str, int | None], Update]]:
    """Yields a function that begins a task, given its name and size, and returns one that updates it."""
    from rich.console import Console

    console = Console(stderr=True)
    display = _notebook if console.is_jupyter else _terminal if console.is_terminal else _log
    with display(console) as show:

        def begin(name: str, total: int | None) -> Update:
            task = Task(name, unit, total)
            drawn = show(task)

            def update(done: int, of: int | None = None, rest: str = "") -> None:
                task.update(done, of, rest)
                drawn()

            return update

        yield begin


@contextmanager
def working(text: str) -> Iterator[None]:
    """In a terminal, say what is being prepared that has no progress of its own."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.is_jupyter:
        yield
        return
    with console.status(f"{text} …"):
        yield


@contextmanager
def _terminal(console: Any) -> Iterator[Callable[[Task], Callable[[], None]]]:
    from rich import progress

    columns = [
        progress.TextColumn("{task.description:>12}"),
        progress.BarColumn(),
        *(progress.TextColumn(f"{{task.fields[{name}]}}") for name in ("count", "rest")),
    ]
    with progress.Progress(*columns, console=console) as bars:

        def show(task: Task) -> Callable[[], None]:
            bar = bars.add_task(task.name, total=task.total, count=task.count, rest="")

            def draw() -> None:
                bars.update(bar, completed=task.done, total=task.total, count=task.count, rest=task.rest)

            return draw

        try:
            yield show
        except BaseException:
            bars.live.transient = True  # an error that came before anything was done stands alone
            raise


@contextmanager
def _notebook(console: Any) -> Iterator[Callable[[Task], Callable[[], None]]]:
    from IPython.display import HTML, display

    def show(task: Task) -> Callable[[], None]:
        handle: Any = display(HTML(f"{escape(task.name)} …"), display_id=True)
        drawn = 0.0

        def draw() -> None:
            nonlocal drawn
            if task.done != task.total and time.monotonic() - drawn < REFRESH:
                return
            drawn = time.monotonic()
            bar = "" if task.total is None else f'<progress value="{task.done}" max="{task.total}"></progress>'
            handle.update(HTML(f"{escape(task.name)} {bar} {task.count} {escape(task.rest)}"))

        return draw

    yield show


@contextmanager
def _log(console: Any) -> Iterator[Callable[[Task], Callable[[], None]]]:
    logged = time.monotonic()

    def show(task: Task) -> Callable[[], None]:
        def draw() -> None:
            nonlocal logged
            if task.total is None or time.monotonic() - logged < LOG_EVERY:
                return
            logged = time.monotonic()
            share = task.done / max(task.total, 1)
            line = f"{datetime.now():%H:%M:%S} {task.name}: {task.count} ({share:.0%}), {task.rest}"
            print(line.rstrip(", "), file=sys.stderr, flush=True)

        return draw

    yield show
