"""Threads of the libraries underneath: many small products are faster on one than on all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for everything: where there is a worker for each core, more would only compete."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with _libraries(len(sys.modules)).limit(limits=1):
            yield
    finally:
        numba.set_num_threads(before)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """Those that use threads. The search takes milliseconds, so it is repeated only after new imports."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
