"""Runs as values: a network, its training phases, its test probes and a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from asynchebb import measures, provenance
from asynchebb.checks import InputError, added_later, at_least, checked, frozen, instance, several, shown, true_or_false
from asynchebb.contracts import Stimulus
from asynchebb.engines import traces
from asynchebb.measures import USUAL, Measure
from asynchebb.network import Network, float_type
from asynchebb.provenance import describe

LARGEST_SEED = 2**128 - 1  # as large as NumPy draws them


@dataclass(frozen=True)
@checked(samples=at_least(1), hold=at_least(1), snapshots=at_least(1), from_rest=true_or_false)
class Phase:
    """`samples` stimuli, each held for `hold` Euler steps, with this many snapshots during the phase.

    Activity carries over from one stimulus to the next or, with `from_rest`, starts from u = y = 0 at each.

    >>> phase = ah.Phase(ah.Crossbars(6), samples=200, hold=100, from_rest=True)
    >>> ah.Run(ah.asynchronous(n=50, m=36), phase).steps
    20000
    """

    stimulus: Stimulus
    samples: int
    hold: int = 500
    snapshots: int = 10
    from_rest: bool = added_later(False)


@dataclass(frozen=True)
@checked(samples=at_least(1), hold=at_least(1), from_rest=true_or_false, measures=measures.named)
class Probe:
    """A test at each snapshot: `samples` new stimuli shown to the frozen network (s = 60 and f = 150 in App. E).

    It records these measures, given by name or as user-defined functions (`measures.py`).

    >>> probe = ah.Probe(ah.Crossbars(6), samples=30, measures=("error", "factors_found"))
    >>> run = ah.Run(ah.asynchronous(n=50, m=36), ah.Phase(ah.Crossbars(6), samples=200), probe)
    """

    stimulus: Stimulus
    samples: int = 60
    hold: int = 150
    from_rest: bool = added_later(False)
    measures: tuple[Measure, ...] = added_later(USUAL, repr=False)


@dataclass(frozen=True)
class Run:
    """A complete specification of a simulation: on one engine, two equal runs give bit-identical results.

    >>> bars, squares = (ah.Phase(kind(6), samples=200, hold=100) for kind in (ah.Crossbars, ah.Squares))
    >>> run = ah.Run(ah.asynchronous(n=50, m=36), [bars, squares], seed=7)
    >>> run.name
    'asynchronous-oja-crossbars6+squares6-n50-seed7'
    >>> run.identity == ah.Run(ah.asynchronous(n=50, m=36), [bars, squares], seed=7).identity
    True
    """

    network: Network
    phases: tuple[Phase, ...]
    probes: tuple[Probe, ...] = ()  # none: one for each stimulus of the phases
    trace: tuple[str, ...] = ("updates", "active")
    seed: int = 0
    dtype: str = "float32"

    if TYPE_CHECKING:  # a single phase or probe may be given, or any number of them

        def __init__(
            self,
            network: Network,
            phases: Phase | Iterable[Phase],
            probes: Probe | Iterable[Probe] = ...,
            trace: tuple[str, ...] = ...,
            seed: int = ...,
            dtype: str = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        instance("network", self.network, Network)
        assign = object.__setattr__  # the record is frozen, but its fields may be given as lists
        assign(self, "phases", several("phases", self.phases, Phase, least=1))
        assign(self, "probes", several("probes", self.probes, Probe))
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
        asked = traces.check(self.trace)
        assign(self, "trace", tuple(name for name in traces.NAMES if name in asked))
        assign(self, "seed", at_least(0, LARGEST_SEED)("seed", self.seed))
        assign(self, "dtype", float_type(self.dtype).name)

    def _repr_html_(self) -> str:
        from asynchebb import thumbnails

        return thumbnails.run(self)

    @cached_property  # it may have to read whole arrays, and it names every part of a recording
    def identity(self) -> str:
        """A name for the run: the same on any machine, and different if anything in the run changes."""
        self.contents  # noqa: B018  what it identifies
        return provenance.identity(self)

    @cached_property
    def contents(self) -> str:
        """A digest of the arrays and files that the run's parts use, when its identity was computed."""
        return provenance.contents(self)

    @property
    def name(self) -> str:
        """What it is, for the name of its file: asynchronous-oja-crossbars14-n500-seed0."""
        kinds = (type(part).__name__.lower() for part in (self.network.schedule, self.network.rule))
        shown = "+".join(dict.fromkeys(_short(phase.stimulus) for phase in self.phases))
        return f"{'-'.join(kinds)}-{shown[:60]}-n{self.network.n}-seed{self.seed}"

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

    @property
    def steps_with_tests(self) -> int:
        """Euler steps of the training and of all tests."""
        return self.steps + len(self.stops()) * self.steps_per_test

    @property
    def steps_per_test(self) -> int:
        return sum(probe.samples * probe.hold for probe in self.probes)

    def stops(self) -> list[tuple[int, int, int]]:
        """Where snapshots are taken: (phase, samples shown in it, step), starting at the beginning of the run."""
        stops, step = [(0, 0, 0)], 0
        for p, phase in enumerate(self.phases):
            ends = np.unique(np.linspace(0, phase.samples, min(phase.snapshots, phase.samples) + 1).round())
            stops += [(p, int(end), step + int(end) * phase.hold) for end in ends[1:]]
            step += phase.samples * phase.hold
        return stops


def _short(stimulus: Stimulus) -> str:
    """Its class and size: crossbars14."""
    return f"{type(stimulus).__name__}{getattr(stimulus, 'p', '')}".lower()


def check_stimulus(stimulus: object) -> None:
    if isinstance(stimulus, type) or not all(hasattr(stimulus, part) for part in ("sample", "m")):
        raise InputError(
            f"stimulus is {shown(stimulus)}; it must be a value with sample(rng, count) and a number m of pixels"
        )
    frozen("stimulus", stimulus)
