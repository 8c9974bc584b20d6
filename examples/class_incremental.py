"""Learn digits two classes at a time, without revisiting any: what does each network remember at the end?"""

import numpy as np
from sklearn.datasets import load_digits

import asynchebb as ah
from asynchebb.drawing import figures

PHASES = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


def errors(model, X, y, passes: int) -> np.ndarray:
    """E[p, s]: the error on the classes of phase s after phase p."""
    rng, E = np.random.default_rng(0), np.empty((len(PHASES), len(PHASES)))
    test = np.arange(len(X)) % 4 == 0
    for p, classes in enumerate(PHASES):
        shown = np.flatnonzero(np.isin(y, classes) & ~test)
        for _ in range(passes):
            model.partial_fit(X[rng.permutation(shown)])
        E[p] = [1 - model.score(X[np.isin(y, tested) & test]) for tested in PHASES]
    return E


def main(passes: int = 10, picture: str = "class_incremental.png") -> dict[str, float]:
    X, y = load_digits(return_X_y=True)
    figure = figures.Figure(figsize=(7.2, 2.9), layout="constrained")
    forgetting = {}
    # By Wᵀy, as in the paper: a learned readout keeps a sample of all classes, and so remembers them by itself.
    by_weights = {"readout": False, "random_state": 0}
    models = {
        "asynchronous": ah.AsyncHebbian(100, **by_weights),
        "asynchronous, Oja, r_b = 2, Projected": ah.AsyncHebbian(
            100, rule=ah.Oja(0.002), r_b=2, dynamics=ah.Projected(), **by_weights
        ),
        "discrete": ah.DiscreteHebbian(100, **by_weights),
    }
    names = [f"{a} and {b}" for a, b in PHASES]
    for axes, (name, model) in zip(figure.subplots(1, 3, sharey=True), models.items(), strict=True):
        E = errors(model.begin(X), X, y, passes)
        forgetting[name] = ah.metrics.forgetting(E)
        print(f"{name}: forgetting {forgetting[name]:.3f}, error on all digits at the end {E[-1].mean():.3f}")
        figures.error_matrix(axes, E, names, names)
        axes.set_title(f"{name}\nforgetting {forgetting[name]:.3f}", fontsize=8)
        axes.set_xlabel("error on", fontsize=8)
    figure.axes[0].set_ylabel("after learning", fontsize=8)
    figures.save(figure, picture)
    return forgetting


if __name__ == "__main__":
    main()
