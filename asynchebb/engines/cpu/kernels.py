"""A network's equations for many neurons at once. `cpu.kernels` compiles a copy of this file with the equations.

The loop calls these functions by their addresses. So it knows no equation, is compiled once for all
networks, and a new rule, schedule or dynamics takes half a second to compile, not a whole loop.
"""

import numpy as np  # noqa: F401  for the equations
from numba import carray

# The equations, and the network's precision; `cpu.kernels` puts them in their place. Those that may take or give less
# than others are there as `whole_…` too, which take and give all.
step = gate = rate = leak_w = leak_m = number = whole_step = whole_gate = None
keeps_h = False  # do the dynamics have a third variable?
WHOLE = """
def whole_{method}(constants, {all_takes}):
    s_i = 0
    {gives} = {method}(constants, {takes})
    return {all_gives}
"""


def move(dynamics, u, y, b, s, inhibition, n):
    # u, y = step(u, W @ x - M @ y)
    constants = carray(dynamics, 1)[0]
    for i in range(n):
        u[i], y[i] = step(constants, u[i], b[i] - s[i] * inhibition[i])


def after(dynamics, u, drive, n, new_u, new_y):
    # new_u, new_y = step(u, drive)
    constants = carray(dynamics, 1)[0]
    for i in range(n):
        new_u[i], new_y[i] = step(constants, u[i], drive[i])


def fire(dynamics, u, y, h, drive, noise, n):
    # u, y, h, s = step(u, y, h, drive, noise); s is left in the place of the drive
    constants = carray(dynamics, 1)[0]
    for i in range(n):
        u[i], y[i], h_i, drive[i] = whole_step(constants, u[i], y[i], h[i], drive[i], noise[i])
        if keeps_h:
            h[i] = h_i


def gates(schedule, y, spikes, c, k, hold, n, opened, opens):
    # opened, c = gate(y, spikes, c, k, hold); how many of them are open
    constants = carray(schedule, 1)[0]
    count = 0
    for i in range(n):
        beta_i, c[i] = whole_gate(constants, y[i], spikes[i], c[i], k, hold)
        opened[i] = beta_i != 0
        count += beta_i != 0
    opens[0] = count


def silent_gates(schedule, c, k, end, hold, n, new_c, closed):
    """The counts of neurons that are silent from step k to the end, and whether their gates stay closed."""
    constants, zero = carray(schedule, 1)[0], number(0)
    for i in range(n):
        if i > 0 and c[i] == c[i - 1]:
            new_c[i], closed[i] = new_c[i - 1], closed[i - 1]
            continue
        c_i, opened = c[i], False
        for kk in range(k, end):
            beta_i, c_i = whole_gate(constants, zero, 0, c_i, kk, hold)
            opened |= beta_i != 0
        new_c[i], closed[i] = c_i, not opened


def silent_bursts(schedule, c, k, end, hold, n, bursts):
    """The gates of a neuron that is silent from step k to the end, in a column of a matrix of n columns."""
    constants, zero, c_i = carray(schedule, 1)[0], number(0), c[0]
    for kk in range(k, end):
        beta_i, c_i = whole_gate(constants, zero, 0, c_i, kk, hold)
        bursts[(kk - k) * n] = beta_i != 0


def terms(rule, y, a, n, new_a, lambda_w, lambda_m):
    # _, new_a = rate(y, a); lambda_w = leak_w(y); lambda_m = leak_m(y)
    constants = carray(rule, 1)[0]
    for i in range(n):
        _, new_a[i] = rate(constants, y[i], a[i])
    for i in range(n):
        lambda_w[i] = leak_w(constants, y[i])
    for i in range(n):
        lambda_m[i] = leak_m(constants, y[i])


def update(rule, y, a, opened, n, eta, keep_w, keep_m, gain_w, gain_m):
    # eta, a = rate(y, a); keep = 1 - eta * leak(y); gain = eta * y, where the gate is open, and else 1 and 0
    # Several short loops: one for all would touch too many arrays for the compiler to see that vectors are safe.
    constants, one, zero = carray(rule, 1)[0], number(1), number(0)
    for i in range(n):
        eta_i, a_i = rate(constants, y[i], a[i])
        eta[i] = number(eta_i) if opened[i] != 0 else zero
        a[i] = number(a_i) if opened[i] != 0 else a[i]
    for i in range(n):
        keep_w[i] = one - eta[i] * number(leak_w(constants, y[i])) if opened[i] != 0 else one
    for i in range(n):
        keep_m[i] = one - eta[i] * number(leak_m(constants, y[i])) if opened[i] != 0 else one
    for i in range(n):
        gain_w[i] = gain_m[i] = eta[i] * y[i]
