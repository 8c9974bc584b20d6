"""Distributions of initial weights, all ≥ 0: `draw(rng, shape, n)` for a network of n neurons.

The shape is that of a block of rows of W or M: large matrices are drawn in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asynchebb.checks import added_later, at_least, checked, or_none, positive, true_or_false


@dataclass(frozen=True)
@checked(scale=positive)
class Exponential:
    """Exponential weights with mean scale/√n, where n is the number of neurons (the authors' notebook).

    w_ij ~ scale · Exp(1) / √n

    >>> W = ah.Exponential().draw(np.random.default_rng(0), (100, 196), n=100)
    >>> round(float(W.mean()), 2)
    0.1
    """

    scale: float = added_later(1.0)

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], n: int) -> np.ndarray:
        return self.scale * (rng.standard_exponential(shape) / np.sqrt(n))


@dataclass(frozen=True)
@checked(rectified=true_or_false, scale=positive, shrinks_from=or_none(at_least(1)))
class Gaussian:
    """Standard normal weights made non-negative by taking absolute values or by rectification (App. D).

    w_ij = scale · |z| or, rectified, scale · [z]₊, where z ~ N(0, 1)

    With n > shrinks_from neurons the scale is multiplied by shrinks_from / n, so that all of them together inhibit a
    neuron no more than so many would.

    >>> W = ah.Gaussian(scale=0.2).draw(np.random.default_rng(0), (100, 196), n=100)
    >>> W.shape, bool(W.min() >= 0)
    ((100, 196), True)
    >>> shrinking = ah.Gaussian(shrinks_from=500)
    >>> [round(float(shrinking.draw(np.random.default_rng(0), (100, 100), n).mean()), 1) for n in (500, 2000)]
    [0.8, 0.2]
    """

    # choice: the paper says "Gaussian" and "kept positive", but not how; both options are provided.
    rectified: bool = False
    scale: float = added_later(1.0)
    shrinks_from: int | None = added_later(None)  # None: never

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], n: int) -> np.ndarray:
        z = rng.standard_normal(shape)
        scale = self.scale * min(1.0, (self.shrinks_from or n) / n)
        return scale * (np.maximum(z, 0.0) if self.rectified else np.abs(z))
