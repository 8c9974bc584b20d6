"""Distributions of initial weights, all ≥ 0: `draw(rng, shape, n)` for a network of n neurons.

The shape is that of a block of rows of W or M: large matrices are drawn in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asynchebb.checks import added_later, checked, positive, true_or_false


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
@checked(rectified=true_or_false, scale=positive)
class Gaussian:
    """Standard normal weights made non-negative by taking absolute values or by rectification (App. D).

    w_ij = scale · |z| or, rectified, scale · [z]₊, where z ~ N(0, 1)

    >>> W = ah.Gaussian(scale=0.2).draw(np.random.default_rng(0), (100, 196), n=100)
    >>> W.shape, bool(W.min() >= 0)
    ((100, 196), True)
    """

    # choice: the paper says "Gaussian" and "kept positive", but not how; both options are provided.
    rectified: bool = False
    scale: float = added_later(1.0)

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], n: int) -> np.ndarray:
        z = rng.standard_normal(shape)
        return self.scale * (np.maximum(z, 0.0) if self.rectified else np.abs(z))
