"""The part of the cpu engine's loop for neurons with memory: those that spike, and their filtered spike trains.

All are run at every step, and hardly any is silent for long: a filtered spike train fades, but slowly. It fades for all
by the same factor, though, and so does the inhibition M̂ @ y. So that is kept from step to step, and only the columns of
neurons that spike are read. An update of row i changes it by gain_i Σ_j y_j².
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import carray

from asynchebb.engines.cpu.tiles import VECTOR, call_at, dot_vectors, list_positive, row, rows_of, sum_columns
from asynchebb.engines.cpu.units import unit
from asynchebb.noise import BITS, FIRST, INCREMENT, SECOND, SHIFTS

if TYPE_CHECKING:  # `cpu` puts compiled ones in their place: those for one core, or for all
    from asynchebb.engines.cpu.columns import (
        ACTIVE,
        ALL,
        BEFORE,
        DRIVE,
        FIRING,
        GAIN_M,
        INHIBITION,
        ITEM,
        JUMP,
        LISTED,
        MEAN,
        NOISE,
        NOW,
        ROWS,
        SPIKES,
        WHOLE,
        B,
        H,
        S,
        U,
        Y,
        activate,
        change,
        gates,
        hebb,
        indices_at,
        lateral,
        number,
        numbers_at,
        odd_rows,
        record,
        terms_of_update,
        truths_at,
    )
    from asynchebb.engines.cpu.lanes import round_up
elif "number" not in globals():
    raise ImportError(f"{__name__} cannot be imported by itself: asynchebb.engines.cpu compiles it")


@unit("yck", "k")
def late_spikes(spikes, firing, count):
    """How many of them should have fired more than once."""
    late = 0
    for q in range(count):
        late += spikes[firing[q]] > 1
    return late


@unit("kyk")
def draw(counter, noise, n):
    """The random numbers of n neurons, from this one on (`noise.uniform`)."""
    unit_of = number(2.0**-BITS)
    for i in range(n):
        z = np.uint64(counter + i + 1) * np.uint64(INCREMENT)
        z = (z ^ (z >> np.uint64(SHIFTS[0]))) * np.uint64(FIRST)
        z = (z ^ (z >> np.uint64(SHIFTS[1]))) * np.uint64(SECOND)
        z = (z ^ (z >> np.uint64(SHIFTS[2]))) >> np.uint64(64 - BITS)
        noise[i] = number(np.int64(z)) * unit_of


@unit("hykck")
def count_recent(held, spikes, t, recent_spikes, n):
    """Put the spikes of step t among those of the last `window` steps, instead of the oldest; count them."""
    h = carray(held, 1)[0]
    oldest = row(truths_at(h.recent), t % h.window, n)
    for i in range(n):
        spiked = spikes[i] > 0
        recent_spikes[i] += np.int64(spiked) - np.int64(oldest[i])
        oldest[i] = spiked


@unit("ykcykxyy")
def feel_spikes(P, n, firing, jumps, count, decay, inhibition, sums):
    """inhibition = decay · inhibition + M̂ @ jumps, over the columns of the neurons that spike. The sums are kept in
    registers: eight vectors of rows at a time, then the rest."""
    per, i = VECTOR // ITEM, 0
    while i + 8 * per <= n:
        sum_columns(row(P, i, 1), n, firing, count, jumps, row(sums, i, 1), 0, 8, 1)
        i += 8 * per
    if i + 4 * per <= n:
        sum_columns(row(P, i, 1), n, firing, count, jumps, row(sums, i, 1), 0, 4, 1)
        i += 4 * per
    while i + per <= n:
        sum_columns(row(P, i, 1), n, firing, count, jumps, row(sums, i, 1), 0, 1, 1)
        i += per
    for last in range(i, n):
        total = number(0)
        for q in range(count):
            total += P[firing[q] * n + last] * jumps[q]
        sums[last] = total
    for k in range(n):
        inhibition[k] = decay * inhibition[k] + sums[k]


@unit("h")
def stop_firing(held):
    """u = y = 0, and no spike so far."""
    h = carray(held, 1)[0]
    u, y = rows_of(numbers_at(h.numbers), h.wide, (U, Y))
    spikes, recent = row(indices_at(h.indices), SPIKES, h.wide), truths_at(h.recent)
    for i in range(h.n):
        u[i] = y[i] = 0
        spikes[i] = 0
    for place in range(h.window * h.n):
        recent[place] = 0


@unit("h")
def run_firing(held):
    """Run all neurons through a hold."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide, n = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide, h.n
    u, y, b, s, inhibition, drive = rows_of(numbers, wide, (U, Y, B, S, INHIBITION, DRIVE))
    third, noise, jump, before, mean = rows_of(numbers, wide, (H, NOISE, JUMP, BEFORE, MEAN))
    gains, sums = rows_of(numbers, wide, (GAIN_M, NOW))
    active, rows, whole, recent, firing = rows_of(indices, wide, (ACTIVE, ROWS, WHOLE, SPIKES, FIRING))
    listed, P, fired, half = row(truths, LISTED, wide), numbers_at(h.P), indices_at(h.trace_fired), h.hold // 2
    lateral(P, n, active, y, activate(y, n, active, listed), inhibition)
    for i in range(n):
        mean[i] = 0
    for i in range(n, round_up(n)):  # `list_positive` looks at whole vectors
        drive[i] = 0
    for kk in range(h.hold):
        t = h.clock + h.t + kk
        # u, y, s = step(u, y, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        for i in range(n):
            drive[i] = b[i] - s[i] * inhibition[i]
        if h.noisy:
            draw(t * n, noise, n)
        if h.events:
            for i in range(n):
                before[i] = y[i]
        call_at(h.fire, (h.dynamics, u, y, third, drive, noise, n))
        spiking = list_positive(drive, round_up(n), firing)
        fired[0] += spiking
        fired[1] += late_spikes(drive, firing, spiking)
        if h.window:
            count_recent(held, drive, t, recent, n)
        if h.events:
            for q in range(spiking):
                jump[q] = y[firing[q]] - h.decay * before[firing[q]]
            feel_spikes(P, n, firing, jump, spiking, h.decay, inhibition, sums)
        opens, known = gates(held, indices, y, kk, n), h.events != 0
        if h.trace_updates:
            indices_at(h.trace_updates)[h.t + kk] = 0
        if opens:
            # W[i] += eta_i * (outer(y_i, x) - leak_w * W[i]), likewise M, for the rows i with open gates
            if terms_of_update(held, ALL, y, n, h.t + kk):
                odd_rows(held)
                known = False
            grew = change(held, ALL, n)
            if grew:
                hebb(P, n, active, y, activate(y, n, active, listed), gains, grew, rows)
                squares = dot_vectors(y, y, round_up(n))
                for i in range(n):
                    inhibition[i] += gains[i] * squares
        if not known:
            lateral(P, n, active, y, activate(y, n, active, listed), inhibition)
        record(held, kk, y, whole, n)
        if h.trace_spikes:
            traced = row(truths_at(h.trace_spikes), h.t + kk, n)
            for i in range(n):
                traced[i] = drive[i] > 0
        if h.settled and kk >= half:
            for i in range(n):
                mean[i] += y[i]
    for i in range(n):
        mean[i] /= number(h.hold - half)
