"""Beyond the paper: retention over the number of neurons and the threshold. Where does capacity end?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asynchebb import figures
from asynchebb.experiments import fig3
from asynchebb.experiments.claims import Claim, Numbers, Part
from asynchebb.experiments.readings import READINGS, RETAINING, sets
from asynchebb.experiments.results import Key, Results
from asynchebb.experiments.scale import Scale
from asynchebb.simulate import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Capacity"
THRESHOLDS = (1, 1.5, 2, 3)
SHARES = (20, 10, 5, 1)  # neurons: a twentieth, a tenth, a fifth of the scale's, all of them


def neurons(scale: Scale) -> list[int]:
    return [max(2, scale.n // share) for share in SHARES]


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (n, r_b): fig3.run_of(READINGS[RETAINING]._replace(r_b=r_b), "asynchronous", scale._replace(n=n), 0)
        for n in neurons(scale)
        for r_b in THRESHOLDS
    }


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list] = {name: [] for name in ("worst", "rise", "bars_kept")}
    for n, r_b in results:
        kept = results[n, r_b]
        error, last = np.asarray(kept["error_last"]), fig3.ends(kept)
        own = np.array([error[end, number] for number, end in enumerate(last)])
        measures["worst"].append(float(error[-1].max()))
        measures["rise"].append(float((error[-1] - own)[:-1].max()))
        fate = fig3.fate_of_fields(kept["W"][last[0]], kept["W"][-1], sets(scale))
        measures["bars_kept"].append(fate["bars_kept"])
    at = len(THRESHOLDS) * np.arange(len(SHARES)) + THRESHOLDS.index(2)
    judged = {"worst_small": [measures["worst"][at[0]]], "worst_large": [measures["worst"][at[-1]]]}
    return {RETAINING: {**measures, **judged}}


CLAIMS = (
    Claim(
        "K",
        "ours",
        "Sets are kept as long as there are enough neurons, and are not if there are fewer neurons than factors.",
        "“as long as the network capacity is sufficient”, not shown",
        {
            "worst_small": "largest error on the three sets at the end, fewest neurons, r_b = 2",
            "worst_large": "the same, most neurons, r_b = 2",
        },
        (
            Part(
                "with a twentieth of the neurons the largest error is at least 0.1 higher",
                lambda v: v.worst_small >= v.worst_large + 0.1,
            ),
        ),
        "The largest error on the three sets at the end is {worst_small} with the fewest and {worst_large} with "
        "the most "
        "neurons: what limits it is not the number of neurons alone.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "capacity": f"Reading: {RETAINING}, with other thresholds (columns) and numbers of neurons (rows), "
        "after three sets "
        "in succession, which have 72 factors at 14 × 14 pixels. (A) The largest error on the three sets at the end. "
        "(B) By how much the error on set 1 or 2 has risen since the end of its own phase. (C) Share of the "
        "bars found in "
        "phase 1 that are still shown. One seed. Not in the paper."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABC"], (7.2, 2.6))
    says = {"worst": "error at end", "rise": "rise of error", "bars_kept": "bars kept"}
    for letter, (name, title) in zip("ABC", says.items(), strict=True):
        table = np.reshape(numbers[RETAINING][name], (len(SHARES), len(THRESHOLDS)))
        figures.heat_map(
            axes[letter], table, neurons(scale), THRESHOLDS, better="high" if name == "bars_kept" else "low"
        )
        axes[letter].set(xlabel="threshold $r_b$", ylabel="neurons")
        axes[letter].set_title(title)
    return {"capacity": figure}
