"""Is there a setting under which figures 1, 2 and 3 hold together (claim J)?

Shows Crossbars, then Squares, then Diagonals to asynchronous networks with many settings and to the matching discrete
networks, with three seeds each. Judges the mean over seeds by the claims' own criteria: are bars learned from the first
set (1a), do most neurons match the discrete network after it (2a), are all three sets retained (3a)? Writes a table
with one row per setting and prints the best settings last. If interrupted, it resumes.

    python examples/retention_search.py [FOLDER]
"""

import itertools
import sys
from pathlib import Path

import h5py
import pandas as pd

import asynchebb as ah
from asynchebb.network import READINGS, Reading
from asynchebb.reproduction.experiments import search

SETS = ah.Crossbars(14), ah.Squares(14), ah.Diagonals(14)
SEEDS = [0, 1, 2]
HOLD = 500
PAPER = READINGS["paper"]
CARRIED_OVER = PAPER._replace(from_rest=False)
CONSTANT_LEAK = PAPER._replace(asynchronous=ah.Hebbian(), discrete=ah.Hebbian())

NOTEBOOKS_WEIGHTS = CONSTANT_LEAK._replace(from_rest=False, weights=ah.Exponential())

SHORT, LONGER, LONG = 1_200, 2_000, 4_000  # stimuli per set: 0.6, 1 and 2 million Euler steps
GRIDS: list[tuple[Reading, dict[str, list]]] = [
    (PAPER, {"r_b": [0.5, 0.75, 1, 1.25, 1.5, 2], "r_r": [100, 200, 500], "eta": [0.002, 0.005, 0.01]}),
    (PAPER, {"r_b": [0.5, 1, 1.5, 2], "r_r": [100, 500], "eta": [0.005, 0.01], "scale": [0.1, 0.4]}),
    (CARRIED_OVER, {"r_b": [0.5, 1, 1.5, 2], "r_r": [100, 500], "eta": [0.002, 0.005, 0.01]}),
    (CONSTANT_LEAK, {"r_b": [0.25, 0.5, 1, 1.5, 2], "r_r": [100, 500], "eta": [0.001, 0.005, 0.01]}),
    (CONSTANT_LEAK._replace(from_rest=False), {"r_b": [0.5, 1, 2], "r_r": [100, 500], "eta": [0.001, 0.01]}),
    (PAPER._replace(dynamics=ah.Potential()), {"r_b": [0.5, 1, 2], "r_r": [100, 500], "eta": [0.005, 0.01]}),
    (PAPER, {"r_b": [0.75, 0.85], "r_r": [50, 100], "eta": [0.01, 0.02]}),
    (PAPER, {"r_b": [0.75, 1], "r_r": [100], "eta": [0.002, 0.005, 0.01], "samples": [LONG]}),
    (NOTEBOOKS_WEIGHTS, {"r_b": [1.8, 2, 2.2], "r_r": [100, 500], "eta": [0.01], "samples": [LONGER]}),
]
DISCRETE_ETAS = [0.005, 0.01]  # each asynchronous network is compared with both
FIELDS = {
    "r_b": "schedule.r_b",
    "r_r": "schedule.r_r",
    "eta": "rule.eta",
    "scale": "weights.scale",
    "samples": "samples",
}


def base(reading: Reading, model: str) -> ah.Run:
    return ah.Run(
        reading.network(model, 500, 196),
        [ah.Phase(stimulus, SHORT, HOLD, snapshots=1, from_rest=reading.from_rest) for stimulus in SETS],
        [ah.Probe(stimulus, 30, HOLD, from_rest=reading.from_rest) for stimulus in SETS],
        trace=(),
    )


def run(reading: Reading, model: str, axes: dict[str, list], folder: Path) -> dict[tuple, str]:
    """The identity of each run, by its values on the axes and its seed."""
    dataset = ah.sweep(base(reading, model), {FIELDS[name]: axes[name] for name in axes} | {"seed": SEEDS}, folder)
    return dict(zip(itertools.product(*axes.values(), SEEDS), dataset.run.values.flat, strict=True))


def main(folder: Path) -> None:
    rows = []
    for reading, given in GRIDS:
        axes = {"scale": [reading.weights.scale], "samples": [SHORT], **given}
        shared = {name: axes[name] for name in ("scale", "samples")}
        asynchronous = run(reading, "asynchronous", axes, folder)
        discrete = run(reading, "discrete", {**shared, "eta": DISCRETE_ETAS}, folder)
        for values in itertools.product(*axes.values()):
            setting = dict(zip(axes, values, strict=True))
            for eta in DISCRETE_ETAS:
                pairs = []
                for seed in SEEDS:
                    files = asynchronous[*values, seed], discrete[setting["scale"], setting["samples"], eta, seed]
                    with (
                        h5py.File(folder / f"runs/{files[0]}.nc") as one,
                        h5py.File(folder / f"runs/{files[1]}.nc") as other,
                    ):
                        pairs.append(search.in_succession(one, other, SETS))
                rows.append(search.row(reading, setting, eta, pairs))
    table = pd.DataFrame(rows).sort_values(["parts", "worst"], ascending=[True, False], kind="stable")
    table.to_csv(folder / "settings.csv", index=False, float_format="%.4g")
    print(table.tail(20).to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "retention"))
