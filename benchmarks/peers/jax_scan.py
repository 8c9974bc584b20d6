"""The model as a jitted `jax.lax.scan`, written as well as we can.

W is used once per stimulus: b = Wx moves in O(1) with each update, and the rows of W are brought up to
date at the end of the hold. M is updated as a whole, masked by the gates; `skip` leaves the update
out by `lax.cond` at the steps at which no gate is open. A frozen network's stimuli are independent:
`batched` shows them all at once, so that M @ y becomes a product of matrices.
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

DT, R_R = 0.01, 100


def potential(u, drive):
    u = u + DT * drive
    return u, jnp.maximum(u, 0)


def projected(u, drive):
    y = jnp.maximum(u + DT * drive, 0)
    return y, y


def bursting(y, c, k, hold, r_b=1.0):
    beta = (y > r_b) & (c > R_R)
    return beta, jnp.where(beta, 0, c + 1)


def settled(y, c, k, hold):
    beta = jnp.full(y.shape, k == hold - 1)
    return beta, jnp.where(beta, 0, c + 1)


def always(y, c, k, hold):
    return jnp.full(y.shape, True), jnp.zeros_like(c)


def hebbian(y):
    return 0.01, jnp.ones_like(y)


def oja(y, eta=0.001):
    return eta, y * y


# dynamics, gate, rate and leak, and whether each stimulus is shown from rest
MODELS = {
    "asynchronous": (potential, bursting, hebbian, False),
    "asynchronous Projected": (projected, bursting, hebbian, False),
    "asynchronous Oja, Projected, from rest": (projected, partial(bursting, r_b=0.75), partial(oja, eta=0.002), True),
    "discrete": (potential, settled, hebbian, False),
    "discrete Oja, Projected, from rest": (projected, settled, partial(oja, eta=0.01), True),
    "frozen, Projected, from rest": (projected, None, None, True),
    "continuous": (potential, always, oja, False),
}


@partial(jax.jit, static_argnames=("model", "hold", "skip"))
def show(state, X, model, hold, skip):
    dynamics, gate, rule, from_rest = MODELS[model]

    def hold_one(state, x):
        W, M, u, y, c = state
        if from_rest:
            u, y = jnp.zeros_like(u), jnp.zeros_like(y)
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


@partial(jax.jit, static_argnames=("model", "hold", "batched"))
def settle(state, X, model, hold, batched):
    """Of a frozen network only the rates change."""
    dynamics, *_ = MODELS[model]
    W, M, _, _, c = state

    def hold_one(x):
        b = W @ x

        def step(carry, _):
            u, y = carry
            return dynamics(u, b - M @ y), None

        rest = (jnp.zeros_like(b), jnp.zeros_like(b))
        return jax.lax.scan(step, rest, length=hold)[0]

    us, ys = jax.vmap(hold_one)(X) if batched else jax.lax.map(hold_one, X)
    return W, M, us[-1], ys[-1], c


def run(state, X, hold, model="asynchronous", skip=True, batched=False):
    """The new state, and the seconds that it took without compiling."""
    jax.config.update("jax_enable_x64", state["W"].dtype == np.float64)
    arrays = (
        *(jnp.asarray(state[name]) for name in ("W", "M", "u", "y")),
        jnp.asarray(np.minimum(state["c"], 2**30), jnp.int32),
    )
    X = jnp.asarray(X, state["W"].dtype)
    frozen = MODELS[model][1] is None
    lowered = settle.lower(arrays, X, model, hold, batched) if frozen else show.lower(arrays, X, model, hold, skip)
    compiled = lowered.compile()
    jax.block_until_ready(arrays)
    start = time.perf_counter()
    new = jax.block_until_ready(compiled(arrays, X))
    seconds = time.perf_counter() - start
    return dict(zip(("W", "M", "u", "y", "c"), map(np.asarray, new), strict=True)), seconds
