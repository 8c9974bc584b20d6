"""The simulation of a run: a stream of snapshots, from which recordings and figures are made."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import engines
from asynchebb.checks import InputError, at_least, function, instance, shown
from asynchebb.contracts import Call
from asynchebb.engines import traces
from asynchebb.network import State
from asynchebb.runs import testing
from asynchebb.runs.run import Run
from asynchebb.runs.silence import UnstableNetwork, instability

# Stimuli are drawn in blocks of this size, each from its own generator, so that what a network sees
# depends neither on when snapshots are taken nor on where a run was interrupted.
BLOCK = 256

# Seconds that a call takes, about. On a GPU that is the time of all networks that run side by side, and to hand them
# over takes a while, however little they do: a call is at least so many steps of one neuron, and at most so many steps
# of the network or, over all stimuli, pixels.
SECONDS, SECONDS_ON_GPU, STEPS_ON_GPU, NUMBERS_ON_GPU = 0.1, 2.0, 2**26, 2**22


class Snapshot(NamedTuple):
    """A run at one moment. `traces` cover the time since the previous snapshot.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> *_, last = ah.simulate(run)
    >>> isinstance(last, ah.Snapshot), last.number, last.step, last.state.W.shape
    (True, 2, 2000, (20, 36))
    """

    number: int
    step: int
    state: State
    measures: dict[str, np.ndarray]  # one entry per probe, NaN for a probe that does not record the measure
    traces: dict[str, np.ndarray]  # "updates", "active": a mean per sample; "y", "burst", "spikes": a mean per neuron


class Diverged(ArithmeticError):
    """Weights or rates are no longer finite. `file` holds the earlier snapshots, if they were recorded.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100))
    >>> try:
    ...     snapshots = [*ah.simulate(run)]
    ... except ah.Diverged as error:  # not this run
    ...     print(error.step, error.file)
    """

    def __init__(self, run: Run, step: int, file: Path | None = None) -> None:
        self.run, self.step, self.file = run, step, file
        holds = ", ".join(str(phase.hold) for phase in run.phases)
        saved = f"; earlier snapshots are saved in {file}" if file else ""
        super().__init__(
            f"the run diverged: weights or rates are no longer finite at step {step:,} "
            f"({run.network}, hold {holds}, seed {run.seed}, {run.dtype}){saved}"
        )

    def __reduce__(self) -> tuple:
        return Diverged, (self.run, self.step, self.file)


def simulate(
    run: Run,
    engine: str = "cpu",
    *,
    after: Snapshot | None = None,
    on_progress: Callable[[int], object] = lambda steps: None,
) -> Iterator[Snapshot]:
    """Yield snapshots of the run, from the untrained network to the end, or only those `after` a given one.

    `after` is a snapshot of this run, or of one that is alike up to there: its state may have been changed, and
    the run may have another rule, schedule or seed. An `UnstableNetwork` warning says that dt is too long.
    `on_progress` is called several times a second (on a GPU, every two seconds or so) with the number of Euler steps
    done, those of tests included; at the end it is `run.steps_with_tests`.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> [(snapshot.step, snapshot.state.W.shape) for snapshot in ah.simulate(run)]
    [(0, (20, 36)), (1000, (20, 36)), (2000, (20, 36))]
    """
    instance("run", run, Run)
    function("on_progress", on_progress)
    if after is not None:
        after = _checked(run, after)
    warn_if_unstable(run, after)
    snapshots = live(run, engine, after, on_progress)
    return (snapshot._replace(state=snapshot.state.copy()) for snapshot in snapshots)


def warn_if_unstable(run: Run, after: Snapshot | None = None) -> None:
    """At the start of the run, since nothing that follows can be trusted."""
    M = (initial_state(run) if after is None else after.state).M
    if trouble := instability(run.network, M, learned=after is not None):
        warnings.warn(trouble, UnstableNetwork, stacklevel=3)


def _checked(run: Run, after: Snapshot) -> Snapshot:
    """A copy of the snapshot, in the run's precision, if the run can go on after it."""
    stops = [step for *_, step in run.stops()]
    number = at_least(0)("after.number", instance("after", after, Snapshot).number)
    step = at_least(0)("after.step", after.step)
    if number >= len(stops) or step != stops[number]:
        raise InputError(
            f"after is snapshot {number} at step {step}, which this run does not have; its snapshots 0 to "
            f"{len(stops) - 1} are at the steps {shown(stops)}"
        )
    return after._replace(state=engines.prepare(run.network, after.state, run.dtype).copy())


def live(run: Run, engine: str, after: Snapshot | None, on_progress: Callable[[int], object]) -> Iterator[Snapshot]:
    """`simulate` for callers that finish with each snapshot, and with `after`, before requesting the next.

    The state is not copied and changes in place, so a large M is in memory only once.
    """
    engine = engines.resolved(engine)
    return engines.carried_out(work(run, after, on_progress, engine == "gpu"), engine)


def work(
    run: Run,
    after: Snapshot | None,
    on_progress: Callable[[int], object],
    on_gpu: bool,
    pieces: Callable[[], int] | None = None,
) -> Generator[Call | Snapshot, Any, None]:
    """The run as the calls that it consists of, which are to be answered by the new state, and its snapshots.

    `pieces` is asked how many stimuli the next call is to show, at most; by default as many as take about SECONDS.
    """
    stops = run.stops()
    state = initial_state(run) if after is None else after.state  # first, since it knows how much memory is needed
    tests = test_stimuli(run)
    if after is None:
        first = 1
        on_progress(0)
        yield (yield from tested(run, 0, 0, state, {}, tests, on_progress, on_gpu))
    else:
        first = after.number + 1
    fired = np.zeros(2, np.int64)
    means = on_gpu and "y" in run.trace  # instead of the rates at each step
    at_each_step = tuple(name for name in run.trace if not (means and name == "y"))
    for number in range(first, len(stops)):
        phase, end, step = stops[number]
        start = stops[number - 1][1] if stops[number - 1][0] == phase else 0
        hold, from_rest = run.phases[phase].hold, run.phases[phase].from_rest
        recorded: dict[str, list[np.ndarray]] = {name: [] for name in run.trace}
        for X, done in _stimuli(run, phase, start, end, on_gpu, pieces):
            call = engines.call(run.network, state, X, hold, at_each_step, from_rest, means=means)
            state = yield call
            fired += call.traces.fired
            for name in at_each_step:
                recorded[name].append(getattr(call.traces, name).reshape(len(X), hold, -1).mean(axis=1))
            if means:
                recorded["y"].append(call.traces.means)
            on_progress(step - (end - done) * hold + number * run.steps_per_test)
        traces.check_spikes(run.network.dynamics, fired, warns=number == len(stops) - 1)
        traced = {name: _over_time(name, np.concatenate(values)) for name, values in recorded.items()}
        yield (yield from tested(run, number, step, state, traced, tests, on_progress, on_gpu))


def initial_state(run: Run) -> State:
    """The untrained network."""
    return run.network.init(_rng(run, 0), run.dtype)


def test_stimuli(run: Run) -> list[np.ndarray]:
    """What each probe shows."""
    return [probe.stimulus.sample(_rng(run, 2, q), probe.samples) for q, probe in enumerate(run.probes)]


def _stimuli(
    run: Run, phase: int, start: int, end: int, on_gpu: bool, pieces: Callable[[], int] | None = None
) -> Iterator[tuple[np.ndarray, int]]:
    """The phase's stimuli from start to end, in chunks that take about SECONDS to learn, or as large as `pieces` says.

    Their sizes are powers of 2, so that runs that go on side by side keep the same pace.
    """
    hold, stimulus, now = run.phases[phase].hold, run.phases[phase].stimulus, time.perf_counter()
    steps = hold * run.network.n
    least, largest, seconds = 1, BLOCK, SECONDS
    if on_gpu:
        least, seconds = max(1, STEPS_ON_GPU // steps), SECONDS_ON_GPU
        largest = max(1, NUMBERS_ON_GPU // max(hold, run.network.m))
    if {*traces.PER_NEURON} & {*run.trace} - ({"y"} if on_gpu else set()):
        largest = max(1, 2 ** (23 if on_gpu else 22) // steps)
    piece = least = min(least, largest)
    blocks: dict[int, np.ndarray] = {}  # those that are shown now
    while start < end:
        stop = min(end, start + (pieces() if pieces else piece))
        if not on_gpu:
            stop = min(stop, (start // BLOCK + 1) * BLOCK)
        needed = range(start // BLOCK, (stop - 1) // BLOCK + 1)
        blocks = {k: blocks[k] if k in blocks else stimulus.sample(_rng(run, 1, phase, k), BLOCK) for k in needed}
        rows = [blocks[k][max(start - k * BLOCK, 0) : stop - k * BLOCK] for k in needed]
        yield rows[0] if len(rows) == 1 else np.concatenate(rows), stop
        before, now = now, time.perf_counter()
        fitting = (stop - start) * seconds / max(now - before, 1e-6)
        piece = min(largest, max(least, 2 ** max(0, round(math.log2(fitting)))))
        start = stop


def _rng(run: Run, *key: int) -> np.random.Generator:
    """A separate generator for each purpose: 0 for weights, (1, phase, block) for stimuli, (2, probe) for tests."""
    return np.random.default_rng(np.random.SeedSequence(run.seed, spawn_key=key))


def tested(
    run: Run,
    number: int,
    step: int,
    state: State,
    traced: dict[str, np.ndarray],
    tests: list[np.ndarray],
    on_progress: Callable[[int], object],
    on_gpu: bool,
) -> Generator[Call, State, Snapshot]:
    """Test the network with each probe. It has diverged if its weights, or its rates in a test, are not finite."""
    if not state.is_finite():
        raise Diverged(run, step)
    responses, before = [], step + number * run.steps_per_test
    for X, probe in zip(tests, run.probes, strict=True):
        told = partial(_tell, on_progress, before)
        test = testing.responding(run.network, state, X, probe.hold, probe.from_rest, told, on_gpu)
        responses.append((yield from test))
        before += probe.samples * probe.hold
    if not all(np.isfinite(response.mean_activity).all() for response in responses):
        raise Diverged(run, step)
    measured: dict[str, np.ndarray] = {}
    for q, (probe, response) in enumerate(zip(run.probes, responses, strict=True)):
        known = testing.known(response, state, tests[q], probe.stimulus)
        for measure in probe.measures:
            value = measure.of(known)
            if value is None:
                missing = ", ".join(measure.missing(known))
                raise InputError(
                    f"the measure {measure} needs {missing}, which a test on {probe.stimulus!r} does not provide"
                )
            measured.setdefault(measure.name, np.full((len(run.probes), *np.shape(value)), np.nan))[q] = value
    return Snapshot(number, step, state, measured, traced)


def _tell(on_progress: Callable[[int], object], before: int, steps: int) -> None:
    on_progress(before + steps)


def _over_time(name: str, values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0) if name in traces.PER_NEURON else values[:, 0]
