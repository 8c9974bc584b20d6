"""Writing NetCDF-4 files through HDF5 directly, which for a small file takes a twentieth of h5netcdf's time.

NetCDF-4 is HDF5 with dimension scales: each dimension is a data set to which the variables' axes are
attached. Similar runs have files of the same layout, so an empty one is created once and copied.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from asynchebb import files

TEXT = h5py.string_dtype()
TEXT_TYPE = h5py.h5t.py_create(TEXT, logical=True)
SCALAR = h5py.h5s.create(h5py.h5s.SCALAR)
TEXT_BYTES, ROOM = 2**10, 2**16  # bytes reserved for a text, and for attributes
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable.%10d"  # required by the format


class Variable(NamedTuple):
    name: str
    axes: tuple[str, ...]
    dtype: str  # a NumPy type, or "text"
    meaning: str


class Writer:
    """An open file whose variables can be filled."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def put(self, name: str, array: np.ndarray) -> None:
        """Fill a whole variable."""
        variable = h5py.h5d.open(self._file.id, name.encode())
        variable.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(array))

    def __getitem__(self, name: str) -> h5py.Dataset:
        """A variable, to be filled piece by piece."""
        return self._file[name]


@contextmanager
def writing(
    path: Path, sizes: Mapping[str, int], variables: tuple[Variable, ...], attributes: Mapping[str, Any]
) -> Iterator[Writer]:
    empty = _empty(tuple(sizes.items()), variables)
    path.write_bytes(empty)
    files.reserve(path, len(empty) + sum(_bytes(variable, sizes) for variable in variables) + ROOM)
    with h5py.File(path, "r+") as file:
        for key, value in attributes.items():
            _attribute(file.id, key, value)
        yield Writer(file)


def _bytes(variable: Variable, sizes: Mapping[str, int]) -> int:
    item = TEXT_BYTES if variable.dtype == "text" else np.dtype(variable.dtype).itemsize
    return prod(sizes[axis] for axis in variable.axes) * item


@lru_cache(maxsize=64)
def _empty(sizes: tuple[tuple[str, int], ...], variables: tuple[Variable, ...]) -> bytes:
    """A file with these dimensions and variables, filled with NaN; without times: equal runs have equal files."""
    image = io.BytesIO()
    with h5py.File(image, "w", track_order=True) as file:
        for number, (name, size) in enumerate(sizes):
            scale = file.create_dataset(name, (size,), ">f4", track_times=False)
            scale.make_scale(NO_VARIABLE % size)
            _attribute(scale.id, "_Netcdf4Dimid", np.int32(number))
        for name, axes, dtype, meaning in variables:
            kind = TEXT if dtype == "text" else np.dtype(dtype)
            fill = kind.type(np.nan) if kind.kind == "f" else None
            shape = tuple(dict(sizes)[axis] for axis in axes)
            variable = file.create_dataset(name, shape, kind, fillvalue=fill, track_times=False)
            for number, axis in enumerate(axes):
                variable.dims[number].attach_scale(file[axis])
            if fill is not None:
                _attribute(variable.id, "_FillValue", fill)
            _attribute(variable.id, "long_name", meaning)
    return image.getvalue()


def _attribute(owner: Any, name: str, value: Any) -> None:
    if isinstance(value, str):
        h5py.h5a.create(owner, name.encode(), TEXT_TYPE, SCALAR).write(np.array(value, TEXT))
    else:
        value = np.asarray(value)
        space = h5py.h5s.create_simple(value.shape) if value.ndim else SCALAR
        h5py.h5a.create(owner, name.encode(), h5py.h5t.py_create(value.dtype), space).write(value)
