"""Figure 2: how similar the asynchronous and continuous networks are to the discrete one; how many synapses change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb.drawing import figures
from asynchebb.network import MODELS
from asynchebb.reproduction.claims import Claim, Means, Numbers, Part
from asynchebb.reproduction.readings import (
    HOLDS,
    NOTEBOOK,
    PRESET,
    READINGS,
    REFRACTORY,
    THRESHOLDS,
    readings,
    run_of,
    seeds,
    sets,
    three_models,
    variant,
)
from asynchebb.reproduction.results import Key, Results, factors_found, likeness, products, similarity, window
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "The asynchronous and continuous networks compared with the discrete one"
DRAWN = {"fig2": PRESET, "fig2-notebook": NOTEBOOK}
VARIED = {"r_r": REFRACTORY, "r_b": THRESHOLDS, "hold": HOLDS}
WINDOW = 5  # presentations
Add = Callable[[str, str, Any], None]  # a measure of a reading, by its name


def at_value(name: str, value: float, weights: str) -> str:
    """The name of the similarity measured at this value."""
    return f"{name}_{value:g}_{weights}".replace(".", "")


def runs(scale: Scale) -> dict[Key, Run]:
    found = three_models(scale)
    for drawn in DRAWN.values():
        for name, value, model in _varied():
            found[drawn, f"{name}={value:g}", model] = run_of(variant(READINGS[drawn], name, value), model, scale, 0)
    return found


def _varied() -> Iterator[tuple[str, Any, str]]:
    """What is varied in which models: only the asynchronous one has a threshold and a refractory period."""
    for name, values in VARIED.items():
        for value in values:
            for model in MODELS if name == "hold" else ("asynchronous",):
                yield name, value, model


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list]] = {name: {} for name in readings(scale)}

    def add(reading: str, name: str, value: Any) -> None:
        numbers[reading].setdefault(name, []).append(value)

    for reading in readings(scale):
        for seed in seeds(scale, reading):
            discrete = results[reading, "discrete", seed]
            for model in ("asynchronous", "continuous"):
                kept = results[reading, model, seed]
                for name, value in likeness(kept, discrete).items():
                    add(reading, f"{model}_{name}", value)
                over_time = [float(similarity(kept, discrete, "W", k).mean()) for k in range(len(kept["step"]))]
                add(reading, f"{model}_early", over_time[1])
                add(reading, f"{model}_over_time", over_time)
    for reading in DRAWN.values():
        for name, value, model in _varied():
            if model != "discrete":
                _compare(reading, name, value, model, results, add)
            else:
                found = factors_found(results[reading, f"{name}={value:g}", model], sets(scale)[0])
                add(reading, f"factors_{value:g}", found)
        for seed in range(scale.seeds):
            for model in MODELS:
                _count(reading, model, seed, results, add)
    return numbers


def _compare(reading: str, name: str, value: Any, model: str, results: Results, add: Add) -> None:
    """Similarity of the weights to the discrete network's; if the hold is varied, the discrete network has it too."""
    at = reading, f"{name}={value:g}"
    discrete = results[(*at, "discrete")] if name == "hold" else results[reading, "discrete", 0]
    for weights in "WM":
        called = at_value(name, value, weights)
        if model == "continuous":
            called = f"continuous_{name}_{value:g}_{weights}"
        add(reading, called, float(similarity(results[(*at, model)], discrete, weights).mean()))


def _count(reading: str, model: str, seed: int, results: Results, add: Add) -> None:
    """Synapses changed per step, in a window that starts at each snapshot."""
    key = reading, model, seed
    run, kept = results.runs[key], results[key]
    counts = []
    for snapshot in range(len(kept["step"])):
        seen = window(results, key, snapshot, WINDOW)
        if model == "discrete" and snapshot == 0:
            steps, hold = np.flatnonzero(seen["updates"]) + 1, run.phases[0].hold
            add(reading, "discrete_staircase", float(np.array_equal(steps, hold * np.arange(1, WINDOW + 1))))
        counts.append([float(seen["updates"].mean()), float(products(run, seen).mean())])
        if snapshot in (0, len(kept["step"]) - 1) and seed == 0:
            when = "trained" if snapshot else "untrained"
            add(reading, f"{model}_{when}_window", np.cumsum(seen["updates"]).tolist())
    add(reading, f"{model}_counts", counts)
    for number, name in enumerate(("updates", "products")):
        add(reading, f"{model}_{name}_untrained", counts[0][number])
        add(reading, f"{model}_{name}_trained", counts[-1][number])


def _same(weights: str, says: str) -> Claim:
    return Claim(
        "2a" if weights == "W" else "2b",
        "Fig. 2A" if weights == "W" else "Fig. 2B",
        f"After learning, the {says} weights of most asynchronous neurons are practically identical to those in the "
        "discrete network (cosine 0.95 to 1), while the continuous network's are far from them.",
        "most asynchronous neurons are practically identical (0.95–1); the continuous ones diverge significantly",
        {
            f"asynchronous_same_{weights}": "share of asynchronous neurons with cosine > 0.95",
            f"asynchronous_same_active_{weights}": "share of such neurons among those active in the discrete network",
            f"continuous_same_{weights}": "share of continuous neurons with cosine > 0.95",
            f"asynchronous_similarity_{weights}": "mean cosine, asynchronous",
            f"continuous_similarity_{weights}": "mean cosine, continuous",
        },
        (
            Part(
                "more than half of the asynchronous neurons match",
                lambda v: v[f"asynchronous_same_{weights}"] > 0.5,
            ),
            Part(
                "more than half of those active in the discrete network match",
                lambda v: v[f"asynchronous_same_active_{weights}"] > 0.5,
            ),
            Part(
                "fewer than half as many continuous neurons match",
                lambda v: v[f"continuous_same_{weights}"] < v[f"asynchronous_same_{weights}"] / 2,
            ),
        ),
        f"{{asynchronous_same_{weights}}} of the asynchronous and {{continuous_same_{weights}}} of the continuous "
        "network's neurons match; among neurons active in the discrete network, "
        f"{{asynchronous_same_active_{weights}}} of the asynchronous ones do. A neuron that stays silent keeps its "
        "initial direction in every model and counts as a match.",
    )


def _lowest(v: Means, name: str, values: tuple, weights: str) -> float:
    return min(v[at_value(name, value, weights)] for value in values)


def _highest(v: Means, name: str, values: tuple, weights: str) -> float:
    return max(v[at_value(name, value, weights)] for value in values)


def _rises(weights: str) -> Part:
    return Part(
        f"at 100 and at 500 steps the mean cosine of {weights} is at least 0.05 above those at 0 and at 10",
        lambda v: _lowest(v, "r_r", (100, 500), weights) >= _highest(v, "r_r", (0, 10), weights) + 0.05,
    )


def _similarities(name: str, says: str) -> dict[str, str]:
    return {
        at_value(name, value, weights): f"mean cosine of {weights}, {says} {value:g}"
        for weights in "WM"
        for value in VARIED[name]
    }


COUNTS = {
    f"{model}_{name}_{when}": f"{says} per step, {model}, {when}"
    for name, says in (("updates", "synapses changed"), ("products", "non-zero Hebbian products"))
    for model in MODELS
    for when in ("untrained", "trained")
}


def _counts(*prefixes: str) -> dict[str, str]:
    return {name: says for name, says in COUNTS.items() if name.startswith(prefixes)}


CLAIMS = (
    _same("W", "feed-forward"),
    _same("M", "lateral"),
    Claim(
        "2c",
        "Fig. 2C",
        "The continuous network diverges from the discrete one right at the start of training.",
        "the divergence begins right at the start of training",
        {
            "asynchronous_early": "mean cosine of W at the first snapshot, asynchronous",
            "continuous_early": "mean cosine of W at the first snapshot, continuous",
            "asynchronous_similarity_W": "mean cosine of W at the end, asynchronous",
            "continuous_similarity_W": "mean cosine of W at the end, continuous",
        },
        (
            Part(
                "at the first snapshot its mean cosine is at least 0.05 below the asynchronous network's",
                lambda v: v.continuous_early <= v.asynchronous_early - 0.05,
            ),
            Part(
                "at the end its mean cosine is at least 0.05 below the asynchronous network's",
                lambda v: v.continuous_similarity_W <= v.asynchronous_similarity_W - 0.05,
            ),
        ),
        "at the first snapshot, the mean cosine is {continuous_early} for the continuous and {asynchronous_early} for "
        "the asynchronous network; at the end, {continuous_similarity_W} and {asynchronous_similarity_W}.",
    ),
    Claim(
        "2d",
        "Fig. 2D",
        "With no refractory period or a short one (10 steps), the asynchronous network is unlike the discrete one; "
        "with a long one it is similar to it.",
        "no refractory period (1 step) or a small one (10 steps) gives poor average similarity",
        _similarities("r_r", "refractory period"),
        (
            _rises("W"),
            _rises("M"),
            Part("at 500 steps the mean cosine of W is at least 0.8", lambda v: v.r_r_500_W >= 0.8),
        ),
        "the mean cosine of W is {r_r_0_W} without a refractory period, {r_r_10_W} with one of 10 steps, {r_r_100_W} "
        "with 100 and {r_r_500_W} with 500; that of M is {r_r_0_M}, {r_r_10_M}, {r_r_100_M} and {r_r_500_M}.",
    ),
    Claim(
        "2e",
        "Fig. 2E",
        "The bursting threshold matters little, unless it is 0.",
        "does not affect the learning much unless it is zero",
        _similarities("r_b", "threshold"),
        (
            Part(
                "thresholds 0.5, 1 and 2 differ by at most 0.1 in the mean cosine of W",
                lambda v: _highest(v, "r_b", (0.5, 1, 2), "W") - _lowest(v, "r_b", (0.5, 1, 2), "W") <= 0.1,
            ),
            Part(
                "threshold 0 is at least 0.05 below all of them (W)",
                lambda v: v.r_b_0_W <= _lowest(v, "r_b", (0.5, 1, 2), "W") - 0.05,
            ),
            Part(
                "threshold 0 is at least 0.05 below all of them (M)",
                lambda v: v.r_b_0_M <= _lowest(v, "r_b", (0.5, 1, 2), "M") - 0.05,
            ),
        ),
        "the mean cosine of W is {r_b_0_W} at threshold 0, {r_b_05_W} at 0.5, {r_b_1_W} at 1 and {r_b_2_W} at 2; that "
        "of M is {r_b_0_M}, {r_b_05_M}, {r_b_1_M} and {r_b_2_M}.",
    ),
    Claim(
        "2f",
        "Fig. 2F, A1",
        "The hold matters: similarity changes with it, and the discrete Hebbian network stops learning below 150 "
        "steps.",
        "the hold does affect the trajectory; the discrete Hebbian network stops learning below 150",
        {
            **_similarities("hold", "hold"),
            **{f"factors_{hold}": f"share of bars found by the discrete network at hold {hold}" for hold in HOLDS},
        },
        (
            Part(
                "the mean cosine of W differs by at least 0.05 between holds",
                lambda v: _highest(v, "hold", HOLDS, "W") - _lowest(v, "hold", HOLDS, "W") >= 0.05,
            ),
            Part(
                "at hold 50 the discrete network finds less than a quarter of the bars", lambda v: v.factors_50 < 0.25
            ),
            Part("at hold 150 it still finds more than half of them", lambda v: v.factors_150 > 0.5),
        ),
        "the discrete network finds {factors_50} of the bars at hold 50, {factors_150} at 150 and {factors_500} at "
        "500. The mean cosine between W in the asynchronous and the discrete network at the same hold is "
        "{hold_50_W}, {hold_150_W} and {hold_500_W}; for M it is {hold_50_M}, {hold_150_M} and {hold_500_M}.",
    ),
    Claim(
        "2g",
        "Fig. 2G",
        "Synapses changed before training: the discrete network's cumulative count is a staircase with one step per "
        "hold, and the asynchronous network's follows it.",
        "a staircase for the discrete network, and a very similar trajectory for the asynchronous one",
        {
            "discrete_staircase": "share of seeds in which the discrete count is a staircase with one step per hold",
            **_counts("asynchronous_updates_untrained", "discrete_updates_untrained"),
            **_counts("asynchronous_products_untrained", "discrete_products_untrained"),
        },
        (
            Part(
                "the discrete count changes at the last step of each hold, and at no other",
                lambda v: v.discrete_staircase == 1,
                is_given=True,
            ),
            Part(
                "over five presentations the asynchronous count is between half and twice the discrete one",
                lambda v: 0.5 <= v.asynchronous_updates_untrained / v.discrete_updates_untrained <= 2,
            ),
            Part(
                "the same, counting non-zero Hebbian products",
                lambda v: 0.5 <= v.asynchronous_products_untrained / v.discrete_products_untrained <= 2,
            ),
        ),
        "before training, the asynchronous network changes {asynchronous_updates_untrained} synapses per step, the "
        "discrete one {discrete_updates_untrained} (with a constant leak, every synapse once per presentation). "
        "Counting only non-zero Hebbian products, it is {asynchronous_products_untrained} and "
        "{discrete_products_untrained}.",
    ),
    Claim(
        "2h, 2i",
        "Fig. 2H, I",
        "Over training, the discrete network's count of changed synapses rises and the asynchronous network's falls "
        "slightly; both are far below the continuous network's.",
        "the discrete model seems to increase its updates, the asynchronous one slightly decreases them",
        COUNTS,
        (
            Part(
                "discrete rises by at least 5 % (non-zero gradients, the paper's count)",
                lambda v: v.discrete_updates_trained >= 1.05 * v.discrete_updates_untrained,
            ),
            Part(
                "discrete rises by at least 5 % (non-zero Hebbian products)",
                lambda v: v.discrete_products_trained >= 1.05 * v.discrete_products_untrained,
            ),
            Part(
                "asynchronous falls, but by less than half",
                lambda v: 0.5 <= v.asynchronous_updates_trained / v.asynchronous_updates_untrained < 1,
            ),
            Part(
                "both stay below a tenth of the continuous count",
                lambda v: (
                    max(v.asynchronous_updates_trained, v.discrete_updates_trained) < v.continuous_updates_trained / 10
                ),
            ),
        ),
        "counting non-zero gradient entries, the discrete count goes from {discrete_updates_untrained} to "
        "{discrete_updates_trained} per step (with a constant leak it cannot rise, since every update changes every "
        "synapse). Counting only non-zero Hebbian products, it goes from {discrete_products_untrained} to "
        "{discrete_products_trained}. "
        "The asynchronous count goes from {asynchronous_updates_untrained} to {asynchronous_updates_trained}; the "
        "continuous count is {continuous_updates_trained} after training.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        name: f"Reading: {reading}. (A) Cosine between each neuron's feed-forward weights and those in the discrete "
        "network after training, with the same initial weights and stimuli (seed 0); blue: asynchronous, orange: "
        "continuous. (B) The same for lateral weights. (C) Mean cosine of feed-forward weights over training. (D) Mean "
        "cosine with the discrete network for several refractory periods, feed-forward (green) and lateral (grey); "
        "dashed: the continuous network. (E) The same for bursting thresholds, (F) for holds. (G) Cumulative count of "
        "synapses changed, over five presentations to an untrained network. (H) The same after training. (I) Synapses "
        "changed per step over training; dotted: only those with a non-zero Hebbian product. (D) to (F) show seed 0; "
        "error bars in (C) and (I) are the standard deviation over seeds." + scale.short_holds
        for name, reading in DRAWN.items()
    } | {
        "fig2g": "Panel G as drawn in the paper: cumulative count of synapses changed over five presentations, for the "
        f"discrete and asynchronous networks. Reading {PRESET}, untrained (A) and trained (B); reading {NOTEBOOK}, "
        "untrained (C) and trained (D). Seed 0."
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    drawn = {name: _draw(scale, results, numbers[reading], reading) for name, reading in DRAWN.items()}
    return drawn | {"fig2g": _draw_counts(numbers)}


@figures.styled
def _draw_counts(numbers: Numbers) -> Figure:
    figure, axes = figures.lettered(["ABCD"], (7.2, 2.2))
    panels = [(reading, when) for reading in DRAWN.values() for when in ("untrained", "trained")]
    for letter, (reading, when) in zip("ABCD", panels, strict=True):
        for model in ("asynchronous", "discrete"):
            count: Any = numbers[reading][f"{model}_{when}_window"][0]
            axes[letter].plot(
                np.arange(1, len(count) + 1), np.array(count) / 1e3, color=figures.COLOURS[model], label=model
            )
        axes[letter].set(xlabel="Euler step", ylim=(0, None))
        axes[letter].set_title(f"{reading},\n{when}", fontsize=7)
    axes["A"].set_ylabel("synapses changed\nso far (thousands)")
    axes["A"].legend(frameon=False, fontsize=6)
    return figure


WEIGHTS = {"W": "tab:green", "M": "dimgray"}


@figures.styled
def _draw(scale: Scale, results: Results, numbers: Any, reading: str) -> Figure:
    figure, axes = figures.lettered(["ABC", "DEF", "GHI"], (7.2, 5.8))
    discrete = results[reading, "discrete", 0]
    step = np.asarray(discrete["step"])
    for model in ("asynchronous", "continuous"):
        colour = figures.COLOURS[model]
        for letter, weights in zip("AB", "WM", strict=True):
            alike = similarity(results[reading, model, 0], discrete, weights)
            axes[letter].hist(alike, [*np.linspace(0, 1, 21)], color=colour, alpha=0.6, label=model)
        figures.mean_and_sd(axes["C"], step, numbers[f"{model}_over_time"], color=colour)
    for letter, weights in zip("AB", "WM", strict=True):
        axes[letter].set(xlabel=f"cosine with the discrete network, {weights}", ylabel="neurons", xlim=(0, 1))
    axes["A"].legend(frameon=False, fontsize=6)
    figures.steps_axis(axes["C"], "mean cosine of W")
    axes["C"].set(ylim=(0, 1.02))
    for letter, (name, values) in zip("DEF", VARIED.items(), strict=True):
        for weights, colour in WEIGHTS.items():
            points = [numbers[at_value(name, value, weights)] for value in values]
            figures.mean_and_sd(axes[letter], range(len(values)), np.transpose(points), color=colour, label=weights)
            if name == "hold":
                there = [*range(len(values))]
                dashed = [np.mean(numbers[f"continuous_hold_{value:g}_{weights}"]) for value in values]
            else:
                there = [0, len(values) - 1]
                dashed = [np.mean(numbers[f"continuous_similarity_{weights}"])] * 2
            axes[letter].plot(there, dashed, "--", color=colour, linewidth=0.8)
        axes[letter].set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes[letter].set(ylabel="mean cosine with\nthe discrete network", ylim=(0, 1.02))
    axes["D"].set_xlabel("refractory period (steps)")
    axes["E"].set_xlabel("bursting threshold")
    axes["F"].set_xlabel("hold (steps)")
    axes["D"].legend(frameon=False, fontsize=6)
    for model in MODELS:
        colour = figures.COLOURS[model]
        for letter, when in (("G", "untrained"), ("H", "trained")):
            count = numbers[f"{model}_{when}_window"][0]
            axes[letter].plot(np.arange(1, len(count) + 1), count, color=colour, label=model)
        counts = np.array(numbers[f"{model}_counts"])
        figures.mean_and_sd(axes["I"], step, counts[:, :, 0], color=colour)
        figures.mean_and_sd(axes["I"], step, counts[:, :, 1], color=colour, linestyle=":")
    for letter, when in (("G", "untrained"), ("H", "trained")):
        axes[letter].set(xlabel=f"Euler step, {when} network", ylabel="synapses changed so far", yscale="log")
    axes["H"].legend(frameon=False, fontsize=6, loc="lower right")
    figures.steps_axis(axes["I"], "synapses changed per step")
    axes["I"].autoscale(axis="y")
    axes["I"].set_yscale("log")
    return figure
