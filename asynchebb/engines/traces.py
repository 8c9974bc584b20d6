"""What `advance` can record at each Euler step."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from asynchebb.checks import InputError, some_of


class Traces(NamedTuple):
    """One entry per step, but for the last two; arrays that were not requested are empty, and the others 0 at first."""

    updates: np.ndarray  # (steps,) synapses changed: open gate, and a Hebbian product, a leak or a floor ≠ 0
    active: np.ndarray  # (steps,) neurons with y_i > 0
    y: np.ndarray  # (steps, n) rates
    burst: np.ndarray  # (steps, n) gates β_i
    spikes: np.ndarray  # (steps, n) which neurons spike
    means: np.ndarray  # (stimuli, n) rates, averaged over each presentation; not by the cpu engine
    fired: np.ndarray  # (2,) spikes in all, and those after which the neuron should have fired again in the same step


NAMES = ("updates", "active", "y", "burst", "spikes")
PER_NEURON = ("y", "burst", "spikes")  # the others have one number per step

# Shares of late spikes above which we warn, and above which we raise; of so many spikes at least, since at an onset
# many are late.
LATE, TOO_LATE, ENOUGH = 0.1, 0.5, 1000


class LateSpikes(UserWarning):
    """Many spikes come late, because neurons fire at most once per Euler step.

    >>> import warnings
    >>> warnings.simplefilter("error", ah.LateSpikes)  # stop instead of warning
    """


def check(trace: tuple[str, ...]) -> tuple[str, ...]:
    return some_of("trace", trace, NAMES)


def empty(trace: tuple[str, ...], steps: int, n: int, dtype: np.dtype, means_of: int = 0) -> Traces:
    """Those that are asked for, over so many steps; and means over so many stimuli."""
    trace = check(trace)
    count = {name: steps if name in trace else 0 for name in NAMES}
    return Traces(
        np.zeros(count["updates"], np.int64),
        np.zeros(count["active"], np.int64),
        np.zeros((count["y"], n), dtype),
        np.zeros((count["burst"], n), np.bool_),
        np.zeros((count["spikes"], n), np.bool_),
        np.zeros((means_of, n), dtype),
        np.zeros(2, np.int64),
    )


def check_spikes(dynamics: object, fired: np.ndarray, warns: bool = False) -> None:
    """Raise an error if most neurons should have fired more than once per step; warn if many should have."""
    spikes, late = fired
    if spikes < ENOUGH or late <= (LATE if warns else TOO_LATE) * spikes:
        return
    what = (
        f"dynamics is {dynamics!r}, and {late / spikes:.0%} of the spikes come late, because a neuron would have to "
        "fire more than once per Euler step"
    )
    theta, dt = getattr(dynamics, "theta", None), getattr(dynamics, "dt", None)
    largest = f": no rate can exceed theta/dt, which is {theta / dt:g}" if theta and dt else ""
    if late > TOO_LATE * spikes:
        raise InputError(f"{what}; dt must be smaller, or theta larger{largest}")
    warnings.warn(f"{what}; use a smaller dt or a larger theta{largest}", LateSpikes, stacklevel=3)
