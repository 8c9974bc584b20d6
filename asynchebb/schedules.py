"""Schedules: when may a neuron's incoming weights change?

A schedule's `gate` takes a neuron's rate y_i, the steps c_i since its last update, the step k
inside the hold (0 … hold − 1) and the hold; it gives the gate β_i and the new c_i.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynchebb.checks import checked, non_negative


@dataclass(frozen=True)
class Discrete:
    """All neurons, once the dynamics have settled (main text, App. A).

    β_i = 1 at the last step of the hold
    """

    def gate(self, y_i, c_i, k, hold):
        beta_i = k == hold - 1
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class Continuous:
    """All neurons, at every step (App. B).

    β_i = 1
    """

    def gate(self, y_i, c_i, k, hold):
        return True, 0


@dataclass(frozen=True)
@checked(r_b=non_negative, r_r=non_negative)
class Asynchronous:
    """Each neuron when it bursts, unless it is refractory (App. C).

    β_i = 1 if y_i > r_b and c_i > r_r; then c_i ← 0, else c_i ← c_i + 1
    """

    r_b: float = 1.0
    r_r: float = 100

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i > self.r_r)
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class Frozen:
    """No neuron, ever: a network that learns nothing.

    β_i = 0
    """

    def gate(self, y_i, c_i, k, hold):
        return False, c_i + 1
