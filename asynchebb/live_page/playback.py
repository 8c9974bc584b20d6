"""The last presentations step by step: computed as a whole, shown at any speed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asynchebb.live_page.simulation import Seen, Simulation

WINDOW = 600  # steps that are shown, or a whole presentation if that is longer


class Recent(NamedTuple):
    """The last steps of one network, oldest first."""

    y: np.ndarray  # (steps, n) rates
    burst: np.ndarray  # (steps, n) gates


class Playback:
    """What the networks did in the last steps, up to the step that is shown now.

    A presentation is simulated as a whole, so that the bits are those of any other run, and can then be shown as slowly
    as one likes. Until it has been shown to its end, the fields are those at its onset.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.forget()

    def forget(self) -> None:
        self.step = self._watched_until = self.simulation.step
        self.seen: list[Seen] = []
        self._recent: list[Recent] = []
        self._fields_at_onset: list[np.ndarray] = []

    @property
    def is_watched(self) -> bool:
        """Were the last steps kept? At the start of a phase there are none."""
        return self._watched_until == self.simulation.step

    @property
    def left(self) -> int:
        """Steps that have been simulated and not yet shown."""
        return self.simulation.step - self.step

    def skip(self, samples: int) -> int:
        """Simulate stimuli that nobody watches; how many there were."""
        shown, self.seen = self.simulation.advance(samples)
        self.show()
        return shown

    def watch(self, samples: int) -> int:
        """Simulate stimuli and keep all their steps, none of which has been shown yet."""
        simulation, hold = self.simulation, self.simulation.setting.hold
        began, self._fields_at_onset = simulation.step, [state.W.copy() for state in simulation.states]
        shown, self.seen = simulation.advance(samples, watched=True)
        new = [Recent(one.y, one.burst) for one in self.seen]
        if self._watched_until == began and self._recent:
            most = max(WINDOW, hold) + shown * hold
            new = [
                Recent(*(np.concatenate(pair)[-most:] for pair in zip(old, one, strict=True)))
                for old, one in zip(self._recent, new, strict=True)
            ]
        self._recent, self._watched_until = new, simulation.step
        return shown

    def show(self, steps: int | None = None) -> None:
        """Show so many more steps, or all that are left."""
        self.step += self.left if steps is None else min(steps, self.left)

    def recent(self, number: int) -> Recent:
        """The last steps of a network up to the one that is shown; none if they were not watched."""
        if not self._recent or not self.is_watched:
            state = self.simulation.states[number]
            return Recent(state.y[None][:0], np.zeros((0, state.y.size), bool))
        length = max(WINDOW, self.simulation.setting.hold)
        shown = slice(0, len(self._recent[number].y) - self.left)
        return Recent(*(array[shown][-length:] for array in self._recent[number]))

    def rates(self, number: int) -> np.ndarray:
        y = self.recent(number).y
        return y[-1] if len(y) else self.simulation.states[number].y

    def fields(self, number: int) -> np.ndarray:
        return self._fields_at_onset[number] if self.left else self.simulation.states[number].W
