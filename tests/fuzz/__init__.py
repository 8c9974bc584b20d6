"""Odd values for every argument of the public interface, and odd words for every command.

`python -m tests.fuzz` tries them all, `--seed N` others drawn at random, and counts what came of them (`judge.py`).
"""

from __future__ import annotations

from typing import Any


def pools(seed: int | None = None) -> dict[str, list[Any]]:
    """All cases of the Python interface and of the command line."""
    from . import api, commands

    return {"api": api.cases(seed), "commands": commands.cases(seed)}
