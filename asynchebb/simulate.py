"""Runs as values (a network, its training phases, its test probes and a seed), and their simulation.

`simulate(run)` yields a stream of snapshots, from which recordings and figures are made.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import equations, measures, testing
from asynchebb.checks import ADDED_LATER, InputError, added_later, at_least, checked, true_or_false
from asynchebb.engines import advance_in_place, traces
from asynchebb.measures import USUAL, Measure
from asynchebb.network import Network, State, float_type

# Incremented by a release whose results differ from the previous one's, so that saved runs are run again.
RESULTS_VERSION = 2

# Stimuli are drawn in blocks of this size, each from its own generator, so that what a network sees
# depends neither on when snapshots are taken nor on where a run was interrupted.
BLOCK = 256


@dataclass(frozen=True)
@checked(samples=at_least(1), hold=at_least(1), snapshots=at_least(1), from_rest=true_or_false)
class Phase:
    """`samples` stimuli, each held for `hold` Euler steps, with this many snapshots during the phase.

    Activity carries over from one stimulus to the next or, with `from_rest`, starts from u = y = 0 at each.
    """

    stimulus: Any
    samples: int
    hold: int = 500
    snapshots: int = 10
    from_rest: bool = added_later(False)


@dataclass(frozen=True)
@checked(samples=at_least(1), hold=at_least(1), from_rest=true_or_false, measures=measures.named)
class Probe:
    """A test at each snapshot: `samples` new stimuli shown to the frozen network (s = 60 and f = 150 in App. E).

    It records these measures, given by name or as user-defined functions (`measures.py`).
    """

    stimulus: Any
    samples: int = 60
    hold: int = 150
    from_rest: bool = added_later(False)
    measures: tuple[Measure, ...] = added_later(USUAL, repr=False)


@dataclass(frozen=True)
class Run:
    """A complete specification of a simulation: on one engine, two equal runs give bit-identical results."""

    network: Network
    phases: tuple[Phase, ...]
    probes: tuple[Probe, ...] = ()  # none: one for each stimulus of the phases
    trace: tuple[str, ...] = ("updates", "active")
    seed: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise InputError(f"network is {self.network!r}; it must be a Network")
        assign = object.__setattr__  # the record is frozen, but its fields may be given as lists
        assign(self, "phases", _several("phases", self.phases, Phase))
        assign(self, "probes", _several("probes", self.probes, Probe))
        if not self.phases:
            raise InputError("phases is empty; a run needs at least one Phase")
        shown: tuple[Phase | Probe, ...] = (*self.phases, *self.probes)
        for part in shown:
            check_stimulus(part.stimulus)
            if part.stimulus.m != self.network.m:
                raise InputError(
                    f"{part.stimulus!r} has {part.stimulus.m} pixels; the network's m is {self.network.m}, "
                    f"it must be {part.stimulus.m}"
                )
        if not self.probes:
            assign(self, "probes", self._usual_probes())
        traces.check(self.trace)
        assign(self, "trace", tuple(name for name in traces.NAMES if name in self.trace))
        at_least(0)("seed", self.seed)
        assign(self, "seed", int(self.seed))
        assign(self, "dtype", float_type(self.dtype).name)

    @cached_property  # it may have to read whole arrays, and it names every part of a recording
    def identity(self) -> str:
        """A name for the run: the same on any machine, and different if anything in the run changes."""
        return hashlib.sha256(f"{RESULTS_VERSION} {describe(self)}".encode()).hexdigest()[:20]

    @cached_property
    def has_own_probes(self) -> bool:
        usual = (dataclasses.replace(probe, measures=self.probes[0].measures) for probe in self._usual_probes())
        return describe(self.probes) != describe(tuple(usual))

    def _usual_probes(self) -> tuple[Probe, ...]:
        usual = (Probe(phase.stimulus, from_rest=phase.from_rest) for phase in self.phases)
        return tuple({describe(probe): probe for probe in usual}.values())

    @property
    def steps(self) -> int:
        return sum(phase.samples * phase.hold for phase in self.phases)

    def stops(self) -> list[tuple[int, int, int]]:
        """Where snapshots are taken: (phase, samples shown in it, step), starting at the beginning of the run."""
        stops, step = [(0, 0, 0)], 0
        for p, phase in enumerate(self.phases):
            ends = np.unique(np.linspace(0, phase.samples, min(phase.snapshots, phase.samples) + 1).round())
            stops += [(p, int(end), step + int(end) * phase.hold) for end in ends[1:]]
            step += phase.samples * phase.hold
        return stops


def check_stimulus(stimulus: Any) -> None:
    if isinstance(stimulus, type) or not all(hasattr(stimulus, part) for part in ("sample", "m")):
        raise InputError(
            f"stimulus is {stimulus!r}; it must be a value with sample(rng, count) and a number m of pixels"
        )


def _several(name: str, given: Any, kind: type) -> tuple:
    """A tuple from a single value, a list or a tuple."""
    given = (given,) if isinstance(given, kind) else tuple(given)
    for value in given:
        if not isinstance(value, kind):
            raise InputError(f"{name} holds {value!r}; it must hold only {kind.__name__}(...)")
    return given


class Snapshot(NamedTuple):
    """A run at one moment. `traces` cover the time since the previous snapshot."""

    number: int
    step: int
    state: State
    measures: dict[str, np.ndarray]  # one entry per probe, NaN for a probe that does not record the measure
    traces: dict[str, np.ndarray]  # "updates", "active": a mean per sample; "y", "burst": a mean per neuron


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

    `on_progress` is called with the number of Euler steps done, several times a second.
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
        yield _snapshot(run, 0, 0, state, {}, tests, engine)
    else:
        first, state = after.number + 1, after.state
    for number in range(first, len(stops)):
        phase, end, step = stops[number]
        start = stops[number - 1][1] if stops[number - 1][0] == phase else 0
        hold, from_rest = run.phases[phase].hold, run.phases[phase].from_rest
        recorded: dict[str, list[np.ndarray]] = {name: [] for name in run.trace}
        with np.errstate(over="ignore", invalid="ignore"):
            for X, done in _stimuli(run, phase, start, end):
                state, traced = advance_in_place(run.network, state, X, hold, engine, run.trace, from_rest)
                for name, values in traced.items():
                    recorded[name].append(values.reshape(len(X), hold, -1).mean(axis=1))
                on_progress(step - (end - done) * hold)
        traced = {name: _over_time(name, np.concatenate(values)) for name, values in recorded.items()}
        yield _snapshot(run, number, step, state, traced, tests, engine)


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
    run: Run, number: int, step: int, state: State, traced: dict[str, np.ndarray], tests: list[np.ndarray], engine: str
) -> Snapshot:
    """Test the network with each probe. It has diverged if its weights, or its rates in a test, are not finite."""
    if not state.is_finite():
        raise Diverged(run, step)
    with np.errstate(over="ignore", invalid="ignore"):
        responses = [
            testing.respond(run.network, state, X, probe.hold, engine, probe.from_rest)
            for X, probe in zip(tests, run.probes, strict=True)
        ]
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


def _is_tacit(value: Any, name: str) -> bool:
    """Is this a field added in a later version, at its default value?"""
    field = getattr(type(value), "__dataclass_fields__", {}).get(name)
    return field is not None and ADDED_LATER in field.metadata and getattr(value, name) == field.default


def _over_time(name: str, values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0) if name in traces.PER_NEURON else values[:, 0]


def describe(value: Any) -> str:
    """A canonical description of a value: class, fields, contents of arrays."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):  # 100 and 100.0 are the same constant
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": content, "shape": value.shape, "dtype": str(value.dtype)}
    if isinstance(value, Measure):
        return {"measure": value.digest}
    if hasattr(value, "digest"):
        return {"class": type(value).__name__, "digest": value.digest}
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        cls: type = type(value)
        # A user-defined class is identified by its equations, not only by its name.
        own = not cls.__module__.startswith("asynchebb.")
        code = {"code": equations.fingerprint(cls), "floor": getattr(value, "floor", 0)} if own else {}
        fields = {
            name: _plain(field) for name, field in equations.constants(value).items() if not _is_tacit(value, name)
        }
        return {"class": cls.__name__, **code, **fields}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    raise InputError(f"{value!r} has no fields that identify it; make its class a frozen dataclass")
