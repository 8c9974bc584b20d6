"""The engine for NVIDIA GPUs: one thread block per network, hundreds of networks side by side.

The loop is CUDA C++ (`*.cu`), compiled for each combination of equations, which are translated from Python
(`translate.py`). What is computed, and why it is exact, is said there; what is run together, here; how networks lie in
memory, in `batch.py`; and which memory that is, in `channels.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

import numpy as np

from asynchebb import equations
from asynchebb.checks import InputError
from asynchebb.contracts import Call
from asynchebb.engines.arrays import check_arrays
from asynchebb.engines.gpu import device, program
from asynchebb.engines.gpu.batch import Batch, bytes_of, stride
from asynchebb.engines.gpu.channels import Full
from asynchebb.engines.gpu.program import Geometries, Geometry, Program
from asynchebb.engines.traces import Traces
from asynchebb.network import VANISHING, Network, State
from asynchebb.threads import cores

AT_ONCE = 24, 8  # threads that have long and short calls carried out: a GPU has 32 queues
SHORT = 2**15  # steps: a test, or a stimulus of one, which is not to wait for training
BATCH = 2**27  # bytes that each of them has on the GPU and on the host

# Hundreds of neurons are active in networks that are shown stimuli for fewer steps than LONG, or that learn again after
# SOON or fewer.
LONG, SOON = 200, 60

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
        found = [_checked(call) for call in calls]
        sound = [k for k, one in enumerate(found) if not isinstance(one, Exception)]
        needed = {k: bytes_of(calls[k], _kind(gpu, calls[k], len(calls))[2]) for k in sound}
        for k in sound:
            if needed[k] > gpu.room:
                found[k] = _too_large(calls[k], needed[k], gpu.room)
        fitting = [k for k in sound if needed[k] <= gpu.room]
        _compile(gpu, {_kind(gpu, calls[k], len(fitting)) for k in fitting})
        for batch in _batches(gpu, needed, fitting):
            for k, error in _run_or_split(gpu, calls, needed, batch):
                found[k] = error
    return found


def _checked(call: Call) -> State | Exception:
    try:
        check_arrays(call.network, call.state, call.X, call.hold, call.traces, call.settled)
    except ValueError as error:
        return error
    return call.state


def choose(card: int) -> None:
    """Use this card in this thread."""
    device.choose(card)


def begin(card: int) -> None:
    """Prepare this thread for calls on this card, before much runs there: to allocate memory waits for all of it."""
    choose(card)
    gpu = device.current()
    with gpu.failures(), suppress(Full), gpu.channels(1) as [channel]:
        channel.provide(_largest(gpu))


def alike(call: Call) -> tuple[tuple[Kind, bool], bool, float]:
    """The first is the same for calls that one program runs, if they are long or if they are short; the second says
    whether this one is short, and the last is its part of a batch."""
    gpu = device.current()
    kind, short = _kind(gpu, call, 1), len(call.X) * call.hold < SHORT
    return (kind, short), short, bytes_of(call, kind[2]) / _largest(gpu)


def _largest(gpu: Any) -> int:
    """The bytes of a batch, unless a single call takes more."""
    return int(min(BATCH, gpu.room // (2 * sum(AT_ONCE))))


def _batches(gpu: Any, needed: Mapping[int, int], numbers: Sequence[int]) -> Iterator[list[int]]:
    """The calls with these numbers, in portions that fit in the GPU's memory."""
    batch: list[int] = []
    taken = 0
    for k in numbers:
        if batch and taken + needed[k] > gpu.room:
            yield batch
            batch, taken = [], 0
        batch.append(k)
        taken += needed[k]
    if batch:
        yield batch


def _run_or_split(
    gpu: Any, calls: Sequence[Call], needed: Mapping[int, int], batch: list[int]
) -> Iterator[tuple[int, InputError]]:
    """Run the calls with these numbers; in two portions if the GPU has less memory than it said. Gives those that do
    not fit by themselves."""
    with gpu.taking(sum(needed[k] for k in batch)):
        fits = _fits(gpu, [calls[k] for k in batch])
    if fits:
        return
    gpu.free_all()
    if len(batch) == 1:
        yield batch[0], _too_large(calls[batch[0]], needed[batch[0]], gpu.free_memory())
        return
    half = len(batch) // 2
    yield from _run_or_split(gpu, calls, needed, batch[:half])
    yield from _run_or_split(gpu, calls, needed, batch[half:])


def _fits(gpu: Any, calls: Sequence[Call]) -> bool:
    """Run the calls, unless the GPU has not enough memory; then no state has changed."""
    try:
        _run(gpu, calls)
        return True
    except Full:
        return False


def _too_large(call: Call, needed: int, free: float) -> InputError:
    return InputError(
        f"a network with n = {call.network.n} and m = {call.network.m} needs {needed / 1e9:.2f} GB of the GPU's memory "
        f"for {len(call.X)} stimuli, and {free / 1e9:.2f} GB are available; use a smaller n, fewer stimuli per call, "
        "no traces, float32, or the engine cpu"
    )


def load(needed: Sequence[tuple[Network, int, bool, np.dtype]]) -> None:
    """Compile and load the programs for these networks, with these holds, onsets (from rest?) and precisions. To load
    one waits for all that runs on the GPU, so work of many kinds begins with this. What cannot be compiled says so when
    it is run."""
    gpu = device.current()
    with gpu.failures():
        _compile(gpu, {kind_of(gpu, *one, len(needed)) for one in needed})


def _compile(gpu: Any, kinds: Collection[Kind]) -> None:
    """Compile and load several programs at a time."""

    def compile_if_possible(kind: Kind) -> None:
        with suppress(InputError):
            _compiled(gpu, kind)

    if len(kinds) > 1:
        with ThreadPoolExecutor(min(len(kinds), cores())) as pool:
            list(pool.map(compile_if_possible, kinds))


def _compiled(gpu: Any, kind: Kind) -> Program:
    return gpu.program(program.source(gpu.words, *kind), kind[2])


def _kind(gpu: Any, call: Call, networks: int) -> Kind:
    return kind_of(gpu, call.network, call.hold, call.from_rest, call.state.W.dtype, networks)


def kind_of(gpu: Any, network: Network, hold: int, from_rest: bool, dtype: np.dtype, networks: int) -> Kind:
    """What program runs this network, one of so many."""
    return program.classes_of(network), dtype, geometry_of(gpu, network, hold, from_rest, dtype, networks)


def _run(gpu: Any, calls: Sequence[Call]) -> None:
    kinds: dict[Kind, list[Call]] = defaultdict(list)
    for call in sorted(calls, key=_length, reverse=True):  # the longest first, lest one is left to the end
        kinds[_kind(gpu, call, len(calls))].append(call)
    with gpu.channels(len(kinds)) as channels:  # kinds run side by side
        begun = []
        for channel, (kind, group) in zip(channels, kinds.items(), strict=True):
            compiled, geometry = _compiled(gpu, kind), kind[2]
            told = [_told(call) for call in group]
            batch = Batch(group, told, geometry, compiled.memory)
            channel.reserve(batch)
            begun.append((channel, batch, compiled, geometry))
        for channel, batch, compiled, geometry in begun:  # there is memory for all
            channel.begin(batch, compiled, geometry)
        for channel, batch, *_ in begun:
            channel.end(batch)


def _length(call: Call) -> tuple[int, int]:
    """What says how long a call takes: its steps, and how many neurons are active."""
    return len(call.X) * call.hold, int(np.count_nonzero(call.state.y))


def threads(network: Network) -> int:
    """One call at a time: a batch fills the device by itself."""
    return 1


def geometry_of(gpu: Any, network: Network, hold: int, from_rest: bool, dtype: np.dtype, networks: int) -> Geometry:
    """How this network, one of so many, is laid out. Sums must not depend on its state, since a run may be cut
    anywhere, nor on other networks; how many blocks share a large one makes no difference to them."""
    neurons = program.HALF_LARGE if network.n <= program.HALF_LARGE else program.LARGE
    of = gpu.geometries[dtype, neurons]
    if network.n > program.LARGE:
        blocks = min(network.n // program.SHARED_BY.threads, gpu.multiprocessors // networks)
        return program.SHARED_BY._replace(wide=2 ** (blocks.bit_length() - 1)) if blocks > 1 else of.all
    if equations.has_memory(type(network.dynamics)) or equations.window(network.schedule):
        return of.all
    crowded = next((one for one in of.clusters if network.n <= one.cluster * program.OWNED), of.all)
    return _apart(of, network, hold, from_rest) or crowded


def _apart(of: Geometries, network: Network, hold: int, from_rest: bool) -> Geometry | None:
    """With awake neurons apart, unless too few of the others can be left asleep."""
    schedule = cast(Any, network.schedule)
    closed = quiet(schedule, hold)  # up to the step at which silent neurons may learn
    if not getattr(network.dynamics, "additive", False) or (closed < hold - 1 and not _stays(network.rule)):
        return None
    if network.n <= (of.few.slots or min(of.few.columns, of.few.rows)):  # all of them may be active
        return of.few
    again, fits = _again(schedule, hold), network.n <= of.more.slots
    # Does inhibition move a silent neuron out of reach? Else more are active, and if shown from rest, all at first.
    if from_rest or not network.dynamics.step(0.0, -1.0)[0] < 0:
        crowded = again == 0 or (not fits and (hold < LONG or again <= SOON))
        return None if crowded else of.more
    # Where neurons learn rarely, or even at the lowest rates, more are active.
    rarely, at_any_rate = closed == hold - 1, _learns_at_any_rate(schedule, hold)
    if not fits and ((hold < LONG and (rarely or at_any_rate)) or (at_any_rate and again > SOON)):
        return None
    return of.many if rarely or network == network.frozen() else of.few  # and they may have been so before


@lru_cache(maxsize=1000, typed=True)
def _again(schedule: Any, hold: int) -> int:
    """For how many steps a neuron that has just learned does not do so again, up to about SOON."""
    try:
        c = 0
        for steps in range(SOON + 1):
            beta, c = _gate(schedule, 1e6, c, 0, hold)
            if beta:
                return steps
    except Exception:  # it does something that is not foreseen here
        pass
    return SOON + 1


@lru_cache(maxsize=1000, typed=True)
def _learns_at_any_rate(schedule: Any, hold: int) -> bool:
    try:
        return bool(_gate(schedule, 1e-6, 10**6, 0, hold)[0])
    except Exception:
        return False


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
    try:
        return _gate(schedule, 0.0, _Count(), k, hold)
    except Exception:  # it does something with c that is not foreseen here
        return _Count(None), _Count(None)


def _gate(schedule: Any, y: float, c: Any, k: int, hold: int) -> tuple[Any, Any]:
    takes, _ = equations.takes_and_gives("schedule", "gate", schedule.__class__)
    given = {"y_i": y, "n_i": 0, "c_i": c, "k": k, "hold": hold}
    return schedule.gate(*(given[name] for name in takes))


def _told(call: Call) -> dict[str, Any]:
    """What the kernel is told of a network, besides where its arrays are."""
    network, state = call.network, call.state
    floor, decay = getattr(network.rule, "floor", 0.0), getattr(network.dynamics, "decay", 0.0)
    spiking = equations.spikes(network.dynamics)
    told = {"n": network.n, "m": network.m, "stride": stride(network), "stimuli": len(call.X), "hold": call.hold}
    told |= {"from_rest": call.from_rest, "has_memory": equations.has_memory(type(network.dynamics))}
    told |= {"spiking": spiking, "noisy": equations.noisy(network.dynamics), "events": spiking and decay > 0}
    told |= {"window": equations.window(network.schedule), "clock": int(state.t)}
    told |= {"quiet": quiet(network.schedule, call.hold)}
    told["open_from"], told["open_c"] = open_from(network.schedule, call.hold)
    return {**told, "floor": floor, "smallest": VANISHING, "decay": decay, "holds": 0, "shown": 0, "x_x": 0, "sum_x": 0}
