"""Follow-up: how the learning rates of the two models compare, and for how long the models learn the same.

An asynchronous neuron learns several times per presentation, a discrete one once. Do the two networks match if η times
the number of updates per presentation does? And if so, for how long?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb.drawing import figures
from asynchebb.network import Reading
from asynchebb.reproduction.claims import Claim, Numbers
from asynchebb.reproduction.readings import PRESET, READINGS, eta_of, on_crossbars, over_training, variant
from asynchebb.reproduction.results import SAME, Key, Results, similarity, window
from asynchebb.reproduction.scale import Scale
from asynchebb.rules import Oja
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Matched learning rates, and similarity over time"
REFRACTORY = (0, 50, 100, 200, 500)
ETAS = (0.001, 0.002, 0.005, 0.01)
SLOWER = (1, 2, 4)  # divisors of both models' rates
CLAIMS: tuple[Claim, ...] = ()


def slowed(reading: Reading, factor: float) -> Reading:
    return reading._replace(
        asynchronous=Oja(eta_of(reading.asynchronous) / factor), discrete=Oja(eta_of(reading.discrete) / factor)
    )


def _seeds(scale: Scale, factor: float) -> range:
    """With the presets' rates, the seeds of figure 1; otherwise one seed."""
    return range(scale.seeds if factor == 1 else 1)


def runs(scale: Scale) -> dict[Key, Run]:
    reading, short = READINGS[PRESET], scale._replace(steps=scale.side_steps)
    found: dict[Key, Run] = {("matched", "discrete"): on_crossbars(short, reading, "discrete")}
    for r_r in REFRACTORY:
        for eta in ETAS:
            changed = variant(variant(reading, "r_r", r_r), "asynchronous", Oja(eta))
            found["matched", r_r, eta] = on_crossbars(short, changed, "asynchronous")
    for factor in SLOWER:
        for model in ("asynchronous", "discrete"):
            for seed in _seeds(scale, factor):
                found["over time", factor, model, seed] = (
                    over_training(scale, reading, model, seed)  # as in figure 1
                    if factor == 1
                    else on_crossbars(scale, slowed(reading, factor), model, seed, max(1, scale.snapshots // 2))
                )
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list[Any]] = {"r_r": [], "eta": [], "updates": [], "similarity_W": [], "similarity_M": []}
    discrete = results["matched", "discrete"]
    for r_r in REFRACTORY:
        for eta in ETAS:
            key = "matched", r_r, eta
            measures["r_r"].append(r_r)
            measures["eta"].append(eta)
            measures["updates"].append(_updates(results, key))
            for weights in "WM":
                measures[f"similarity_{weights}"].append(float(similarity(results[key], discrete, weights).mean()))
    matched = np.array(measures["eta"]) * measures["updates"]
    measures["explained_by_matched"] = [_explained(matched, measures["similarity_W"])]
    measures["explained_by_eta"] = [_explained(np.array(measures["eta"]), measures["similarity_W"])]
    for factor in SLOWER:
        for seed in _seeds(scale, factor):
            one, other = (results["over time", factor, model, seed] for model in ("asynchronous", "discrete"))
            shares = [float(np.mean(similarity(one, other, "W", k) > SAME)) for k in range(len(one["step"]))]
            measures.setdefault(f"same_over_time_{factor}", []).append(shares)
            measures[f"steps_{factor}"] = np.asarray(one["step"]).tolist()
    return {PRESET: measures}


def _updates(results: Results, key: Key) -> float:
    """Updates per presentation of a neuron that learns in it, after training."""
    seen = window(results, key, -1, 5)["burst"]
    often = seen.reshape(5, -1, seen.shape[1]).sum(axis=1)
    return float(often[often > 0].mean()) if often.any() else 0.0


def _explained(x: np.ndarray, y: list[float]) -> float:
    """The share of y's variance that a parabola in log x explains."""
    usable = x > 0
    x, values = np.log(x[usable]), np.array(y)[usable]
    if len(values) < 4 or not values.var():
        return 0.0
    return float(1 - np.var(values - np.polyval(np.polyfit(x, values, 2), x)) / values.var())


def captions(scale: Scale) -> dict[str, str]:
    reading = READINGS[PRESET]
    return {
        "rates": f"Reading: {PRESET}. Mean cosine of the asynchronous network's feed-forward weights with those of the "
        f"discrete network (η = {eta_of(reading.discrete):g}) after {scale.side_steps:,} steps, for several refractory "
        "periods (colours) and learning rates. (A) Against η. (B) Against η times the number of updates per "
        "presentation of a neuron that learns in it; dashed: η of the discrete network, whose neurons learn once per "
        "presentation. One seed.",
        "over-time": f"Reading: {PRESET}. (A) Share of neurons whose feed-forward weights have a cosine above {SAME} "
        "with the discrete network's, over training, for the presets' learning rates, and half and a quarter of both. "
        "Dotted: one half, as required by claim 2a. (B) The same against steps times the rate, relative to the "
        "presets'. Mean and standard deviation over seeds with the presets' rates, one seed otherwise.",
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    measures = numbers[PRESET]
    r_r, eta, updates, alike = (np.array(measures[name]) for name in ("r_r", "eta", "updates", "similarity_W"))
    matched, axes = figures.lettered(["AB"], (7.2, 2.8))
    colours = figures.ramp(len(REFRACTORY))
    for letter, x in (("A", eta), ("B", eta * updates)):
        for colour, value in zip(colours, REFRACTORY, strict=True):
            chosen = (r_r == value) & (x > 0)
            axes[letter].plot(x[chosen], alike[chosen], "o-", color=colour, markersize=3, label=f"$r_r$ = {value}")
        axes[letter].set(xscale="log", ylim=(0, 1.02), ylabel="mean cosine with\nthe discrete network")
    axes["A"].set_xlabel("η")
    axes["B"].set_xlabel("η × updates per presentation")
    axes["B"].axvline(eta_of(READINGS[PRESET].discrete), color="grey", linestyle="--", linewidth=0.8)
    axes["A"].legend(frameon=False, fontsize=6)
    over_time, axes = figures.lettered(["AB"], (7.2, 2.6))
    for colour, factor in zip(figures.ramp(len(SLOWER)), SLOWER, strict=True):
        steps, shares = np.array(measures[f"steps_{factor}"]), measures[f"same_over_time_{factor}"]
        label = "presets' rates" if factor == 1 else f"rates / {factor}"
        figures.mean_and_sd(axes["A"], steps, shares, color=colour, label=label)
        figures.mean_and_sd(axes["B"], steps / factor, shares, color=colour)
    for letter in "AB":
        figures.steps_axis(axes[letter], "share of neurons that match")
        axes[letter].axhline(0.5, color="grey", linestyle=":", linewidth=0.8)
        axes[letter].set_ylim(0, 1.02)
    axes["B"].set_xlabel("Euler steps (millions) × relative rate")
    axes["A"].legend(frameon=False, fontsize=6)
    return {"rates": matched, "over-time": over_time}
