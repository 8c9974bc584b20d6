"""The parts of the cpu engine's loop that work on all of the network: columns of M, rows of W.

P is M̂ by presynaptic neuron: m̂_ij is at place j n + i, so that a presynaptic column lies in one piece.
During a hold M = diag(s)·M̂; between holds s = 1.
"""

from typing import TYPE_CHECKING

from numba import carray

from asynchebb.engines.cpu.tiles import call_at, row, rows_of
from asynchebb.engines.cpu.units import unit

if TYPE_CHECKING:  # `cpu` puts them in their place: a type, and what makes places of addresses
    from numpy import float32 as number

    numbers_at = indices_at = truths_at = row
    ITEM = 4  # bytes
elif "number" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")

# Neurons are kept in groups, each a few rows of numbers, a row of counts c and one of truths: whether a neuron's row of
# M has grown. All neurons; and those that `lanes.py` explains.
ALL, NEAR, LANES, SAVED = 0, 8, 16, 24
# Of each neuron: its u, y and a; b = Wx; what its row of W is still to be multiplied by (scale) and how often x
# is to be added to it (shift); the s of its row of M; and the sum of its y since few were first run apart.
U, Y, A, B, SCALE, SHIFT, S, SUM = range(8)
GROUP = 8

# More rows, to work in: of numbers,
INHIBITION, DRIVE, NEW_U, NEW_Y, NOW, THEN, FELT, SILENT = range(32, 40)  # SILENT is 0 throughout
ETA, KEEP_W, KEEP_M, GAIN_W, GAIN_M, KEEP, BOOST, DROP, NEW_A, LEAK_W, LEAK_M = range(40, 51)
DEVIATION, END, TOTAL, FELT_DEVIATION, FELT_END, FELT_TOTAL, LANE_FELT, BEFORE = range(51, 59)
H, NOISE, JUMP, MEAN = range(59, 63)  # of spiking neurons
# of whole numbers,
ACTIVE, NEURON, LANE, SLOT, WHO, WHOLE, ROWS, CURRENT, LOG, NEW_C, SPIKES, FIRING = range(4, 16)
# and of truths.
LISTED, OPENED, COULD, WANTED, FETCHED, CLOSED, LOGGED = range(4, 11)
NUMBER_ROWS, INDEX_ROWS, TRUTH_ROWS = 63, 16, 11

SMALLEST_SCALE = 1e-9  # a row of W or M whose scale or s has come down to this is brought back to 1


@unit("hyk")
def after(held, u, n):
    """NEW_U, NEW_Y = step(u, DRIVE)."""
    h = carray(held, 1)[0]
    numbers, wide = numbers_at(h.numbers), h.wide
    drive, new_u, new_y = rows_of(numbers, wide, (DRIVE, NEW_U, NEW_Y))
    call_at(h.after, (h.dynamics, u, drive, n, new_u, new_y))


@unit("hcykk", "k")
def gates(held, c, y, k, n):
    """OPENED, c = gate(y, SPIKES, c, k, hold); how many are open."""
    h = carray(held, 1)[0]
    opened, indices = row(truths_at(h.truths), OPENED, h.wide), indices_at(h.indices)
    opens, spikes = rows_of(indices, h.wide, (NEW_C, SPIKES))
    call_at(h.gates, (h.schedule, y, spikes, c, k, h.hold, n, opened, opens))
    return opens[0]


@unit("hckkk")
def silent_gates(held, c, k, end, n):
    """Of n neurons that are silent from step k to the end: NEW_C, and whether their gates stay CLOSED."""
    h = carray(held, 1)[0]
    new_c, closed = row(indices_at(h.indices), NEW_C, h.wide), row(truths_at(h.truths), CLOSED, h.wide)
    call_at(h.silent_gates, (h.schedule, c, k, end, h.hold, n, new_c, closed))


@unit("hyyk")
def rule_terms(held, y, a, n):
    """NEW_A and the leaks of n neurons."""
    h = carray(held, 1)[0]
    numbers, wide = numbers_at(h.numbers), h.wide
    new_a, leak_w, leak_m = rows_of(numbers, wide, (NEW_A, LEAK_W, LEAK_M))
    call_at(h.terms, (h.rule, y, a, n, new_a, leak_w, leak_m))


@unit("hcykkk")
def silence(held, c, a, k, end, n):
    """Of n neurons that are silent from step k to the end: CLOSED, if no gate opens or an update in silence would leave
    them as they are."""
    h = carray(held, 1)[0]
    closed, numbers, wide = row(truths_at(h.truths), CLOSED, h.wide), numbers_at(h.numbers), h.wide
    silent, new_a, leak_w, leak_m = rows_of(numbers, wide, (SILENT, NEW_A, LEAK_W, LEAK_M))
    silent_gates(held, c, k, end, n)
    rule_terms(held, silent, a, n)
    for i in range(n):
        stays = (new_a[i] == a[i]) & (leak_w[i] == 0) & (leak_m[i] == 0)
        closed[i] = (closed[i] != 0) | stays


@unit("hyk", "k")
def count_updates(held, y, n):
    """How many synapses change at the open gates: where there is a Hebbian product, a leak or a floor."""
    h = carray(held, 1)[0]
    numbers, wide, opened = numbers_at(h.numbers), h.wide, row(truths_at(h.truths), OPENED, h.wide)
    leak_w, leak_m = rows_of(numbers, wide, (LEAK_W, LEAK_M))
    updates = active = 0
    for i in range(n):
        active += y[i] > 0
    for i in range(n):
        if opened[i] != 0:
            updates += h.m if leak_w[i] != 0 else (h.pixels if y[i] != 0 else 0)
            updates += h.n if leak_m[i] != 0 or h.floor != 0 else (active if y[i] != 0 else 0)
    return updates


@unit("hkykk", "k")
def terms_of_update(held, group, y, n, t):
    """How an update changes the rows of the n neurons of a group: w_i ← keep_w w_i + gain_w x,
    m_i ← keep_m m_i + gain_m y − drop. Does any have to be rectified, or a scale to be brought back to 1?
    """
    h = carray(held, 1)[0]
    numbers, wide, opened = numbers_at(h.numbers), h.wide, row(truths_at(h.truths), OPENED, h.wide)
    a, scale, s, keep_w, gain_w = rows_of(numbers, wide, (group + A, group + SCALE, group + S, KEEP_W, GAIN_W))
    keep_m, gain_m = rows_of(numbers, wide, (KEEP_M, GAIN_M))
    if h.trace_updates:
        rule_terms(held, y, a, n)
        indices_at(h.trace_updates)[t] = count_updates(held, y, n)
    call_at(h.update, (h.rule, y, a, opened, n, row(numbers, ETA, wide), keep_w, keep_m, gain_w, gain_m))
    odd, smallest = 0, number(SMALLEST_SCALE)
    for i in range(n):
        odd += not ((keep_w[i] >= 0) & (gain_w[i] >= 0) & (scale[i] * keep_w[i] > smallest))
    for i in range(n):
        odd += not ((keep_m[i] >= 0) & (gain_m[i] >= 0) & (s[i] * keep_m[i] > smallest))
    return odd + (h.floor != 0)


@unit("hkk", "k")
def change(held, group, n):
    """Change the rows of n neurons by their scales alone. Leaves the gains of M̂ instead of those of M; their number."""
    h = carray(held, 1)[0]
    numbers, wide, grown = numbers_at(h.numbers), h.wide, row(truths_at(h.truths), group // GROUP, h.wide)
    scale, shift = rows_of(numbers, wide, (group + SCALE, group + SHIFT))
    b, s, x_x = row(numbers, group + B, wide), row(numbers, group + S, wide), h.x_x
    keep_w, gain_w, keep_m, gain_m = rows_of(numbers, wide, (KEEP_W, GAIN_W, KEEP_M, GAIN_M))
    for i in range(n):
        scale[i] *= keep_w[i]
        shift[i] = keep_w[i] * shift[i] + gain_w[i]
        b[i] = keep_w[i] * b[i] + gain_w[i] * x_x
    for i in range(n):
        s[i] *= keep_m[i]
        gain_m[i] /= s[i]
    grew = 0
    for i in range(n):
        grown[i] |= gain_m[i] != 0
        grew += gain_m[i] != 0
    return grew


@unit("yyyckkk")
def feed_forward_rows(W, x, b, pixels, count, m, rows):
    """b = W @ x over these pixels, of some rows, four at a time."""
    fours = rows - rows % 4
    for i in range(0, fours, 4):
        w0, w1, w2, w3 = rows_of(W, m, (i, i + 1, i + 2, i + 3))
        b0, b1, b2, b3 = number(0), number(0), number(0), number(0)
        for k in range(count):
            j = pixels[k]
            b0 += w0[j] * x[j]
            b1 += w1[j] * x[j]
            b2 += w2[j] * x[j]
            b3 += w3[j] * x[j]
        b[i], b[i + 1], b[i + 2], b[i + 3] = b0, b1, b2, b3
    for i in range(fours, rows):
        w, total = row(W, i, m), number(0)
        for k in range(count):
            total += w[pixels[k]] * x[pixels[k]]
        b[i] = total


@unit("yyk", "x")
def dot(w, x, m):
    total = number(0)
    for j in range(m):
        total += w[j] * x[j]
    return total


@unit("h", "k")
def list_pixels(held):
    """List the pixels of x that are not 0, and begin a hold: what is still to be done to a row of W is nothing yet."""
    h = carray(held, 1)[0]
    numbers, wide, grown = numbers_at(h.numbers), h.wide, truths_at(h.truths)
    scale, shift = rows_of(numbers, wide, (SCALE, SHIFT))
    x, pixels, count = numbers_at(h.x), indices_at(h.listed), 0
    for j in range(h.m):
        pixels[count] = j
        count += x[j] != 0
    for i in range(h.n):
        scale[i], shift[i], grown[i] = 1, 0, 0
    return count


@unit("h")
def feed_forward(held):
    """b = W @ x."""
    h = carray(held, 1)[0]
    b = row(numbers_at(h.numbers), B, h.wide)
    feed_forward_rows(numbers_at(h.W), numbers_at(h.x), b, indices_at(h.listed), h.pixels, h.m, h.n)


@unit("ykcb", "k")
def activate(y, n, active, listed):
    """List the active of the first n neurons: active = flatnonzero(y > 0)."""
    count = 0
    for i in range(n):
        active[count] = i
        count += y[i] > 0
    for i in range(n):
        listed[i] = y[i] > 0
    return count


@unit("ykcbk", "k")
def list_more(y, n, active, listed, count):
    """List the active ones that are not listed yet."""
    woken = 0
    for i in range(n):
        woken += (y[i] > 0) & (listed[i] == 0)
    if woken:
        for i in range(n):
            if y[i] > 0 and listed[i] == 0:
                active[count], listed[i] = i, 1
                count += 1
    return count


@unit("ykcykyk")
def lateral_rows(P, n, active, y, count, inhibition, rows):
    """inhibition = M̂ @ y over the active columns alone, of some rows, eight columns at a time."""
    for i in range(rows):
        inhibition[i] = 0
    whole = count - count % 8
    for q in range(0, whole, 8):
        j0, j1, j2, j3 = active[q], active[q + 1], active[q + 2], active[q + 3]
        j4, j5, j6, j7 = active[q + 4], active[q + 5], active[q + 6], active[q + 7]
        p0, p1, p2, p3, p4, p5, p6, p7 = rows_of(P, n, (j0, j1, j2, j3, j4, j5, j6, j7))
        y0, y1, y2, y3, y4, y5, y6, y7 = y[j0], y[j1], y[j2], y[j3], y[j4], y[j5], y[j6], y[j7]
        for i in range(rows):
            inhibition[i] += (
                (p0[i] * y0 + p1[i] * y1)
                + (p2[i] * y2 + p3[i] * y3)
                + (p4[i] * y4 + p5[i] * y5)
                + (p6[i] * y6 + p7[i] * y7)
            )
    for q in range(whole, count):
        p, y_j = row(P, active[q], n), y[active[q]]
        for i in range(rows):
            inhibition[i] += p[i] * y_j


@unit("ykcyky")
def lateral(P, n, active, y, count, inhibition):
    """inhibition = M̂ @ y, over the active columns alone."""
    lateral_rows(P, n, active, y, count, inhibition, n)


@unit("ykc")
def list_grown(gains, n, rows):
    """List the neurons whose gains are not 0."""
    grew = 0
    for i in range(n):
        rows[grew] = i
        grew += gains[i] != 0


@unit("ykcykky")
def hebb_columns(P, n, active, y, first, last, gains):
    """M̂_ij += gains_i y_j for some of the active j."""
    for q in range(first, last):
        p, y_j = row(P, active[q], n), y[active[q]]
        for i in range(n):
            p[i] += gains[i] * y_j


@unit("ykcykykc")
def hebb(P, n, active, y, count, gains, grew, rows):
    """M̂_ij += gains_i y_j for the active j; `grew` of the gains are not 0."""
    if 8 * grew > n:
        hebb_columns(P, n, active, y, 0, count, gains)
        return
    list_grown(gains, n, rows)
    for r in range(grew):
        i = rows[r]
        gain = gains[i]
        for q in range(count):
            P[active[q] * n + i] += gain * y[active[q]]


@unit("ykcykyy")
def hebb_and_lateral(P, n, active, y, count, gains, inhibition):
    """`hebb` for many rows and then `lateral` in one pass: the next step's M̂ @ y has the same y, and M̂ is read once."""
    for i in range(n):
        inhibition[i] = 0
    whole = count - count % 4
    for q in range(0, whole, 4):
        j0, j1, j2, j3 = active[q], active[q + 1], active[q + 2], active[q + 3]
        p0, p1, p2, p3 = rows_of(P, n, (j0, j1, j2, j3))
        y0, y1, y2, y3 = y[j0], y[j1], y[j2], y[j3]
        for i in range(n):
            m0, m1 = p0[i] + gains[i] * y0, p1[i] + gains[i] * y1
            m2, m3 = p2[i] + gains[i] * y2, p3[i] + gains[i] * y3
            p0[i], p1[i], p2[i], p3[i] = m0, m1, m2, m3
            inhibition[i] += (m0 * y0 + m1 * y1) + (m2 * y2 + m3 * y3)
    for q in range(whole, count):
        p, y_j = row(P, active[q], n), y[active[q]]
        for i in range(n):
            p[i] += gains[i] * y_j
            inhibition[i] += p[i] * y_j


@unit("ykybkx")
def rescale_row(P, n, s, grown, i, smallest):
    """M̂_i ← s_i M̂_i, so that s_i is 1 again; a row that has only faded keeps its direction."""
    if grown[i] == 0 and s[i] > 0:
        largest = number(0)
        for j in range(n):
            largest = max(largest, P[j * n + i])
        if 0 < s[i] * largest < smallest:
            s[i] = smallest / largest
    for j in range(n):
        P[j * n + i] *= s[i]
    s[i], grown[i] = 1, 0  # it may fade from here on


@unit("yykxxx")
def fold_row(w, x, m, scale, shift, smallest):
    """w ← scale w + shift x; a row that has only faded keeps its direction."""
    if shift == 0 and scale > 0:
        large = 0
        for j in range(m):
            large |= scale * w[j] >= smallest
        if not large:
            largest = number(0)
            for j in range(m):
                largest = max(largest, w[j])
            if largest > 0:
                scale = smallest / largest
    for j in range(m):
        w[j] = scale * w[j] + shift * x[j]


@unit("yykxxxx")
def rectified_row(w, x, m, scale, shift, keep, gain):
    """w ← [keep (scale w + shift x) + gain x]₊."""
    for j in range(m):
        z = keep * (scale * w[j] + shift * x[j]) + gain * x[j]
        w[j] = z if z > 0 or z != z else number(0)


@unit("ykyckyyy")
def rectified(P, n, y, rows, count, keep, gain, drop):
    """M_i ← [keep_i M_i + gain_i y_j − drop_i]₊ for these rows; keep, gain and drop are 1, 0, 0 at all others."""
    for j in range(n):
        p, y_j = row(P, j, n), y[j]
        # Where many rows change it is quicker to pass over whole columns than to jump from row to row.
        if 8 * count > n:
            for i in range(n):
                z = keep[i] * p[i] + gain[i] * y_j - drop[i]
                p[i] = z if z > 0 or z != z else number(0)
        else:
            for r in range(count):
                i = rows[r]
                z = keep[i] * p[i] + gain[i] * y_j - drop[i]
                p[i] = z if z > 0 or z != z else number(0)


@unit("h")
def odd_rows(held):
    """Update the odd rows, or make them simple; the terms that are left are for the others' way to do."""
    h = carray(held, 1)[0]
    numbers, wide, W, P, x = numbers_at(h.numbers), h.wide, numbers_at(h.W), numbers_at(h.P), numbers_at(h.x)
    rows, grown = row(indices_at(h.indices), ROWS, wide), truths_at(h.truths)
    opened = row(grown, OPENED, wide)
    b, scale, shift, s, keep_w, gain_w, keep_m = rows_of(numbers, wide, (B, SCALE, SHIFT, S, KEEP_W, GAIN_W, KEEP_M))
    gain_m, keep, boost, drop = rows_of(numbers, wide, (GAIN_M, KEEP, BOOST, DROP))
    one, zero, lowest = number(1), number(0), number(SMALLEST_SCALE)
    count = 0
    for i in range(h.n):
        w = row(W, i, h.m)
        if not (keep_w[i] >= 0 and gain_w[i] >= 0 and scale[i] * keep_w[i] > lowest):
            if keep_w[i] >= 0 and gain_w[i] >= 0:
                fold_row(w, x, h.m, scale[i], shift[i], h.smallest)
            else:
                rectified_row(w, x, h.m, scale[i], shift[i], keep_w[i], gain_w[i])
                keep_w[i], gain_w[i] = one, zero
            scale[i], shift[i], b[i] = one, zero, dot(w, x, h.m)
        keep[i], boost[i], drop[i] = one, zero, zero
        if opened[i] != 0:
            drop[i] = row(numbers, ETA, wide)[i] * h.floor
        if drop[i] != 0 or not (keep_m[i] >= 0 and gain_m[i] >= 0 and s[i] * keep_m[i] > lowest):
            if keep_m[i] >= 0 and gain_m[i] >= 0 and drop[i] == 0:
                s[i] *= keep_m[i]
            else:
                rows[count] = i
                count += 1
                keep[i], boost[i], gain_m[i] = keep_m[i], gain_m[i], zero
            rescale_row(P, h.n, s, grown, i, h.smallest)
            keep_m[i] = one
    if count:
        rectified(P, h.n, row(numbers, Y, wide), rows, count, keep, boost, drop)


@unit("h")
def fold_W(held):
    """W_i ← scale_i W_i + shift_i x for the rows that have changed."""
    h = carray(held, 1)[0]
    numbers, W, x = numbers_at(h.numbers), numbers_at(h.W), numbers_at(h.x)
    scale, shift = rows_of(numbers, h.wide, (SCALE, SHIFT))
    for i in range(h.n):
        if scale[i] != 1 or shift[i] != 0:
            fold_row(row(W, i, h.m), x, h.m, scale[i], shift[i], h.smallest)


@unit("h", "k")
def rows_to_fold(held):
    """List the rows of M̂ with s_i ≠ 1, and see to those that fade, which keep their direction; their number."""
    h = carray(held, 1)[0]
    n, P, numbers, grown = h.n, numbers_at(h.P), numbers_at(h.numbers), truths_at(h.truths)
    rows = row(indices_at(h.indices), ROWS, h.wide)
    s, largest = rows_of(numbers, h.wide, (S, INHIBITION))
    count = fading = 0
    for i in range(n):
        rows[count] = i
        count += s[i] != 1
        fading += (s[i] != 1) & (grown[i] == 0)
        largest[i] = 0
    for j in range(n):
        if fading == 0:
            break
        p = row(P, j, n)
        for i in range(n):
            largest[i] = max(largest[i], p[i])
        if j % 16 == 15 or j == n - 1:  # mostly a few columns show that none fades
            fading = 0
            for i in range(n):
                fading += (s[i] != 1) & (grown[i] == 0) & (s[i] * largest[i] < h.smallest)
    if fading:
        for i in range(n):
            if s[i] != 1 and grown[i] == 0 and 0 < s[i] * largest[i] < h.smallest:
                s[i] = h.smallest / largest[i]
    return count


@unit("ykkkyck")
def fold_columns(P, n, first, last, s, rows, count):
    """M̂_i ← s_i M̂_i for these rows, of some columns; s is 1 at all others."""
    for j in range(first, last):
        p = row(P, j, n)
        # Where many rows change it is quicker to pass over whole columns than to jump from row to row.
        if 8 * count > n:
            for i in range(n):
                p[i] *= s[i]
        else:
            for r in range(count):
                p[rows[r]] *= s[rows[r]]


@unit("h")
def fold_M(held):
    """M̂_i ← s_i M̂_i for the rows with s_i ≠ 1, so that s = 1."""
    h = carray(held, 1)[0]
    s, rows = row(numbers_at(h.numbers), S, h.wide), row(indices_at(h.indices), ROWS, h.wide)
    count = rows_to_fold(held)
    if count:
        fold_columns(numbers_at(h.P), h.n, 0, h.n, s, rows, count)
    for i in range(h.n):
        s[i] = 1


@unit("hkyck")
def record(held, k, y, index, n):
    """Write down the rates and the gates of these neurons at step k, where they are asked for."""
    h = carray(held, 1)[0]
    t = h.t + k
    if h.trace_active:
        active = 0
        for i in range(n):
            active += y[i] > 0
        indices_at(h.trace_active)[t] = active
    if h.trace_y:
        rates = row(numbers_at(h.trace_y), t, h.n)
        for i in range(h.n):
            rates[i] = 0
        for i in range(n):
            rates[index[i]] = y[i]
    if h.trace_burst:
        bursts, opened = row(truths_at(h.trace_burst), t, h.n), row(truths_at(h.truths), OPENED, h.wide)
        for i in range(n):
            bursts[index[i]] = opened[i]


@unit("hkckk")
def record_silence(held, i, c, k, end):
    """Write down the gates of neuron i, with count c at step k, which is silent up to the end."""
    h = carray(held, 1)[0]
    bursts = truths_at(h.trace_burst + (h.t + k) * h.n + i)
    call_at(h.silent_bursts, (h.schedule, c, k, end, h.hold, h.n, bursts))


@unit("hkk")
def erase(held, k, steps):
    """Erase the gates of some steps, which will be run again."""
    h = carray(held, 1)[0]
    bursts = truths_at(h.trace_burst + (h.t + k) * h.n)
    for place in range(steps * h.n if h.trace_burst else 0):
        bursts[place] = 0
