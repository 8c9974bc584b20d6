"""Input checks: each error is one sentence that names the argument, its value and what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field, is_dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

ADDED_LATER = "added later"


class InputError(ValueError):
    """An argument that cannot be used; the message names it, its value and what is accepted.

    >>> try:
    ...     ah.Crossbars(p=1)
    ... except ah.InputError as error:
    ...     print(error)
    Crossbars.p is 1; it must be a whole number of at least 2
    """


def real(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"{name} is {value!r}; it must be a finite number")


def positive(name: str, value: object) -> None:
    real(name, value)
    if not value > 0:  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}; it must be a number above 0")


def non_negative(name: str, value: object) -> None:
    real(name, value)
    if not value >= 0:  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}; it must be a number of at least 0")


def fraction(name: str, value: object) -> None:
    real(name, value)
    if not 0 <= value <= 1:  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}; it must be a number from 0 to 1")


def at_least(least: int) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}")

    return check


def true_or_false(name: str, value: object) -> None:
    if not isinstance(value, bool | np.bool):
        raise InputError(f"{name} is {value!r}; it must be True or False")


def one_of(name: str, value: object, accepted: Collection[str]) -> None:
    if value not in accepted:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(accepted)}")


def frozen(name: str, value: object) -> None:
    """A dataclass must not change once its run has been identified."""
    cls = type(value)
    if is_dataclass(cls) and cls.__setattr__ is object.__setattr__:
        raise InputError(
            f"{name} is {value!r}, whose class can be changed afterwards; it must be a @dataclass(frozen=True)"
        )


def added_later(default: Any, repr: bool = True) -> Any:
    """A dataclass field that older versions lack: at its default it does not enter a run's identity, so that runs
    saved by those versions are still found."""
    return field(default=default, repr=repr, metadata={ADDED_LATER: True})


def checked(**checks: Callable[[str, Any], Any]) -> Callable[[type[T]], type[T]]:
    """Class decorator for dataclasses: each field named here must pass its check when an instance is created.

    A check may return a replacement for the field's value, such as a tuple for a list. A `__post_init__` that the class
    already has is called last.
    """

    def decorate(cls: type[T]) -> type[T]:
        own = getattr(cls, "__post_init__", None)

        def __post_init__(self: T) -> None:
            for name, check in checks.items():
                value = getattr(self, name)
                instead = check(f"{cls.__name__}.{name}", value)
                if isinstance(value, np.generic):  # as a Python number it prints and rounds like the others
                    instead = value.item()
                if instead is not None:
                    object.__setattr__(self, name, instead)
            if own:
                own(self)

        cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
        return cls

    return decorate


def weights(name: str, array: np.ndarray) -> None:
    if not np.min(array) >= 0:  # the engines rely on it: inhibition never raises a drive
        raise InputError(f"{name} has weights that are negative or not a number; all must be at least 0")


def stimuli(name: str, X: object, m: int | None = None) -> np.ndarray:
    """X as a 2-D float array of stimuli in [0, 1], m pixels each."""
    try:
        X = np.asarray(X)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; it must be (samples, {m or 'm'})") from None
    if X.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {X.dtype}; it must hold real numbers in [0, 1]")
    pixels = "m" if m is None else m
    if X.ndim != 2 or (m is not None and X.shape[1] != m):
        raise InputError(f"{name} has shape {X.shape}; it must be (samples, {pixels})")
    # min and max propagate NaN, so two passes over X detect every bad value.
    if X.size and not (X.min() >= 0 and X.max() <= 1):
        bad = X[~((X >= 0) & (X <= 1))][0]
        raise InputError(f"{name} holds {bad}; stimuli must be finite and in [0, 1]")
    return X
