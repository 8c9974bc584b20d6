"""Works carried out side by side: each goes on as soon as its call has been answered, whatever the others do."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asynchebb.contracts import Call
from asynchebb.threads import cores

Work = Generator[Call, Any, object]


class Together:
    """Pools of threads. One goes on with works up to their next calls, on all cores. Two have the engine carry these
    out, so that short ones need not wait for long ones; those that wait meanwhile and are alike, together."""

    def __init__(self, works: Sequence[Work], engine: Any, card: int = 0) -> None:
        self._engine, self._works, self._left = engine, works, len(works)
        self._waiting: dict[Any, list[tuple[Work, Call, float]]] = defaultdict(list)
        self._changed, self._errors = threading.Condition(), list[BaseException]()
        self._going_on = ThreadPoolExecutor(cores(), initializer=engine.choose, initargs=(card,))
        self._long, self._short = (
            ThreadPoolExecutor(count, initializer=engine.begin, initargs=(card,)) for count in engine.AT_ONCE
        )

    def carry_out(self) -> None:
        """Return when all works have ended. An error that no work has asked for stops them all."""
        try:
            for work in self._works:
                self._submit(self._going_on, self._go_on, work, None)
            with self._changed:
                self._changed.wait_for(lambda: self._errors or not self._left)
            for error in self._errors:
                raise error
        finally:
            for pool in (self._going_on, self._long, self._short):
                pool.shutdown(cancel_futures=True)
            for work in self._works:
                work.close()

    def _submit(self, pool: ThreadPoolExecutor, function: Callable[..., None], *given: Any) -> None:
        def watched() -> None:
            try:
                function(*given)
            except BaseException as error:
                with self._changed:
                    self._errors.append(error)
                    self._changed.notify()

        with self._changed:  # or the pools may just have been shut down
            if not self._errors:
                pool.submit(watched)

    def _go_on(self, work: Work, answer: Any) -> None:
        """Give the work its answer, and note what it asks for next."""
        call = next_call(work, answer)
        key, short, part = self._engine.alike(call) if call else (None, False, 0.0)
        with self._changed:
            if call is None:
                self._left -= 1
                self._changed.notify()
                return
            self._waiting[key].append((work, call, part))
        self._submit(self._short if short else self._long, self._call, key)

    def _call(self, key: Any) -> None:
        """Have calls that are alike carried out: as many as wait and fit; none if others were faster."""
        with self._changed:
            waiting = self._waiting[key]
            parts = itertools.accumulate(part for *_, part in waiting)
            count = sum(1 for number, total in enumerate(parts) if total <= 1 or not number)
            some, self._waiting[key] = waiting[:count], waiting[count:]
        found = self._engine.answers([call for _, call, _ in some]) if some else []
        for (work, *_), answer in zip(some, found, strict=True):
            self._submit(self._going_on, self._go_on, work, answer)


def next_call(work: Work, answer: Any) -> Call | None:
    """What the work asks for next, once it has its answer; None at its end."""
    try:
        return work.throw(answer) if isinstance(answer, Exception) else work.send(answer)
    except StopIteration:
        return None
