"""Follow-up to claim 1b: are the discrete network's fields bars on a background?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asynchebb import metrics
from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import NOTEBOOK, PRESET, over_training, readings, seeds, sets
from asynchebb.reproduction.results import SHARES, Kept, Key, Results, are_bars, most_active
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Bars on a background"
DRAWN = (PRESET, NOTEBOOK)


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (name, seed): over_training(scale, reading, "discrete", seed)
        for name, reading in readings(scale).items()
        for seed in seeds(scale, name)
    }


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    numbers: dict[str, dict[str, list[float]]] = {name: {} for name in readings(scale)}
    for name, seed in results:
        fields = np.asarray(results[name, seed]["W"][-1])
        shown = metrics.without_background(fields[most_active(results[name, seed])])
        counted = metrics.count_fields(shown, bars)
        found = metrics.count_fields(metrics.without_background(fields), bars).distinct
        for measured, value in (
            ("bars", counted.single / len(shown)),
            ("crosses", counted.mixed / len(shown)),
            ("factors", found / len(bars.factors())),
        ):
            numbers[name].setdefault(f"discrete_{measured}", []).append(value)
    return numbers


CLAIMS = (
    Claim(
        "1b′",
        "Fig. 1I",
        "With the background removed, the discrete network's fields are single bars.",
        "learns precisely bars",
        {f"discrete_{name}": f"{says}, without background" for name, says in SHARES.items()},
        tuple(Part(f"{part.says} (without background)", part.holds) for part in are_bars("discrete")),
        "without background, {discrete_bars} of the 100 most active fields are single bars and {discrete_crosses} "
        "crosses, and {discrete_factors} of the bars are found.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "background": "The 100 most active fields of the discrete network (seed 0) as they are (A, D) and after "
        "subtracting the background, each field's median weight (B, E). (C, F) Cosine of these fields with the nearest "
        f"bar, as they are (grey) and without background (green); dotted: {metrics.MATCH}, above which a field counts "
        f"as a bar. Readings: {PRESET} (top) and {NOTEBOOK} (bottom)."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABC", "DEF"], (7.2, 4.6))
    factors, shape = sets(scale)[0].factors(), (scale.p, scale.p)
    for letters, reading in zip(("ABC", "DEF"), DRAWN, strict=True):
        kept: Kept = results[reading, 0]
        raw = np.asarray(kept["W"][-1])[most_active(kept)]
        clean = metrics.without_background(raw)
        order = np.arange(float(len(raw)))[::-1]
        for letter, fields, says in ((letters[0], raw, "as they are"), (letters[1], clean, "without background")):
            figures.mosaic(axes[letter], fields, shape, order)
            axes[letter].set_title(says, fontsize=8)
        for fields, colour in ((raw, "grey"), (clean, figures.COLOURS["discrete"])):
            nearest = [metrics.weight_similarity(fields, np.broadcast_to(bar, fields.shape)) for bar in factors]
            axes[letters[2]].hist(np.max(nearest, axis=0), [*np.linspace(0, 1, 26)], color=colour, alpha=0.6)
        axes[letters[2]].axvline(metrics.MATCH, color="black", linestyle=":", linewidth=0.8)
        axes[letters[2]].set(xlabel="cosine with the nearest bar", ylabel="fields", xlim=(0, 1))
    return {"background": figure}
