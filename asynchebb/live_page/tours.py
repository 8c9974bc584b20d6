"""Guided tours: a setting and two sentences each. All start from untrained weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asynchebb.contracts import Stimulus
from asynchebb.network import READINGS, Network
from asynchebb.schedules import Asynchronous
from asynchebb.stimuli import Crossbars, Diagonals, Squares

USUAL = READINGS["paper"]


@dataclass(frozen=True)
class Tour:
    title: str
    says: str
    models: tuple[tuple[str, dict[str, Any]], ...]  # each network's model, and what differs from its preset
    sets: tuple[Stimulus, ...] = (Crossbars(14),)
    stimuli_per_set: int = 0

    def networks(self, n: int, m: int) -> tuple[Network, ...]:
        return tuple(USUAL.network(model, n, m, **changes) for model, changes in self.models)


TOURS = {
    "refractoriness": Tour(
        "Why refractoriness matters",
        "Left, a neuron that has just learned may learn again at the next step; right, it has to wait for 100 steps. "
        "Without that pause many fields become whole crosses and some bars have no neuron of their own; with it, "
        "nearly every structured field is a single bar, and all 28 bars are found within a million steps.",
        (
            ("asynchronous", {"schedule": Asynchronous(USUAL.r_b, 0)}),
            ("asynchronous", {"schedule": Asynchronous(USUAL.r_b, 100)}),
        ),
    ),
    "no_waiting": Tour(
        "No need to wait",
        "Left, all neurons learn together, once the activity has settled at the end of each presentation; right, each "
        "learns by itself whenever it bursts. Both find the bars, though nothing tells the asynchronous network when "
        "a presentation ends.",
        (("discrete", {}), ("asynchronous", {})),
    ),
    "three_worlds": Tour(
        "Three worlds in a row",
        "Crosses, squares and diagonals follow each other, 1,200 stimuli each. Watch the errors on the earlier sets "
        "while a new one is learned: the asynchronous network (left) forgets less than the discrete one (right).",
        (("asynchronous", {}), ("discrete", {})),
        (Crossbars(14), Squares(14), Diagonals(14)),
        1200,
    ),
}
