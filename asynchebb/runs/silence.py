"""Networks that have died or never learned, or that are unstable: they run to the end without an error, and their
measures mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.checks import InputError
from asynchebb.network import Network
from asynchebb.runs.run import Run
from asynchebb.schedules import Frozen

POWER_ITERATIONS = 12  # for the largest eigenvalue of M: each is one product with M, as in an Euler step
RATES = (0.1, 0.3, 1.0, 3.0, 10.0)  # at the first of these at which a neuron is active, its dynamics are linearised


class SilentNetwork(UserWarning):
    """A network has learned nothing, or no neuron responds to its stimuli any more.

    >>> import warnings
    >>> warnings.simplefilter("error", ah.SilentNetwork)  # stop instead of warning
    """


class UnstableNetwork(UserWarning):
    """Neurons inhibit each other so much within one Euler step that they all go on and off together.

    >>> import warnings
    >>> warnings.simplefilter("error", ah.UnstableNetwork)  # stop instead of warning
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


def instability(network: Network, M: np.ndarray, learned: bool = False) -> str:
    """Why these Euler steps overshoot under the inhibition by M, and what to change; empty if they do not.

    In the mode that M inhibits most, the drive falls by λ(M), its largest eigenvalue, times the rate. Of spiking
    neurons nothing is said: their step is not smooth, and `LateSpikes` warns where dt is too long for them.
    """
    dynamics, largest = network.dynamics, _largest_eigenvalue(M)
    if equations.spikes(dynamics) or not np.isfinite(largest) or not _overshoots(dynamics, largest):
        return ""
    limit = _last(lambda factor: not _overshoots(dynamics, factor * largest)) * largest
    dt = getattr(dynamics, "dt", None)
    what, unit = ("λ(M)", 1) if dt is None else ("dt · λ(M)", dt)
    remedy = " or ".join(_remedies(network, largest, limit, learned)) or "smaller weights"
    return (
        f"the network is unstable: {what} is {unit * largest:.3g}, where λ(M) is the largest eigenvalue of M; above "
        f"{unit * limit:.3g} all neurons go on and off together and hardly learn. Use {remedy}"
    )


def _remedies(network: Network, largest: float, limit: float, learned: bool) -> Iterator[str]:
    """What would bring λ(M) to half its limit, where a step no longer overshoots at all."""
    dynamics, weights, ratio = network.dynamics, network.weights, limit / 2 / largest
    if hasattr(dynamics, "dt") and (shorter := _last(lambda factor: not _overshoots(dynamics, 2 * largest, factor))):
        yield f"dynamics.dt = {shorter * dynamics.dt:.2g}"
    if not learned and ratio and hasattr(weights, "scale"):
        yield f"weights.scale = {ratio * weights.scale:.2g}"
    if (
        not learned
        and hasattr(weights, "shrinks_from")
        and (least := int(ratio * min(network.n, weights.shrinks_from or network.n)))
    ):
        yield f"weights.shrinks_from = {least}"


def _last(holds: Callable[[float], bool]) -> float:
    """The largest factor below 1 for which this holds, if it holds for all smaller ones."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _largest_eigenvalue(M: np.ndarray) -> float:
    """By power iterations, for which it matters that no weight is negative."""
    v, size = np.full(len(M), len(M) ** -0.5, M.dtype), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(POWER_ITERATIONS):
            v = M @ v
            size = float(np.linalg.norm(v))
            if not 0 < size < np.inf:
                break
            v /= size
    return size


def _overshoots(dynamics: Any, largest: float, factor: float = 1.0) -> bool:
    """Does a small deviation of an active neuron's rate change its sign and grow, with dt times this factor?"""
    if factor != 1:
        try:
            dynamics = type(dynamics)(**{**equations.constants(dynamics), "dt": factor * dynamics.dt})
        except InputError:
            return True
    takes, gives = equations.takes_and_gives("dynamics", "step", dynamics.__class__)

    def moved(values: np.ndarray) -> np.ndarray:
        """u, y and h after a step, from these and the drive."""
        given = dict(zip(("u_i", "y_i", "h_i", "drive_i"), values, strict=True), noise_i=0.5)
        after = given | dict(zip(gives, dynamics.step(*(given[name] for name in takes)), strict=True))
        return np.array([after["u_i"], after["y_i"], after["h_i"]], np.float64)

    with np.errstate(all="ignore"):
        for rate in RATES:
            at, nearby = np.array([rate, rate, 0, rate]), 1e-6 * rate * np.eye(4)
            slopes = np.array([moved(at + one) - moved(at - one) for one in nearby]).T / (2e-6 * rate)
            if moved(at)[1] > 0 and slopes[1, 3] > 0 and np.isfinite(slopes).all():
                step = slopes[:, :3]
                step[:, 1] -= largest * slopes[:, 3]
                modes = np.linalg.eigvals(step)
                return bool(((modes.real < 0) & (np.abs(modes) > 1 + 1e-6)).any())
    return False
