"""`asynchebb compare`: the networks compared with scikit-learn's methods, on the same data and number of components.

Each method and seed is measured in a separate process, one after the other, so that time and memory
are its own. Results are saved and not measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from asynchebb import files, provenance
from asynchebb.checks import InputError, at_least
from asynchebb.contracts import Stimulus
from asynchebb.estimators import OnOff
from asynchebb.estimators.rows import norm_scale
from asynchebb.own_data.compare.methods import METHODS
from asynchebb.own_data.compare.trial import MEASURES, measure
from asynchebb.own_data.load import Data
from asynchebb.sweeps.executors import Stopped

IDLE = 5  # seconds after which an idle process exits
LOGARITHMIC = ("fit_seconds", "learned_per_second", "encoded_per_second")


def compare(
    data: Data,
    n: int | None,
    out: Path,
    seeds: int = 3,
    passes: int = 10,
    methods: Sequence[str] = (),
    on_progress: Callable[[str, int, int], object] = lambda doing, done, of: None,
) -> dict[str, Any]:
    """Measure each method, unless that has been done before; write comparison.json, .md and .png."""
    from loky import ProcessPoolExecutor

    methods = tuple(dict.fromkeys(methods)) or METHODS
    for method in methods:
        if method not in METHODS:
            raise InputError(f"method is {method!r}; the methods are {', '.join(map(repr, METHODS))}")
    at_least(1)("seeds", seeds)
    at_least(1)("passes", passes)
    X, shape = prepared(data)
    n = max(1, min(100, X.shape[1] // 2)) if n is None else n
    at_least(1)("n", n)
    if len(X) < 20:
        raise InputError(
            f"data has {len(X)} samples; it must have at least 20, to split into training and test samples"
        )
    files.is_folder("out", out)
    folder = out / "measured"
    files.make_writable("out", out, out, folder)
    labels, no_classes = _classes(data.labels)
    identity = {method: _identity(method, X, labels, data.stimulus, n, passes) for method in methods}
    todo = [(method, seed) for method in methods for seed in range(seeds)]
    measured: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    fields: dict[str, np.ndarray] = {}
    for number, (method, seed) in enumerate(todo):
        file = folder / f"{method.replace(' ', '-')}-{seed}-{identity[method]}.json"
        on_progress(f"{method}, seed {seed}", number, len(todo))
        if not files.read_json_if_whole(file):  # it is missing, or damaged
            try:
                with ProcessPoolExecutor(1, timeout=IDLE) as process:
                    process.submit(measure_and_save, file, method, X, labels, data.stimulus, n, seed, passes).result()
            except BrokenExecutor:
                raise Stopped(
                    f"the process for {method}, seed {seed}, was killed, perhaps for lack of memory"
                ) from None
        measured[method].append(files.read_json("out", file))
        components = file.with_suffix(".npy")
        if seed == 0 and components.exists():
            files.check_seal("out", components, "fields")
            fields[method] = np.load(components)
    on_progress("drawing", len(todo), len(todo))
    if not any(set(run) & {*MEASURES} for runs in measured.values() for run in runs):
        raise InputError("; ".join(f"{method}: {runs[0]['left_out']}" for method, runs in measured.items()))
    outcome = _outcome(data, X, shape, n, seeds, passes, measured, no_classes)
    _write(outcome, fields, out)
    return outcome


def prepared(data: Data) -> tuple[np.ndarray, tuple[int, ...]]:
    """The data that all methods get: non-negative, with the root mean square norm that the networks expect."""
    X = np.asarray(data.flat, np.float64)
    if not X.any():
        raise InputError("data is all zeros; there is nothing to learn from")
    shape = data.shape
    if X.min() < 0:
        X, shape = OnOff().fit_transform(X), (2, *shape)
    return X / norm_scale(X), shape


def _classes(labels: np.ndarray | None) -> tuple[np.ndarray | None, str]:
    """Labels as class numbers; or the reason why they cannot be used."""
    if labels is None:
        return None, ""
    names, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2 or counts.min() < 4:
        return None, (
            f"The labels are left out: they have {len(names)} values, the rarest of which occurs {counts.min()} "
            "times; at least two classes with four samples each are needed."
        )
    return numbers, ""


def _identity(
    method: str, X: np.ndarray, labels: np.ndarray | None, stimulus: Stimulus | None, n: int, passes: int
) -> str:
    """Identifies a measurement by the data, the method and the code that measures it."""
    how = [method, X.shape, repr(stimulus), n, passes, provenance.code(), version("scikit-learn")]
    return provenance.identity(how, X, *([] if labels is None else [labels]))


def measure_and_save(file: Path, method: str, *about: Any) -> None:
    """Measure a method and save the result, which thus survives even if the parent process does not."""
    found, fields = measure(method, *about)
    if fields is not None:
        with (
            files.atomic(file.with_suffix(".npy"), file.parent, sealed=True) as temporary,
            open(temporary, "wb") as picture,
        ):
            np.save(picture, fields)
    files.write_json(file, found)


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
    """Mean and standard deviation over seeds, with the individual results and the conditions."""
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
        "measures": {
            name: {"label": measure.label, "better": measure.better, "meaning": measure.meaning}
            for name, measure in MEASURES.items()
        },
        "left_out": [
            *([no_classes] if no_classes else []),
            *(f"{method} is left out: {why}." for method, runs in measured.items() if (why := runs[0].get("left_out"))),
        ],
        "methods": methods,
        "machine": provenance.machine(),
        "versions": provenance.versions(),
    }


def _write(outcome: dict[str, Any], fields: dict[str, np.ndarray], out: Path) -> None:
    from asynchebb.drawing import figures

    files.write_json(out / "comparison.json", outcome)
    files.write_text(out / "comparison.md", markdown(outcome) + "\n")
    means, sds = ({method: found[what] for method, found in outcome["methods"].items()} for what in ("mean", "sd"))
    shape = tuple(outcome["data"]["picture_shape"])
    figures.save(figures.comparison(means, sds, MEASURES, LOGARITHMIC, fields, shape), out / "comparison.png")


def shown_measures(outcome: dict[str, Any]) -> list[str]:
    """The measures that apply to at least one method."""
    return [name for name in MEASURES if any(name in found["mean"] for found in outcome["methods"].values())]


def cell(found: dict[str, Any], name: str) -> str:
    if name not in found["mean"]:
        return "–"
    mean, sd = found["mean"][name], found["sd"][name]
    digits = 0 if abs(mean) >= 100 else 1 if abs(mean) >= 10 else 3
    return f"{mean:,.{digits}f}" + ("" if sd is None else f" ± {sd:,.{digits}f}")


def markdown(outcome: dict[str, Any]) -> str:
    """A table with a row per measure, and the definitions of the measures."""
    about, methods, seeds = outcome["data"], outcome["methods"], outcome["seeds"]
    shown = shown_measures(outcome)
    lines = [
        f"# {about['name']}: {outcome['components']} components",
        "",
        f"{about['samples']:,} samples of {about['features']} numbers, a quarter of them held out for testing; "
        + (f"mean ± sd over {seeds} seeds" if seeds > 1 else "one seed")
        + f". `fit` makes {outcome['passes']} pass{'es' * (outcome['passes'] > 1)} through the data; the other methods "
        "use scikit-learn's defaults, with which NMF may not have converged. All methods get the same data at the same "
        "scale"
        + (", split into ON and OFF channels" if len(about["picture_shape"]) == 3 else "")
        + ". – : does not apply.",
        "",
        "| measure | better | " + " | ".join(methods) + " |",
        "| --- | --- " + "| ---: " * len(methods) + "|",
        *(
            f"| {MEASURES[name].label} | {MEASURES[name].better} | "
            + " | ".join(cell(found, name) for found in methods.values())
            + " |"
            for name in shown
        ),
        "",
        *(f"- *{MEASURES[name].label}*: {MEASURES[name].meaning}." for name in shown),
        "",
        *outcome["left_out"],
        f"Machine: {', '.join(f'{name} {value}' for name, value in outcome['machine'].items())}.",
    ]
    return "\n".join(lines)
