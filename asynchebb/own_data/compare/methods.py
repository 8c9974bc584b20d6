"""The methods compared: the networks, and scikit-learn's methods with their own defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from asynchebb.dynamics import Projected
from asynchebb.estimators import MODELS as NETWORKS
from asynchebb.rules import Oja

RETENTIVE = "asynchronous, retentive"  # the settings that forget least without losing elsewhere (docs/own_data.md)
OTHERS = ("MiniBatchNMF", "MiniBatchDictionaryLearning", "IncrementalPCA", "FastICA")
RAW = "raw data"  # the baseline for the classifiers
OURS = ("asynchronous", RETENTIVE, "discrete", "continuous")
METHODS = (*OURS, *OTHERS, RAW)

BATCH = 100  # samples per call of partial_fit


def make(method: str, n: int, seed: int, passes: int) -> Any:
    """A method with its own defaults, except for the number of components and the seed."""
    if method in OURS:
        model = NETWORKS["asynchronous" if method == RETENTIVE else method]
        model = model(n, scale=None, max_iter=passes, random_state=seed)  # the data are already scaled
        return model.set_params(rule=Oja(0.002), dynamics=Projected(), r_b=2) if method == RETENTIVE else model
    from sklearn import decomposition

    if method == "IncrementalPCA":
        return decomposition.IncrementalPCA(n, batch_size=max(BATCH, n))
    return _fast_ica(n, seed) if method == "FastICA" else getattr(decomposition, method)(n, random_state=seed)


def _fast_ica(n: int, seed: int) -> Any:
    """FastICA with the most variable feature moved to the front. FastICA takes the signs of its axes from the first
    feature; where that is constant, as the corner of an image may be, it sets whole axes to zero."""
    from sklearn.decomposition import FastICA

    class VaryingFirst(FastICA):
        def fit(self, X: np.ndarray, y: Any = None) -> Any:
            order = np.arange(X.shape[1])
            most = X.var(axis=0).argmax()
            order[[0, most]] = most, 0  # applying the same swap again restores the order
            super().fit(X[:, order])
            for name, axis in (("components_", 1), ("mixing_", 0), ("mean_", 0)):
                setattr(self, name, np.take(getattr(self, name), order, axis))
            return self

    return VaryingFirst(n, random_state=seed)


def reconstructed(model: Any, codes: np.ndarray) -> np.ndarray:
    return model.inverse_transform(codes) if hasattr(model, "inverse_transform") else codes @ model.components_


def by_weights(model: Any, codes: np.ndarray) -> np.ndarray | None:
    """A network's reconstruction by the paper's Wᵀy; None for other methods."""
    if type(model) not in NETWORKS.values():
        return None
    return model._by_weights(codes) * model.scale_
