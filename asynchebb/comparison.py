"""`asynchebb compare`: the networks beside scikit-learn's methods, on the same data and number of components.

Each method is measured for each seed in a process of its own, one after the other, so that time and
memory are its own. What was measured is kept, and not measured again.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import files, metrics, pages
from asynchebb.checks import InputError, at_least
from asynchebb.data import Data
from asynchebb.estimator import MODELS as NETWORKS
from asynchebb.estimator import OnOff, norm_scale
from asynchebb.sweeps.executors import Stopped

OTHERS = ("MiniBatchNMF", "MiniBatchDictionaryLearning", "IncrementalPCA", "FastICA")
RAW = "raw data"  # for the probes: what a code has to beat
METHODS = (*NETWORKS, *OTHERS, RAW)

TESTED = 0.25  # share of the samples that no method learns from
BATCH = 100  # samples a call of partial_fit
PHASES = 5  # at the most, into which the classes are divided
NEIGHBOURS = 5
IDLE = 5  # seconds after which a process that nobody waits for ends


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
LOGARITHMIC = ("fit_seconds", "learned_a_second", "encoded_a_second")


def compare(
    data: Data,
    n: int | None,
    out: Path,
    seeds: int = 3,
    passes: int = 10,
    methods: Sequence[str] = (),
    on_progress: Callable[[str, int, int], object] = lambda doing, done, of: None,
) -> dict[str, Any]:
    """Measure each method, as far as that has not been done; write comparison.json, .md and .png."""
    from loky import ProcessPoolExecutor

    methods = tuple(dict.fromkeys(methods)) or METHODS
    for method in methods:
        if method not in METHODS:
            raise InputError(f"method is {method!r}; the methods are {', '.join(METHODS)}")
    at_least(1)("seeds", seeds)
    at_least(1)("passes", passes)
    X, shape = prepared(data)
    n = max(1, min(100, X.shape[1] // 2)) if n is None else n
    at_least(1)("n", n)
    if len(X) < 20:
        raise InputError(f"data has {len(X)} samples; to learn from some and be tested on others takes at least 20")
    kept = out / "measured"
    files.make_writable("out", out, out, kept)
    labels, no_classes = _classes(data.labels)
    identity = _identity(X, labels, data.stimulus, n, passes)
    todo = [(method, seed) for method in methods for seed in range(seeds)]
    measured: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    for number, (method, seed) in enumerate(todo):
        file = kept / f"{method.replace(' ', '-')}-{seed}-{identity}.json"
        on_progress(f"{method}, seed {seed}", number, len(todo))
        if not file.exists():
            try:
                with ProcessPoolExecutor(1, timeout=IDLE) as process:
                    process.submit(keep, file, method, X, labels, data.stimulus, n, seed, passes).result()
            except BrokenExecutor:
                raise Stopped(f"the process of {method}, seed {seed}, was killed, perhaps for want of memory") from None
        measured[method].append(json.loads(file.read_text(encoding="utf-8")))
    on_progress("drawing", len(todo), len(todo))
    if not any(set(run) & {*MEASURES} for runs in measured.values() for run in runs):
        raise InputError("; ".join(f"{method}: {runs[0]['left_out']}" for method, runs in measured.items()))
    outcome = _outcome(data, X, shape, n, seeds, passes, measured, no_classes)
    fields = {
        method: np.load(kept / f"{method}-0-{identity}.npy")
        for method in methods
        if (kept / f"{method}-0-{identity}.npy").exists()
    }
    _write(outcome, fields, out)
    return outcome


def prepared(data: Data) -> tuple[np.ndarray, tuple[int, ...]]:
    """The same numbers for all methods: not negative, of the root mean square norm that the networks expect."""
    X = np.asarray(data.flat, np.float64)
    if not X.any():
        raise InputError("data is all zeros; there is nothing to learn from")
    shape = data.shape
    if X.min() < 0:
        X, shape = OnOff().fit_transform(X), (2, *shape)
    return X / norm_scale(X), shape


def _classes(labels: np.ndarray | None) -> tuple[np.ndarray | None, str]:
    """Labels as numbers of classes; or why there are none."""
    if labels is None:
        return None, ""
    names, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2 or counts.min() < 4:
        return None, (
            f"The labels are left out: they have {len(names)} values, the rarest of which {counts.min()} times; for "
            "classes it takes at least two, of four samples or more each."
        )
    return numbers, ""


def _identity(X: np.ndarray, labels: np.ndarray | None, stimulus: Any, n: int, passes: int) -> str:
    told = repr((X.shape, stimulus, n, passes, TESTED, BATCH, PHASES, version("asynchebb"), version("scikit-learn")))
    content = X.tobytes() + (b"" if labels is None else labels.tobytes())
    return hashlib.sha256(told.encode() + content).hexdigest()[:12]


def make(method: str, n: int, seed: int, passes: int) -> Any:
    """A method with its own defaults, but for the number of components and the seed."""
    if method in NETWORKS:
        return NETWORKS[method](n, scale=None, max_iter=passes, random_state=seed)  # data have their scale already
    from sklearn import decomposition

    if method == "IncrementalPCA":
        return decomposition.IncrementalPCA(n, batch_size=max(BATCH, n))
    return _fast_ica(n, seed) if method == "FastICA" else getattr(decomposition, method)(n, random_state=seed)


def _fast_ica(n: int, seed: int) -> Any:
    """FastICA, shown first the feature that varies most: the signs of its axes are told by the first feature, and where
    that is constant, as a corner of an image may be, it takes whole axes for zero."""
    from sklearn.decomposition import FastICA

    class VaryingFirst(FastICA):
        def fit(self, X: np.ndarray, y: Any = None) -> Any:
            order = np.arange(X.shape[1])
            most = X.var(axis=0).argmax()
            order[[0, most]] = most, 0  # and the same exchange again puts all back
            super().fit(X[:, order])
            for name, axis in (("components_", 1), ("mixing_", 0), ("mean_", 0)):
                setattr(self, name, np.take(getattr(self, name), order, axis))
            return self

    return VaryingFirst(n, random_state=seed)


def keep(file: Path, method: str, *about: Any) -> None:
    """Measure it, and write it down: what a process has done is there even if the one that asked for it is not."""
    found, fields = measure(method, *about)
    if fields is not None:
        with files.atomic(file.with_suffix(".npy"), file.parent) as temporary, open(temporary, "wb") as picture:
            np.save(picture, fields)
    with files.atomic(file, file.parent) as temporary:
        temporary.write_text(json.dumps(found), encoding="utf-8")


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


def reconstructed(model: Any, codes: np.ndarray) -> np.ndarray:
    return model.inverse_transform(codes) if hasattr(model, "inverse_transform") else codes @ model.components_


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


def _outcome(
    data: Data,
    X: np.ndarray,
    shape: tuple[int, ...],
    n: int,
    seeds: int,
    passes: int,
    measured: dict[str, list],
    no_classes: str,
) -> dict[str, Any]:
    """Mean and standard deviation over the seeds, with all that they are of."""
    methods = {}
    for method, runs in measured.items():
        names = [name for name in MEASURES if all(name in run for run in runs)]
        methods[method] = {
            "mean": {name: float(np.mean([run[name] for run in runs])) for name in names},
            "sd": {name: float(np.std([run[name] for run in runs], ddof=1)) if seeds > 1 else None for name in names},
            "seeds": runs,
        }
    return {
        "data": {"name": data.name, "samples": len(X), "features": X.shape[1], "picture_shape": [*shape]},
        "components": n,
        "passes": passes,
        "seeds": seeds,
        "measures": {name: measure._asdict() for name, measure in MEASURES.items()},
        "left_out": [
            *([no_classes] if no_classes else []),
            *(f"{method} is left out: {why}." for method, runs in measured.items() if (why := runs[0].get("left_out"))),
        ],
        "methods": methods,
        "machine": pages.machine(),
        "versions": pages.versions(),
    }


def _write(outcome: dict[str, Any], fields: dict[str, np.ndarray], out: Path) -> None:
    from asynchebb import figures

    for name, text in (("comparison.json", json.dumps(outcome, indent=1)), ("comparison.md", markdown(outcome))):
        with files.atomic(out / name, out) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    means, sds = ({method: found[what] for method, found in outcome["methods"].items()} for what in ("mean", "sd"))
    shape = tuple(outcome["data"]["picture_shape"])
    figures.save(figures.comparison(means, sds, MEASURES, LOGARITHMIC, fields, shape), out / "comparison.png")


def shown_measures(outcome: dict[str, Any]) -> list[str]:
    """The measures that some method has."""
    return [name for name in MEASURES if any(name in found["mean"] for found in outcome["methods"].values())]


def cell(found: dict[str, Any], name: str) -> str:
    if name not in found["mean"]:
        return "–"
    mean, sd = found["mean"][name], found["sd"][name]
    digits = 0 if abs(mean) >= 100 else 1 if abs(mean) >= 10 else 3
    return f"{mean:,.{digits}f}" + ("" if sd is None else f" ± {sd:,.{digits}f}")


def markdown(outcome: dict[str, Any]) -> str:
    """The table, a row for each measure, and what they are."""
    about, methods, seeds = outcome["data"], outcome["methods"], outcome["seeds"]
    shown = shown_measures(outcome)
    lines = [
        f"# {about['name']}: {outcome['components']} components",
        "",
        f"{about['samples']:,} samples of {about['features']} numbers, a quarter of them for tests; "
        + (f"mean ± sd over {seeds} seeds" if seeds > 1 else "one seed")
        + f". `fit` shows the networks all data {outcome['passes']} times; the other methods have scikit-learn's "
        "defaults. All get the same numbers, scaled alike. – : does not apply.",
        "",
        "| measure | better | " + " | ".join(methods) + " |",
        "| --- | --- " + "| ---: " * len(methods) + "|",
        *(
            f"| {MEASURES[name].says} | {MEASURES[name].better} | "
            + " | ".join(cell(found, name) for found in methods.values())
            + " |"
            for name in shown
        ),
        "",
        *(f"- *{MEASURES[name].says}*: {MEASURES[name].means}." for name in shown),
        "",
        *outcome["left_out"],
        f"Machine: {', '.join(f'{name} {value}' for name, value in outcome['machine'].items())}.",
    ]
    return "\n".join(lines)
