"""Which neurons of a trained network can be left out."""

from __future__ import annotations

import numpy as np

from asynchebb import metrics
from asynchebb.checks import InputError
from asynchebb.network import NEVER_UPDATED, State


def useful(state: State, activity: np.ndarray, similarity: float) -> np.ndarray:
    """The neurons that have learned and are active; of those with almost the same field, the most active."""
    trained = np.flatnonzero((state.c < NEVER_UPDATED) & (activity > 0))
    if not len(trained):
        raise InputError("X activates no trained neuron, so none would be left; it must hold data like those learned")
    by_activity = trained[np.argsort(-activity[trained], kind="stable")]
    return np.sort(by_activity[~metrics.duplicates(state.W[by_activity], similarity)])


def only(state: State, kept: np.ndarray) -> State:
    """The state of these neurons alone."""
    of_kept = {name: getattr(state, name)[kept] for name in ("W", "u", "y", "c", "a")}
    h = state.h[kept] if state.h.size else state.h
    M = np.asfortranarray(state.M[np.ix_(kept, kept)])
    recent = np.ascontiguousarray(state.recent[:, kept]) if state.recent.size else np.empty((0, len(kept)), np.uint8)
    return state._replace(**of_kept, M=M, h=h, recent=recent)
