"""How values show themselves in a notebook: a table of their parts, and small pictures of stimuli and fields.

The values themselves call these functions, which therefore know them only by their attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from math import isqrt
from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.drawing import pages

SHOWN = 12  # stimuli
FIELDS = 36
PIXELS = 72  # height of a stimulus on the screen, at least
EQUATION = ("=", "←", "≥")  # a line of a docstring that has one of these is an equation


def network(network: Any) -> str:
    """The network's parts with their equations and constants."""
    rows = "".join(_row(kind, getattr(network, kind)) for kind in ("dynamics", "rule", "schedule", "weights"))
    return f"<b>Network</b> of {network.n:,} neurons with {network.m:,} inputs{_table(rows)}"


def run(run: Any) -> str:
    """The run's network, and what it is shown."""
    phases = "".join(
        f"<tr><td>phase {k}</td><td>{escape(repr(phase.stimulus))}: {phase.samples:,} stimuli, {phase.hold:,} Euler "
        f"steps each, {'from rest' if phase.from_rest else 'carried over'}</td>"
        f"<td>{_samples(phase.stimulus, 6)}</td></tr>"
        for k, phase in enumerate(run.phases)
    )
    about = f"seed {run.seed}, {run.dtype}, {run.steps:,} Euler steps; <code>{run.identity}</code>"
    return f"<b>Run</b> {about}{_table(phases)}{network(run.network)}"


def state(state: Any) -> str:
    """The fields of the neurons with the largest weights."""
    n, m = state.W.shape
    largest = np.argsort(-np.linalg.norm(state.W, axis=1), kind="stable")[:FIELDS]
    active = np.count_nonzero(state.y > 0)
    about = f"<b>State</b>: W {n:,} × {m:,}, M {n:,} × {n:,}; {active:,} active"
    pictures = _pictures(np.asarray(state.W[largest], np.float64), guessed_shape(m), own_scale=True)
    return f"{about}<br>{pictures}<br><small>fields with the largest weights</small>"


def stimulus(stimulus: Any) -> str:
    """Some samples."""
    return f"<code>{escape(repr(stimulus))}</code> {stimulus.m:,} pixels<br>{_samples(stimulus, SHOWN)}"


def guessed_shape(m: int) -> tuple[int, ...]:
    """As an image: a square, or else a row."""
    side = isqrt(m)
    return (side, side) if side * side == m else (1, m)


def _row(kind: str, value: Any) -> str:
    constants = ", ".join(f"{name} = {constant!r}" for name, constant in equations.constants(value).items())
    lines = equations.statement(type(value)).splitlines()
    formulas = [line.strip() for line in lines[1:] if any(sign in line for sign in EQUATION)]
    about = "<br>".join(map(escape, formulas or lines[:1]))
    return (
        f"<tr><td>{kind}</td><td>{escape(type(value).__name__)}</td><td>{escape(constants)}</td><td>{about}</td></tr>"
    )


def _table(rows: str) -> str:
    return f'<table style="text-align: left">{rows}</table>'


def _samples(stimulus: Any, count: int) -> str:
    X = stimulus.sample(np.random.default_rng(0), count)
    return _pictures(X, getattr(stimulus, "shape", (1, stimulus.m)))


def _pictures(rows: np.ndarray, shape: Iterable[int], own_scale: bool = False) -> str:
    """Images side by side as one picture, in grey; ON minus OFF, if there are both, around a middle grey."""
    shape = tuple(shape)
    pictures = rows.reshape(len(rows), *shape)
    signed = len(shape) == 3
    pictures = pictures[:, 0] - pictures[:, 1] if signed else pictures
    if own_scale:
        largest = np.abs(pictures).max(axis=(1, 2), keepdims=True)
        pictures = pictures / np.where(largest > 0, largest, 1)
    grey = (pictures + 1) / 2 if signed else pictures
    padded = np.pad(grey, ((0, 0), (1, 1), (1, 1)), constant_values=0.5)
    columns = min(len(padded), SHOWN)
    padded = np.concatenate([padded, np.ones((-len(padded) % columns, *padded.shape[1:]))])
    tiled = padded.reshape(-1, columns, *padded.shape[1:]).swapaxes(1, 2).reshape(-1, columns * padded.shape[2])
    return _image(tiled, max(1, round(PIXELS / padded.shape[1])))


def _image(grey: np.ndarray, enlarged: int) -> str:
    height, width = (enlarged * size for size in grey.shape)
    source = pages.image((255 * grey.clip(0, 1)).astype(np.uint8))
    return (
        f'<img width="{width}" height="{height}" style="image-rendering: pixelated; max-width: 100%; height: auto" '
        f'src="{source}">'
    )
