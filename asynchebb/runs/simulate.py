"""The simulation of a run: a stream of snapshots, from which recordings and figures are made."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from asynchebb.checks import InputError
from asynchebb.engines import advance_in_place, traces
from asynchebb.network import State
from asynchebb.runs import testing
from asynchebb.runs.run import Run

# Stimuli are drawn in blocks of this size, each from its own generator, so that what a network sees
# depends neither on when snapshots are taken nor on where a run was interrupted.
BLOCK = 256


class Snapshot(NamedTuple):
    """A run at one moment. `traces` cover the time since the previous snapshot."""

    number: int
    step: int
    state: State
    measures: dict[str, np.ndarray]  # one entry per probe, NaN for a probe that does not record the measure
    traces: dict[str, np.ndarray]  # "updates", "active": a mean per sample; "y", "burst", "spikes": a mean per neuron


class Diverged(ArithmeticError):
    """Weights or rates are no longer finite. `file` holds the earlier snapshots, if they were recorded."""

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

    `on_progress` is called several times a second with the number of Euler steps done, those of tests included; at the
    end it is `run.steps_with_tests`.
    """
    for snapshot in live(run, engine, after and after._replace(state=after.state.copy()), on_progress):
        yield snapshot._replace(state=snapshot.state.copy())


def live(run: Run, engine: str, after: Snapshot | None, on_progress: Callable[[int], object]) -> Iterator[Snapshot]:
    """`simulate` for callers that finish with each snapshot, and with `after`, before requesting the next.

    The state is not copied and changes in place, so a large M is in memory only once.
    """
    tests = [probe.stimulus.sample(_rng(run, 2, q), probe.samples) for q, probe in enumerate(run.probes)]
    stops = run.stops()
    if after is None:
        first, state = 1, run.network.init(_rng(run, 0), run.dtype)
        on_progress(0)
        yield _snapshot(run, 0, 0, state, {}, tests, engine, on_progress)
    else:
        first, state = after.number + 1, after.state
    fired = np.zeros(2, np.int64)
    for number in range(first, len(stops)):
        phase, end, step = stops[number]
        start = stops[number - 1][1] if stops[number - 1][0] == phase else 0
        hold, from_rest = run.phases[phase].hold, run.phases[phase].from_rest
        recorded: dict[str, list[np.ndarray]] = {name: [] for name in run.trace}
        with np.errstate(over="ignore", invalid="ignore"):
            for X, done in _stimuli(run, phase, start, end):
                state, traced = advance_in_place(run.network, state, X, hold, engine, run.trace, from_rest, fired)
                for name, values in traced.items():
                    recorded[name].append(values.reshape(len(X), hold, -1).mean(axis=1))
                on_progress(step - (end - done) * hold + number * run.steps_per_test)
        traces.check_spikes(run.network.dynamics, fired, warns=number == len(stops) - 1)
        traced = {name: _over_time(name, np.concatenate(values)) for name, values in recorded.items()}
        yield _snapshot(run, number, step, state, traced, tests, engine, on_progress)


def _stimuli(run: Run, phase: int, start: int, end: int) -> Iterator[tuple[np.ndarray, int]]:
    """The phase's stimuli from start to end, in chunks that take about a tenth of a second to learn."""
    piece, now = 1, time.perf_counter()
    largest = (
        max(1, 2**22 // (run.phases[phase].hold * run.network.n)) if {*traces.PER_NEURON} & {*run.trace} else BLOCK
    )
    block, X = -1, np.empty((0, run.network.m))
    while start < end:
        if block != start // BLOCK:
            block = start // BLOCK
            X = run.phases[phase].stimulus.sample(_rng(run, 1, phase, block), BLOCK)
        stop = min(end, start + piece, (block + 1) * BLOCK)
        yield X[start - block * BLOCK : stop - block * BLOCK], stop
        before, now = now, time.perf_counter()
        piece = min(largest, 2 * piece) if now - before < 0.1 else max(1, piece // 2)
        start = stop


def _rng(run: Run, *key: int) -> np.random.Generator:
    """A separate generator for each purpose: 0 for weights, (1, phase, block) for stimuli, (2, probe) for tests."""
    return np.random.default_rng(np.random.SeedSequence(run.seed, spawn_key=key))


def _snapshot(
    run: Run,
    number: int,
    step: int,
    state: State,
    traced: dict[str, np.ndarray],
    tests: list[np.ndarray],
    engine: str,
    on_progress: Callable[[int], object],
) -> Snapshot:
    """Test the network with each probe. It has diverged if its weights, or its rates in a test, are not finite."""
    if not state.is_finite():
        raise Diverged(run, step)
    responses, before = [], step + number * run.steps_per_test
    with np.errstate(over="ignore", invalid="ignore"):
        for X, probe in zip(tests, run.probes, strict=True):
            told = partial(_tell, on_progress, before)
            responses.append(testing.respond(run.network, state, X, probe.hold, engine, probe.from_rest, told))
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
