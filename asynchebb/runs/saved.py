"""Saved runs: opening them, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import checks, files, notation
from asynchebb.checks import InputError, one_of, shown
from asynchebb.measures import LABELS, MEASURES, factors_of
from asynchebb.network import Network, State
from asynchebb.runs.layout import FORMAT, NOT_MEASURES, PARTS
from asynchebb.runs.run import Run

if TYPE_CHECKING:
    import xarray


# What else the package saves, and how that is opened.
OTHERS = {"asynchebb model": "it is a model, which ah.load_model opens"}


def open_run(path: str | Path, *, verify: bool = True) -> xarray.Dataset:
    """Open a saved run; large arrays are read only when accessed.

    The whole file is read once to verify that no byte of it has changed; `verify=False` skips that.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> ah.record(run, "run.nc").close()
    >>> ah.open_run("run.nc").attrs["rule"]
    'Oja(eta=0.002)'
    """
    return open_as("path", path, verify)


def open_as(name: str, given: object, verify: bool = True) -> xarray.Dataset:
    """`open_run`; errors call the path by this name."""
    import xarray

    path, verify = checks.path(name, given), checks.true_or_false("verify", verify)
    if not path.is_file():
        reason = "that is a folder" if path.is_dir() else "there is no such file"
        if path.suffix and path.with_suffix(".parts").is_dir():
            reason = "it was interrupted before its end; repeat what started it, and it resumes"
        raise InputError(f"{name} is {str(path)!r}; it must be a run saved by asynchebb (.nc), but {reason}")
    if verify:
        files.check_seal(name, path, "a run")
    with files.reading(name, path):
        files.look_into(path)
        dataset = xarray.open_dataset(path, engine="h5netcdf")
        if dataset.attrs.get("format") == FORMAT and "step" in dataset:
            return dataset
        dataset.close()
    reason = OTHERS.get(str(dataset.attrs.get("format")), "it was written by another program")
    raise InputError(f"{name} is {str(path)!r}; it must be a run saved by asynchebb, but {reason}")


def opened(name: str, source: Any, *measures: str) -> Any:
    """A saved run's dataset, or its file as opened by h5py, that has these measures; anything else is refused."""
    attributes = getattr(source, "attrs", None)
    if not isinstance(attributes, Mapping) or attributes.get("format") != FORMAT:
        raise InputError(f"{name} is {shown(source)}; it must be a saved run: its dataset, or its file")
    for needed in ("step", *measures):
        if needed not in source:
            raise InputError(f"{name} has no {needed}; it must be a run whose probes record it, as Probe.measures says")
    return source


def state_at(dataset: Any, snapshot: int = -1) -> State:
    """The network's state at a snapshot (by default the last), from which a simulation can continue.

    `dataset` is the run's dataset, or its file opened by h5py.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> state = ah.state_at(ah.record(run, "run.nc"))
    >>> state, _ = ah.advance(run.network, state, ah.Crossbars(6).sample(np.random.default_rng(5), 10), hold=100)
    """
    count = len(opened("dataset", dataset)["step"])
    if not checks.is_whole(snapshot) or not -count <= snapshot < count:
        raise InputError(f"snapshot is {shown(snapshot)}; it must be a whole number from {-count} to {count - 1}")
    state = State(**{name: np.asarray(dataset[name][snapshot]) for name in State._fields if name in dataset})
    return state._replace(M=np.asfortranarray(state.M), recent=state.recent.reshape(-1, len(state.u)))


def network_of(dataset: xarray.Dataset, **given: Any) -> Network:
    """The network of a saved run. Parts of user-defined classes must be passed in: network_of(dataset, rule=Mine()).

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> ah.network_of(ah.record(run, "run.nc")) == run.network
    True
    """
    for name in given:
        one_of("what is given", name, PARTS)
    with files.reading("dataset", Path(opened("dataset", dataset).encoding.get("source", "in memory"))):
        n, m, texts = dataset.attrs["n"], dataset.attrs["m"], {kind: str(dataset.attrs[kind]) for kind in PARTS}
    return Network(int(n), int(m), **{kind: notation.from_text(kind, text, given) for kind, text in texts.items()})


def summary(source: Any, probe: int = -1, run: Run | None = None) -> dict[str, Any]:
    """The measures at the end of a saved run: those of its weights, and those of a probe (by default the last).

    `source` is the run's dataset, or its arrays by name; its file opened by h5py is much faster. Measures that need
    the stimulus take it from `run`, or from the file if it is one of the package's.
    """
    recorded = {name: _end(source, name)[probe] for name in source if name not in NOT_MEASURES}
    wanted = {need for measure in MEASURES.values() for need in measure.missing({})}
    known: dict[str, Any] = {name: _end(source, name) for name in ("W", "M") if name in wanted}  # M is large
    if "mean_activity" in recorded:
        known["mean_rates"] = recorded["mean_activity"]
    known |= _factors(source, probe) if run is None else factors_of(run.probes[probe].stimulus)
    found: dict[str, Any] = {"steps": int(_end(source, "step"))}
    if "trace_updates" in source:
        found["updates"] = float(np.mean(np.asarray(source["trace_updates"])))
    for name, measure in MEASURES.items():
        if name not in recorded and not measure.per_neuron and (value := measure.of(known)) is not None:
            found[name] = value
    found |= {name: float(value) for name, value in recorded.items() if value.ndim == 0}
    if "factors" in known:
        found["factors"] = len(known["factors"])
    return {name: found.pop(name) for name in LABELS if name in found} | found  # user-defined measures come last


def _end(source: Any, name: str) -> np.ndarray:
    return np.asarray(source[name][-1])


def _factors(source: Any, probe: int) -> dict[str, np.ndarray]:
    """The factors of the probe's stimulus, if it is one of the package's and they are known."""
    return _factors_of(str(np.asarray(source["stimulus"]).astype(str)[probe]))


@cache
def _factors_of(text: str) -> dict[str, np.ndarray]:
    cls = notation.variants("stimulus").get(text.partition("(")[0])
    try:
        return factors_of(notation.parse("stimulus", text)) if hasattr(cls, "factors") else {}
    except InputError:  # one of a user's class of the same name
        return {}
