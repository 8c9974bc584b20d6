"""Beyond the paper: four sets in several orders. How much is forgotten, compared with the discrete network and NMF?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import metrics
from asynchebb.drawing import figures
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.readings import NOTEBOOK, PRESET, READINGS, in_succession, sets
from asynchebb.reproduction.results import Key, Results, ends
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run
from asynchebb.stimuli import Digits

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

TITLE = "Four sets in several orders"
SHORT = ("Crossbars", "Squares\n(our choice)", "Diagonals\n(our choice)", "Digits")
ORDERS = ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2))  # of these four
NETWORKS = {
    "asynchronous": ("asynchronous", PRESET),
    "notebook": ("asynchronous", NOTEBOOK),
    "discrete": ("discrete", PRESET),
}
COMPONENTS = 100  # of NMF: more than the 72 factors of the first three sets


def shown(scale: Scale, order: tuple[int, ...]) -> tuple[Any, ...]:
    all_sets = (*sets(scale), Digits(scale.p))
    return tuple(all_sets[k] for k in order)


def runs(scale: Scale) -> dict[Key, Run]:
    return {
        (name, order): in_succession(
            half(scale),
            READINGS[reading],
            model,
            shown(scale, order),
            snapshots=1,
        )
        for name, (model, reading) in NETWORKS.items()
        for order in ORDERS
    }


def half(scale: Scale) -> Scale:
    """Four sets in three orders take long, so each set gets half as many steps as in our other experiments."""
    return scale._replace(steps_per_phase=scale.side_steps // 2)


def measure(scale: Scale, results: Results) -> Numbers:
    matrices = {
        (name, order): np.asarray(results[name, order]["error_last"])[ends(results[name, order])]
        for name, order in results
    }
    matrices |= {("nmf", order): nmf_errors(scale, shown(scale, order)) for order in ORDERS}
    measures: dict[str, list] = {}
    for (name, _), E in matrices.items():
        measures.setdefault(f"{name}_errors", []).append(E.tolist())
        measures.setdefault(f"{name}_forgetting", []).append(metrics.forgetting(E))
        measures.setdefault(f"{name}_transfer", []).append(metrics.backward_transfer(E))
        measures.setdefault(f"{name}_end", []).append(float(E[-1].mean()))
    # Both readings of the asynchronous network are compared with the same discrete network and NMF.
    others = {name: values for name, values in measures.items() if name.startswith(("discrete", "nmf"))}
    named = {
        reading: {
            f"asynchronous_{what}": measures[f"{name}_{what}"] for what in ("errors", "forgetting", "transfer", "end")
        }
        for name, reading in (("asynchronous", PRESET), ("notebook", NOTEBOOK))
    }
    return {reading: {**values, **others} for reading, values in named.items()}


def nmf_errors(scale: Scale, in_order: tuple[Any, ...]) -> np.ndarray:
    """E[p, s] for scikit-learn's MiniBatchNMF, which sees the same number of stimuli, in batches of 100."""
    import warnings

    from sklearn.decomposition import MiniBatchNMF
    from sklearn.exceptions import ConvergenceWarning

    components = min(COMPONENTS, scale.n)
    model = MiniBatchNMF(components, batch_size=100, random_state=0, max_iter=50)
    tests = [stimulus.sample(np.random.default_rng([9, s]), scale.tested) for s, stimulus in enumerate(in_order)]
    presentations = max(100, half(scale).steps_per_phase // 500)
    E = np.empty((len(in_order), len(in_order)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for p, stimulus in enumerate(in_order):
            X = stimulus.sample(np.random.default_rng([8, p]), presentations)
            for start in range(0, presentations - 99, 100):
                model.partial_fit(X[start : start + 100])
            for s, test in enumerate(tests):
                again = model.transform(test) @ model.components_
                E[p, s] = metrics.reconstruction_errors(test, again).mean()
    return E


SAYS = {"asynchronous": "asynchronous", "discrete": "discrete", "nmf": "MiniBatchNMF"}
CLAIMS = (
    Claim(
        "Q",
        "ours",
        "Over four sets in several orders, the asynchronous network forgets less than the discrete network and "
        "scikit-learn's MiniBatchNMF.",
        "not in the paper, which shows three sets in one order",
        {
            f"{name}_{what}": f"{says}, {model}"
            for what, says in (
                ("forgetting", "forgetting (rise of the error on the sets before the last)"),
                ("transfer", "backward transfer"),
                ("end", "mean error on all four sets at the end"),
            )
            for name, model in SAYS.items()
        },
        (
            Part(
                "its forgetting is at least 0.05 below the discrete network's",
                lambda v: v.asynchronous_forgetting <= v.discrete_forgetting - 0.05,
            ),
            Part(
                "its forgetting is at least 0.05 below NMF's",
                lambda v: v.asynchronous_forgetting <= v.nmf_forgetting - 0.05,
            ),
            Part(
                "its mean error on all sets at the end is below the discrete network's",
                lambda v: v.asynchronous_end < v.discrete_end,
            ),
        ),
        "forgetting is {asynchronous_forgetting} for the asynchronous network, {discrete_forgetting} for the discrete "
        "one and {nmf_forgetting} for NMF; the mean errors at the end are {asynchronous_end}, {discrete_end} and "
        "{nmf_end}.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "sequences": "Error on each set (columns; for networks, at step 500) after each phase (rows), for three "
        f"orders of four sets (top to bottom). Asynchronous: readings {PRESET} and {NOTEBOOK}; discrete: {PRESET}; "
        f"MiniBatchNMF with {min(COMPONENTS, scale.n)} components, shown as many stimuli. Where a column stays "
        "dark, the set is retained. The three numbers above each panel are forgetting, backward transfer and the mean "
        "error at the end. Not in the paper; Squares and Diagonals are our choice."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure = figures.Figure(figsize=(7.2, 6.6), layout="constrained")
    axes = figure.subplots(len(ORDERS), 4)
    columns = (
        ("asynchronous", PRESET, "asynchronous"),
        (f"asynchronous,\n{NOTEBOOK}", NOTEBOOK, "asynchronous"),
        ("discrete", PRESET, "discrete"),
        ("MiniBatchNMF", PRESET, "nmf"),
    )
    for row, order in enumerate(ORDERS):
        names = [SHORT[k] for k in order]
        for column, (title, reading, name) in enumerate(columns):
            panel, measures = axes[row, column], numbers[reading]
            E: Any = measures[f"{name}_errors"][row]
            figures.error_matrix(panel, np.array(E), names if column == 0 else [""] * 4, names)
            said = " / ".join(f"{measures[f'{name}_{what}'][row]:.2f}" for what in ("forgetting", "transfer", "end"))
            panel.set_title((title + "\n" if row == 0 else "") + said, fontsize=7)
    return {"sequences": figure}
