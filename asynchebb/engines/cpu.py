"""The fast engine for one core: Numba compiles the loop together with the network's own equations.

The loop (`cpu_loop.py`) and the linear algebra (`cpu_columns.py`) know no equation by name. For
each combination of equations a copy of the loop is kept in the user's cache folder, under a name
made of everything that goes into it; Numba keeps the compiled code beside it. So an edited rule
is compiled anew, an old one never is, and a later process starts at once.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections import namedtuple
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np

from asynchebb import equations
from asynchebb.engines.traces import Traces
from asynchebb.network import VANISHING, Network, State

LOOP, COLUMNS = (Path(__file__).with_name(name) for name in ("cpu_loop.py", "cpu_columns.py"))


def advance(network: Network, state: State, X: np.ndarray, hold: int, traces: Traces) -> State:
    records = {kind: getattr(network, kind) for kind in equations.METHODS}
    module = loop(tuple(map(type, records.values())), state.W.dtype)
    # In the state's own precision: a float64 constant would make float64 of all that it meets.
    number = state.W.dtype.type
    constants = [
        getattr(module, kind)(*map(number, equations.constants(record).values())) for kind, record in records.items()
    ]
    floor = number(getattr(network.rule, "floor", 0.0))
    arrays = (state.W, state.M.T, *state[2:])  # M by presynaptic column lies in one piece
    additive = bool(getattr(network.dynamics, "additive", False))
    module.advance(*constants, floor, additive, number(VANISHING), arrays, X, hold, traces)
    return state


@cache
def loop(types: tuple[type, ...], dtype: np.dtype) -> ModuleType:
    """The loop compiled with the methods of these types, or as it was compiled before."""
    from numba import njit

    columns = _columns()
    name = f"asynchebb_loop_{_digest(LOOP, COLUMNS, *map(equations.fingerprint, types), dtype.name)}"
    if not any(cache_folder().glob(f"__pycache__/{name}.*.nbc")):
        names = " × ".join(cls.__name__ for cls in types)
        print(f"asynchebb: compiling {names} in {dtype} (once, some seconds)", file=sys.stderr, flush=True)
    module = _import_copy(LOOP, name, name)
    for (kind, methods), cls in zip(equations.METHODS.items(), types, strict=True):
        for method in methods:
            equation = _moved(getattr(cls, method), module)
            setattr(module, method, njit(**{**columns.INNER, "cache": False})(equation))
        setattr(module, kind, namedtuple(kind, equations.field_names(cls), module=name))
    return module


def _moved(function: FunctionType, module: ModuleType) -> FunctionType:
    """The function as one of the module's own: Numba looks for its module again in every later process."""
    moved = FunctionType(function.__code__, vars(module), function.__name__)
    moved.__module__ = module.__name__
    return moved


@cache
def _columns() -> ModuleType:
    # Under its own name, so that copies of the loop import the copy that Numba can write beside.
    return _import_copy(COLUMNS, "asynchebb.engines.cpu_columns", f"asynchebb_columns_{_digest(COLUMNS)}")


def _import_copy(source: Path, module_name: str, file_name: str) -> ModuleType:
    """Import the source from a copy in the cache folder: Numba keeps compiled code beside the file."""
    path = cache_folder() / f"{file_name}.py"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        shutil.copyfile(source, part)
        os.utime(part, (0, 0))  # Numba takes a file of another date for another file
        part.replace(path)
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _digest(*parts: Path | str) -> str:
    """Names compiled code by all that goes into it."""
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else f"\n{part}".encode())
    return digest.hexdigest()[:24]


@cache
def cache_folder() -> Path:
    """Where compiled loops are kept: the user's cache folder, or where that cannot be written a temporary one."""
    import platformdirs

    folder = Path(os.environ.get("ASYNCHEBB_CACHE") or platformdirs.user_cache_path("asynchebb"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="asynchebb-"))
