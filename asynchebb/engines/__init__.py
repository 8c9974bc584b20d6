"""Engines run networks forward. They provide the loop and the linear algebra, and know no rule by name.

An engine is a module with the functions of `contracts.Engine`. What it is asked for is a `Call`; work that consists of
many calls (a run, a test) is written as a generator that yields them, so that it need not know how they are carried
out: one after another (`carried_out`), or those of many runs side by side (`side_by_side`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from asynchebb import equations
from asynchebb.checks import (
    InputError,
    array,
    at_least,
    instance,
    one_of,
    several,
    shown,
    stimuli,
    true_or_false,
    weights,
)
from asynchebb.contracts import Call, Engine
from asynchebb.engines import traces
from asynchebb.engines.together import Together
from asynchebb.engines.traces import Traces
from asynchebb.network import Network, State, float_type
from asynchebb.threads import cores

NAMES = ("cpu", "gpu", "reference")
CHOICES = (
    *NAMES,
    "auto",
)  # the gpu where there is one and so many networks run side by side that it pays; else the cpu

SETTLED_AT_ONCE = 64  # samples per engine call, which cannot be interrupted

# The type of a state's whole numbers, the least and the largest.
WHOLE: dict[str, tuple[type, int, int]] = {
    "c": (np.int64, -(2**63), 2**63 - 1), "recent": (np.uint8, 0, 1), "t": (np.int64, 0, 2**53)
}  # fmt: skip

Result = TypeVar("Result")


def resolved(name: str, networks: int = 1) -> str:
    """The name of an engine that can be used here, for work on so many networks at a time."""
    name = one_of("engine", name, CHOICES)
    if name in ("gpu", "auto"):
        from asynchebb.engines.gpu import device

        if name == "auto":
            return "gpu" if networks > 2 * cores() and device.missing() is None else "cpu"
        device.require()
    return name


def module(name: str, networks: int = 1) -> Engine[Network, State, Traces]:
    found = import_module(f"asynchebb.engines.{resolved(name, networks)}")
    return cast(Engine[Network, State, Traces], found)


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
    A network that diverges gives numbers that are not finite, which `State.is_finite` tells.

    >>> network = ah.asynchronous(n=50, m=36)
    >>> state = network.init(np.random.default_rng(0))
    >>> X = ah.Crossbars(6).sample(np.random.default_rng(1), 10)
    >>> state, traces = ah.advance(network, state, X, hold=100, trace=("active", "y"))
    >>> traces["active"].shape, traces["y"].shape
    ((1000,), (1000, 50))
    """
    own, fired = prepare(network, state).copy(), np.zeros(2, np.int64)
    found = advance_in_place(network, own, X, hold, engine, trace, from_rest, fired)
    traces.check_spikes(network.dynamics, fired, warns=True)
    return found


def advance_many(
    networks: Network | Sequence[Network],
    states: Sequence[State],
    Xs: np.ndarray | Sequence[np.ndarray],
    hold: int | Sequence[int],
    engine: str = "auto",
    trace: tuple[str, ...] = (),
    from_rest: bool | Sequence[bool] = False,
) -> tuple[list[State], list[dict[str, np.ndarray]]]:
    """`advance` for many networks at once: on a GPU side by side, on a CPU shared by its cores.

    They may differ in anything, n and rule included. `networks`, `Xs`, `hold` and `from_rest` have one entry per state,
    or are a single one for all. Each network gets the same bits as by itself, whatever else is in the batch.

    >>> networks = [ah.asynchronous(n=50, m=36), ah.discrete(n=30, m=36)]
    >>> states = [network.init(np.random.default_rng(0)) for network in networks]
    >>> X = ah.Crossbars(6).sample(np.random.default_rng(1), 10)
    >>> states, traces = ah.advance_many(networks, states, X, hold=100, engine="cpu")
    >>> [state.W.shape for state in states]
    [(50, 36), (30, 36)]
    """
    states = [*several("states", states, State)]
    wanted = {"networks": networks, "Xs": Xs, "hold": hold, "from_rest": from_rest}
    given = {name: _one_each(name, value, len(states)) for name, value in wanted.items()}
    calls = []
    for network, state, X, steps, rest in zip(
        given["networks"], states, given["Xs"], given["hold"], given["from_rest"], strict=True
    ):
        calls.append(call(network, prepare(network, state).copy(), X, steps, trace, rest))
    advanced = carry_out(calls, engine)
    for one in calls:
        traces.check_spikes(one.network.dynamics, one.traces.fired, warns=True)
    return advanced, [{name: getattr(one.traces, name) for name in trace} for one in calls]


def _one_each(name: str, value: Any, count: int) -> list[Any]:
    if not isinstance(value, list | tuple | range) and not (isinstance(value, np.ndarray) and value.ndim not in (0, 2)):
        return [value] * count
    if len(value) != count:
        raise InputError(
            f"{name} has {len(value)} entries; it must have one for each of the {count} states, or be a single one"
        )
    return [*value]


def call(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    trace: tuple[str, ...] = (),
    from_rest: bool = False,
    settled: np.ndarray | None = None,
    means: bool = False,
) -> Call:
    """A call, checked, for a state as returned by `prepare`, which will change in place. The `means` of the rates in
    each presentation are far less for a GPU to hand back than all rates; the cpu engine does not have them."""
    hold, from_rest = at_least(1)("hold", hold), true_or_false("from_rest", from_rest)
    X = np.array(stimuli("X", X, network.m), state.W.dtype, order="C")
    kept = traces.empty(trace, len(X) * hold, network.n, state.W.dtype, len(X) if means else 0)
    return Call(network, network.complete(state), X, hold, kept, from_rest, settled)


def carry_out(calls: Sequence[Call], engine: str) -> list[State]:
    """Carry out calls that do not depend on each other; the new states."""
    found = answers(calls, engine)
    for answer in found:
        if isinstance(answer, Exception):
            raise answer
    return cast(list[State], found)


def answers(calls: Sequence[Call], engine: str) -> list[State | Exception]:
    """Carry out calls that do not depend on each other; the new state of each, or why it could not be carried out."""
    run: Any = module(engine, len(calls))

    def answer(one: Call) -> State | Exception:
        try:
            return _carried_out(one, run)
        except Exception as error:
            return error

    if hasattr(run, "answers"):
        found = run.answers(calls)
        return [_fault(one.network, state) or state for one, state in zip(calls, found, strict=True)]
    threads = min((run.threads(one.network) for one in calls), default=1)
    return list(in_threads(answer, calls, threads))


def _carried_out(one: Call, run: Engine[Network, State, Traces]) -> State:
    with np.errstate(over="ignore", invalid="ignore"):
        state = run.advance(*one)
    if fault := _fault(one.network, state):
        raise fault
    return state


def _fault(network: Network, answer: State | Exception) -> InputError | None:
    """Dynamics of a user's own may give a rate below 0 in spite of `promises`, and engines differ from there on."""
    if not isinstance(answer, State) or not (answer.y < 0).any():
        return None
    gave = f"whose step gave a rate of {answer.y.min():.3g}"
    return InputError(f"dynamics is {shown(network.dynamics)}, {gave}; rates are never below 0")


def in_threads(function: Any, items: Sequence[Any], threads: int) -> Iterator[Any]:
    if threads == 1 or len(items) < 2:
        yield from map(function, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)


def carried_out(work: Generator[Any, State | None, Result], engine: str) -> Generator[Any, None, Result]:
    """Carry out each call that the work asks for, and pass on whatever else it yields. An error is raised where the
    work asked for the call."""
    answer: State | Exception | None = None
    try:
        while True:
            try:
                item = work.throw(answer) if isinstance(answer, Exception) else work.send(answer)
            except StopIteration as end:
                return end.value
            answer = answers([item], engine)[0] if isinstance(item, Call) else None
            if answer is None:
                yield item
    finally:
        work.close()


def result_of(work: Generator[Call, State, Result], engine: str) -> Result:
    """What the work gives, when all its calls have been carried out."""
    rest = carried_out(cast(Any, work), engine)
    while True:
        try:
            next(rest)
        except StopIteration as end:
            return end.value


def side_by_side(works: Sequence[Generator[Call, State, object]], engine: str, card: int = 0) -> None:
    """Carry out the works side by side, on this one of the cards, by an engine that has `answers`.

    A call that cannot be carried out raises its error where it was asked for, and the others go on.
    """
    Together(works, module(engine, len(works)), card).carry_out()


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
    one = call(network, state, X, hold, trace, from_rest)
    state = _carried_out(one, module(engine))
    if fired is not None:
        fired += one.traces.fired
    return state, {name: getattr(one.traces, name) for name in trace}


def settle(
    network: Network, state: State, X: np.ndarray, steps: int, engine: str = "cpu", at_most: int | None = None
) -> np.ndarray:
    """The rates (samples, n) that the frozen network reaches for each row of X, from rest, in this many Euler steps; of
    spiking neurons, the mean over the second half of them.

    Rows are independent, so their order does not matter, and are distributed over `at_most` this many threads, or over
    all cores. X must be in the state's precision; it is not checked.
    """
    frozen, run = instance("network", network, Network).frozen(), module(engine, len(X))
    state = prepare(frozen, state)
    Y = np.empty((len(X), network.n), state.W.dtype)

    def settling(rows: slice) -> Call:
        own = State(state.W, state.M, *(array.copy() for array in state[2:]))  # a frozen network leaves W and M alone
        return Call(frozen, own, X[rows], steps, traces.empty((), 0, network.n, state.W.dtype), True, Y[rows])

    threads = run.threads(network) if at_most is None else min(at_most, run.threads(network))
    size = max(1, min(SETTLED_AT_ONCE, -(-len(X) // threads)))
    if equations.has_third_variable(network.dynamics) or equations.noisy(network.dynamics):
        size = 1  # a slow variable and random numbers would go on from row to row
    calls = [settling(slice(start, start + size)) for start in range(0, len(X), size)]
    if hasattr(run, "advance_many"):
        run.advance_many(calls)
    else:
        list(in_threads(lambda one: run.advance(*one), calls, threads))
    traces.check_spikes(network.dynamics, np.sum([one.traces.fired for one in calls], axis=0))
    return Y


def prepare(network: Network, state: State, dtype: Any = None) -> State:
    """The state, checked, with the types and memory order that engines rely on, copied only where necessary; in this
    precision, or in that of its W."""
    n = instance("network", network, Network).n
    shapes = {"W": (n, network.m), "M": (n, n), "t": (), "h": None, "recent": None}  # None: `complete` looks at these
    found: dict[str, np.ndarray] = {}
    for name, values in instance("state", state, State)._asdict().items():
        wanted = shapes.get(name, (n,))
        found[name] = array(f"state.{name}", values, str(wanted or "of real numbers"))
        if wanted is not None and found[name].shape != wanted:
            raise InputError(f"state.{name} has shape {found[name].shape}; the network needs {wanted}")
        if name in WHOLE and found[name].size and found[name].dtype.kind not in "iu":
            raise InputError(f"state.{name} has dtype {found[name].dtype}; it must hold whole numbers")
    own = found["W"].dtype.newbyteorder("=")
    if dtype is None and own not in (np.float32, np.float64):
        raise InputError(f"state.W has dtype {own}; it must be float32 or float64")
    real = float_type(own if dtype is None else dtype)
    for name, (_, least, most) in WHOLE.items():
        if found[name].size and not (found[name].min() >= least and found[name].max() <= most):
            raise InputError(f"state.{name} holds a number that is not from {least} to {most}")
    weights("state.W", found["W"])
    weights("state.M", found["M"])
    for name, values in network.complete(State(**found))._asdict().items():
        kind = WHOLE[name][0] if name in WHOLE else real
        with np.errstate(over="ignore"):
            values = np.require(values, kind, ["F" if name == "M" else "C", "A", "W"])
        # No number of W and M is below 0 or NaN, so their largest is enough; a sum is not finite if any term is not.
        if kind is real and not np.isfinite(values.max() if name in "WM" else values.sum(dtype=np.float64)):
            raise InputError(f"state.{name} holds a number that is not finite in {real}")
        found[name] = values
    if (found["y"] < 0).any():
        raise InputError(f"state.y holds {found['y'].min()}; rates must be at least 0")
    return State(**found)
