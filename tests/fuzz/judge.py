"""What became of a case. The judgement is strict."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import asynchebb
from asynchebb.checks import InputError
from asynchebb.runs.simulate import Diverged

from . import odd
from .verdicts import CLEAR, RAW, SCIKIT, SILENT, UNNAMED, WORKS, Verdict

if TYPE_CHECKING:
    from .library import Case

PACKAGE = str(Path(asynchebb.__file__).parent)
LONGEST = 600  # letters of a message that a person still reads
# What an error says of what is accepted, or of what to do.
ACCEPTED = re.compile(
    r"\b(must|needs?|may|are|[Uu]se|pass|clip|not finite|not from|cannot be read|not a model|but \w+ \w+)\b"
)


def judge(case: Case) -> Verdict:
    with _quiet() as ignored:
        try:
            found = case.result()
        except KeyboardInterrupt:
            raise
        except AssertionError as error:  # a door's own
            verdict = Verdict(SILENT, str(error))
        except BaseException as error:
            verdict = of_error(error, case.words())
            if case.fate == odd.WORKS:
                verdict = Verdict(RAW, f"plain arguments are refused: {verdict.says}", verdict.place)
        else:
            verdict = _of_result(case, found)
    return Verdict(RAW, ignored[0], "ignored in a destructor") if ignored else verdict


@contextlib.contextmanager
def _quiet() -> Iterator[list[str]]:
    """Nothing is printed; yields what Python would report as ignored, as it does for errors in destructors."""
    ignored: list[str] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda error: ignored.append(f"ignored: {error.exc_value}")
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield ignored
    finally:
        sys.unraisablehook = before


def of_error(error: BaseException, words: list[str]) -> Verdict:
    kind, frames = type(error).__name__, traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    place = f"{Path(ours[-1].filename).relative_to(PACKAGE)}:{ours[-1].lineno}" if ours else "?"
    try:
        says = str(error)
    except Exception as second:
        return Verdict(RAW, f"{kind}, whose text fails: {second!r}", place)
    shown = f"{kind}: {says[:200]}"
    last = frames[-1]
    if isinstance(error, Diverged | FloatingPointError) and last in ours:
        return Verdict(CLEAR, shown, place)
    raised = last in ours and linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise ")
    if isinstance(error, InputError) or (raised and isinstance(error, ValueError | TypeError)):
        if "\n" in says or len(says) > LONGEST:
            return Verdict(RAW, f"{kind} of {says.count(chr(10)) + 1} lines, {len(says)} letters: {says[:100]}", place)
        named = any(word.lower() in says.lower() for word in words) and ACCEPTED.search(says)
        return Verdict(CLEAR if named else UNNAMED, shown, place)
    scikit = "sklearn" in last.filename and isinstance(error, ValueError | TypeError)
    return Verdict(SCIKIT if scikit else RAW, shown, f"{place} < {Path(last.filename).name}:{last.lineno}")


def _of_result(case: Case, found: Any) -> Verdict:
    if case.fate == odd.REFUSED:
        return Verdict(SILENT, "was accepted")
    numbers = [*_numbers(found)]
    if case.fate == odd.SAME:
        wanted = [*_numbers(case.wanted())]
        if [each.shape for each in numbers] != [each.shape for each in wanted]:
            return Verdict(SILENT, "gives another shape than the plain value")
        for ours, theirs in zip(numbers, wanted, strict=True):
            if not np.allclose(ours, theirs, rtol=1e-3, atol=1e-6, equal_nan=case.door.may_diverge):
                return Verdict(SILENT, "gives other numbers than the plain value")
    elif not (case.fate == odd.ANYTHING or case.door.may_diverge or all(np.isfinite(each).all() for each in numbers)):
        return Verdict(SILENT, "gives numbers that are not finite")
    return Verdict(WORKS)


def _numbers(found: Any) -> Iterator[np.ndarray]:
    """All numbers in what a door gives."""
    if isinstance(found, dict):
        found = [*found.values()]
    if isinstance(found, list | tuple):
        for one in found:
            yield from _numbers(one)
    elif found is not None:
        yield np.asarray(found, float)
