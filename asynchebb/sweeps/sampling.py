"""Searches: runs drawn from a space of parameters, at random or where earlier ones were best, in a sweep's folder."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from asynchebb.checks import InputError, at_least, checked, one_of, path, real, shown, true_or_false
from asynchebb.contracts import Executor
from asynchebb.files import read_json_if_whole
from asynchebb.measures import MEASURES, factors_of
from asynchebb.runs.run import Run
from asynchebb.sweeps.folder import Folder, Points, Status
from asynchebb.sweeps.grid import axis_from_text, holds_whole_numbers, labels, named, pair_from_text, values_of, varied
from asynchebb.sweeps.work import engine_for, run_points

SAMPLERS = ("adaptive", "random")
GOALS = ("less", "more")


@dataclass(frozen=True)
@checked(low=real, high=real, log=true_or_false)
class Range:
    """Numbers from `low` to `high`, drawn evenly, or with `log` evenly on a logarithmic scale.

    >>> ah.Range(1e-4, 1e-1, log=True)
    Range(low=0.0001, high=0.1, log=True)
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        above, sign = ("0 < low < high", "/") if self.log else ("low < high", "−")
        fits = self.low < self.high and not (self.log and self.low <= 0)
        if not fits or not math.isfinite(self.high / self.low if self.log else self.high - self.low):
            raise InputError(
                f"Range is from {self.low!r} to {self.high!r}; it must have {above}, and high {sign} low must be finite"
            )

    def at(self, share: float) -> float:
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share


@dataclass(frozen=True)
class Whole:
    """The whole numbers of a Range, its ends included."""

    low: int
    high: int
    log: bool

    def at(self, share: float) -> int:
        return min(self.high, math.floor(Range(self.low, self.high + 1, self.log).at(share)))


Space = dict[str, Range | Whole | tuple]


class Sampler(Protocol):
    """Chooses trials, each a value for every field of the space."""

    def ask(self, count: int) -> list[dict[str, Any]]: ...
    def tell(self, values: list[float | None]) -> None: ...


class Random:
    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._rng = space, np.random.default_rng(seed)

    def ask(self, count: int) -> list[dict[str, Any]]:
        return [{name: self._draw(along) for name, along in self._space.items()} for _ in range(count)]

    def _draw(self, along: Range | Whole | tuple) -> Any:
        share = self._rng.random()
        return along[int(share * len(along))] if isinstance(along, tuple) else along.at(share)

    def tell(self, values: list[float | None]) -> None:
        pass


class Adaptive:
    """A sampler of Optuna, by default its tree-structured Parzen estimator."""

    def __init__(self, space: Space, seed: int, goal: str, sampler: Any = "adaptive") -> None:
        try:
            import optuna
        except ImportError:
            raise InputError(
                "sampler is 'adaptive', which needs the package optuna: pip install 'asynchebb[search]'"
            ) from None
        if not isinstance(sampler, str | optuna.samplers.BaseSampler):
            raise InputError(f"sampler is {shown(sampler)}; it must be {', '.join(SAMPLERS)} or a sampler of Optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        of = optuna.distributions
        self._space, self._fail = space, optuna.trial.TrialState.FAIL
        self._distributions: dict[str, Any] = {}
        for name, along in space.items():
            if isinstance(along, tuple):  # of values that may be rules and so on
                self._distributions[name] = of.CategoricalDistribution(range(len(along)))
            else:
                kind: Any = of.IntDistribution if isinstance(along, Whole) else of.FloatDistribution
                self._distributions[name] = kind(along.low, along.high, log=along.log)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant_liar, which spreads the trials of a batch, is experimental
            if isinstance(sampler, str):
                sampler = optuna.samplers.TPESampler(seed=seed % 2**32, constant_liar=True)
            self._study = optuna.create_study(sampler=sampler, direction="minimize" if goal == "less" else "maximize")
        self._asked: list[Any] = []

    def ask(self, count: int) -> list[dict[str, Any]]:
        self._asked = [self._study.ask(self._distributions) for _ in range(count)]
        return [{name: self._value(name, trial.params[name]) for name in self._space} for trial in self._asked]

    def _value(self, name: str, drawn: Any) -> Any:
        along = self._space[name]
        return along[drawn] if isinstance(along, tuple) else drawn

    def tell(self, values: list[float | None]) -> None:
        for trial, value in zip(self._asked, values, strict=True):
            self._study.tell(trial, value, state=self._fail if value is None else None)


def search_runs(
    run: Run,
    space: Space,
    out: str | Path,
    executor: AbstractContextManager[Executor],
    engine: str,
    *,
    measure: str,
    goal: str | None,
    trials: int,
    seeds: int,
    sampler: Any,
    batch: int,
    retry_failed: bool = False,
    on_status: Callable[[Status], object] = lambda status: None,
) -> Points:
    """Run the trials, a batch at a time. A repeated search chooses the same trials, and finds their runs finished."""
    for what, number in (("trials", trials), ("seeds", seeds), ("batch", batch)):
        at_least(1)(what, number)
    chooser = _sampler(space, sampler, run.seed, direction(run, measure, goal))
    kind = sampler if isinstance(sampler, str) else type(sampler).__name__
    content = f"{run.identity} {space!r} {kind} {measure} {goal} {seeds} {batch}"
    name = hashlib.sha256(content.encode()).hexdigest()[:12]
    folder, chosen, runs = Folder(path("out", out)), list[dict[str, Any]](), list[Run]()
    before = read_json_if_whole(folder.grids / f"{name}.json").get("axes", [[{"values": []}]])
    trials = max(trials, len(before[0][0]["values"]))  # a search that has gone further keeps what it has
    with executor as opened:
        engine = engine_for(engine, opened, batch * seeds)
        folder.prepare()
        try:
            while len(chosen) < trials:
                new = chooser.ask(min(batch, trials - len(chosen)))
                chosen += new
                of_batch = [[varied(run, {**one, "seed": run.seed + k}) for k in range(seeds)] for one in new]
                runs += [each for of_trial in of_batch for each in of_trial]
                points = folder.write_grid(repr(run), _axes(chosen, run.seed, seeds), runs, name=name)
                fresh = {each.identity for of_trial in of_batch for each in of_trial}
                run_points(points, runs, opened, engine, fresh, retry_failed, on_status)
                chooser.tell([_mean(folder, of_trial, measure) for of_trial in of_batch])
        finally:
            folder.tidy()
    return points


def space_of(run: Run, given: Mapping[str, Range | Iterable]) -> Space:
    """The space to search: a Range or the possible values of each field, checked on this run."""
    named("space", given)
    if not given:
        raise InputError("space is empty; it must name at least one field to search")
    space: Space = {}
    for name, along in given.items():
        if name == "seed":
            raise InputError("space names seed; it must be left out, and seeds says how many each trial has")
        if isinstance(along, Range):
            values: tuple = (along.low, along.high)
            space[name] = along
            if holds_whole_numbers(run, name):
                values = (math.ceil(along.low), math.floor(along.high))
                space[name] = Whole(*values, along.log)
                if not values[0] < values[1]:
                    raise InputError(f"space gives {name} {along!r}, which must span at least two whole numbers")
        else:
            space[name] = values = tuple(values_of("space", name, along))
        if not values:
            raise InputError(f"space gives {name} no value; it must give at least one")
        for value in values:
            varied(run, {name: value})
    return space


def space_from_text(run: Run, texts: Iterable[str]) -> dict[str, Range | list]:
    """From "rule.eta=log(1e-4, 1e-1)", "schedule.r_b=linear(0, 2)" or values as for a grid."""
    space: dict[str, Range | list] = {}
    for text in texts:
        name, pair = pair_from_text(text)
        if name in space:
            raise InputError(f"vary names {name} twice; it must name each field once")
        try:
            space[name] = axis_from_text(run, text)[1] if pair is None else Range(*pair)
        except InputError as error:
            raise InputError(f"vary is {shown(text)}: {error}") from None
    return space


def direction(run: Run, measure: str, goal: str | None, called: str = "measure") -> str:
    """Whether less or more of the measure is better: as given, or as the measure says."""
    known = {one.name: one for probe in run.probes for one in probe.measures}
    at_end = {"W": 0, "M": 0, "mean_rates": 0, **factors_of(run.probes[-1].stimulus)}  # what is known then
    known |= {name: one for name, one in MEASURES.items() if not one.missing(at_end)}
    one_of(called, measure, [name for name, one in known.items() if not one.per_neuron])
    if goal is not None:
        one_of("goal", goal, GOALS)
    found = goal or known[measure].better
    if not found:
        raise InputError(
            f"{called} is {measure!r}, of which neither less nor more is better; goal must say which, less or more"
        )
    return found


def _sampler(space: Space, sampler: Any, seed: int, goal: str) -> Sampler:
    if isinstance(sampler, str):
        one_of("sampler", sampler, SAMPLERS)
        return Random(space, seed) if sampler == "random" else Adaptive(space, seed, goal)
    return Adaptive(space, seed, goal, sampler)


def _axes(chosen: list[dict[str, Any]], seed: int, seeds: int) -> list[list[dict[str, Any]]]:
    """The trials' number and values, which vary together, and the seeds."""
    trials = [{"name": "trial", "values": [*range(len(chosen))]}]
    for name in chosen[0]:
        values = [trial[name] for trial in chosen]
        if any(other.startswith(f"{name}.") for other in chosen[0]):  # a rule whose constants are searched too
            values = [type(value).__name__ for value in values]
        trials.append({"name": name, "values": labels(values)})
    return [trials, [{"name": "seed", "values": [*range(seed, seed + seeds)]}]]


def _mean(folder: Folder, runs: list[Run], measure: str) -> float | None:
    """The measure's mean over seeds and probes; None if a run has failed."""
    found = [np.mean(read_json_if_whole(folder.file(run.identity, "json")).get(measure, np.nan)) for run in runs]
    mean = float(np.mean(found))
    return mean if np.isfinite(mean) else None
