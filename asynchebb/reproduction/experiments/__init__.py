"""The paper's experiments, and some beyond it: one module each, with the members of `Experiment`.

`reproduce.py` computes their runs with the machinery of sweeps and passes the results to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from asynchebb.reproduction.claims import Claim, Numbers
from asynchebb.reproduction.results import Key, Results
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure


class Experiment(Protocol):
    """An experiment of the reproduction, as a module."""

    @property
    def __name__(self) -> str: ...
    @property
    def TITLE(self) -> str:
        """The heading of its section in the report."""

    @property
    def CLAIMS(self) -> Sequence[Claim]:
        """The claims about its numbers, with the margins by which they are judged."""

    def runs(self, scale: Scale) -> Mapping[Key, Run]:
        """The runs it needs, by keys of its own."""

    def measure(self, scale: Scale, results: Results) -> Numbers:
        """Its numbers, by reading, measure and seed."""

    def captions(self, scale: Scale) -> dict[str, str]:
        """The captions of its figures, by figure name."""

    def draw(self, scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
        """Its figures, by name."""
