"""Dynamics: how the drive Σ_j w_ij x_j − Σ_j m_ij y_j moves a neuron's state u_i and rate y_i.

Dynamics may be `additive`: for a neuron at rest, whose u_i stays as it is without drive, several
steps at which it is silent are one step with the summed drive, and a larger drive never gives a
smaller u_i or y_i. A fast engine need not follow such a neuron step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynchebb.checks import checked, positive


@dataclass(frozen=True)
@checked(dt=positive)
class Potential:
    """A potential without leak, and its positive part as the rate (the authors' notebook).

    u_i ← u_i + dt · drive_i
    y_i = [u_i]₊
    """

    # choice: read literally, the paper's ẏ = [Wx − My]₊ would never let a rate fall. Here a
    # silent neuron's potential drifts below zero and needs time to come back.
    dt: float = 0.01

    additive = True

    def step(self, u_i, drive_i):
        u_i = u_i + self.dt * drive_i
        return u_i, u_i * (u_i > 0)


@dataclass(frozen=True)
@checked(dt=positive)
class Projected:
    """The rate itself, kept at or above zero (the usual reading of ẏ = [Wx − My]₊).

    y_i ← [y_i + dt · drive_i]₊
    """

    dt: float = 0.01

    additive = True

    def step(self, u_i, drive_i):
        y_i = u_i + self.dt * drive_i
        y_i = y_i * (y_i > 0)
        return y_i, y_i
