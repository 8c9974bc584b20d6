"""Beyond the paper: how retention depends on the number of neurons and the threshold. Where is the limit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import PRESET, READINGS, sets, three_sets
from asynchebb.reproduction.results import Key, Results, after_sets
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Capacity"
THRESHOLDS = (0.75, 1, 2)  # the first is the presets'
SHARES = (20, 10, 5, 1)  # a twentieth, a tenth, a fifth of the scale's neurons, and all of them


def neurons(scale: Scale) -> list[int]:
    return [max(2, scale.n // share) for share in SHARES]


def runs(scale: Scale) -> dict[Key, Run]:
    short = scale._replace(steps_per_phase=scale.side_steps)
    return {
        (n, r_b): three_sets(short._replace(n=n), READINGS[PRESET]._replace(r_b=r_b), "asynchronous")
        for n in neurons(scale)
        for r_b in THRESHOLDS
    }


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list] = {name: [] for name in ("worst", "rise", "bars_kept")}
    judged: dict[str, list[float]] = {}
    for n, r_b in results:
        of = after_sets(results[n, r_b], sets(scale))
        untrained, learnt, end = (
            np.array([of[f"{when}_{number}"] for number in (1, 2, 3)]) for when in ("untrained", "learnt", "end")
        )
        measures["worst"].append(float((end / untrained).max()))
        measures["rise"].append(float((end - learnt)[:-1].max()))
        measures["bars_kept"].append(of["bars_kept"])
        if r_b == READINGS[PRESET].r_b:
            at = SHARES[neurons(scale).index(n)]
            judged |= {f"worst_{at}": measures["worst"][-1:], f"rise_{at}": measures["rise"][-1:]}
            judged[f"learnt_{at}"] = [float((learnt / untrained).max())]
    return {PRESET: {**measures, **judged}}


CLAIMS = (
    Claim(
        "K",
        "ours",
        "Sets are retained as long as there are enough neurons; with fewer neurons than factors, they are forgotten.",
        "forgetting is prevented as long as the network's capacity suffices; not shown",
        {
            "worst_1": "share of the untrained error left at the end on the worst set, all neurons",
            "worst_20": "share of the untrained error left at the end on the worst set, a twentieth of the neurons",
            "learnt_20": "share left at the end of a set's own phase, for the worst set, a twentieth of the neurons",
            "rise_1": "rise of the error on set 1 or 2 since the end of its own phase, all neurons",
            "rise_20": "rise of the error on set 1 or 2, a twentieth of the neurons",
        },
        (
            Part("with all neurons, at most half of the error is left on each set", lambda v: v.worst_1 <= 0.5),
            Part("with a twentieth, fewer than the factors, more is left on the worst set", lambda v: v.worst_20 > 0.5),
            Part("because what was learned is lost: an error rises by more than 0.1", lambda v: v.rise_20 > 0.1),
        ),
        "with all neurons, {worst_1} of the untrained error is left on the worst set; with a twentieth of them, "
        "{worst_20}. The error on set 1 or 2 rises by up to {rise_1} with all neurons and by up to {rise_20} with a "
        "twentieth of them, where at most {learnt_20} of the untrained error is left at the end of a set's own phase.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "capacity": f"Reading: {PRESET}, with varied thresholds (columns) and numbers of neurons (rows), "
        "after three sets in succession, which have 72 factors in total at 14 × 14 pixels. (A) Share of the untrained "
        "network's error left on the worst set at the end. (B) Rise of the error on set 1 or 2, whichever is larger, "
        "since the end of its own phase. (C) Share of the bars found in phase 1 that are still shown (0 if none "
        "was found). One seed. Not in the paper; sets 2 and 3 are our choice."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABC"], (7.2, 2.6))
    says = {"worst": "error left", "rise": "rise of error", "bars_kept": "bars retained"}
    for letter, (name, title) in zip("ABC", says.items(), strict=True):
        table = np.reshape(numbers[PRESET][name], (len(SHARES), len(THRESHOLDS)))
        figures.heat_map(
            axes[letter], table, neurons(scale), THRESHOLDS, better="high" if name == "bars_kept" else "low"
        )
        axes[letter].set(xlabel="threshold $r_b$", ylabel="neurons")
        axes[letter].set_title(title)
    return {"capacity": figure}
