"""Natural images shown to spiking neurons: do oriented, localised fields emerge?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from asynchebb.drawing import figures
from asynchebb.dynamics import HomeostaticIntegrateAndFire
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.experiments import gabor
from asynchebb.reproduction.experiments.spiking.settings import SPIKING
from asynchebb.reproduction.readings import NOTEBOOK, PATCH, PATCH_NEURONS, READINGS, on_patches
from asynchebb.reproduction.results import Key, Results
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLES = {"patches_spiking": "spiking", "patches_homeostatic": "homeostatic", "patches_rate": "rate network"}


def runs(scale: Scale) -> dict[Key, Run]:
    spiking = on_patches(scale, SPIKING[NOTEBOOK], "asynchronous")
    homeostatic = replace(spiking.network, dynamics=HomeostaticIntegrateAndFire())
    return {
        ("patches_spiking",): spiking,
        ("patches_homeostatic",): replace(spiking, network=homeostatic),
        ("patches_rate",): on_patches(scale, READINGS[NOTEBOOK], "asynchronous"),
    }


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list] = {}
    for (name,) in results:
        for measured, value in gabor.oriented(results[name,]).items():
            measures[f"{name}_{measured}"] = [value]
    untrained = gabor.oriented(results["patches_spiking",], 0)
    measures |= {f"patches_untrained_{name}": [untrained[name]] for name in ("good", "explained")}
    return {NOTEBOOK: measures}


CLAIMS = (
    Claim(
        "V14",
        "ours",
        "Shown patches of photographs, the spiking network learns oriented, localised fields.",
        "not in the paper; the spiking counterpart of N",
        {
            "patches_spiking_good": "share of the 100 most active fields that are Gabor functions (R² > 0.5), spiking",
            "patches_untrained_good": "share of Gabor functions before training",
            "patches_spiking_width": "share of the patch's side taken up by the width of their envelope (median)",
            "patches_spiking_orientations": f"orientations found, of {gabor.BINS}",
            "patches_homeostatic_good": "share of Gabor functions, homeostatic",
            "patches_rate_good": "share of Gabor functions, rate network",
        },
        (
            Part("more than half of the fields are Gabor functions", lambda v: v.patches_spiking_good > 0.5),
            Part("fewer than a tenth are before training", lambda v: v.patches_untrained_good < 0.1, is_given=True),
            Part("they are localised: at most a quarter of the patch wide", lambda v: v.patches_spiking_width <= 0.25),
            Part("all eight orientations occur", lambda v: v.patches_spiking_orientations == gabor.BINS),
        ),
        "a Gabor function explains more than half of the variance of {patches_spiking_good} of the spiking network's "
        "fields (before training {patches_untrained_good}), {patches_homeostatic_good} of the homeostatic one's and "
        "{patches_rate_good} of the rate network's; the spiking network's are {patches_spiking_width} of the patch "
        "wide (median).",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "spiking-patches": f"Natural images and spiking neurons: {min(scale.n, PATCH_NEURONS)} neurons, whitened "
        f"patches of {min(PATCH, scale.p)} pixels per side in an ON and an OFF channel. Fields (ON minus OFF) of the "
        "100 most active neurons of the spiking network (A), of the same with a homeostatic threshold (B) and of the "
        "notebook's rate network (C). (D) Share of each field's variance that a Gabor function explains; grey: "
        "before training."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABCD"], (7.2, 2.2))
    bins, measures = [*np.linspace(0, 1, 21)], numbers[NOTEBOOK]
    untrained: list = measures["patches_untrained_explained"][0]  # type: ignore[assignment]
    axes["D"].hist(np.clip(untrained, 0, 1), bins, color="lightgray")
    for letter, (name, title), colour in zip("ABC", TITLES.items(), ("tab:blue", "tab:green", "k"), strict=True):
        figures.fields_at_end(axes[letter], results[name,])
        axes[letter].set_title(title, color=colour)
        explained: list = measures[f"{name}_explained"][0]  # type: ignore[assignment]
        axes["D"].hist(np.clip(explained, 0, 1), bins, histtype="step", color=colour)
    axes["D"].set(xlabel="variance explained", ylabel="fields")
    return {"spiking-patches": figure}
