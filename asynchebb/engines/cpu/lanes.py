"""The parts of the cpu engine's loop that run few neurons apart from the others.

Of all neurons the near ones are those that could become active in this hold; N is their part of M̂,
by presynaptic neuron like P, and is P itself where all are near. Of these the lanes are those that
are run at every step: the active ones, and those that may soon be. C is the lanes' part of N. The
other near neurons are asleep. Of both it is known what they FELT at the beginning of a block of steps:
the inhibition M̂ @ y.

    NEURON   which of all neurons a near one is      LANE   which of the near neurons a lane is
    SLOT     the lane of a near neuron, or −1        WHO    which of all neurons a lane is
"""

from typing import TYPE_CHECKING

from numba import carray

from asynchebb.engines.cpu.tiles import VECTOR, row, rows_of, sum_columns, sum_tile
from asynchebb.engines.cpu.units import unit

if TYPE_CHECKING:  # `cpu` puts them in their place
    from asynchebb.engines.cpu.columns import (
        ACTIVE,
        ALL,
        CURRENT,
        DEVIATION,
        END,
        FELT,
        FELT_DEVIATION,
        FETCHED,
        GAIN_M,
        GROUP,
        ITEM,
        LANE,
        LANE_FELT,
        LANES,
        LOG,
        LOGGED,
        NEAR,
        NEURON,
        ROWS,
        SLOT,
        SUM,
        TOTAL,
        WHO,
        B,
        S,
        U,
        indices_at,
        list_grown,
        number,
        numbers_at,
        truths_at,
    )
elif "number" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")

TOGETHER = 16  # lanes come in groups of so many: whole vectors
ONE_TILE = 6  # vectors of lanes up to which C is small enough for the nearest cache
TILE = 4  # vectors a tile has if there are several
SPREAD_LANES = 1 << 60  # entries of C from which on all cores share a step: none has so many
MOST_LOGGED = 1 << 40  # added to the number of rows in the log if all of C has been kept
SPARE = 32  # lanes for which there is room in C before it has to be built again


@unit("k", "k")
def round_up(count):
    """To whole vectors."""
    return count + -count % TOGETHER


@unit("k", "k")
def side(count):
    """How wide a matrix of so many rows is: an odd number of vectors, else they would compete for the same lines of the
    cache."""
    wide = round_up(count)
    return wide + (TOGETHER if wide % (2 * TOGETHER) == 0 else 0)


@unit("hkkk")
def copy_neurons(held, source, target, count):
    """The first few neurons of a group, also in another."""
    h = carray(held, 1)[0]
    for r in range(GROUP):
        old, new = row(numbers_at(h.numbers), source + r, h.wide), row(numbers_at(h.numbers), target + r, h.wide)
        for i in range(count):
            new[i] = old[i]
    old_c, new_c = rows_of(indices_at(h.indices), h.wide, (source // GROUP, target // GROUP))
    old_grown, new_grown = rows_of(truths_at(h.truths), h.wide, (source // GROUP, target // GROUP))
    for i in range(count):
        new_c[i] = old_c[i]
    for i in range(count):
        new_grown[i] = old_grown[i]


@unit("hkkkk")
def copy_neuron(held, source, i, target, j):
    """One neuron of a group, also in another; but the sum of rates of the other stays."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide
    for r in range(SUM):
        row(numbers, target + r, wide)[j] = row(numbers, source + r, wide)[i]
    row(indices, target // GROUP, wide)[j] = row(indices, source // GROUP, wide)[i]
    row(truths, target // GROUP, wide)[j] = row(truths, source // GROUP, wide)[i]


@unit("hkk")
def take(held, size, k):
    """near = all[NEURON], all asleep; their columns are fetched when used."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide
    neuron, current, slot = rows_of(indices, wide, (NEURON, CURRENT, SLOT))
    for r in range(SUM):
        old, new = row(numbers, ALL + r, wide), row(numbers, NEAR + r, wide)
        for q in range(size):
            new[q] = old[neuron[q]]
    c, grown, fetched = row(indices, NEAR // GROUP, wide), row(truths, NEAR // GROUP, wide), row(truths, FETCHED, wide)
    total = row(numbers, NEAR + SUM, wide)
    for q in range(size):
        c[q], grown[q] = indices[neuron[q]], truths[neuron[q]]
        total[q], current[q], slot[q], fetched[q] = 0, k, -1, 0


@unit("hkyk")
def fetch(held, size, N, q):
    """N[q] = the near part of the column of near neuron q, unless it is there."""
    h = carray(held, 1)[0]
    neuron, fetched = row(indices_at(h.indices), NEURON, h.wide), row(truths_at(h.truths), FETCHED, h.wide)
    if size < h.n and fetched[q] == 0:
        p, column = row(numbers_at(h.P), neuron[q], h.n), row(N, q, side(size))
        for i in range(size):
            column[i] = p[neuron[i]]
        fetched[q] = 1


@unit("ycyk")
def gather(column, lane, target, count):
    for p in range(count):
        target[p] = column[lane[p]]
    for p in range(count, round_up(count)):
        target[p] = 0


@unit("hk")
def empty_lanes(held, count):
    """Nothing drives the lanes up to the next whole vector, which no one reads."""
    h = carray(held, 1)[0]
    numbers, wide = numbers_at(h.numbers), h.wide
    for p in range(count, round_up(count)):
        row(numbers, LANES + U, wide)[p] = 0
        row(numbers, LANES + B, wide)[p] = 0
        row(numbers, LANES + S, wide)[p] = 0


@unit("hkk")
def seat(held, q, p):
    """Near neuron q becomes lane p."""
    h = carray(held, 1)[0]
    lane, who, neuron, slot = rows_of(indices_at(h.indices), h.wide, (LANE, WHO, NEURON, SLOT))
    felt, lane_felt = rows_of(numbers_at(h.numbers), h.wide, (FELT, LANE_FELT))
    copy_neuron(held, NEAR, q, LANES, p)
    lane[p], who[p], slot[q], lane_felt[p] = q, neuron[q], p, felt[q]


@unit("hkkykyk")
def build(held, count, size, N, width, C, wide_C):
    """Make lanes of the near neurons listed in LANE."""
    h = carray(held, 1)[0]
    lane = row(indices_at(h.indices), LANE, h.wide)
    for p in range(count):
        q = lane[p]
        seat(held, q, p)
        fetch(held, size, N, q)
        gather(row(N, q, width), lane, row(C, p, wide_C), count)
    empty_lanes(held, count)


@unit("hkkkykyk")
def add_lane(held, count, q, size, N, width, C, wide_C):
    """Make a lane of near neuron q."""
    h = carray(held, 1)[0]
    lane = row(indices_at(h.indices), LANE, h.wide)
    seat(held, q, count)
    fetch(held, size, N, q)
    for p in range(count):
        C[p * wide_C + count] = N[lane[p] * width + q]
        if count % TOGETHER == 0:  # a vector more
            for r in range(count + 1, count + TOGETHER):
                C[p * wide_C + r] = 0
    gather(row(N, q, width), lane, row(C, count, wide_C), count + 1)
    empty_lanes(held, count + 1)


@unit("hkkykyk")
def put_lane_back(held, count, p, N, width, C, wide_C):
    """Near neuron and N as lane p and C are: its column where rows have grown, and its row if it has."""
    h = carray(held, 1)[0]
    lane, grown = row(indices_at(h.indices), LANE, h.wide), row(truths_at(h.truths), LANES // GROUP, h.wide)
    copy_neuron(held, LANES, p, NEAR, lane[p])
    row(numbers_at(h.numbers), FELT, h.wide)[lane[p]] = row(numbers_at(h.numbers), LANE_FELT, h.wide)[p]
    column, own, anything = row(N, lane[p], width), row(C, p, wide_C), 0
    for q in range(count):
        anything += grown[q]
    if anything:
        for q in range(count):  # all of it: to look which have grown would take longer
            column[lane[q]] = own[q]
    if grown[p] != 0:
        for q in range(count):
            N[lane[q] * width + lane[p]] = C[q * wide_C + p]


@unit("hkykykb", "k")
def drop_lanes(held, count, N, width, C, wide_C, dropped):
    """Put these lanes to sleep; the last ones that are left take their places. How many are left."""
    h = carray(held, 1)[0]
    lane, who, slot, holes, movers = rows_of(indices_at(h.indices), h.wide, (LANE, WHO, SLOT, ROWS, ACTIVE))
    felt, left, moved = row(numbers_at(h.numbers), LANE_FELT, h.wide), count, 0
    for p in range(count):
        if dropped[p] != 0:
            put_lane_back(held, count, p, N, width, C, wide_C)
            slot[lane[p]] = -1
            left -= 1
    mover = count
    for p in range(left):
        if dropped[p] != 0:
            mover -= 1
            while dropped[mover] != 0:
                mover -= 1
            holes[moved], movers[moved] = p, mover
            moved += 1
    for r in range(moved):
        p, mover = holes[r], movers[r]
        copy_neuron(held, LANES, mover, LANES, p)
        lane[p], who[p], felt[p] = lane[mover], who[mover], felt[mover]
        slot[lane[p]] = p
        old, new = row(C, mover, wide_C), row(C, p, wide_C)
        for q in range(count):
            new[q] = old[q]
    for q in range(left):  # column after column, which finds each in the nearest cache
        column = row(C, q, wide_C)
        for r in range(moved):
            column[holes[r]] = column[movers[r]]
    empty_lanes(held, left)
    return left


@unit("hkkykyk")
def put_back(held, count, size, N, width, C, wide_C):
    """all[NEURON] = near, and M̂ = N where a row has grown."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide
    neuron, rows, fetched = row(indices, NEURON, wide), row(indices, ROWS, wide), row(truths, FETCHED, wide)
    for p in range(count):
        put_lane_back(held, count, p, N, width, C, wide_C)
    for r in range(SUM):
        old, new = row(numbers, NEAR + r, wide), row(numbers, ALL + r, wide)
        for q in range(size):
            new[neuron[q]] = old[q]
    c, grown, grew = row(indices, NEAR // GROUP, wide), row(truths, NEAR // GROUP, wide), 0
    for q in range(size):
        indices[neuron[q]], truths[neuron[q]] = c[q], grown[q]
        rows[grew] = q
        grew += grown[q] != 0
    if size < h.n:
        for q in range(size):
            if fetched[q] != 0:
                p, column = row(numbers_at(h.P), neuron[q], h.n), row(N, q, width)
                for r in range(grew):
                    p[neuron[rows[r]]] = column[rows[r]]


@unit("kk", "k")
def tiles_of(width, per):
    """How many tiles the lanes make: one of up to ONE_TILE vectors, or several of TILE, the last ones smaller."""
    vectors = width // per
    return 1 if vectors <= ONE_TILE else vectors // TILE + (vectors % TILE > 0)


@unit("kkkk", "k")
def tile_start(tile, tiles, width, per):
    """The lane at which a tile begins, or the last one ends: none has a single vector, which would be slow."""
    if tile == tiles:
        return width
    return per * (TILE * tile - (tile > 0 and tile == tiles - 1 and width // per % TILE == 1))


@unit("ykyykkkkyyk")
def add_up(C, wide_C, y, new, before, after, own, last, now, then, vectors):
    """`sum_tile`, which has to be told how many vectors when it is compiled."""
    if vectors == 4:
        sum_tile(C, wide_C, y, new, before, after, own, last, now, then, 4)
    elif vectors == 3:
        sum_tile(C, wide_C, y, new, before, after, own, last, now, then, 3)
    elif vectors == 2:
        sum_tile(C, wide_C, y, new, before, after, own, last, now, then, 2)
    elif vectors == 1:
        sum_tile(C, wide_C, y, new, before, after, own, last, now, then, 1)
    elif vectors == 5:
        sum_tile(C, wide_C, y, new, before, after, own, last, now, then, 5)
    elif vectors == 6:
        sum_tile(C, wide_C, y, new, before, after, own, last, now, then, 6)


@unit("ykykkyykk")
def sum_one_tile(C, wide_C, y, count, width, sums, unused, before, tile):
    """Of `sum_lanes`."""
    per = VECTOR // ITEM
    tiles = tiles_of(width, per)
    start, end = tile_start(tile, tiles, width, per), tile_start(tile + 1, tiles, width, per)
    own, rest, last = row(sums, start, 1), row(unused, start, 1), start if before else count
    for p in range(end - start):
        own[p] = 0
    add_up(row(C, start, 1), wide_C, y, y, 0, 0, 0, last, own, rest, (end - start) // per)


@unit("ykykkyyk")
def sum_lanes(C, wide_C, y, count, width, sums, unused, before):
    """sums = C @ y; or of each tile over the columns of the tiles before it alone: what a pass of `run_lanes` forwards
    leaves for the next.
    """
    for tile in range(tiles_of(width, VECTOR // ITEM)):
        sum_one_tile(C, wide_C, y, count, width, sums, unused, before, tile)


@unit("ykkky")
def copy_columns(C, wide_C, count, width, target):
    for p in range(count):
        old, new = row(C, p, wide_C), row(target, p, wide_C)
        for q in range(width):
            new[q] = old[q]


@unit("ycykkk")
def log_row(C, logs, log, count, wide_C, logged):
    """Keep a row of C as it is."""
    q, place = logs[logged], row(log, logged, count)
    for p in range(count):
        place[p] = C[p * wide_C + q]


@unit("hykykkkykk", "k")
def grow_lanes(held, C, wide_C, y, count, width, forwards, then, grew, logged):
    """C_ij += gains_i y_j for the rows that grow, and what this changes in `then`.

    What was there before is kept: so many rows are in the log, MOST_LOGGED more if all of C has been kept since.
    """
    h = carray(held, 1)[0]
    gains, rows = row(numbers_at(h.numbers), GAIN_M, h.wide), row(indices_at(h.indices), ROWS, h.wide)
    in_log, logs = row(truths_at(h.truths), LOGGED, h.wide), row(indices_at(h.indices), LOG, h.wide)
    if 8 * grew > width:
        if logged < MOST_LOGGED:
            copy_columns(C, wide_C, count, width, numbers_at(h.saved_C))
            logged += MOST_LOGGED
        for p in range(count):
            column, y_p = row(C, p, wide_C), y[p]
            for q in range(count):
                column[q] += gains[q] * y_p
    else:
        list_grown(gains, count, rows)
        for r in range(grew):
            q = rows[r]
            if in_log[q] == 0 and logged < MOST_LOGGED:
                in_log[q], logs[logged] = 1, q
                log_row(C, logs, numbers_at(h.log), count, wide_C, logged)
                logged += 1
            gain = gains[q]
            for p in range(count):
                C[p * wide_C + q] += gain * y[p]
    per = VECTOR // ITEM
    tiles = tiles_of(width, per)
    if tiles > 1:
        squares = number(0)
        for turn in range(tiles):
            tile = turn if forwards else tiles - 1 - turn
            start, end = tile_start(tile, tiles, width, per), min(tile_start(tile + 1, tiles, width, per), count)
            for q in range(start, end):
                then[q] += gains[q] * squares
            for q in range(start, end):
                squares += y[q] * y[q]
    return logged


@unit("hykkkk")
def undo_growth(held, C, wide_C, count, width, logged):
    h = carray(held, 1)[0]
    if logged >= MOST_LOGGED:
        copy_columns(numbers_at(h.saved_C), wide_C, count, width, C)
        logged -= MOST_LOGGED
    for r in range(logged):
        q, place = row(indices_at(h.indices), LOG, h.wide)[r], row(numbers_at(h.log), r, count)
        for p in range(count):
            C[p * wide_C + q] = place[p]


@unit("hkkk")
def summarise(held, steps, count, width):
    """Of the rates of each lane in a block of steps: how far they fall below a straight line from the first to the
    last at the most; the last; and the sum of those that drove these steps.
    """
    h = carray(held, 1)[0]
    numbers, wide, history = numbers_at(h.numbers), h.wide, numbers_at(h.history)
    deviation, total, end = rows_of(numbers, wide, (DEVIATION, TOTAL, END))
    first, last = history, row(history, steps, width)
    for p in range(count):
        deviation[p], total[p], end[p] = 0, first[p], last[p]
    for t in range(1, steps):
        y, share = row(history, t, width), number(t / steps)
        for p in range(count):
            deviation[p] = max(deviation[p], first[p] + share * (last[p] - first[p]) - y[p])
        for p in range(count):
            total[p] += y[p]


@unit("hykkkkk")
def feel_rows(held, N, width, count, first, last, results):
    """What some of the near neurons feel of the lanes' rates: FELT_… = N @ rates, over the lanes' columns."""
    h = carray(held, 1)[0]
    numbers, wide, lane = numbers_at(h.numbers), h.wide, row(indices_at(h.indices), LANE, h.wide)
    tile = TILE * VECTOR // ITEM
    rates, felt = rows_of(numbers, wide, (DEVIATION, FELT_DEVIATION))
    if last - first < tile:
        for r in range(results):
            felt_r, rates_r = row(felt, r, wide), row(rates, r, wide)
            for i in range(first, last):
                felt_r[i] = 0
            for p in range(count):
                column, y_p = row(N, lane[p], width), rates_r[p]
                for i in range(first, last):
                    felt_r[i] += column[i] * y_p
        return
    for start in range(first, last, tile):
        start = min(start, last - tile)  # the last tile may overlap the one before
        place, sums = row(N, start, 1), row(felt, start, 1)
        if results == 3:
            sum_columns(place, width, lane, count, rates, sums, wide, 4, 3)
        else:
            sum_columns(place, width, lane, count, rates, sums, wide, 4, 2)


@unit("hykkkk")
def feel(held, N, width, count, size, results):
    """What all near neurons feel."""
    feel_rows(held, N, width, count, 0, size, results)
