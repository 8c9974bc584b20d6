"""The scales of the reproduction: seconds in a test, minutes on a laptop, or as in the paper."""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    n: int  # neurons
    p: int  # pixels per side
    steps: int  # Euler steps per run on one set of stimuli
    steps_per_phase: int  # Euler steps per set in runs on several sets
    short_hold_steps: int  # Euler steps per run with holds shorter than usual, which take longest per step
    side_steps: int  # Euler steps per set in our own experiments (half as many with four sets)
    snapshots: int  # per run on one set
    tested: int  # stimuli per test as in the paper (s in App. E)
    settled: int  # stimuli per additional test in which rates settle
    tested_after: int  # stimuli per set in tests of runs on several sets
    settling: int  # Euler steps per stimulus in the last two
    seeds: int  # for figures 1 to 3 (except 2D to 2F) under two readings, and most of the spiking networks; else one
    every_reading: bool = True  # False: only the two under which everything is run

    @property
    def short_holds(self) -> str:
        """A sentence for the captions of figures that compare holds."""
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
# Three phases add up to ten million steps, the length of each run in the paper. Our own experiments stay small.
PAPER = SMALL._replace(steps=10**7, short_hold_steps=10**7, steps_per_phase=3_333_000, every_reading=False)
SCALES = {"smoke": SMOKE, "small": SMALL, "paper": PAPER}
