"""Figures C1 to C4: the asynchronous network for several thresholds and refractory periods, at three holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import (
    HOLDS,
    NOTEBOOK,
    PRESET,
    READINGS,
    REFRACTORY,
    SETTLED,
    THRESHOLDS,
    WHOLE,
    run_of,
    sets,
    variant,
)
from asynchebb.reproduction.results import Key, Results, fields
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Thresholds and refractory periods"
VARIED = {"r_b": THRESHOLDS, "r_r": REFRACTORY}


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (reading, name, value, hold): run_of(
            variant(variant(READINGS[reading], "hold", hold), name, value), "asynchronous", scale, 0
        )
        for reading in WHOLE
        for name, values in VARIED.items()
        for value in values
        for hold in HOLDS
    }


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    numbers: dict[str, dict[str, list[float]]] = {reading: {} for reading in WHOLE}
    for reading, name, value, hold in results:
        kept, at = results[reading, name, value, hold], f"{name}_{value:g}_{hold}".replace(".", "")
        numbers[reading] |= {f"{what}_{at}": [share] for what, share in fields(kept, bars).items()}
        numbers[reading][f"active_{at}"] = [float(kept["active_neurons"][-1, SETTLED])]
    return numbers


CLAIMS = (
    Claim(
        "C",
        "Fig. C1–C4",
        "Without a refractory period, the asynchronous network is winner-take-all: its fields are crosses, like the "
        "continuous network's, and fewer neurons respond to a stimulus.",
        "without a refractory period it learns a winner-take-all representation like the continuous model's",
        {
            "bars_r_r_0_500": "share of the 100 most active fields that are bars, r_r = 0, hold 500",
            "crosses_r_r_0_500": "share that are crosses, r_r = 0, hold 500",
            "bars_r_r_100_500": "share that are bars, r_r = 100, hold 500",
            "crosses_r_r_100_500": "share that are crosses, r_r = 100, hold 500",
            "active_r_r_0_500": "active neurons per step, r_r = 0",
            "active_r_r_100_500": "active neurons per step, r_r = 100",
        },
        (
            Part("more than half of the fields are crosses at r_r = 0", lambda v: v.crosses_r_r_0_500 > 0.5),
            Part(
                "at least four crosses per bar at r_r = 0",
                lambda v: v.crosses_r_r_0_500 >= max(0.01, 4 * v.bars_r_r_0_500),
            ),
            Part(
                "at least four bars per cross at r_r = 100",
                lambda v: v.bars_r_r_100_500 >= max(0.01, 4 * v.crosses_r_r_100_500),
            ),
            Part("fewer neurons are active at r_r = 0", lambda v: v.active_r_r_0_500 < v.active_r_r_100_500),
        ),
        "at r_r = 0, {crosses_r_r_0_500} of the fields are crosses and {bars_r_r_0_500} bars; at r_r = 100, "
        "{crosses_r_r_100_500} and {bars_r_r_100_500}. {active_r_r_0_500} and {active_r_r_100_500} neurons are active "
        "per step.",
    ),
)

FIGURES = {
    f"figC{number}{suffix}": (reading, name, kind)
    for reading, suffix in ((PRESET, ""), (NOTEBOOK, "-notebook"))
    for number, (name, kind) in enumerate(
        (("r_b", "fields"), ("r_b", "activity"), ("r_r", "fields"), ("r_r", "activity")), 1
    )
}
VARIED_IN_WORDS = {"r_b": "bursting thresholds", "r_r": "refractory periods"}


def captions(scale: Scale) -> dict[str, str]:
    shows = {
        "fields": "Receptive fields of the 100 most active neurons",
        "activity": "Mean rates by rank, relative to the largest, in the test of the frozen network,",
    }
    return {
        figure: f"Reading: {reading}. {shows[kind]} for the asynchronous network with several {VARIED_IN_WORDS[name]} "
        f"(columns), at three holds (rows).{scale.short_holds}"
        for figure, (reading, name, kind) in FIGURES.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    drawn = {}
    for figure, (reading, name, kind) in FIGURES.items():
        grid = [[results[reading, name, value, hold] for value in VARIED[name]] for hold in HOLDS]
        rows = [f"hold {hold}" for hold in HOLDS]
        columns = [f"${name}$ = {value:g}" for value in VARIED[name]]
        colours = [figures.COLOURS["asynchronous"]] * len(columns)
        if kind == "fields":
            drawn[figure] = figures.grid_of_fields(grid, rows, columns)
        else:
            drawn[figure] = figures.grid_of_activity(grid, rows, columns, colours)
    return drawn
