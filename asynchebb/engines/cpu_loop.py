"""The cpu engine's loop. `cpu.loop` compiles a copy of this file with a network's own equations.

Exact up to rounding, and fast because of the structure of the model:
1. x is constant during a hold, so b = Wx is computed once; an update of row i moves b_i in O(1),
   and row i of W itself is touched once, at the end: w_i ← scale_i w_i + shift_i x.
2. Few neurons are active, so only their columns of M are read.
3. M = diag(s)·M̂, so a leak is s_i ← s_i (1 − ηλ) and only active entries of a row are touched.
4. Rectifying can bite only if φ ≠ 0, ηλ > 1 or η < 0: such rows take a slower path.
5. Most silent neurons stay silent for many steps. A block of steps runs on the near neurons alone,
   those active or likely to become so, with their part of M̂ gathered into a small matrix that
   stays in the nearest cache. At its end the far neurons are brought up to date by one step with
   the summed drive, after a bound has shown that none of them could have become active; where it
   has not, nothing of the block is kept and it is run again, shorter or on all neurons.
All of these are undone at the end of a hold (scale = 1, shift = 0, s = 1), so that a run may be
cut at any stimulus and goes on to the same bits.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from asynchebb.engines.cpu_columns import (
    COMPILE,
    INNER,
    activate,
    dot,
    feed_forward,
    fetch,
    fold_M,
    fold_row,
    fold_W,
    hebb,
    lateral,
    lateral_twice,
    neurons,
    put_back,
    rectified,
    rectified_row,
    rescale_row,
    take,
    workroom,
)

# The network's equations; `cpu.loop` puts compiled ones in their place.
step = gate = leak_w = leak_m = rate = None

# What stays the same during a hold.
Held = namedtuple("Held", "dynamics rule schedule floor smallest hold n m x x_x pixels")

FIRST_BLOCK = 8  # steps; after a block that could be kept, the next one is twice as long
CAUTION = 0.1  # the share by which inhibition is expected to fall within a block at the most
SMALLEST_SCALE = 1e-9  # a row of W or M whose scale or s has come down to this is brought back to 1


@njit(**COMPILE)
def advance(dynamics, rule, schedule, floor, additive, smallest, state, X, hold, traces):
    """Show X to the network; the state changes in place. How many steps were run in blocks, how many undone."""
    W, P, u, y, c, a = state
    n, m = W.shape
    every = neurons(u, y, c, a)
    some = neurons(u.copy(), y.copy(), c.copy(), a.copy())
    room = workroom(W)
    # A floor takes from every synapse, and far neurons' gates are not looked at one by one.
    lazy = additive and floor == 0 and traces.burst.size == 0
    t = in_blocks = undone = 0
    for x in X:
        pixels = np.flatnonzero(x)
        held = Held(dynamics, rule, schedule, floor, smallest, hold, n, m, x, np.sum(x * x), len(pixels))
        feed_forward(W, x, pixels, every.b)
        every.scale[:], every.shift[:], every.grown[:] = 1, 0, False
        k, length, caution, whole = 0, FIRST_BLOCK, W.dtype.type(CAUTION), not lazy
        while k < hold:
            # All neurons take the last step: a discrete schedule opens its gates there.
            steps = min(length, hold - 1 - k)
            size = n
            if whole or steps < FIRST_BLOCK:
                steps = min(FIRST_BLOCK if lazy else hold, hold - k)
            else:
                # A new stimulus: the inhibition that the last one has left may vanish.
                size = choose_near(held, every, P, k, steps, caution if k else W.dtype.type(1), room)
            part, index, Q = every, room.whole, P
            if size < n:
                part, index, Q = some, room.near, take(every, room.near, size, some, room)
            kept = run(held, part, size, index, W, P, Q, k, steps, room, traces, t)
            if size < n:
                kept = kept and catch_up(held, every, P, size, k, steps, room)
                if kept:
                    put_back(some, room.near, size, every, room, Q, P)
                    in_blocks += steps
                else:
                    undone += steps
            whole = not lazy or not kept
            if kept:
                k, t, length = k + steps, t + steps, 2 * length
            else:
                length, caution = FIRST_BLOCK, min(W.dtype.type(1), 2 * caution)
        fold_W(W, x, every.scale, every.shift, smallest)
        fold_M(P, every.s, every.grown, room.rows, room.total, smallest)
    return in_blocks, undone


@njit(**INNER)
def run(held, some, size, index, W, P, Q, k, steps, room, traces, t):
    """Run these neurons, all or the near ones, for some steps; Q is their part of M̂, P the whole.

    False if one of the near ones has to be rectified, which takes the whole of its row.
    """
    dynamics, rule, schedule, floor, smallest, hold, n, m, x, x_x, pixels = held
    u, y, c, a, b, scale, shift, s, grown = some
    inhibition, rates, active, rows, gains = room.inhibition, room.rates, room.active, room.rows, room.gains
    one = y.dtype.type(1)
    room.total[:size], room.least[:size] = 0, y[:size]
    count = activate(y, size, active, rates)
    for kk in range(k, k + steps):
        # u, y = step(u, W @ x - M @ y)
        if size < n:
            fetch(P, index, size, active, count, room.fetched, Q)
        lateral(Q, size, active, rates, count, inhibition)
        for i in range(size):
            room.total[i] += y[i]
            room.least[i] = min(room.least[i], y[i])
            u[i], y[i] = step(dynamics, u[i], b[i] - s[i] * inhibition[i])
        count = activate(y, size, active, rates)

        # beta, c = gate(y, c, k, hold)
        opened = 0
        for i in range(size):
            room.opened[i], c[i] = gate(schedule, y[i], c[i], kk, hold)
            opened += room.opened[i]

        # W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, for the rows i with open gates
        updates = fast = slow = 0
        for i in range(size if opened else 0):
            if not room.opened[i]:
                continue
            eta, a[i] = rate(rule, y[i], a[i])
            leak_of_w, leak_of_m, gain = leak_w(rule, y[i]), leak_m(rule, y[i]), eta * y[i]
            keep_w, keep_m = one - eta * leak_of_w, one - eta * leak_of_m
            simple_w = keep_w >= 0 and gain >= 0
            simple_m = keep_m >= 0 and gain >= 0 and floor == 0
            small = scale[i] * keep_w <= SMALLEST_SCALE or s[i] * keep_m <= SMALLEST_SCALE
            if size < n and (small or not (simple_w and simple_m)):
                gains[:size] = 0
                return False
            if simple_w:
                scale[i] *= keep_w
                shift[i] = keep_w * shift[i] + gain
                b[i] = keep_w * b[i] + gain * x_x
                if scale[i] <= SMALLEST_SCALE:
                    fold_row(W[i], x, scale[i], shift[i], smallest)
                    scale[i], shift[i], b[i] = 1, 0, dot(W[i], x)
            else:
                rectified_row(W[i], x, scale[i], shift[i], keep_w, gain)
                scale[i], shift[i], b[i] = 1, 0, dot(W[i], x)
            if simple_m:
                s[i] *= keep_m
                if s[i] <= SMALLEST_SCALE:
                    rescale_row(P, s, grown, i, smallest)
                if gain != 0:
                    rows[fast], gains[i] = i, gain / s[i]
                    fast += 1
                    grown[i] = True
            else:
                rescale_row(P, s, grown, i, smallest)
                room.slow[slow] = i
                slow += 1
                room.keep[i], room.boost[i], room.drop[i] = keep_m, gain, eta * floor
            updates += m if leak_of_w != 0 else (pixels if y[i] != 0 else 0)
            updates += n if leak_of_m != 0 or floor != 0 else (count if y[i] != 0 else 0)
        if fast:
            if size < n:
                fetch(P, index, size, active, count, room.fetched, Q)
            hebb(Q, size, active, rates, count, rows, gains, fast)
        if slow:
            rectified(P, y, room.slow, slow, room.keep, room.boost, room.drop)

        if traces.updates.size:
            traces.updates[t + kk - k] = updates
        if traces.active.size:
            traces.active[t + kk - k] = count
        if traces.y.size:
            traces.y[t + kk - k] = 0
            for i in range(size):
                traces.y[t + kk - k, index[i]] = y[i]
        if traces.burst.size:
            traces.burst[t + kk - k] = room.opened
    return True


@njit(**INNER)
def choose_near(held, every, P, k, steps, caution, room):
    """Guess which neurons a block must run, and put them into room.near; their number, or n if they are too many.

    The inhibition of a silent neuron is taken to fall by at most the share `caution`; `catch_up` makes sure.
    """
    u, y, c, a, b, _, _, s, _ = every
    zero = y.dtype.type(0)
    count = activate(y, held.n, room.active, room.rates)
    lateral(P, held.n, room.active, room.rates, count, room.inhibition)
    near = 0
    known, closed = np.int64(-1), False
    for i in range(held.n):
        rest, _ = step(held.dynamics, u[i], zero)
        drive = b[i] - (1 - caution) * s[i] * room.inhibition[i]
        _, woken = step(held.dynamics, u[i], steps * max(drive, zero))
        if c[i] != known:
            known, (closed, _) = c[i], silent_gate(held, c[i], k, steps)
        room.near[near] = i
        near += not (y[i] <= 0 and woken <= 0 and rest == u[i] and (closed or changes_nothing(held, a[i])))
    return near if 2 * near + 16 <= held.n else held.n


@njit(**INNER)
def silent_gate(held, c_i, k, steps):
    """Does the gate of a neuron that is silent for these steps stay closed? And c_i after them."""
    opened = False
    for kk in range(k, k + steps):
        beta_i, c_i = gate(held.schedule, held.x.dtype.type(0), c_i, kk, held.hold)
        opened |= beta_i
    return not opened, c_i


@njit(**INNER)
def changes_nothing(held, a_i):
    """Would an update of a silent neuron leave it as it is?"""
    zero = held.x.dtype.type(0)
    _, a_new = rate(held.rule, zero, a_i)
    return a_new == a_i and leak_w(held.rule, zero) == 0 and leak_m(held.rule, zero) == 0


@njit(**INNER)
def catch_up(held, every, P, size, k, steps, room):
    """Bring the far neurons up to date, after the near ones have been run for some steps.

    False if one of them could have become active meanwhile; then none has been touched.
    """
    n, near, total, least = held.n, room.near, room.total, room.least
    count = 0
    for q in range(size):
        room.active[count], total[count], least[count] = near[q], total[q], least[q]
        count += total[q] > 0
    to_total, to_least = room.inhibition, room.rates
    lateral_twice(P, n, room.active, count, total, least, to_total, to_least)

    # The bound: no rate fell below `least`, so no far neuron's drive rose above b − s (M̂ @ least).
    zero = to_least.dtype.type(0)
    awake = q = 0
    for i in range(n):
        if q < size and near[q] == i:
            q += 1
            continue
        drive = every.b[i] - every.s[i] * to_least[i]
        _, y_i = step(held.dynamics, every.u[i], steps * max(drive, zero))
        awake += not y_i <= 0
    if awake:
        return False

    # One step with the summed drive. The gates stayed closed, or had nothing to change.
    known = after = np.int64(-1)
    q = 0
    for i in range(n):
        if q < size and near[q] == i:
            q += 1
            continue
        every.u[i], _ = step(held.dynamics, every.u[i], steps * every.b[i] - every.s[i] * to_total[i])
        if every.c[i] != known:
            known, (_, after) = every.c[i], silent_gate(held, every.c[i], k, steps)
        every.c[i] = after
    return True
