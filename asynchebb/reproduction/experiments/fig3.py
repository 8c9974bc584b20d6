"""Figure 3: three sets of stimuli in succession. How much of the first ones is retained?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import NOTEBOOK, PRESET, readings, seeds, set_names, sets, three_sets
from asynchebb.reproduction.results import (
    BARS_KEPT,
    LEARNT_AND_KEPT,
    Key,
    Results,
    after_sets,
    are_kept,
    are_learnt,
    ends,
)
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Three sets in succession"
DRAWN = {"fig3": PRESET, "fig3-notebook": NOTEBOOK}
COMPARED = ("asynchronous", "discrete")


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (name, model, seed): three_sets(scale, reading, model, seed)
        for name, reading in readings(scale).items()
        for model in COMPARED
        for seed in seeds(scale, name)
    }


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list[float]]] = {}
    for name, model, seed in results:
        for measured, value in after_sets(results[name, model, seed], sets(scale)).items():
            numbers.setdefault(name, {}).setdefault(f"{model}_{measured}", []).append(value)
    return numbers


def _shows(model: str) -> dict[str, str]:
    return {f"{model}_{name}": says for name, says in LEARNT_AND_KEPT.items()}


CLAIMS = (
    Claim(
        "3a",
        "Fig. 3A",
        "After three sets in succession, the asynchronous network's error is low on all three.",
        "retains its fields, and with them a low error on all three sets",
        _shows("asynchronous"),
        are_kept("asynchronous"),
        "at the end of their own phases, the errors on the three sets are {asynchronous_learnt_1}, "
        "{asynchronous_learnt_2} and {asynchronous_learnt_3}; at the end of training, {asynchronous_end_1}, "
        "{asynchronous_end_2} and {asynchronous_end_3} (untrained {asynchronous_untrained_1}, "
        "{asynchronous_untrained_2} and {asynchronous_untrained_3}). For a search for settings that retain all three, "
        "see “One setting for all figures?”.",
    ),
    Claim(
        "3b",
        "Fig. 3B",
        "The discrete network's error rises again on sets 1 and 2.",
        "adapts all its fields to the new set: high errors on sets 1 and 2 at the end",
        _shows("discrete"),
        (
            are_learnt("discrete"),
            Part("the error on set 1 rises by more than 0.1", lambda v: v.discrete_end_1 > v.discrete_learnt_1 + 0.1),
            Part("the error on set 2 rises by more than 0.1", lambda v: v.discrete_end_2 > v.discrete_learnt_2 + 0.1),
        ),
        "at the end of their own phases, the errors on the three sets are {discrete_learnt_1}, {discrete_learnt_2} and "
        "{discrete_learnt_3} (untrained {discrete_untrained_1}, {discrete_untrained_2} and {discrete_untrained_3}); at "
        "the end of training, {discrete_end_1}, {discrete_end_2} and {discrete_end_3}.",
    ),
    Claim(
        "3c",
        "Fig. 3 insets, F3, F4",
        "In the asynchronous network, new sets are encoded by unstructured and redundant fields, not by tuned ones.",
        "unstructured and redundant fields are primarily used to encode new data",
        {
            "asynchronous_bars_kept": "share of the bars found in phase 1 that are still shown at the end",
            "asynchronous_fields_kept": "share of the fields showing a bar after phase 1 that still show it",
            "asynchronous_took_up": "fields that show a factor of set 2 or 3 at the end",
            "asynchronous_taken_from_free": "share of them that were unstructured or redundant after phase 1",
        },
        (
            Part(BARS_KEPT, lambda v: v.asynchronous_bars_kept >= 0.9),
            Part(
                "more than half of the fields that show a new factor were unstructured or redundant",
                lambda v: v.asynchronous_taken_from_free > 0.5,
            ),
        ),
        "{asynchronous_bars_kept} of the bars found in the first phase are still shown at the end. Of the fields that "
        "came to show a factor of the new sets, {asynchronous_taken_from_free} had been unstructured or redundant.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        name: f"Reading: {reading}. Error at step 500 of a presentation on each of three sets shown in succession "
        "(dashed lines: change of set), for the asynchronous (A) and the discrete network (B), mean and standard "
        "deviation over seeds. Sets 2 and 3 are our choice, since the paper does not describe its own. Bottom: fields "
        "of the same 20 randomly chosen neurons after each phase (seed 0)."
        for name, reading in DRAWN.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    return {name: _draw(scale, results, reading) for name, reading in DRAWN.items()}


@figures.styled
def _draw(scale: Scale, results: Results, reading: str) -> Figure:
    figure, axes = figures.lettered(["AB", "xyzuvw"], (7.2, 3.9), [1.6, 1.0], letters="AB")
    chosen = np.random.default_rng(0).choice(scale.n, 20, replace=False)
    for letter, model, insets in (("A", "asynchronous", "xyz"), ("B", "discrete", "uvw")):
        of = [results[reading, model, seed] for seed in range(scale.seeds)]
        last = ends(of[0])
        figures.errors_on_sets(axes[letter], of, set_names(scale), "reconstruction error")
        axes[letter].set_title(model, color=figures.COLOURS[model])
        for inset, end, number in zip(insets, last, (1, 2, 3), strict=True):
            figures.mosaic(axes[inset], of[0]["W"][end][chosen], (scale.p, scale.p), np.arange(20.0)[::-1])
            axes[inset].set_title(f"after set {number}", fontsize=7)
    axes["A"].legend(edgecolor="white", framealpha=0.9, fontsize=6, loc="upper left", handlelength=1)
    return figure
