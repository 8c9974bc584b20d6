"""The networks of a live page, read from the same stream of calls as every other run.

Whatever the controls change begins a new phase. What was simulated is therefore always a sequence of ordinary runs,
each of which continues the one before (`as_python.py` writes them down), and gives the same bits when it is repeated.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from asynchebb import engines
from asynchebb.checks import InputError
from asynchebb.contracts import Call, Stimulus
from asynchebb.engines import traces
from asynchebb.live_page.setting import Setting, name_of
from asynchebb.network import Network, State
from asynchebb.runs import simulate
from asynchebb.runs.recording import Stop
from asynchebb.runs.run import Phase, Probe, Run
from asynchebb.runs.silence import instability

OPEN_END = 2**53  # samples of a phase that ends when something is changed
MOST_CHANGES = 1000
TEST_STIMULI = 20  # of each set: tests are to be frequent
MOST_SETS = 6  # on which the networks are tested: those shown last
EVERY_STEP = ("updates", "active")
WATCHED = (*EVERY_STEP, "y", "burst")


class Seen(NamedTuple):
    """What one network did during some presentations."""

    x: np.ndarray  # (m,) the last stimulus
    updates: float  # synapses changed per step
    y: np.ndarray  # (steps, n) rates, and
    burst: np.ndarray  # (steps, n) gates, at each step if they were watched


class Simulation:
    """One or two networks that learn step by step with the same stimuli."""

    def __init__(self, setting: Setting, engine: str = "cpu") -> None:
        self.engine = engine
        self.setting = setting
        self.phases: list[Phase] = []  # that have ended, and
        self.networks: list[tuple[Network, ...]] = []  # the networks during each
        self.changed_at: list[int] = []  # the step at the end of each
        self.sets: dict[str, Stimulus] = {}  # on which the networks are tested; the last is the one that is shown
        self.samples = 0  # shown in the present phase
        self._steps_before = 0
        self.states: list[State] = []
        self._answers: list[Any] = []  # to the last call of each stream
        self._wanted = 1  # stimuli of the next call
        self._begin()

    def change(self, setting: Setting) -> None:
        """Go on with another setting. W, M and the activity stay as they are."""
        if len(self.phases) >= MOST_CHANGES:
            raise InputError(f"the setting has been changed {MOST_CHANGES:,} times; reset to go on changing it")
        self._end()
        self.setting = setting
        self._begin()

    @property
    def step(self) -> int:
        return self._steps_before + self.samples * self.setting.hold

    @property
    def phase(self) -> Phase:
        """The present one, up to now."""
        return self._phase(self.samples)

    @property
    def stop(self) -> Stop:
        """Where it stands, as in `Run.stops`."""
        if self.samples or not self.phases:
            return len(self.phases), self.samples, self.step
        return len(self.phases) - 1, self.phases[-1].samples, self.step

    def run(self, number: int) -> Run:
        """The present network's run so far, and the tests of it. What was other networks' work in it is not marked."""
        phases = (*self.phases, *([self.phase] if self.samples or not self.phases else []))
        rest = self.setting.from_rest
        probes = tuple(Probe(stimulus, TEST_STIMULI, from_rest=rest) for stimulus in self.sets.values())
        return Run(self.setting.simulated[number], phases, probes, trace=(), seed=self.setting.seed)

    def advance(self, samples: int, watched: bool = False) -> tuple[int, list[Seen]]:
        """Show at most so many stimuli to each network; how many were shown, and what each network did."""
        if self.setting.then:
            samples = min(samples, self.setting.after - self.samples)
        self._wanted = samples
        calls = [stream.send(answer) for stream, answer in zip(self._streams, self._answers, strict=True)]
        asked = WATCHED if watched else EVERY_STEP
        # The stream keeps no traces, since it has no end; these are ours.
        own = [traces.empty(asked, len(call.X) * call.hold, call.network.n, call.X.dtype) for call in calls]
        found = engines.answers(
            [call._replace(traces=kept) for call, kept in zip(calls, own, strict=True)], self.engine
        )
        for answer in found:
            if isinstance(answer, Exception):
                raise answer
        self._answers = [*found]
        self.states = [state for state in found if isinstance(state, State)]
        shown = len(calls[0].X)
        self.samples += shown
        seen = [
            Seen(call.X[-1], float(kept.updates.mean()), kept.y, kept.burst)
            for call, kept in zip(calls, own, strict=True)
        ]
        if self.setting.then and self.samples == self.setting.after:
            following, *rest = self.setting.then
            self.change(replace(self.setting, stimulus=following, then=tuple(rest)))
        return shown, seen

    def _phase(self, samples: int) -> Phase:
        setting = self.setting
        return Phase(setting.stimulus, max(1, samples), setting.hold, 1, setting.from_rest)

    def _end(self) -> None:
        for stream in self._streams:
            stream.close()
        if self.samples:
            self.changed_at.append(self.step)
            self.phases.append(self.phase)
            self.networks.append(self.setting.simulated)
            self._steps_before, self.samples = self.step, 0

    def _begin(self) -> None:
        setting = self.setting
        for stimulus in (*setting.then, setting.stimulus):
            self.sets.pop(name_of(stimulus), None)
            self.sets[name_of(stimulus)] = stimulus
        for name in [*self.sets][:-MOST_SETS]:
            del self.sets[name]
        phases = (*self.phases, self._phase(OPEN_END))
        runs = [Run(network, phases, trace=(), seed=setting.seed) for network in setting.simulated]
        self.states = self.states or [simulate.initial_state(run) for run in runs]
        found = [
            instability(run.network, state.M, bool(self.phases)) for run, state in zip(runs, self.states, strict=True)
        ]
        self.warning = next(filter(None, found), "")  # with which a run would begin
        self._streams = [self._stream(run, state) for run, state in zip(runs, self.states, strict=True)]
        self._answers = [None] * len(runs)

    def _stream(self, run: Run, state: State) -> Generator[Call, Any, None]:
        before = simulate.Snapshot(len(self.phases), self._steps_before, state, {}, {})
        stream: Any = simulate.work(run, before, lambda steps: None, False, lambda: self._wanted)
        return stream
