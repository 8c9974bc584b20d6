"""The findings of a reproduction: verdicts on claims, figures with captions, failures, and the time and memory used."""

from __future__ import annotations

from typing import Any, NamedTuple

from asynchebb.reproduction.claims import NOT_RUN, Claim, Verdict


class Judged(NamedTuple):
    """A claim, its verdict under each reading, and the overall verdict."""

    claim: Claim
    verdicts: dict[str, Verdict]
    overall: str

    def under(self, reading: str) -> str:
        return self.verdicts[reading].holds if reading in self.verdicts else NOT_RUN

    @property
    def tried(self) -> dict[str, Verdict]:
        """The verdicts under those readings for which it was judged."""
        return {reading: verdict for reading, verdict in self.verdicts.items() if verdict.holds != NOT_RUN}


class Finding(NamedTuple):
    """The outcome of one experiment."""

    name: str
    title: str
    figures: dict[str, str]  # captions by figure name
    claims: list[Judged]


class Outcome(NamedTuple):
    scale: str
    findings: list[Finding]
    failures: dict[str, str]  # errors by run name
    work: dict[str, Any]  # runs, steps, time and memory (effort.py)
