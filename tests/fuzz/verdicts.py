"""What may become of a case. A module of its own, since the process that only counts need not import the package."""

from __future__ import annotations

from typing import NamedTuple

CLEAR = "refused clearly: the argument and what is accepted"
WORKS = "works"
SCIKIT = "refused by scikit-learn's own checks"
UNNAMED = "refused in a sentence that does not name the argument"
RAW = "raw traceback"
SILENT = "accepted and silently wrong"
CRASH = "the process died"
HANG = "no end"
KINDS = (CLEAR, WORKS, SCIKIT, UNNAMED, RAW, SILENT, CRASH, HANG)
FAULTS = (RAW, SILENT, CRASH, HANG)


class Verdict(NamedTuple):
    kind: str
    says: str = ""
    place: str = ""  # the package's line that raised the error
