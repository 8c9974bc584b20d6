"""What a reproduction has found: verdicts on claims, figures and their captions, failures, and what it took."""

from __future__ import annotations

from typing import Any, NamedTuple

from asynchebb.reproduction.claims import NOT_RUN, Claim, Verdict


class Judged(NamedTuple):
    """A claim, the verdict under each reading, and the one over all."""

    claim: Claim
    verdicts: dict[str, Verdict]
    overall: str

    def under(self, reading: str) -> str:
        return self.verdicts[reading].holds if reading in self.verdicts else NOT_RUN

    @property
    def tried(self) -> dict[str, Verdict]:
        """Those of the readings under which it was judged."""
        return {reading: verdict for reading, verdict in self.verdicts.items() if verdict.holds != NOT_RUN}


class Finding(NamedTuple):
    """What one experiment has given."""

    name: str
    title: str
    figures: dict[str, str]  # captions by the picture's name
    claims: list[Judged]


class Outcome(NamedTuple):
    scale: str
    findings: list[Finding]
    failures: dict[str, str]  # what was wrong with a run, by its name
    work: dict[str, Any]  # what it took, where
