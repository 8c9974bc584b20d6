"""The measures that `asynchebb compare` takes of each method, on one split into training and test samples."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from asynchebb import measures as shared
from asynchebb import metrics
from asynchebb.contracts import Stimulus
from asynchebb.measures import Measure
from asynchebb.own_data.compare.methods import BATCH, NETWORKS, RAW, by_weights, make, reconstructed

TESTED = 0.25  # share of the samples held out for testing
PHASES = 5  # the classes are divided into at most this many groups
NEIGHBOURS = 5


@shared.measure("active share")
def active(codes):
    """share of the units in a code that are not 0"""
    return np.count_nonzero(codes) / codes.size


@shared.measure("factor recovery", better="more")
def recovery(W, factors):
    """mean cosine between each factor and the component assigned to it (Hungarian algorithm)"""
    return metrics.factor_recovery(_upright(W, factors), factors).mean()


@shared.measure("factors found", better="more")
def factors_found(W, factors):
    """number of factors that are the closest one to some component, with a cosine above 0.85"""
    return metrics.count_fields(_upright(W, factors), factors).distinct


def _upright(components: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The sign of a principal or independent component is arbitrary: choose the one that matches a factor better."""
    cosines = components @ factors.T
    return np.where(cosines.max(axis=1) >= -cosines.min(axis=1), 1, -1)[:, None] * components


def _described(name: str, label: str, better: str, meaning: str) -> Measure:
    """A measure that is not a function of arrays alone."""
    return Measure(name, label, None, better, meaning=meaning)


MEASURES: dict[str, Measure] = {
    "error": shared.MEASURES["code_error"],
    "residual": shared.MEASURES["residual"],
    "weights_error": _described(
        "weights_error",
        "reconstruction error of Wᵀy",
        "less",
        "1 − cos(x, Wᵀy) on the test samples: a network's reconstruction by its own weights, as in the paper",
    ),
    "readout": _described(
        "readout",
        "error of the best linear readout",
        "less",
        "1 − cos(x, x̂) on the test samples, with x̂ from a linear regression of data on codes fitted to the training "
        "samples: how much of the data is in the code, however it is read out",
    ),
    "hoyer": shared.MEASURES["code_hoyer"],
    "active": active,
    "linear_probe": _described(
        "linear_probe", "accuracy, linear", "more", "of logistic regression on the standardised codes"
    ),
    "neighbours": _described(
        "neighbours", "accuracy, neighbours", "more", f"of {NEIGHBOURS}-nearest-neighbour classification of the codes"
    ),
    "recovery": recovery,
    "factors_found": factors_found,
    "forgetting": _described(
        "forgetting",
        "forgetting",
        "less",
        f"the classes are learned in up to {PHASES} groups, one after the other; how far the error on earlier groups "
        "has risen above its minimum by the end",
    ),
    "weights_forgetting": _described(
        "weights_forgetting", "forgetting of Wᵀy", "less", "the same for a network's reconstruction by its own weights"
    ),
    "error_after_phases": _described(
        "error_after_phases", "error after the groups", "less", "reconstruction error on all groups after the last one"
    ),
    "fit_seconds": _described(
        "fit_seconds",
        "seconds to fit",
        "less",
        "wall time of fit and, for a network, of learning its readout, without compilation",
    ),
    "learned_per_second": _described(
        "learned_per_second",
        "learned per second",
        "more",
        f"samples per second in partial_fit, {BATCH} (or n) per call",
    ),
    "encoded_per_second": _described(
        "encoded_per_second", "encoded per second", "more", "samples per second in transform"
    ),
    "megabytes": _described(
        "megabytes",
        "memory (MB)",
        "less",
        "peak memory of fit and transform, beyond that of a small fit before them",
    ),
}
OF_CODES = ("error", "residual", "hoyer", "active", "recovery", "factors_found")  # computed from arrays alone


def measure(
    method: str, X: np.ndarray, labels: np.ndarray | None, stimulus: Stimulus | None, n: int, seed: int, passes: int
) -> tuple[dict[str, float | str], np.ndarray | None]:
    """All measures of one method, and its components. Runs in a fresh process, whose memory is measured too."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(X)), test_size=TESTED, random_state=seed, stratify=labels)
    if method == RAW:
        return {**_of_codes(codes=X[test]), **_probes(X[train], X[test], labels, train, test)}, None
    if method in ("IncrementalPCA", "FastICA") and n > min(len(train), X.shape[1]):
        return {
            "left_out": f"it cannot have more components than features ({X.shape[1]}) or samples ({len(train)})"
        }, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a method that has not converged shows it in its error
        _warm_up(make(method, n, seed, 1), X[train[: 2 * n]])
        before, started = _memory(reset=True), time.perf_counter()
        model = make(method, n, seed, passes).fit(X[train])
        getattr(model, "readout_", None)  # which a network learns when it is first needed
        fitted = time.perf_counter()
        codes = model.transform(X[test])
        encoded = time.perf_counter()
        found: dict[str, Any] = {
            "fit_seconds": fitted - started,
            "encoded_per_second": len(test) / (encoded - fitted),
            **_of_codes(
                X=X[test],
                reconstructed=reconstructed(model, codes),
                codes=codes,
                W=model.components_,
                **shared.factors_of(stimulus),
            ),
        }
        if (again := by_weights(model, codes)) is not None:
            found["weights_error"] = _error(X[test], again)
        if before is not None and (after := _memory()) is not None:
            found["megabytes"] = after - before
        trained = model.transform(X[train])
        found |= {**_readout(trained, codes, X[train], X[test]), **_probes(trained, codes, labels, train, test)}
        if hasattr(model, "partial_fit"):
            found["learned_per_second"] = _learning_speed(make(method, n, seed, passes), X[train], n)
            found |= _forgetting(lambda: make(method, n, seed, passes), X, labels, train, test, n, seed, passes)
    return found, np.asarray(model.components_, np.float32)


def _warm_up(model: Any, X: np.ndarray) -> None:
    """Compile and load everything first, so that this does not count towards the method's time and memory."""
    if type(model) in NETWORKS.values():
        model.set_params(hold=1, settle=1)
    reconstructed(model.fit(X), model.transform(X))


def _memory(reset: bool = False) -> float | None:
    """Peak memory (MB) of this process since it started or since the last `reset`; None where it is not available."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None


def _of_codes(**known: Any) -> dict[str, float]:
    """The measures computed from these arrays, as far as they are available."""
    found = {name: MEASURES[name].of(known) for name in OF_CODES}
    return {name: float(value) for name, value in found.items() if value is not None}


def _error(X: np.ndarray, again: np.ndarray) -> float:
    return float(MEASURES["error"](X, again))


def _readout(trained: np.ndarray, tested: np.ndarray, X: np.ndarray, X_tested: np.ndarray) -> dict[str, float]:
    """How much of the data is in the codes: the error of the best linear map from codes to data."""
    from sklearn.linear_model import LinearRegression

    return {"readout": _error(X_tested, LinearRegression().fit(trained, X).predict(tested))}


def _probes(
    trained: np.ndarray, tested: np.ndarray, labels: np.ndarray | None, train: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    """How well simple classifiers predict the labels from the codes."""
    if labels is None:
        return {}
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return {
        "linear_probe": float(linear.fit(trained, labels[train]).score(tested, labels[test])),
        "neighbours": float(KNeighborsClassifier(NEIGHBOURS).fit(trained, labels[train]).score(tested, labels[test])),
    }


def _batches(rows: np.ndarray, n: int) -> list[np.ndarray]:
    size = max(BATCH, n)  # IncrementalPCA needs at least n samples per batch
    return [rows[start : start + size] for start in range(0, len(rows) - size + 1, size)] or [rows]


def _learning_speed(model: Any, X: np.ndarray, n: int) -> float:
    first, *batches = _batches(np.arange(len(X)), n)
    model.partial_fit(X[first])  # the first call initializes the model
    started = time.perf_counter()
    for batch in batches or [first]:
        model.partial_fit(X[batch])
    return sum(map(len, batches or [first])) / (time.perf_counter() - started)


def _forgetting(
    begin: Callable[[], Any],
    X: np.ndarray,
    labels: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    n: int,
    seed: int,
    passes: int,
) -> dict[str, float]:
    """Learn the classes one group after the other, with as many passes per group as `fit` makes through all data."""
    if labels is None or labels.max() < 1:
        return {}
    groups = np.array_split(np.unique(labels), min(PHASES, labels.max() + 1))
    shown, tested = ([rows[np.isin(labels[rows], group)] for group in groups] for rows in (train, test))
    if min(map(len, shown)) < n or not all(map(len, tested)):
        return {}  # too few samples per group for some of the methods
    model, rng = begin(), np.random.default_rng(seed)
    E, E_of_weights = np.empty((2, len(groups), len(groups)))
    for phase, rows in enumerate(shown):
        for _ in range(passes):
            for batch in _batches(rng.permutation(rows), n):
                model.partial_fit(X[batch])
        for group, rows_tested in enumerate(tested):
            codes = model.transform(X[rows_tested])
            E[phase, group] = _error(X[rows_tested], reconstructed(model, codes))
            if (again := by_weights(model, codes)) is not None:
                E_of_weights[phase, group] = _error(X[rows_tested], again)
    of_weights = {"weights_forgetting": metrics.forgetting(E_of_weights)} if again is not None else {}
    return {"forgetting": metrics.forgetting(E), **of_weights, "error_after_phases": float(E[-1].mean())}
