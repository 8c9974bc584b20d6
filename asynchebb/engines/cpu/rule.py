"""A rule's equations for many neurons at once. `cpu.rule_functions` compiles a copy of this file with a rule's own.

The loop calls it by its address: a new rule takes half a second to compile, not a whole loop.
"""

import numpy as np  # noqa: F401  for the equations
from numba import carray

# The rule's equations, and the network's precision; `cpu.rule_functions` puts them in their place.
rate = leak_w = leak_m = number = None


def terms(rule, y, a, n, new_a, lambda_w, lambda_m):
    # _, a = rate(y, a); lambda_w = leak_w(y); lambda_m = leak_m(y)
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
