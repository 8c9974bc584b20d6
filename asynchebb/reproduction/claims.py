"""The paper's claims in testable form: what each one says, and the margins by which it is judged.

Margins are set from the wording of the claim before anything is run, and are not adjusted to the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

# Measurements: for each reading and each measure, one value per seed.
Numbers = Mapping[str, Mapping[str, Sequence[float]]]

HOLDS, IN_PART, FAILS, NOT_RUN = "holds", "holds in part", "does not hold", "not run"


class Means(dict[str, float]):
    """The mean of each measure over seeds, as v.name or v["name"]."""

    def __getattr__(self, name: str) -> float:
        return self[name]


class Part(NamedTuple):
    """One criterion of a claim, tested on the means over seeds."""

    says: str
    holds: Callable[[Means], bool]
    is_given: bool = False  # a precondition, which alone does not make the claim hold in part


class Claim(NamedTuple):
    id: str
    where: str  # where the paper says it, or "ours"
    says: str  # in our words
    paper: str  # what the paper says
    shows: Mapping[str, str]  # the measures by which it is judged, with descriptions
    parts: Sequence[Part]
    # If it does not hold: what happens instead, and what was tried. {measure} stands for its value under the presets'
    # reading.
    instead: str = ""


class Verdict(NamedTuple):
    """The verdict on one claim under one reading."""

    holds: str
    parts: dict[str, bool]
    mean: dict[str, float]
    sd: dict[str, float | None]  # over seeds; None if there is only one
    values: dict[str, list[float]]  # one per seed
    seeds: dict[str, int]  # the number of individual seeds for which each part holds


def judge(claim: Claim, measures: Mapping[str, Sequence[float]]) -> Verdict:
    """A claim holds if all its parts hold, and holds in part if any part other than a precondition does.

    It is not judged if none of its measures was taken.
    """
    missing = [name for name in claim.shows if name not in measures]
    if len(missing) == len(claim.shows):
        return Verdict(NOT_RUN, {}, {}, {}, {}, {})
    if missing:
        raise ValueError(f"claim {claim.id} shows {', '.join(missing)}, which is not measured; is it misspelt?")
    mean = {name: float(np.mean(measures[name])) for name in claim.shows}
    values = {name: [*measures[name]] for name in claim.shows}
    sd = {name: float(np.std(of, ddof=1)) if len(of) > 1 else None for name, of in values.items()}
    parts = {part.says: bool(part.holds(Means(mean))) for part in claim.parts}
    some = any(parts[part.says] for part in claim.parts if not part.is_given)
    holds = HOLDS if all(parts.values()) else IN_PART if some else FAILS
    each = [Means(zip(values, of_seed, strict=True)) for of_seed in zip(*values.values(), strict=False)]
    seeds = {part.says: sum(bool(part.holds(one)) for one in each) for part in claim.parts}
    return Verdict(holds, parts, mean, sd, values, seeds)


def overall(verdicts: Mapping[str, Verdict], preset: str) -> str:
    """The verdict under the presets' reading; a claim that fails there but holds under another reading holds in part.

    For a claim not judged under the presets' reading: the verdict shared by all readings under which it is judged, or
    "holds in part" if they differ.
    """
    judged = {reading: verdict.holds for reading, verdict in verdicts.items() if verdict.holds != NOT_RUN}
    if preset in judged:
        return IN_PART if judged[preset] == FAILS and HOLDS in judged.values() else judged[preset]
    all_alike = {*judged.values()}
    return NOT_RUN if not judged else all_alike.pop() if len(all_alike) == 1 else IN_PART
