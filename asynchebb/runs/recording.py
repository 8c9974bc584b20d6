"""Recording runs: one NetCDF file per run, written atomically, never computed twice.

During a run each snapshot is saved as a part next to the final file, and a run that was killed
resumes from its last part. When the run finishes, its parts are combined and removed.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import checks, engines, equations, files, notation, provenance
from asynchebb import progress as display
from asynchebb.checks import InputError, function, instance, true_or_false
from asynchebb.contracts import Call
from asynchebb.files import atomic, make_writable
from asynchebb.network import State
from asynchebb.provenance import versions_in_files
from asynchebb.runs.layout import COORDINATES, FORMAT, PARTS, STATE, TRACES, saved_arrays, variable
from asynchebb.runs.run import Run
from asynchebb.runs.saved import open_run
from asynchebb.runs.silence import SilentNetwork, trouble
from asynchebb.runs.simulate import Diverged, Snapshot, warn_if_unstable, work

if TYPE_CHECKING:
    import xarray

    from asynchebb.runs.netcdf import Writer

# A snapshot of a small network that was computed this quickly is not worth saving: it stays in memory.
NOT_WORTH_A_FILE, SMALL = 1.0, 2**22  # seconds since the last part, bytes
FEW = 2**26  # bytes of weights in all snapshots, which are then written at once

# The phase that a snapshot lies in, how many of its samples were shown, and the step since the start (`Run.stops`).
Stop = tuple[int, int, int]

# A snapshot, on disk or still in memory.
Part = Path | dict[str, Any]


def record(
    run: Run,
    path: str | Path,
    engine: str = "cpu",
    *,
    progress: bool = False,
    on_progress: Callable[[int], object] = lambda steps: None,
) -> xarray.Dataset:
    """Compute the run, unless that has been done, and save it as `path`, or in the folder `path` under its identity.

    An interrupted run resumes from its last snapshot; the result is bit-identical. Engines agree, so a run
    finished by another engine is not repeated; its file says which engine it was. A `SilentNetwork` warning says that
    nothing was learned, or that the network has died; an `UnstableNetwork` warning at the start, that dt is too long
    for it. `progress` shows a bar, in a terminal or a notebook; `on_progress` is called as by `simulate`.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> dataset = ah.record(run, "runs")
    >>> dataset.W.sizes
    Frozen({'snapshot': 3, 'neuron': 20, 'input': 36})
    >>> dataset.step.values  # from the untrained network to the end
    array([   0, 1000, 2000])
    """
    instance("run", run, Run)
    function("on_progress", on_progress)
    true_or_false("progress", progress)
    warn_if_unstable(run)
    with display.shown("steps") if progress else nullcontext(None) as begin:
        update = begin and begin("training", run.steps_with_tests)

        def tell(steps: int) -> None:
            if update:
                update(steps)
            on_progress(steps)

        dataset = _finished(run, save_run(run, path, engine, tell)[0])
        tell(run.steps_with_tests)
    if silence := trouble(dataset, run):
        warnings.warn(silence, SilentNetwork, stacklevel=2)
    return dataset


def save_run(
    run: Run, path: str | Path, engine: str, on_progress: Callable[[int], object]
) -> tuple[Path, dict[str, np.ndarray] | None]:
    """Compute and save the run unless its file exists; returns the file, and its content if still in memory.

    A run that diverges is saved up to that point, and its file says so.
    """
    engine = engines.resolved(engine)
    return engines.result_of(saving(run, path, engine, on_progress), engine)


def saving(
    run: Run, path: str | Path, engine: str, on_progress: Callable[[int], object]
) -> Generator[Call, State, tuple[Path, dict[str, np.ndarray] | None]]:
    """`save_run`, as the calls that it consists of."""
    file = file_of(run, path)
    folder, whole = _parts_folder(file), None
    _check_unchanged(run)
    try:
        if not file.exists():
            make_writable("path", folder.parent, folder.parent)
            _make(folder)
            parts, diverged = yield from _run(run, engine, folder, on_progress)
            _check_unchanged(run)
            attributes = _attributes(run, engine, diverged)
            whole = _assemble(run, file, parts, run.stops()[: len(parts)], attributes)
            whole = whole if diverged is None else None
    except FileNotFoundError:
        if not file.exists():  # otherwise another process has finished the same run and removed its parts
            raise
    finally:
        if file.exists():
            _clear(run, folder)
        with suppress(OSError):  # it does not exist, or still holds parts or other files
            folder.rmdir()
    return file, whole


def _check_unchanged(run: Run) -> None:
    """Refuse a run whose identity no longer says what it simulates."""
    if provenance.contents(run) != run.contents:
        raise InputError(
            "run has changed since its identity was computed: an array or a file that its parts use holds other "
            "values; make a new Run, and leave arrays and files alone while it is computed"
        )


def _clear(run: Run, folder: Path) -> None:
    """Remove the run's parts."""
    for part in folder.glob(f"*{run.identity}*"):
        part.unlink(missing_ok=True)


def _run(
    run: Run, engine: str, folder: Path, on_progress: Callable[[int], object]
) -> Generator[Call, State, tuple[list[Part], int | None]]:
    """All snapshots of the run, both those saved earlier and new ones; and the step at which it diverged, if it did."""
    last = _last_part(run, engine, folder)
    parts: list[Part] = [_part(run, engine, folder, k) for k in range(last.number + 1)] if last else []
    on_disk, since = len(parts), time.perf_counter()
    if last:
        on_progress(last.step + (last.number + 1) * run.steps_per_test)
    steps: Any = work(run, last, on_progress, engine == "gpu")
    state: State | None = None
    try:
        while True:
            item = steps.send(state)
            if isinstance(item, Call):
                state = yield item
                continue
            state, arrays = None, _to_save(item)
            in_memory = time.perf_counter() - since < NOT_WORTH_A_FILE and item.state.M.nbytes < SMALL
            parts.append({name: np.copy(array) for name, array in arrays.items()} if in_memory else arrays)
            if not in_memory:
                for number in range(on_disk, len(parts)):
                    parts[number] = _write_part(_part(run, engine, folder, number), parts[number])
                on_disk, since = len(parts), time.perf_counter()
    except StopIteration:
        return parts, None
    except Diverged as failure:
        if not parts:  # at the very start: there is nothing to save
            raise
        return parts, failure.step


def file_of(run: Run, path: str | Path) -> Path:
    """`path`, or in the folder `path` a name that a person can read, which ends in the run's identity."""
    path = checks.path("path", path)
    if path.suffix == ".nc":
        return path
    files.is_folder("out", path, ".nc")
    return path / f"{run.name}-{run.identity}.nc"


def _finished(run: Run, file: Path) -> xarray.Dataset:
    dataset = open_run(file)
    if dataset.attrs["identity"] != run.identity:
        dataset.close()
        raise InputError(f"path is {str(file)!r}, which holds another run; choose another file or remove that one")
    if "diverged_at_step" in dataset.attrs:
        raise Diverged(run, int(dataset.attrs["diverged_at_step"]), file)
    return dataset


def _parts_folder(file: Path) -> Path:
    return file.with_suffix(".parts")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise InputError(f"path needs the folder {str(folder)!r}, and there is another file of that name") from None


def _part(run: Run, engine: str, folder: Path, number: int) -> Path:
    return folder / f"{run.identity}-{engine}-{number:05d}.npz"


def _last_part(run: Run, engine: str, folder: Path) -> Snapshot | None:
    """The last snapshot up to which all were saved intact; None if there is none."""
    last = None
    for number in itertools.count():
        if not files.is_whole(_part(run, engine, folder, number)):
            break
        last = number
    if last is None:
        return None
    with np.load(_part(run, engine, folder, last)) as part:
        state = State(**{name: part[name] for name in State._fields if name in part})
        return Snapshot(last, int(part["step"]), run.network.complete(state), {}, {})


def _to_save(snapshot: Snapshot) -> dict[str, Any]:
    traces = {f"trace_{name}": trace for name, trace in snapshot.traces.items()}
    return {"step": snapshot.step, **saved_arrays(snapshot.state), **snapshot.measures, **traces}


def _write_part(path: Path, part: Part) -> Path:
    _make(path.parent)  # another process may just have removed it, when it was empty
    with (
        _arrays(part) as arrays,
        atomic(path, path.parent, sealed=True) as temporary,
        open(temporary, "wb") as file,
    ):
        np.savez(file, **arrays)
    return path


@contextmanager
def _arrays(part: Part) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, dict):
        yield part
    else:
        with np.load(part) as arrays:
            yield arrays


def write(
    run: Run, engine: str, file: Path, snapshots: Sequence[Snapshot], stops: Sequence[Stop], **attributes: Any
) -> None:
    """Save snapshots that were taken at other moments than those that the run plans, or by hand."""
    folder = _parts_folder(file)
    folder.mkdir()
    try:
        parts: list[Part] = [_to_save(snapshot) for snapshot in snapshots]
        _assemble(run, file, parts, stops, _attributes(run, engine, None) | attributes)
    finally:
        folder.rmdir()


def _assemble(
    run: Run, file: Path, parts: list[Part], stops: Sequence[Stop], attributes: dict[str, Any]
) -> dict[str, np.ndarray] | None:
    """Write all parts to one NetCDF file; returns its content if that fits easily in memory."""
    from asynchebb.runs import netcdf

    shown = [sum(phase.samples for phase in run.phases[:p]) + sample for p, sample, _ in stops]
    n, m = run.network.n, run.network.m
    sizes = dict(snapshot=len(parts), neuron=n, presynaptic=n, input=m, window=equations.window(run.network.schedule))
    sizes |= dict(probe=len(run.probes), sample=shown[-1])
    traces = [f"trace_{name}" for name in run.trace] if shown[-1] else []  # traces begin with the second snapshot
    measures = {measure.name: variable(measure) for probe in run.probes for measure in probe.measures}
    with _arrays(parts[-1]) as last:
        state = {name: STATE[name] for name in STATE if name in last}
    saved = COORDINATES | state | measures | {name: TRACES[name] for name in traces}
    variables = tuple(
        netcdf.Variable(name, axes, run.dtype if dtype == "float" else dtype, meaning)
        for name, (axes, dtype, meaning) in saved.items()
    )
    sizes = {name: size for name, size in sizes.items() if size}
    if len(parts) * n * (n + m) * np.dtype(run.dtype).itemsize < FEW:
        parts = [*map(_in_memory, parts)]
    with (
        atomic(file, _parts_folder(file), sealed=True) as temporary,
        netcdf.writing(temporary, sizes, variables, attributes) as out,
    ):
        whole = {
            "step": np.array([step for *_, step in stops]),
            "phase": np.array([phase for phase, *_ in stops]),
            "stimulus": np.array([notation.to_text(probe.stimulus) for probe in run.probes], netcdf.TEXT),
            "hold": np.array([probe.hold for probe in run.probes]),
        }
        in_memory = [part for part in parts if isinstance(part, dict)]
        if len(in_memory) == len(parts):
            whole |= _joined(in_memory)
        for name, array in whole.items():
            out.put(name, array)
        if len(in_memory) < len(parts):
            _put_each(parts, shown, out)
    return whole if len(in_memory) == len(parts) else None


def _in_memory(part: Part) -> dict[str, Any]:
    with _arrays(part) as arrays:
        return dict(arrays)


def _joined(parts: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Each variable as written to the file."""
    whole = {}
    for name in _without_coordinates(parts[-1]):
        arrays = [part[name] for part in parts if name in part]
        if name in TRACES and TRACES[name][0] == ("sample",):
            whole[name] = np.concatenate(arrays)
        else:
            whole[name] = np.stack([np.full_like(arrays[0], np.nan), *arrays] if name in TRACES else arrays)
    return whole


def _put_each(parts: list[Part], shown: list[int], out: Writer) -> None:
    """Write one part at a time: all weights of a run may not fit in memory."""
    for number, part in enumerate(parts):
        with _arrays(part) as arrays:
            for name in _without_coordinates(arrays):
                per_sample = name in TRACES and TRACES[name][0] == ("sample",)
                rows = slice(shown[number - 1], shown[number]) if per_sample else number
                _fill(out[name], rows, arrays[name])


def _without_coordinates(arrays: Iterable[str]) -> list[str]:
    return [name for name in arrays if name not in COORDINATES]


def _fill(variable: Any, at: int | slice, array: np.ndarray) -> None:
    if array.ndim < 2:
        variable[at] = array
        return
    rows = max(1, 2**20 // array[0].size)  # M is stored by columns but the file by rows: convert a block at a time
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
        **{part: notation.to_text(getattr(network, part)) for part in PARTS},
        "phases": repr(run.phases),
        "probes": repr(run.probes),
        "coordinates": "step phase stimulus hold",
        "trace": ", ".join(run.trace),
        "seed": np.int64(run.seed) if run.seed < 2**63 else str(run.seed),
        "dtype": run.dtype,
        "picture_shape": np.array(shape, np.int64),
        "engine": engine,
        **versions_in_files(),
        **({} if diverged is None else {"diverged_at_step": np.int64(diverged)}),
    }
