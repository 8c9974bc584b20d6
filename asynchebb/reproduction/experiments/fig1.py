"""Figure 1: what the three models learn from crossed bars, and how well and how sparsely they represent them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from asynchebb import metrics
from asynchebb.contracts import FactoredStimulus
from asynchebb.drawing import figures
from asynchebb.network import MODELS
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import NOTEBOOK, PAPER, PRESET, SETTLED, readings, seeds, sets, three_models
from asynchebb.reproduction.results import SHARES, Kept, Key, Results, are_bars, fields
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Representation learning in the three models"
DRAWN = {"fig1": PRESET, "fig1-notebook": NOTEBOOK}


def runs(scale: Scale) -> dict[Key, Run]:
    return three_models(scale)


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    numbers: dict[str, dict[str, list[float]]] = {name: {} for name in readings(scale)}
    for name, model, seed in results:
        for measured, value in _measure(results[name, model, seed], bars).items():
            numbers[name].setdefault(f"{model}_{measured}", []).append(value)
    return numbers


def _measure(kept: Kept, bars: FactoredStimulus) -> dict[str, float]:
    learning = np.asarray(kept["trace_y"][-1], np.float64)
    error = np.asarray(kept["error"][:, PAPER])
    late = len(error) // 2
    last = len(kept["trace_active"]) // (len(kept["step"]) - 1)
    return {
        **fields(kept, bars),
        "error": float(error[-1]),
        "error_settled": float(kept["error_last"][-1, SETTLED]),
        "unsteadiness": float(np.std(np.diff(error[late:]))),
        "gini": float(kept["gini"][-1, PAPER]),
        "gini_learning": metrics.gini(learning),
        "active": float(kept["active_neurons"][-1, PAPER]),
        "active_learning": float(np.mean(kept["trace_active"][-last:])),
        "wide_learning": float(np.count_nonzero(learning > learning.max() / 10)),
    }


def _shows(measures: dict[str, str], models: Sequence[str] = tuple(MODELS)) -> dict[str, str]:
    return {f"{model}_{name}": f"{says}, {model}" for name, says in measures.items() for model in models}


def _more_in_continuous(name: str, says: str) -> Part:
    return Part(
        f"{says}: at least a tenth more than in both other models",
        lambda v: v[f"continuous_{name}"] >= 1.1 * max(v[f"asynchronous_{name}"], v[f"discrete_{name}"]),
    )


def _less_in_continuous(name: str, way: str) -> tuple[Part, Part]:
    return (
        Part(
            f"asynchronous and discrete differ by at most 0.05 ({way})",
            lambda v: abs(v[f"asynchronous_{name}"] - v[f"discrete_{name}"]) <= 0.05,
        ),
        Part(
            f"continuous is at least 0.05 below both ({way})",
            lambda v: v[f"continuous_{name}"] + 0.05 <= min(v[f"asynchronous_{name}"], v[f"discrete_{name}"]),
        ),
    )


CLAIMS = (
    Claim(
        "1a",
        "Fig. 1G",
        "Shown crosses, the asynchronous network learns their parts: its fields are single bars.",
        "learns a factorised representation",
        _shows(SHARES, ["asynchronous"]),
        are_bars("asynchronous"),
        "{asynchronous_bars} of the 100 most active fields are bars, {asynchronous_crosses} crosses, and "
        "{asynchronous_factors} of the bars are found.",
    ),
    Claim(
        "1b",
        "Fig. 1I",
        "So does the discrete network.",
        "learns precisely bars",
        _shows(SHARES, ["discrete"]),
        are_bars("discrete"),
        "{discrete_factors} of the bars are found, but by our templates (cosine above 0.85) only {discrete_bars} of "
        "the 100 most active fields are single bars, and {discrete_crosses} are crosses.",
    ),
    Claim(
        "1c",
        "Fig. 1H",
        "The continuous network learns the crosses themselves.",
        "does not decompose into bars, but develops fields that contain crosses",
        _shows({name: SHARES[name] for name in ("bars", "crosses")}, ["continuous"]),
        (
            Part("more than half of the 100 most active fields are crosses", lambda v: v.continuous_crosses > 0.5),
            Part(
                "some are crosses, and there are at least four of them per single bar",
                lambda v: v.continuous_crosses > 0 and v.continuous_crosses >= 4 * v.continuous_bars,
            ),
        ),
        "{continuous_crosses} of the continuous network's 100 most active fields are crosses, and {continuous_bars} "
        "are single bars.",
    ),
    Claim(
        "1d",
        "Fig. 1D",
        "The asynchronous and discrete networks reach the same error; the continuous network's error stays higher and "
        "less steady.",
        "very similar learning; the same error at convergence; the continuous one is less stable and does not reach it",
        _shows(
            {
                "error": "error, mean over 150 steps",
                "error_settled": "error at step 500",
                "unsteadiness": "standard deviation of its change between snapshots, second half of training",
            }
        ),
        (
            Part(
                "asynchronous and discrete differ by at most 0.05 (mean over 150 steps)",
                lambda v: abs(v.asynchronous_error - v.discrete_error) <= 0.05,
            ),
            Part(
                "asynchronous and discrete differ by at most 0.05 (settled)",
                lambda v: abs(v.asynchronous_error_settled - v.discrete_error_settled) <= 0.05,
            ),
            Part(
                "continuous is at least 0.05 above both (mean over 150 steps)",
                lambda v: v.continuous_error >= max(v.asynchronous_error, v.discrete_error) + 0.05,
            ),
            Part(
                "continuous is at least 0.05 above both (settled)",
                lambda v: (
                    v.continuous_error_settled >= max(v.asynchronous_error_settled, v.discrete_error_settled) + 0.05
                ),
            ),
            Part(
                "continuous is at least 1.5 times as unsteady as both",
                lambda v: v.continuous_unsteadiness >= 1.5 * max(v.asynchronous_unsteadiness, v.discrete_unsteadiness),
            ),
        ),
        "once rates have settled, the error is {asynchronous_error_settled} (asynchronous), {discrete_error_settled} "
        "(discrete) and {continuous_error_settled} (continuous); measured as in the paper, over the first 150 steps of "
        "a presentation, it is {asynchronous_error}, {discrete_error} and {continuous_error}. From one snapshot to the "
        "next, in the second half of training, it changes by {asynchronous_unsteadiness}, {discrete_unsteadiness} and "
        "{continuous_unsteadiness} (standard deviation).",
    ),
    Claim(
        "1e",
        "Fig. 1E",
        "More neurons are active in the continuous network.",
        "on average more neurons are active in the continuous model",
        _shows(
            {
                "active": "active neurons per step, frozen",
                "active_learning": "active neurons per step, while learning",
                "wide_learning": "neurons above a tenth of the largest mean rate, while learning",
            }
        ),
        (
            _more_in_continuous("active", "neurons active per step, frozen"),
            _more_in_continuous("active_learning", "neurons active per step, while learning"),
            _more_in_continuous("wide_learning", "neurons above a tenth of the largest mean rate, while learning"),
        ),
        "while learning, {continuous_active_learning} neurons are active per step in the continuous network, "
        "{asynchronous_active_learning} in the asynchronous and {discrete_active_learning} in the discrete one; "
        "when frozen, {continuous_active}, {asynchronous_active} and {discrete_active}. In the last tenth of training, "
        "{continuous_wide_learning}, {asynchronous_wide_learning} and {discrete_wide_learning} neurons have more than "
        "a tenth of the largest mean rate.",
    ),
    Claim(
        "1f",
        "Fig. 1F",
        "Lifetime sparseness (Gini) is similar in the asynchronous and discrete networks, lower in the continuous one.",
        "the asynchronous network is about as sparse as the discrete one, which is sparser than the continuous one",
        _shows({"gini": "Gini, frozen", "gini_learning": "Gini, while learning"}),
        (*_less_in_continuous("gini", "frozen"), *_less_in_continuous("gini_learning", "while learning")),
        "while learning, Gini is {continuous_gini_learning} in the continuous, {asynchronous_gini_learning} in the "
        "asynchronous and {discrete_gini_learning} in the discrete network. When frozen for the test, as in App. E, it "
        "is {continuous_gini}, {asynchronous_gini} and {discrete_gini}.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        name: f"Reading: {reading}. (C) Six stimuli from each of the three sets. The paper describes only the first; "
        "sets 2 and 3 are our choice. (D) Reconstruction error over training on crossed bars, mean over 150 steps of "
        "each test stimulus; error bars are the standard deviation over test stimuli. (E) Mean rates by rank, "
        "relative to the largest; solid: over the last tenth of training, dotted: in the test of the frozen network. "
        "(F) Their Gini coefficients; dark: while learning, pale: in the test; error bars are the standard deviation "
        "over seeds. (G–I) Receptive fields of the 100 most active neurons, most active first, each scaled to its own "
        "largest weight (seed 0). Panels A and B of the paper's figure are diagrams."
        for name, reading in DRAWN.items()
    }


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    return {name: _draw(scale, results, numbers[reading], reading) for name, reading in DRAWN.items()}


@figures.styled
def _draw(scale: Scale, results: Results, numbers: Mapping[str, Sequence[float]], reading: str) -> Figure:
    figure, axes = figures.lettered(["CDEF", "GHI"], (7.2, 4.6), [1, 1.35])
    figures.stimuli(axes["C"], sets(scale), ["set 1", "set 2\n(our choice)", "set 3\n(our choice)"])
    of_reading = seeds(scale, reading)
    for offset, model in enumerate(MODELS):
        colour = figures.COLOURS[model]
        of = [results[reading, model, seed] for seed in of_reading]
        step = np.asarray(of[0]["step"])
        error = np.mean([kept["error"][:, PAPER] for kept in of], axis=0)
        spread = np.mean([kept["error_sd"][:, PAPER] for kept in of], axis=0)
        shift = (offset - 1) * step[-1] / 150
        axes["D"].errorbar(step + shift, error, spread, color=colour, label=model, elinewidth=0.6, capsize=1.2)
        for style, levels in (
            ("-", [np.sort(kept["trace_y"][-1])[::-1] for kept in of]),
            (":", [np.sort(kept["mean_activity"][-1, PAPER])[::-1] for kept in of]),
        ):
            axes["E"].plot(np.mean([level / max(level[0], 1e-12) for level in levels], axis=0), style, color=colour)
        for shift, name, alpha in ((-0.2, "gini_learning", 1.0), (0.2, "gini", 0.4)):
            values = numbers[f"{model}_{name}"]
            axes["F"].bar(
                offset + shift, np.mean(values), 0.38, yerr=np.std(values, ddof=1), color=colour, alpha=alpha, capsize=2
            )
        letter = dict(asynchronous="G", continuous="H", discrete="I")[model]
        figures.fields_at_end(axes[letter], of[0])
        axes[letter].set_title(model, color=colour)
    figures.steps_axis(axes["D"], "reconstruction error")
    axes["D"].set_ylim(0, 1)  # room for the legend
    axes["D"].legend(frameon=False, fontsize=6, loc="upper right")
    axes["E"].set(xlabel="neuron, by rank", ylabel="mean rate (largest = 1)", ylim=(0, 1))
    axes["F"].set(ylabel="Gini of mean rates", ylim=(0, 1), xticks=range(3), xticklabels=["async.", "cont.", "discr."])
    return figure
