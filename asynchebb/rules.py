"""Plasticity rules: Hebb's product minus a leak. The rules differ in the leak alone.

    Δw_ij = η_i (y_i x_j − λ_w(y_i) w_ij)
    Δm_ij = η_i (y_i y_j − λ_m(y_i) m_ij − φ)

A rule is a record of constants with four members: `leak_w` (λ_w), `leak_m` (λ_m), `floor` (φ)
and `rate`, which gives η_i and may keep account of a neuron's activity in a_i. Weights are
rectified at 0 after each change. Appendices are those of Aguiar & Hennig (2024).
"""

from __future__ import annotations

from dataclasses import dataclass

from asynchebb.checks import checked, non_negative, positive


@dataclass(frozen=True)
@checked(eta=positive)
class Hebbian:
    """Hebb's rule with a constant leak (App. A4 and C; after Qin et al. 2023).

    Δw_ij = η (y_i x_j − w_ij)
    Δm_ij = η (y_i y_j − m_ij)

    >>> ah.Hebbian(eta=0.02).leak_w(3.0)  # the same at any rate
    1.0
    """

    eta: float = 0.01

    floor = 0.0

    def leak_w(self, y_i):
        return 1.0

    def leak_m(self, y_i):
        return 1.0

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
@checked(eta=positive)
class Oja:
    """Oja (1982): the leak grows with the square of the rate (App. B).

    Δw_ij = η (y_i x_j − y_i² w_ij)
    Δm_ij = η (y_i y_j − y_i² m_ij)

    >>> ah.Oja().leak_w(3.0)
    9.0
    >>> network = ah.asynchronous(n=50, m=36, rule=ah.Oja(eta=0.005))
    """

    eta: float = 0.001

    floor = 0.0

    def leak_w(self, y_i):
        return y_i * y_i

    def leak_m(self, y_i):
        return y_i * y_i

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
@checked(eta=positive, p=non_negative)
class Foldiak:
    """Földiák (1990), without the sensitivity term (App. A1).

    Δw_ij = η (y_i x_j − y_i w_ij)
    Δm_ij = η (y_i y_j − p²)

    >>> rule = ah.Foldiak(p=0.5)
    >>> rule.leak_w(3.0), rule.leak_m(3.0), rule.floor
    (3.0, 0.0, 0.25)
    """

    eta: float = 0.01
    p: float = 0.05

    @property
    def floor(self):
        return self.p * self.p

    def leak_w(self, y_i):
        return y_i

    def leak_m(self, y_i):
        return 0.0

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
@checked(eta=positive, p=non_negative)
class Falconbridge:
    """Falconbridge et al. (2006): Földiák's network with Oja's feed-forward rule (App. A2).

    Δw_ij = η (y_i x_j − y_i² w_ij)
    Δm_ij = η (y_i y_j − p²)

    >>> rule = ah.Falconbridge(p=0.5)
    >>> rule.leak_w(3.0), rule.leak_m(3.0), rule.floor
    (9.0, 0.0, 0.25)
    """

    eta: float = 0.01
    p: float = 0.05

    @property
    def floor(self):
        return self.p * self.p

    def leak_w(self, y_i):
        return y_i * y_i

    def leak_m(self, y_i):
        return 0.0

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
@checked(a0=positive)
class Pehlevan:
    """Pehlevan & Chklovskii (2014): Oja's rule at a rate that falls with activity (App. A3).

    Δw_ij = η_i (y_i x_j − y_i² w_ij)
    Δm_ij = η_i (y_i y_j − y_i² m_ij)
    a_i ← a_i + y_i² at each update, then η_i = 1/a_i

    >>> ah.Pehlevan().rate(y_i=2.0, a_i=96.0)  # η_i, and the new a_i
    (0.01, 100.0)
    """

    # choice: App. A3 prints Δη_i = y_i², a rate that grows without bound; the original paper
    # divides by the accumulated activity. a0 is where a_i starts, so η_i starts below 1/a0.
    a0: float = 100.0

    floor = 0.0

    def leak_w(self, y_i):
        return y_i * y_i

    def leak_m(self, y_i):
        return y_i * y_i

    def rate(self, y_i, a_i):
        a_i = a_i + y_i * y_i
        return 1.0 / a_i, a_i


@dataclass(frozen=True)
@checked(eta=positive)
class SpikePairs:
    """Pair-based: each spike of neuron i pairs with what it finds at its synapses, whatever its own rate is.

    Δw_ij = η (x_j − w_ij)
    Δm_ij = η (y_j − m_ij)

    >>> rule = ah.SpikePairs(eta=0.01)
    >>> eta_i, _ = rule.rate(y_i=2.0, a_i=0.0)
    >>> eta_i * 2.0, eta_i * rule.leak_w(2.0)  # how strongly x_j counts, and w_ij
    (0.01, 0.01)
    """

    # Used with `AtSpikes`, w_i becomes the mean stimulus at the spikes of neuron i (its spike-triggered average), and
    # m_ij the mean presynaptic trace. y_i > 0 at a spike, and cancels out; a silent neuron does not learn.
    eta: float = 0.01

    floor = 0.0

    def leak_w(self, y_i):
        return y_i

    def leak_m(self, y_i):
        return y_i

    def rate(self, y_i, a_i):
        return self.eta * (y_i > 0) / (y_i + (y_i <= 0)), a_i
