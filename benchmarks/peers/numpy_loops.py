"""What a competent NumPy user would write."""

import time

import numpy as np

DT = 0.01


def run(state, X, hold, model="asynchronous"):
    """The new state, and the seconds that it took."""
    arrays = [np.array(state[name], order="C") for name in ("W", "M", "u", "y", "c")]
    X = np.asarray(X, arrays[0].dtype)
    start = time.perf_counter()
    new = LOOPS[model](*arrays, X, hold)
    return dict(zip(("W", "M", "u", "y", "c"), new, strict=True)), time.perf_counter() - start


def row_gated(W, M, u, y, c, X, hold, eta=0.01, r_b=1.0, r_r=100):
    """Asynchronous Hebbian: Wx cached for each stimulus, only bursting rows updated."""
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
                W[rows] += eta * (y_i * x - W[rows])
                M[rows] += eta * (y_i * y - M[rows])
                b[rows] = W[rows] @ x
    return W, M, u, y, c


def dense(W, M, u, y, c, X, hold, eta=0.001):
    """Continuous Oja: the equations as printed, on whole matrices."""
    for x in X:
        for _ in range(hold):
            u += DT * (W @ x - M @ y)
            y = np.maximum(u, 0)
            y_y = (y * y)[:, None]
            W = np.maximum(W + eta * (np.outer(y, x) - y_y * W), 0)
            M = np.maximum(M + eta * (np.outer(y, y) - y_y * M), 0)
            c[:] = 0
    return W, M, u, y, c


LOOPS = {"asynchronous": row_gated, "continuous": dense}
