"""What is measured of a method, on one split of the data into what is learned and what is tested."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import metrics
from asynchebb.comparison.methods import BATCH, NETWORKS, RAW, make, reconstructed

TESTED = 0.25  # share of the samples that no method learns from
PHASES = 5  # at the most, into which the classes are divided
NEIGHBOURS = 5


class Measure(NamedTuple):
    says: str
    better: str  # "less" or "more", if one can say
    means: str


MEASURES = {
    "error": Measure(
        "reconstruction error",
        "less",
        "1 − cos(x, x̂), mean over the tested samples; x̂ is what inverse_transform makes of the code: a network's, Wᵀy",
    ),
    "residual": Measure("residual", "less", "Σ|x − x̂|² / Σ|x|² over the tested samples"),
    "readout": Measure(
        "error of the best linear readout",
        "less",
        "1 − cos(x, x̂) with the x̂ of a linear regression from codes to data, fitted on the samples that were learned, "
        "for those tested; how much of the data is in the code, however it is read",
    ),
    "hoyer": Measure("Hoyer sparseness", "", "of a code's absolute values: 0 all alike, 1 one alone (Hoyer 2004)"),
    "active": Measure("active share", "", "share of the units of a code that are not 0"),
    "linear_probe": Measure("accuracy, linear", "more", "of a logistic regression on the (standardised) codes"),
    "neighbours": Measure("accuracy, neighbours", "more", f"of the {NEIGHBOURS} nearest neighbours among the codes"),
    "recovery": Measure(
        "factor recovery", "more", "mean cosine of each factor with a component of its own (Hungarian assignment)"
    ),
    "factors_found": Measure(
        "factors found", "more", "that are the nearest one of some component, with cosine above 0.85"
    ),
    "forgetting": Measure(
        "forgetting",
        "less",
        f"the classes come in up to {PHASES} groups, one after the other; how far the error on the earlier groups has "
        "risen from its lowest by the end",
    ),
    "error_after_phases": Measure(
        "error after the groups", "less", "reconstruction error on all groups at the end of that"
    ),
    "fit_seconds": Measure("seconds to fit", "less", "wall time of fit, compiled before"),
    "learned_a_second": Measure("learned a second", "more", f"samples a second of partial_fit, {BATCH} (or n) a call"),
    "encoded_a_second": Measure("encoded a second", "more", "samples a second of transform"),
    "megabytes": Measure(
        "memory (MB)", "less", "the most that fit and transform take beyond what a small fit before them has left"
    ),
}


def measure(
    method: str, X: np.ndarray, labels: np.ndarray | None, stimulus: Any, n: int, seed: int, passes: int
) -> tuple[dict[str, float | str], np.ndarray | None]:
    """All measures of one method, and its components; in a fresh process, which is measured too."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(X)), test_size=TESTED, random_state=seed, stratify=labels)
    if method == RAW:
        return {**_sparseness(X[test]), **_probes(X[train], X[test], labels, train, test)}, None
    if method in ("IncrementalPCA", "FastICA") and n > min(len(train), X.shape[1]):
        return {"left_out": f"it has no more components than features ({X.shape[1]}) or samples ({len(train)})"}, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a method has not converged shows in its error
        _warm_up(make(method, n, seed, 1), X[train[: 2 * n]])
        before, started = _memory(anew=True), time.perf_counter()
        model = make(method, n, seed, passes).fit(X[train])
        fitted = time.perf_counter()
        codes = model.transform(X[test])
        encoded = time.perf_counter()
        found: dict[str, Any] = {
            "fit_seconds": fitted - started,
            "encoded_a_second": len(test) / (encoded - fitted),
            **_errors(X[test], reconstructed(model, codes)),
            **_sparseness(codes),
            **_recovery(model.components_, stimulus),
        }
        if before is not None and (after := _memory()) is not None:
            found["megabytes"] = after - before
        trained = model.transform(X[train])
        found |= {**_readout(trained, codes, X[train], X[test]), **_probes(trained, codes, labels, train, test)}
        if hasattr(model, "partial_fit"):
            found["learned_a_second"] = _learning_speed(make(method, n, seed, passes), X[train], n)
            found |= _forgetting(lambda: make(method, n, seed, passes), X, labels, train, test, n, seed, passes)
    return found, np.asarray(model.components_, np.float32)


def _warm_up(model: Any, X: np.ndarray) -> None:
    """What is compiled or loaded on the first use is not the method's time and memory."""
    if type(model) in NETWORKS.values():
        model.set_params(hold=1, settle=1)
    model.fit(X).transform(X)


def _memory(anew: bool = False) -> float | None:
    """The most memory (MB) that this process has had at once, or since it was asked for `anew`; where Linux tells."""
    try:
        if anew:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None


def _errors(X: np.ndarray, again: np.ndarray) -> dict[str, float]:
    return {
        "error": float(1 - metrics.weight_similarity(X, again).mean()),
        "residual": float(np.sum((X - again) ** 2) / np.sum(X**2)),
    }


def _readout(trained: np.ndarray, tested: np.ndarray, X: np.ndarray, X_tested: np.ndarray) -> dict[str, float]:
    """How much of the data is in the codes: the error of the linear map from codes to data that fits best."""
    from sklearn.linear_model import LinearRegression

    return {"readout": _errors(X_tested, LinearRegression().fit(trained, X).predict(tested))["error"]}


def _sparseness(codes: np.ndarray) -> dict[str, float]:
    return {
        "hoyer": float(np.mean([metrics.hoyer(np.abs(code)) for code in codes])),
        "active": float(np.count_nonzero(codes) / codes.size),
    }


def _probes(
    trained: np.ndarray, tested: np.ndarray, labels: np.ndarray | None, train: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    """How well simple classifiers read the labels off the codes."""
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


def _recovery(components: np.ndarray, stimulus: Any) -> dict[str, float]:
    if not hasattr(stimulus, "factors"):
        return {}
    # The sign of a principal or an independent component says nothing: take the one that fits a factor better.
    cosines = components @ stimulus.factors().T
    signs = np.where(cosines.max(axis=1) >= -cosines.min(axis=1), 1, -1)[:, None]
    return {
        "recovery": float(metrics.factor_recovery(signs * components, stimulus).mean()),
        "factors_found": metrics.count_fields(signs * components, stimulus).distinct,
    }


def _batches(rows: np.ndarray, n: int) -> list[np.ndarray]:
    size = max(BATCH, n)  # principal components want as many samples at once
    return [rows[start : start + size] for start in range(0, len(rows) - size + 1, size)] or [rows]


def _learning_speed(model: Any, X: np.ndarray, n: int) -> float:
    first, *batches = _batches(np.arange(len(X)), n)
    model.partial_fit(X[first])  # it starts with this one
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
    """The classes come one group after the other, each as often as all data are shown to the networks by fit."""
    if labels is None or labels.max() < 1:
        return {}
    groups = np.array_split(np.unique(labels), min(PHASES, labels.max() + 1))
    shown, asked = ([rows[np.isin(labels[rows], group)] for group in groups] for rows in (train, test))
    if min(map(len, shown)) < n or not all(map(len, asked)):
        return {}  # too few samples a phase for some of the methods
    model, rng = begin(), np.random.default_rng(seed)
    E = np.empty((len(groups), len(groups)))
    for phase, rows in enumerate(shown):
        for _ in range(passes):
            for batch in _batches(rng.permutation(rows), n):
                model.partial_fit(X[batch])
        for earlier, rows_asked in enumerate(asked):
            again = reconstructed(model, model.transform(X[rows_asked]))
            E[phase, earlier] = _errors(X[rows_asked], again)["error"]
    return {"forgetting": metrics.forgetting(E), "error_after_phases": float(E[-1].mean())}
