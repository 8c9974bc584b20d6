"""The loops that the engines are compared with: what a competent NumPy user would write."""

import numpy as np

ETA, DT = 0.01, 0.01


def row_gated(state, X, hold, r_b=1.0, r_r=100):
    """Asynchronous Hebbian, Potential: Wx cached for each stimulus, only bursting rows updated."""
    W, M, u, y, c, a = (np.array(array, order="C") for array in state)
    for x in X:
        b = W @ x
        for _ in range(hold):
            u += DT * (b - M @ y)
            np.maximum(u, 0, out=y)
            burst = (y > r_b) & (c > r_r)
            c += 1
            rows = np.flatnonzero(burst)
            if rows.size:
                c[rows] = 0
                y_i = y[rows, None]
                W[rows] += ETA * (y_i * x - W[rows])
                M[rows] += ETA * (y_i * y - M[rows])
                b[rows] = W[rows] @ x
    return type(state)(W, M, u, y, c, a)


def dense(state, X, hold, eta=0.001):
    """Continuous Oja, Potential: the equations as printed, on whole matrices."""
    W, M, u, y, c, a = (np.array(array, order="C") for array in state)
    for x in X:
        for _ in range(hold):
            u += DT * (W @ x - M @ y)
            y = np.maximum(u, 0)
            y_y = (y * y)[:, None]
            W = np.maximum(W + eta * (np.outer(y, x) - y_y * W), 0)
            M = np.maximum(M + eta * (np.outer(y, y) - y_y * M), 0)
            c[:] = 0
    return type(state)(W, M, u, y, c, a)
