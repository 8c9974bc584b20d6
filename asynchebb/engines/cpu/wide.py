"""The passes over W and M of `columns.py`, spread over all cores: what the loop of a large network uses.

Each sum is still one core's, in the same order: the results have the same bits on any number of cores.
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import njit, prange

if TYPE_CHECKING:  # `cpu` puts those for one core in their place, and this module on top of them
    from asynchebb.engines.cpu.columns import (
        INNER,
        LANES,
        feed_forward_rows,
        fetch,
        fold_columns,
        hebb,
        hebb_columns,
        lateral_near,
        lateral_rows,
        list_pixels,
        rows_to_fold,
    )
elif "INNER" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")

SPREAD = {**INNER, "parallel": True}
PARTS = 16  # of a pass, for the cores to share
LITTLE = 200_000  # multiplications that one core has done by the time that the others have heard of them

lateral_near_alone, fetch_alone, hebb_alone = lateral_near, fetch, hebb


@njit(**SPREAD)
def feed_forward(W, x, every):
    pixels, count = list_pixels(x)
    n = len(W)
    for part in prange(PARTS):
        feed_forward_rows(W, x, pixels, count, n * part // PARTS, n * (part + 1) // PARTS, every)
    return count


@njit(**SPREAD)
def lateral(P, active, y, count, inhibition):
    n = len(P)
    for part in prange(PARTS):
        first, last = n * part // PARTS, n * (part + 1) // PARTS
        lateral_rows(P, np.uint64(first), np.uint64(last), active, y, count, inhibition)


@njit(**SPREAD)
def lateral_near(Q, first, last, active, y, count, backwards, inhibition):
    if count * (last - first) < LITTLE:
        lateral_near_alone(Q, first, last, active, y, count, backwards, inhibition)
        return
    groups = (last - first) // LANES
    for part in prange(PARTS):
        start, end = first + LANES * (groups * part // PARTS), first + LANES * (groups * (part + 1) // PARTS)
        lateral_near_alone(Q, start, end, active, y, count, backwards, inhibition)


@njit(**SPREAD)
def fetch(P, near, size, columns, first, last, fetched, Q):
    if (last - first) * size < LITTLE:
        fetch_alone(P, near, size, columns, first, last, fetched, Q)
        return
    for k in prange(last - first):
        fetch_alone(P, near, size, columns, first + k, first + k + 1, fetched, Q)


@njit(**SPREAD)
def hebb(P, n, active, y, count, gains, grew, rows):
    if 8 * grew <= n or count * n < LITTLE:
        hebb_alone(P, n, active, y, count, gains, grew, rows)
        return
    for q in prange(count):
        hebb_columns(P, n, active, y, q, q + 1, gains)


@njit(**INNER)
def hebb_and_lateral(P, n, active, y, count, gains, inhibition):
    hebb(P, n, active, y, count, gains, n, active)
    lateral(P, active, y, count, inhibition)


@njit(**SPREAD)
def fold_M(P, s, grown, rows, largest, smallest):
    n = len(P)
    count = rows_to_fold(P, s, grown, rows, largest, smallest)
    for part in prange(PARTS):
        fold_columns(P, n * part // PARTS, n * (part + 1) // PARTS, s, rows, count)
    for i in range(n):
        s[i] = 1
