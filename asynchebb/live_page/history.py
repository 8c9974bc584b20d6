"""What a live page remembers: curves of the measures, and snapshots for its file. Neither grows without bound."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from asynchebb import engines, metrics, provenance
from asynchebb.live_page.setting import name_of
from asynchebb.measures import factors_of
from asynchebb.network import State
from asynchebb.runs import recording
from asynchebb.runs.recording import Stop
from asynchebb.runs.run import Run
from asynchebb.runs.simulate import Snapshot, test_stimuli, tested

Item = TypeVar("Item")

MOST_POINTS = 400  # of a curve
MOST_BYTES = 2**26  # of snapshots


class Thinned(Generic[Item]):
    """A sequence that never holds more than `most` items: once full, it drops every second one and, from then on,
    takes only every second new one. The last is always there."""

    def __init__(self, most: int) -> None:
        self._most, self._stride, self._count = most, 1, 0
        self._kept: list[Item] = []
        self._last: list[Item] = []  # if it was not kept

    def add(self, item: Item) -> None:
        self._last = [] if self._count % self._stride == 0 else [item]
        if not self._last:
            self._kept.append(item)
        self._count += 1
        if len(self._kept) > self._most:
            self._kept = self._kept[::2]
            self._stride *= 2

    @property
    def items(self) -> list[Item]:
        return self._kept + self._last


class Tested(NamedTuple):
    """A test of one network on each set."""

    sets: tuple[str, ...]
    snapshot: Snapshot
    tuned_to: np.ndarray  # (n,) the factor that each field shows (`metrics.tuned_to`); all −1 if none are known

    def of(self, measure: str, name: str) -> Any:
        """A measure on one of the sets; NaN if it was not tested."""
        values = self.snapshot.measures[measure]
        return values[self.sets.index(name)] if name in self.sets else np.full(values.shape[1:], np.nan)


class Point(NamedTuple):
    """All networks at one moment."""

    stop: Stop
    networks: tuple[Tested, ...]
    updates: tuple[float, ...]  # synapses changed per step since the point before


def test(run: Run, step: int, state: State, engine: str) -> Tested:
    """Test a state that nobody else changes; raises `Diverged`."""
    snapshot = engines.result_of(
        tested(run, 0, step, state, {}, test_stimuli(run), lambda steps: None, engine == "gpu"), engine
    )
    known = factors_of(run.phases[-1].stimulus)
    tuned = metrics.tuned_to(state.W, known["factors"]) if known else np.full(run.network.n, -1)
    return Tested(tuple(name_of(probe.stimulus) for probe in run.probes), snapshot, tuned)


class History:
    """Tests of the networks since the start."""

    def __init__(self, bytes_per_point: int) -> None:
        self.curve: Thinned[Point] = Thinned(MOST_POINTS)
        self.states: Thinned[Point] = Thinned(max(4, MOST_BYTES // bytes_per_point))

    def add(self, point: Point) -> None:
        nothing = State(*(np.empty(0) for _ in State._fields))
        light = (one._replace(snapshot=one.snapshot._replace(state=nothing)) for one in point.networks)
        self.curve.add(point._replace(networks=tuple(light)))
        self.states.add(point)

    @property
    def latest(self) -> Point | None:
        return self.curve.items[-1] if self.curve.items else None


def netcdf(run: Run, engine: str, points: list[tuple[Stop, Tested]], **attributes: Any) -> bytes:
    """A run's file. Its snapshots are those that were kept, and its identity is not that of a planned run."""
    names = [name_of(probe.stimulus) for probe in run.probes]
    snapshots = []
    for _, one in points:
        measures = {
            measure: np.array([one.of(measure, name) for name in names], np.float64)
            for measure in one.snapshot.measures
        }
        snapshots.append(one.snapshot._replace(measures=measures))
    identity = provenance.identity((run.network, run.phases, run.seed, *attributes.values()))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.nc"
        recording.write(run, engine, file, snapshots, [stop for stop, _ in points], identity=identity, **attributes)
        return file.read_bytes()
