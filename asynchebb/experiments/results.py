"""The runs of an experiment, opened when they are asked for, and what several experiments measure of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from asynchebb import metrics
from asynchebb.engines import advance
from asynchebb.experiments.readings import PAPER
from asynchebb.recording import state_at
from asynchebb.simulate import Run

Key = tuple  # what a run is called in its experiment: ("Potential", "discrete", 0)
MOST_ACTIVE = 100  # fields that the paper shows


class Results(Mapping[Key, Any]):
    """Kept runs by the experiment's own names for them, each an open HDF5 file."""

    def __init__(self, runs: Mapping[Key, Run], folder: Path, engine: str) -> None:
        self.runs, self.engine, self._folder = runs, engine, folder
        self._open: dict[str, h5py.File] = {}

    def __getitem__(self, key: Key) -> h5py.File:
        identity = self.runs[key].identity
        if identity not in self._open:
            self._open[identity] = h5py.File(self._folder / f"{identity}.nc")
        return self._open[identity]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()


def activity(kept: Any, snapshot: int = -1) -> np.ndarray:
    """Mean rates in the first test, by default at the end of the run."""
    return np.asarray(kept["mean_activity"][snapshot, PAPER])


def most_active(kept: Any, snapshot: int = -1) -> np.ndarray:
    return np.argsort(-activity(kept, snapshot), kind="stable")[:MOST_ACTIVE]


def fields(kept: Any, stimulus: Any, snapshot: int = -1) -> dict[str, float]:
    """Shares of bars and crosses among the fields that the paper shows, of the most active neurons; and of all factors,
    the share that is found."""
    shown = most_active(kept, snapshot)
    counted = metrics.count_fields(kept["W"][snapshot][shown], stimulus)
    return {
        "bars": counted.single / len(shown),
        "crosses": counted.mixed / len(shown),
        "factors": factors_found(kept, stimulus, snapshot),
    }


def factors_found(kept: Any, stimulus: Any, snapshot: int = -1) -> float:
    """The share of the factors that some neuron's field shows."""
    return metrics.count_fields(kept["W"][snapshot], stimulus).distinct / len(stimulus.factors())


def similarity(
    kept: Any, other: Any, weights: str = "W", snapshot: int = -1, of_other: int | None = None
) -> np.ndarray:
    """cos of each neuron's weights in two networks of the same start, at the same step; its snapshot in the other one
    may have another number."""
    of_other = snapshot if of_other is None else of_other
    assert kept["step"][snapshot] == other["step"][of_other], "snapshots of different moments"
    return metrics.weight_similarity(kept[weights][snapshot], other[weights][of_other])


def window(results: Results, key: Key, snapshot: int, presentations: int) -> dict[str, np.ndarray]:
    """What happens at each step of some presentations from a snapshot on, learning as the run does."""
    run, kept = results.runs[key], results[key]
    phase = run.phases[0]
    X = phase.stimulus.sample(np.random.default_rng(snapshot % len(kept["step"])), presentations)
    names = ("updates", "y", "burst")
    seen = advance(run.network, state_at(kept, snapshot), X, phase.hold, results.engine, names, phase.from_rest)[1]
    return seen | {"X": X}


def products(run: Run, seen: Mapping[str, np.ndarray]) -> np.ndarray:
    """Synapses whose Hebbian product, y_i x_j or y_i y_j, is not 0 while neuron i may learn, at each step."""
    pre = (seen["y"] > 0).sum(axis=1) + np.repeat((seen["X"] > 0).sum(axis=1), run.phases[0].hold)
    return ((seen["y"] > 0) & seen["burst"]).sum(axis=1) * pre
