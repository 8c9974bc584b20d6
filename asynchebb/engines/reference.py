"""The specification: the whole model in NumPy, on one screen, as in the paper and with no regard to speed."""

from __future__ import annotations

import numpy as np

from asynchebb import equations, noise
from asynchebb.engines.traces import Traces
from asynchebb.network import VANISHING, Network, State


def advance(
    network: Network,
    state: State,
    X: np.ndarray,
    hold: int,
    traces: Traces,
    from_rest: bool = False,
    settled: np.ndarray | None = None,
) -> State:
    """Show each row of X for `hold` Euler steps, optionally from rest; write its final rates to `settled`."""
    W, M, u, y, c, a, h, recent, start = state
    rule = network.rule
    step = equation(network, "dynamics", "step")
    gate = equation(network, "schedule", "gate")
    spiking, noisy, window = equations.spikes(network.dynamics), equations.noisy(network.dynamics), len(recent)
    floor = getattr(rule, "floor", 0.0)
    t = 0
    for number, x in enumerate(X):
        if from_rest:
            u, y = network.rest(W.dtype)
            recent[:] = 0
        rates = []
        for k in range(hold):
            drive = W @ x - M @ y
            noise_i = noise.uniform(int(start) + t, network.n, W.dtype) if noisy else None
            moved = step(u_i=u, y_i=y, h_i=h, drive_i=drive, noise_i=noise_i)
            before = {"u_i": u, "y_i": y, "h_i": h}
            u, y, h = (np.full(old.shape, moved.get(name, old), W.dtype) for name, old in before.items())
            s = np.broadcast_to(moved.get("s_i", 0), network.n)
            if window:
                recent[(int(start) + t) % window] = s > 0
            n_i = recent.sum(axis=0, dtype=np.int64)
            opened = gate(y_i=y, n_i=n_i, c_i=c, k=np.int64(k), hold=np.int64(hold))
            beta, c = each(network.n, opened["beta_i"], np.asarray(opened["c_i"], np.int64))
            i = np.flatnonzero(beta)  # the rows that change
            y_i = y[i]
            eta_i, a[i] = each(len(i), *rule.rate(y_i, a[i]))
            leak_w, leak_m = each(len(i), rule.leak_w(y_i), rule.leak_m(y_i))
            hebb_w, hebb_m = np.outer(y_i, x), np.outer(y_i, y)
            W[i] = positive(W[i] + column(eta_i) * (hebb_w - column(leak_w) * W[i]))
            M[i] = positive(M[i] + column(eta_i) * (hebb_m - column(leak_m) * M[i] - floor))

            if traces.updates.size:  # synapses with a Hebbian product, leak or floor
                changed_w = (hebb_w != 0) | (column(leak_w) != 0)
                changed_m = (hebb_m != 0) | (column(leak_m) != 0) | (floor != 0)
                traces.updates[t] = np.count_nonzero(changed_w) + np.count_nonzero(changed_m)
            if traces.active.size:
                traces.active[t] = np.count_nonzero(y > 0)
            if traces.y.size:
                traces.y[t] = y
            if traces.burst.size:
                traces.burst[t] = beta
            if traces.spikes.size:
                traces.spikes[t] = s > 0
            traces.fired[:] += np.count_nonzero(s > 0), np.count_nonzero(s > 1)
            if settled is not None or traces.means.size:
                rates.append(y)
            t += 1
        if settled is not None:
            settled[number] = np.mean(rates[hold // 2 :], axis=0, dtype=np.float64) if spiking else y
        if traces.means.size:
            traces.means[number] = np.mean(rates, axis=0, dtype=np.float64)
    return State(W, M, u, y, c, a, h, recent, np.asarray(start + t))


def equation(network, kind, method):
    """An equation as a function that takes what it needs of all these values, and gives what it gives, by name."""
    record = getattr(network, kind)
    takes, gives = equations.takes_and_gives(kind, method, record.__class__)
    compute = getattr(record, method)

    def by_name(**values):
        return dict(zip(gives, compute(*(values[name] for name in takes)), strict=True))

    return by_name


def threads(network: Network) -> int:
    """How many calls may run in parallel: just one, since NumPy calls would only wait for each other."""
    return 1


def each(n, *values):
    """One value per neuron, where an equation may return a single one for all."""
    return (np.full(n, value) for value in values)


def column(z_i):
    return z_i[:, None]


def positive(rows):
    """Rectified weights; a row that fades away keeps its direction, with VANISHING as its largest weight."""
    rows = rows * (rows > 0)
    largest = rows.max(axis=1, initial=0.0, keepdims=True)
    fading = (largest > 0) & (largest < VANISHING)
    return np.where(fading, rows / np.where(fading, largest, 1) * VANISHING, rows) if fading.any() else rows
