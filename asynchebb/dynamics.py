"""Dynamics: how the drive moves a neuron's state u_i and rate y_i.

    drive_i = Σ_j w_ij x_j − Σ_j m_ij y_j

Dynamics may be `additive`: for a neuron at rest, whose u_i stays as it is without drive, several
steps at which it is silent are one step with the summed drive, and a larger drive never gives a
smaller u_i or y_i. A fast engine need not follow such a neuron step by step.

Those of spiking neurons take y_i as well, the filtered spike train, which stands for the rate in
inhibition, gate and rule. Where it falls to `decay` · y_i between spikes, a fast engine need read
the weights of spiking neurons only. A spike is worth θ: that is the area under the y_i it leaves.
A y_i below 2⁻¹⁰⁰ (7.9e-31) is 0, so that no denormal numbers slow down the arithmetic. A neuron fires
at most one spike per step, so that no rate exceeds θ/dt; s_i = 2 says that it should have fired more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asynchebb.checks import InputError, checked, non_negative, positive


@dataclass(frozen=True)
@checked(dt=positive)
class Potential:
    """A potential without leak, and its positive part as the rate (the authors' notebook).

    u_i ← u_i + dt · drive_i
    y_i = [u_i]₊

    >>> ah.Potential(dt=0.1).step(1.0, drive_i=5.0)  # u_i, y_i
    (1.5, 1.5)
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

    >>> ah.Projected(dt=0.1).step(1.0, drive_i=5.0)  # u_i, which is y_i, and y_i
    (1.5, 1.5)
    """

    dt: float = 0.01

    additive = True

    def step(self, u_i, drive_i):
        y_i = u_i + self.dt * drive_i
        y_i = y_i * (y_i > 0)
        return y_i, y_i


class _Relaxes:
    """Something falls by dt/τ of itself in a step, which must not be more than all of it."""

    dt: float
    tau: float

    def __post_init__(self) -> None:
        for name in ("tau", "tau_m"):
            if getattr(self, name, self.dt) < self.dt:
                raise InputError(
                    f"{type(self).__name__}.{name} is {getattr(self, name)!r}; it must be at least dt, which is "
                    f"{self.dt!r}"
                )


@dataclass(frozen=True)
@checked(dt=positive, tau=positive)
class Relaxing(_Relaxes):
    """A rate that relaxes to the positive part of the drive: what `IntegrateAndFire` becomes as θ → 0.

    y_i ← y_i + (dt/τ) ([drive_i]₊ − y_i)

    >>> ah.Relaxing(dt=0.1, tau=0.2).step(1.0, drive_i=3.0)  # halfway
    (2.0, 2.0)
    """

    dt: float = 0.01
    tau: float = 0.2

    def step(self, u_i, drive_i):
        u_i = u_i * (u_i > 0)  # a network's first u_i are random numbers of either sign
        y_i = u_i + (self.dt / self.tau) * (drive_i * (drive_i > 0) - u_i)
        return y_i, y_i


@dataclass(frozen=True)
@checked(dt=positive, tau=positive, target=non_negative, tau_h=positive)
class HomeostaticRelaxing(_Relaxes):
    """The same with a threshold h_i that keeps each neuron's mean rate at a target.

    y_i ← y_i + (dt/τ) ([drive_i − h_i]₊ − y_i)
    h_i ← h_i + (dt/τ_h) (y_i − target)

    >>> dynamics = ah.HomeostaticRelaxing(dt=0.1, tau=0.2, target=0.5, tau_h=1.0)
    >>> u_i, y_i, h_i = dynamics.step(1.0, 1.0, 0.0, drive_i=3.0)
    >>> float(y_i), round(float(h_i), 2)
    (2.0, 0.15)
    """

    dt: float = 0.01
    tau: float = 0.2
    target: float = 0.07
    tau_h: float = 50.0

    def step(self, u_i, y_i, h_i, drive_i):
        above = np.maximum(drive_i - h_i, 0.0)
        y_i = y_i + (self.dt / self.tau) * (above - y_i)
        h_i = h_i + (self.dt / self.tau_h) * (y_i - self.target)
        return y_i, y_i, h_i


class _Filtered(_Relaxes):
    """A spike train that is filtered with the time constant τ."""

    @property
    def decay(self) -> float:
        return 1 - self.dt / self.tau


@dataclass(frozen=True)
@checked(dt=positive, theta=positive, tau=positive)
class IntegrateAndFire(_Filtered):
    """A potential without leak that spikes at θ and falls by θ; its filtered spike train as the rate.

    u_i ← max(u_i + dt · drive_i, −θ)
    if u_i > θ: a spike, and u_i ← u_i − θ
    y_i ← (1 − dt/τ) y_i, plus θ/τ at a spike

    >>> u_i, y_i, s_i = ah.IntegrateAndFire().step(0.045, 0.0, drive_i=1.0)
    >>> int(s_i), float(y_i)  # a spike, which leaves θ/τ
    (1, 0.25)
    """

    dt: float = 0.01
    theta: float = 0.05
    tau: float = 0.2

    def step(self, u_i, y_i, drive_i):
        u_i = np.maximum(u_i + self.dt * drive_i, -self.theta)
        s_i = (u_i > self.theta) * 1 + (u_i > self.theta + self.theta) * 1
        u_i = u_i - self.theta * (s_i > 0)
        y_i = y_i - y_i * (self.dt / self.tau)
        y_i = y_i * (y_i > 7.888609052210118e-31) + (self.theta / self.tau) * (s_i > 0)
        return u_i, y_i, s_i


@dataclass(frozen=True)
@checked(dt=positive, theta=positive, tau=positive, tau_m=positive)
class LeakyIntegrateAndFire(_Filtered):
    """The same with a leak: a drive below θ/τ_m never makes it spike.

    u_i ← max(u_i + dt (drive_i − u_i/τ_m), −θ)
    if u_i > θ: a spike, and u_i ← u_i − θ
    y_i ← (1 − dt/τ) y_i, plus θ/τ at a spike

    >>> u_i, y_i, s_i = ah.LeakyIntegrateAndFire().step(0.045, 0.0, drive_i=0.05)
    >>> int(s_i), float(u_i) < 0.045  # the drive is too weak
    (0, True)
    """

    dt: float = 0.01
    theta: float = 0.05
    tau: float = 0.2
    tau_m: float = 0.5

    def step(self, u_i, y_i, drive_i):
        u_i = np.maximum(u_i + self.dt * drive_i - (self.dt / self.tau_m) * u_i, -self.theta)
        s_i = (u_i > self.theta) * 1 + (u_i > self.theta + self.theta) * 1
        u_i = u_i - self.theta * (s_i > 0)
        y_i = y_i - y_i * (self.dt / self.tau)
        y_i = y_i * (y_i > 7.888609052210118e-31) + (self.theta / self.tau) * (s_i > 0)
        return u_i, y_i, s_i


@dataclass(frozen=True)
@checked(dt=positive, theta=positive, tau=positive, delta=positive, rho=positive)
class EscapeNoise(_Filtered):
    """Stochastic integrate-and-fire: spikes come at the rate ρ at θ, e times as often for each Δ above.

    u_i ← max(u_i + dt · drive_i, −θ)
    with probability 1 − exp(−dt ρ exp((u_i − θ)/Δ)): a spike, and u_i ← u_i − θ
    y_i ← (1 − dt/τ) y_i, plus θ/τ at a spike

    >>> u_i, y_i, s_i = ah.EscapeNoise().step(0.05, 0.0, drive_i=0.0, noise_i=0.3)
    >>> int(s_i)  # at θ, with probability 1 − exp(−dt ρ) = 0.39
    1
    """

    dt: float = 0.01
    theta: float = 0.05
    tau: float = 0.2
    delta: float = 0.02
    rho: float = 50.0

    def step(self, u_i, y_i, drive_i, noise_i):
        u_i = np.maximum(u_i + self.dt * drive_i, -self.theta)
        expected = self.dt * self.rho * np.exp(np.minimum((u_i - self.theta) / self.delta, 50.0))
        s_i = (noise_i < 1.0 - np.exp(-expected)) * 1
        u_i = u_i - self.theta * (s_i > 0)
        s_i = s_i + s_i * (u_i > self.theta + self.theta)
        y_i = y_i - y_i * (self.dt / self.tau)
        y_i = y_i * (y_i > 7.888609052210118e-31) + (self.theta / self.tau) * (s_i > 0)
        return u_i, y_i, s_i


@dataclass(frozen=True)
@checked(dt=positive, theta=positive, tau=positive, target=non_negative, tau_h=positive)
class HomeostaticIntegrateAndFire(_Filtered):
    """Integrate-and-fire with a threshold h_i on the drive that keeps each neuron's mean rate at a target.

    u_i ← max(u_i + dt (drive_i − h_i), −θ)
    if u_i > θ: a spike, and u_i ← u_i − θ
    y_i ← (1 − dt/τ) y_i, plus θ/τ at a spike
    h_i ← h_i + (dt/τ_h) (y_i − target)

    >>> u_i, y_i, h_i, s_i = ah.HomeostaticIntegrateAndFire().step(0.0, 0.0, 1.0, drive_i=1.0)
    >>> float(u_i), bool(h_i < 1)  # the threshold takes all of the drive, and falls
    (0.0, True)
    """

    dt: float = 0.01
    theta: float = 0.05
    tau: float = 0.2
    target: float = 0.07
    tau_h: float = 50.0

    def step(self, u_i, y_i, h_i, drive_i):
        u_i = np.maximum(u_i + self.dt * (drive_i - h_i), -self.theta)
        s_i = (u_i > self.theta) * 1 + (u_i > self.theta + self.theta) * 1
        u_i = u_i - self.theta * (s_i > 0)
        y_i = y_i - y_i * (self.dt / self.tau)
        y_i = y_i * (y_i > 7.888609052210118e-31) + (self.theta / self.tau) * (s_i > 0)
        h_i = h_i + (self.dt / self.tau_h) * (y_i - self.target)
        return u_i, y_i, h_i, s_i
