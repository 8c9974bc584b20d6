"""The parts of the cpu engine's loop that know no equation: work on the columns of M, the rows of W.

P is M̂ by presynaptic neuron: P[j, i] = m̂_ij, so that a presynaptic column lies in one piece.
During a hold M = diag(s)·M̂; between holds s = 1.
"""

from collections import namedtuple

import numpy as np
from numba import njit

# What of each neuron changes during a hold: its state, b = Wx, and the factors by which its rows
# of W and M are meant to be multiplied (α, s) and added to (β).
Neurons = namedtuple("Neurons", "u y c a b alpha beta s grown")

# Room to work in: numbers, then indices of neurons, for each neuron; and the near part of M̂.
Room = namedtuple("Room", "inhibition rates gains keep boost drop total least active rows slow near every opened Q")

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
def take(every, near, count, some, P, Q):
    """The near neurons side by side: some = every[near]; gives their part of M̂, M̂[near, near], within Q."""
    width = count + 15 - (count + 15) % 16
    Q = Q[: count * width].reshape(count, width)
    for q in range(count):
        i = near[q]
        some.u[q] = every.u[i]
        some.y[q] = every.y[i]
        some.c[q] = every.c[i]
        some.a[q] = every.a[i]
        some.b[q] = every.b[i]
        some.alpha[q] = every.alpha[i]
        some.beta[q] = every.beta[i]
        some.s[q] = every.s[i]
        some.grown[q] = False
    for q in range(count):
        j = near[q]
        for i in range(count):
            Q[q, i] = P[j, near[i]]
    return Q


@njit(**INNER)
def put_back(some, near, count, every, Q, P, rows):
    """every[near] = some, and M̂[near, near] = Q where a row has grown."""
    grown = 0
    for q in range(count):
        i = near[q]
        every.u[i] = some.u[q]
        every.y[i] = some.y[q]
        every.c[i] = some.c[q]
        every.a[i] = some.a[q]
        every.b[i] = some.b[q]
        every.alpha[i] = some.alpha[q]
        every.beta[i] = some.beta[q]
        every.s[i] = some.s[q]
        every.grown[i] |= some.grown[q]
        rows[grown] = q
        grown += some.grown[q]
    for q in range(count):
        j = near[q]
        for r in range(grown):
            P[j, near[rows[r]]] = Q[q, rows[r]]


@njit(**INNER)
def rescale_row(P, s, i):
    """M̂_i ← s_i M̂_i, so that s_i is 1 again."""
    for j in range(P.shape[0]):
        P[j, i] *= s[i]
    s[i] = 1


@njit(**INNER)
def rectified_row(w, x, alpha, beta, keep, gain):
    """w ← [keep (α w + β x) + gain x]₊; gives w · x."""
    total = w.dtype.type(0)
    for j in range(len(w)):
        z = keep * (alpha * w[j] + beta * x[j]) + gain * x[j]
        w[j] = z if z > 0 or z != z else 0
        total += w[j] * x[j]
    return total


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
def fold_W(W, x, pixels, alpha, beta, smallest):
    """W_i ← α_i W_i + β_i x for the rows that have changed; a fading row keeps its direction."""
    for i in range(W.shape[0]):
        if alpha[i] == 1 and beta[i] == 0:
            continue
        row = W[i]
        scale = alpha[i]
        if beta[i] == 0 and scale > 0:
            largest = row.max()
            if 0 < scale * largest < smallest:
                scale = smallest / largest
        for j in range(W.shape[1]):
            row[j] *= scale
        if beta[i] != 0:
            for j in pixels:
                row[j] += beta[i] * x[j]


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
    b, alpha, beta, s = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u), np.ones_like(u)
    return Neurons(u, y, c, a, b, alpha, beta, s, np.zeros(len(u), np.bool_))


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
    return Room(*numbers, active, rows, slow, near, np.arange(n), np.zeros(n, np.bool_), Q)
