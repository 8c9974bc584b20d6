"""The fast engine: Numba compiles one loop for all networks, and each network's own equations apart.

The loop (`loop.py`) and the linear algebra (`columns.py` and `lanes.py`, with their innermost loops in
`tiles.py`, and `wide.py` for all cores) know no equation. A network's dynamics, schedule and rule are
compiled each by itself (`kernels.py`) and called by their addresses. A copy of each is saved in the
user's cache folder, under a name made of everything that goes into it, and Numba saves the compiled
code next to it. So an edited rule is recompiled, an old one never is, and a later process starts at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from asynchebb import equations
from asynchebb.engines.arrays import check_arrays
from asynchebb.engines.cpu import tiles, units
from asynchebb.engines.traces import Traces
from asynchebb.network import VANISHING, Network, State
from asynchebb.threads import cores

# The files that the loop is made of, for one core or for all; each is given what the ones before it define.
FILES = {False: ("columns", "lanes", "firing", "loop"), True: ("columns", "lanes", "wide", "firing", "loop")}
KERNELS, RESPONSE = "kernels", "response"

# What `kernels.py` makes of the equations of each kind of record, and what each function takes after their constants.
FUNCTIONS = {
    "dynamics": {"move": "yyyyyk", "after": "yykyy", "fire": "yyyyyk"},
    "schedule": {"gates": "ycckkkbc", "silent_gates": "ckkkkcb", "silent_bursts": "ckkkkb"},
    "rule": {"terms": "yykyyy", "update": "yybkyyyyy"},
}

_in_use: list[Any] = []  # compiled functions, which are called by address
_last_room = threading.local()
_compiling = threading.RLock()

MOST_COMPILERS = 4  # processes that compile the loop
WIDE = 2_000  # neurons from which on one network uses all cores
SMALL_MATRIX = 3_200_000  # entries that the near part of M̂ may always have: 13 MB in float32


def advance(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    traces: Traces,
    from_rest: bool = False,
    settled: np.ndarray | None = None,
) -> State:
    check_arrays(network, state, X, hold, traces, settled)
    if traces.means.size:
        raise ValueError("traces.means is asked for; the cpu engine does not have it")
    n, dtype = network.n, state.W.dtype
    module = loop(dtype, n >= WIDE)
    room = _room(module, n, network.m, dtype)
    numbers, indices = room.arrays["numbers"], room.arrays["indices"]
    for place, values in ((module.U, state.u), (module.Y, state.y), (module.A, state.a), (module.S, 1)):
        numbers[place, :n] = values
    indices[module.ALL, :n] = state.c
    if state.recent.size:
        indices[module.SPIKES, :n] = state.recent.sum(axis=0, dtype=np.int64)
    if state.h.size:
        numbers[module.H, :n] = state.h
    floor, additive = getattr(network.rule, "floor", 0.0), getattr(network.dynamics, "additive", False)
    lazy = bool(additive and floor == 0)  # a floor takes from every synapse
    given = {"hold": hold, "from_rest": from_rest, "stimuli": len(X), "lazy": lazy}
    spiking, decay = equations.spikes(network.dynamics), getattr(network.dynamics, "decay", 0.0)
    given |= {"spiking": spiking, "noisy": equations.noisy(network.dynamics), "events": spiking and decay > 0}
    given |= {"clock": int(state.t), "window": equations.window(network.schedule)}
    arrays = {"W": state.W, "P": state.M.T, "X": X, "recent": state.recent}  # M by presynaptic column is one piece
    arrays |= {f"trace_{name}": trace for name, trace in zip(traces._fields, traces, strict=True)}
    if settled is not None:
        arrays["settled"] = settled
    for kind in FUNCTIONS:
        record = getattr(network, kind)
        arrays[kind] = np.array([*equations.constants(record).values(), 0], dtype)
        given |= kernels(kind, record.__class__, dtype)
    given |= {name: _address(array) for name, array in arrays.items() if array.size}
    counts = np.ndarray(len(units.COUNTS), np.int64, room.held)  # the first fields of the record
    counts[:] = [given.get(name, 0) or room.given.get(name, 0) for name in units.COUNTS]
    room.held["floor"], room.held["smallest"], room.held["decay"] = floor, VANISHING, decay
    module.run(room.address)
    state.u[:], state.y[:], state.a[:] = (numbers[place, :n] for place in (module.U, module.Y, module.A))
    state.c[:] = indices[module.ALL, :n]
    if state.h.size:
        state.h[:] = numbers[module.H, :n]
    state.t[...] += len(X) * hold
    return state


class Room(NamedTuple):
    """What the loop works in: its record and where that is, the sizes and addresses in there that stay the same, and
    the arrays."""

    held: np.ndarray
    address: int
    given: dict[str, int]
    arrays: dict[str, np.ndarray]


def _room(module: ModuleType, n: int, m: int, dtype: np.dtype) -> Room:
    """Room for this network: that of the thread's last call if it was as large, since a call may be short."""
    key = module, n, m
    if vars(_last_room).get("key") != key:
        wide, most_wide = n + -n % module.TOGETHER + module.TOGETHER, n + 4 * module.TOGETHER
        most_entries = SMALL_MATRIX + n * n // 5
        arrays = {
            "numbers": _aligned((module.NUMBER_ROWS, wide), dtype),
            "indices": _aligned((module.INDEX_ROWS, wide), np.dtype(np.int64)),
            "truths": _aligned((module.TRUTH_ROWS, wide), np.dtype(np.uint8)),
            "listed": np.empty(m, np.int64),
            "history": _aligned((module.LONGEST_BLOCK + 1, wide), dtype),
            # As wide as `lanes.side` makes them at the most; what is not used takes no memory.
            "N": _aligned((n, most_wide), dtype),
            **{name: _aligned((1, min(n * most_wide, most_entries)), dtype) for name in ("C", "saved_C", "log")},
        }
        for name in ("numbers", "indices", "truths"):
            arrays[name][:] = 0
        arrays["indices"][module.WHOLE, :n] = np.arange(n)
        held = np.zeros(1, units.held_type(dtype))
        addresses = {name: _address(array) for name, array in arrays.items()}
        sizes = {"n": n, "m": m, "wide": wide, "most_entries": most_entries}
        room = Room(held, _address(held), {**sizes, **addresses}, arrays)
        if n >= WIDE:  # too large to be kept
            return room
        _last_room.key, _last_room.room = key, room
    return _last_room.room


def _aligned(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Space that begins where a vector does: reading one that lies in two lines of the cache takes twice as long."""
    size = shape[0] * shape[1] * dtype.itemsize
    space = np.empty(size + tiles.VECTOR, np.uint8)
    start = -_address(space) % tiles.VECTOR
    return space[start : start + size].view(dtype).reshape(shape)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def threads(network: Network) -> int:
    """How many calls may run side by side: one for each core, or one where it uses all of them itself."""
    import numba

    return 1 if network.n >= WIDE else vars(numba.config)["NUMBA_NUM_THREADS"]


def warm_up(network: Network, dtype: str = "float32") -> bool:
    """Compile what this network needs; False if it has been compiled before."""
    number, wide = np.dtype(dtype), network.n >= WIDE
    classes: list[type] = [type(getattr(network, kind)) for kind in FUNCTIONS]
    names = [kernels_name(cls, number) for cls in classes]
    new = not all(map(compiled, (*names, loop_names(number, wide)[-1])))
    loop(number, wide)
    for kind, cls in zip(FUNCTIONS, classes, strict=True):
        kernels(kind, cls, number)
    return new


def loop(dtype: np.dtype, wide: bool) -> ModuleType:
    """The loop compiled for numbers of this precision, for all cores or one, or as it was compiled before.

    Its `run` takes the address of a record (`units.held_type`).
    """
    with _compiling:  # or several threads would do so
        return _loop(dtype, wide)


@cache
def _loop(dtype: np.dtype, wide: bool) -> ModuleType:
    import llvmlite.binding
    import numba
    from filelock import FileLock

    name = loop_names(dtype, wide)[-1]
    # One process compiles and the others wait: it costs them nothing, and all have the same bits.
    with FileLock(cache_folder() / f"{name}.lock"):
        if not compiled(name):
            _say_compiling(f"the loop for {'all cores' if wide else 'one core'}", dtype)
            _compile_side_by_side(dtype, wide)
        if wide:
            # Starts Numba's threads. Code from the cache does not know, in a later process, that it needs them, and
            # would crash.
            numba.get_num_threads()
        modules, addresses = {}, {}
        for module, symbol, compile_ in _units(dtype, wide):
            unit = compile_()
            _in_use.append(unit)
            modules[symbol], addresses[symbol] = module, unit.address
            llvmlite.binding.add_symbol(symbol, unit.address)
        _note_compiled(name)
    symbol, module = modules.popitem()  # the last unit; its module knows all others
    vars(module)["run"] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses[symbol])
    return module


def _units(dtype: np.dtype, wide: bool) -> Iterator[tuple[ModuleType, str, Callable[[], Any]]]:
    """All units of the loop in order: the module of each, its symbol, and a function that compiles it or loads it.

    Then it is put into its module under that symbol, by which the following ones call it.
    """
    import numba

    record = units.held_type(dtype)
    places = {"numbers_at": numba.from_dtype(dtype), "indices_at": numba.types.int64, "truths_at": numba.types.uint8}
    places["held_of"] = numba.from_dtype(record)
    given: dict[str, Any] = {name: tiles.place_of(kind) for name, kind in places.items()}
    given |= {"number": dtype.type, "ITEM": dtype.itemsize}
    for file, name in zip(FILES[wide], loop_names(dtype, wide), strict=True):
        module = _import_copy(file, name, given)
        for unit, function in units.units_of(module):
            takes, gives, spread = vars(function)["unit"]
            signature = units.signature(takes, gives, dtype, record)
            compile_ = numba.cfunc(signature, cache=True, error_model="numpy", parallel=spread)
            yield module, f"{name}_{unit}", partial(compile_, function)
            setattr(module, unit, numba.types.ExternalFunction(f"{name}_{unit}", signature))
        given = {key: value for key, value in vars(module).items() if not key.startswith("__")}


def _compile_side_by_side(dtype: np.dtype, wide: bool) -> None:
    """Have some processes compile a part each. Whatever they do not is compiled later, by this one."""
    parts = min(cores(), MOST_COMPILERS)
    if parts == 1 or not sys.executable or getattr(sys, "frozen", False):  # or there is no Python to start
        return
    path = os.pathsep.join(entry for entry in sys.path if isinstance(entry, str))
    environment = {**os.environ, "ASYNCHEBB_CACHE": str(cache_folder()), "PYTHONPATH": path}
    nowhere: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    processes: list[subprocess.Popen] = []
    try:
        for part in range(parts):
            code = f"import {__name__} as cpu; cpu.compile_part({dtype.name!r}, {wide}, {part}, {parts})"
            processes.append(subprocess.Popen([sys.executable, "-P", "-c", code], env=environment, **nowhere))
        for process in processes:
            process.wait()
    except OSError:  # no memory, for instance
        pass
    finally:
        for process in processes:
            process.terminate()


def compile_part(dtype: str, wide: bool, part: int, parts: int) -> None:
    """Compile one unit in so many `parts` into the cache. None can be run here: where the others are is not known."""
    import gc

    import llvmlite.binding

    gc.disable()  # it would take a tenth of the time
    for number, (_, symbol, compile_) in enumerate(_units(np.dtype(dtype), wide)):
        llvmlite.binding.add_symbol(symbol, 1)
        if number % parts == part:
            compile_()


def kernels(kind: str, cls: type, dtype: np.dtype) -> dict[str, int]:
    """The addresses of the functions of these equations, compiled now or before."""
    with _compiling:
        return _kernels(kind, cls, dtype)


@cache
def _kernels(kind: str, cls: type, dtype: np.dtype) -> dict[str, int]:
    import numba
    from filelock import FileLock

    name = kernels_name(cls, dtype)
    fields = equations.field_names(cls) or ("none",)  # a record has at least one
    record = np.dtype([(field, dtype) for field in fields])
    with FileLock(cache_folder() / f"{name}.lock"):
        module = _import_copy(KERNELS, name)
        if not compiled(name):
            _say_compiling(cls.__name__, dtype)
        names = vars(module)
        for method in equations.METHODS[kind]:
            names[method] = numba.njit(error_model="numpy")(_moved(getattr(cls, method), module))
            exec(_whole(names["WHOLE"], kind, method, cls), names)
            names[f"whole_{method}"] = numba.njit(error_model="numpy")(names[f"whole_{method}"])
        names["number"] = dtype.type
        names["keeps_h"] = kind == "dynamics" and "h_i" in equations.takes_and_gives(kind, "step", cls)[0]
        addresses: dict[str, int] = {}
        for function, takes in functions(kind, cls).items():
            signature = units.signature("h" + takes, "", dtype, record)
            kernel: Any = numba.cfunc(signature, cache=True, error_model="numpy")(vars(module)[function])
            _in_use.append(kernel)
            addresses[function] = kernel.address
        _note_compiled(name)
    return addresses


@cache
def _response() -> ModuleType:
    return _import_copy(RESPONSE, f"asynchebb_{RESPONSE}_{_digest(_text(RESPONSE))}")


def response() -> ModuleType:
    """`response.py`, whose functions are compiled when they are first called, or were before."""
    with _compiling:
        return _response()


def functions(kind: str, cls: type) -> dict[str, str]:
    """What is compiled for this class: dynamics with memory fire, others move."""
    if kind != "dynamics":
        return FUNCTIONS[kind]
    return {name: takes for name, takes in FUNCTIONS[kind].items() if (name == "fire") == equations.has_memory(cls)}


def _whole(template: str, kind: str, method: str, cls: type) -> str:
    """The source of a function that takes and gives all that such an equation may, and calls this one."""
    form = equations.METHODS[kind][method]
    takes, gives = equations.takes_and_gives(kind, method, cls)
    written = {"takes": takes, "gives": gives, "all_takes": form.all_taken, "all_gives": form.all_given}
    return template.format(method=method, **{name: ", ".join(names) for name, names in written.items()})


def kernels_name(cls: type, dtype: np.dtype) -> str:
    readable = re.sub(r"\W", "_", cls.__name__)[:40]
    digest = _digest(_text(KERNELS), repr(equations.METHODS), equations.fingerprint(cls), dtype.name)
    return f"asynchebb_{readable}_{digest}"


def _say_compiling(what: str, dtype: np.dtype) -> None:
    print(f"asynchebb: compiling {what} in {dtype} (once, some seconds)", file=sys.stderr, flush=True)


def loop_names(dtype: np.dtype, wide: bool) -> list[str]:
    """What the loop's modules are called."""
    digest = _digest(*map(_text, ("tiles", "units", *FILES[wide])), dtype.name)
    return [f"asynchebb_{file}_{digest}" for file in FILES[wide]]


def compiled(name: str) -> bool:
    """Has all of this been compiled before, for this machine?"""
    return (cache_folder() / f"{name}.compiled").exists()


def _note_compiled(name: str) -> None:
    (cache_folder() / f"{name}.compiled").touch()


def _moved(function: FunctionType, module: ModuleType) -> FunctionType:
    """The function as one of the module's own: Numba looks for its module again in every later process."""
    moved = FunctionType(function.__code__, vars(module), function.__name__)
    moved.__module__ = module.__name__
    return moved


def _path(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.py")


def _text(name: str) -> str:
    return _path(name).read_text(encoding="utf-8")


def _import_copy(source: str, name: str, names: Mapping[str, Any] | None = None) -> ModuleType:
    """Import a copy of the source from the cache folder, since Numba saves compiled code next to a module's file.

    It finds these names there already, as if it had imported them.
    """
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(_text(source), encoding="utf-8")
        os.utime(part, (0, 0))  # Numba takes a file of another date for another file
        part.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    vars(module).update((key, value) for key, value in (names or {}).items() if not key.startswith("__"))
    spec.loader.exec_module(module)
    return module


def _digest(*parts: str) -> str:
    """Names compiled code by all that goes into it, and the machine."""
    import llvmlite.binding
    import numba

    machine = llvmlite.binding.get_host_cpu_name()
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {machine}".encode())
    for part in parts:
        digest.update(f"\n{part}".encode())
    return digest.hexdigest()[:24]


def wanted_cache_folder() -> Path:
    import platformdirs

    return Path(os.environ.get("ASYNCHEBB_CACHE") or platformdirs.user_cache_path("asynchebb"))


@cache
def cache_folder() -> Path:
    """Where compiled loops are kept: the user's cache folder, or where that cannot be written a temporary one."""
    folder = wanted_cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="asynchebb-"))
