"""Benchmark of an estimator: samples per second learned in batches and one by one, encoded on all cores and in a loop.

Writes benchmarks/estimator.md; run by `make compare`. Everything runs in one process, on trained networks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import asynchebb as ah
from asynchebb import engines, provenance
from asynchebb.drawing import pages

STEPS = 500  # Euler steps per sample: the default of both hold and settle


def rate(do: Callable[[], object], samples: int, repeats: int = 3) -> float:
    """Samples per second, the best of several repeats."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        do()
        best = min(best, time.perf_counter() - started)
    return samples / best


def measure(n: int, X: np.ndarray) -> dict[str, float]:
    model = ah.AsyncHebbian(n, max_iter=1, random_state=0).fit(X)
    rows = np.float32(X[:10].reshape(10, -1) / model.scale_)
    network = ah.asynchronous(n, rows.shape[1], reading="notebook")
    model.transform(X[:2])

    def one_by_one() -> None:
        for x in X[:300]:
            model.partial_fit(x[None])

    def loop() -> None:
        for row in rows:
            engines.settle(network, model.state_, row[None], STEPS, "reference")

    return {
        "transform": rate(lambda: model.transform(X[:1000]), 1000),
        "loop over the reference engine": rate(loop, len(rows), 1),
        "partial_fit, batches of 100": rate(lambda: model.partial_fit(X[:100]), 100),
        "partial_fit, one sample a call": rate(one_by_one, 300),
    }


def main() -> None:
    bars = ah.Crossbars(14).sample(np.random.default_rng(0), 2000)
    sets = {"digits, m = 64, n = 100": (100, load_digits().images), "crosses, m = 196, n = 500": (500, bars)}
    found = {name: measure(n, X) for name, (n, X) in sets.items()}
    lines = [
        "# Samples per second of an estimator",
        "",
        f"`AsyncHebbian`, {STEPS} Euler steps per sample, trained beforehand; made by `make compare`. "
        + pages.listed(provenance.machine())
        + ".",
        "",
        "| samples per second | " + " | ".join(found) + " |",
        "| --- " + "| ---: " * len(found) + "|",
        *(
            f"| {what} | " + " | ".join(f"{measured[what]:,.0f}" for measured in found.values()) + " |"
            for what in next(iter(found.values()))
        ),
        "| transform, times the loop | "
        + " | ".join(f"{one['transform'] / one['loop over the reference engine']:.0f} ×" for one in found.values())
        + " |",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
