"""Tests of a network: it is shown stimuli while it learns nothing, and what it does is measured."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from asynchebb import engines, equations
from asynchebb.checks import InputError, at_least, function, instance, memory, several, stimuli
from asynchebb.contracts import Call, Stimulus
from asynchebb.engines import traces
from asynchebb.measures import error, error_last, error_sd, factors_of
from asynchebb.network import Network, State


class Error(NamedTuple):
    """A reconstruction error: over all steps of the presentations, at the last step of each, and how much the means
    over the presentations differ (a standard deviation)."""

    mean: float
    last: float
    sd: float


class Response(NamedTuple):
    """What a test shows of a frozen network."""

    errors: np.ndarray  # (stimuli, steps): 1 − cos(x, Wᵀy) at each step
    rates: np.ndarray  # (stimuli, n): at the end of each presentation; of spiking neurons, `cpu.response` reads them
    mean_activity: np.ndarray  # (n,): rates, mean over all steps
    active: float  # neurons with y_i > 0, or a read-out above 0, mean over all steps

    @property
    def error(self) -> Error:
        return Error(*(float(measure(self.errors)) for measure in (error, error_last, error_sd)))


def respond(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int = 150,
    engine: str = "cpu",
    from_rest: bool = False,
    on_progress: Callable[[int], object] = lambda steps: None,
) -> Response:
    """Show X to the frozen network (App. E1), each stimulus for `hold` steps.

    It starts from the state's activity, which carries over between stimuli, or each stimulus from rest. A third
    variable of the dynamics, like a homeostatic threshold, starts from the state's at each.
    Where y = 0 (or x = 0) there is no reconstruction, and the error is 1. A network that diverges gives numbers that
    are not finite.

    >>> network = ah.asynchronous(n=50, m=36)
    >>> state = network.init(np.random.default_rng(0))
    >>> X = ah.Crossbars(6).sample(np.random.default_rng(1), 5)
    >>> response = ah.respond(network, state, X, hold=100, from_rest=True)
    >>> response.errors.shape, response.rates.shape, response.mean_activity.shape
    ((5, 100), (5, 50), (50,))
    """
    engine = engines.resolved(engine)
    function("on_progress", on_progress)
    return engines.result_of(responding(network, state, X, hold, from_rest, on_progress, engine == "gpu"), engine)


def responding(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    from_rest: bool,
    on_progress: Callable[[int], object] = lambda steps: None,
    on_gpu: bool = False,
) -> Generator[Call, State, Response]:
    """`respond`, as the calls that it consists of; on a GPU a few large ones."""
    from asynchebb.engines import cpu  # only now: to import Numba takes a while

    X = stimuli("X", X, instance("network", network, Network).m)
    hold = at_least(1)("hold", hold)
    if not len(X):
        raise InputError("X holds no stimulus; a test needs at least one")
    memory("hold", hold, 8.0 * hold * max(len(X), network.n))
    activity, active, spiking = np.zeros(network.n), 0.0, equations.spikes(network.dynamics)
    frozen = network.frozen()
    own = engines.prepare(frozen, state)
    errors, rates = np.empty((len(X), hold)), np.empty((len(X), network.n), own.W.dtype)
    own = State(own.W, own.M, *(array.copy() for array in own[2:]))  # a frozen network does not touch W and M
    h, fired, compiled = own.h.copy(), np.zeros(2, np.int64), cpu.response()
    several = max(1, 2 ** (23 if on_gpu else 20) // (hold * network.n))  # in one call, which takes a while to begin
    if equations.has_third_variable(network.dynamics):
        several = 1  # it would go on from stimulus to stimulus
    for start in range(0, len(X), several):
        own.h[:] = h
        call = engines.call(frozen, own, X[start : start + several], hold, ("y",), from_rest)
        own = yield call
        fired += call.traces.fired
        stop = start + len(call.X)
        shown, Y = np.array(X[start:stop], np.float64), call.traces.y.reshape(len(call.X), hold, -1)
        means, counts = np.empty((len(shown), network.n)), np.empty(len(shown), np.int64)
        compiled.respond(own.W, shown, Y, spiking, errors[start:stop], rates[start:stop], means, counts)
        with np.errstate(over="ignore", invalid="ignore"):
            for mean, count in zip(means, counts, strict=True):
                activity += mean / len(X)
                active += int(count) / (len(X) * hold)
        on_progress(stop * hold)
    traces.check_spikes(network.dynamics, fired)
    return Response(errors, rates, activity, float(active))


def reconstruction_error(
    network: Network, state: State, X: np.ndarray, hold: int = 150, engine: str = "cpu", from_rest: bool = False
) -> Error:
    """1 − cos(x, Wᵀy), averaged over stimuli and steps, on the frozen network (App. E1).

    >>> network = ah.asynchronous(n=50, m=36)
    >>> state = network.init(np.random.default_rng(0))
    >>> X = ah.Crossbars(6).sample(np.random.default_rng(1), 5)
    >>> error = ah.reconstruction_error(network, state, X, hold=100, from_rest=True)
    >>> 0 < error.last < 1
    True
    """
    return respond(network, state, X, hold, engine, from_rest).error


def mean_activity(
    network: Network, state: State, X: np.ndarray, hold: int = 150, engine: str = "cpu", from_rest: bool = False
) -> np.ndarray:
    """ỹ_i = Σ_t y_i(t) / steps, on the frozen network (App. E2)."""
    return respond(network, state, X, hold, engine, from_rest).mean_activity


def error_matrix(
    network: Network,
    states: Sequence[State],
    sets: Sequence[np.ndarray],
    hold: int = 150,
    engine: str = "cpu",
    from_rest: bool = False,
) -> np.ndarray:
    """E[p, s]: the error at the last step on set s, of the state after phase p.

    >>> network = ah.asynchronous(n=50, m=36)
    >>> states = [network.init(np.random.default_rng(seed)) for seed in (0, 1)]
    >>> sets = [kind(6).sample(np.random.default_rng(2), 5) for kind in (ah.Crossbars, ah.Squares)]
    >>> ah.error_matrix(network, states, sets, hold=100).shape
    (2, 2)
    """
    states, sets = several("states", states, State, least=1), several("sets", sets, np.ndarray, least=1)
    return np.array(
        [[reconstruction_error(network, state, X, hold, engine, from_rest).last for X in sets] for state in states]
    )


def known(response: Response, state: State, X: np.ndarray, stimulus: Stimulus) -> dict[str, Any]:
    """What measures may ask for (`measures.NEEDS`), after a test."""
    return dict(
        errors=response.errors,
        rates=response.rates,
        mean_rates=response.mean_activity,
        active=response.active,
        X=X,
        W=state.W,
        M=state.M,
        stimulus=stimulus,
        **factors_of(stimulus),
    )
