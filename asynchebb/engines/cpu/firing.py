"""The part of the cpu engine's loop for neurons with memory: those that spike, and their filtered spike trains.

All are run at every step, and hardly any is silent for long: a filtered spike train fades, but slowly. It fades for all
by the same factor, though, and so does the inhibition M̂ @ y. So that is kept from step to step, and only the columns of
neurons that spike are read. An update of row i changes it by gain_i Σ_j y_j².
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import carray

from asynchebb.engines.cpu.tiles import call_at, dot_vectors, row, rows_of
from asynchebb.engines.cpu.units import unit
from asynchebb.noise import BITS, FIRST, INCREMENT, SECOND, SHIFTS

if TYPE_CHECKING:  # `cpu` puts compiled ones in their place: those for one core, or for all
    from asynchebb.engines.cpu.columns import (
        ACTIVE,
        ALL,
        DRIVE,
        FIRING,
        GAIN_M,
        INHIBITION,
        JUMP,
        LISTED,
        MEAN,
        NOISE,
        ROWS,
        SPIKES,
        WHOLE,
        B,
        H,
        S,
        U,
        Y,
        activate,
        add_columns,
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

LOOKED_AT = 32  # neurons that are seen together not to have spiked


@unit("yck", "k")
def list_spikes(spikes, firing, n):
    """List the neurons that spike, of which there are few. Their number."""
    count = 0
    for start in range(0, n, LOOKED_AT):
        end, some = min(start + LOOKED_AT, n), 0
        for i in range(start, end):
            some += spikes[i] > 0
        if some:
            for i in range(start, end):
                firing[count] = i
                count += spikes[i] > 0
    return count


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


@unit("h")
def stop_firing(held):
    """u = y = 0."""
    h = carray(held, 1)[0]
    u, y = rows_of(numbers_at(h.numbers), h.wide, (U, Y))
    for i in range(h.n):
        u[i] = y[i] = 0


@unit("h")
def run_firing(held):
    """Run all neurons through a hold."""
    h = carray(held, 1)[0]
    numbers, indices, truths, wide, n = numbers_at(h.numbers), indices_at(h.indices), truths_at(h.truths), h.wide, h.n
    u, y, b, s, inhibition, drive = rows_of(numbers, wide, (U, Y, B, S, INHIBITION, DRIVE))
    third, noise, jump, mean, gains = rows_of(numbers, wide, (H, NOISE, JUMP, MEAN, GAIN_M))
    active, rows, whole, recent, firing = rows_of(indices, wide, (ACTIVE, ROWS, WHOLE, SPIKES, FIRING))
    listed, P, fired, half = row(truths, LISTED, wide), numbers_at(h.P), indices_at(h.trace_fired), h.hold // 2
    lateral(P, n, active, y, activate(y, n, active, listed), inhibition)
    for i in range(n):
        mean[i] = 0
    for kk in range(h.hold):
        t = h.clock + h.t + kk
        # u, y, s = step(u, y, W @ x - M @ y); beta, c = gate(y, c, k, hold)
        for i in range(n):
            drive[i] = b[i] - s[i] * inhibition[i]
        if h.noisy:
            draw(t * n, noise, n)
        if h.events:
            for i in range(n):
                jump[i] = h.decay * y[i]
        call_at(h.fire, (h.dynamics, u, y, third, drive, noise, n))
        spiking = list_spikes(drive, firing, n)
        fired[0] += spiking
        fired[1] += late_spikes(drive, firing, spiking)
        if h.window:
            count_recent(held, drive, t, recent, n)
        if h.events:
            for i in range(n):
                inhibition[i] *= h.decay
            for q in range(spiking):
                jump[firing[q]] = y[firing[q]] - jump[firing[q]]
            add_columns(P, n, firing, jump, spiking, inhibition, n)
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
