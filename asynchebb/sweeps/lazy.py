"""Lazily read arrays over all runs of a sweep, following xarray's guide to writing a backend.

A module of its own because it imports xarray.
"""

from __future__ import annotations

import warnings
from typing import Any

import h5py
import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from asynchebb import files
from asynchebb.runs.layout import STATE
from asynchebb.sweeps.folder import DAMAGED, DamagedRuns, Points


def at_end(points: Points, identities: np.ndarray, name: str, sizes: tuple[int, ...], verify: bool) -> Any:
    """A variable at the end of each run, over the grid; each run's values are read from its file on access."""
    return indexing.LazilyIndexedArray(AtEnd(points, identities, name, sizes, verify))


class AtEnd(BackendArray):
    def __init__(self, points: Points, identities: np.ndarray, name: str, sizes: tuple[int, ...], verify: bool) -> None:
        self.folder, self.identities, self.name, self.sizes = points.folder, identities, name, sizes
        self.verify = verify
        self.shape = identities.shape + sizes
        self.dtype = np.dtype(points.content["dtype"] if name in STATE else "float64")

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple) -> np.ndarray:
        grid_key, rest = key[: self.identities.ndim], key[self.identities.ndim :]
        chosen = np.asarray(self.identities[grid_key], object)
        inner = np.broadcast_to(np.bool(), self.sizes)[rest].shape
        parts = np.empty((chosen.size, *inner), self.dtype)
        for number, identity in enumerate(chosen.ravel()):
            parts[number] = self._one(identity)[rest]
        return parts.reshape(chosen.shape + inner)

    def _one(self, identity: str) -> np.ndarray:
        """The values of one run, NaN if it is damaged; those of a smaller network are padded with NaN."""
        whole = np.full(self.sizes, np.nan, self.dtype)
        file = self.folder.file(identity, "nc")
        if self.verify and file.exists() and not files.is_whole(file):
            warnings.warn(f"{file} {DAMAGED}; its values are NaN, and the same sweep runs it again", DamagedRuns, 2)
        elif self.folder.file(identity, "json").exists():
            with files.reading("folder", file), h5py.File(file) as run:
                end = run[self.name][-1]
                end = end[-1] if self.name not in STATE else end
                whole[tuple(map(slice, end.shape))] = end
        return whole
