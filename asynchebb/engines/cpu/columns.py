"""The parts of the cpu engine's loop that know no equation: work on the columns of M, the rows of W.

P is M̂ by presynaptic neuron: P[j, i] = m̂_ij, so that a presynaptic column lies in one piece.
During a hold M = diag(s)·M̂; between holds s = 1.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from asynchebb.engines.cpu.tiles import VECTOR, call_at, sum_columns

# The network's state: W, M by presynaptic neuron, and of each neuron u, y, c and a.
State = namedtuple("State", "W P u y c a")

# What of each neuron changes during a hold: in rows of `numbers` its u, y and a; b = Wx; what its row of W is still to
# be multiplied by (scale) and how often x is to be added to it (shift); the s of its row of M; and the sum of its y
# since it was put with the near ones. Its count c, and whether its row of M has grown.
Neurons = namedtuple("Neurons", "numbers c grown")
U, Y, A, B, SCALE, SHIFT, S, SUM = range(8)

# A rule: the addresses of its two compiled functions (`rule.py`), and its constants.
Rule = namedtuple("Rule", "terms update constants")

# Room to work in: rows of a number, an index or a truth for each neuron; and the near part of M̂, twice.
# Few wide arrays instead of many narrow ones: a call takes long to pass each.
Room = namedtuple("Room", "numbers indices truths Q saved_Q")
INHIBITION, TOTAL, LEAST, BOUND, KEEP_W, GAIN_W, KEEP_M, GAIN_M, DROP, KEEP, BOOST = range(11)  # rows of numbers
ETA, NEW_A, LEAK_W, LEAK_M, SILENT = range(11, 16)  # more of them; the last is 0 throughout
ACTIVE, NEAR, ROWS, CURRENT, WHOLE = range(5)  # rows of indices
LISTED, OPENED, WANTED, FETCHED, SAVED = range(5)  # rows of truths

LANES = 16  # awake neurons come in groups of so many: whole vectors

COMPILE = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    # No "fastmath": each operation is rounded as it stands, so that the bits are the same however the
    # compiler puts the parts together, in this process or a later one, on one core or several.
}

# Called from compiled code alone: no way in from Python has to be compiled, which takes most of the time.
INNER = {**COMPILE, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@njit(**INNER)
def list_pixels(x):
    """The pixels that are not zero, and their number."""
    pixels, count = np.empty(len(x), np.int64), 0
    for j in range(len(x)):
        pixels[count] = j
        count += x[j] != 0
    return pixels, count


@njit(**INNER)
def feed_forward(W, x, every):
    """b = W @ x, over the pixels that are not zero; how many these are."""
    pixels, count = list_pixels(x)
    feed_forward_rows(W, x, pixels, count, 0, len(W), every)
    return count


@njit(**INNER)
def feed_forward_rows(W, x, pixels, count, first, last, every):
    """Of some rows, four at a time; what is still to be done to a row of W is nothing yet."""
    b, scale, shift, grown = every.numbers[B], every.numbers[SCALE], every.numbers[SHIFT], every.grown
    zero = W.dtype.type(0)
    for i in range(first, last):
        scale[i], shift[i], grown[i] = 1, 0, False
    fours = last - (last - first) % 4
    for i in range(first, fours, 4):
        b0, b1, b2, b3 = zero, zero, zero, zero
        for k in range(count):
            j = pixels[k]
            b0 += W[i, j] * x[j]
            b1 += W[i + 1, j] * x[j]
            b2 += W[i + 2, j] * x[j]
            b3 += W[i + 3, j] * x[j]
        b[i], b[i + 1], b[i + 2], b[i + 3] = b0, b1, b2, b3
    for i in range(fours, last):
        b[i] = zero
        for k in range(count):
            b[i] += W[i, pixels[k]] * x[pixels[k]]


@njit(**INNER)
def activate(y, n, active, listed):
    """List the active of the first n neurons: active = flatnonzero(y > 0)."""
    count = 0
    for i in range(n):
        active[count], listed[i] = i, y[i] > 0
        count += y[i] > 0
    return count


@njit(**INNER)
def begin_block(y, n, total, least):
    for i in range(n):
        total[i], least[i] = 0, y[i]


@njit(**INNER)
def list_more(y, active, listed, count, n):
    """List the active ones that are not listed yet."""
    for i in range(n):
        if y[i] > 0 and not listed[i]:
            active[count], listed[i] = i, True
            count += 1
    return count


@njit(**INNER)
def lateral_near(Q, first, last, active, y, count, backwards, inhibition):
    """inhibition = Q @ y, over the active columns alone, for the rows first … last, both multiples of LANES.

    Done forwards and backwards by turns, it finds what it used last still in the nearest cache.
    """
    vector = VECTOR // Q.itemsize
    vectors = (last - first) // vector
    fours = max(0, vectors // 4 - 1)  # the last tile is the rest, up to seven vectors
    rest = vectors - 4 * fours
    for t in range(fours + 1):
        tile = fours - t if backwards else t
        start = first + 4 * vector * tile
        if tile < fours or rest == 4:
            sum_columns(Q, active, y, count, backwards, start, 4, inhibition)
        elif rest == 7:
            sum_columns(Q, active, y, count, backwards, start, 7, inhibition)
        elif rest == 6:
            sum_columns(Q, active, y, count, backwards, start, 6, inhibition)
        elif rest == 5:
            sum_columns(Q, active, y, count, backwards, start, 5, inhibition)
        elif rest == 3:
            sum_columns(Q, active, y, count, backwards, start, 3, inhibition)
        elif rest == 2:
            sum_columns(Q, active, y, count, backwards, start, 2, inhibition)
        elif rest == 1:
            sum_columns(Q, active, y, count, backwards, start, 1, inhibition)


@njit(**INNER)
def lateral(P, active, y, count, inhibition):
    """inhibition = M̂ @ y, over the active columns alone."""
    lateral_rows(P, np.uint64(0), np.uint64(len(P)), active, y, count, inhibition)


@njit(**INNER)
def lateral_rows(P, first, last, active, y, count, inhibition):
    """Of some rows, eight columns at a time. (Signed bounds might be negative, which would spoil the vectors.)"""
    for i in range(first, last):
        inhibition[i] = 0
    whole = count - count % 8
    for q in range(0, whole, 8):
        j0, j1, j2, j3 = active[q], active[q + 1], active[q + 2], active[q + 3]
        j4, j5, j6, j7 = active[q + 4], active[q + 5], active[q + 6], active[q + 7]
        y0, y1, y2, y3, y4, y5, y6, y7 = y[j0], y[j1], y[j2], y[j3], y[j4], y[j5], y[j6], y[j7]
        for i in range(first, last):
            inhibition[i] += (
                (P[j0, i] * y0 + P[j1, i] * y1)
                + (P[j2, i] * y2 + P[j3, i] * y3)
                + (P[j4, i] * y4 + P[j5, i] * y5)
                + (P[j6, i] * y6 + P[j7, i] * y7)
            )
    for q in range(whole, count):
        j0, y0 = active[q], y[active[q]]
        for i in range(first, last):
            inhibition[i] += P[j0, i] * y0


@njit(**INNER)
def change_W(keep, gain, scale, shift, b, x_x, n):
    """w_i ← keep_i w_i + gain_i x, by the scales alone."""
    for i in range(n):
        scale[i] *= keep[i]
        shift[i] = keep[i] * shift[i] + gain[i]
        b[i] = keep[i] * b[i] + gain[i] * x_x


@njit(**INNER)
def change_M(keep, gain, s, grown, n):
    """m_i ← keep_i m_i by the scales alone; leaves the gains of M̂ instead of those of M, and counts them."""
    grew = 0
    for i in range(n):
        s[i] *= keep[i]
        gain[i] /= s[i]
        grown[i] |= gain[i] != 0
        grew += gain[i] != 0
    return grew


@njit(**INNER)
def hebb(P, n, active, y, count, gains, grew, rows):
    """M̂_ij += gains_i y_j for the active j; `grew` of the gains are not 0."""
    if 8 * grew > n:
        hebb_columns(P, n, active, y, 0, count, gains)
        return
    grew = 0
    for i in range(n):
        rows[grew] = i
        grew += gains[i] != 0
    for r in range(grew):
        i = rows[r]
        for q in range(count):
            P[active[q], i] += gains[i] * y[active[q]]


@njit(**INNER)
def hebb_columns(P, n, active, y, first, last, gains):
    """Of some of the active columns."""
    for q in range(first, last):
        j = active[q]
        y_j = y[j]
        for i in range(n):
            P[j, i] += gains[i] * y_j


@njit(**INNER)
def hebb_and_lateral(P, n, active, y, count, gains, inhibition):
    """`hebb` for many rows and then `lateral` in one pass: the next step's M̂ @ y has the same y, and M̂ is read once."""
    for i in range(n):
        inhibition[i] = 0
    whole = count - count % 4
    for q in range(0, whole, 4):
        j0, j1, j2, j3 = active[q], active[q + 1], active[q + 2], active[q + 3]
        y0, y1, y2, y3 = y[j0], y[j1], y[j2], y[j3]
        for i in range(n):
            p0, p1 = P[j0, i] + gains[i] * y0, P[j1, i] + gains[i] * y1
            p2, p3 = P[j2, i] + gains[i] * y2, P[j3, i] + gains[i] * y3
            P[j0, i], P[j1, i], P[j2, i], P[j3, i] = p0, p1, p2, p3
            inhibition[i] += (p0 * y0 + p1 * y1) + (p2 * y2 + p3 * y3)
    for q in range(whole, count):
        j, y_j = active[q], y[active[q]]
        for i in range(n):
            P[j, i] += gains[i] * y_j
            inhibition[i] += P[j, i] * y_j


@njit(**INNER)
def rule_terms(rule, y, a, n, numbers):
    """The next a_i and the leaks of the first n neurons."""
    call_at(rule.terms, (rule.constants, y, a, n, numbers[NEW_A], numbers[LEAK_W], numbers[LEAK_M]))


@njit(**INNER)
def rule_update(rule, y, a, opened, n, numbers):
    """How an update of the first n neurons changes a row: w_i ← keep_w w_i + gain_w x, m_i ← keep_m m_i + gain_m y."""
    rows = numbers[ETA], numbers[KEEP_W], numbers[KEEP_M], numbers[GAIN_W], numbers[GAIN_M]
    call_at(rule.update, (rule.constants, y, a, opened, n, *rows))


@njit(**INNER)
def round_up(count):
    """To whole vectors."""
    return count + -count % LANES


@njit(**INNER)
def near_matrix(Q, size):
    """Room for the near part of M̂."""
    # An odd number of vectors a row: else the rows would compete for the same lines of the cache.
    width = round_up(size) + (LANES if round_up(size) % (2 * LANES) == 0 else 0)
    return Q[: size * width].reshape(size, width)


@njit(**INNER)
def copy_neurons(source, count, target):
    """The first few neurons of the source, also in the target."""
    for r in range(len(source.numbers)):
        for i in range(count):
            target.numbers[r, i] = source.numbers[r, i]
    for i in range(count):
        target.c[i], target.grown[i] = source.c[i], source.grown[i]


@njit(**INNER)
def take(every, room, size, k, some):
    """some = every[near]: the near neurons side by side, at step k; their columns are fetched when used."""
    near, current, fetched = room.indices[NEAR], room.indices[CURRENT], room.truths[FETCHED]
    for r in range(len(every.numbers)):
        for q in range(size):
            some.numbers[r, q] = every.numbers[r, near[q]]
    for q in range(size):
        some.c[q], some.grown[q] = every.c[near[q]], every.grown[near[q]]
        some.numbers[SUM, q], current[q], fetched[q] = 0, k, False


@njit(**INNER)
def fetch(P, near, size, columns, first, last, fetched, Q):
    """Q[q] = the near part of the presynaptic column of near neuron q, for those of these columns not there yet."""
    for k in range(first, last):
        q = columns[k]
        if not fetched[q]:
            j = near[q]
            for i in range(size):
                Q[q, i] = P[j, near[i]]
            fetched[q] = True


@njit(**INNER)
def swap(some, room, q, r, size, Q):
    """Exchange near neurons q and r."""
    numbers, c, grown = some.numbers, some.c, some.grown
    near, current, fetched = room.indices[NEAR], room.indices[CURRENT], room.truths[FETCHED]
    for k in range(len(numbers)):
        numbers[k, q], numbers[k, r] = numbers[k, r], numbers[k, q]
    c[q], c[r], grown[q], grown[r] = c[r], c[q], grown[r], grown[q]
    near[q], near[r], current[q], current[r] = near[r], near[q], current[r], current[q]
    if fetched[q] or fetched[r]:
        fetched[q], fetched[r] = fetched[r], fetched[q]
        for i in range(size):
            Q[q, i], Q[r, i] = Q[r, i], Q[q, i]
    for j in range(size):
        if fetched[j]:
            Q[j, q], Q[j, r] = Q[j, r], Q[j, q]


@njit(**INNER)
def copy_columns(Q, fetched, size, target, there):
    """The fetched columns of the near matrix, also in the target: kept as they are, or put there again."""
    for q in range(size):
        there[q] = fetched[q]
        if fetched[q]:
            for i in range(size):
                target[q, i] = Q[q, i]


@njit(**INNER)
def put_back(some, room, size, Q, every, P):
    """every[near] = some, and M̂[near, near] = Q where a row has grown."""
    near, rows, fetched = room.indices[NEAR], room.indices[ROWS], room.truths[FETCHED]
    for r in range(len(every.numbers)):
        for q in range(size):
            every.numbers[r, near[q]] = some.numbers[r, q]
    count = 0
    for q in range(size):
        every.c[near[q]], every.grown[near[q]] = some.c[q], some.grown[q]
        rows[count] = q
        count += some.grown[q]
    for q in range(size):
        if fetched[q]:
            j = near[q]
            for r in range(count):
                P[j, near[rows[r]]] = Q[q, rows[r]]


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
        largest = w.dtype.type(0)
        for j in range(len(w)):
            largest = max(largest, w[j])
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
    """M_i ← [keep_i M_i + gain_i y_j − drop_i]₊ for these rows; keep, gain and drop are 1, 0, 0 at all others."""
    n = P.shape[0]
    for j in range(n):
        y_j = y[j]
        # Where many rows change it is quicker to pass over whole columns than to jump from row to row.
        if 8 * count > n:
            for i in range(n):
                z = keep[i] * P[j, i] + gain[i] * y_j - drop[i]
                P[j, i] = z if z > 0 or z != z else 0
        else:
            for r in range(count):
                i = rows[r]
                z = keep[i] * P[j, i] + gain[i] * y_j - drop[i]
                P[j, i] = z if z > 0 or z != z else 0


@njit(**INNER)
def fold_W(W, x, scale, shift, smallest):
    """W_i ← scale_i W_i + shift_i x for the rows that have changed."""
    for i in range(W.shape[0]):
        if scale[i] != 1 or shift[i] != 0:
            fold_row(W[i], x, scale[i], shift[i], smallest)


@njit(**INNER)
def fold_M(P, s, grown, rows, largest, smallest):
    """M̂_i ← s_i M̂_i for the rows with s_i ≠ 1, so that s = 1; a fading row keeps its direction."""
    count = rows_to_fold(P, s, grown, rows, largest, smallest)
    fold_columns(P, 0, len(P), s, rows, count)
    for i in range(len(P)):
        s[i] = 1


@njit(**INNER)
def rows_to_fold(P, s, grown, rows, largest, smallest):
    """List the rows with s_i ≠ 1, and see to those that fade; their number."""
    n, count, only_faded = len(P), 0, False
    for i in range(n):
        rows[count] = i
        count += s[i] != 1
        only_faded |= s[i] != 1 and not grown[i]
    if only_faded:
        for i in range(n):
            largest[i] = 0
        for j in range(n):
            for i in range(n):
                largest[i] = max(largest[i], P[j, i])
        for i in range(n):
            if not grown[i] and 0 < s[i] * largest[i] < smallest:
                s[i] = smallest / largest[i]
    return count


@njit(**INNER)
def fold_columns(P, first, last, s, rows, count):
    """Of some columns."""
    n = len(P)
    for j in range(first, last if count else first):
        # Where many rows change it is quicker to pass over whole columns than to jump from row to row.
        if 8 * count > n:
            for i in range(n):
                P[j, i] *= s[i]
        else:
            for r in range(count):
                P[j, rows[r]] *= s[rows[r]]


@njit(**INNER)
def neurons(n, like):
    """Of n neurons, with some to spare for whole vectors."""
    return Neurons(np.zeros((SUM + 1, n + LANES), like.dtype), np.zeros(n, np.int64), np.zeros(n, np.bool_))


@njit(**INNER)
def enter(state, every):
    """The neurons as the state has them."""
    for i in range(len(state.u)):
        every.numbers[U, i], every.numbers[Y, i], every.numbers[A, i] = state.u[i], state.y[i], state.a[i]
        every.c[i], every.numbers[S, i] = state.c[i], 1


@njit(**INNER)
def leave(every, state):
    """The state as the neurons are."""
    for i in range(len(state.u)):
        state.u[i], state.y[i], state.a[i] = every.numbers[U, i], every.numbers[Y, i], every.numbers[A, i]
        state.c[i] = every.c[i]


@njit(**INNER)
def workroom(n, like):
    # Q is as large as M at the most; what is not used takes no memory.
    Q, saved_Q = np.empty(n * (n + 2 * LANES), like.dtype), np.empty(n * (n + 2 * LANES), like.dtype)
    room = Room(
        np.zeros((SILENT + 1, n + LANES), like.dtype),
        np.zeros((WHOLE + 1, n), np.int64),
        np.zeros((SAVED + 1, n), np.bool_),
        Q,
        saved_Q,
    )
    for i in range(n):
        room.indices[WHOLE, i] = i
    return room


@njit(**INNER)
def record(traces, t, y, opened, index, size):
    """Write down the rates and the gates of these neurons at step t, where they are asked for."""
    if traces.active.size:
        traces.active[t] = 0
        for i in range(size):
            traces.active[t] += y[i] > 0
    if traces.y.size:
        for i in range(traces.y.shape[1]):
            traces.y[t, i] = 0
        for i in range(size):
            traces.y[t, index[i]] = y[i]
    if traces.burst.size:
        for i in range(size):
            traces.burst[t, index[i]] = opened[i]
