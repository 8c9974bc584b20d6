"""Which neurons of a trained network can be left out."""

from __future__ import annotations

import numpy as np

from asynchebb import metrics
from asynchebb.checks import InputError
from asynchebb.network import NEVER_UPDATED, State


def useful(state: State, activity: np.ndarray, similarity: float) -> np.ndarray:
    """The neurons that have learned and are active; of those with almost the same field, the most active."""
    trained = np.flatnonzero((state.c < NEVER_UPDATED) & (activity > 0))
    by_activity = trained[np.argsort(-activity[trained], kind="stable")]
    kept = np.sort(by_activity[~metrics.duplicates(state.W[by_activity], similarity)])
    if not len(kept):
        raise InputError("X activates no trained neuron, so none would be left; it must hold data like those learned")
    return kept


def only(state: State, kept: np.ndarray) -> State:
    """The state of these neurons alone."""
    W, M, u, y, c, a = state
    return State(W[kept], np.asfortranarray(M[np.ix_(kept, kept)]), u[kept], y[kept], c[kept], a[kept])
