"""What may be passed in. Anything with these members will do: no base class, no registration.

Dynamics, rules and schedules are frozen dataclasses of numbers, whose methods are arithmetic on one neuron's numbers
(`equations.py` says which); stimuli and weights are frozen dataclasses, or have a `digest` that identifies them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

# A number of one neuron, or an array of those of all: equations mean the same for both.
Number = Any


@runtime_checkable
class Dynamics(Protocol):
    """One Euler step: step(u_i, drive_i) gives what is integrated and the rate, from what was integrated and the drive.

    It may take and give more (`equations.METHODS`): spiking neurons have step(u_i, y_i, drive_i), which gives
    u_i, y_i and s_i, the spikes. `additive = True` says that the drive is added to u_i, and `decay` is the
    factor by which y_i falls where there is no spike; engines may use both.

    >>> isinstance(ah.Projected(), ah.contracts.Dynamics)
    True
    """

    @property
    def step(self) -> Callable[..., tuple[Number, ...]]: ...


@runtime_checkable
class Rule(Protocol):
    """The leaks λ_w and λ_m, and η_i, for which activity may be accumulated in a_i.

    `floor` is φ, which is subtracted from lateral changes; 0 if there is none.

    >>> isinstance(ah.Oja(), ah.contracts.Rule), isinstance(ah.Discrete(), ah.contracts.Rule)
    (True, False)
    """

    def leak_w(self, y_i: Number) -> Number: ...
    def leak_m(self, y_i: Number) -> Number: ...
    def rate(self, y_i: Number, a_i: Number) -> tuple[Number, Number]: ...


@runtime_checkable
class Schedule(Protocol):
    """gate(y_i, c_i, k, hold): does the neuron change its weights at step k of a presentation, and its new c_i.

    With n_i after y_i, it is given the number of the neuron's spikes in the last `window` steps.

    >>> isinstance(ah.Discrete(), ah.contracts.Schedule)
    True
    """

    @property
    def gate(self) -> Callable[..., tuple[Number, Number]]: ...


@runtime_checkable
class Weights(Protocol):
    """How weights of this shape are drawn for a network of n neurons.

    >>> isinstance(ah.Gaussian(), ah.contracts.Weights)
    True
    """

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], n: int) -> np.ndarray: ...


@runtime_checkable
class Stimulus(Protocol):
    """A set of stimuli with m pixels in [0, 1].

    `shape`, if it has one, says how they are drawn.

    >>> isinstance(ah.Crossbars(6), ah.contracts.Stimulus)
    True
    """

    @property
    def m(self) -> int: ...
    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray: ...


class FactoredStimulus(Stimulus, Protocol):
    """Stimuli whose parts are known.

    >>> def parts(stimulus: ah.contracts.FactoredStimulus) -> int:
    ...     return len(stimulus.factors())
    >>> parts(ah.Crossbars(6))
    12
    """

    def factors(self) -> np.ndarray: ...


class MeasureFunction(Protocol):
    """A measure: a function of what its parameters name (`measures.NEEDS`); one number, or one per neuron.

    >>> def contrast(W):
    ...     return W.std() / W.mean()
    >>> function: ah.contracts.MeasureFunction = contrast
    >>> ah.measure()(function).name
    'contrast'
    """

    @property
    def __name__(self) -> str: ...
    def __call__(self, *values: Any, **named: Any) -> float | np.ndarray: ...


NetworkT = TypeVar("NetworkT", contravariant=True)
StateT = TypeVar("StateT")
TracesT = TypeVar("TracesT", contravariant=True)


class Call(NamedTuple):
    """What `Engine.advance` takes, for many networks at once.

    >>> ah.contracts.Call._fields
    ('network', 'state', 'X', 'hold', 'traces', 'from_rest', 'settled')
    """

    network: Any
    state: Any
    X: np.ndarray
    hold: int
    traces: Any
    from_rest: bool = False
    settled: np.ndarray | None = None


class Engine(Protocol[NetworkT, StateT, TracesT]):
    """A module that runs networks forward.

    `advance` owns the state that it is given and may change it in place; it fills in the traces that were asked for.
    With `from_rest` it sets the activity to rest at the onset of each stimulus; `settled`, an array (samples, n), takes
    the rates at the end of each, or those of spiking neurons over its second half, on average. `threads` says how many
    such calls may run side by side. An engine may also have `answers(calls)`, which carries out many `Call`s together
    and gives the new state of each or an exception, and `advance_many(calls)`, which raises the first of those. For
    runs side by side it says in how many threads for long and short calls (`AT_ONCE`), prepares those (`begin(card)`),
    and those that only ask (`choose(card)`), and says what a call is best carried out with (`alike(call)`).

    >>> from asynchebb.engines import reference
    >>> engine: ah.contracts.Engine = reference
    >>> engine.threads(ah.asynchronous(n=50, m=36))
    1
    """

    def advance(
        self,
        network: NetworkT,
        state: StateT,
        X: np.ndarray,
        hold: int,
        traces: TracesT,
        from_rest: bool = False,
        settled: np.ndarray | None = None,
    ) -> StateT: ...

    def threads(self, network: NetworkT) -> int: ...


class Task(Protocol):
    """Work that an executor has accepted, as a `concurrent.futures.Future`.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as threads:
    ...     task: ah.contracts.Task = threads.submit(abs, -1)
    >>> task.result()
    1
    """

    def done(self) -> bool: ...
    def result(self) -> Any: ...
    def cancel(self) -> Any: ...


@runtime_checkable
class Executor(Protocol):
    """Whatever can have a function called elsewhere: this machine's cores, Dask, Slurm, or one's own.

    `check()`, if there is such a method, raises `Stopped` when the workers are lost; `renew()` replaces dead ones.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> isinstance(ThreadPoolExecutor(1), ah.contracts.Executor)
    True
    """

    def submit(self, function: Callable[..., Any], argument: Any, /) -> Task: ...
