"""A claim that is commented out in the paper's source: "asynchronous learning is more robust to fast changing stimuli,
high input size and high learning rates"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb.drawing import figures
from asynchebb.network import MODELS
from asynchebb.reproduction.claims import Claim, Means, Numbers, Part
from asynchebb.reproduction.readings import PRESET, READINGS, SETTLED, on_crossbars
from asynchebb.reproduction.results import Key, Results, factors_found
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run
from asynchebb.stimuli import Crossbars

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Fast stimuli, large inputs, high learning rates"
NEURONS = 200  # enough for the 64 bars of the largest input
VARIED = {"hold": (10, 25, 50, 150, 500), "p": (5, 14, 32), "eta": (0.001, 0.01, 0.03, 0.1)}
HARD = {"hold": (10, 25, 50), "p": (32,), "eta": (0.03, 0.1)}


def run_at(scale: Scale, name: str, value: Any, model: str) -> Run:
    """The model as in the presets, except for this value."""
    reading = READINGS[PRESET]
    small = scale._replace(n=min(scale.n, NEURONS), steps=scale.side_steps)
    if name == "p":
        small = small._replace(p=value)
    elif name == "hold":
        reading = reading._replace(hold=value)
    else:
        reading = reading._replace(**{model: type(getattr(reading, model))(value)})
    return on_crossbars(small, reading, model)


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (name, value, model): run_at(scale, name, value, model)
        for name, values in VARIED.items()
        for value in values
        for model in MODELS
    }


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list[float]] = {}
    for name, value, model in results:
        kept = results[name, value, model]
        bars = Crossbars(value if name == "p" else scale.p)
        found = {"factors": factors_found(kept, bars), "error": float(kept["error_last"][-1, SETTLED])}
        for measured, number in found.items():
            measures.setdefault(f"{model}_{name}_{value:g}_{measured}", []).append(number)
    for name, values in HARD.items():
        for model in MODELS:
            for measured in MEASURED:
                of = [measures[f"{model}_{name}_{value:g}_{measured}"] for value in values]
                measures[f"{model}_hard_{name}_{measured}"] = np.mean(of, axis=0).tolist()
    return {PRESET: measures}


MEASURED = {"factors": "share of bars found", "error": "settled error"}
SAYS = {
    "hold": ("T", "rapidly changing stimuli", "holds of 10, 25 and 50 steps"),
    "p": ("I", "large inputs", "32 × 32 pixels"),
    "eta": ("L", "high learning rates", "η = 0.03 and 0.1"),
}


def _more_bars(name: str, other: str) -> Part:
    def holds(v: Means) -> bool:
        return v[f"asynchronous_hard_{name}_factors"] >= v[f"{other}_hard_{name}_factors"] + 0.1

    return Part(f"the share of bars it finds is at least 0.1 above the {other} network's", holds)


def _smaller_error(name: str, other: str) -> Part:
    def holds(v: Means) -> bool:
        return v[f"asynchronous_hard_{name}_error"] <= v[f"{other}_hard_{name}_error"] - 0.05

    return Part(f"its error is at least 0.05 below the {other} network's", holds)


def _claim(name: str) -> Claim:
    short, to_what, where = SAYS[name]
    shows = {
        f"{model}_hard_{name}_{measured}": f"{says}, {where}, {model}"
        for measured, says in MEASURED.items()
        for model in MODELS
    }
    parts = [make(name, other) for make in (_more_bars, _smaller_error) for other in ("discrete", "continuous")]
    told = ", ".join(f"{{{model}_hard_{name}_factors}} ({model})" for model in MODELS)
    errors = ", ".join(f"{{{model}_hard_{name}_error}}" for model in MODELS)
    return Claim(
        short,
        "commented out in the source",
        f"The asynchronous network is more robust to {to_what} than the discrete and continuous networks.",
        "asynchronous learning is more robust to fast changing stimuli, high input size and high learning rates",
        shows,
        parts,
        f"at {where}, the shares of bars found are {told}, and the errors are {errors}.",
    )


CLAIMS = tuple(map(_claim, VARIED))


def captions(scale: Scale) -> dict[str, str]:
    return {
        "robustness": f"Reading: {PRESET}, {min(scale.n, NEURONS)} neurons, {scale.side_steps:,} steps. Share of the "
        "bars found (top) and settled error (bottom) against the hold (A, D), the number of pixels per side (B, E) and "
        "the learning rate (C, F), with everything else as in the presets. One seed. The claim is commented out in the "
        "paper's source, and the paper shows no results on it."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABC", "DEF"], (7.2, 4.2))
    labels = {"hold": "hold (steps)", "p": "pixels per side", "eta": "η"}
    for letters, (name, values) in zip(("AD", "BE", "CF"), VARIED.items(), strict=True):
        for letter, (measured, says) in zip(letters, MEASURED.items(), strict=True):
            for model in MODELS:
                of = [numbers[PRESET][f"{model}_{name}_{value:g}_{measured}"] for value in values]
                figures.mean_and_sd(axes[letter], values, np.transpose(of), color=figures.COLOURS[model], label=model)
            axes[letter].set(xscale="log", ylim=(0, 1.02), xlabel=labels[name], ylabel=says)
            axes[letter].set_xticks(values, [f"{value:g}" for value in values])
            axes[letter].minorticks_off()
    axes["A"].legend(frameon=False, fontsize=6)
    return {"robustness": figure}
