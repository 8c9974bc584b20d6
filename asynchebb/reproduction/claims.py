"""A claim of the paper as something that can fail: what it says, and the margins by which it is judged.

Margins are fixed before anything is run, from what the sentence says, and are not changed to fit what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

# What was measured: of each reading, each measure for each seed.
Numbers = Mapping[str, Mapping[str, Sequence[float]]]

HOLDS, IN_PART, FAILS, NOT_RUN = "holds", "holds in part", "does not hold", "not run"


class Means(dict[str, float]):
    """Each measure's mean over seeds, as v.name or v["name"]."""

    def __getattr__(self, name: str) -> float:
        return self[name]


class Part(NamedTuple):
    """One thing that a claim says, as a question to the means over seeds."""

    says: str
    holds: Callable[[Means], bool]
    is_given: bool = False  # without it the claim would say nothing; alone it does not make the claim hold in part


class Claim(NamedTuple):
    id: str
    where: str  # in the paper, or "ours"
    says: str  # in our words
    paper: str  # what the paper says of it
    shows: Mapping[str, str]  # the measures that it is judged by, and what they are
    parts: Sequence[Part]
    # If it does not hold: what happens, and what was tried. {measure} stands for that of the presets' reading.
    instead: str = ""


class Verdict(NamedTuple):
    """Of one claim under one reading."""

    holds: str
    parts: dict[str, bool]
    mean: dict[str, float]
    sd: dict[str, float | None]  # over seeds; None of one
    values: dict[str, list[float]]  # of each seed
    seeds: dict[str, int]  # for how many seeds each part holds on its own


def judge(claim: Claim, measures: Mapping[str, Sequence[float]]) -> Verdict:
    """A claim holds if all its parts do, and in part if some do beyond those that are given.

    It is not judged where none of its measures was taken.
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
    """It holds if it does under the presets' reading, and in part if it does so there or holds under another one.

    A claim that is not judged under the presets' reading is so under those that it is judged under.
    """
    judged = {reading: verdict.holds for reading, verdict in verdicts.items() if verdict.holds != NOT_RUN}
    if preset in judged:
        return IN_PART if judged[preset] == FAILS and HOLDS in judged.values() else judged[preset]
    all_alike = {*judged.values()}
    return NOT_RUN if not judged else all_alike.pop() if len(all_alike) == 1 else IN_PART
