"""Define your own learning rule: it is written once and runs on every engine."""

from dataclasses import dataclass

import numpy as np

import asynchebb as ah
from asynchebb.drawing import figures


@dataclass(frozen=True)
class Bounded:
    """Δw_ij = η(y_i x_j − tanh(y_i) w_ij): strong bursts make weights decay only slightly more than weak ones."""

    eta: float = 0.02

    def leak_w(self, y_i):
        return np.tanh(y_i)

    def leak_m(self, y_i):
        return 1.0

    def rate(self, y_i, a_i):
        return self.eta, a_i


def main(samples: int = 2000, picture: str = "own_rule.png") -> int:
    bars = ah.Bars(8, probability=0.1)
    X = bars.sample(np.random.default_rng(0), samples)
    model = ah.AsyncHebbian(100, rule=Bounded(), max_iter=1, random_state=0).fit(X)
    fields = ah.metrics.count_fields(model.components_, bars)
    print(f"{fields.distinct} of {len(bars.factors())} bars found, error {1 - model.score(X[:500]):.3f}")
    figures.save(figures.fields(model.components_, bars.shape, model.transform(X[:500]).mean(axis=0)), picture)
    return fields.distinct


if __name__ == "__main__":
    main()
