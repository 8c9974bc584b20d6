"""The parts of the cpu engine's loop that know no equation: work on the columns of M, the rows of W.

P is M̂ by presynaptic neuron: P[j, i] = m̂_ij, so that a presynaptic column lies in one piece.
During a hold M = diag(s)·M̂; between holds s = 1.
"""

from collections import namedtuple

import numpy as np
from numba import njit

# What of each neuron changes during a hold: its state, b = Wx, what its row of W is still to be
# multiplied by (scale) and how often x is to be added to it (shift), the s of its row of M, and
# whether that row has grown.
Neurons = namedtuple("Neurons", "u y c a b scale shift s grown")

# Room to work in. For each neuron a number, an index or a truth; and the near part of M̂.
Room = namedtuple(
    "Room",
    "inhibition rates gains keep boost drop total least active rows slow near whole opened fetched Q",
)

COMPILE = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    # a·b + c in one rounding, sums in any order. Not "nnan" and "ninf": a run that diverges must show.
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}

# Called from compiled code alone: no way in from Python has to be compiled, which takes most of the time.
INNER = {**COMPILE, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@njit(**INNER)
def feed_forward(W, x, pixels, b):
    """b = W @ x, over the pixels that are not zero."""
    for i in range(W.shape[0]):
        total = W.dtype.type(0)
        for j in pixels:
            total += W[i, j] * x[j]
        b[i] = total


@njit(**INNER)
def activate(y, n, active, rates):
    """Gather the active of the first n neurons and their rates: active = flatnonzero(y > 0)."""
    count = 0
    for i in range(n):
        active[count], rates[count] = i, y[i]
        count += y[i] > 0
    return count


@njit(**INNER)
def lateral(P, n, active, rates, count, inhibition):
    """inhibition = M̂ @ y, over the active columns alone, eight at a time."""
    inhibition[:n] = 0
    last = count - count % 8
    for q in range(0, last, 8):
        j0, j1, j2, j3 = active[q], active[q + 1], active[q + 2], active[q + 3]
        j4, j5, j6, j7 = active[q + 4], active[q + 5], active[q + 6], active[q + 7]
        y0, y1, y2, y3 = rates[q], rates[q + 1], rates[q + 2], rates[q + 3]
        y4, y5, y6, y7 = rates[q + 4], rates[q + 5], rates[q + 6], rates[q + 7]
        for i in range(n):
            inhibition[i] += (
                (P[j0, i] * y0 + P[j1, i] * y1)
                + (P[j2, i] * y2 + P[j3, i] * y3)
                + (P[j4, i] * y4 + P[j5, i] * y5)
                + (P[j6, i] * y6 + P[j7, i] * y7)
            )
    for q in range(last, count):
        j0, y0 = active[q], rates[q]
        for i in range(n):
            inhibition[i] += P[j0, i] * y0


@njit(**INNER)
def lateral_twice(P, n, columns, count, first, second, to_first, to_second):
    """to_first = M̂ @ first and to_second = M̂ @ second in one pass over these columns."""
    to_first[:n], to_second[:n] = 0, 0
    last = count - count % 2
    for q in range(0, last, 2):
        j0, j1 = columns[q], columns[q + 1]
        f0, f1, s0, s1 = first[q], first[q + 1], second[q], second[q + 1]
        for i in range(n):
            to_first[i] += P[j0, i] * f0 + P[j1, i] * f1
            to_second[i] += P[j0, i] * s0 + P[j1, i] * s1
    for q in range(last, count):
        j0, f0, s0 = columns[q], first[q], second[q]
        for i in range(n):
            to_first[i] += P[j0, i] * f0
            to_second[i] += P[j0, i] * s0


@njit(**INNER)
def hebb(P, n, active, rates, count, rows, gains, changed):
    """M̂[rows] += gains_i y_j, for the active j alone; `gains`, 0 but at these rows, is 0 there too after."""
    for q in range(count):
        j, y_j = active[q], rates[q]
        if 8 * changed > n:
            for i in range(n):
                P[j, i] += gains[i] * y_j
        else:
            for r in range(changed):
                P[j, rows[r]] += gains[rows[r]] * y_j
    for r in range(changed):
        gains[rows[r]] = 0


@njit(**INNER)
def take(every, near, count, some, room):
    """The near neurons side by side: some = every[near]; gives room for their part of M̂, to be fetched when used."""
    for q in range(count):
        i = near[q]
        some.u[q] = every.u[i]
        some.y[q] = every.y[i]
        some.c[q] = every.c[i]
        some.a[q] = every.a[i]
        some.b[q] = every.b[i]
        some.scale[q] = every.scale[i]
        some.shift[q] = every.shift[i]
        some.s[q] = every.s[i]
        some.grown[q] = False
        room.fetched[q] = False
    width = count + 15 - (count + 15) % 16
    return room.Q[: count * width].reshape(count, width)


@njit(**INNER)
def fetch(P, near, size, active, count, fetched, Q):
    """Q[q] = the near part of the presynaptic column of near neuron q, for the active ones that are not there yet."""
    for k in range(count):
        q = active[k]
        if not fetched[q]:
            j = near[q]
            for i in range(size):
                Q[q, i] = P[j, near[i]]
            fetched[q] = True


@njit(**INNER)
def put_back(some, near, count, every, room, Q, P):
    """every[near] = some, and M̂[near, near] = Q where a row has grown."""
    grown = 0
    for q in range(count):
        i = near[q]
        every.u[i] = some.u[q]
        every.y[i] = some.y[q]
        every.c[i] = some.c[q]
        every.a[i] = some.a[q]
        every.b[i] = some.b[q]
        every.scale[i] = some.scale[q]
        every.shift[i] = some.shift[q]
        every.s[i] = some.s[q]
        every.grown[i] |= some.grown[q]
        room.rows[grown] = q
        grown += some.grown[q]
    for q in range(count):
        if room.fetched[q]:
            j = near[q]
            for r in range(grown):
                P[j, near[room.rows[r]]] = Q[q, room.rows[r]]


@njit(**INNER)
def rescale_row(P, s, grown, i, smallest):
    """M̂_i ← s_i M̂_i, so that s_i is 1 again; a row that has only faded keeps its direction."""
    n = P.shape[0]
    if not grown[i] and s[i] > 0:
        largest = P.dtype.type(0)
        for j in range(n):
            largest = max(largest, P[j, i])
        if 0 < s[i] * largest < smallest:
            s[i] = smallest / largest
    for j in range(n):
        P[j, i] *= s[i]
    s[i] = 1


@njit(**INNER)
def fold_row(w, x, scale, shift, smallest):
    """w ← scale w + shift x; a row that has only faded keeps its direction."""
    if shift == 0 and scale > 0:
        largest = w.max()
        if 0 < scale * largest < smallest:
            scale = smallest / largest
    for j in range(len(w)):
        w[j] = scale * w[j] + shift * x[j]


@njit(**INNER)
def dot(w, x):
    total = w.dtype.type(0)
    for j in range(len(w)):
        total += w[j] * x[j]
    return total


@njit(**INNER)
def rectified_row(w, x, scale, shift, keep, gain):
    """w ← [keep (scale w + shift x) + gain x]₊."""
    for j in range(len(w)):
        z = keep * (scale * w[j] + shift * x[j]) + gain * x[j]
        w[j] = z if z > 0 or z != z else 0


@njit(**INNER)
def rectified(P, y, rows, count, keep, gain, drop):
    """M_i ← [keep_i M_i + gain_i y_j − drop_i]₊ for these rows, at which keep, gain and drop are back to 1, 0, 0 after.

    At the rows that do not change they are so before: where many rows change it is quicker to pass
    over whole columns than to jump from row to row.
    """
    n = P.shape[0]
    for j in range(n):
        y_j = y[j]
        if 8 * count > n:
            for i in range(n):
                z = keep[i] * P[j, i] + gain[i] * y_j - drop[i]
                P[j, i] = z if z > 0 or z != z else 0
        else:
            for r in range(count):
                i = rows[r]
                z = keep[i] * P[j, i] + gain[i] * y_j - drop[i]
                P[j, i] = z if z > 0 or z != z else 0
    for r in range(count):
        keep[rows[r]], gain[rows[r]], drop[rows[r]] = 1, 0, 0


@njit(**INNER)
def fold_W(W, x, scale, shift, smallest):
    """W_i ← scale_i W_i + shift_i x for the rows that have changed."""
    for i in range(W.shape[0]):
        if scale[i] != 1 or shift[i] != 0:
            fold_row(W[i], x, scale[i], shift[i], smallest)


@njit(**INNER)
def fold_M(P, s, grown, rows, largest, smallest):
    """M̂_i ← s_i M̂_i for the rows with s_i ≠ 1, so that s = 1; a fading row keeps its direction."""
    n = P.shape[0]
    count = 0
    only_faded = False
    for i in range(n):
        rows[count] = i
        count += s[i] != 1
        only_faded |= s[i] != 1 and not grown[i]
    if count == 0:
        return
    if only_faded:
        largest[:n] = 0
        for j in range(n):
            for i in range(n):
                largest[i] = max(largest[i], P[j, i])
        for i in range(n):
            if not grown[i] and 0 < s[i] * largest[i] < smallest:
                s[i] = smallest / largest[i]
    for j in range(n):
        if 8 * count > n:
            for i in range(n):
                P[j, i] *= s[i]
        else:
            for r in range(count):
                P[j, rows[r]] *= s[rows[r]]
    s[:] = 1


@njit(**INNER)
def vector(W):
    """A number for each neuron."""
    return np.zeros(W.shape[0], W.dtype)


@njit(**INNER)
def neurons(u, y, c, a):
    b, scale, shift, s = np.zeros_like(u), np.ones_like(u), np.zeros_like(u), np.ones_like(u)
    return Neurons(u, y, c, a, b, scale, shift, s, np.zeros(len(u), np.bool_))


@njit(**INNER)
def workroom(W):
    n = W.shape[0]
    keep = vector(W)
    keep[:] = 1
    active, rows = np.zeros(n, np.int64), np.zeros(n, np.int64)
    slow, near = np.zeros(n, np.int64), np.zeros(n, np.int64)
    # At most half of the neurons are near, so their part of M is at most a quarter of it.
    Q = np.empty(n * n // 4 + 8 * n, W.dtype)
    numbers = (vector(W), vector(W), vector(W), keep, vector(W), vector(W), vector(W), vector(W))
    return Room(*numbers, active, rows, slow, near, np.arange(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_), Q)
