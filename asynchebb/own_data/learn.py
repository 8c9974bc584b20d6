"""`asynchebb learn`: train a network on data; write the model, a picture of its fields and a report page.

During training the model is saved regularly to a part file next to the final one. An interrupted
training resumes from there, and the result is bit-identical.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from asynchebb import files, provenance, tables
from asynchebb.checks import InputError
from asynchebb.estimators import HebbianNetwork, OnOff, model_file
from asynchebb.estimators.rows import ROWS
from asynchebb.measures import LABELS, MEASURES, factors_of
from asynchebb.own_data import learned
from asynchebb.own_data.learned import Learned
from asynchebb.own_data.load import Data

TESTED = 200  # training samples on which the error is measured during training
MEASURED = 2000  # and at the end
POINTS = 20  # of the error curve
SHOWN = 12  # samples drawn with their reconstructions
SAVE_EVERY = 10.0  # seconds
LARGEST_COURSE = 500_000  # weights of a network whose fields are shown in the course of training

# Measures taken at the end, by their names in the table; and the labels of all rows of the table.
AT_END = {
    "error": MEASURES["code_error"],
    "residual": MEASURES["residual"],
    "active": MEASURES["active_per_sample"],
    "hoyer": MEASURES["code_hoyer"],
    **{name: MEASURES[name] for name in ("gini", "silent_neurons", "duplicate_fields", "factors_found")},
}
ROW_LABELS = {
    "samples": "samples shown",
    "error_of_mean": "reconstruction error of the mean sample",
    "error_of_weights": "reconstruction error of Wᵀy",
    "factors": LABELS["factors"],
    **{name: measure.label for name, measure in AT_END.items()},
}


def learn(
    network: HebbianNetwork,
    data: Data,
    out: Path,
    command: str = "",
    on_progress: Callable[[int, int], object] = lambda shown, of: None,
) -> dict[str, Any]:
    """Train the network on the data, unless that has been done before; return the measures at the end."""
    split = OnOff() if data.X.min() < 0 else None
    X = data.X if split is None else split.fit_transform(data.X)
    model, notes, course = _trained(network, split, X, data, out, on_progress)
    network = model_file.network_in(model)
    some = X[_spread(len(X), MEASURED)]
    codes = network.transform(some)
    measures = _measures(network, some, codes, data)
    what = Learned(
        network,
        is_split=split is not None,
        data=data,
        measures={ROW_LABELS[name]: value for name, value in measures.items()},
        measured_on=len(some),
        error=measures["error"],
        error_of_mean=measures["error_of_mean"],
        error_of_weights=measures.get("error_of_weights", measures["error"]),
        curve=np.array(notes["curve"]),
        tested_on=min(TESTED, len(X)),
        activity=codes.mean(axis=0),
        samples=some[_spread(len(some), SHOWN)],
        course={shown: fields for shown, fields in course.fields.items() if shown < network.n_samples_seen_},
        command=command,
    )
    learned.write(what, out)
    return measures


def _trained(
    network: HebbianNetwork,
    split: OnOff | None,
    X: Any,
    data: Data,
    out: Path,
    on_progress: Callable[[int, int], object],
) -> tuple[Any, dict[str, Any], Course]:
    """The model, notes kept with it, and its fields in the course of training."""
    files.is_folder("out", out)
    identity = _identity(network, data)
    file, part = out / "model.nc", out / f"model.{identity}.part.nc"
    for saved in (file, part):
        if saved.exists():
            model, notes = model_file.read(saved, {name: getattr(network, name) for name in network.values})
            if notes.get("identity") == identity:
                break
            raise InputError(
                f"out is {str(out)!r}, which holds a model of other data or parameters; choose another folder, or "
                f"remove {saved}"
            )
    else:
        model = network if split is None else make_pipeline(split, network)
        notes = {"identity": identity, "curve": []}
    network = model_file.network_in(model)
    total, test = network.max_iter * len(X), X[_spread(len(X), TESTED)]
    saved_at = time.monotonic()
    if not hasattr(network, "state_"):
        network.begin(X)  # before the folder is created, since X may be rejected
        notes["curve"].append([0, _error_of_weights(network, test)])
    files.make_writable("out", out, out)
    course = Course(out / f"course.{identity}.npz", network)

    def measure(shown: int) -> None:
        if shown >= len(notes["curve"]) * total / POINTS and shown > notes["curve"][-1][0]:
            notes["curve"].append([shown, _error_of_weights(network, test)])
            course.add(network)

    def save_part() -> None:
        if not file.exists():  # or another process has finished the same training
            course.save()  # first: one that is ahead of the model is cut when it is read, one behind has gaps
            model_file.write(model, part, notes)

    before = network.n_samples_seen_
    try:
        measure(before)  # an interruption may have come before this
        for shown in network.iter_fit(X, resume=True):
            on_progress(shown, total)
            measure(shown)
            if time.monotonic() - saved_at > SAVE_EVERY and shown < total:
                save_part()
                saved_at = time.monotonic()
    except KeyboardInterrupt:
        if network.n_samples_seen_ < total:
            save_part()
        raise
    on_progress(total, total)
    if before < total:
        course.save()
    if not file.exists():
        model_file.write(model, file, notes)
    part.unlink(missing_ok=True)
    return model, notes, course


def _error_of_weights(network: HebbianNetwork, X: np.ndarray) -> float:
    """Of the reconstruction by Wᵀy, which tells how well the fields fit."""
    return 1 - network._score(X.reshape(len(X), -1), network._by_weights)


class Course:
    """Fields in the course of training, for the report; saved next to the model, so that an interrupted training and
    a finished one have them too."""

    def __init__(self, file: Path, network: HebbianNetwork) -> None:
        self._file = file
        self.fields: dict[int, np.ndarray] = {}  # (neurons, features) after this many samples, in 256 steps
        self._is_wanted = network.state_.W.size <= LARGEST_COURSE
        if file.exists():
            files.check_seal("out", file, "the course of a training")
            with np.load(file) as saved:
                entries = zip(saved["shown"].tolist(), saved["fields"], strict=True)
                self.fields = {shown: fields for shown, fields in entries if shown <= network.n_samples_seen_}
        elif not network.n_samples_seen_:
            self.add(network)

    def add(self, network: HebbianNetwork) -> None:
        if self._is_wanted:
            self.fields[network.n_samples_seen_] = learned.quantised(network.components_)

    def save(self) -> None:
        if self.fields:
            folder = self._file.parent
            with files.atomic(self._file, folder, sealed=True) as temporary, open(temporary, "wb") as file:
                np.savez_compressed(file, shown=[*self.fields], fields=[*self.fields.values()])


def _identity(network: HebbianNetwork, data: Data) -> str:
    """Identifies a model by its parameters, including user-defined equations, and its data."""
    X = data.flat
    equations = network.make_network(network.n_components or X.shape[1], X.shape[1])
    how: tuple = (network.hold, network.settle, network.max_iter, network.scale, network.random_state, network.engine)
    how += (network.readout, network.from_rest)
    return provenance.identity([type(network).__name__, equations, how, data.X.shape, str(data.X.dtype)], X)


def _spread(samples: int, most: int) -> np.ndarray:
    """Indices of at most this many samples, spread from first to last, since data are often sorted by class."""
    return np.unique(np.linspace(0, samples - 1, min(samples, most)).round().astype(int))


def _measures(network: HebbianNetwork, X: np.ndarray, codes: np.ndarray, data: Data) -> dict[str, Any]:
    rows = X.reshape(len(X), -1) / network.scale_  # so that squares neither overflow nor underflow
    again = network.inverse_transform(codes).reshape(rows.shape) / network.scale_
    mean = np.tile(rows.mean(axis=0), (len(rows), 1))
    known = {"X": rows, "reconstructed": again, "codes": codes, "W": network.components_}
    known |= {"mean_rates": codes.mean(axis=0), **factors_of(data.stimulus)}
    found: dict[str, Any] = {"samples": network.n_samples_seen_}
    for name, measure in AT_END.items():
        if (value := measure.of(known)) is not None:
            found[name] = value
        if name == "error":
            found["error_of_mean"] = AT_END["error"].of({"X": rows, "reconstructed": mean})
            if network.readout:
                found["error_of_weights"] = AT_END["error"].of({"X": rows, "reconstructed": network._by_weights(codes)})
    return found | ({"factors": len(known["factors"])} if "factors" in known else {})


def encode(
    model: Any, data: Data, out: Path, on_progress: Callable[[int, int], object] = lambda done, of: None
) -> None:
    """Write the codes of all samples, a few thousand at a time; all but .npy also get the labels, if there are any."""
    tables.check("out", out, ".npy", ".npz")
    files.make_writable("out", out, out.parent)
    samples, neurons = len(data.X), len(model_file.network_in(model).state_.W)
    with files.atomic(out, out.parent) as temporary:
        codes: Any = (
            np.lib.format.open_memmap(temporary, "w+", np.float32, (samples, neurons))
            if out.suffix == ".npy"
            else np.empty((samples, neurons), np.float32)
        )
        if out.suffix == ".npy":  # or a full disk kills the process when it touches a page that has no place
            files.reserve(temporary, temporary.stat().st_size)
        for start in range(0, samples, ROWS):
            codes[start : start + ROWS] = model.transform(data.X[start : start + ROWS])
            on_progress(min(start + ROWS, samples), samples)
        if out.suffix == ".npy":
            codes.flush()
        elif out.suffix == ".npz":
            with open(temporary, "wb") as file:
                labels: dict[str, Any] = {} if data.labels is None else {"labels": data.labels}
                np.savez(file, codes=codes, **labels)
        else:
            tables.write_to(temporary, _table(codes, data.labels), out.suffix)


def _table(codes: np.ndarray, labels: np.ndarray | None) -> Any:
    import pandas as pd

    table = pd.DataFrame(codes, columns=[f"neuron_{i}" for i in range(codes.shape[1])])
    return table if labels is None else table.assign(label=labels)
