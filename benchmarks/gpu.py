"""Benchmark of the gpu engine: network-steps per second by the number of networks, compared with a JAX scan.

    make bench-gpu

n = 500, m = 196, hold 500, float32; all networks trained for a million steps beforehand, each with a seed of its own.
Times are those of the kernels, by the device's clock; transfers are shown apart. JAX runs `vmap(scan)` over networks on
the same GPU, in the same run. Short runs would measure how a GPU wakes up. Writes gpu.json next to this file.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

import asynchebb as ah
from asynchebb.contracts import Call
from asynchebb.engines import gpu, prepare, traces
from asynchebb.engines.gpu import device

HOLD, TRAINED = 500, 2_000
MODELS = {  # and whether stimuli are shown from rest, and what the engine must reach, in million network-steps/s
    "asynchronous": (ah.asynchronous(reading="notebook"), False, 350),
    "asynchronous Oja, Projected, from rest": (ah.asynchronous(), True, 40),
    "discrete": (ah.discrete(reading="notebook"), False, 100),
    "continuous": (ah.continuous(reading="notebook"), False, 150),
}
COUNTS = (1, 264, 1056, 2112)


def call(network, state, X, from_rest):
    return Call(network, state, X, HOLD, traces.empty((), 0, network.n, state.W.dtype), from_rest)


def timed(calls):
    """Seconds of the kernels, and of the whole call."""
    events, launch = [], device.Cuda.launch
    cupy = device.current().cupy

    def watched(self, program, geometry, networks, count):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        cupy.cuda.get_current_stream().synchronize()  # what was handed over has arrived
        start.record()
        launch(self, program, geometry, networks, count)
        end.record()
        events.append((start, end))

    device.Cuda.launch = watched
    try:
        begin = time.perf_counter()
        gpu.advance_many(calls)
        whole = time.perf_counter() - begin
    finally:
        device.Cuda.launch = launch
    return sum(cupy.cuda.get_elapsed_time(*pair) for pair in events) / 1e3, whole


def jax_steps(model, network, states, X):
    """Network-steps per second of `vmap(scan)`."""
    import jax
    import jax.numpy as jnp

    sys.path.insert(0, str(Path(__file__).parent))
    from peers.jax_scan import show

    arrays = [jnp.stack([jnp.asarray(getattr(s, name)) for s in states]) for name in ("W", "M", "u", "y")]
    arrays.append(jnp.stack([jnp.asarray(np.minimum(s.c, 2**30), jnp.int32) for s in states]))
    run = jax.jit(jax.vmap(lambda state, X: show(state, X, model, HOLD, False)))
    X = jnp.asarray(X)
    jax.block_until_ready(run(tuple(arrays), X))
    start = time.perf_counter()
    jax.block_until_ready(run(tuple(arrays), X))
    return len(states) * X.shape[1] * HOLD / (time.perf_counter() - start)


def main():
    names, holds, counts = sys.argv[1:] or [*MODELS], 100, COUNTS
    results = {}
    for name in names:
        network, from_rest, needed = MODELS[name]
        most = max(counts)
        X = ah.Crossbars(14).sample(np.random.default_rng(1), TRAINED + holds).astype(np.float32)
        states = [prepare(network, network.init(np.random.default_rng(seed))) for seed in range(min(most, 264))]
        shown = [np.random.default_rng(seed).permutation(X) for seed in range(len(states))]
        begin = time.perf_counter()
        gpu.advance_many([call(network, s, x[:20], from_rest) for s, x in zip(states[:1], shown[:1], strict=True)])
        compiled = time.perf_counter() - begin
        seconds, whole = timed([call(network, s, x[20:TRAINED], from_rest) for s, x in zip(states, shown, strict=True)])
        row = {"compiling, s": compiled, "training, M/s": len(states) * (TRAINED - 20) * HOLD / seconds / 1e6}
        for count in counts:
            many = [states[k % len(states)].copy() for k in range(count)]
            calls = [call(network, s, shown[k % len(states)][-holds:], from_rest) for k, s in enumerate(many)]
            seconds, whole = timed(calls)
            row[str(count)] = count * holds * HOLD / seconds / 1e6
            if count == 1:
                row["one, µs/step"] = 1e6 * seconds / (holds * HOLD)
            row[f"{count}, transfers, s"] = whole - seconds
        try:
            row["JAX, 132"] = jax_steps(name, network, states[:132], np.stack([x[-2:] for x in shown[:132]])) / 1e6
        except Exception as error:
            row["JAX, 132"] = f"{type(error).__name__}: {error}"[:200]
        row["needed"] = needed
        results[name] = row
        print(name, json.dumps({key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()}), flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
