"""The paper's open question: does the asynchronous network behave in the same way with spiking neurons?

Five parts, each with the members of an experiment: what is learned from crossed bars (`forming`), with which settings
(`varying`), what becomes of it as spikes become small (`limit`), what is kept of three sets in succession (`keeping`),
and natural images (`photographs`). Where the paper makes a claim about its rate network, the same margins are applied.
The other margins were set after single pilot runs at some of the settings; V2′, V5, V6 and V9′ were added, and V11 made
stricter, once first results were known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynchebb.reproduction.claims import Claim, Numbers
from asynchebb.reproduction.experiments.spiking import forming, keeping, limit, photographs, varying
from asynchebb.reproduction.results import Key, Results
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Spiking neurons: the paper's open question"
PARTS = {"forming": forming, "varying": varying, "limit": limit, "keeping": keeping, "photographs": photographs}


def _number(claim: Claim) -> tuple[int, str]:
    """V9′ comes after V9 and before V10."""
    return int(claim.id.strip("V′")), claim.id


CLAIMS: list[Claim] = sorted((claim for part in PARTS.values() for claim in part.CLAIMS), key=_number)


def runs(scale: Scale) -> dict[Key, Run]:
    return {(name, *key): run for name, part in PARTS.items() for key, run in part.runs(scale).items()}


def measure(scale: Scale, results: Results) -> Numbers:
    numbers: dict[str, dict[str, list[float]]] = {}
    for name, part in PARTS.items():
        for reading, measures in part.measure(scale, results.of(name)).items():
            numbers.setdefault(reading, {}).update({measured: [*values] for measured, values in measures.items()})
    return numbers


def captions(scale: Scale) -> dict[str, str]:
    return {figure: caption for part in PARTS.values() for figure, caption in part.captions(scale).items()}


def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    drawn: dict[str, Figure] = {}
    for name, part in PARTS.items():
        drawn |= part.draw(scale, results.of(name), numbers)
    return drawn
