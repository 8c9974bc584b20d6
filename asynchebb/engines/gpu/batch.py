"""Networks that one program runs: all their arrays in one piece of memory, so that a few large transfers do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from asynchebb import equations
from asynchebb.contracts import Call
from asynchebb.engines.gpu import program
from asynchebb.engines.gpu.program import Geometry
from asynchebb.network import Network

ALIGNED = 64  # a column of M begins at a multiple of so many numbers
BOUNDARY = 256  # an array begins at a multiple of so many bytes

# What happens to an array, in the order in which they are laid out: what is handed to the device is in one piece, and
# so are what is 0 there at first and what comes back. The host has no memory for the last two.
IN, IN_AND_OUT, OUT, ZEROED, SCRATCH = range(5)


class Array(NamedTuple):
    name: str
    section: int
    shape: tuple[int, ...]
    dtype: Any
    of: int = 0  # the identity of what it is a copy of, if calls may share it

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def arrays(call: Call, geometry: Geometry, memory: int = 0) -> Iterator[Array]:
    """All that the kernel works on for one network; where several blocks share it, they do so in so many bytes."""
    network, state, row = call.network, call.state, stride(call.network)
    real, weights = state.W.dtype, IN if network == network.frozen() else IN_AND_OUT
    yield Array("W", weights, state.W.shape, real, of=id(state.W))
    yield Array("P", weights, (network.n, row), real, of=id(state.M))
    yield Array("X", IN, call.X.shape, real)
    for kind in ("dynamics", "schedule", "rule"):
        yield Array(kind, IN, (len(equations.field_names(type(getattr(network, kind)))) + 1,), real)
    yield Array("numbers", IN_AND_OUT, (program.NUMBER_ROWS, row), real)
    yield Array("counts", IN_AND_OUT, (program.COUNT_ROWS, row), np.int64)
    yield Array("recent", IN_AND_OUT, state.recent.shape, np.uint8)
    for name, trace in call.traces._asdict().items():
        yield Array(_of_trace(name), OUT, trace.shape, trace.dtype)
    yield Array("settled", OUT, (0,) if call.settled is None else call.settled.shape, real)
    together = 64 + memory if geometry.wide > 1 else 64 if geometry.apart else 0
    yield Array("meeting", ZEROED, (together,), np.uint8)
    yield Array("lists", SCRATCH, (program.LIST_ROWS, row), np.int32)
    yield Array("truths", SCRATCH, (program.TRUTH_ROWS, row), np.uint8)
    if geometry.apart:
        yield Array("V", SCRATCH, (network.m, row), real)
        yield Array("remembered", SCRATCH, (2 * program.REMEMBERED, row), real)


def stride(network: Network) -> int:
    return -(-max(network.n, network.m) // ALIGNED) * ALIGNED


def bytes_of(call: Call, geometry: Geometry) -> int:
    """What a call takes of the GPU's memory, at most: less if it shares its weights with others."""
    records = 2 * program.record(call.state.W.dtype).itemsize
    return sum(_aligned(array.nbytes) for array in arrays(call, geometry)) + _aligned(records)


def _aligned(size: int) -> int:
    return -(-size // BOUNDARY) * BOUNDARY


def _of_trace(name: str) -> str:
    return name if name == "fired" else f"trace_{name}"


class Batch:
    """Calls in one piece of memory, which begins with a record for each: what the kernel is told of it, and where its
    arrays are. `size` bytes are needed on the device and `on_host` on the host; the slices are what is handed over, set
    to 0, and taken back."""

    def __init__(
        self, calls: Sequence[Call], told: Sequence[Mapping[str, Any]], geometry: Geometry, memory: int = 0
    ) -> None:
        self.calls, self.told, self.record = calls, told, program.record(calls[0].state.W.dtype)
        self.places: list[dict[str, tuple[int, Array]]] = [{} for _ in calls]
        needed = [[array for array in arrays(call, geometry, memory) if array.nbytes] for call in calls]
        known: dict[tuple[str, int, int], int] = {}
        end, ends = _aligned(self.record.itemsize * len(calls)), []
        for section in (IN, IN_AND_OUT, OUT, ZEROED, SCRATCH):
            for its, places in zip(needed, self.places, strict=True):
                for array in its:
                    if array.section == section:
                        key = array.name, section, array.of or id(places)
                        if key not in known:
                            known[key], end = end, _aligned(end + array.nbytes)
                        places[array.name] = known[key], array
            ends.append(end)
        self.size, self.on_host, self.given = ends[SCRATCH], ends[OUT], slice(0, ends[IN_AND_OUT])
        self.zeroed, self.taken = slice(ends[IN_AND_OUT], ends[ZEROED]), slice(ends[IN], ends[OUT])

    def fill(self, host: np.ndarray, address: int) -> None:
        """Write what is handed over, which will be at this address."""
        records, filled = np.ndarray(len(self.calls), self.record, host), set[int]()
        for k, (call, told, places) in enumerate(zip(self.calls, self.told, self.places, strict=True)):
            state, n, views = call.state, call.network.n, self._views(host, places, IN, IN_AND_OUT)
            if places["W"][0] not in filled:
                views["W"][...] = state.W
            if places["P"][0] not in filled:
                views["P"][:, :n], views["P"][:, n:] = state.M.T, 0
            filled |= {places["W"][0], places["P"][0]}
            if "X" in views:
                views["X"][...] = call.X
            for kind in ("dynamics", "schedule", "rule"):
                views[kind][...] = [*equations.constants(getattr(call.network, kind)).values(), 0]
            numbers, counts = views["numbers"], views["counts"]
            numbers[...] = counts[...] = 0
            numbers[program.U, :n], numbers[program.Y, :n], numbers[program.A, :n] = state.u, state.y, state.a
            counts[program.C, :n] = state.c
            if state.h.size:
                numbers[program.H, :n] = state.h
            if state.recent.size:
                views["recent"][...] = state.recent
                counts[program.SPIKES, :n] = state.recent.sum(axis=0, dtype=np.int64)
            addresses = {name: address + place for name, (place, _) in places.items()}
            content = {**dict.fromkeys(program.ARRAYS, 0), **told, **addresses}
            records[k] = tuple(content[name] for name in self.record.names or ())

    def take_back(self, host: np.ndarray) -> None:
        """Put what has come back into the calls' arrays."""
        for call, places in zip(self.calls, self.places, strict=True):
            state, n, views = call.state, call.network.n, self._views(host, places, IN_AND_OUT, OUT)
            if "W" in views:
                state.W[...], state.M.T[...] = views["W"], views["P"][:, :n]
            numbers, counts = views["numbers"], views["counts"]
            state.u[:], state.y[:], state.a[:] = (numbers[row, :n] for row in (program.U, program.Y, program.A))
            state.c[:] = counts[program.C, :n]
            if state.h.size:
                state.h[:] = numbers[program.H, :n]
            if state.recent.size:
                state.recent[...] = views["recent"]
            state.t[...] += len(call.X) * call.hold
            if "settled" in views and call.settled is not None:
                call.settled[...] = views["settled"]
            for name, trace in call.traces._asdict().items():
                if trace.size:
                    trace[...] = views[_of_trace(name)]

    def _views(
        self, host: np.ndarray, places: Mapping[str, tuple[int, Array]], *sections: int
    ) -> dict[str, np.ndarray]:
        return {
            name: np.ndarray(array.shape, array.dtype, host, place)
            for name, (place, array) in places.items()
            if array.section in sections
        }
