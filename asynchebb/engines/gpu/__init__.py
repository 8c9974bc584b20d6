"""The engine for NVIDIA GPUs: one thread block per network, hundreds of networks side by side.

The loop is CUDA C++ (`*.cu`), compiled for each combination of equations, which are translated from Python
(`translate.py`). What is computed, and why it is exact, is said there; how a network is laid out on the device, here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.checks import InputError
from asynchebb.contracts import Call
from asynchebb.engines.gpu import device, program
from asynchebb.engines.gpu.program import Geometry, Program
from asynchebb.engines.traces import Traces
from asynchebb.network import VANISHING, Network, State
from asynchebb.threads import cores

ALIGNED = 64  # a column of M begins at a multiple of so many numbers
Kind = tuple[tuple[type, type, type], np.dtype, Geometry]  # networks that one program runs


def advance(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    traces: Traces,
    from_rest: bool = False,
    settled: np.ndarray | None = None,
) -> State:
    return advance_many([Call(network, state, X, hold, traces, from_rest, settled)])[0]


def advance_many(calls: Sequence[Call]) -> list[State]:
    """Run all these networks side by side; each gets the same bits as by itself. States may share W and M if the
    networks are frozen."""
    for answer in answers(calls):
        if isinstance(answer, Exception):
            raise answer
    return [call.state for call in calls]


def answers(calls: Sequence[Call]) -> list[State | Exception]:
    """The new state of each call, or why it could not be carried out. As many networks are run at a time as the GPU has
    memory for."""
    gpu = device.current()
    with gpu.failures():
        found: list[State | Exception] = [call.state for call in calls]
        refused = {k: _too_large(call, gpu.room) for k, call in enumerate(calls) if bytes_of(call) > gpu.room}
        for k, error in refused.items():
            found[k] = error
        fitting = [k for k in range(len(calls)) if k not in refused]
        _compile(gpu, [calls[k] for k in fitting])
        used = Counter(id(call.state.M) for call in calls)
        for batch in _batches(gpu, calls, fitting):
            for k, error in _run_or_split(gpu, calls, batch, used):
                found[k] = error
    return found


def _batches(gpu: Any, calls: Sequence[Call], numbers: Sequence[int]) -> Iterator[list[int]]:
    """The calls with these numbers, in portions that fit in the GPU's memory."""
    batch: list[int] = []
    taken = 0
    for k in numbers:
        needed = bytes_of(calls[k])
        if batch and taken + needed > gpu.room:
            yield batch
            batch, taken = [], 0
        batch.append(k)
        taken += needed
    if batch:
        yield batch


def _run_or_split(
    gpu: Any, calls: Sequence[Call], batch: list[int], used: Mapping[int, int]
) -> Iterator[tuple[int, InputError]]:
    """Run the calls with these numbers; in two portions if the GPU has less memory than it said. Gives those that do
    not fit by themselves."""
    some = [calls[k] for k in batch]
    with gpu.taking(sum(map(bytes_of, some))):
        fits = _fits(gpu, some, used)
    if fits:
        return
    gpu.free_all()
    if len(batch) == 1:
        yield batch[0], _too_large(some[0], gpu.free_memory())
        return
    half = len(batch) // 2
    yield from _run_or_split(gpu, calls, batch[:half], used)
    yield from _run_or_split(gpu, calls, batch[half:], used)


def _fits(gpu: Any, calls: Sequence[Call], used: Mapping[int, int]) -> bool:
    """Run the calls, unless the GPU has not enough memory; then no state has changed."""
    try:
        _run(gpu, calls, used)
        return True
    except gpu.out_of_memory:
        return False


def _too_large(call: Call, free: float) -> InputError:
    needed = bytes_of(call)
    return InputError(
        f"a network with n = {call.network.n} and m = {call.network.m} needs {needed / 1e9:.2f} GB of the GPU's memory "
        f"for {len(call.X)} stimuli, and {free / 1e9:.2f} GB are available; use a smaller n, fewer stimuli per call, "
        "no traces, float32, or the engine cpu"
    )


def bytes_of(call: Call) -> int:
    """What a call takes of the GPU's memory, at most."""
    arrays = [*call.state, call.X, *call.traces, *(() if call.settled is None else (call.settled,))]
    rows = _stride(call.network) * (call.network.n + program.NUMBER_ROWS)
    return sum(array.nbytes for array in arrays) + rows * call.state.W.itemsize + 32 * _stride(call.network)


def _compile(gpu: Any, calls: Sequence[Call]) -> None:
    """Compile what these calls need, several programs at a time."""
    kinds = {_kind(gpu, call, len(calls)) for call in calls}
    if len(kinds) > 1:
        with ThreadPoolExecutor(min(len(kinds), cores())) as pool:
            list(pool.map(partial(_compiled, gpu), kinds))


def _compiled(gpu: Any, kind: Kind) -> Program:
    return gpu.program(program.source(gpu.words, *kind), kind[2])


def _kind(gpu: Any, call: Call, networks: int) -> Kind:
    dtype = call.state.W.dtype
    return program.classes_of(call.network), dtype, geometry_of(gpu, call, dtype, networks)


def _run(gpu: Any, calls: Sequence[Call], used: Mapping[int, int]) -> None:
    kinds: dict[Any, list[Call]] = defaultdict(list)
    for call in sorted(
        calls, key=lambda call: -len(call.X) * call.hold
    ):  # the longest first, lest one is left to the end
        kinds[_kind(gpu, call, len(calls))].append(call)
    loaded: dict[Any, list[Member]] = {}
    records = []  # on the GPU until all have run
    for kind, group in kinds.items():
        compiled = _compiled(gpu, kind)
        with gpu.stream(kind):  # kinds run side by side
            shared: dict[int, Any] = {}  # arrays of several states, by their identity
            members = [
                Member(gpu, call, kind[2], compiled, shared if used[id(call.state.M)] > 1 else None) for call in group
            ]
            record = np.array([member.record for member in members], program.record(kind[1]))
            records.append(gpu.put(record.view(np.uint8)))
            gpu.launch(compiled, kind[2], records[-1], len(members))
        loaded[kind] = members
    for kind, members in loaded.items():
        with gpu.stream(kind):
            for member in members:
                member.take_back()


def threads(network: Network) -> int:
    """One call at a time: a batch fills the device by itself."""
    return 1


def geometry_of(gpu: Any, call: Call, dtype: np.dtype, networks: int) -> Geometry:
    """How this network, one of so many, is laid out. Sums must not depend on its state, since a run may be cut
    anywhere, nor on other networks; how many blocks share a large one makes no difference to them."""
    of, network = gpu.geometries[dtype], call.network
    if network.n > program.LARGE:
        blocks = min(network.n // program.SHARED_BY.threads, gpu.multiprocessors // networks)
        return program.SHARED_BY._replace(wide=2 ** (blocks.bit_length() - 1)) if blocks > 1 else of.all
    if not getattr(network.dynamics, "additive", False) or equations.has_memory(type(network.dynamics)):
        return of.all
    closed = quiet(network.schedule, call.hold)  # up to the step at which silent neurons may learn
    if closed < call.hold - 1 and not _stays(network.rule):
        return of.all
    # Does inhibition move a silent neuron out of reach? Then most are far, and else all may sleep.
    drifts = bool(network.dynamics.step(0.0, -1.0)[0] < 0)
    # Where neurons learn rarely, more are active; and they may have done so before they were frozen.
    rarely = closed == call.hold - 1 or network == network.frozen()
    if (drifts and not rarely) or network.n <= of.few.threads:
        return of.few
    return of.many if drifts or network.n <= of.many.sleepers else of.all


def _stays(rule: Any) -> bool:
    """Does an update leave a silent neuron as it is?"""
    leaks = rule.leak_w(0.0) == 0 == rule.leak_m(0.0)
    return bool(leaks and getattr(rule, "floor", 0.0) == 0 and rule.rate(0.0, 100.0)[1] == 100.0)


class _Count:
    """The unknown c of a neuron, and what is added to it; anything else that is made of it is unknown."""

    def __init__(self, more: int | None = 0) -> None:
        self.more = more

    def __add__(self, other: Any) -> _Count:
        return _Count(self.more + other if isinstance(other, int) and self.more is not None else None)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, bool | int) and other == 0:
            return 0
        return _Count(self.more if isinstance(other, bool | int | float) and other == 1 else None)

    def __and__(self, other: Any) -> Any:
        return False if other is False else _Count(None)

    def __bool__(self) -> bool:
        raise TypeError("it is not known")

    def _unknown(self, *other: Any) -> _Count:
        return _Count(None)

    __radd__, __rmul__, __rand__ = __add__, __mul__, __and__
    __gt__ = __ge__ = __lt__ = __le__ = __sub__ = __rsub__ = __or__ = __ror__ = __truediv__ = __rtruediv__ = _unknown
    __pow__ = __rpow__ = __neg__ = __eq__ = __ne__ = _unknown  # type: ignore[assignment]


@lru_cache(maxsize=1000, typed=True)
def quiet(schedule: Any, hold: int) -> int:
    """For how many steps of a hold a silent neuron's gate is certainly closed while its c counts on, whatever c is."""
    for k in range(hold):
        beta, c = _silent_gate(schedule, k, hold)
        if isinstance(beta, _Count) or beta or not isinstance(c, _Count) or c.more is None or c.more != 1:
            return k
    return hold


@lru_cache(maxsize=1000, typed=True)
def open_from(schedule: Any, hold: int) -> tuple[int, int]:
    """From which step of a hold on a silent neuron's gate is certainly open up to its end, whatever c is, and what c is
    then at each step; hold and 0 if there is none."""
    found = hold, 0
    for k in reversed(range(hold)):
        beta, c = _silent_gate(schedule, k, hold)
        if isinstance(beta, _Count) or not beta or isinstance(c, _Count) or (k < hold - 1 and c != found[1]):
            return found
        found = k, int(c)
    return found


def _silent_gate(schedule: Any, k: int, hold: int) -> tuple[Any, Any]:
    """The gate and the new c of a silent neuron, each a `_Count` where it depends on c."""
    takes, _ = equations.takes_and_gives("schedule", "gate", schedule.__class__)
    given = {"y_i": 0.0, "n_i": 0, "c_i": _Count(), "hold": hold}
    try:
        return schedule.gate(*(given.get(name, k) for name in takes))
    except Exception:  # it does something with c that is not foreseen here
        return _Count(None), _Count(None)


def _stride(network: Network) -> int:
    return -(-max(network.n, network.m) // ALIGNED) * ALIGNED


class Member:
    """A network of a batch, on the device."""

    def __init__(
        self, gpu: Any, call: Call, geometry: Geometry, compiled: Program, shared: dict[int, Any] | None
    ) -> None:
        self.gpu, self.call, self.owns_weights = gpu, call, shared is None and call.network != call.network.frozen()
        network, state, traces = call.network, call.state, call.traces
        n, m, dtype = network.n, network.m, state.W.dtype
        stride = _stride(network)
        if call.X.dtype != dtype:
            raise ValueError("X must be in the state's precision")  # the kernel would read something else
        weights = {"W": partial(gpu.put, state.W), "P": partial(gpu.put_rows, state.M.T, stride)}
        if shared is None:
            held = {name: put() for name, put in weights.items()}
        else:
            for name, put in weights.items():
                key = id(state.W if name == "W" else state.M)
                if key not in shared:
                    shared[key] = put()
            held = {"W": shared[id(state.W)], "P": shared[id(state.M)]}
        numbers = np.zeros((program.NUMBER_ROWS, stride), dtype)
        numbers[program.U, :n], numbers[program.Y, :n], numbers[program.A, :n] = state.u, state.y, state.a
        if state.h.size:
            numbers[program.H, :n] = state.h
        counts = np.zeros((program.COUNT_ROWS, stride), np.int64)
        counts[program.C, :n] = state.c
        if state.recent.size:
            counts[program.SPIKES, :n] = state.recent.sum(axis=0, dtype=np.int64)
        self.arrays = {
            **held,
            "X": gpu.put(call.X),
            "numbers": gpu.put(numbers),
            "counts": gpu.put(counts),
            "lists": gpu.empty((program.LIST_ROWS, stride), np.int32),
            "truths": gpu.empty((program.TRUTH_ROWS, stride), np.uint8),
            "tile": gpu.empty(geometry.tile, dtype) if geometry.sleepers else None,
            "recent": gpu.put(state.recent) if state.recent.size else None,
            "meeting": gpu.zeros((64 + compiled.memory,), np.uint8) if geometry.wide > 1 else None,
            "settled": None if call.settled is None else gpu.empty(call.settled.shape, dtype),
        }
        for kind in ("dynamics", "schedule", "rule"):
            constants = [*equations.constants(getattr(network, kind)).values(), 0]
            self.arrays[kind] = gpu.put(np.array(constants, dtype))
        for name, trace in zip(traces._fields, traces, strict=True):
            where = name if name == "fired" else f"trace_{name}"
            self.arrays[where] = (
                gpu.zeros(trace.shape, np.uint8 if trace.dtype == bool else trace.dtype) if trace.size else None
            )
        floor, decay = getattr(network.rule, "floor", 0.0), getattr(network.dynamics, "decay", 0.0)
        spiking = equations.spikes(network.dynamics)
        given = {"n": n, "m": m, "stride": stride, "stimuli": len(call.X), "hold": call.hold}
        given |= {"from_rest": call.from_rest, "lazy": geometry.sleepers > 0, "all_near": traces.burst.size > 0}
        given |= {"has_memory": equations.has_memory(type(network.dynamics)), "spiking": spiking}
        given |= {"noisy": equations.noisy(network.dynamics), "events": spiking and decay > 0}
        given |= {"window": equations.window(network.schedule), "clock": int(state.t)}
        given |= {"quiet": quiet(network.schedule, call.hold)}
        given["open_from"], given["open_c"] = open_from(network.schedule, call.hold)
        given |= {name: 0 if array is None else gpu.address(array) for name, array in self.arrays.items()}
        given |= {"floor": floor, "smallest": VANISHING, "decay": decay, "x_x": 0}
        self.record = tuple(given[name] for name in program.record(dtype).names or ())

    def take_back(self) -> None:
        """Put what has changed into the call's arrays."""
        gpu, call, state, n = self.gpu, self.call, self.call.state, self.call.network.n
        numbers, counts = gpu.get(self.arrays["numbers"]), gpu.get(self.arrays["counts"])
        if self.owns_weights:
            gpu.get(self.arrays["W"], state.W)
            gpu.get_rows(self.arrays["P"], n, state.M.T)
        state.u[:], state.y[:], state.a[:] = (numbers[row, :n] for row in (program.U, program.Y, program.A))
        state.c[:] = counts[program.C, :n]
        if state.h.size:
            state.h[:] = numbers[program.H, :n]
        if state.recent.size:
            gpu.get(self.arrays["recent"], state.recent)
        state.t[...] += len(call.X) * call.hold
        if call.settled is not None:
            gpu.get(self.arrays["settled"], call.settled)
        for name, trace in zip(call.traces._fields, call.traces, strict=True):
            array = self.arrays[name if name == "fired" else f"trace_{name}"]
            if array is not None:
                trace += gpu.get(array).view(trace.dtype)
