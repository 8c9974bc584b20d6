"""The readings of the paper under which its claims are judged, and the runs that they make.

The paper's text, its appendix and the authors' notebook differ (docs/choices.md). A reading is one
way to take them all; it differs from the first one, which the presets use, in what its name says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from asynchebb.dynamics import Potential, Projected
from asynchebb.experiments.scale import Scale
from asynchebb.network import MODELS, Network
from asynchebb.rules import Hebbian
from asynchebb.schedules import Asynchronous
from asynchebb.simulate import Phase, Probe, Run
from asynchebb.stimuli import Crossbars, Diagonals, Squares
from asynchebb.weights import Exponential, Gaussian

# How a network is tested: as the paper does (App. E), and until rates have settled.
PAPER, SETTLED = 0, 1
PAPERS_HOLD = 150  # Euler steps


class Reading(NamedTuple):
    """What the paper leaves open."""

    dynamics: Any = Potential()
    weights: Any = Exponential()
    eta: float = 0.01  # of the asynchronous rule
    r_b: float = 1.0
    r_r: int = 100
    hold: int = 500

    def network(self, model: str, scale: Scale, **changes: Any) -> Network:
        """One of the paper's three models under this reading."""
        own = dict(rule=Hebbian(self.eta), schedule=Asynchronous(self.r_b, self.r_r)) if model == "asynchronous" else {}
        shared = dict(dynamics=self.dynamics, weights=self.weights)
        return MODELS[model](scale.n, scale.p**2, **{**shared, **own, **changes})

    def concerning(self, model: str) -> Reading:
        """This reading as far as it concerns the model: what readings share, they share the runs of."""
        return self if model == "asynchronous" else Reading(self.dynamics, self.weights, hold=self.hold)

    def run(self, model: str, scale: Scale, seed: int) -> Run:
        """Trained on the paper's crossed bars."""
        trace = ("active", "y")
        return on_crossbars(scale, self.network(model, scale), self.hold, seed, scale.snapshots, trace)


PRESET = "Potential"
READINGS = {
    PRESET: Reading(),
    "Projected": Reading(Projected()),
    "Potential, Gaussian weights": Reading(weights=Gaussian()),
    "Projected, Gaussian weights": Reading(Projected(), Gaussian()),
    "Potential, η = 0.002": Reading(eta=0.002),
    "Projected, η = 0.002": Reading(Projected(), eta=0.002),
    "Potential, r_b = 2": Reading(r_b=2),
    "Projected, r_b = 2": Reading(Projected(), r_b=2),
    "Projected, r_b = 2, r_r = 500": Reading(Projected(), r_b=2, r_r=500),
    "Potential, hold 150": Reading(hold=150),
}

# Lateral weights so large overshoot at an Euler step of 0.01: all neurons are on and off by turns, and most networks
# learn nothing. The continuous network is not run under this reading, nor are three sets in succession: they would take
# longer than all others. For the same reason holds are varied under Potential dynamics alone.
PARTLY_RUN = "Projected, Gaussian weights"

# The one that keeps three sets in succession (claim 3a).
RETAINING = "Projected, r_b = 2"


def sets(scale: Scale) -> tuple[Any, ...]:
    """The three sets of Fig. 1C; the paper describes only the first, the others are our choice."""
    return Crossbars(scale.p), Squares(scale.p), Diagonals(scale.p)


def set_names(scale: Scale) -> list[str]:
    return [
        f"set {number}: {type(stimulus).__name__}{' (our choice)' if number > 1 else ''}"
        for number, stimulus in enumerate(sets(scale), 1)
    ]


def on_crossbars(
    scale: Scale, network: Network, hold: int, seed: int = 0, snapshots: int = 1, trace: tuple[str, ...] = ()
) -> Run:
    """A run on the paper's crossed bars, tested in both ways."""
    bars = sets(scale)[0]
    phase = Phase(bars, max(1, scale.steps // hold), hold, snapshots)
    probes = Probe(bars, scale.tested, PAPERS_HOLD), Probe(bars, scale.settled, scale.settling)
    return Run(network, (phase,), probes, trace, seed)


def in_succession(
    scale: Scale, network: Network, shown: tuple[Any, ...], hold: int, seed: int = 0, snapshots: int = 3
) -> Run:
    """A run on several sets one after the other, tested on all of them, settled."""
    phases = tuple(Phase(stimulus, max(1, scale.steps_a_phase // hold), hold, snapshots) for stimulus in shown)
    return Run(network, phases, tuple(Probe(stimulus, scale.tested, scale.settling) for stimulus in shown), (), seed)
