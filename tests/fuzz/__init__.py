"""Odd values for every argument of the library, and odd words for every command.

`python -m tests.fuzz` tries them all, `--seed N` others drawn at random, and counts what came of them (`judge.py`).
"""

from __future__ import annotations

from typing import Any

POOLS = ("library", "commands")


def cases(pool: str, seed: int | None = None) -> list[Any]:
    """All cases of the library or of the command line; each has a name, and can be `judged`."""
    from . import commands, library

    return {"library": library, "commands": commands}[pool].cases(seed)
