"""Is there one reading under which figures 1, 2 and 3 hold together? A map over threshold and refractory period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import figures, metrics
from asynchebb.dynamics import Potential, Projected
from asynchebb.experiments import fig1, fig2, fig3
from asynchebb.experiments.claims import Claim, Means, Numbers, Part
from asynchebb.experiments.readings import Reading, sets
from asynchebb.experiments.results import Key, Results, activity, fields
from asynchebb.experiments.scale import Scale
from asynchebb.simulate import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "One reading for all figures?"
REFRACTORY = (100, 500)
THRESHOLDS = (1, 1.5, 2)
DYNAMICS = {"Potential": Potential(), "Projected": Projected()}

# What must hold together: bars are learnt, most neurons match the discrete network's, all three sets are kept.
# (The last part of 2a is on the continuous network.)
PARTS = {claim.id: claim.parts for module in (fig1, fig2, fig3) for claim in module.CLAIMS}
TOGETHER = {"1a": PARTS["1a"], "2a": PARTS["2a"][:2], "3a": PARTS["3a"]}


def readings() -> dict[Key, Reading]:
    return {
        (dynamics, r_b, r_r): Reading(DYNAMICS[dynamics], r_b=r_b, r_r=r_r)
        for dynamics in DYNAMICS
        for r_b in THRESHOLDS
        for r_r in REFRACTORY
    }


def runs(scale: Scale) -> dict[Key, Run]:
    found: dict[Key, Run] = {key: fig3.run_of(reading, "asynchronous", scale, 0) for key, reading in readings().items()}
    found |= {
        (name, "discrete"): fig3.run_of(Reading(dynamics), "discrete", scale, 0) for name, dynamics in DYNAMICS.items()
    }
    return found


def judged(kept: Any, shown: tuple[Any, ...], discrete: Any = None) -> tuple[dict[str, float], dict[str, list[bool]]]:
    """What is measured of a run on the three sets, and which parts of the claims hold: of 1a after the first set, of 3a
    at the end, and of 2a if there is a discrete network to compare with."""
    after = fig3.ends(kept)[0]
    found = fields(kept, shown[0], after) | fig3.measure_one(kept, shown)
    measures = {f"asynchronous_{name}": value for name, value in found.items()}
    if discrete is not None:
        settled = fig3.ends(discrete)[0]
        alike = metrics.weight_similarity(kept["W"][after], discrete["W"][settled])
        measures["asynchronous_same_W"] = float(np.mean(alike > fig2.SAME))
        measures["asynchronous_same_active_W"] = float(np.mean(alike[activity(discrete, settled) > 0] > fig2.SAME))
    claims = {name: parts for name, parts in TOGETHER.items() if name != "2a" or discrete is not None}
    return measures, {name: [bool(part.holds(Means(measures))) for part in parts] for name, parts in claims.items()}


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list[float]]] = {name: {} for name in DYNAMICS}
    for dynamics, r_b, r_r in readings():
        measures, held = judged(results[dynamics, r_b, r_r], sets(scale), results[dynamics, "discrete"])
        for name, value in (
            ("bars", measures["asynchronous_bars"]),
            ("factors", measures["asynchronous_factors"]),
            ("worst", max(measures[f"asynchronous_end_{number}"] for number in (1, 2, 3))),
            *((name, float(np.mean(parts))) for name, parts in held.items()),
            ("together", float(np.mean([part for parts in held.values() for part in parts]))),
        ):
            numbers[dynamics].setdefault(name, []).append(value)
    parts = {name: len(of) for name, of in TOGETHER.items()}
    for of in numbers.values():
        for name, claims in (("best", [*parts]), ("best_1a_2a", ["1a", "2a"]), ("best_1a_3a", ["1a", "3a"])):
            held = np.sum([parts[claim] * np.array(of[claim]) for claim in claims], axis=0)
            of[name] = [float(held.max()) / sum(parts[claim] for claim in claims)]
    return numbers


CLAIMS = (
    Claim(
        "J",
        "Figs. 1–3",
        "One and the same asynchronous network learns bars (1a), matches the discrete network (2a) and keeps three "
        "sets (3a).",
        "uses one network for all figures, as far as it says",
        {
            "best_1a_2a": "share of the parts of 1a and 2a that hold at the best setting",
            "best_1a_3a": "share of the parts of 1a and 3a",
            "best": "share of the parts of all three",
        },
        (
            Part("1a and 2a hold at one setting", lambda v: v.best_1a_2a == 1),
            Part("1a and 3a hold at one setting", lambda v: v.best_1a_3a == 1),
            Part("all three hold at one setting", lambda v: v.best == 1),
        ),
        "at the best of the settings with these dynamics {best_1a_2a} of the parts of 1a and 2a hold, {best_1a_3a} of "
        "those of 1a and 3a, {best} of all. A wider search, over η and initial weights too, is "
        "examples/retention_search.py; docs/choices.md says what it gave.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "search": "After three sets in succession, over thresholds (columns) and refractory periods (rows), for both "
        "dynamics. (A, E) Share of the 100 most active fields that are bars after the first set. (B, F) Share of the "
        "bars found. (C, G) The largest error on the three sets at the end. (D, H) Share of the parts of claims 1a, "
        "2a (the asynchronous network's two) and 3a that hold. Dark is better. One seed; activity is tested for 500 "
        "steps here. Not in the paper; sets 2 and 3 are our choice."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABCD", "EFGH"], (7.2, 3.8))
    says = {"bars": "are bars", "factors": "found", "worst": "error at end", "together": "parts"}
    for letters, dynamics in zip(("ABCD", "EFGH"), DYNAMICS, strict=True):
        for letter, (name, title) in zip(letters, says.items(), strict=True):
            table = np.reshape(numbers[dynamics][name], (len(THRESHOLDS), len(REFRACTORY))).T
            better = "low" if name == "worst" else "high"
            figures.heat_map(axes[letter], table, REFRACTORY, THRESHOLDS, better=better)
            axes[letter].set_title(title)
            axes[letter].set_xlabel("threshold $r_b$")
        axes[letters[0]].set_ylabel(f"{dynamics}\nrefractory period")
    return {"search": figure}
