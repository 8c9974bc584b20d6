"""Learn bars from crosses: the paper's experiment with an estimator."""

import numpy as np

import asynchebb as ah
from asynchebb.drawing import figures


def main(samples: int = 4000, picture: str = "bars.png") -> int:
    bars = ah.Crossbars(8)  # one row and one column at a time
    X = bars.sample(np.random.default_rng(0), samples)
    model = ah.AsyncHebbian(100, max_iter=1, random_state=0).fit(X)

    fields = ah.metrics.count_fields(model.components_, bars)
    print(f"{fields.distinct} of {len(bars.factors())} bars have a neuron of their own; {fields}")
    print(f"reconstruction error {1 - model.score(X[:500]):.3f}")
    figures.save(figures.fields(model.components_, bars.shape, model.transform(X[:500]).mean(axis=0)), picture)
    return fields.distinct


if __name__ == "__main__":
    main()
