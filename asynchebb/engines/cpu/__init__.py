"""The fast engine: Numba compiles the loop together with the network's own equations.

The loop (`loop.py`) and the linear algebra (`columns.py`, with its innermost loop in `tiles.py`, and
`wide.py` for all cores) know no equation by name. The loop is compiled once for each pair of dynamics
and schedule, whose equations it runs at every step; a rule, which is needed only where a gate opens,
is compiled by itself (`rule.py`) and called by its address. A copy of each is saved in the user's
cache folder, under a name made of everything that goes into it, and Numba saves the compiled code
next to it. So an edited rule is recompiled, an old one never is, and a later process starts at once.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections import namedtuple
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.engines.traces import Traces
from asynchebb.engines.traces import empty as empty_traces
from asynchebb.network import VANISHING, Network, State

LOOP, RULE, COLUMNS, WIDE_COLUMNS, TILES = (
    Path(__file__).with_name(f"{name}.py") for name in ("loop", "rule", "columns", "wide", "tiles")
)
IN_LOOP = ("dynamics", "schedule")  # whose equations are part of the loop

WIDE = 4_000  # neurons from which on one network uses all cores


def advance(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    traces: Traces,
    from_rest: bool = False,
    settled: np.ndarray | None = None,
) -> State:
    module = loop(_types(network), state.W.dtype, network.n >= WIDE)
    number = state.W.dtype.type
    arrays = _columns(False).State(state.W, state.M.T, *state[2:])  # M by presynaptic column lies in one piece
    settled = np.empty((0, network.n), number) if settled is None else settled
    constants = _constants(network, module, number)
    module.advance(*constants, number(VANISHING), arrays, X, hold, from_rest, settled, traces)
    return state


def threads(network: Network) -> int:
    """How many calls may run side by side: one for each core, or one where it uses all of them itself."""
    import numba

    return 1 if network.n >= WIDE else vars(numba.config)["NUMBA_NUM_THREADS"]


def warm_up(network: Network, dtype: str = "float32") -> bool:
    """Compile what this network needs; False if it has been compiled before."""
    rule: type = type(network.rule)
    new = not (compiled(loop_of(network, dtype)) and compiled(rule_name(rule, np.dtype(dtype))))
    loop(_types(network), np.dtype(dtype), network.n >= WIDE)
    rule_functions(rule, np.dtype(dtype))
    return new


def loop_of(network: Network, dtype: str) -> str:
    """The name of the loop that this network needs."""
    return loop_name(_types(network), np.dtype(dtype), network.n >= WIDE)


def _types(network: Network) -> tuple[type, ...]:
    return tuple(type(getattr(network, kind)) for kind in IN_LOOP)


def _constants(network: Network, module: ModuleType, number: type) -> list:
    """The equations' constants, φ and whether the dynamics are additive, in the state's own precision: a float64 would
    make float64 of all that it meets."""
    constants = [
        getattr(module, kind)(*map(number, equations.constants(getattr(network, kind)).values())) for kind in IN_LOOP
    ]
    rule_type: type = type(network.rule)
    addresses = (function.address for function in rule_functions(rule_type, np.dtype(number)))
    rule = _columns(False).Rule(*addresses, np.array([*equations.constants(network.rule).values(), 0], number))
    floor, additive = getattr(network.rule, "floor", 0.0), getattr(network.dynamics, "additive", False)
    return [*constants, rule, number(floor), bool(additive)]


@cache
def loop(types: tuple[type, ...], dtype: np.dtype, wide: bool = False) -> ModuleType:
    """The loop compiled with the methods of these types, for all cores or one, or as it was compiled before."""
    from filelock import FileLock

    name = loop_name(types, dtype, wide)
    # One process compiles and the others wait: it costs them nothing, and all have the same bits.
    with FileLock(cache_folder() / f"{name}.lock"):
        module = _module(name, types, wide)
        if not compiled(name):
            _say_compiling(" × ".join(cls.__name__ for cls in types), dtype)
        if wide:
            import numba

            # Starts Numba's threads. Code that was compiled on top of passes from the cache does not know, in a later
            # process, that it needs them, and would crash.
            numba.get_num_threads()
        _no_step(module, types, dtype.type)
    return module


@cache
def rule_functions(rule: type, dtype: np.dtype) -> tuple[Any, Any]:
    """The rule's two functions, compiled now or before; the loop calls them by their `address`."""
    import numba
    from filelock import FileLock

    name = rule_name(rule, dtype)
    fields = equations.field_names(rule) or ("none",)  # a record has at least one
    record = numba.from_dtype(np.dtype([(field, dtype) for field in fields]))
    numbers = numba.types.CPointer(numba.from_dtype(dtype))
    truths, count = numba.types.CPointer(numba.types.uint8), numba.types.int64
    of_both = numba.types.CPointer(record), numbers, numbers
    terms = numba.types.void(*of_both, count, *[numbers] * 3)
    update = numba.types.void(*of_both, truths, count, *[numbers] * 5)
    with FileLock(cache_folder() / f"{name}.lock"):
        module = _import_copy(RULE, name)
        if not compiled(name):
            _say_compiling(rule.__name__, dtype)
        _put_equations(module, "rule", rule)
        vars(module)["number"] = dtype.type
        compile_ = partial(numba.cfunc, cache=True, error_model="numpy")
        return compile_(terms)(module.terms), compile_(update)(module.update)


def rule_name(rule: type, dtype: np.dtype) -> str:
    return f"asynchebb_rule_{_digest(RULE.read_text(encoding='utf-8'), equations.fingerprint(rule), dtype.name)}"


def _say_compiling(what: str, dtype: np.dtype) -> None:
    print(f"asynchebb: compiling {what} in {dtype} (once, some seconds)", file=sys.stderr, flush=True)


def loop_name(types: tuple[type, ...], dtype: np.dtype, wide: bool) -> str:
    told = LOOP.read_text(encoding="utf-8"), _passes(wide), *map(equations.fingerprint, types), dtype.name
    return f"asynchebb_loop_{_digest(*told)}"


def compiled(name: str) -> bool:
    return any(cache_folder().glob(f"__pycache__/{name}.*.nbc"))


def _module(name: str, types: tuple[type, ...], wide: bool) -> ModuleType:
    """A copy of the loop with the equations of these types in it."""
    module = _import_copy(LOOP, name, vars(_columns(wide)))
    for kind, cls in zip(IN_LOOP, types, strict=True):
        _put_equations(module, kind, cls)
        # Numba tells records in a hurry by their class's name alone, and takes ten times as long to start on a second
        # one of the same name: so each loop's have names of their own.
        own_name = f"{kind}_{name.rpartition('_')[2]}"
        record = namedtuple(own_name, equations.field_names(cls), module=name)  # type: ignore[misc]
        setattr(module, kind, record)
        setattr(module, own_name, record)  # where a later process finds it
    return module


def _put_equations(module: ModuleType, kind: str, cls: type) -> None:
    from numba import njit

    for method in equations.METHODS[kind]:
        setattr(module, method, njit(**{**_columns(False).INNER, "cache": False})(_moved(getattr(cls, method), module)))


def _no_step(module: ModuleType, types: tuple[type, ...], number: type) -> None:
    """Show nothing to the smallest network, by which Numba compiles the loop or loads it."""
    constants = [
        getattr(module, kind)(*(number(1) for _ in equations.field_names(cls)))
        for kind, cls in zip(IN_LOOP, types, strict=True)
    ]
    dtype = np.dtype(number)
    W, M, X, settled, u, y, a = (np.zeros(shape, dtype) for shape in ((1, 1), (1, 1), (0, 1), (0, 1), 1, 1, 1))
    state = _columns(False).State(W, M, u, y, np.zeros(1, np.int64), a)
    traces = empty_traces((), 1, 1, dtype)
    rule = _columns(False).Rule(0, 0, np.ones(1, dtype))
    module.advance(*constants, rule, number(0), False, number(VANISHING), state, X, 1, False, settled, traces)


def _moved(function: FunctionType, module: ModuleType) -> FunctionType:
    """The function as one of the module's own: Numba looks for its module again in every later process."""
    moved = FunctionType(function.__code__, vars(module), function.__name__)
    moved.__module__ = module.__name__
    return moved


@cache
def _columns(wide: bool) -> ModuleType:
    """The passes over W and M, for one core or for all."""
    name = f"asynchebb_columns_{_digest(_passes(wide))}"
    return _import_copy(WIDE_COLUMNS, name, vars(_columns(False))) if wide else _import_copy(COLUMNS, name)


def _passes(wide: bool) -> str:
    paths = (TILES, COLUMNS, WIDE_COLUMNS) if wide else (TILES, COLUMNS)
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def _import_copy(source: Path, name: str, names: Mapping[str, Any] | None = None) -> ModuleType:
    """Import a copy of the source from the cache folder, since Numba saves compiled code next to a module's file.

    It finds these names there already, as if it had imported them.
    """
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(source.read_bytes())
        os.utime(part, (0, 0))  # Numba takes a file of another date for another file
        part.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    vars(module).update((key, value) for key, value in (names or {}).items() if not key.startswith("__"))
    spec.loader.exec_module(module)
    return module


def _digest(*parts: str) -> str:
    """Names compiled code by all that goes into it."""
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
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
