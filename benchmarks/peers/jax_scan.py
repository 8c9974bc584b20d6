"""The model as a jitted `jax.lax.scan`, written as well as we can.

W is used once a stimulus: b = Wx moves in O(1) with each update, and the rows of W are brought up to
date at the end of the hold. M is updated as a whole, masked by the gates; `skip` leaves the update
out by `lax.cond` at the steps at which no gate is open.
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

DT, R_B, R_R = 0.01, 1.0, 100


def potential(u, drive):
    u = u + DT * drive
    return u, jnp.maximum(u, 0)


def projected(u, drive):
    y = jnp.maximum(u + DT * drive, 0)
    return y, y


def bursting(y, c, k, hold):
    beta = (y > R_B) & (c > R_R)
    return beta, jnp.where(beta, 0, c + 1)


def settled(y, c, k, hold):
    beta = jnp.full(y.shape, k == hold - 1)
    return beta, jnp.where(beta, 0, c + 1)


def always(y, c, k, hold):
    return jnp.full(y.shape, True), jnp.zeros_like(c)


def hebbian(y):
    return 0.01, jnp.ones_like(y)


def oja(y):
    return 0.001, y * y


# dynamics, gate, rate and leak, and whether some steps have no update to skip
MODELS = {
    "asynchronous": (potential, bursting, hebbian, True),
    "asynchronous Projected": (projected, bursting, hebbian, True),
    "discrete": (potential, settled, hebbian, True),
    "continuous": (potential, always, oja, False),
}


@partial(jax.jit, static_argnames=("model", "hold", "skip"))
def show(state, X, model, hold, skip):
    dynamics, gate, rule, _ = MODELS[model]

    def hold_one(state, x):
        W, M, u, y, c = state
        x_x = x @ x

        def step(carry, k):
            M, u, y, c, b, scale, shift = carry
            u, y = dynamics(u, b - M @ y)
            beta, c = gate(y, c, k, hold)

            def update(M, b, scale, shift):
                eta, leak = rule(y)
                keep, gain = jnp.where(beta, 1 - eta * leak, 1), jnp.where(beta, eta * y, 0)
                M = keep[:, None] * M + gain[:, None] * y
                return M, keep * b + gain * x_x, keep * scale, keep * shift + gain

            slow = (M, b, scale, shift)
            slow = jax.lax.cond(beta.any(), update, lambda *same: same, *slow) if skip else update(*slow)
            M, b, scale, shift = slow
            return (M, u, y, c, b, scale, shift), None

        carry = (M, u, y, c, W @ x, jnp.ones_like(u), jnp.zeros_like(u))
        (M, u, y, c, _, scale, shift), _ = jax.lax.scan(step, carry, jnp.arange(hold))
        return (scale[:, None] * W + shift[:, None] * x, M, u, y, c), None

    state, _ = jax.lax.scan(hold_one, state, X)
    return state


def run(state, X, hold, model="asynchronous", skip=True):
    """The new state, and the seconds that it took without compiling."""
    jax.config.update("jax_enable_x64", state["W"].dtype == np.float64)
    arrays = (
        *(jnp.asarray(state[name]) for name in ("W", "M", "u", "y")),
        jnp.asarray(np.minimum(state["c"], 2**30), jnp.int32),
    )
    X = jnp.asarray(X, state["W"].dtype)
    compiled = show.lower(arrays, X, model, hold, skip).compile()
    jax.block_until_ready(arrays)
    start = time.perf_counter()
    new = jax.block_until_ready(compiled(arrays, X))
    seconds = time.perf_counter() - start
    return dict(zip(("W", "M", "u", "y", "c"), map(np.asarray, new), strict=True)), seconds
