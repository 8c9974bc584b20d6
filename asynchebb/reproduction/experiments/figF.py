"""Figures F1 to F4: how fields change over training, on crossed bars and on three sets in succession."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asynchebb import metrics
from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import NOTEBOOK, PRESET, READINGS, WHOLE, over_training, set_names, three_sets
from asynchebb.reproduction.results import Kept, Key, Results, most_active
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Fields over time"
NEURONS = 12
FIGURES = {
    f"figF{number}{suffix}": (model, what, reading)
    for reading, suffix in ((PRESET, ""), (NOTEBOOK, "-notebook"))
    for number, (model, what) in enumerate(
        (("discrete", "crossbars"), ("continuous", "crossbars"), ("asynchronous", "mixed"), ("discrete", "mixed")), 1
    )
}


def runs(scale: Scale) -> dict[Key, Run]:
    found: dict[Key, Run] = {
        ("crossbars", reading, model, seed): over_training(scale, READINGS[reading], model, seed)
        for reading in WHOLE
        for model in ("discrete", "continuous")
        for seed in range(scale.seeds)
    }
    for model, what, reading in FIGURES.values():
        if what == "mixed":
            found["mixed", reading, model, 0] = three_sets(scale, READINGS[reading], model)
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list[float]]] = {reading: {} for reading in WHOLE}
    for what, reading, model, seed in results:
        if what == "crossbars":
            steadiness = _steadiness(results[what, reading, model, seed])
            numbers[reading].setdefault(f"{model}_steadiness", []).append(steadiness)
    return numbers


def _steadiness(kept: Kept) -> float:
    """Mean cosine between an active neuron's field and itself one snapshot later, in the second half of training."""
    shown = most_active(kept)
    later = range(len(kept["step"]) // 2, len(kept["step"]) - 1)
    W = {k: kept["W"][k][shown] for k in (*later, len(kept["step"]) - 1)}
    return float(np.mean([metrics.weight_similarity(W[k], W[k + 1]).mean() for k in later]))


CLAIMS = (
    Claim(
        "F",
        "Fig. F1, F2",
        "The continuous network's neurons drift: their fields keep changing. The discrete network's do not.",
        "a continuous drift of selectivity, which does not appear in the discrete model",
        {
            "continuous_steadiness": "mean cosine between a field and itself a tenth of training later, continuous",
            "discrete_steadiness": "the same, discrete",
        },
        (
            Part(
                "the discrete network's fields are at least 0.05 more alike from one snapshot to the next",
                lambda v: v.discrete_steadiness >= v.continuous_steadiness + 0.05,
            ),
            Part("the discrete network's fields are stable: at least 0.9", lambda v: v.discrete_steadiness >= 0.9),
        ),
        "from one tenth of training to the next, the cosine between a field and itself is {continuous_steadiness} in "
        "the continuous and {discrete_steadiness} in the discrete network.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    of = {"crossbars": "on crossed bars", "mixed": "on three sets in succession (red lines: change of set; our sets)"}
    return {
        name: f"Reading: {reading}. Fields of {NEURONS} neurons (rows) of the {model} network {of[what]}, over "
        "training (columns: Euler steps in millions). The neurons are chosen at random from the 100 most active on "
        "the first set at the end of training."
        for name, (model, what, reading) in FIGURES.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    drawn = {}
    for name, (model, what, reading) in FIGURES.items():
        kept = results[what, reading, model, 0]
        neurons = np.random.default_rng(0).permutation(most_active(kept))[:NEURONS]
        drawn[name] = figures.evolution(kept, neurons, set_names(scale)[: 1 if what == "crossbars" else 3])
    return drawn
