"""Schedules: when may a neuron's incoming weights change?

A schedule's `gate` takes a neuron's rate y_i, the steps c_i since its last update, the step k
inside the hold (0 … hold − 1) and the hold; it gives the gate β_i and the new c_i. In a spiking
network it may take n_i as well: how many spikes the neuron fired in the last `window` steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynchebb.checks import InputError, at_least, checked, non_negative


@dataclass(frozen=True)
class Discrete:
    """All neurons, once the dynamics have settled (main text, App. A).

    β_i = 1 at the last step of the hold

    >>> [ah.Discrete().gate(1.5, 7, k, hold=3)[0] for k in range(3)]
    [False, False, True]
    """

    def gate(self, y_i, c_i, k, hold):
        beta_i = k == hold - 1
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class Continuous:
    """All neurons, at every step (App. B).

    β_i = 1

    >>> ah.Continuous().gate(0.0, 0, k=0, hold=500)  # β_i, and the new c_i
    (True, 0)
    """

    def gate(self, y_i, c_i, k, hold):
        return True, 0


@dataclass(frozen=True)
@checked(r_b=non_negative, r_r=non_negative)
class Asynchronous:
    """Each neuron when it bursts, unless it is refractory (App. C).

    β_i = 1 if y_i > r_b and c_i > r_r; then c_i ← 0, else c_i ← c_i + 1

    >>> schedule = ah.Asynchronous(r_b=1, r_r=100)
    >>> schedule.gate(1.5, 101, k=0, hold=500)  # a burst: β_i, and the new c_i
    (True, 0)
    >>> schedule.gate(1.5, 50, k=0, hold=500)  # refractory
    (False, 51)
    """

    r_b: float = 1.0
    r_r: float = 100

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i > self.r_r)
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
@checked(spikes=at_least(1), window=at_least(1), r_r=non_negative)
class Bursts:
    """Each spiking neuron when it has fired so many spikes within a window, unless it is refractory.

    β_i = 1 if n_i ≥ spikes, of the last `window` steps, and c_i > r_r; then c_i ← 0, else c_i ← c_i + 1

    >>> schedule = ah.Bursts(spikes=3, window=20)
    >>> [schedule.gate(0.5, n_i, 101, k=0, hold=500)[0] for n_i in range(5)]
    [False, False, False, True, True]
    """

    spikes: int = 3
    window: int = 20
    r_r: float = 100

    def __post_init__(self) -> None:
        if self.spikes > self.window:
            raise InputError(
                f"Bursts.spikes is {self.spikes!r}; it must be at most window, which is {self.window!r}: a neuron "
                "fires at most once per step"
            )

    def gate(self, y_i, n_i, c_i, k, hold):
        beta_i = (n_i >= self.spikes) & (c_i > self.r_r)
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class AtSpikes:
    """Each spiking neuron whenever it fires: pair-based plasticity, without a threshold or refractoriness.

    β_i = 1 if neuron i spikes

    >>> [ah.AtSpikes().gate(0.5, n_i, 0, k=0, hold=500)[0] for n_i in (0, 1)]
    [False, True]
    """

    window = 1

    def gate(self, y_i, n_i, c_i, k, hold):
        beta_i = n_i > 0
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class Frozen:
    """No neuron, ever: a network that learns nothing.

    β_i = 0

    >>> ah.Frozen().gate(9.0, 500, k=0, hold=500)
    (False, 501)
    """

    def gate(self, y_i, c_i, k, hold):
        return False, c_i + 1
