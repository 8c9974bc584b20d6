"""The cpu engine's loop, which knows no equation: it calls those of a network by their addresses (`kernels.py`).

Exact up to rounding, and fast because of the structure of the model:
1. x is constant during a hold, so b = Wx is computed once; an update of row i moves b_i in O(1),
   and row i of W itself is touched once, at the end: w_i ← scale_i w_i + shift_i x.
2. Few neurons are active, so only their columns of M are read.
3. M = diag(s)·M̂, so a leak is s_i ← s_i (1 − ηλ) and only active entries of a row are touched.
4. Rectifying can bite only if φ ≠ 0, ηλ > 1 or η < 0: such rows take a slower path.
5. Most silent neurons stay silent for many steps. So a few, the lanes, are run apart (`lanes.py`):
   those active or soon to be so. After a block of steps a bound shows which of the others could have
   become active meanwhile; these are run through the block one by one. If none of them woke, the
   others take one step with the summed drive; otherwise the block is undone, those that woke become
   lanes, and it is run again. Some cannot become active in this hold even without any inhibition:
   these, the far ones, are not looked at until its end.
6. C, the lanes' part of M̂, is read half at each step (`lanes.pass_lanes`).
All of these are undone at the end of a hold (scale = 1, shift = 0, s = 1), so that a run may be
cut at any stimulus and goes on to the same bits.
"""

from typing import TYPE_CHECKING

from numba import carray

from asynchebb.engines.cpu.tiles import VECTOR, call_at, dot_vectors, row, rows_of
from asynchebb.engines.cpu.units import unit

if TYPE_CHECKING:  # `cpu` puts compiled ones in their place: those for one core, or for all
    from asynchebb.engines.cpu.columns import (
        ACTIVE,
        ALL,
        BEFORE,
        CLOSED,
        COULD,
        CURRENT,
        DRIVE,
        FELT,
        FELT_DEVIATION,
        FELT_END,
        FELT_TOTAL,
        GAIN_M,
        GROUP,
        INHIBITION,
        ITEM,
        LANE,
        LANE_FELT,
        LANES,
        LISTED,
        LOGGED,
        MEAN,
        NEAR,
        NEURON,
        NEW_C,
        NEW_U,
        NEW_Y,
        NOW,
        ROWS,
        SAVED,
        SLOT,
        SUM,
        THEN,
        TOTAL,
        WANTED,
        WHO,
        WHOLE,
        A,
        B,
        S,
        U,
        Y,
        activate,
        after,
        change,
        dot,
        erase,
        feed_forward,
        fold_M,
        fold_W,
        gates,
        hebb,
        hebb_and_lateral,
        indices_at,
        lateral,
        list_more,
        list_pixels,
        number,
        numbers_at,
        odd_rows,
        record,
        record_silence,
        silence,
        silent_gates,
        terms_of_update,
        truths_at,
    )
    from asynchebb.engines.cpu.firing import run_firing, stop_firing
    from asynchebb.engines.cpu.lanes import (
        SPARE,
        SPREAD_LANES,
        add_lane,
        add_up,
        build,
        copy_neurons,
        drop_lanes,
        feel,
        grow_lanes,
        put_back,
        put_lane_back,
        round_up,
        side,
        sum_lanes,
        summarise,
        take,
        tile_start,
        tiles_of,
        undo_growth,
    )
elif "number" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")

FIRST_BLOCK, LONGEST_BLOCK = 4, 32  # steps; after a block that was kept, the next one is half as long again
FIRST_STEPS = 4  # steps of all neurons before it is seen whether few can be run apart; then twice as many
WORTHWHILE = 32  # steps left for which it pays to run few neurons apart
ONSET = 24  # steps in which many neurons fall silent, if all start from rest
RELIST = 4  # steps after which neurons that fell silent are left out, where all are run: at an onset many do
CAUTION = 0.001  # the share by which inhibition may fall faster from one block to the next than it has
GOES_ON = 0.7  # how much of its fall in one block inhibition is expected to fall again in the next, if as long
MARGIN = 0.002  # the share by which inhibition has to fall before a neuron that is put to sleep would wake
MOST_NEAR = 0.75  # the share of all neurons above which all are near
FAR_BELOW = -1e30  # no drive is smaller


@unit("hkk")
def run_all(held, k, steps):
    """Run all neurons for some steps."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide
    active, rows, whole = rows_of(indices, wide, (ACTIVE, ROWS, WHOLE))
    listed, n, P = row(truths, LISTED, wide), h.n, numbers_at(h.P)
    u, y, b, s, inhibition, gains = rows_of(numbers, wide, (U, Y, B, S, INHIBITION, GAIN_M))
    count, known = 0, False  # is the inhibition of the next step known already?
    for kk in range(k, k + steps):
        if (kk - k) % RELIST == 0:
            count = activate(y, n, active, listed)
        # u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        if not known:
            lateral(P, n, active, y, count, inhibition)
        known = False
        call_at(h.move, (h.dynamics, u, y, b, s, inhibition, n))
        count = list_more(y, n, active, listed, count)
        opens = gates(held, indices, y, kk, n)
        if h.trace_updates:
            indices_at(h.trace_updates)[h.t + kk] = 0
        if opens:
            # W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, for the rows i with open gates:
            # w_i ← keep_w w_i + gain_w x and m_i ← keep_m m_i + gain_m y − drop
            if terms_of_update(held, ALL, y, n, h.t + kk):
                odd_rows(held)
            grew = change(held, ALL, n)
            known = 2 * grew > n and kk + 1 < k + steps
            if known:
                hebb_and_lateral(P, n, active, y, count, gains, inhibition)
            elif grew:
                hebb(P, n, active, y, count, gains, grew, rows)
        record(held, kk, y, whole, n)


@unit("hkykkk", "k")
def run_lanes(held, count, C, wide_C, k, steps):
    """Run the lanes for some steps; their rates at each are left in the history.

    At a step, tile after tile of the lanes is moved. Where a tile's rows meet the columns of tiles that have been, the
    rates before and after the step are known, and a reading of C serves both: `now` becomes C @ y, and `then` what of
    C @ new is known. The next step goes through the tiles the other way. So each reads half of C only.

    Gives how much of C has been kept as it was (see `grow_lanes`), or −1 minus that if it has not gone well: a lane has
    to be rectified, which takes the whole of its row.
    """
    h = carray(held, 1)[0]
    numbers, wide, per, width = numbers_at(h.numbers), h.wide, VECTOR // ITEM, round_up(count)
    u, y, b, s = rows_of(numbers, wide, (LANES + U, LANES + Y, LANES + B, LANES + S))
    history, in_log = numbers_at(h.history), row(truths_at(h.truths), LOGGED, wide)
    c, who = rows_of(indices_at(h.indices), wide, (LANES // GROUP, WHO))
    now, then, felt = rows_of(numbers, wide, (NOW, THEN, LANE_FELT))
    for p in range(width):
        history[p], in_log[p], now[p] = 0, 0, 0
    for p in range(count):
        history[p], now[p] = y[p], felt[p]
    tiles, logged = tiles_of(width, per), 0
    traced = h.trace_active + h.trace_y + h.trace_burst > 0
    for t in range(steps):
        old, new, kk, forwards = row(history, t, width), row(history, t + 1, width), k + t, t % 2 == 0
        # u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        if t == 0:  # C @ y is known
            call_at(h.move, (h.dynamics, u, new, b, s, now, width))
            if tiles > 1 and count * width < SPREAD_LANES:
                sum_lanes(C, wide_C, new, count, width, then, now, 1)
        elif count * width >= SPREAD_LANES:
            sum_lanes(C, wide_C, old, count, width, now, then, 0)
            call_at(h.move, (h.dynamics, u, new, b, s, now, width))
        elif tiles == 1:
            for p in range(width):
                now[p] = 0
            add_up(C, wide_C, old, new, 0, 0, 0, count, now, then, width // per)
            call_at(h.move, (h.dynamics, u, new, b, s, now, width))
        else:
            for turn in range(tiles):
                tile = turn if forwards else tiles - 1 - turn
                start, end = tile_start(tile, tiles, width, per), tile_start(tile + 1, tiles, width, per)
                before, after_it = (0, start) if forwards else (end, count)
                own_now, own_then, own_new = row(now, start, 1), row(then, start, 1), row(new, start, 1)
                columns, vectors = min(end, count), (end - start) // per
                add_up(row(C, start, 1), wide_C, old, new, before, after_it, start, columns, own_now, own_then, vectors)
                tile_of = row(u, start, 1), own_new, row(b, start, 1), row(s, start, 1), own_now
                call_at(h.move, (h.dynamics, *tile_of, end - start))
        opens = gates(held, c, new, kk, count)
        if h.trace_updates:
            indices_at(h.trace_updates)[h.t + kk] = 0
        if opens:
            if terms_of_update(held, LANES, new, count, h.t + kk):
                return -1 - logged
            grew = change(held, LANES, count)
            if grew:
                logged = grow_lanes(held, C, wide_C, new, count, width, forwards, then, grew, logged)
        if traced:
            record(held, kk, new, who, count)
        now, then = then, now
    last, before_last = row(history, steps, width), row(numbers, BEFORE, wide)
    for p in range(count):
        y[p], before_last[p] = last[p], then[p]
    return logged


@unit("hk", "k")
def choose(held, k):
    """List the neurons that could become active in the rest of this hold in NEURON, and in LANE those that may soon.

    Gives how many may soon. The inhibition that the near ones feel is left in FELT.
    """
    h = carray(held, 1)[0]
    numbers, indices, truths, wide = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide
    u, y, a, b, s, inhibition, drive, felt = rows_of(numbers, wide, (U, Y, A, B, S, INHIBITION, DRIVE, FELT))
    new_u, new_y = rows_of(numbers, wide, (NEW_U, NEW_Y))
    active, neuron, lane = rows_of(indices, wide, (ACTIVE, NEURON, LANE))
    could, wanted, closed = rows_of(truths, wide, (COULD, WANTED, CLOSED))
    n, last, zero, left = h.n, h.hold - 1, number(0), number(1 - CAUTION)
    long, soon = number(last - k), number(FIRST_BLOCK)
    count = activate(y, n, active, could)
    lateral(numbers_at(h.P), n, active, y, count, inhibition)
    for i in range(n):  # is it at rest?
        drive[i] = zero
    after(held, u, n)
    for i in range(n):
        wanted[i] = not ((y[i] <= 0) & (new_u[i] == u[i]))
    for i in range(n):
        drive[i] = soon * max(b[i] - left * s[i] * inhibition[i], zero)  # soon not much above what it is now
    after(held, u, n)
    for i in range(n):
        wanted[i] |= not new_y[i] <= 0
        drive[i] = long * max(b[i], zero)  # the most that there can be
    after(held, u, n)
    silence(held, indices, a, k, last, n)
    near = 0
    for i in range(n):
        wanted[i] |= closed[i] == 0
        could[i] = (wanted[i] != 0) | (not new_y[i] <= 0)
        near += could[i] != 0
    everyone = near > MOST_NEAR * n
    size = count = 0
    for i in range(n):
        neuron[size], lane[count], felt[size] = i, size, inhibition[i]
        size += everyone | (could[i] != 0)
        count += wanted[i] != 0
    h.near = size
    return count


@unit("hkykkk", "k")
def wakes(held, q, N, width, count, steps):
    """Does sleeping neuron q become active while the lanes run? It is run by itself, with what they make it feel."""
    h = carray(held, 1)[0]
    numbers, wide, lane = numbers_at(h.numbers), h.wide, row(indices_at(h.indices), LANE, h.wide)
    weights, u, history = row(numbers, INHIBITION, wide), row(numbers, NOW, wide), numbers_at(h.history)
    drive, new_u, new_y = rows_of(numbers, wide, (DRIVE, NEW_U, NEW_Y))
    b, s, lanes = row(numbers, NEAR + B, wide)[q], row(numbers, NEAR + S, wide)[q], round_up(count)
    for p in range(count):
        weights[p] = N[lane[p] * width + q]
    for p in range(count, lanes):
        weights[p] = 0
    u[0], felt, most = row(numbers, NEAR + U, wide)[q], row(numbers, THEN, wide), number(0)
    for t in range(steps):
        felt[t] = b - s * dot_vectors(row(history, t, lanes), weights, lanes)
        most = max(most, felt[t])
    drive[0] = number(steps) * most
    after(held, u, 1)
    if new_y[0] <= 0:  # mostly, nothing drives it at all
        return 0
    woken = 0
    for t in range(steps):
        drive[0] = felt[t]
        after(held, u, 1)
        u[0] = new_u[0]
        woken += not new_y[0] <= 0
    return woken


@unit("hkkykk", "k")
def quiet(held, count, size, N, width, steps):
    """Have the others slept while the lanes were run for some steps? Those that have not are WANTED.

    Gives 0 if some have not, 1 if all have and 2 if their u may have moved. What they felt is left in FELT_….
    """
    h = carray(held, 1)[0]
    numbers, wide, slot = numbers_at(h.numbers), h.wide, row(indices_at(h.indices), SLOT, h.wide)
    u, b, s, drive, new_u, new_y = rows_of(numbers, wide, (NEAR + U, NEAR + B, NEAR + S, DRIVE, NEW_U, NEW_Y))
    felt, felt_end, deviation = rows_of(numbers, wide, (FELT, FELT_END, FELT_DEVIATION))
    wanted, zero, long = row(truths_at(h.truths), WANTED, wide), number(0), number(steps)
    summarise(held, steps, count, round_up(count))
    # If no drive below 0 moves a sleeping neuron, what it felt in all need not be known.
    for q in range(size):
        drive[q] = number(FAR_BELOW)
    after(held, u, size)
    moved = 0
    for q in range(size):
        moved += (slot[q] < 0) & (new_u[q] != u[q])
    feel(held, N, width, count, size, 3 if moved else 2)
    for q in range(size):
        # What is felt does not fall below a straight line by more than what the rates do is worth.
        drive[q] = long * max(b[q] - s[q] * (min(felt[q], felt_end[q]) - deviation[q]), zero)
    after(held, u, size)
    suspects = 0
    for q in range(size):
        wanted[q] = (slot[q] < 0) & (not new_y[q] <= 0)
        suspects += wanted[q]
    woken = 0
    if suspects:
        for q in range(size):
            if wanted[q] != 0:
                wanted[q] = wakes(held, q, N, width, count, steps) > 0
                woken += wanted[q]
    return 0 if woken else (2 if moved else 1)


@unit("hkkkkk")
def catch_up(held, count, size, steps, following, moved):
    """After a block of steps that was kept: bring those asleep up to date. Those that may be active in the following
    steps, if what they feel goes on as it did, are WANTED."""
    h = carray(held, 1)[0]
    numbers, indices, wide = numbers_at(h.numbers), indices_at(h.indices), h.wide
    u, b, s, drive, new_u, new_y = rows_of(numbers, wide, (NEAR + U, NEAR + B, NEAR + S, DRIVE, NEW_U, NEW_Y))
    felt, felt_end, felt_total = rows_of(numbers, wide, (FELT, FELT_END, FELT_TOTAL))
    sums, total, lane = row(numbers, NEAR + SUM, wide), row(numbers, TOTAL, wide), row(indices, LANE, wide)
    slot, wanted = row(indices, SLOT, wide), row(truths_at(h.truths), WANTED, wide)
    zero, long, next_long = number(0), number(steps), number(following)
    left, goes_on = number(1 - CAUTION), number(GOES_ON * following / steps)
    for p in range(count):
        sums[lane[p]] += total[p]
    if moved:
        for q in range(size):
            drive[q] = long * b[q] - s[q] * felt_total[q]
        after(held, u, size)
        for q in range(size):
            u[q] = new_u[q]
    for q in range(size):
        fall = max(felt[q] - felt_end[q], zero)
        drive[q] = next_long * max(b[q] - s[q] * (left * felt_end[q] - goes_on * fall), zero)
    for q in range(size):
        felt[q] = felt_end[q]
    after(held, u, size)
    for q in range(size):
        wanted[q] = (slot[q] < 0) & (not new_y[q] <= 0)


@unit("hkykykkk", "k")
def doze(held, count, N, width, C, wide_C, k, following):
    """See what the lanes feel now, and put those to sleep that are silent and will be for the following steps. How many
    are left."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide
    u, y, a, b, s = rows_of(numbers, wide, (LANES + U, LANES + Y, LANES + A, LANES + B, LANES + S))
    inhibition, drive, new_u, new_y, before = rows_of(numbers, wide, (LANE_FELT, DRIVE, NEW_U, NEW_Y, BEFORE))
    sleeping, closed, wanted = rows_of(truths, wide, (LISTED, CLOSED, WANTED))
    lane, current, zero = row(indices, LANE, wide), row(indices, CURRENT, wide), number(0)
    left, long, silent = number(1 - MARGIN), number(following), 0
    sum_lanes(C, wide_C, y, count, round_up(count), inhibition, row(numbers, NOW, wide), 0)
    for p in range(count):
        silent += y[p] <= 0
        drive[p] = zero
    if not silent:
        return count
    after(held, u, count)
    for p in range(count):
        sleeping[p] = (y[p] <= 0) & (new_u[p] == u[p])
    for p in range(count):
        fall = max(before[p] - inhibition[p], zero)
        drive[p] = long * max(b[p] - s[p] * (left * inhibition[p] - long * fall), zero)
    after(held, u, count)
    silence(held, row(indices, LANES // GROUP, wide), a, k, h.hold - 1, count)
    for p in range(count):
        sleeping[p] = (sleeping[p] != 0) & (new_y[p] <= 0) & (closed[p] != 0)
    for p in range(count):
        if sleeping[p] != 0:
            current[lane[p]], wanted[lane[p]] = k, 0
    return drop_lanes(held, count, N, width, C, wide_C, sleeping)


@unit("hkk")
def wake(held, q, k):
    """Bring the count of a near neuron that has slept up to date."""
    h = carray(held, 1)[0]
    indices, wide = indices_at(h.indices), h.wide
    c, current = rows_of(indices, wide, (NEAR // GROUP, CURRENT))
    if current[q] != k:
        silent_gates(held, row(c, q, 1), current[q], k, 1)
        if h.trace_burst and row(truths_at(h.truths), CLOSED, wide)[0] == 0:
            record_silence(held, row(indices, NEURON, wide)[q], row(c, q, 1), current[q], k)
        c[q], current[q] = row(indices, NEW_C, wide)[0], k


@unit("hkkk")
def leave_far(held, size, k, end):
    """Bring the far neurons up to date. What it makes of the near ones does not matter: they are put back after."""
    h = carray(held, 1)[0]
    numbers, indices, wide, n = numbers_at(h.numbers), indices_at(h.indices), h.wide, h.n
    u, b, s, drive, inhibition, sums, near_sums = rows_of(numbers, wide, (U, B, S, DRIVE, INHIBITION, NOW, NEAR + SUM))
    active, neuron, new_c = rows_of(indices, wide, (ACTIVE, NEURON, NEW_C))
    new_u, long, count = row(numbers, NEW_U, wide), number(end - k), 0
    for q in range(size):
        active[count] = neuron[q]
        sums[neuron[q]] = near_sums[q]
        count += near_sums[q] > 0
    lateral(numbers_at(h.P), n, active, sums, count, inhibition)
    for i in range(n):
        drive[i] = long * b[i] - s[i] * inhibition[i]
    after(held, u, n)
    silent_gates(held, indices, k, end, n)
    if h.trace_burst:
        could, closed = rows_of(truths_at(h.truths), wide, (COULD, CLOSED))
        for i in range(n):
            if could[i] == 0 and closed[i] == 0:
                record_silence(held, i, row(indices, i, 1), k, end)
    for i in range(n):
        u[i] = new_u[i]
    for i in range(n):
        indices[i] = new_c[i]


@unit("hkk", "k")
def fits(held, count, size):
    """May so many be run apart? Not if they are most of all, nor if their part of a large M would take much room."""
    h = carray(held, 1)[0]
    wide = side(count + SPARE)
    copied = count * side(size) if size < h.n else 0
    return 3 * count <= 2 * h.n and wide * wide + copied <= h.most_entries


@unit("hk", "k")
def run_few(held, k):
    """Run few neurons apart from step k on, up to the last step, which all take: a discrete schedule opens its gates
    there. Ends before if too many wake or one has to be rectified. The step that was reached.
    """
    h = carray(held, 1)[0]
    indices, wide, n, last, start = indices_at(h.indices), h.wide, h.n, h.hold - 1, k
    wanted, slot, C = row(truths_at(h.truths), WANTED, wide), row(indices, SLOT, wide), numbers_at(h.C)
    count = choose(held, k)
    size = h.near
    if not fits(held, count, size):
        return k
    N, width = (numbers_at(h.P), n) if size == n else (numbers_at(h.N), side(size))
    wide_C = side(count + SPARE)
    take(held, size, k)
    build(held, count, size, N, width, C, wide_C)
    length, good = FIRST_BLOCK, True
    while k < last and good and fits(held, count, size):
        steps = min(length, last - k)
        copy_neurons(held, LANES, SAVED, count)
        logged = run_lanes(held, count, C, wide_C, k, steps)
        h.lane_steps += count * steps
        good = logged >= 0
        slept = quiet(held, count, size, N, width, steps) if good else 0
        if slept:
            k, length = k + steps, min(length + length // 2, LONGEST_BLOCK)
            following = min(length, last - k)
            catch_up(held, count, size, steps, following, slept == 2)
            count = doze(held, count, N, width, C, wide_C, k, following)
        else:
            copy_neurons(held, SAVED, LANES, count)
            undo_growth(held, C, wide_C, count, round_up(count), logged if good else -1 - logged)
            erase(held, k, steps)
            h.undone += steps
        for q in range(size if good else 0):
            if wanted[q] != 0:
                if count == wide_C:  # no room for another one
                    for p in range(count):
                        put_lane_back(held, count, p, N, width, C, wide_C)
                    if not fits(held, count, size):
                        break
                    wide_C = side(count + SPARE)
                    build(held, count, size, N, width, C, wide_C)
                wake(held, q, k)
                add_lane(held, count, q, size, N, width, C, wide_C)
                count += 1
    for q in range(size):
        if slot[q] < 0:
            wake(held, q, k)
    if size < n:
        leave_far(held, size, start, k)
    put_back(held, count, size, N, width, C, wide_C)
    return k


@unit("hk", "k")
def few(held, k):
    """Are few enough active, for now? At an onset it pays to wait until half of all are silent: soon more will be."""
    h = carray(held, 1)[0]
    n, active, driven = h.n, 0, 0
    y, b = rows_of(numbers_at(h.numbers), h.wide, (Y, B))
    for i in range(n):
        active += y[i] > 0
        driven += b[i] > 0
    most = n // 2 if k < ONSET else 2 * n // 3
    return active <= most and (active > 0 or driven <= most)


@unit("h")
def rest(held):
    """u, y = step(0, 0)."""
    h = carray(held, 1)[0]
    numbers, wide = numbers_at(h.numbers), h.wide
    u, y, drive, new_u, new_y = rows_of(numbers, wide, (U, Y, DRIVE, NEW_U, NEW_Y))
    for i in range(h.n):
        u[i], drive[i] = 0, 0
    after(held, u, h.n)
    for i in range(h.n):
        u[i], y[i] = new_u[i], new_y[i]


@unit("h")
def advance(held):
    """Show all stimuli to the network."""
    h = carray(held, 1)[0]
    numbers, wide, item = numbers_at(h.numbers), h.wide, ITEM
    y = row(numbers, Y, wide)
    for stimulus in range(h.stimuli):
        h.x = h.X + stimulus * h.m * item
        h.x_x = dot(numbers_at(h.x), numbers_at(h.x), h.m)
        if h.from_rest and h.fire:
            stop_firing(held)
        elif h.from_rest:
            rest(held)
        h.pixels = list_pixels(held)
        feed_forward(held)
        k, length = 0, FIRST_STEPS if h.lazy else h.hold
        if h.fire:
            run_firing(held)
            k = h.hold
        while k < h.hold:
            if h.lazy and h.hold - 1 - k >= WORTHWHILE and few(held, k):
                before = k
                k = run_few(held, k)
                h.run_apart += k - before
                length *= 2
            steps = min(length, h.hold - k)
            run_all(held, k, steps)
            k += steps
        h.t += h.hold
        fold_W(held)
        fold_M(held)
        if h.settled:
            settled = row(numbers_at(h.settled), stimulus, h.n)
            rates = row(numbers, MEAN, wide) if h.spiking else y
            for i in range(h.n):
                settled[i] = rates[i]
