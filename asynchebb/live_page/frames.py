"""Frames as the page receives them: the length of a header, the header (JSON), then arrays one after the other.

The header lists the arrays under "parts": name, network, type, shape and position of each. Numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from asynchebb.live_page.history import Point
from asynchebb.live_page.playback import Playback, Recent
from asynchebb.live_page.simulation import Simulation

COLUMNS = 200  # of the raster: at most so many, each a few steps wide
TRACE = 300  # points of a neuron's rate


def packed(header: dict[str, Any], parts: Iterable[tuple[str, int, np.ndarray]]) -> bytes:
    listed, pieces, position = [], [], 0
    for name, network, array in parts:
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        data += b"\0" * (-len(data) % 8)  # so that the next array is aligned
        listed.append([name, network, array.dtype.name, array.shape, position])
        pieces.append(data)
        position += len(data)
    text = json.dumps({**header, "parts": listed}, allow_nan=False).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return b"".join([struct.pack("<I", len(text)), text, *pieces])


def unpacked(frame: bytes) -> tuple[dict[str, Any], dict[tuple[str, int], np.ndarray]]:
    """The header and the arrays by name and network."""
    (length,) = struct.unpack_from("<I", frame)
    header, start = json.loads(frame[4 : 4 + length]), 4 + length
    arrays = {}
    for name, network, dtype, shape, position in header["parts"]:
        count = int(np.prod(shape))
        arrays[name, network] = np.frombuffer(frame, dtype, count, start + position).reshape(shape)
    return header, arrays


def of_tests(simulation: Simulation, points: list[Point]) -> list[tuple[str, int, np.ndarray]]:
    """The arrays that change only when the networks have been tested."""
    names = [*simulation.sets]
    parts = [("curve_step", 0, np.array([point.stop[2] for point in points], np.float64))]
    for number in range(len(simulation.states)):
        parts += _curves(points, number, names)
        if points:
            latest = points[-1].networks[number]
            parts.append(("tuned_to", number, latest.tuned_to.astype(np.int16)))
            parts.append(("activity", number, _of_present(latest, "mean_activity", names).astype(np.float32)))
    return parts


def of_networks(playback: Playback, selected: Iterable[int]) -> list[tuple[str, int, np.ndarray]]:
    """The arrays that change all the time."""
    shape = playback.simulation.setting.shape
    parts: list[tuple[str, int, np.ndarray]] = []
    for number, state in enumerate(playback.simulation.states):
        W, y, recent = playback.fields(number), playback.rates(number), playback.recent(number)
        with np.errstate(over="ignore", invalid="ignore"):
            x = playback.seen[number].x if playback.seen else np.zeros(W.shape[1], W.dtype)
            parts += [
                ("stimulus", number, grey(x[None], shape, 1.0)[0]),
                ("reconstruction", number, grey((y @ W)[None], shape)[0]),
                ("fields", number, grey(W, shape)),
                ("raster", number, raster(recent, y.size)),
                ("rates", number, _bytes(y / max(float(y.max()), 1e-30))),
            ]
            for neuron in selected:
                parts += _neuron(neuron, number, state.M[neuron], recent)
    return parts


def grey(rows: np.ndarray, shape: tuple[int, ...], largest: float | None = None) -> np.ndarray:
    """Images (k, height, width) as grey levels, each by its own largest value unless one is given.

    With ON and OFF channels they show ON − OFF, and 128 is zero.
    """
    images = rows.reshape(len(rows), *shape)
    signed = len(shape) == 3
    images = images[:, 0] - images[:, 1] if signed else images
    top = np.abs(images).max(axis=(1, 2), keepdims=True) if largest is None else np.array(largest, images.dtype)
    images = images / np.where(top > 0, top, 1)
    return _bytes((images + 1) / 2 if signed else images)


def _bytes(values: np.ndarray) -> np.ndarray:
    return (255 * np.nan_to_num(values, nan=0, posinf=1, neginf=0).clip(0, 1)).astype(np.uint8)


def raster(recent: Recent, n: int) -> np.ndarray:
    """Pairs (column, neuron) at which an active neuron's gate is open at some step of the column."""
    steps = len(recent.burst)
    if not steps:
        return np.zeros((0, 2), np.uint16)
    step, neuron = np.nonzero(recent.burst & (recent.y > 0))
    column = step * min(steps, COLUMNS) // steps
    unique = np.unique(column * n + neuron)
    return np.stack([unique // n, unique % n], axis=1).astype(np.uint16)


def _neuron(neuron: int, network: int, lateral: np.ndarray, recent: Recent) -> list[tuple[str, int, np.ndarray]]:
    """Lateral weights, rate and bursts of the neuron that someone looks at."""
    wide = max(1, -(-len(recent.y) // TRACE))
    rate, bursts = recent.y[::wide, neuron], np.flatnonzero(recent.burst[:, neuron] & (recent.y[:, neuron] > 0))
    return [
        (f"lateral {neuron}", network, np.nan_to_num(lateral).astype(np.float32)),
        (f"rate {neuron}", network, np.nan_to_num(rate).astype(np.float32)),
        (f"bursts {neuron}", network, bursts.astype(np.uint16)),
    ]


def _curves(points: list[Point], number: int, names: list[str]) -> list[tuple[str, int, np.ndarray]]:
    errors = np.array([[point.networks[number].of("error", name) for name in names] for point in points], np.float32)
    present = {
        name: [float(_of_present(point.networks[number], name, point.networks[number].sets)) for point in points]
        for name in ("gini", "active_neurons")
    }
    parts = [("error", number, errors.reshape(len(points), len(names)))]
    parts += [(name, number, np.array(values, np.float32)) for name, values in present.items()]
    return [*parts, ("updates", number, np.array([point.updates[number] for point in points], np.float32))]


def _of_present(tested: Any, measure: str, names: Iterable[str]) -> Any:
    """On the set that is shown, which is the last one."""
    return tested.of(measure, [*names][-1])
