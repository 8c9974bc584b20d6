"""Beyond the paper: natural images. Do oriented, localised fields emerge, as in simple cells?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb.drawing import figures
from asynchebb.network import MODELS
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.experiments import gabor
from asynchebb.reproduction.readings import NOTEBOOK, PATCH, PATCH_NEURONS, PRESET, READINGS, WHOLE, on_patches
from asynchebb.reproduction.results import Key, Results
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Natural image patches"
DRAWN = {"patches": PRESET, "patches-notebook": NOTEBOOK}


def runs(scale: Scale) -> dict[Key, Run]:
    return {(name, model): on_patches(scale, READINGS[name], model) for name in WHOLE for model in MODELS}


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list]] = {name: {} for name in WHOLE}
    for name, model in results:
        kept, measures = results[name, model], numbers[name]
        for when, snapshot in (("", -1), ("untrained_", 0)):
            if when and model != "asynchronous":
                continue  # all start from the same weights
            for measured, value in gabor.oriented(kept, snapshot).items():
                measures[f"{model}_{when}{measured}"] = [value]
        measures[f"{model}_error"] = [float(kept["error_last"][-1, 0])]
    return numbers


CLAIMS = (
    Claim(
        "N",
        "ours",
        "Shown patches of photographs, the asynchronous network learns oriented, localised fields.",
        "not in the paper; found in Hebbian/anti-Hebbian networks by Falconbridge et al. (2006)",
        {
            "asynchronous_good": "share of the 100 most active fields that are Gabor functions (R² > 0.5)",
            "asynchronous_untrained_good": "share of Gabor functions before training",
            "asynchronous_width": "share of the patch's side taken up by the width of their envelope (median)",
            "asynchronous_orientations": f"orientations found, of {gabor.BINS}",
            "discrete_good": "share of Gabor functions, discrete",
            "continuous_good": "share of Gabor functions, continuous",
        },
        (
            Part("more than half of the fields are Gabor functions", lambda v: v.asynchronous_good > 0.5),
            Part(
                "fewer than a tenth are before training", lambda v: v.asynchronous_untrained_good < 0.1, is_given=True
            ),
            Part("they are localised: at most a quarter of the patch wide", lambda v: v.asynchronous_width <= 0.25),
            Part("all eight orientations occur", lambda v: v.asynchronous_orientations == gabor.BINS),
        ),
        "a Gabor function explains more than half of the variance of {asynchronous_good} of the asynchronous network's "
        "fields (before training {asynchronous_untrained_good}), {discrete_good} of the discrete and {continuous_good} "
        "of the continuous network's; the asynchronous network's are {asynchronous_width} of the patch wide (median).",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        figure: f"Reading: {reading}; {min(scale.n, PATCH_NEURONS)} neurons, whitened patches of {min(PATCH, scale.p)} "
        "pixels per side in an ON and an OFF channel. (A–C) Fields (ON minus OFF) of the 100 most active neurons. (D) "
        "Share of each field's variance that a Gabor function explains; grey: before training. (E) Orientations of the "
        "fields for which it explains more than half. Not in the paper."
        for figure, reading in DRAWN.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    return {name: _draw(results, numbers[reading], reading) for name, reading in DRAWN.items()}


@figures.styled
def _draw(results: Results, measures: Any, reading: str) -> Figure:
    figure, axes = figures.lettered(["ABC", "DE"], (7.2, 4.8), [1.6, 1])
    bins = [*np.linspace(0, 1, 21)]
    untrained = np.clip(measures["asynchronous_untrained_explained"][0], 0, 1)
    axes["D"].hist(untrained, bins, color="lightgray", label="untrained")
    for letter, model in zip("ABC", MODELS, strict=True):
        colour = figures.COLOURS[model]
        figures.fields_at_end(axes[letter], results[reading, model])
        axes[letter].set_title(model, color=colour)
        explained = np.clip(measures[f"{model}_explained"][0], 0, 1)
        axes["D"].hist(explained, bins, histtype="step", color=colour, label=model)
        counted, edges = np.histogram(measures[f"{model}_angles"][0], gabor.BINS, (0, np.pi))
        axes["E"].stairs(counted, np.degrees(edges), color=colour)
    axes["D"].set(xlabel="variance explained by a Gabor function", ylabel="fields")
    axes["D"].legend(frameon=False, fontsize=6)
    axes["E"].set(xlabel="orientation (degrees)", ylabel="fields", xticks=range(0, 181, 45))
    return figure
