"""Engines run a network forward. They provide the loop and the linear algebra, and know no rule by name.

An engine is a module with the two functions of `contracts.Engine`.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

import numpy as np

from asynchebb import equations
from asynchebb.checks import InputError, at_least, stimuli, true_or_false, weights
from asynchebb.contracts import Engine
from asynchebb.engines import traces
from asynchebb.engines.traces import Traces
from asynchebb.network import Network, State, float_type

NAMES = ("cpu", "reference")

SETTLED_AT_ONCE = 64  # samples per engine call, which cannot be interrupted


def module(name: str) -> Engine[Network, State, Traces]:
    if name not in NAMES:
        raise InputError(f"engine is {name!r}; the engines are {', '.join(NAMES)}")
    return cast(Engine[Network, State, Traces], import_module(f"asynchebb.engines.{name}"))


def advance(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    engine: str = "cpu",
    trace: tuple[str, ...] = (),
    from_rest: bool = False,
) -> tuple[State, dict[str, np.ndarray]]:
    """Show each row of X to the network for `hold` Euler steps; the arguments are left unchanged.

    Activity carries over from one stimulus to the next or, with `from_rest`, starts from u = y = 0 at each.
    Returns the new state and a dict of the requested traces: "updates" (synapses changed) and "active"
    (neurons with y_i > 0), one number per step; "y" (rates), "burst" (gates) and "spikes", one row per step.
    """
    own, fired = prepare(network, state).copy(), np.zeros(2, np.int64)
    found = advance_in_place(network, own, X, hold, engine, trace, from_rest, fired)
    traces.check_spikes(network.dynamics, fired, warns=True)
    return found


def advance_in_place(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    engine: str,
    trace: tuple[str, ...],
    from_rest: bool = False,
    fired: np.ndarray | None = None,
) -> tuple[State, dict[str, np.ndarray]]:
    """`advance` for a caller who owns the state, as returned by `prepare`, and no longer needs it; and who looks at the
    spikes that are counted in `fired` (`traces.check_spikes`)."""
    at_least(1)("hold", hold)
    true_or_false("from_rest", from_rest)
    X = np.array(stimuli("X", X, network.m), state.W.dtype, order="C")
    kept = traces.empty(trace, len(X) * hold, network.n, state.W.dtype)
    state = module(engine).advance(network, network.complete(state), X, int(hold), kept, bool(from_rest))
    if fired is not None:
        fired += kept.fired
    return state, {name: getattr(kept, name) for name in trace}


def settle(
    network: Network, state: State, X: np.ndarray, steps: int, engine: str = "cpu", at_most: int | None = None
) -> np.ndarray:
    """The rates (samples, n) that the frozen network reaches for each row of X, from rest, in this many Euler steps; of
    spiking neurons, the mean over the second half of them.

    Rows are independent, so their order does not matter, and are distributed over `at_most` this many threads, or over
    all cores. X must be in the state's precision; it is not checked.
    """
    from concurrent.futures import ThreadPoolExecutor

    frozen, run = network.frozen(), module(engine)
    state = frozen.complete(state)
    Y = np.empty((len(X), network.n), state.W.dtype)

    def settle_some(rows: slice) -> np.ndarray:
        own = State(state.W, state.M, *(array.copy() for array in state[2:]))  # a frozen network leaves W and M alone
        counted = traces.empty((), 0, network.n, state.W.dtype)
        run.advance(frozen, own, X[rows], steps, counted, from_rest=True, settled=Y[rows])
        return counted.fired

    threads = run.threads(network) if at_most is None else min(at_most, run.threads(network))
    size = max(1, min(SETTLED_AT_ONCE, -(-len(X) // threads)))
    if equations.has_third_variable(network.dynamics) or equations.noisy(network.dynamics):
        size = 1  # a slow variable and random numbers would go on from row to row
    pieces = [slice(start, start + size) for start in range(0, len(X), size)]
    if threads == 1 or len(pieces) == 1:
        fired = [settle_some(rows) for rows in pieces]
    else:
        with ThreadPoolExecutor(threads) as pool:
            fired = list(pool.map(settle_some, pieces))
    traces.check_spikes(network.dynamics, np.sum(fired, axis=0))
    return Y


def prepare(network: Network, state: State) -> State:
    """The state's arrays with the types and memory order that engines rely on, copied only where necessary."""
    shapes = {"W": (network.n, network.m), "M": (network.n, network.n), "t": ()}
    for name, array in state._asdict().items():
        if name not in ("h", "recent") and np.shape(array) != shapes.get(name, (network.n,)):
            raise InputError(
                f"state.{name} has shape {np.shape(array)}; the network needs {shapes.get(name, (network.n,))}"
            )
    dtype = float_type(np.asarray(state.W).dtype)
    weights("state.W", state.W)
    weights("state.M", state.M)
    types = {"c": np.int64, "recent": np.uint8, "t": np.int64}
    return State(
        *(
            np.require(array, types.get(name, dtype), ["F" if name == "M" else "C", "W"])
            for name, array in network.complete(state)._asdict().items()
        )
    )
