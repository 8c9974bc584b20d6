"""A rule's equations for many neurons at once. `cpu.rule_terms` compiles a copy of this file with a rule's own.

The loop calls it by its address: a new rule takes half a second to compile, not a whole loop.
"""

import numpy as np  # noqa: F401  for the equations
from numba import carray

# The rule's equations; `cpu.rule_terms` puts compiled ones in their place.
rate = leak_w = leak_m = None


def terms(rule, y, a, n, eta, new_a, lambda_w, lambda_m):
    # eta, a = rate(y, a); lambda_w = leak_w(y); lambda_m = leak_m(y)
    constants = carray(rule, 1)[0]
    for i in range(n):
        eta[i], new_a[i] = rate(constants, y[i], a[i])
    for i in range(n):
        lambda_w[i] = leak_w(constants, y[i])
    for i in range(n):
        lambda_m[i] = leak_m(constants, y[i])
