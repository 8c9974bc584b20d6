"""Is there one setting under which figures 1, 2 and 3 hold together?

Every reading is tested; in addition, the figure shows the settings tried in a wider search
(examples/retention_search.py, which takes longer than everything else).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb.contracts import FactoredStimulus
from asynchebb.drawing import figures
from asynchebb.network import Reading
from asynchebb.reproduction.claims import Claim, Means, Numbers, Part
from asynchebb.reproduction.experiments import fig1, fig2, fig3
from asynchebb.reproduction.readings import readings, seeds, sets, three_models
from asynchebb.reproduction.results import Kept, Key, Results, after_sets, ends, fields, likeness
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "One setting for all figures?"
SETTINGS = files("asynchebb.reproduction.experiments") / "retention_search.csv"  # made by `make search`

# What must hold together: bars are learned, most neurons match the discrete network's, all three sets are retained.
# (The last part of 2a concerns the continuous network.)
PARTS = {claim.id: claim.parts for module in (fig1, fig2, fig3) for claim in module.CLAIMS}
TOGETHER = {"1a": PARTS["1a"], "2a": PARTS["2a"][:2], "3a": PARTS["3a"]}


def runs(scale: Scale) -> dict[Key, Run]:
    compared = {
        ("bars", *key): run for key, run in three_models(scale).items() if key[1] in ("asynchronous", "discrete")
    }
    return compared | {("sets", *key): run for key, run in fig3.runs(scale).items() if key[1] == "asynchronous"}


def on_bars(
    kept: Kept, discrete: Kept, bars: FactoredStimulus, snapshot: int = -1, of_discrete: int = -1
) -> dict[str, float]:
    """The measures for claims 1a and 2a, from an asynchronous run and the corresponding discrete one."""
    return fields(kept, bars, snapshot) | likeness(kept, discrete, snapshot, of_discrete)


def in_succession(kept: Kept, discrete: Kept, shown: Sequence[FactoredStimulus]) -> dict[str, float]:
    """The measures for all three claims, from runs on three sets: for 1a and 2a after the first set."""
    return on_bars(kept, discrete, shown[0], ends(kept)[0], ends(discrete)[0]) | after_sets(kept, shown)


def held(means: Mapping[str, float]) -> dict[str, list[bool]]:
    """Which parts of each claim hold."""
    of = Means({f"asynchronous_{name}": value for name, value in means.items()})
    return {claim: [bool(part.holds(of)) for part in parts] for claim, parts in TOGETHER.items()}


def row(reading: Reading, setting: Mapping[str, float], discrete_eta: float, of_seeds: Sequence[dict]) -> dict:
    """A row of the table: the setting, how many parts hold for the mean over seeds, and the measurements."""
    mean = {name: float(np.mean([one[name] for one in of_seeds])) for name in of_seeds[0]}
    parts = held(mean)
    ends, untrained, learnt = (
        np.array([mean[f"{name}_{number}"] for number in (1, 2, 3)]) for name in ("end", "untrained", "learnt")
    )
    return {
        "dynamics": type(reading.dynamics).__name__,
        "onset": "from rest" if reading.from_rest else "carried over",
        "leak": {"Oja": "y²", "Hebbian": "constant"}[type(reading.asynchronous).__name__],
        **setting,
        "discrete_eta": discrete_eta,
        "parts": sum(map(sum, parts.values())),
        **{claim: sum(of) for claim, of in parts.items()},
        "worst": float((ends / untrained).max()),  # required: at most 0.5
        "rise": float((ends - learnt).max()),  # required: at most 0.1
        **mean,
    }


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list[float]]] = {name: {} for name in readings(scale)}
    counts, bars = {claim: len(parts) for claim, parts in TOGETHER.items()}, sets(scale)[0]
    for name in readings(scale):
        of_seeds = [
            on_bars(results["bars", name, "asynchronous", seed], results["bars", name, "discrete", seed], bars)
            | after_sets(results["sets", name, "asynchronous", seed], sets(scale))
            for seed in seeds(scale, name)
        ]
        parts = held({measured: float(np.mean([one[measured] for one in of_seeds])) for measured in of_seeds[0]})
        for said, claims in (("all", [*counts]), ("1a_2a", ["1a", "2a"]), ("1a_3a", ["1a", "3a"])):
            share = sum(sum(parts[claim]) for claim in claims) / sum(counts[claim] for claim in claims)
            numbers[name][f"together_{said}"] = [share]
    return numbers


CLAIMS = (
    Claim(
        "J",
        "Figs. 1–3",
        "A single asynchronous network learns bars (1a), matches the discrete network (2a) and retains three sets "
        "(3a).",
        "as far as it says, uses one network for all figures",
        {
            "together_1a_2a": "share of the parts of 1a and 2a that hold",
            "together_1a_3a": "share of the parts of 1a and 3a that hold",
            "together_all": "share of the parts of all three that hold",
        },
        (
            Part("1a and 2a hold together", lambda v: v.together_1a_2a == 1),
            Part("1a and 3a hold together", lambda v: v.together_1a_3a == 1),
            Part("all three hold together", lambda v: v.together_all == 1),
        ),
        "{together_1a_2a} of the parts of 1a and 2a hold, {together_1a_3a} of the parts of 1a and 3a, and "
        "{together_all} of the parts of all three. The results of a search over many settings are in docs/choices.md.",
    ),
)


def settings() -> list[dict[str, Any]]:
    """The table of settings, row by row."""
    with SETTINGS.open(encoding="utf-8") as file:
        return [{name: _number(text) for name, text in line.items()} for line in csv.DictReader(file)]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def captions(scale: Scale) -> dict[str, str]:
    rows = settings()
    found = len({tuple(row[name] for name in SETTING) for row in rows})
    parts = sum(map(len, TOGETHER.values()))
    return {
        "search": f"{found} settings of the asynchronous network, three seeds each, shown three sets in succession "
        "(examples/retention_search.py). (A) For each setting, the share of neurons that match the discrete network "
        "after the first set, and the largest error on the three sets at the end, as a share of the untrained "
        f"network's; colour: how many of the {parts} parts of claims 1a, 2a and 3a hold for the mean over seeds. "
        "Dotted: one half, as required by 2a and 3a; settings in the lower right corner meet both. (B) Share of parts "
        "that hold for each threshold and learning rate, with Projected dynamics from rest and Oja's leak; the best "
        "value over all other parameters. (C) The largest error, likewise. Not in the paper; sets 2 and 3 are our "
        "choice."
    }


SETTING = ("dynamics", "onset", "leak", "scale", "samples", "r_b", "r_r", "eta")
MARKS = {
    ("y²", "from rest"): "o",
    ("y²", "carried over"): "s",
    ("constant", "from rest"): "^",
    ("constant", "carried over"): "v",
}


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    rows = settings()
    figure, axes = figures.lettered(["ABC"], (7.2, 2.8))
    most = sum(map(len, TOGETHER.values()))
    for (leak, onset), mark in MARKS.items():
        chosen = [row for row in rows if (row["leak"], row["onset"]) == (leak, onset)]
        if not chosen:
            continue
        points = axes["A"].scatter(
            [row["same_W"] for row in chosen],
            [row["worst"] for row in chosen],
            c=[row["parts"] for row in chosen],
            marker=mark,
            s=9,
            vmin=0,
            vmax=most,
            cmap="viridis",
            linewidths=0,
            label=f"{leak} leak, {onset}",
        )
    figure.colorbar(points, ax=axes["A"], label=f"parts that hold, of {most}")
    axes["A"].axhline(0.5, color="grey", linestyle=":", linewidth=0.8)
    axes["A"].axvline(0.5, color="grey", linestyle=":", linewidth=0.8)
    axes["A"].set(xlabel="share of neurons that match", ylabel="largest error at the end\n(untrained = 1)")
    axes["A"].legend(frameon=False, fontsize=5, loc="lower right", handletextpad=0)
    family = [row for row in rows if (row["dynamics"], row["leak"], row["onset"]) == ("Projected", "y²", "from rest")]
    thresholds, rates = (sorted({row[name] for row in family}) for name in ("r_b", "eta"))
    for letter, name, better in (("B", "parts", "high"), ("C", "worst", "low")):
        best = max if better == "high" else min
        table = np.array(
            [
                [
                    best((row[name] for row in family if (row["r_b"], row["eta"]) == (r_b, eta)), default=np.nan)
                    for r_b in thresholds
                ]
                for eta in rates
            ]
        )
        if name == "parts":
            table = table / most
        figures.heat_map(axes[letter], table, rates, thresholds, better=better)
        axes[letter].set(xlabel="threshold $r_b$", ylabel="η")
        axes[letter].set_title({"parts": "share of parts", "worst": "largest error"}[name])
    return {"search": figure}
