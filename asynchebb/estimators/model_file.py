"""Saving and loading estimators: one NetCDF file per model, exact to the bit and readable by any other program.

Unlike a pickle, it holds only numbers and text, so opening it never runs code from the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from asynchebb import checks, engines, estimators, files, notation
from asynchebb.checks import InputError
from asynchebb.estimators import AsyncHebbian, HebbianNetwork, OnOff
from asynchebb.estimators.readout import Sample
from asynchebb.network import State
from asynchebb.provenance import versions_in_files

FORMAT = "asynchebb model"
MODELS = {cls.__name__: cls for cls in estimators.MODELS.values()}
FITTED = (
    *("n_iter_", "n_samples_seen_", "scale_", "image_shape_", "n_features_in_", "validation_scores_"),
    *("_seed", "_has_scale", "_weakens"),
)
SAMPLE = "shown"  # the variable that holds the sample of data which the readout is learned from


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted network, or a pipeline of OnOff() and a network, as a NetCDF file; exactly, including activity.

    The file holds the sample of data that the readout is learned from, unless the model has readout=False.

    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
    >>> ah.save_model(ah.AsyncHebbian(40, max_iter=1, hold=100, random_state=0).fit(X), "model.nc")
    """
    path = checks.path("path", path)
    if path.suffix != ".nc":
        raise InputError(f"path is {str(path)!r}; it must be a file that ends in .nc (NetCDF; use pickle for .pkl)")
    write(model, path, {})


def load_model(path: str | os.PathLike[str], *, verify: bool = True, **given: Any) -> Any:
    """Load a model saved by `save_model`. User-defined rules, dynamics or weights must be passed in: rule=Mine().

    It verifies that no byte of the file has changed; `verify=False` skips that.

    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
    >>> ah.save_model(ah.AsyncHebbian(40, max_iter=1, hold=100, random_state=0).fit(X), "model.nc")
    >>> ah.load_model("model.nc").partial_fit(X[:1]).n_components_
    40
    """
    return read(path, given, checks.true_or_false("verify", verify))[0]


def network_in(model: Any) -> HebbianNetwork:
    """The network itself, if the model is a pipeline with OnOff()."""
    return model[-1] if hasattr(model, "steps") else model


def write(model: Any, path: Path, notes: dict[str, Any]) -> None:
    """`save_model`, with additional notes (anything that JSON can hold)."""
    from asynchebb.runs import netcdf
    from asynchebb.runs.layout import STATE, saved_arrays

    network = network_in(model)
    if type(network) not in MODELS.values() or (model is not network and not _is_pair(model)):
        raise InputError(
            f"model is {type(model).__name__}; it must be one of {', '.join(MODELS)}, alone or after OnOff() in a "
            "pipeline (use pickle for others)"
        )
    if not hasattr(network, "state_"):
        raise InputError(f"model is a {type(network).__name__} that is not fitted; it must be fitted first")
    parameters = network.get_params(deep=False) | network._checked_parameters()
    if isinstance(
        parameters["random_state"], np.random.RandomState
    ):  # already used; a new fit would draw new numbers anyway
        parameters["random_state"] = None
    plain = {name: value for name, value in parameters.items() if name not in network.values}
    state, saved = network.state_, saved_arrays(network.state_)
    (n, m), dtype = state.W.shape, state.W.dtype.name
    variables = tuple(
        netcdf.Variable(name, axes[1:], dtype if kind == "float" else kind, meaning)
        for name, (axes, kind, meaning) in STATE.items()
        if name in saved
    )
    variables += (netcdf.Variable(SAMPLE, ("sample", "input"), dtype, "random sample of the data shown, scaled"),)
    sample = network._sample
    attributes = {
        "format": FORMAT,
        "model": type(network).__name__,
        "parameters": json.dumps(plain, default=_number),
        **{name: notation.to_text(parameters[name]) for name in network.values},
        "fitted": json.dumps({name: getattr(network, name) for name in FITTED}, default=_number),
        "sample": json.dumps([sample.size, sample.offered]),
        "feature_names": json.dumps(_feature_names(network)),
        "on_off": json.dumps(_on_off(model) if model is not network else None),
        "notes": json.dumps(notes),
        **versions_in_files(),
    }
    sizes = dict(neuron=n, presynaptic=n, input=m, sample=len(sample.rows))
    if "recent" in saved:
        sizes["window"] = len(state.recent)
    files.make_writable("path", path, path.parent)
    if path.is_dir():
        raise InputError(f"path is {str(path)!r}, which is a folder; it must be a file, like model.nc")
    with (
        files.atomic(path, path.parent, sealed=True) as temporary,
        netcdf.writing(temporary, sizes, variables, attributes) as out,
    ):
        for name, array in saved.items():
            out.put(name, array)
        out.put(SAMPLE, sample.rows)


def read(path: str | os.PathLike[str], given: dict[str, Any], verify: bool = True) -> tuple[Any, dict[str, Any]]:
    """`load_model`, also returning the notes."""
    import h5py

    for name in given:
        if name not in AsyncHebbian.values:
            raise InputError(f"{name} is given; only {', '.join(AsyncHebbian.values)} may be given")
    path = checks.path("path", path)
    if not path.is_file():
        raise InputError(f"path is {str(path)!r}; it must be a model saved by asynchebb, but there is no such file")
    if verify:
        files.check_seal("path", path, "a model")
    with files.reading("path", path):
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise InputError(
                    f"path is {str(path)!r}, which is not a model saved by save_model or `asynchebb learn`"
                )
            text = {name: value for name, value in file.attrs.items() if isinstance(value, str)}
            arrays = {name: np.asarray(file[name][()]) for name in State._fields if name in file}
            rows = file[SAMPLE][()]
        found = {name: json.loads(text[name]) for name in ("parameters", "fitted", "feature_names", "on_off", "notes")}
        cls = MODELS[text["model"]]
        parts = {name: notation.from_text(kind, text[name], given, name) for name, kind in cls.values.items()}
        network = cls(**found["parameters"], **parts)
        network._sample = Sample(rows, *json.loads(text["sample"]))
        state = State(**arrays)
        network.state_ = engines.prepare(network.make_network(*state.W.shape), state)
        for name in FITTED:
            value = found["fitted"][name]
            setattr(network, name, tuple(value) if name == "image_shape_" and value else value)
        _name_features(network, found["feature_names"])
        return _with_on_off(network, found["on_off"]), found["notes"]


def _name_features(transformer: Any, names: list[str]) -> None:
    if names:
        transformer.feature_names_in_ = np.array(names, dtype=object)


def _feature_names(transformer: Any) -> list[str]:
    return [*getattr(transformer, "feature_names_in_", [])]


def _is_pair(model: Any) -> bool:
    return len(model.steps) == 2 and isinstance(model[0], OnOff)


def _on_off(pipeline: Any) -> dict[str, Any]:
    split = pipeline[0]
    return {
        "steps": [name for name, _ in pipeline.steps],
        "n_features_in_": int(split.n_features_in_),
        "image_shape_": split.image_shape_,
        "feature_names": _feature_names(split),
    }


def _with_on_off(network: HebbianNetwork, saved: dict[str, Any] | None) -> Any:
    if saved is None:
        return network
    from sklearn.pipeline import Pipeline

    split = OnOff()
    split.n_features_in_ = saved["n_features_in_"]
    split.image_shape_ = tuple(saved["image_shape_"]) if saved["image_shape_"] else None
    _name_features(split, saved["feature_names"])
    return Pipeline([*zip(saved["steps"], (split, network), strict=True)])


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"a parameter is {value!r}, which a model file cannot hold")
