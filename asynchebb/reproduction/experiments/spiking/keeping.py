"""Three sets in succession, as in figure 3: what does a spiking network keep, and does homeostasis help?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb.drawing import figures
from asynchebb.dynamics import HomeostaticIntegrateAndFire, HomeostaticRelaxing
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.experiments.spiking.settings import SPIKING
from asynchebb.reproduction.readings import NOTEBOOK, READINGS, in_succession, set_names, sets
from asynchebb.reproduction.results import BARS_KEPT, LEARNT_AND_KEPT, Key, Results, after_sets, are_kept, ends
from asynchebb.reproduction.scale import Scale
from asynchebb.rules import Oja
from asynchebb.runs.run import Run
from asynchebb.schedules import Asynchronous

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

SLOW = {"rule": Oja(0.005), "schedule": Asynchronous(0.75, 100)}  # leaves silent synapses alone, and is rarer
NETWORKS: dict[str, dict[str, Any]] = {
    "spiking": {},
    "spiking_oja": SLOW,
    "homeostatic": {**SLOW, "dynamics": HomeostaticIntegrateAndFire()},
    "homeostatic_rate": {**SLOW, "dynamics": HomeostaticRelaxing()},  # is it the spikes or the homeostasis?
}
ONE_SEED = ("homeostatic_rate",)
TITLES = {
    "rate": "rate network",
    "spiking": "spiking, Hebbian",
    "spiking_oja": "spiking, Oja",
    "homeostatic": "homeostatic, Oja",
    "homeostatic_rate": "homeostatic rates",
}


def runs(scale: Scale) -> dict[Key, Run]:
    ours = scale._replace(steps_per_phase=scale.side_steps)
    rate = READINGS[NOTEBOOK]
    found: dict[Key, Run] = {
        ("rate", seed): in_succession(ours, rate, "asynchronous", sets(scale), seed) for seed in range(scale.seeds)
    }
    for name, changes in NETWORKS.items():
        for seed in range(1 if name in ONE_SEED else scale.seeds):
            run = in_succession(ours, SPIKING[NOTEBOOK], "asynchronous", sets(scale), seed)
            found[name, seed] = replace(run, network=replace(run.network, **changes))
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list[float]] = {}
    for name, seed in results:
        for measured, value in after_sets(results[name, seed], sets(scale)).items():
            measures.setdefault(f"{name}_{measured}", []).append(value)
    return {NOTEBOOK: measures}


def _shows(name: str) -> dict[str, str]:
    return {f"{name}_{measured}": f"{says}, {TITLES[name]}" for measured, says in LEARNT_AND_KEPT.items()}


def _errors(name: str) -> str:
    learnt, end = (", ".join(f"{{{name}_{when}_{k}}}" for k in (1, 2, 3)) for when in ("learnt", "end"))
    return f"errors on the three sets {learnt} after their own phases and {end} at the end"


CLAIMS = (
    Claim(
        "V12",
        "ours",
        "After three sets in succession, the spiking network's error is low on all three.",
        "not in the paper; the spiking counterpart of 3a",
        _shows("spiking") | _shows("spiking_oja") | _shows("rate"),
        are_kept("spiking"),
        f"{_errors('spiking')}; with Oja's rule (η = 0.005) and r_b = 0.75, {_errors('spiking_oja')}; in the "
        f"notebook's rate network, {_errors('rate')}.",
    ),
    Claim(
        "V13",
        "ours",
        "With a homeostatic threshold it is, and new sets are encoded by fields that were free.",
        "not in the paper; the counterpart of 3a and 3c with the homeostasis that its discussion names",
        _shows("homeostatic")
        | {
            "homeostatic_bars_kept": "share of the bars found in phase 1 that are still shown at the end",
            "homeostatic_taken_from_free": "share of the fields showing a new factor that were unstructured or "
            "redundant after phase 1",
            "spiking_oja_bars_kept": "share of the bars kept without homeostasis",
            "homeostatic_rate_bars_kept": "share of the bars kept by a homeostatic rate network",
        },
        (
            *are_kept("homeostatic"),
            Part(BARS_KEPT, lambda v: v.homeostatic_bars_kept >= 0.9),
            Part(
                "more than half of the fields that show a new factor were unstructured or redundant",
                lambda v: v.homeostatic_taken_from_free > 0.5,
            ),
        ),
        f"{_errors('homeostatic')}; {{homeostatic_bars_kept}} of the bars found in the first phase are still shown at "
        "the end ({spiking_oja_bars_kept} without homeostasis, {homeostatic_rate_bars_kept} in a homeostatic rate "
        "network).",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "spiking-sets": "Three sets in succession (dashed lines: change of set). (A) The notebook's rate network. (B) "
        "The spiking network of figure “Spiking”. (C) With Oja's rule (η = 0.005) and r_b = 0.75, (D) and with a "
        "homeostatic threshold. (E) The same with rates in the place of spikes. Settled error on each set, mean and "
        "standard deviation over seeds (E: one seed). Bottom: fields of the same 20 randomly chosen neurons after the "
        "first and after the last set (seed 0)."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABCDE", "qrstuvwxyz"], (7.2, 3.0), [1.9, 1.0], letters="ABCDE")
    chosen = np.random.default_rng(0).choice(scale.n, 20, replace=False)
    for letter, insets, name in zip("ABCDE", ("qr", "st", "uv", "wx", "yz"), TITLES, strict=True):
        of = [results[name, seed] for seed in range(1 if name in ONE_SEED else scale.seeds)]
        labels = [label.split(" (")[0] for label in set_names(scale)]
        figures.errors_on_sets(axes[letter], of, labels, "settled error" if letter == "A" else "")
        axes[letter].set_xlabel("steps (millions)")
        axes[letter].set_title(TITLES[name], loc="right", fontsize=6)
        for inset, end, when in zip(insets, (ends(of[0])[0], -1), ("first", "last"), strict=True):
            figures.mosaic(axes[inset], of[0]["W"][end][chosen], (scale.p, scale.p), np.arange(20.0)[::-1])
            axes[inset].set_title(when, fontsize=6)
    axes["A"].legend(edgecolor="white", framealpha=0.9, fontsize=5, loc="upper left", handlelength=1)
    return {"spiking-sets": figure}
