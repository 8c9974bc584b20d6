"""Warnings about silent networks: data too weak to trigger learning, or too strong for the Euler step."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np

from asynchebb.estimators.rows import ROWS, dense_blocks
from asynchebb.network import NEVER_UPDATED, Network, State
from asynchebb.runs.silence import SilentNetwork

PATIENCE = 500  # Euler steps for which a stream may be silent at first
TRIED = 8  # samples tried when all neurons are silent


class Learner(Protocol):
    """What these functions need from a model."""

    hold: int
    scale: str | float | None
    scale_: float
    state_: State
    learning: bool

    @property
    def _has_scale(self) -> bool: ...
    def _patience(self) -> int: ...
    def _how_to_burst(self) -> str: ...
    def _settled(self, rows: np.ndarray) -> np.ndarray: ...
    def make_network(self, n: int, m: int) -> Network: ...


def warn_if_silent(model: Learner, X: Any, whole: bool, stacklevel: int = 3) -> None:
    """Warn if learning never started or has stopped, or if no neuron responds; `whole`: X is all data, from `fit`."""
    if not model.learning:
        return
    silence = int(model.state_.c.min())  # Euler steps since any neuron learned
    hold = int(model.hold)
    recent = max(X.shape[0] // 2, -(-model._patience() // hold))  # samples
    if not model._has_scale:
        message = "nothing was learned: X has been all zeros so far, and no neuron was active"
    elif silence >= NEVER_UPDATED + (0 if whole else model._patience()):
        message = f"nothing was learned: no neuron has burst so far; the data are too weak. {model._how_to_burst()}"
    elif not model.state_.y.any() and _is_dead(model, X):
        largest = max(model.state_.W.max(), model.state_.M.max())
        message = (
            f"no neuron responds to the data any more: strong samples have driven weights up to {largest:.3g}, for "
            f"which the Euler step is too long. {how_to_calm(model)} and fit again"
        )
    elif whole and silence >= recent * hold:
        burst = np.count_nonzero(model.state_.c < NEVER_UPDATED)
        message = (
            f"learning has stopped: no neuron has burst in the last {recent:,} samples, and {burst} of "
            f"{len(model.state_.c)} ever have; the data are too weak. {model._how_to_burst()}"
        )
    else:
        return
    warnings.warn(message, SilentNetwork, stacklevel=stacklevel)


def _is_dead(model: Learner, X: Any) -> bool:
    """Does no neuron respond to any of the first non-zero samples?"""
    rows = next(iter(dense_blocks(X[:ROWS])))
    rows = rows[rows.any(axis=1)][:TRIED]
    return bool(len(rows)) and not model._settled(rows).any()


def how_to_calm(model: Learner) -> str:
    dt = getattr(model.make_network(1, 1).dynamics, "dt", "your own")
    return f"Raise scale (now {model.scale!r}: {model.scale_:.4g}), lower dynamics.dt (now {dt}) or the rule's eta,"
