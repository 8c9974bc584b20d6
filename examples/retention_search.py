"""Is there a setting under which the asynchronous network learns bars *and* keeps them while it learns other sets?

Over both dynamics, two initial weights, thresholds, refractory periods and learning rates, it is shown Crossbars, then
Squares, then Diagonals, a million Euler steps each. 237 runs, about 15 minutes on two cores; stopped, it goes on.
Prints a line a setting, the smallest of the largest errors first: the error on each set at the end of its own phase and
at the end of all, and the fields after the first phase.

    python examples/retention_search.py [FOLDER]
"""

import sys
from dataclasses import replace

import asynchebb as ah
from asynchebb import metrics

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "retention"
SETS = [ah.Crossbars(14), ah.Squares(14), ah.Diagonals(14)]
RUN = ah.Run(
    ah.asynchronous(),
    [ah.Phase(stimulus, samples=2000, hold=500, snapshots=1) for stimulus in SETS],
    [ah.Probe(stimulus, samples=60, hold=500) for stimulus in SETS],
)
POTENTIAL = RUN
GAUSSIAN = replace(RUN, network=ah.asynchronous(weights=ah.Gaussian()))
PROJECTED = replace(RUN, network=ah.asynchronous(dynamics=ah.Projected()))

ETAS = [0.003, 0.01, 0.03]
GRIDS = [  # one run, the thresholds, the refractory periods
    (POTENTIAL, [0.5, 1, 1.2, 1.4, 1.6, 2, 3], [50, 100, 250, 500]),
    (GAUSSIAN, [0.5, 1, 1.5, 2, 3], [100, 250, 500]),
    (PROJECTED, [0.5, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3], [100, 250, 500, 1000]),
]


def main():
    lines = []
    for run, thresholds, refractory in GRIDS:
        axes = {"schedule.r_b": thresholds, "schedule.r_r": refractory, "rule.eta": ETAS}
        dataset = ah.sweep(run, axes, FOLDER).stack(point=[*axes])
        for point in range(dataset.sizes["point"]):
            at = dataset.isel(point=point)
            with ah.open_run(f"{FOLDER}/runs/{at.run.item()}.nc") as kept:
                error, fields = kept.error_last.values, metrics.count_fields(kept.W[1].values, SETS[0])
            own, end = [error[phase + 1, phase] for phase in range(3)], error[-1]
            name = f"{type(run.network.dynamics).__name__} {type(run.network.weights).__name__}"
            said = ", ".join(f"{axis.rpartition('.')[2]} = {at[axis].item():g}" for axis in axes)
            errors = f"own phase {' '.join(f'{e:.2f}' for e in own)}, end {' '.join(f'{e:.2f}' for e in end)}"
            bars = f"{fields.single} bars, {fields.mixed} crosses, {fields.distinct} of 28 found"
            lines.append((max(end), f"{name:24} {said:36} {errors}; {bars}"))
    print("\n".join(line for _, line in sorted(lines)))


if __name__ == "__main__":
    main()
