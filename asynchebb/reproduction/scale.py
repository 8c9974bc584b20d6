"""How large the reproduction is: seconds in a test, minutes on a laptop, or as in the paper."""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    n: int  # neurons
    p: int  # pixels per side
    steps: int  # Euler steps of a run on one set of stimuli
    steps_per_phase: int  # of a run on several sets, for each
    short_hold_steps: int  # of a run on one set whose stimuli are held for less than usual: it takes longest per step
    side_steps: int  # of a run on one set in experiments of our own
    snapshots: int  # of a run on one set
    tested: int  # stimuli of a test as the paper has it (s in App. E)
    settled: int  # stimuli of the test beside it, in which rates settle
    tested_after: int  # stimuli of each set in a test after several sets
    settling: int  # Euler steps that this takes
    seeds: int  # of figures 1 to 3 (without 2D to 2F) under the readings of presets and notebook; all else has one
    every_reading: bool = True  # or only the two under which everything is run

    @property
    def short_holds(self) -> str:
        """For captions of figures that compare holds."""
        if self.short_hold_steps == self.steps:
            return ""
        return f" Runs with holds below 500 have {self.short_hold_steps:,} Euler steps, the others {self.steps:,}."


SMOKE = Scale(
    n=40,
    p=6,
    steps=1_000,
    steps_per_phase=500,
    short_hold_steps=500,
    side_steps=500,
    snapshots=2,
    tested=1,
    settled=1,
    tested_after=1,
    settling=50,
    seeds=2,
    every_reading=False,
)
SMALL = Scale(
    n=500,
    p=14,
    steps=10**6,
    steps_per_phase=600_000,
    short_hold_steps=600_000,
    side_steps=600_000,
    snapshots=10,
    tested=60,
    settled=20,
    tested_after=30,
    settling=500,
    seeds=3,
)
# Three phases make ten million steps, as each run of the paper has. What is our own is run as at small scale.
PAPER = SMALL._replace(steps=10**7, short_hold_steps=10**7, steps_per_phase=3_333_000, every_reading=False)
SCALES = {"smoke": SMOKE, "small": SMALL, "paper": PAPER}
