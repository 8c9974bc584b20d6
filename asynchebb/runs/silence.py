"""Networks that have died or never learned: they run to the end without an error, and their measures mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from asynchebb.runs.run import Run
from asynchebb.schedules import Frozen


class SilentNetwork(UserWarning):
    """A network has learned nothing, or no neuron responds to its stimuli any more.

    >>> import warnings
    >>> warnings.simplefilter("error", ah.SilentNetwork)  # stop instead of warning
    """


def trouble(source: Any, run: Run) -> str:
    """What is wrong with a finished run, and what to change; empty if it has learned and responds.

    `source` is the run's dataset, or its arrays by name, or its open file.
    """
    first, last = (np.asarray(source["W"][snapshot]) for snapshot in (0, -1))
    learns = not isinstance(run.network.schedule, Frozen)
    if "mean_activity" in source and not np.nan_to_num(np.asarray(source["mean_activity"][-1])).any():
        if not last.any():
            return "no neuron responds at the end: all weights have become 0; lower the rule's eta"
        if last.max() > first.max():
            why = f"weights reach {last.max():.3g}; lower the rule's eta or the dynamics' dt"
        else:
            why = "show stronger stimuli, or raise the scale of the initial weights"
        return f"no neuron responds at the end: {why}"
    if learns and np.array_equal(first, last) and np.array_equal(source["M"][0], source["M"][-1]):
        return "nothing was learned: no weight has changed; lower the schedule's threshold, or show stimuli for longer"
    return ""
