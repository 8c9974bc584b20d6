"""Figures C1 to C4: the asynchronous network over thresholds, and over refractory periods, at three holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynchebb import figures
from asynchebb.experiments.claims import Claim, Numbers, Part
from asynchebb.experiments.fig2 import HOLDS, REFRACTORY, THRESHOLDS, run_of, variant
from asynchebb.experiments.readings import PRESET, READINGS, SETTLED, sets
from asynchebb.experiments.results import Key, Results, fields
from asynchebb.experiments.scale import Scale
from asynchebb.simulate import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Thresholds and refractory periods"
VARIED = {"r_b": THRESHOLDS, "r_r": REFRACTORY}


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (name, value, hold): run_of(
            variant(variant(READINGS[PRESET], "hold", hold), name, value), "asynchronous", scale, 0
        )
        for name, values in VARIED.items()
        for value in values
        for hold in HOLDS
    }


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    measures: dict[str, list[float]] = {}
    for name, value, hold in results:
        kept, at = results[name, value, hold], f"{name}_{value:g}_{hold}".replace(".", "")
        measures |= {f"{what}_{at}": [share] for what, share in fields(kept, bars).items()}
        measures[f"active_{at}"] = [float(kept["active_neurons"][-1, SETTLED])]
    return {PRESET: measures}


CLAIMS = (
    Claim(
        "C",
        "Fig. C1–C4",
        "Without a refractory period the asynchronous network is winner-take-all: its fields are the crosses, as the "
        "continuous network's are, and fewer neurons answer to a stimulus.",
        "without a refractory period it learns a winner-take-all representation like the continuous model's",
        {
            "bars_r_r_0_500": "share of the 100 most active fields that are bars, r_r = 0, hold 500",
            "crosses_r_r_0_500": "share that are crosses, r_r = 0, hold 500",
            "bars_r_r_100_500": "share that are bars, r_r = 100, hold 500",
            "crosses_r_r_100_500": "share that are crosses, r_r = 100, hold 500",
            "active_r_r_0_500": "active neurons a step, r_r = 0",
            "active_r_r_100_500": "active neurons a step, r_r = 100",
        },
        (
            Part("more than half of the fields are crosses at r_r = 0", lambda v: v.crosses_r_r_0_500 > 0.5),
            Part("four crosses to a bar at r_r = 0", lambda v: v.crosses_r_r_0_500 >= max(0.01, 4 * v.bars_r_r_0_500)),
            Part(
                "four bars to a cross at r_r = 100",
                lambda v: v.bars_r_r_100_500 >= max(0.01, 4 * v.crosses_r_r_100_500),
            ),
            Part("fewer neurons are active at r_r = 0", lambda v: v.active_r_r_0_500 < v.active_r_r_100_500),
        ),
        "at r_r = 0 {crosses_r_r_0_500} of the fields are crosses and {bars_r_r_0_500} bars, at r_r = 100 "
        "{crosses_r_r_100_500} and {bars_r_r_100_500}; {active_r_r_0_500} and {active_r_r_100_500} neurons are active "
        "at a step.",
    ),
)

FIGURES = {
    "figC1": ("r_b", "bursting thresholds", "fields"),
    "figC2": ("r_b", "bursting thresholds", "activity"),
    "figC3": ("r_r", "refractory periods", "fields"),
    "figC4": ("r_r", "refractory periods", "activity"),
}


def captions(scale: Scale) -> dict[str, str]:
    shows = {
        "fields": "Receptive fields of the 100 most active neurons",
        "activity": "Mean rates by rank, as a share of the largest, tested frozen,",
    }
    return {
        figure: f"Reading: {PRESET}. {shows[kind]} of the asynchronous network over {says} (columns), at three holds "
        "(rows)."
        for figure, (_, says, kind) in FIGURES.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    drawn = {}
    for figure, (name, _, kind) in FIGURES.items():
        grid = [[results[name, value, hold] for value in VARIED[name]] for hold in HOLDS]
        rows = [f"hold {hold}" for hold in HOLDS]
        columns = [f"${name}$ = {value:g}" for value in VARIED[name]]
        colours = [figures.COLOURS["asynchronous"]] * len(columns)
        if kind == "fields":
            drawn[figure] = figures.grid_of_fields(grid, rows, columns)
        else:
            drawn[figure] = figures.grid_of_activity(grid, rows, columns, colours)
    return drawn
