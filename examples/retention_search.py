"""Is there a setting under which the asynchronous network learns bars *and* keeps them while it learns other sets?

Over both dynamics, two initial weights, thresholds, refractory periods and learning rates it is shown Crossbars, then
Squares, then Diagonals, a million Euler steps each: 288 runs, about 20 minutes on two cores; stopped, it goes on.
Prints a line a setting, those with the lowest largest error last: how many of the three parts of claims 1a (bars) and
3a (retention) hold, the error on each set at the end of its own phase and at the end of all, and the fields after the
first set.

    python examples/retention_search.py [FOLDER]
"""

import sys
from dataclasses import replace

import h5py

import asynchebb as ah
from asynchebb import metrics
from asynchebb.experiments.search import judged

SETS = ah.Crossbars(14), ah.Squares(14), ah.Diagonals(14)
POTENTIAL = ah.Run(
    ah.asynchronous(),
    [ah.Phase(stimulus, samples=2000, hold=500, snapshots=1) for stimulus in SETS],
    [ah.Probe(stimulus, samples=60, hold=500) for stimulus in SETS],
)
GAUSSIAN = replace(POTENTIAL, network=ah.asynchronous(weights=ah.Gaussian()))
PROJECTED = replace(POTENTIAL, network=ah.asynchronous(dynamics=ah.Projected()))

COARSE = {
    "schedule.r_r": [100, 250, 500],
    "schedule.r_b": [0.5, 1, 1.5, 2, 3, 4],
    "rule.eta": [0.003, 0.01, 0.03],
}
GRIDS = [
    (POTENTIAL, COARSE),
    (GAUSSIAN, COARSE),
    (PROJECTED, COARSE),
    (
        POTENTIAL,
        {"schedule.r_r": [50, 100, 150], "schedule.r_b": [1.1, 1.2, 1.3, 1.4], "rule.eta": [0.003, 0.01, 0.03]},
    ),
    (
        PROJECTED,
        {"schedule.r_r": [150, 250, 500], "schedule.r_b": [1.6, 1.8, 2, 2.2, 2.5], "rule.eta": [0.005, 0.01, 0.02]},
    ),
    (
        PROJECTED,
        {"schedule.r_r": [500, 1000, 2000], "schedule.r_b": [0.8, 1, 1.2, 1.4, 1.6], "rule.eta": [0.01, 0.02, 0.04]},
    ),
]


def line(name: str, file: str) -> tuple[float, str]:
    with h5py.File(file) as kept:
        measures, held = judged(kept, SETS)
        fields = metrics.count_fields(kept["W"][1], SETS[0])
    own, end = ([measures[f"asynchronous_{when}_{number}"] for number in (1, 2, 3)] for when in ("learnt", "end"))
    parts = ", ".join(f"{claim} {sum(of)}/3" for claim, of in held.items())
    errors = f"own phase {' '.join(f'{e:.2f}' for e in own)}, end {' '.join(f'{e:.2f}' for e in end)}"
    return max(end), f"{name}: {parts}; {errors}; {fields.single} bars, {fields.mixed} crosses, {fields.distinct} of 28"


def main(folder: str) -> None:
    lines = []
    for run, axes in GRIDS:
        dataset = ah.sweep(run, axes, folder).stack(point=[*axes])
        for point in range(dataset.sizes["point"]):
            at = dataset.isel(point=point)
            values = ", ".join(f"{axis.partition('.')[2]} = {at[axis].item():g}" for axis in axes)
            network = f"{type(run.network.dynamics).__name__}, {type(run.network.weights).__name__}"
            lines.append(line(f"{network}, {values}", f"{folder}/runs/{at.run.item()}.nc"))
    print("\n".join(text for _, text in sorted(lines, reverse=True)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "retention")
