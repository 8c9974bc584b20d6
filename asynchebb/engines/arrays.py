"""The arrays that a fast engine is given, checked before it takes the address of any: its code knows no lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.engines.traces import Traces
from asynchebb.network import Network, State

FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))
WHOLE, TRUTH, BYTE = map(np.dtype, (np.int64, np.bool_, np.uint8))


def check_arrays(
    network: Network, state: State, X: np.ndarray, hold: int, traces: Traces, settled: np.ndarray | None = None
) -> None:
    """Raise ValueError, naming the array, unless all are as `engines.prepare` and `engines.call` make them."""
    W, M, u, y, c, a, h, recent, t = state
    if not isinstance(W, np.ndarray) or W.dtype not in FLOATS:
        raise ValueError(f"state.W is {_described(W)}; its type must be float32 or float64")
    n, m, real, window = network.n, network.m, W.dtype, equations.window(network.schedule)
    stimuli = len(X) if isinstance(X, np.ndarray) and X.ndim else 0
    each, per_stimulus, per_step = (n,), (stimuli, n), (stimuli * hold, n)
    _check("state.W", W, (n, m), real, writes=False)
    _check("X", X, (stimuli, m), real, writes=False)
    _check("state.M", M, (n, n), real, writes=False, fortran=True)
    _check("state.u", u, each, real)
    _check("state.y", y, each, real)
    _check("state.c", c, each, WHOLE)
    _check("state.a", a, each, real)
    _check("state.h", h, each, real, optional=not equations.has_third_variable(network.dynamics))
    _check("state.recent", recent, (window, n), BYTE, optional=not window)
    _check("state.t", t, (), WHOLE)
    if t < 0:
        raise ValueError(f"state.t is {t}; it must be at least 0")
    if not (W.flags.writeable and M.flags.writeable) and network != network.frozen():
        raise ValueError(f"state.{'M' if W.flags.writeable else 'W'} is read-only; a network that learns must write it")
    if settled is not None:
        _check("settled", settled, per_stimulus, real)
    _check("traces.updates", traces.updates, per_step[:1], WHOLE, optional=True)
    _check("traces.active", traces.active, per_step[:1], WHOLE, optional=True)
    _check("traces.y", traces.y, per_step, real, optional=True)
    _check("traces.burst", traces.burst, per_step, TRUTH, optional=True)
    _check("traces.spikes", traces.spikes, per_step, TRUTH, optional=True)
    _check("traces.means", traces.means, per_stimulus, real, optional=True)
    _check("traces.fired", traces.fired, (2,), WHOLE)


def _check(
    name: str,
    array: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    writes: bool = True,
    fortran: bool = False,
    optional: bool = False,
) -> None:
    """Has it this shape, type and order in memory? One that is `optional` may be empty."""
    if isinstance(array, np.ndarray):
        if optional and not array.size:
            return
        if array.shape == shape and array.dtype == dtype:
            flags = array.flags
            in_order = flags.f_contiguous if fortran else flags.c_contiguous
            if in_order and (flags.behaved if writes else flags.aligned):
                return
    order = "Fortran" if fortran else "C"
    raise ValueError(
        f"{name} is {_described(array)}; it must be an aligned {'and writeable ' * writes}array of shape {shape}, type "
        f"{dtype} and {order} order"
    )


def _described(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return repr(array)[:80]
    flags = array.flags
    order = "C order" if flags.c_contiguous else "Fortran order" if flags.f_contiguous else "no contiguous order"
    faults = ", not aligned" * (not flags.aligned) + ", read-only" * (not flags.writeable)
    return f"an array of shape {array.shape}, type {array.dtype}, {order}{faults}"
