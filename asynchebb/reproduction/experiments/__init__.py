"""The paper's experiments, and some beyond it: one module each, with the members of `Experiment`.

`reproduce.py` has their runs computed by the same machinery as a sweep's, and passes them on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from asynchebb.reproduction.claims import Claim, Numbers
from asynchebb.reproduction.results import Key, Results
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Experiment(Protocol):
    """An experiment of the reproduction, as a module."""

    @property
    def __name__(self) -> str: ...
    @property
    def TITLE(self) -> str:
        """What it is about."""

    @property
    def CLAIMS(self) -> Sequence[Claim]:
        """What is claimed of its numbers, and by which margins that is judged."""

    def runs(self, scale: Scale) -> Mapping[Key, Run]:
        """What to run, by keys of the experiment's own."""

    def measure(self, scale: Scale, results: Results) -> Numbers:
        """Numbers by reading, measure and seed."""

    def captions(self, scale: Scale) -> dict[str, str]:
        """Those of its figures, by their names."""

    def draw(self, scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
        """The figures."""
