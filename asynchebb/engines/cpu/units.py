"""How the cpu engine is compiled: as functions that know each other by name alone.

Numba compiles a function together with all that it calls, and all of that again with whatever calls it:
the whole loop would take half a minute. A unit is compiled once, by itself, as C would be: it takes
whole numbers, numbers, and places in memory, and the others call it as an external function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

# What stays the same during a hold, or during a call, in one record that units pass on: sizes; where arrays begin; the
# addresses of the equations' compiled functions and of their constants; and the traces, 0 where they are not asked for.
COUNTS = (
    *("n", "m", "wide", "hold", "from_rest", "lazy", "stimuli", "t", "pixels", "listed"),
    *("near", "most_entries", "run_apart", "undone", "lane_steps"),
    *("W", "P", "X", "x", "settled", "numbers", "indices", "truths", "history", "N", "C", "saved_C", "log"),
    *("move", "after", "fire", "dynamics", "gates", "silent_gates", "silent_bursts", "schedule"),
    *("terms", "update", "rule"),
    *("clock", "spiking", "noisy", "events", "window", "recent"),
    *("trace_updates", "trace_active", "trace_y", "trace_burst", "trace_spikes", "trace_fired"),
)
NUMBERS = ("floor", "smallest", "x_x", "decay")


def unit(takes: str, gives: str = "", spread: bool = False) -> Callable:
    """Mark a function as a unit. It takes a record (h), places of numbers (y), of whole numbers (c) or of truths (b),
    and a whole number (k) or number (x); it gives nothing, a whole number or a number. It may be spread over all cores.
    """

    def mark(function: Callable) -> Callable:
        vars(function)["unit"] = takes, gives, spread
        return function

    return mark


def held_type(dtype: np.dtype) -> np.dtype:
    return np.dtype([*((name, np.int64) for name in COUNTS), *((name, dtype) for name in NUMBERS)])


def signature(takes: str, gives: str, dtype: np.dtype, record: np.dtype) -> Any:
    """Numba's signature of a unit, or of a function of `kernels.py`."""
    from numba import from_dtype, types

    kinds = {
        "h": types.CPointer(from_dtype(record)),
        "y": types.CPointer(from_dtype(dtype)),
        "c": types.CPointer(types.int64),
        "b": types.CPointer(types.uint8),
        "k": types.int64,
        "x": from_dtype(dtype),
        "": types.void,
    }
    return kinds[gives](*(kinds[letter] for letter in takes))


def units_of(module: ModuleType) -> Iterator[tuple[str, Callable]]:
    """The units of a module, in the order in which they stand there."""
    return ((name, value) for name, value in list(vars(module).items()) if hasattr(value, "unit"))
