"""Where a result comes from: what identifies it, which versions made it, on which machine.

One policy holds for everything that is saved. A run is identified by the values that determine it and by
RESULTS_VERSION, which stands for the model's equations and engines; so is a model that was learned, with its data. What
was measured of them depends on the code that measured it, and is identified by `code()` as well.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import os
import platform
import stat
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from asynchebb import equations, sources
from asynchebb.checks import ADDED_LATER, InputError, frozen
from asynchebb.measures import Measure

# Incremented by a release whose results differ from the previous one's, so that saved runs are run again.
RESULTS_VERSION = 3

PACKAGES = ("asynchebb", "numpy", "numba", "scipy", "scikit-learn", "matplotlib", "xarray")


def identity(value: Any, *arrays: np.ndarray) -> str:
    """A name for what is determined by these values and by large arrays: the same on any machine, and different if
    anything in them changes."""
    digest = hashlib.sha256(f"{RESULTS_VERSION} {describe(value)}".encode())
    for array in arrays:
        for block in _blocks(array):
            digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()[:20]


def _blocks(array: np.ndarray, at_once: int = 2**24) -> Iterable[np.ndarray]:
    """Some rows at a time: the array may be larger than memory."""
    rows = max(1, at_once // max(1, array[:1].nbytes))
    return (array[start : start + rows] for start in range(0, len(array), rows))


@cache
def code() -> str:
    """A digest of the package's code, without comments and docstrings."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(sources.text(ast.parse(file.read_text(encoding="utf-8"))).encode())
    return digest.hexdigest()


def describe(value: Any) -> str:
    """A canonical description of a value: class, fields, contents of arrays."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):  # 100 and 100.0 are the same constant
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": content, "shape": value.shape, "dtype": str(value.dtype)}
    if isinstance(value, Measure):
        return {"measure": value.digest}
    if hasattr(value, "digest"):
        return {"class": type(value).__name__, "digest": value.digest}
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        cls: type = type(value)
        frozen(f"{cls.__name__}(...)", value)
        constants = {name: field for name, field in equations.constants(value).items() if not _is_tacit(value, name)}
        if _is_ours(cls):
            return {"class": cls.__name__, **{name: _plain(field) for name, field in constants.items()}}
        fields = {name: _of_file(field) or _plain(field) for name, field in constants.items()}
        return {"class": cls.__name__, **_code(value), **fields}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    raise InputError(f"{value!r} has no fields that identify it; make its class a frozen dataclass")


def contents(value: Any) -> str:
    """Identify the arrays and files that a value's parts use: all that can change while the value stays the same."""
    digest = hashlib.sha256()
    for part in _changeable(value):
        digest.update(json.dumps(part).encode())
    return digest.hexdigest()


def _changeable(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield _plain(value)
    elif isinstance(value, Measure):
        pass
    elif hasattr(value, "digest"):
        yield value.digest
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        for item in value:
            yield from _changeable(item)
    elif not isinstance(value, type):
        for field in equations.constants(value).values():
            file = None if _is_ours(type(value)) else _of_file(field)
            yield from [file] if file else _changeable(field)


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("asynchebb.")


def _of_file(field: Any) -> dict[str, str] | None:
    """What a field stands for that names a file; None if it names none."""
    if not isinstance(field, str | Path):
        return None
    try:
        found = Path(field).stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        return {"file": Path(field).name, "content": _digest_of(str(field), found.st_mtime_ns, found.st_size)}
    except (OSError, ValueError):  # a text that cannot be a file's name
        return None


@lru_cache(maxsize=1000)
def _digest_of(file: str, changed: int, size: int) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _code(value: Any) -> dict[str, Any]:
    """What identifies a user-defined class besides its name: its equations, which use nothing else, or its source."""
    cls: type = type(value)
    if any(all(hasattr(cls, method) for method in methods) for methods in equations.METHODS.values()):
        return {"code": equations.fingerprint(cls), "floor": getattr(value, "floor", 0)}
    return {"source": sources.digest(cls)}


def _is_tacit(value: Any, name: str) -> bool:
    """Is this a field added in a later version, at its default value?"""
    field = getattr(type(value), "__dataclass_fields__", {}).get(name)
    return field is not None and ADDED_LATER in field.metadata and getattr(value, name) == field.default


@cache
def versions() -> dict[str, str]:
    """The versions of Python and of the packages that a result may depend on."""
    return {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}


def versions_in_files() -> dict[str, str]:
    """The versions as attributes of a run's or a model's file."""
    return {f"{package}_version": versions()[package] for package in ("python", "asynchebb", "numpy", "numba")}


def machine() -> dict[str, Any]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return {"processor": processor, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}
