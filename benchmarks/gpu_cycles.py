"""Where a hold spends its time on a GPU: cycles of each part, for one network and with all multiprocessors full.

    make bench-gpu

The kernels are compiled with a clock at the end of each part (`SPENT` in the source), which the first thread of a
network reads. n = 500, m = 196, hold 500, float32; networks trained for a million steps beforehand.
"""

import sys

import cupy
import numpy as np
from gpu import HOLD, MODELS, TRAINED, call, timed

import asynchebb as ah
from asynchebb.engines import gpu, prepare
from asynchebb.engines.gpu import device

PARTS = ("Wx", "choosing", "loading", "sleepers", "waking", "steps", "storing", "closing", "step by step", "folding")
CLOCK = """
__device__ unsigned long long spent[11];
__shared__ long long last_clock;
#define SPENT(part) \\
    if (threadIdx.x == 0 && blockIdx.x % CLUSTER == 0) { \\
        long long now_clock = clock64(); \\
        atomicAdd(&spent[part], (unsigned long long)(now_clock - last_clock)); \\
        last_clock = now_clock; \\
    }
"""
HOLDS, NETWORKS = 40, 264  # these are trained


def main():
    modules, load = [], cupy.RawModule

    def watched(*arguments, **named):
        modules.append(load(*arguments, **named))
        return modules[-1]

    cupy.RawModule = watched
    card = device.current()
    card.words = CLOCK + card.words
    for name in sys.argv[1:] or [*MODELS]:
        network, from_rest, _ = MODELS[name]
        X = ah.Crossbars(14).sample(np.random.default_rng(1), TRAINED + HOLDS).astype(np.float32)
        states = [prepare(network, network.init(np.random.default_rng(seed))) for seed in range(NETWORKS)]
        gpu.advance_many([call(network, state, X[:TRAINED], from_rest) for state in states])
        spent = cupy.ndarray(len(PARTS) + 1, np.uint64, modules[-1].get_global("spent"))
        print(f"{name}: thousand cycles per hold of {HOLD} steps")
        geometry = gpu.geometry_of(card, network, HOLD, from_rest, states[0].W.dtype, NETWORKS)
        for count in (1, card.multiprocessors * geometry.blocks // max(1, geometry.cluster)):
            spent[...] = 0
            some = [states[k % NETWORKS].copy() for k in range(count)]
            seconds, _ = timed([call(network, state, X[TRAINED:], from_rest) for state in some])
            cycles = spent.get()[:-1] / (count * HOLDS) / 1e3
            parts = ", ".join(f"{part} {value:.0f}" for part, value in zip(PARTS, cycles, strict=True))
            # The slowest network takes longer than the mean.
            slowest = f"{1e6 * seconds / (HOLDS * HOLD):.2f} µs per step of the slowest"
            print(f"  {count} networks, {slowest}: {cycles.sum():.0f} ({parts})", flush=True)


if __name__ == "__main__":
    main()
