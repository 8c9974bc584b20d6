"""The library with odd values: one at a time at each of its doors, or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import odd
from .doors import Door, doors
from .judge import judge
from .odd import ANYTHING, EITHER, MISFIT, REFUSED, WORKS, Odd
from .verdicts import Verdict


class Case(NamedTuple):
    """A door, and the arguments that are odd."""

    door: Door
    odd: Mapping[str, Odd]

    @property
    def name(self) -> str:
        return f"{self.door.name}({', '.join(f'{name}: {odd.name}' for name, odd in self.odd.items())})"

    @property
    def fate(self) -> str:
        fates = {odd.fate for odd in self.odd.values()} or {WORKS}
        if len(self.odd) < 2:
            return REFUSED if fates == {MISFIT} else fates.pop()
        return next(fate for fate in (REFUSED, ANYTHING, EITHER) if fate in fates | {EITHER})

    def words(self) -> list[str]:
        """What an error message may call the arguments, one of which it must name."""
        return [word for name in self.odd for word in (name, self.door.called.get(name, name))]

    def result(self) -> Any:
        return self.door.call(**{**self.door.plain, **{name: odd.make() for name, odd in self.odd.items()}})

    def wanted(self) -> Any:
        """What the plain values give that the odd ones stand for."""
        like = {name: odd.like for name, odd in self.odd.items() if odd.like is not None}
        return self.door.call(**{**self.door.plain, **like})

    def judged(self) -> Verdict:
        return judge(self)


def cases(seed: int | None = None) -> list[Case]:
    """Each door with plain arguments, and each odd value of each argument; with a seed at other sizes, and two odd
    arguments as often."""
    rng = np.random.default_rng(0 if seed is None else seed)
    sizes = (6, 5, 4) if seed is None else map(int, rng.integers(4, 9, 3))
    every = [*doors(rng, *sizes)]
    found = [Case(door, {}) for door in every]
    found += [Case(door, {name: one}) for door in every for name, odds in door.odd.items() for one in odds]
    if seed is not None:
        wide = [(door, odd.pairs(door.odd, rng)) for door in every if len(door.odd) > 1]
        chosen = [wide[k] for k in rng.integers(len(wide), size=len(found))]
        found += [Case(door, dict(next(pairs))) for door, pairs in chosen]
    return found
