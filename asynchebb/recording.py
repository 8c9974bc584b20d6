"""Runs that are kept: one NetCDF file a run, written whole or not at all, never computed twice.

While a run goes on, each snapshot is a part of its own beside the file to be; a run that was
killed goes on from its last part. When the run is done its parts are put together and removed.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from asynchebb import engines, metrics, values
from asynchebb.checks import InputError
from asynchebb.network import Network, State
from asynchebb.simulate import Diverged, Run, Snapshot, live

if TYPE_CHECKING:
    import xarray

FORMAT = "asynchebb run"

# Each variable's axes and meaning. Those over snapshots have been there at each snapshot; traces
# are what happened in between.
STATE = {
    "W": (("snapshot", "neuron", "input"), "feed-forward weights"),
    "M": (("snapshot", "neuron", "presynaptic"), "lateral weights"),
    "u": (("snapshot", "neuron"), "what the dynamics integrate"),
    "y": (("snapshot", "neuron"), "rates"),
    "c": (("snapshot", "neuron"), "Euler steps since the last update"),
    "a": (("snapshot", "neuron"), "activity accumulated by the rule"),
}
MEASURES = {
    "error": (("snapshot", "probe"), "reconstruction error, mean over all steps of the test"),
    "error_last": (("snapshot", "probe"), "reconstruction error at the last step of each test stimulus"),
    "gini": (("snapshot", "probe"), "Gini coefficient of the mean activity"),
    "active_neurons": (("snapshot", "probe"), "neurons with a rate above 0, mean over all steps of the test"),
    "mean_activity": (("snapshot", "probe", "neuron"), "rate, mean over all steps of the test"),
}
TRACES = {
    "trace_updates": (("sample",), "synapses changed in an Euler step, mean over each stimulus"),
    "trace_active": (("sample",), "neurons with a rate above 0, mean over each stimulus"),
    "trace_y": (("snapshot", "neuron"), "rate, mean since the snapshot before"),
    "trace_burst": (("snapshot", "neuron"), "share of steps with an open gate, since the snapshot before"),
}


def record(
    run: Run,
    path: str | Path,
    engine: str = "cpu",
    *,
    on_progress: Callable[[int], object] = lambda steps: None,
) -> xarray.Dataset:
    """Run it, unless that has been done, and keep it as `path`, or in the folder `path` by its identity.

    A run that was broken off, by whatever, goes on from its last snapshot and ends in the same bits.
    Engines agree, so a run that another engine has finished is finished; its file says which it was.
    """
    if not isinstance(run, Run):
        raise InputError(f"run is {run!r}; it must be a Run")
    engines.module(engine)
    file = file_of(run, path)
    parts = file.with_suffix(".parts")
    try:
        if not file.exists():
            _make_writable(parts)
            done, diverged = _run(run, engine, parts, on_progress)
            _assemble(run, engine, file, [_part(run, engine, parts, k) for k in range(done + 1)], diverged)
    except FileNotFoundError:
        if not file.exists():  # else another process has finished the same run, and cleared its parts away
            raise
    finally:
        if file.exists():
            _clear(run, parts)
        with suppress(OSError):  # there is none, or parts to go on from are in it, or what is not ours
            parts.rmdir()
    dataset = _finished(run, file)
    on_progress(run.steps)
    return dataset


def _clear(run: Run, parts: Path) -> None:
    """Remove what the run has left there."""
    for part in parts.glob(f"*{run.identity}*"):
        part.unlink(missing_ok=True)


def _run(run: Run, engine: str, parts: Path, on_progress: Callable[[int], object]) -> tuple[int, int | None]:
    """Keep each snapshot that is not there yet; the last one's number, and the step at which the run diverged if so."""
    last = _last_part(run, engine, parts)
    done = last.number if last else -1
    if last:
        on_progress(last.step)
    try:
        for snapshot in live(run, engine, last, on_progress):
            _write_part(_part(run, engine, parts, snapshot.number), snapshot)
            done = snapshot.number
    except Diverged as failure:
        if done < 0:  # at the very start: there is nothing to keep
            raise
        return done, failure.step
    return done, None


def open_run(path: str | Path) -> xarray.Dataset:
    """A kept run; nothing heavy is read until it is asked for."""
    import xarray

    if not Path(path).is_file():
        reason = "that is a folder" if Path(path).is_dir() else "there is no such file"
        raise InputError(f"path is {str(path)!r}; it must be a run kept by asynchebb (.nc), but {reason}")
    try:
        dataset = xarray.open_dataset(path, engine="h5netcdf")
        if dataset.attrs.get("format") == FORMAT:
            return dataset
        dataset.close()
        reason = "it was written by another program"
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = f"it cannot be read, or is cut short ({error}); to run it again remove it"
    raise InputError(f"path is {str(path)!r}; it must be a run kept by asynchebb, but {reason}")


def state_at(dataset: xarray.Dataset, snapshot: int = -1) -> State:
    """The network's state at a snapshot (by default the last), from which it can go on."""
    count = dataset.sizes["snapshot"]
    if not isinstance(snapshot, int | np.integer) or not -count <= snapshot < count:
        raise InputError(f"snapshot is {snapshot!r}; it must be a whole number from {-count} to {count - 1}")
    at = dataset.isel(snapshot=snapshot)
    state = State(*(at[name].values for name in State._fields))
    return state._replace(M=np.asfortranarray(state.M))


def network_of(dataset: xarray.Dataset) -> Network:
    """The network that a kept run ran."""
    return values.parse_network(dataset.attrs["network"])


def summary(dataset: xarray.Dataset) -> dict[str, float]:
    """The measures of a kept run at its end, by name: those of its last probe, and of its fields."""
    end = dataset.isel(snapshot=-1, probe=-1)
    activity, W = end.mean_activity.values, end.W.values
    measures = {
        "Euler steps": int(end.step),
        "reconstruction error, mean": float(end.error),
        "reconstruction error, last step": float(end.error_last),
        "Gini": float(end.gini),
        "Hoyer sparseness": metrics.hoyer(activity),
        "Treves–Rolls sparseness": metrics.treves_rolls(activity),
        "active neurons a step": float(end.active_neurons),
        "silent neurons": metrics.dead_units(activity),
        "duplicate fields": metrics.duplicate_units(W),
    }
    if "trace_updates" in dataset:
        measures["synapses changed a step"] = float(dataset.trace_updates.mean())
    stimulus = values.variants("stimulus").get(str(end.stimulus.values).partition("(")[0])
    if hasattr(stimulus, "factors"):
        stimulus = values.parse("stimulus", str(end.stimulus.values))
        fields = metrics.count_fields(W, stimulus)
        measures |= {
            "fields of a single factor": fields.single,
            "fields of a pair of factors": fields.mixed,
            "unstructured fields": fields.unstructured,
            f"factors found of {len(stimulus.factors())}": fields.distinct,
            "factor recovery, mean cosine": float(metrics.factor_recovery(W, stimulus).mean()),
        }
    return measures


def file_of(run: Run, path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix == ".nc" else path / f"{run.identity}.nc"


def _finished(run: Run, file: Path) -> xarray.Dataset:
    dataset = open_run(file)
    if dataset.attrs["identity"] != run.identity:
        dataset.close()
        raise InputError(f"path is {str(file)!r}, which holds another run; name another file or remove that one")
    if "diverged_at_step" in dataset.attrs:
        raise Diverged(run, int(dataset.attrs["diverged_at_step"]), file)
    return dataset


def _make_writable(parts: Path) -> None:
    try:
        parts.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=parts):
            pass
    except OSError as error:
        raise InputError(
            f"path is {str(parts.parent)!r}; it must be a folder that can be written ({error.strerror})"
        ) from None


def _part(run: Run, engine: str, parts: Path, number: int) -> Path:
    return parts / f"{run.identity}-{engine}-{number:05d}.npz"


def _last_part(run: Run, engine: str, parts: Path) -> Snapshot | None:
    """The newest snapshot that was kept whole, as were all before it; None if there is none."""
    last = None
    for number in itertools.count():
        try:
            with ZipFile(_part(run, engine, parts, number)) as part:
                if part.testzip() is not None:
                    break
        except (OSError, BadZipFile):
            break
        last = number
    if last is None:
        return None
    with np.load(_part(run, engine, parts, last)) as part:
        return Snapshot(last, int(part["step"]), State(*(part[name] for name in State._fields)), {}, {})


def _write_part(path: Path, snapshot: Snapshot) -> None:
    arrays: dict[str, Any] = {"step": snapshot.step, **snapshot.state._asdict(), **snapshot.measures}
    arrays |= {f"trace_{name}": trace for name, trace in snapshot.traces.items()}
    with _atomic(path, path.parent) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


@contextmanager
def _atomic(path: Path, parts: Path) -> Iterator[Path]:
    """A file goes by another name, among the parts, until it is whole and on the disk."""
    temporary = parts / f".{path.name}.{os.getpid()}"
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _assemble(run: Run, engine: str, file: Path, parts: list[Path], diverged: int | None) -> None:
    """One NetCDF file of all parts, a part at a time: all weights of a run may be larger than memory."""
    import h5netcdf

    stops = run.stops()[: len(parts)]
    shown = [sum(phase.samples for phase in run.phases[:p]) + sample for p, sample, _ in stops]
    n, m = run.network.n, run.network.m
    sizes = dict(snapshot=len(parts), neuron=n, presynaptic=n, input=m, probe=len(run.probes), sample=shown[-1])
    kept = STATE | MEASURES | TRACES
    with _atomic(file, parts[0].parent) as temporary, h5netcdf.File(temporary, "w") as out:
        out.dimensions = {name: size for name, size in sizes.items() if size}
        out.attrs.update(_attributes(run, engine, diverged))
        for name, (axes, meaning, along) in _coordinates(run, stops).items():
            _add(out, name, axes, meaning, dtype=along.dtype)
            out.variables[name][:] = along
        for number, path in enumerate(parts):
            with np.load(path) as part:
                for name in part.files:
                    if name == "step":
                        continue
                    array = part[name]  # read from the disk each time it is asked for
                    axes, meaning = kept[name]
                    if name not in out.variables:
                        _add(out, name, axes, meaning, dtype=array.dtype)
                    rows = number if axes[0] == "snapshot" else slice(shown[number - 1], shown[number])
                    _fill(out.variables[name], rows, array)


def _coordinates(run: Run, stops: list[tuple[int, int, int]]) -> dict[str, tuple[tuple[str, ...], str, Any]]:
    import h5py

    shows = np.array([repr(probe.stimulus) for probe in run.probes], h5py.string_dtype())
    return {
        "step": (("snapshot",), "Euler steps since the start", np.array([step for *_, step in stops])),
        "phase": (("snapshot",), "the phase that the snapshot lies in", np.array([phase for phase, *_ in stops])),
        "stimulus": (("probe",), "what the probe shows", shows),
        "hold": (("probe",), "Euler steps for which it is held", np.array([probe.hold for probe in run.probes])),
    }


def _add(out: Any, name: str, axes: tuple[str, ...], meaning: str, dtype: np.dtype) -> None:
    # Traces begin with the second snapshot: what is not written is not a number.
    variable = out.create_variable(name, axes, dtype, fillvalue=np.nan if dtype.kind == "f" else None)
    variable.attrs["long_name"] = meaning


def _fill(variable: Any, at: int | slice, array: np.ndarray) -> None:
    if array.ndim < 2:
        variable[at] = array
        return
    rows = max(1, 2**20 // array[0].size)  # M lies by columns and the file wants rows: a block at a time
    for i in range(0, len(array), rows):
        variable[at, i : i + rows] = np.ascontiguousarray(array[i : i + rows])


def _attributes(run: Run, engine: str, diverged: int | None) -> dict[str, Any]:
    network = run.network
    shape = getattr(run.phases[0].stimulus, "shape", (1, network.m))
    return {
        "format": FORMAT,
        "title": f"{type(network.schedule).__name__} {type(network.rule).__name__} network on "
        + ", then ".join(repr(phase.stimulus) for phase in run.phases),
        "source": "Aguiar & Hennig (2024), Asynchronous Hebbian/anti-Hebbian networks",
        "identity": run.identity,
        "network": repr(network),
        "n": np.int64(network.n),
        "m": np.int64(network.m),
        **{part: repr(getattr(network, part)) for part in ("dynamics", "rule", "schedule", "weights")},
        "phases": repr(run.phases),
        "probes": repr(run.probes),
        "coordinates": "step phase stimulus hold",
        "trace": ", ".join(run.trace),
        "seed": np.int64(run.seed) if run.seed < 2**63 else str(run.seed),
        "dtype": run.dtype,
        "picture_shape": np.array(shape, np.int64),
        "engine": engine,
        "python_version": sys.version.split()[0],
        **{f"{package}_version": version(package) for package in ("asynchebb", "numpy", "numba")},
        **({} if diverged is None else {"diverged_at_step": np.int64(diverged)}),
    }
