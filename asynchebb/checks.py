"""Input checks: each error is one sentence that names the argument, its value and what is accepted.

A check returns the value to go on with, which is Python's or NumPy's own and so prints, compares and is saved alike.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np

from asynchebb.memory import available

T = TypeVar("T")

ADDED_LATER = "added later"
SHOWN = 100  # letters of a value in an error message
LARGEST_WHOLE = 2**63 - 1  # that engines and files can count
LARGEST_NAME, LARGEST_PATH = 200, 4000  # bytes; file systems take 255 and 4,095, and temporary names are longer
PLENTY = 2**26  # bytes that are not asked for: to ask takes as long as to draw a small network
LARGEST = 1e150  # whose square is still a finite number


class InputError(ValueError):
    """An argument that cannot be used; the message names it, its value and what is accepted.

    >>> try:
    ...     ah.Crossbars(p=1)
    ... except ah.InputError as error:
    ...     print(error)
    Crossbars.p is 1; it must be a whole number of at least 2
    """


def shown(value: object) -> str:
    """Show any value in one line of an error message."""
    try:
        text = repr(value)
    except Exception:  # of a class of the user's own, or because a number has too many digits
        text = "\n"
    if "\n" in text:
        return f"a value of class {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


# Numbers


def real(name: str, value: object) -> int | float:
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool | np.timedelta64):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} is {shown(value)}; it must be a finite number")
    return int(number) if isinstance(value, Integral) and abs(number) < 2**53 else number


def positive(name: str, value: object) -> int | float:
    if not (number := real(name, value)) > 0:
        raise InputError(f"{name} is {number!r}; it must be a number above 0")
    return number


def non_negative(name: str, value: object) -> int | float:
    if not (number := real(name, value)) >= 0:
        raise InputError(f"{name} is {number!r}; it must be a number of at least 0")
    return number


def fraction(name: str, value: object) -> int | float:
    if not 0 <= (number := real(name, value)) <= 1:
        raise InputError(f"{name} is {number!r}; it must be a number from 0 to 1")
    return number


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def at_least(least: int, most: int = LARGEST_WHOLE) -> Callable[[str, object], int]:
    def check(name: str, value: object) -> int:
        if not is_whole(value) or int(value) < least:
            raise InputError(f"{name} is {shown(value)}; it must be a whole number of at least {least}")
        if int(value) > most:
            raise InputError(f"{name} is {shown(value)}; it must be a whole number of at most {most:,}")
        return int(value)

    return check


def memory(name: str, value: object, needed: float) -> None:
    """Refuse a value for which more memory would be needed than there is: the system would kill the process."""
    if needed > PLENTY and needed > (free := available()):
        raise InputError(
            f"{name} is {shown(value)}; it must be smaller: that needs {needed / 1e9:,.1f} GB of memory, and "
            f"{free / 1e9:,.1f} GB are free"
        )


def true_or_false(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool):
        raise InputError(f"{name} is {shown(value)}; it must be True or False")
    return bool(value)


def or_none(check: Callable[[str, Any], T]) -> Callable[[str, Any], T | None]:
    def check_unless_none(name: str, value: Any) -> T | None:
        try:
            return None if value is None else check(name, value)
        except InputError as error:
            raise InputError(f"{error}, or None") from None

    return check_unless_none


# Names, values and files


def one_of(name: str, value: object, accepted: Collection[str]) -> str:
    if not isinstance(value, str) or value not in accepted:
        raise InputError(f"{name} is {shown(value)}; it must be one of {', '.join(accepted)}")
    return str(value)


def is_list(values: object) -> TypeGuard[Iterable]:
    """May these be several values, in an order? A text, an array and a dict are one."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | set | frozenset | np.ndarray)


def some_of(name: str, values: object, accepted: Collection[str]) -> tuple[str, ...]:
    if not is_list(values):
        raise InputError(f"{name} is {shown(values)}; it must be a tuple of names out of {', '.join(accepted)}")
    return tuple(one_of(name, value, accepted) for value in values)


def instance(name: str, value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise InputError(f"{name} is {shown(value)}; it must be a {kind.__name__}")
    return value


def several(name: str, values: object, kind: type[T], least: int = 0) -> tuple[T, ...]:
    """A tuple, of a single value or of those in a list."""
    if isinstance(values, kind):
        return (values,)
    if not is_list(values):
        raise InputError(f"{name} is {shown(values)}; it must be a {kind.__name__}, or a list of them")
    found = []
    for value in values:  # the first wrong one ends it, since an iterator may have no end
        if not isinstance(value, kind):
            raise InputError(f"{name} holds {shown(value)}; it must hold only {kind.__name__}(...)")
        found.append(value)
    if len(found) < least:
        raise InputError(f"{name} is empty; it must hold at least one {kind.__name__}")
    return tuple(found)


def function(name: str, value: object) -> Callable[..., Any]:
    if not callable(value):
        raise InputError(f"{name} is {shown(value)}; it must be a function")
    return value


def path(name: str, value: object) -> Path:
    try:
        text = os.fspath(value)  # type: ignore[call-overload]
        encoded = [os.fsencode(part) for part in Path(text).parts]  # of bytes, Path takes none
        fits = bool(text) and "\0" not in text and len(os.fsencode(text)) <= LARGEST_PATH
        fits = fits and max(map(len, encoded), default=0) <= LARGEST_NAME and not re.match(r"\w\w+:/", text)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            f"{name} is {shown(value)}; it must be the path of a file or folder on this machine, with names of at most "
            f"{LARGEST_NAME} bytes"
        )
    return Path(text)


def frozen(name: str, value: object) -> None:
    """A dataclass must not change once its run has been identified."""
    cls = type(value)
    if is_dataclass(cls) and cls.__setattr__ is object.__setattr__:
        raise InputError(
            f"{name} is {shown(value)}, whose class can be changed afterwards; it must be a @dataclass(frozen=True)"
        )


def added_later(default: Any, repr: bool = True) -> Any:
    """A dataclass field that older versions lack: at its default it does not enter a run's identity, so that runs
    saved by those versions are still found."""
    return field(default=default, repr=repr, metadata={ADDED_LATER: True})


def checked(**checks: Callable[[str, Any], Any]) -> Callable[[type[T]], type[T]]:
    """Class decorator for dataclasses: each field named here holds what its check makes of the value given.

    A `__post_init__` that the class already has is called last.
    """

    def decorate(cls: type[T]) -> type[T]:
        own = getattr(cls, "__post_init__", None)

        def __post_init__(self: T) -> None:
            for name, check in checks.items():
                object.__setattr__(self, name, check(f"{cls.__name__}.{name}", getattr(self, name)))
            if own:
                own(self)

        cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
        return cls

    return decorate


# Arrays


def array(name: str, values: object, shape: str) -> np.ndarray:
    """Real numbers as an array; `shape` says what it must be."""
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked entries; it must be an array {shape} without, so fill them first")
    try:
        found = np.asarray(values)
    except Exception as error:  # of the user's class, or rows of different lengths
        raise InputError(f"{name} has rows of different lengths, or cannot be read; it must be {shape}") from error
    if found.dtype.kind not in "fiub":
        is_array = isinstance(values, np.ndarray | list | tuple)
        has = f"has dtype {found.dtype}" if is_array else f"is {shown(values)}"
        raise InputError(f"{name} {has}; it must hold real numbers, {shape}")
    return found


def matrix(name: str, values: object, shape: str = "(n, m)") -> np.ndarray:
    """Finite numbers in float64, with as many axes as `shape` has."""
    found = array(name, values, shape)
    if found.ndim != shape.count(",") + 1 - shape.count(",)") or not found.size:
        raise InputError(f"{name} has shape {found.shape}; it must be {shape}, with at least one number")
    found = np.asarray(found, np.float64)
    if not (found.min() > -LARGEST and found.max() < LARGEST):  # both propagate NaN
        bad = found[~(np.abs(found) < LARGEST)][0]
        raise InputError(f"{name} holds {bad}; it must hold finite numbers between −{LARGEST:g} and {LARGEST:g}")
    return found


def weights(name: str, array: np.ndarray) -> None:
    if not np.min(array) >= 0:  # the engines rely on it: inhibition never raises a drive
        raise InputError(f"{name} has weights that are negative or not a number; all must be at least 0")


def stimuli(name: str, values: object, m: int | None = None) -> np.ndarray:
    """X as a 2-D float array of stimuli in [0, 1], m pixels each."""
    shape = f"(samples, {'m' if m is None else m})"
    X = array(name, values, shape)
    if X.ndim != 2 or (m is not None and X.shape[1] != m):
        raise InputError(f"{name} has shape {X.shape}; it must be {shape}")
    # min and max propagate NaN, so two passes over X detect every bad value.
    if X.size and not (X.min() >= 0 and X.max() <= 1):
        bad = X[~((X >= 0) & (X <= 1))][0]
        raise InputError(f"{name} holds {bad}; stimuli must be finite and in [0, 1]")
    return X
