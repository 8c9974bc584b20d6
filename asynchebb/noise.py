"""Random numbers for neurons that spike by chance.

Each can be computed by itself, so engines need not agree on an order, and a run may be cut and resumed at any step.

They are those of SplitMix64 (Steele, Lea & Flood 2014), which scrambles a counter: at step t neuron i takes number
t n + i + 1 of seed 0.
"""

from __future__ import annotations

import numpy as np

INCREMENT, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SHIFTS = 30, 27, 31
BITS = 24  # of each number in [0, 1): as many as float32 has, so that both precisions have the same ones


def splitmix64(counter: np.ndarray) -> np.ndarray:
    """The numbers of the generator, from 0 to 2⁶⁴ − 1, at these places (uint64) after its seed."""
    z = counter * np.uint64(INCREMENT)
    z = (z ^ (z >> np.uint64(SHIFTS[0]))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(SHIFTS[1]))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(SHIFTS[2]))


def uniform(t: int, n: int, dtype: np.dtype) -> np.ndarray:
    """The numbers in [0, 1) of n neurons at step t."""
    counter = np.arange(1, n + 1, dtype=np.uint64) + np.uint64(t * n)
    return (splitmix64(counter) >> np.uint64(64 - BITS)).astype(dtype) / dtype.type(2**BITS)
