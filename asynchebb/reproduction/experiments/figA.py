"""Figures A1 and A2: the continuous network and the discrete one with each rule, at three holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import HOLDS, NOTEBOOK, PRESET, READINGS, WHOLE, run_of, sets
from asynchebb.reproduction.results import Key, Results, factors_found
from asynchebb.reproduction.scale import Scale
from asynchebb.rules import Falconbridge, Foldiak, Hebbian, Oja, Pehlevan
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Other rules and shorter holds"
RULES = {type(rule).__name__: rule for rule in (Hebbian(), Oja(0.01), Foldiak(), Falconbridge(), Pehlevan())}
COLUMNS = ("continuous", *RULES)


def runs(scale: Scale) -> dict[Key, Run]:
    found: dict[Key, Run] = {}
    for reading in WHOLE:
        for hold in HOLDS:
            held = READINGS[reading]._replace(hold=hold)
            found[reading, "continuous", hold] = run_of(held, "continuous", scale, 0)
            for name, rule in RULES.items():
                found[reading, name, hold] = run_of(held._replace(discrete=rule), "discrete", scale, 0)
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    numbers: dict[str, dict[str, list[float]]] = {reading: {} for reading in WHOLE}
    for reading, column, hold in results:
        numbers[reading][f"{column}_factors_{hold}"] = [factors_found(results[reading, column, hold], bars)]
    return numbers


def _finds_half(rule: str) -> Part:
    return Part(f"{rule} finds at least half of the bars at hold 500", lambda v: v[f"{rule}_factors_500"] >= 0.5)


CLAIMS = (
    Claim(
        "A",
        "Fig. A1, A2",
        "With time to settle (hold 500), the discrete network learns the bars under each rule; with a hold of only 50 "
        "steps, it learns nothing under the Hebbian rule.",
        "shows what the rules learn; in the main text, the Hebbian one stops learning below hold 150",
        {
            f"{column}_factors_{hold}": f"share of bars found, {column}, hold {hold}"
            for column in COLUMNS
            for hold in HOLDS
        },
        (
            *(_finds_half(rule) for rule in RULES if rule != "Oja"),  # not one of the appendix's
            Part("Hebbian finds less than a quarter of them at hold 50", lambda v: v.Hebbian_factors_50 < 0.25),
        ),
        "at hold 500, the shares of bars found are {Hebbian_factors_500} (Hebbian), {Foldiak_factors_500} (Földiák), "
        "{Falconbridge_factors_500} (Falconbridge) and {Pehlevan_factors_500} (Pehlevan); at hold 50, the Hebbian rule "
        "finds {Hebbian_factors_50}.",
    ),
)


FIGURES = {
    f"figA{number}{suffix}": (reading, kind)
    for reading, suffix in ((PRESET, ""), (NOTEBOOK, "-notebook"))
    for number, kind in enumerate(("fields", "activity"), 1)
}


def captions(scale: Scale) -> dict[str, str]:
    shows = {
        "fields": "Receptive fields of the 100 most active neurons",
        "activity": "Mean rates by rank, relative to the largest, in the test of the frozen network,",
    }
    return {
        figure: f"Reading: {reading}. {shows[kind]} for the continuous network and the discrete one with each rule "
        f"(columns), at three holds (rows). Oja's rule is not one of the appendix's.{scale.short_holds}"
        for figure, (reading, kind) in FIGURES.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    titles = [column if column == "continuous" else f"discrete,\n{column}" for column in COLUMNS]
    colours = [figures.COLOURS["continuous" if column == "continuous" else "discrete"] for column in COLUMNS]
    rows = [f"hold {hold}" for hold in HOLDS]
    drawn = {}
    for figure, (reading, kind) in FIGURES.items():
        grid = [[results[reading, column, hold] for column in COLUMNS] for hold in HOLDS]
        if kind == "fields":
            drawn[figure] = figures.grid_of_fields(grid, rows, titles)
        else:
            drawn[figure] = figures.grid_of_activity(grid, rows, titles, colours)
    return drawn
