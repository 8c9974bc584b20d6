"""Steps a second of the cpu engine and of NumPy loops, side by side in one run on one core.

n = 500, m = 196, hold 500, float32, after 1,000,000 training steps. Rounds alternate between the
two, and the ratio is taken within each round: other work on the machine slows both.

    python benchmarks/speed.py
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import json
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import peers

import asynchebb as ah

HOLD, TRAINED, ROUNDS = 500, 2_000, 5
HERE = Path(__file__).parent

# Model, peer, stimuli a round for the engine and for the peer, the ratio asked for.
CASES = [
    ("asynchronous", "row-gated NumPy", peers.row_gated, 200, 20, 12),
    ("continuous", "dense NumPy", peers.dense, 100, 1, 80),
]


def steps_per_second(advance, state, X):
    start = time.perf_counter()
    advance(state, X, hold=HOLD)
    return len(X) * HOLD / (time.perf_counter() - start)


def check_same(network, peer, state):
    """A peer that computes something else would be no peer."""
    state = type(state)(*(array.astype(np.float64) if array.dtype.kind == "f" else array for array in state))
    X = ah.Crossbars(14).sample(np.random.default_rng(9), 1)
    ours, _ = ah.advance(network, state, X, hold=HOLD)
    theirs = peer(state, X, HOLD)
    for name in ("W", "M", "y"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9)


def main():
    pinned = getattr(os, "sched_setaffinity", None)
    if pinned:
        pinned(0, {min(os.sched_getaffinity(0))})
    results = []
    for model, peer_name, peer, samples, peer_samples, asked in CASES:
        network = getattr(ah, model)()
        X = ah.Crossbars(14).sample(np.random.default_rng(1), TRAINED + samples)
        state, _ = ah.advance(network, network.init(np.random.default_rng(0)), X[:TRAINED], hold=HOLD)
        check_same(network, peer, state)
        ours, theirs = [], []
        few = X[TRAINED : TRAINED + peer_samples].astype(np.float32)
        for _ in range(ROUNDS):
            ours.append(steps_per_second(partial(ah.advance, network), state, X[TRAINED:]))
            theirs.append(steps_per_second(peer, state, few))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        results.append(
            {
                "model": model,
                "cpu steps/s": round(median(ours)),
                "peer": peer_name,
                "peer steps/s": round(median(theirs)),
                "ratio": round(median(ratios), 1),
                "lowest ratio": round(min(ratios), 1),
                "asked": asked,
            }
        )
    for row in results:
        print("  ".join(f"{key}: {value:,}" if isinstance(value, int | float) else value for key, value in row.items()))
    (HERE / "speed.json").write_text(json.dumps(results, indent=2) + "\n")
    return 0 if all(row["ratio"] >= row["asked"] for row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
