"""The passes over W and M spread over all cores: what the loop of a large network uses.

Each sum is still one core's, in the same order: the results have the same bits on any number of cores.
"""

from typing import TYPE_CHECKING

from numba import carray, prange

from asynchebb.engines.cpu.tiles import VECTOR, address, row
from asynchebb.engines.cpu.units import unit

if TYPE_CHECKING:  # `cpu` puts those for one core in their place, and this module on top of them
    from asynchebb.engines.cpu.columns import (
        ITEM,
        LANE,
        ROWS,
        B,
        S,
        feed_forward_rows,
        fold_columns,
        hebb_columns,
        indices_at,
        lateral_rows,
        numbers_at,
        rows_to_fold,
    )
    from asynchebb.engines.cpu.lanes import (
        empty_lanes,
        feel_rows,
        fetch,
        gather,
        seat,
        sum_one_tile,
        tiles_of,
    )

    hebb_alone = build_alone = sum_lanes_alone = held_of = row
elif "number" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")
else:
    hebb_alone, build_alone, sum_lanes_alone = hebb, build, sum_lanes  # noqa: F821

SPREAD_LANES = 500_000  # entries of C from which on all cores share a step
PARTS = 16  # of a pass, for the cores to share
LITTLE = 200_000  # multiplications that one core has done by the time that the others have heard of them


@unit("h", spread=True)
def feed_forward(held):
    h = carray(held, 1)[0]
    n, m, count, W, x, listed, item = h.n, h.m, h.pixels, h.W, h.x, h.listed, ITEM
    b = h.numbers + B * h.wide * item
    for part in prange(PARTS):
        first, last = n * part // PARTS, n * (part + 1) // PARTS
        w, out = numbers_at(W + first * m * item), numbers_at(b + first * item)
        feed_forward_rows(w, numbers_at(x), out, indices_at(listed), count, m, last - first)


@unit("ykcyky", spread=True)
def lateral(P, n, active, y, count, inhibition):
    if count * n < LITTLE:
        lateral_rows(P, n, active, y, count, inhibition, n)
        return
    P_at, active_at, y_at, out_at, item = address(P), address(active), address(y), address(inhibition), ITEM
    for part in prange(PARTS):
        first, last = n * part // PARTS, n * (part + 1) // PARTS
        p, out = numbers_at(P_at + first * item), numbers_at(out_at + first * item)
        lateral_rows(p, n, indices_at(active_at), numbers_at(y_at), count, out, last - first)


@unit("hykkkk", spread=True)
def feel(held, N, width, count, size, results):
    if count * size < LITTLE:
        feel_rows(held, N, width, count, 0, size, results)
        return
    held_at, N_at = address(held), address(N)
    for part in prange(PARTS):
        first, last = size * part // PARTS, size * (part + 1) // PARTS
        feel_rows(held_of(held_at), numbers_at(N_at), width, count, first, last, results)


@unit("ykcykykc", spread=True)
def hebb(P, n, active, y, count, gains, grew, rows):
    if 8 * grew <= n or count * n < LITTLE:
        hebb_alone(P, n, active, y, count, gains, grew, rows)
        return
    P_at, active_at, y_at, gains_at = address(P), address(active), address(y), address(gains)
    for part in prange(PARTS):
        first, last = count * part // PARTS, count * (part + 1) // PARTS
        hebb_columns(
            numbers_at(P_at), n, indices_at(active_at), numbers_at(y_at), first, last, numbers_at(gains_at)
        )  # fmt: skip


@unit("ykcykyy")
def hebb_and_lateral(P, n, active, y, count, gains, inhibition):
    hebb(P, n, active, y, count, gains, n, active)
    lateral(P, n, active, y, count, inhibition)


@unit("h", spread=True)
def fold_M(held):
    h = carray(held, 1)[0]
    n, P, item = h.n, h.P, ITEM
    s_at, rows_at = h.numbers + S * h.wide * item, h.indices + ROWS * h.wide * 8
    count = rows_to_fold(held)
    if count:
        for part in prange(PARTS):
            first, last = n * part // PARTS, n * (part + 1) // PARTS
            fold_columns(numbers_at(P), n, first, last, numbers_at(s_at), indices_at(rows_at), count)
    s = numbers_at(s_at)
    for i in range(n):
        s[i] = 1


@unit("hkkykyk", spread=True)
def build(held, count, size, N, width, C, wide_C):
    if count * count < LITTLE:
        build_alone(held, count, size, N, width, C, wide_C)
        return
    h = carray(held, 1)[0]
    lane = row(indices_at(h.indices), LANE, h.wide)
    for p in range(count):
        seat(held, lane[p], p)
    held_at, N_at, C_at, lane_at, item = address(held), address(N), address(C), address(lane), ITEM
    for p in prange(count):
        q = indices_at(lane_at)[p]
        fetch(held_of(held_at), size, numbers_at(N_at), q)
        column = numbers_at(N_at + q * width * item)
        gather(column, indices_at(lane_at), numbers_at(C_at + p * wide_C * item), count)
    empty_lanes(held, count)


@unit("ykykkyyk", spread=True)
def sum_lanes(C, wide_C, y, count, width, sums, unused, before):
    if count * width < LITTLE or before:
        sum_lanes_alone(C, wide_C, y, count, width, sums, unused, before)
        return
    C_at, y_at, sums_at, unused_at = address(C), address(y), address(sums), address(unused)
    for tile in prange(tiles_of(width, VECTOR // ITEM)):
        out, rest = numbers_at(sums_at), numbers_at(unused_at)
        sum_one_tile(numbers_at(C_at), wide_C, numbers_at(y_at), count, width, out, rest, before, tile)
