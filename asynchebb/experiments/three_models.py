"""The asynchronous, the continuous and the discrete model on crossed bars, from one start (Fig. 1D–I)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asynchebb import figures, metrics
from asynchebb.network import MODELS
from asynchebb.recording import record, summary
from asynchebb.simulate import Phase, Probe, Run
from asynchebb.stimuli import Crossbars

if TYPE_CHECKING:
    import xarray


class Scale(NamedTuple):
    p: int
    n: int
    samples: int
    hold: int


SCALES = {
    "smoke": Scale(p=6, n=60, samples=60, hold=100),
    "small": Scale(p=14, n=500, samples=2_000, hold=500),
}

# What is left beside the runs: the fields, the curves, the numbers.
FILES = MOSAICS, LEARNING, MEASURES = "mosaics.png", "learning.png", "measures.json"

# What the paper tests with (s = 60, f = 150), and a whole presentation, in which rates settle.
PAPER, SETTLED = 0, 1

# What is measured beside a run's summary.
LABELS = {
    "gini_learning": "Gini while learning",
    "active_neurons_learning": "active neurons a step while learning",
    "error_paper": "error, mean of 150 steps",
    "error_last_paper": "error at step 150",
}


def title(scale: str) -> str:
    p, n, samples, hold = SCALES[scale]
    return f"{n} neurons on Crossbars({p}): {samples:,} stimuli, each held for {hold} steps"


def runs(scale: str) -> dict[str, Run]:
    p, n, samples, hold = SCALES[scale]
    bars = Crossbars(p)
    probes = (Probe(bars, 60, 150), Probe(bars, 60, 500))
    return {
        name: Run(model(n, bars.m), (Phase(bars, samples, hold, snapshots=20),), probes, ("updates", "active", "y"))
        for name, model in MODELS.items()
    }


def measure(dataset: xarray.Dataset) -> dict[str, float]:
    """The end of the run, settled; beside it the error as the paper takes it, and activity while learning goes on."""
    paper = dataset.isel(snapshot=-1, probe=PAPER)
    samples_of_last_snapshot = len(dataset.trace_active) // (len(dataset.step) - 1)
    return {
        **summary(dataset, SETTLED),
        "gini_learning": metrics.gini(dataset.trace_y[-1].values),
        "active_neurons_learning": float(dataset.trace_active[-samples_of_last_snapshot:].mean()),
        "error_paper": float(paper.error),
        "error_last_paper": float(paper.error_last),
    }


def reproduce(
    scale: str, folder: Path, started: Callable[[str, Run], Callable[[int], object]]
) -> dict[str, dict[str, Any]]:
    """Run what has not been run, draw it, and give the measures of each model."""
    datasets, table = {}, {}
    for name, run in runs(scale).items():
        datasets[name] = record(run, folder / "runs", on_progress=started(name, run))
        table[name] = measure(datasets[name])
    captions = {
        name: f"{row['single_fields']} bars, {row['mixed_fields']} crosses\n"
        f"Gini {row['gini']:.2f}, error {row['error_last']:.2f}"
        for name, row in table.items()
    }
    figures.save(figures.models(datasets, captions), folder / MOSAICS)
    figures.save(figures.learning_curves(datasets), folder / LEARNING)
    (folder / MEASURES).write_text(json.dumps(table, indent=2) + "\n")
    return table
