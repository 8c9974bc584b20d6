"""What `advance` can record at each Euler step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asynchebb.checks import InputError


class Traces(NamedTuple):
    """One entry per step; arrays that were not requested are empty."""

    updates: np.ndarray  # (steps,) synapses changed: open gate, and a Hebbian product, a leak or a floor ≠ 0
    active: np.ndarray  # (steps,) neurons with y_i > 0
    y: np.ndarray  # (steps, n) rates
    burst: np.ndarray  # (steps, n) gates β_i


NAMES = Traces._fields
PER_NEURON = ("y", "burst")  # the others have one number per step


def check(trace: tuple[str, ...]) -> None:
    if isinstance(trace, str):
        raise InputError(f"trace is the text {trace!r}; it must be a tuple of names from {', '.join(NAMES)}")
    for name in trace:
        if name not in NAMES:
            raise InputError(f"trace names {name!r}; the traces are {', '.join(NAMES)}")


def empty(trace: tuple[str, ...], steps: int, n: int, dtype: np.dtype) -> Traces:
    check(trace)
    count = {name: steps if name in trace else 0 for name in NAMES}
    return Traces(
        np.zeros(count["updates"], np.int64),
        np.zeros(count["active"], np.int64),
        np.zeros((count["y"], n), dtype),
        np.zeros((count["burst"], n), np.bool_),
    )
