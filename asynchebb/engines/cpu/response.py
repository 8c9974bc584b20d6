"""What a test shows of a network: errors, rates, and how many neurons are active. `cpu.response` imports a copy of it.

NumPy would take dozens of short calls per stimulus, and where many networks are tested in threads, each of them waits
for Python's lock. Here there is one for many stimuli, and other threads go on meanwhile.
"""

import math

import numpy as np
from numba import njit

TOGETHER = 8  # steps, in which much the same neurons are active

compiled = njit(cache=True, error_model="numpy", nogil=True)


@compiled
def read_out(Y, read):
    # The rates of spiking neurons at each step of a presentation: the mean over the second half of the steps so far. A
    # filtered spike train jumps by θ/τ at each spike, so that its value at one step says little.
    hold, n = Y.shape
    total = np.zeros((hold + 1, n))
    for t in range(hold):
        half = (t + 1) // 2
        for i in range(n):
            total[t + 1, i] = total[t, i] + Y[t, i]
        for i in range(n):
            read[t, i] = (total[t + 1, i] - total[half, i]) / (t + 1 - half)


@compiled
def reconstruct(W, x, Y, found):
    # found[t] = 1 - cos(x, W.T @ Y[t]), or 1 where one of them is zero
    n, m = W.shape
    on, listed, R = np.empty(n, np.bool_), np.empty(n, np.int64), np.empty((TOGETHER, m), W.dtype)
    x_x = 0.0
    for j in range(m):
        x_x += x[j] * x[j]
    for start in range(0, len(Y), TOGETHER):
        steps = min(TOGETHER, len(Y) - start)
        on[:] = False
        for t in range(steps):
            y = Y[start + t]
            for i in range(n):
                on[i] |= y[i] != 0
        count = 0
        for i in range(n):
            if on[i]:
                listed[count] = i
                count += 1
        R[:] = 0
        fours = count - count % 4  # so that a row of R is read and written only once for four neurons
        for k in range(0, fours, 4):
            i, ii, iii, iv = listed[k], listed[k + 1], listed[k + 2], listed[k + 3]
            w, ww, www, wv = W[i], W[ii], W[iii], W[iv]
            for t in range(steps):
                y, r = Y[start + t], R[t]
                y_i, y_ii, y_iii, y_iv = y[i], y[ii], y[iii], y[iv]
                if y_i != 0 or y_ii != 0 or y_iii != 0 or y_iv != 0:
                    for j in range(m):
                        r[j] += (y_i * w[j] + y_ii * ww[j]) + (y_iii * www[j] + y_iv * wv[j])
        for k in range(fours, count):
            w = W[listed[k]]
            for t in range(steps):
                y_i, r = Y[start + t, listed[k]], R[t]
                for j in range(m):
                    r[j] += y_i * w[j]
        for t in range(steps):
            r, r_r, r_x = R[t], 0.0, 0.0
            for j in range(m):
                z = np.float64(r[j])
                r_r += z * z
                r_x += z * x[j]
            norm = math.sqrt(r_r) * math.sqrt(x_x)
            found[start + t] = 1 - r_x / norm if norm > 0 else 1.0


@compiled
def respond(W, X, Y, spiking, errors, rates, means, active):
    # For each stimulus: the error at each step, the rates at the last one, those on average over all steps, and how
    # many neurons are active, summed over all steps.
    stimuli, hold, n = Y.shape
    read = np.empty((hold if spiking else 0, n), Y.dtype)
    for k in range(stimuli):
        if spiking:
            read_out(Y[k], read)
        shown = read if spiking else Y[k]
        reconstruct(W, X[k], shown, errors[k])
        rates[k] = shown[hold - 1]
        mean, count = means[k], 0
        mean[:] = 0
        for t in range(hold):
            y, read_y = Y[k, t], shown[t]
            for i in range(n):
                mean[i] += y[i]
            for i in range(n):
                count += read_y[i] > 0
        mean /= hold
        active[k] = count
