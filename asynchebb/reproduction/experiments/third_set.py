"""Follow-up: the last of three sets in succession, which is learned slowly.

Would more time, more neurons or other sets change that, and is the first set retained?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers
from asynchebb.reproduction.readings import PRESET, READINGS, in_succession
from asynchebb.reproduction.results import Key, Results, ends
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run
from asynchebb.stimuli import Crossbars, Diagonals, Digits, Squares

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "The third set"
COMPARED = ("asynchronous", "discrete")  # the discrete one only where neither steps nor neurons are varied
CLAIMS: tuple[Claim, ...] = ()


class Variant(NamedTuple):
    shown: tuple[type, ...] = (Crossbars, Squares, Diagonals)
    longer: int = 1  # multiplies the steps on each set
    wider: int = 1  # multiplies the number of neurons


VARIANTS = {
    "as in figure 3": Variant(),
    "4 × the steps": Variant(longer=4),
    "2 × the neurons": Variant(wider=2),
    "Diagonals, then Squares": Variant((Crossbars, Diagonals, Squares)),
    "Squares, then Digits": Variant((Crossbars, Squares, Digits)),
    "Digits, then Squares": Variant((Crossbars, Digits, Squares)),
    "Digits, then Diagonals": Variant((Crossbars, Digits, Diagonals)),
}


def runs(scale: Scale) -> dict[Key, Run]:
    found: dict[Key, Run] = {}
    for name, variant in VARIANTS.items():
        large = scale._replace(n=scale.n * variant.wider, steps_per_phase=scale.side_steps * variant.longer)
        shown = tuple(stimulus(scale.p) for stimulus in variant.shown)
        for model in COMPARED if variant.wider == variant.longer == 1 else COMPARED[:1]:
            snapshots = 3 if variant == Variant() else 1  # as in figure 3, so that it is the same run
            found[name, model] = in_succession(large, READINGS[PRESET], model, shown, snapshots=snapshots)
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list[float]] = {}
    for name, model in results:
        kept = results[name, model]
        error, last = np.asarray(kept["error_last"]), ends(kept)
        measures[f"{model}, {name}: untrained"] = error[0].tolist()
        measures[f"{model}, {name}: learnt"] = [float(error[end, number]) for number, end in enumerate(last)]
        measures[f"{model}, {name}: end"] = error[-1].tolist()
    return {PRESET: measures}


def captions(scale: Scale) -> dict[str, str]:
    return {
        "third-set": f"Reading: {PRESET}. Error on each of three sets shown in succession (columns, in this order): "
        "untrained (pale bar), at the end of the set's own phase (open circle) and at the end of training (filled "
        f"circle). Where the two circles coincide, the set is retained. {scale.side_steps:,} steps per set, one seed. "
        "All sets but the first are our choice."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure = figures.Figure(figsize=(9, 3.6), layout="constrained")
    panels = [*figure.subplots(2, 4, sharey=True).flat]
    for panel in panels[len(VARIANTS) :]:
        panel.set_axis_off()
    for panel, (name, variant) in zip(panels, VARIANTS.items(), strict=False):
        for offset, model in ((-0.15, "asynchronous"), (0.15, "discrete")):
            if (name, model) not in results:
                continue
            colour, place = figures.COLOURS[model], np.arange(3) + offset
            untrained, learnt, end = (
                numbers[PRESET][f"{model}, {name}: {when}"] for when in ("untrained", "learnt", "end")
            )
            panel.bar(place, untrained, 0.28, color=colour, alpha=0.15)
            panel.plot(place, learnt, "o", markerfacecolor="white", color=colour, markersize=5)
            panel.plot(place, end, "o", color=colour, markersize=3, label=model)
        panel.set_xticks(range(3), [stimulus.__name__ for stimulus in variant.shown], fontsize=6)
        panel.set_title(name, fontsize=7)
        panel.set_ylim(0, 0.8)
    figure.axes[0].legend(frameon=False, fontsize=6)
    figure.axes[0].set_ylabel("reconstruction error")
    figure.axes[4].set_ylabel("reconstruction error")
    return {"third-set": figure}
