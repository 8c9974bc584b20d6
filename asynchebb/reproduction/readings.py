"""The readings of the paper under which its claims are judged, and the runs they define.

The paper's main text, its appendix and the authors' notebook disagree in places (docs/choices.md). A reading settles
the open points. The presets use the first; the name of each of the others says how it differs from the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asynchebb import network
from asynchebb.contracts import FactoredStimulus, Rule, Stimulus
from asynchebb.dynamics import Potential
from asynchebb.equations import constants
from asynchebb.network import Network, Reading
from asynchebb.reproduction.scale import Scale
from asynchebb.rules import Hebbian, Oja, Pehlevan
from asynchebb.runs.run import Phase, Probe, Run
from asynchebb.stimuli import Crossbars, Diagonals, Patches, Squares
from asynchebb.weights import Gaussian

# The two tests of a network, by index: as in the paper (App. E), and until rates have settled.
PAPER, SETTLED = 0, 1
PAPERS_HOLD = 150  # Euler steps
PATCH, PATCH_NEURONS = 12, 200  # of natural images: pixels per side, and neurons


def eta_of(rule: Rule) -> float:
    return constants(rule)["eta"]


PRESET, NOTEBOOK = "from rest, Oja", "notebook"
_PAPER = network.READINGS["paper"]
READINGS = {
    PRESET: _PAPER,
    "carried over": _PAPER._replace(from_rest=False),
    "constant leak": _PAPER._replace(
        asynchronous=Hebbian(eta_of(_PAPER.asynchronous)), discrete=Hebbian(eta_of(_PAPER.discrete))
    ),
    "Pehlevan's leak": _PAPER._replace(asynchronous=Pehlevan(), discrete=Pehlevan()),
    "Potential, weights × 2": _PAPER._replace(
        dynamics=Potential(), weights=Gaussian(scale=2 * constants(_PAPER.weights)["scale"])
    ),
    "η = 0.005, r_b = 1": _PAPER._replace(asynchronous=Oja(0.005), r_b=1),
    "η = 0.0025 and 0.005, r_b = 1": _PAPER._replace(asynchronous=Oja(0.0025), discrete=Oja(0.005), r_b=1),
    "η = 0.01, r_r = 500": _PAPER._replace(asynchronous=Oja(0.01), r_r=500),
    NOTEBOOK: network.READINGS["notebook"],
}
# What the paper varies: how long a stimulus is held, and the asynchronous network's two parameters.
HOLDS = (50, 150, 500)
THRESHOLDS = (0, 0.5, 1, 2)
REFRACTORY = (0, 10, 100, 500)
# Everything is run under these two, including figures 2D to 2I and those of the appendix.
WHOLE = (PRESET, NOTEBOOK)


def readings(scale: Scale) -> dict[str, Reading]:
    """The readings under which claims are judged at this scale."""
    return READINGS if scale.every_reading else {name: READINGS[name] for name in WHOLE}


def seeds(scale: Scale, name: str) -> range:
    """The seeds used for this reading."""
    return range(scale.seeds if name in WHOLE else 1)


def same_for(model: str, one: Reading, other: Reading) -> bool:
    """Do two readings agree on this model? If so, they share its runs."""
    return (one.network(model, 1, 1), one.from_rest, one.hold) == (
        other.network(model, 1, 1),
        other.from_rest,
        other.hold,
    )


def sets(scale: Scale) -> tuple[FactoredStimulus, ...]:
    """The three sets of Fig. 1C. The paper describes only the first; the others are our choice."""
    return Crossbars(scale.p), Squares(scale.p), Diagonals(scale.p)


def set_names(scale: Scale) -> list[str]:
    return [
        f"set {number}: {type(stimulus).__name__}{' (our choice)' if number > 1 else ''}"
        for number, stimulus in enumerate(sets(scale), 1)
    ]


def network_of(reading: Reading, model: str, scale: Scale) -> Network:
    return reading.network(model, scale.n, scale.p**2)


def on_crossbars(
    scale: Scale, reading: Reading, model: str, seed: int = 0, snapshots: int = 1, trace: tuple[str, ...] = ()
) -> Run:
    """A run on the paper's crossed bars, with both tests."""
    bars, hold, from_rest = Crossbars(scale.p), reading.hold, reading.from_rest
    phase = Phase(bars, max(1, scale.steps // hold), hold, snapshots, from_rest)
    probes = (
        Probe(bars, scale.tested, PAPERS_HOLD, from_rest),
        Probe(bars, scale.settled, scale.settling, from_rest),
    )
    return Run(network_of(reading, model, scale), (phase,), probes, trace, seed)


def on_patches(scale: Scale, reading: Reading, model: str) -> Run:
    """A run on patches of photographs, which takes fewer neurons, tested with settled rates."""
    shown = Patches(min(PATCH, scale.p))
    phase = Phase(shown, max(1, scale.side_steps // reading.hold), reading.hold, 1, reading.from_rest)
    probe = Probe(shown, scale.settled, scale.settling, reading.from_rest)
    return Run(reading.network(model, min(scale.n, PATCH_NEURONS), shown.m), (phase,), (probe,), ())


def over_training(scale: Scale, reading: Reading, model: str, seed: int) -> Run:
    """The same, with snapshots during training and traces of the activity."""
    return on_crossbars(scale, reading, model, seed, scale.snapshots, ("active", "y"))


def variant(reading: Reading, name: str, value: Any) -> Reading:
    return reading._replace(**{name: value})


def run_of(reading: Reading, model: str, scale: Scale, seed: int = 0) -> Run:
    """Figure 1's run if a reading there agrees on the model; otherwise one with snapshots at start and end only."""
    if any(same_for(model, reading, other) for other in readings(scale).values()):
        return over_training(scale, reading, model, seed)
    if reading.hold < _PAPER.hold:
        scale = scale._replace(steps=scale.short_hold_steps)
    return on_crossbars(scale, reading, model, seed)


def in_succession(
    scale: Scale, reading: Reading, model: str, shown: Sequence[Stimulus], seed: int = 0, snapshots: int = 3
) -> Run:
    """A run on several sets in succession, tested on all of them with settled rates."""
    hold, from_rest = reading.hold, reading.from_rest
    samples = max(1, scale.steps_per_phase // hold)
    phases = tuple(Phase(stimulus, samples, hold, snapshots, from_rest) for stimulus in shown)
    probes = tuple(Probe(stimulus, scale.tested_after, scale.settling, from_rest) for stimulus in shown)
    return Run(network_of(reading, model, scale), phases, probes, (), seed)


def three_models(scale: Scale) -> dict[tuple, Run]:
    """The runs of figure 1, by reading, model and seed."""
    return {
        (name, model, seed): over_training(scale, reading, model, seed)
        for name, reading in readings(scale).items()
        for model in network.MODELS
        for seed in seeds(scale, name)
    }


def three_sets(scale: Scale, reading: Reading, model: str, seed: int = 0) -> Run:
    """A run of figure 3; runs that the figure draws have more snapshots per set."""
    is_drawn = any(same_for(model, reading, READINGS[name]) for name in WHOLE)
    return in_succession(scale, reading, model, sets(scale), seed, snapshots=3 if is_drawn else 1)
