"""Figures A1 and A2: the continuous network, and the discrete one with each of its rules, at three holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynchebb import figures
from asynchebb.experiments.claims import Claim, Numbers, Part
from asynchebb.experiments.fig2 import HOLDS, run_of
from asynchebb.experiments.readings import PRESET, READINGS, on_crossbars, sets
from asynchebb.experiments.results import Key, Results, factors_found
from asynchebb.experiments.scale import Scale
from asynchebb.rules import Falconbridge, Foldiak, Pehlevan
from asynchebb.simulate import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Other rules, and shorter holds"
RULES = (Foldiak(), Falconbridge(), Pehlevan())  # beside Hebbian, the rule of the discrete preset
COLUMNS = ("continuous", "Hebbian", *(type(rule).__name__ for rule in RULES))


def runs(scale: Scale) -> dict[Key, Run]:
    found: dict[Key, Run] = {}
    for hold in HOLDS:
        reading = READINGS[PRESET]._replace(hold=hold)
        found["continuous", hold] = run_of(reading, "continuous", scale, 0)
        found["Hebbian", hold] = run_of(reading, "discrete", scale, 0)
        for rule in RULES:
            network = reading.network("discrete", scale, rule=rule)
            found[type(rule).__name__, hold] = on_crossbars(scale, network, hold)
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    measures: dict[str, list[float]] = {}
    for column, hold in results:
        kept = results[column, hold]
        measures[f"{column}_factors_{hold}"] = [factors_found(kept, bars)]
    return {PRESET: measures}


def _finds_half(rule: str) -> Part:
    return Part(f"{rule} finds at least half of the bars at hold 500", lambda v: v[f"{rule}_factors_500"] >= 0.5)


CLAIMS = (
    Claim(
        "A",
        "Fig. A1, A2",
        "Settled (hold 500), the discrete network learns the bars under each rule; presented for 50 steps only, under "
        "the Hebbian rule it learns nothing.",
        "shows what the rules learn; in the main text, the Hebbian one stops learning below hold 150",
        {
            f"{column}_factors_{hold}": f"share of bars found, {column}, hold {hold}"
            for column in COLUMNS
            for hold in HOLDS
        },
        (
            *(_finds_half(rule) for rule in COLUMNS[1:]),
            Part("Hebbian finds less than a quarter of them at hold 50", lambda v: v.Hebbian_factors_50 < 0.25),
        ),
        "at hold 500 the shares of bars found are {Hebbian_factors_500} (Hebbian), {Foldiak_factors_500} (Földiák), "
        "{Falconbridge_factors_500} (Falconbridge) and {Pehlevan_factors_500} (Pehlevan); at hold 50 the Hebbian rule "
        "finds {Hebbian_factors_50}.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    what = "for the continuous network and the discrete one with each rule (columns), at three holds (rows)"
    return {
        "figA1": f"Reading: {PRESET}. Receptive fields of the 100 most active neurons {what}.",
        "figA2": f"Reading: {PRESET}. Mean rates by rank, as a share of the largest, {what}; tested frozen.",
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    titles = {column: column if column == "continuous" else f"discrete,\n{column}" for column in COLUMNS}
    grid = [[results[column, hold] for column in COLUMNS] for hold in HOLDS]
    rows = [f"hold {hold}" for hold in HOLDS]
    colours = [figures.COLOURS["continuous" if column == "continuous" else "discrete"] for column in COLUMNS]
    return {
        "figA1": figures.grid_of_fields(grid, rows, [*titles.values()]),
        "figA2": figures.grid_of_activity(grid, rows, [*titles.values()], colours),
    }
