"""What threads have of a GPU: streams, and memory that is kept from call to call.

To allocate memory, on the GPU or page-locked on the host, waits for all that runs there, whoever asked for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import numpy as np

from asynchebb.engines.gpu.batch import Batch
from asynchebb.engines.gpu.program import Geometry, Program


class Full(MemoryError):
    """The GPU has not enough memory."""


class Channel:
    """A stream of one thread, which does in order what it is asked for, beside what others do; and memory for one batch
    at a time, which only grows."""

    def __init__(self, card: Any) -> None:
        self.card, self.stream, self.busy = card, card.stream(), False
        self.forget()

    def forget(self) -> None:
        """Give the memory back."""
        self.there: Any = None
        self.size, self.here = 0, np.empty(0, np.uint8)

    def provide(self, size: int) -> None:
        """Have memory for any batch of this size."""
        self._allocate(size)
        self.here = self.card.page_locked(size)

    def reserve(self, batch: Batch) -> None:
        """Have memory for the batch, and an eighth more, since the next may be larger."""
        if self.size < batch.size:
            self.there, self.size = None, 0  # it may be needed for what takes its place
            try:
                self._allocate(batch.size + batch.size // 8)
            except Full:
                self.card.free_all()
                self._allocate(batch.size)
        if len(self.here) < batch.on_host:
            self.here = np.empty(0, np.uint8)
            self.here = self.card.page_locked(batch.on_host + batch.on_host // 8)

    def _allocate(self, size: int) -> None:
        self.there, self.size = self.card.memory(size), size

    def begin(self, batch: Batch, program: Program, geometry: Geometry) -> None:
        """Hand the batch over, run it, and fetch what it gives."""
        self.card.wait_for(self.stream)  # a call that was interrupted may still be running
        batch.fill(self.here, self.there.ptr)
        with self.stream:
            self.there.copy_from_host_async(self.here.ctypes.data, batch.given.stop)
            (self.there + batch.zeroed.start).memset_async(0, batch.zeroed.stop - batch.zeroed.start)
            self.card.launch(program, geometry, self.there, len(batch.calls))
            size = batch.taken.stop - batch.taken.start
            (self.there + batch.taken.start).copy_to_host_async(self.here.ctypes.data + batch.taken.start, size)

    def end(self, batch: Batch) -> None:
        """Wait for it."""
        self.card.wait_for(self.stream)
        batch.take_back(self.here)


class Card:
    """A GPU as threads share it. `room` is how many bytes of its memory they may take."""

    room: float

    def __init__(self) -> None:
        self._changed, self._taken = threading.Condition(), 0
        self._own, self._channels = threading.local(), WeakSet[Channel]()  # a thread's channels end with it

    @contextmanager
    def taking(self, size: int) -> Iterator[None]:
        """Wait until other threads leave room for so many bytes."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken or self._taken + size <= self.room)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()

    @contextmanager
    def channels(self, count: int) -> Iterator[list[Channel]]:
        """So many channels of this thread, the same each time."""
        own: list[Channel] = self._own.__dict__.setdefault("channels", [])
        own += [Channel(self) for _ in range(count - len(own))]
        with self._changed:
            self._channels.update(own)
            for channel in own[:count]:
                channel.busy = True
        try:
            yield own[:count]
        finally:
            for channel in own[:count]:
                channel.busy = False

    def free_all(self) -> None:
        """Give back what idle channels keep."""
        with self._changed:
            for channel in self._channels:
                if not channel.busy:
                    channel.forget()
