"""The cpu engine's loop. `cpu.loop` compiles a copy of this file with a network's own equations.

Exact up to rounding, and fast because of the structure of the model:
1. x is constant during a hold, so b = Wx is computed once; an update of row i moves b_i in O(1),
   and row i of W itself is touched once, at the end: w_i ← scale_i w_i + shift_i x.
2. Few neurons are active, so only their columns of M are read.
3. M = diag(s)·M̂, so a leak is s_i ← s_i (1 − ηλ) and only active entries of a row are touched.
4. Rectifying can bite only if φ ≠ 0, ηλ > 1 or η < 0: such rows take a slower path.
5. Most silent neurons stay silent for many steps.
   - The far ones cannot become active in this hold even without any inhibition. They are left out,
     and brought up to date at its end by one step with the summed drive.
   - The near ones are put side by side, with their part of M̂, and of these only the first few, the
     awake ones, are run at every step: those active or soon to be so. After a block of steps a
     bound shows which of the others could have become active meanwhile. If none could, they too
     take one step with the summed drive; otherwise the block is undone, those join the awake ones,
     and it is run again.
   So the innermost loop works on a small matrix that stays in the nearest cache.
All of these are undone at the end of a hold (scale = 1, shift = 0, s = 1), so that a run may be
cut at any stimulus and goes on to the same bits.
"""

from collections import namedtuple
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:  # `cpu.loop` puts compiled ones in their place: those for one core, or for all
    from asynchebb.engines.cpu.columns import (
        ACTIVE,
        BOOST,
        BOUND,
        COMPILE,
        CURRENT,
        DROP,
        ETA,
        FETCHED,
        GAIN_M,
        GAIN_W,
        INHIBITION,
        INNER,
        KEEP,
        KEEP_M,
        KEEP_W,
        LEAK_M,
        LEAK_W,
        LEAST,
        LISTED,
        NEAR,
        NEW_A,
        OPENED,
        ROWS,
        SAVED,
        SCALE,
        SHIFT,
        SILENT,
        SUM,
        TOTAL,
        WANTED,
        WHOLE,
        A,
        B,
        S,
        U,
        Y,
        activate,
        begin_block,
        change_M,
        change_W,
        copy_columns,
        copy_neurons,
        dot,
        enter,
        feed_forward,
        fetch,
        fold_M,
        fold_row,
        fold_W,
        hebb,
        hebb_and_lateral,
        lateral,
        lateral_near,
        leave,
        list_more,
        near_matrix,
        neurons,
        put_back,
        record,
        rectified,
        rectified_row,
        rescale_row,
        round_up,
        rule_terms,
        rule_update,
        swap,
        take,
        workroom,
    )
elif "INNER" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")

# The network's equations; `cpu.loop` puts compiled ones in their place. (A rule's are called by their address.)
step = gate = None

# What stays the same during a hold: the equations and constants; the stimulus x, |x|² and how many of its pixels are
# not 0; W and P, whose entries change; the room to work in; and the traces, in which the hold begins at step t.
Held = namedtuple("Held", "dynamics rule schedule floor smallest hold n m x x_x pixels t")

# Neurons that are run together: all, or the first `size` of the near ones, of which there are `near`. `index` says
# which they are among all, and Q is their part of M̂.
Group = namedtuple("Group", "neurons size near index Q")

FIRST_BLOCK, LONGEST_BLOCK = 8, 32  # steps; after a block that could be kept, the next one is twice as long
WORTHWHILE = 32  # steps left for which it pays to put the near neurons side by side
RELIST = 4  # steps after which neurons that fell silent are left out, where all are run: at an onset many do
CAUTION = 0.01  # the share by which inhibition is expected to fall from one block to the next at the most
SMALL_MATRIX = 3_200_000  # entries that the near part of M̂ may always have: 13 MB in float32
SMALLEST_SCALE = 1e-9  # a row of W or M whose scale or s has come down to this is brought back to 1


@njit(**COMPILE)
def advance(dynamics, schedule, rule, floor, additive, smallest, state, X, hold, from_rest, settled, traces):
    """Show X to the network; the state changes in place. How many steps were run on awake neurons, how many undone.

    If `settled` has rows, the rates at the end of each stimulus's hold go there.
    """
    W, P = state.W, state.P
    n, m = W.shape
    every, some, saved, room = neurons(n, W), neurons(n, W), neurons(n, W), workroom(n, W)
    enter(state, every)
    # A floor takes from every synapse, and sleeping neurons' gates are not looked at one by one.
    lazy = additive and floor == 0 and traces.burst.size == 0
    zero = np.int64(0)  # a literal 0 would be a type of its own, and all be compiled twice
    t = run_awake = undone = zero
    for number in range(len(X)):
        x = X[number]
        if from_rest:
            rest(dynamics, every, n)
        pixels = feed_forward(W, x, every)
        held = Held(
            dynamics, rule, schedule, floor, smallest, hold, n, m, x, dot(x, x), pixels, t
        )  # fmt: skip
        last = hold - 1  # all neurons take the last step: a discrete schedule opens its gates there
        k = start = size = awake = zero
        length, whole_length, try_near = FIRST_BLOCK, FIRST_BLOCK if lazy else hold, lazy
        while k < hold:
            if try_near and size == 0 and last - k >= WORTHWHILE:
                size, awake = choose_near(held, every, P, k, last - k, room)
                start, length = k, FIRST_BLOCK
                if fits(awake, size, n):
                    take(every, room, size, k, some)
                else:
                    size = zero
            if size == 0:
                steps = min(whole_length, hold - k)
                run(held, Group(every, n, n, room.indices[WHOLE], P), k, steps, W, P, room, traces)
                k, whole_length, try_near = k + steps, 2 * whole_length, lazy
                continue
            steps, Q = min(length, last - k), near_matrix(room.Q, size)
            near = Group(some, awake, size, room.indices[NEAR], Q)
            copy_neurons(some, awake, saved)
            good, changed, count = run(held, near, k, steps, W, P, room, traces)
            kept = good and quiet(held, some, Q, awake, size, count, steps, room)
            if kept:
                k, length, run_awake = k + steps, min(2 * length, LONGEST_BLOCK), run_awake + steps
            else:
                copy_neurons(saved, awake, some)
                if changed:
                    copy_columns(near_matrix(room.saved_Q, size), room.truths[SAVED], awake, Q, room.truths[FETCHED])
                undone += steps
            if good:
                awake = wake(held, some, awake, size, Q, k, steps if kept else zero, min(length, last - k), room)
            if k == last or not good or not fits(awake, size, n):
                catch_up(held, every, some, P, awake, size, start, k, room)
                put_back(some, room, size, Q, every, P)
                size, try_near = zero, False
        t += hold
        fold_W(W, x, every.numbers[SCALE], every.numbers[SHIFT], smallest)
        fold_M(P, every.numbers[S], every.grown, room.indices[ROWS], room.numbers[INHIBITION], smallest)
        if len(settled):
            for i in range(n):  # a whole row at once would take Numba a second to compile
                settled[number, i] = every.numbers[Y, i]
    leave(every, state)
    return run_awake, undone


@njit(**INNER)
def rest(dynamics, every, n):
    # u, y = step(0, 0)
    u, y = every.numbers[U], every.numbers[Y]
    zero = u.dtype.type(0)
    for i in range(n):
        u[i], y[i] = step(dynamics, zero, zero)


@njit(**INNER)
def fits(awake, size, n):
    """May these be run apart? Not if they are most of all, nor if their part of a large M would take much room."""
    return awake <= size and 3 * awake <= 2 * n and awake * size <= SMALL_MATRIX + n * n // 5


@njit(**INNER)
def run(held, group, k, steps, W, P, room, traces):
    """Run these neurons, all or the awake among the near ones, for some steps.

    Gives whether all went well, whether Q has changed, and how many columns were used. It has not
    gone well if an awake neuron has to be rectified, which takes the whole of its row.
    """
    some, size, near, index, Q = group
    dynamics, schedule, floor, hold, n = held.dynamics, held.schedule, held.floor, held.hold, held.n
    t = held.t
    u, y, c, a, b = some.numbers[U], some.numbers[Y], some.c, some.numbers[A], some.numbers[B]
    scale, shift, s, grown = some.numbers[SCALE], some.numbers[SHIFT], some.numbers[S], some.grown
    numbers, active, rows = room.numbers, room.indices[ACTIVE], room.indices[ROWS]
    inhibition, total, least = numbers[INHIBITION], numbers[TOTAL], numbers[LEAST]
    keep_w, gain_w, keep_m, gain_m = numbers[KEEP_W], numbers[GAIN_W], numbers[KEEP_M], numbers[GAIN_M]
    eta, drop, listed, opened, fetched = (
        numbers[ETA], numbers[DROP], room.truths[LISTED], room.truths[OPENED], room.truths[FETCHED]
    )  # fmt: skip
    zero = y.dtype.type(0)
    apart = size < n
    changed = known = False  # is Q another now; is the inhibition of the next step known already?
    begin_block(y, size, total, least)
    count = np.int64(0)
    for kk in range(k, k + steps):
        if (kk - k) % (LONGEST_BLOCK if apart else RELIST) == 0:
            count = activate(y, size, active, listed)
            if apart:
                fetch(P, index, near, active, np.int64(0), count, fetched, Q)

        # u, y = step(u, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        if apart:
            lateral_near(Q, np.int64(0), size, active, y, count, kk % 2 == 1, inhibition)
        elif not known:
            lateral(P, active, y, count, inhibition)
        known = False
        woken = opens = 0
        for i in range(size):
            total[i] += y[i]
            least[i] = min(least[i], y[i])
            u[i], y[i] = step(dynamics, u[i], b[i] - s[i] * inhibition[i])
            opened[i], c[i] = gate(schedule, y[i], c[i], kk, hold)
            woken += (y[i] > 0) & (not listed[i])
            opens += opened[i]
        if woken:
            before, count = count, list_more(y, active, listed, count, size)
            if apart:
                fetch(P, index, near, active, before, count, fetched, Q)

        if opens:
            # W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, for the rows i with open gates:
            # w_i ← keep_w w_i + gain_w x and m_i ← keep_m m_i + gain_m y − drop
            odd = 0
            rule_update(held.rule, y, a, opened, size, numbers)
            if floor != 0:  # else it is 0 throughout
                for i in range(size):
                    drop[i] = eta[i] * floor if opened[i] else zero
            for i in range(size):
                odd += not (simple(keep_w[i], gain_w[i], zero, scale[i]) & simple(keep_m[i], gain_m[i], drop[i], s[i]))
            if odd:
                if apart:
                    return False, changed, count
                odd_rows(held, some, W, P, room)
            change_W(keep_w, gain_w, scale, shift, b, held.x_x, size)
            grew = change_M(keep_m, gain_m, s, grown, size)
            if grew:
                if apart and not changed:
                    copy_columns(Q, fetched, size, near_matrix(room.saved_Q, near), room.truths[SAVED])
                    changed = True
                known = not apart and 2 * grew > n
                if known:
                    hebb_and_lateral(P, n, active, y, count, gain_m, inhibition)
                else:
                    hebb(Q, size, active, y, count, gain_m, grew, rows)

        if traces.updates.size:
            traces.updates[t + kk] = count_updates(held, some, opened, size, room) if opens else 0
        record(traces, t + kk, y, opened, index, size)
    return True, changed, count


@njit(**INNER)
def simple(keep, gain, drop, scale):
    return (keep >= 0) & (gain >= 0) & (drop == 0) & (scale * keep > SMALLEST_SCALE)


@njit(**INNER)
def odd_rows(held, some, W, P, room):
    """Update the odd rows, or make them simple; the terms that are left are for the others' way to do."""
    x, smallest = held.x, held.smallest
    y, b, grown = some.numbers[Y], some.numbers[B], some.grown
    scale, shift, s = some.numbers[SCALE], some.numbers[SHIFT], some.numbers[S]
    numbers, rows, drop = room.numbers, room.indices[ROWS], room.numbers[DROP]
    keep_w, gain_w, keep_m, gain_m = numbers[KEEP_W], numbers[GAIN_W], numbers[KEEP_M], numbers[GAIN_M]
    keep, boost = numbers[KEEP], numbers[BOOST]
    one, zero = y.dtype.type(1), y.dtype.type(0)
    count = 0
    for i in range(held.n):
        if not simple(keep_w[i], gain_w[i], zero, scale[i]):
            if keep_w[i] >= 0 and gain_w[i] >= 0:
                fold_row(W[i], x, scale[i], shift[i], smallest)
            else:
                rectified_row(W[i], x, scale[i], shift[i], keep_w[i], gain_w[i])
                keep_w[i], gain_w[i] = one, zero
            scale[i], shift[i], b[i] = one, zero, dot(W[i], x)
        keep[i], boost[i] = one, zero
        if not simple(keep_m[i], gain_m[i], drop[i], s[i]):
            if keep_m[i] >= 0 and gain_m[i] >= 0 and drop[i] == 0:
                s[i] *= keep_m[i]
            else:
                rows[count] = i
                count += 1
                keep[i], boost[i], gain_m[i] = keep_m[i], gain_m[i], zero
            rescale_row(P, s, grown, i, smallest)
            keep_m[i] = one
    if count:
        rectified(P, y, rows, count, keep, boost, drop)


@njit(**INNER)
def count_updates(held, some, opened, size, room):
    """How many synapses change at these gates: where there is a Hebbian product, a leak or a floor."""
    y, leaks_w, leaks_m = some.numbers[Y], room.numbers[LEAK_W], room.numbers[LEAK_M]
    rule_terms(held.rule, y, some.numbers[A], size, room.numbers)
    updates = active = 0
    for i in range(size):
        active += y[i] > 0
    for i in range(size):
        if opened[i]:
            updates += held.m if leaks_w[i] != 0 else (held.pixels if y[i] != 0 else 0)
            updates += held.n if leaks_m[i] != 0 or held.floor != 0 else (active if y[i] != 0 else 0)
    return updates


@njit(**INNER)
def choose_near(held, every, P, k, steps, room):
    """Put the neurons that could become active within these steps into room.near, those first that may be so soon.

    How many they are, and how many are to be awake, filled up to whole vectors.
    """
    u, y, a, b, s = every.numbers[U], every.numbers[Y], every.numbers[A], every.numbers[B], every.numbers[S]
    c = every.c
    n, inhibition, active, near = held.n, room.numbers[INHIBITION], room.indices[ACTIVE], room.indices[NEAR]
    could, wanted = room.truths[LISTED], room.truths[WANTED]
    count = activate(y, n, active, could)
    lateral(P, active, y, count, inhibition)
    zero, left = y.dtype.type(0), y.dtype.type(1 - CAUTION)
    long, soon = y.dtype.type(steps), y.dtype.type(2 * FIRST_BLOCK)
    for i in range(n):
        # The drive of a silent neuron is at most b_i, and soon not much above what it is now.
        rest, _ = step(held.dynamics, u[i], zero)
        _, now = step(held.dynamics, u[i], soon * max(b[i] - left * s[i] * inhibition[i], zero))
        _, ever = step(held.dynamics, u[i], long * max(b[i], zero))
        wanted[i] = not ((y[i] <= 0) & (now <= 0) & (rest == u[i]))
        could[i] = not ever <= 0
    known, closed = np.int64(-1), False
    silent_terms(held, a, n, room)
    for i in range(n):
        if c[i] != known:
            known, (closed, _) = c[i], silent_gate(held.schedule, zero, c[i], k, k + steps, held.hold)
        wanted[i] |= not closed and not changes_nothing(room.numbers, a, i)
    size = 0
    for i in range(n):
        near[size] = i
        size += wanted[i]
    awake = round_up(size)
    for i in range(n):
        near[size] = i
        size += could[i] & (not wanted[i])
    for i in range(n):
        if size < awake and not could[i] and not wanted[i]:
            near[size] = i
            size += 1
    return size, awake


@njit(**INNER)
def silent_gate(schedule, zero, c_i, k, end, hold):
    """Does the gate of a neuron that is silent from step k on stay closed up to the end? And c_i then."""
    opened = False
    for kk in range(k, end):
        beta_i, c_i = gate(schedule, zero, c_i, kk, hold)
        opened |= beta_i
    return not opened, c_i


@njit(**INNER)
def silent_terms(held, a, size, room):
    """What the rule gives for these neurons if they are silent: see `changes_nothing`."""
    numbers = room.numbers
    rule_terms(held.rule, numbers[SILENT], a, size, numbers)


@njit(**INNER)
def changes_nothing(numbers, a, i):
    """Would an update of a silent neuron leave it as it is?"""
    return numbers[NEW_A, i] == a[i] and numbers[LEAK_W, i] == 0 and numbers[LEAK_M, i] == 0


@njit(**INNER)
def quiet(held, some, Q, awake, size, count, steps, room):
    """Have the others been silent while the awake neurons were run for some steps? Those that may not are wanted.

    Leaves the sum of the inhibition that they felt in the room, and the least of it that anyone felt.
    """
    u, b, s, room = some.numbers[U], some.numbers[B], some.numbers[S], room
    active, wanted, bound, end = room.indices[ACTIVE], room.truths[WANTED], room.numbers[BOUND], round_up(size)
    lateral_near(Q, awake, end, active, room.numbers[TOTAL], count, False, room.numbers[INHIBITION])
    lateral_near(Q, np.int64(0), end, active, room.numbers[LEAST], count, True, bound)
    zero, long = u.dtype.type(0), u.dtype.type(steps)
    woken = 0
    for q in range(size):
        # No rate fell below the least, so no drive rose above b − s (M̂ @ least).
        _, y_q = step(held.dynamics, u[q], long * max(b[q] - s[q] * bound[q], zero))
        wanted[q] = (q < awake) | (not y_q <= 0)
        woken += wanted[q]
    return woken == awake


@njit(**INNER)
def wake(held, some, awake, size, Q, k, steps, following, room):
    """After some steps that were kept: bring the others up to date, and those to the front that are active or may be so
    in the following steps. After none: those that are wanted. How many are awake from now on.
    """
    u, y, a, b, s = some.numbers[U], some.numbers[Y], some.numbers[A], some.numbers[B], some.numbers[S]
    c = some.c
    sums, inhibition, total, bound = (
        some.numbers[SUM], room.numbers[INHIBITION], room.numbers[TOTAL], room.numbers[BOUND]
    )  # fmt: skip
    current, wanted = room.indices[CURRENT], room.truths[WANTED]
    zero = y.dtype.type(0)
    if steps:
        left = y.dtype.type(1 - CAUTION)
        long, next_long = y.dtype.type(steps), y.dtype.type(following)
        for q in range(awake):
            sums[q] += total[q]
            inhibition[q] = 0
        for q in range(size):
            drive = long * b[q] - s[q] * inhibition[q]
            u_q, _ = step(held.dynamics, u[q], drive)
            u[q] = u[q] if q < awake else u_q
            rest, _ = step(held.dynamics, u[q], zero)
            _, y_q = step(held.dynamics, u[q], next_long * max(b[q] - left * s[q] * bound[q], zero))
            wanted[q] = not ((y[q] <= 0) & (y_q <= 0) & (rest == u[q]))
        known, closed = np.int64(-1), False
        silent_terms(held, a, awake, room)
        for q in range(awake):
            current[q] = k
            if not wanted[q]:
                if c[q] != known:
                    known, (closed, _) = c[q], silent_gate(held.schedule, zero, c[q], k, held.hold - 1, held.hold)
                wanted[q] = not closed and not changes_nothing(room.numbers, a, q)
    count = 0
    for q in range(size):
        count += wanted[q]
    q, other = 0, size - 1
    while q < other:
        if wanted[q]:
            q += 1
        elif not wanted[other]:
            other -= 1
        else:
            swap(some, room, q, other, size, Q)
            wanted[q], wanted[other] = True, False
    awake = round_up(count)
    for q in range(min(awake, size)):
        if current[q] != k:
            _, c[q] = silent_gate(held.schedule, zero, c[q], current[q], k, held.hold)
            current[q] = k
    return awake


@njit(**INNER)
def catch_up(held, every, some, P, awake, size, k, end, room):
    """Bring the counts of the near neurons that sleep, and all of the far ones, up to date.

    What it makes of the near ones in `every` does not matter: they are put back after.
    """
    u, b, s, P, room = every.numbers[U], every.numbers[B], every.numbers[S], P, room
    active, near, current = room.indices[ACTIVE], room.indices[NEAR], room.indices[CURRENT]
    inhibition, total, sums = room.numbers[INHIBITION], room.numbers[TOTAL], some.numbers[SUM]
    zero = u.dtype.type(0)
    for q in range(awake, size):
        _, some.c[q] = silent_gate(held.schedule, zero, some.c[q], current[q], end, held.hold)
    n, count = held.n, 0
    for q in range(size):
        active[count] = near[q]
        total[near[q]] = sums[q]
        count += sums[q] > 0
    lateral(P, active, total, count, inhibition)
    long = u.dtype.type(end - k)
    for i in range(n):
        u[i], _ = step(held.dynamics, u[i], long * b[i] - s[i] * inhibition[i])
    known = after = np.int64(-1)
    for i in range(n):
        if every.c[i] != known:
            known, (_, after) = every.c[i], silent_gate(held.schedule, zero, every.c[i], k, end, held.hold)
        every.c[i] = after
