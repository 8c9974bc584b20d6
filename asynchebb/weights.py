"""Initial weights, all of them ≥ 0: `draw(rng, shape, n)` for a network of n neurons.

The shape is a block of rows of W or M: large matrices are drawn a block at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asynchebb.checks import checked, true_or_false


@dataclass(frozen=True)
class Exponential:
    """Exponential weights of mean 1/√n, n the number of neurons (the authors' notebook).

    w_ij ~ Exp(1) / √n
    """

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], n: int) -> np.ndarray:
        return rng.standard_exponential(shape) / np.sqrt(n)


@dataclass(frozen=True)
@checked(rectified=true_or_false)
class Gaussian:
    """Standard normal weights made positive, by absolute value or by rectifying (App. D).

    w_ij = |z| or, rectified, [z]₊, where z ~ N(0, 1)
    """

    # choice: the paper says "Gaussian" and "kept positive", not how; both are here.
    rectified: bool = False

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], n: int) -> np.ndarray:
        z = rng.standard_normal(shape)
        return np.maximum(z, 0.0) if self.rectified else np.abs(z)
