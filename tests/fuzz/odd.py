"""Odd values for an argument, each with what must become of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WORKS = "works"
REFUSED = "is refused"
MISFIT = "is refused beside plain arguments, which it does not fit"
SAME = "gives what the plain value gives, or is refused"
EITHER = "is refused, or gives finite numbers"
ANYTHING = "is refused, or gives numbers"


class Odd(NamedTuple):
    """An odd value, made when it is needed: some can be used only once."""

    name: str
    make: Callable[[], Any]
    fate: str = REFUSED
    like: Any = None  # the plain value that it stands for, if it is to give the SAME; None: that of the door


class Text(str):
    pass


class Whole(int):
    pass


class Number(float):
    pass


class Array(np.ndarray):
    pass


class NoRepr:
    """A value that cannot even be shown in an error message."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def _each(values: dict[str, Any], fate: str = REFUSED) -> list[Odd]:
    return [Odd(name, lambda value=value: value, fate) for name, value in values.items()]


def without(odds: Iterable[Odd], *names: str) -> list[Odd]:
    return [odd for odd in odds if odd.name not in names]


def allowed(odds: Iterable[Odd], *names: str) -> list[Odd]:
    """The same, but the door may take those of these names."""
    return [odd._replace(fate=EITHER) if odd.name in names else odd for odd in odds]


def refused(odds: Iterable[Odd]) -> list[Odd]:
    return [odd._replace(fate=REFUSED) for odd in odds]


# Never a number
NO_NUMBERS: dict[str, Any] = {
    "None": None,
    "text": "3",
    "empty text": "",
    "other letters": "é😀\u202e",
    "NumPy's text": np.str_("3"),
    "bytes": b"3",
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "10**400": 10**400,
    "Decimal nan": Decimal("nan"),
    "True": True,
    "np.True_": np.True_,
    "[]": [],
    "[1]": [1],
    "(1, 2)": (1, 2),
    "{}": {},
    "{1}": {1},
    "object()": object(),
    "a class": float,
    "1+0j": 1 + 0j,
    "float16 nan": np.float16("nan"),
    "0-d nan": np.array(np.nan),
    "array([])": np.array([]),
    "array([1, 2])": np.array([1, 2]),
    "array of a thousand": np.zeros((10, 100)),
    "range": range(3),
    "a function": len,
    "a date": np.datetime64("2020"),
    "a time": np.timedelta64(3, "s"),
    "a path": Path("x"),
    "masked": np.ma.masked,
    "long text": "9" * 10**5,
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
}
LARGE = {"1e308": 1e308, "10**30": 10**30, "2**63": 2**63, "1e-320": 1e-320, "0": 0, "-0.0": -0.0, "2**31": 2**31}


def _no_numbers() -> list[Odd]:
    return [
        *_each(NO_NUMBERS),
        Odd("a generator", lambda: (i for i in range(3))),
        Odd("no repr", NoRepr),
    ]


def _stand_ins(plain: float) -> list[Odd]:
    """The same number in other clothes."""
    rounded = np.float32(plain)
    values = {
        "np.float64": np.float64(plain),
        "np.longdouble": np.longdouble(plain),
        "0-d array": np.array(plain),
        "Fraction": Fraction(plain),
        "Decimal": Decimal(str(plain)),
        "subclass of float": Number(plain),
        "big-endian": np.array(plain, ">f8")[()],
    }
    if float(plain).is_integer() and abs(plain) < 100:
        values |= {
            "np.int8": np.int8(plain),
            "np.uint64": np.uint64(plain),
            "subclass of int": Whole(plain),
            "whole float": float(plain),
        }
    like = plain if float(rounded) == plain else float(rounded)
    return [*_each(values, SAME), Odd("np.float32", lambda: rounded, SAME, like)]


def numbers(plain: float, rng: np.random.Generator, negative: bool = False) -> list[Odd]:
    """Instead of a number of at least 0, or one that may be `negative`."""
    below = {"-1": -1, "-1e308": -1e308, "a number below 0": -float(rng.random() * 10.0 ** rng.integers(-9, 9))}
    others = {"another number": float(10.0 ** rng.uniform(-12, 6))}
    return [
        *_no_numbers(),
        *_each(below, EITHER if negative else REFUSED),
        *_each(LARGE | others, EITHER),
        *_stand_ins(plain),
    ]


def wholes(plain: int, rng: np.random.Generator, longest: int | None = None) -> list[Odd]:
    """Instead of a whole number of at least 0; of steps or samples, none that would only take long."""
    fractions = {"1.5": 1.5, "a fraction": float(rng.uniform(1, 9)), "1e308": 1e308, "1e-320": 1e-320, "-0.0": -0.0}
    below = {"-1": -1, "-1e308": -1e308, "a number below 0": -int(rng.integers(1, 10**9))}
    large = {name: value for name, value in LARGE.items() if name not in fractions}
    if longest is not None:
        large = {name: value for name, value in large.items() if not longest < value < 2**63}
    return [*_no_numbers(), *_each(fractions | below), *_each(large, EITHER), *_stand_ins(plain)]


def things(rng: np.random.Generator) -> list[Odd]:
    """Instead of a value of a class."""
    return refused(numbers(3, rng))


def flags(plain: bool, rng: np.random.Generator) -> list[Odd]:
    """Instead of True or False."""
    return [
        *without(things(rng), "True", "np.True_"),
        *_each({"True": True, "False": False}, EITHER),
        Odd("np.bool", lambda: np.bool(plain), SAME),
    ]


def names(plain: str, rng: np.random.Generator) -> list[Odd]:
    """Instead of a text out of a few."""
    near = {"other case": plain.swapcase(), "with a space": f"{plain} ", "in a list": [plain], "bytes": plain.encode()}
    letters = "".join(map(chr, rng.integers(32, 3000, 5)))
    return [
        *things(rng),
        *_each(near | {"letters": letters}),
        Odd("subclass of str", lambda: Text(plain), SAME, plain),
    ]


def several(rng: np.random.Generator) -> list[Odd]:
    """Instead of a list of values of a class."""
    within = [odd._replace(name=f"[{odd.name}]", make=lambda make=odd.make: [make()]) for odd in things(rng)]
    return [*things(rng), *within]


def arrays(
    plain: Any,
    rng: np.random.Generator,
    low: float | None = None,
    high: float | None = None,
    fixed: bool = False,
    empty: str = EITHER,
) -> list[Odd]:
    """Instead of an array of finite numbers, from `low` to `high`; `fixed`: other arguments must have its shape.

    `empty` is the fate of an array without rows.
    """
    A = np.asarray(plain, float)

    def put(value: Any, dtype: Any = float) -> np.ndarray:
        B = A.astype(dtype)
        B.flat[rng.integers(B.size)] = value
        return B

    def within(value: float) -> str:
        inside = (low is None or value >= low) and (high is None or value <= high)
        return EITHER if inside else REFUSED

    other = MISFIT if fixed else EITHER
    axes = other if A.ndim == 2 else REFUSED
    yes_or_no = A.mean() < A
    masked = np.ma.array(A, mask=yes_or_no if yes_or_no.any() else True)
    odds = [
        *_each(
            {
                "None": None,
                "text": "abc",
                "empty text": "",
                "number": 0.5,
                "nan": put(np.nan),
                "inf": put(np.inf),
                "-inf": put(-np.inf),
                "all nan": A * np.nan,
                "objects": A.astype(object),
                "object None": put(None, object),
                "complex": A + 0j,
                "imaginary": A + 1j,
                "texts": A.astype(str),
                "bytes": A.astype("S3"),
                "dates": np.zeros(A.shape, "M8[s]"),
                "times": np.ones(A.shape, "m8[s]"),
                "records": np.zeros(A.shape, [("a", float)]),
                "0-d": np.array(0.5),
                "more axes": A[..., None, None, None],
                "empty": np.empty((0, 0)),
                "no columns": A[..., :0],
                "ragged": [[0.1, 0.2], [0.3]],
                "dict": {"a": A},
                "set": {0.1},
                "object()": object(),
                "a class": np.ndarray,
                "a path": Path("nothing.npy"),
                "a missing file": "nothing.npy",
                "a folder": ".",
                "long text": "x" * 10**5,
                "masked entries": masked,
            }
        ),
        Odd("a generator", lambda: (row for row in A)),
        Odd("no repr", NoRepr),
        *_each({"no rows": A[:0]}, empty if A.ndim > 1 else REFUSED),
        *_each({"one column less": A[..., :-1]} if A.shape[-1] > 1 else {}, other),
        *_each({"one row less": A[:-1]} if len(A) > 1 else {}, other if A.ndim == 1 else EITHER),
        *_each({"another shape": np.zeros((A.shape[-1] + 1, len(A) + A.shape[-1] + 3))}, axes),
        *_each({"huge": put(1e308)}, within(1e308)),
        *_each({"a negative entry": put(-0.5), "all negative": -1 - A}, within(-0.5)),
        *_each({"an entry below 0": put(-1e-17)}, within(-1e-17)),
        *_each({"an entry above 1": put(2.0)}, within(2.0)),
        *_each({"int64": put(2**62, np.int64)}, within(2.0**62)),
        *_each({"zeros": A * 0, "denormal": A * 1e-320, "one row": A[:1]}, EITHER),
    ]
    wide = np.zeros((A.shape[0] * 2, *A.shape[1:]))
    wide[::2] = A
    fixed_array = A.copy()
    fixed_array.flags.writeable = False
    clothes = {
        "list": A.tolist(),
        "tuple": tuple(map(tuple, A.tolist())) if A.ndim == 2 else tuple(A.tolist()),
        "Fortran order": np.asfortranarray(A),
        "every other row": wide[::2],
        "backwards": np.ascontiguousarray(A[::-1])[::-1],
        "big-endian": A.astype(">f8"),
        "float32": A.astype(np.float32),
        "read-only": fixed_array,
        "subclass": A.view(Array),
        "longdouble": A.astype(np.longdouble),
        "masked array": np.ma.array(A),
    }
    odds += [Odd(name, lambda value=value: value, SAME, A) for name, value in clothes.items()]
    rounded = {
        "float16": A.astype(np.float16),
        "bool": yes_or_no,
        "int": yes_or_no.astype(int),
        "uint8": yes_or_no.astype(np.uint8),
        "one row for all": np.broadcast_to(A[:1], A.shape),
    }
    for name, value in rounded.items():
        odds.append(Odd(name, lambda value=value: value, SAME, np.array(value, float)))
    return [*odds, *([Odd("np.matrix", lambda: np.matrix(A), SAME, A)] if A.ndim == 2 else [])]


def paths(rng: np.random.Generator) -> list[Odd]:
    """Instead of a file that the package has written; `make_files` puts some of them into the present folder."""
    never = {
        "None": None,
        "number": 3,
        "fraction": 3.5,
        "True": True,
        "bytes": b"bytes.nc",
        "[]": [],
        "object()": object(),
        "NUL": "a\0b.nc",
        "300 letters": "x" * 300 + ".nc",
        "a folder of 300 letters": "y" * 300 + "/x.nc",
        "surrogate": "\ud800.nc",
    }
    perhaps = (
        *("", ".", "nothing.nc", "nothing", "empty.nc", "text.nc", "afolder.nc", "zeros.nc", "foreign.nc", "claims.nc"),
        *(
            "claims_model.nc",
            "cut.nc",
            "/dev/null",
            "/dev/null/x.nc",
            "/proc/nope/x.nc",
            "/dev/zero",
            "é😀\n.nc",
            "-.nc",
        ),
        *(" .nc", "~/none/x.nc", "z" * 250 + ".nc", "http://localhost:1/x.nc", "s3://x/y.nc", "dir/../nothing.nc"),
        *(Path("nothing.nc"), "".join(map(chr, rng.integers(33, 3000, 6))).replace("/", "") + ".nc"),
    )
    return [
        *_each(never),
        Odd("no repr", NoRepr),
        *(Odd(repr(value)[:40], lambda value=value: value, EITHER) for value in perhaps),
    ]


def make_files() -> None:
    """Files and folders in the present folder that are not what they seem."""
    import h5py

    Path("empty.nc").write_bytes(b"")
    Path("text.nc").write_text("hello")
    Path("zeros.nc").write_bytes(bytes(5000))
    Path("afolder.nc").mkdir(exist_ok=True)
    for name, attributes in {
        "foreign.nc": {},
        "claims.nc": {"format": "asynchebb run"},
        "claims_model.nc": {"format": "asynchebb model"},
    }.items():
        with h5py.File(name, "w") as file:
            file["x"] = 1
            file.attrs.update(attributes)
    Path("cut.nc").write_bytes(Path("foreign.nc").read_bytes()[:600])


def pairs(of: dict[str, list[Odd]], rng: np.random.Generator) -> Iterator[tuple[tuple[str, Odd], tuple[str, Odd]]]:
    """Endlessly, two arguments at once, each with an odd value."""
    while True:
        one, other = (list(of)[k] for k in rng.permutation(len(of))[:2])
        yield (one, of[one][rng.integers(len(of[one]))]), (other, of[other][rng.integers(len(of[other]))])
