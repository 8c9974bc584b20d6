"""The runs of an experiment, opened on access, and measurements that several experiments share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from asynchebb import metrics
from asynchebb.contracts import FactoredStimulus
from asynchebb.engines import advance
from asynchebb.engines.traces import LateSpikes
from asynchebb.files import check_seal
from asynchebb.reproduction.claims import Means, Part
from asynchebb.reproduction.readings import PAPER
from asynchebb.runs.run import Run
from asynchebb.runs.saved import state_at

Key = tuple  # identifies a run within its experiment: ("Potential", "discrete", 0)
Kept = Mapping[str, Any]  # a saved run's variables by name: an open HDF5 file
MOST_ACTIVE = 100  # the number of fields that the paper shows
SAME = 0.95  # the cosine above which a neuron is "practically identical" (the paper's words)


class Results(Mapping[Key, Any]):
    """Saved runs by the experiment's own keys, each an open HDF5 file."""

    def __init__(self, runs: Mapping[Key, Run], folder: Path, engine: str) -> None:
        self.runs, self.engine, self._folder = runs, engine, folder
        self._open: dict[str, h5py.File] = {}

    def __getitem__(self, key: Key) -> h5py.File:
        identity = self.runs[key].identity
        if identity not in self._open:
            file = self._folder / f"{identity}.nc"
            check_seal("out", file, "a run")
            self._open[identity] = h5py.File(file)
        return self._open[identity]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def of(self, part: str) -> Results:
        """Those whose keys begin with this, by the rest of their keys."""
        found = Results({key[1:]: run for key, run in self.runs.items() if key[0] == part}, self._folder, self.engine)
        found._open = self._open
        return found

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()


def activity(kept: Kept, snapshot: int = -1) -> np.ndarray:
    """Mean rates in the first test, by default at the end of the run."""
    return np.asarray(kept["mean_activity"][snapshot, PAPER])


def most_active(kept: Kept, snapshot: int = -1) -> np.ndarray:
    return np.argsort(-activity(kept, snapshot), kind="stable")[:MOST_ACTIVE]


def fields(kept: Kept, stimulus: FactoredStimulus, snapshot: int = -1) -> dict[str, float]:
    """Shares of bars and crosses among the most active neurons' fields, which the paper shows, and the share of all
    factors that are found."""
    shown = most_active(kept, snapshot)
    counted = metrics.count_fields(kept["W"][snapshot][shown], stimulus)
    return {
        "bars": counted.single / len(shown),
        "crosses": counted.mixed / len(shown),
        "factors": factors_found(kept, stimulus, snapshot),
    }


SHARES = {
    "bars": "share of the 100 most active fields that are bars",
    "crosses": "share of the 100 most active fields that are crosses",
    "factors": "share of all bars found",
}


def are_bars(model: str) -> tuple[Part, ...]:
    return (
        Part("more than half of the 100 most active fields are single bars", lambda v: v[f"{model}_bars"] > 0.5),
        Part(
            "some are single bars, and there are at least four of them per cross",
            lambda v: v[f"{model}_bars"] > 0 and v[f"{model}_bars"] >= 4 * v[f"{model}_crosses"],
        ),
        Part("at least 90 % of the bars are found", lambda v: v[f"{model}_factors"] >= 0.9),
    )


def factors_found(kept: Kept, stimulus: FactoredStimulus, snapshot: int = -1) -> float:
    """The share of factors shown by at least one neuron's field."""
    return metrics.count_fields(kept["W"][snapshot], stimulus).distinct / len(stimulus.factors())


def similarity(
    kept: Kept, other: Kept, weights: str = "W", snapshot: int = -1, of_other: int | None = None
) -> np.ndarray:
    """The cosine between each neuron's weights in two networks that started alike, at the same step; the snapshot may
    have a different index in the other network."""
    of_other = snapshot if of_other is None else of_other
    assert kept["step"][snapshot] == other["step"][of_other], "snapshots at different steps"
    return metrics.weight_similarity(kept[weights][snapshot], other[weights][of_other])


def likeness(kept: Kept, discrete: Kept, snapshot: int = -1, of_discrete: int = -1) -> dict[str, float]:
    """The share of neurons that match the discrete network, among all and among those active in it; the mean cosine."""
    found, active = {}, activity(discrete, of_discrete) > 0
    for weights in "WM":
        alike = similarity(kept, discrete, weights, snapshot, of_discrete)
        found[f"same_{weights}"] = float(np.mean(alike > SAME))
        found[f"same_active_{weights}"] = float(np.mean(alike[active] > SAME))
        found[f"similarity_{weights}"] = float(alike.mean())
    return found


def ends(kept: Kept) -> list[int]:
    """The last snapshot of each phase."""
    phase = np.asarray(kept["phase"])
    return [int(np.flatnonzero(phase == p)[-1]) for p in range(phase[-1] + 1)]


def after_sets(kept: Kept, shown: Sequence[FactoredStimulus]) -> dict[str, float]:
    """Errors before training, after each set's own phase and at the end, and what became of the fields."""
    error, last = np.asarray(kept["error_last"]), ends(kept)
    measures: dict[str, float] = {}
    for number, end in enumerate(last):
        measures[f"untrained_{number + 1}"] = float(error[0, number])
        measures[f"learnt_{number + 1}"] = float(error[end, number])
        measures[f"end_{number + 1}"] = float(error[-1, number])
    return measures | fate_of_fields(kept["W"][last[0]], kept["W"][-1], shown)


def fate_of_fields(before: np.ndarray, after: np.ndarray, shown: Sequence[FactoredStimulus]) -> dict[str, float]:
    """What became of the fields that showed a bar after the first set, and which fields came to encode other sets."""
    bar, bar_after = (metrics.tuned_to(W, shown[0]) for W in (before, after))
    keeps = (bar >= 0) & (bar == bar_after)
    bars, still = np.unique(bar[bar >= 0]), np.unique(bar_after[bar_after >= 0])
    takes_up = np.zeros(len(bar), bool)
    for stimulus in shown[1:]:
        takes_up |= metrics.tuned_to(after, stimulus) >= 0
    redundant = np.isin(bar, bar[keeps]) & (bar >= 0)  # another neuron shows the same bar and retains it
    free = (bar == -1) | redundant
    return {
        "bars_kept": float(np.isin(bars, still).mean()) if len(bars) else 0.0,
        "fields_kept": float(keeps.sum() / max(1, (bar >= 0).sum())),
        "took_up": float(takes_up.sum()),
        "taken_from_free": float(free[takes_up].mean()) if takes_up.any() else 0.0,
    }


LEARNT_AND_KEPT = {
    f"{name}_{number}": says.format(number)
    for name, says in (
        ("untrained", "error on set {} before training"),
        ("learnt", "error on set {} at the end of its own phase"),
        ("end", "error on set {} at the end"),
    )
    for number in (1, 2, 3)
}


def on_each_set(v: Means, model: str, name: str) -> np.ndarray:
    return np.array([v[f"{model}_{name}_{number}"] for number in (1, 2, 3)])


def are_learnt(model: str) -> Part:
    return Part(
        "each set is learned in its own phase: the error falls to at most half of the untrained network's",
        lambda v: bool(np.all(on_each_set(v, model, "learnt") <= on_each_set(v, model, "untrained") / 2)),
        is_given=True,
    )


def are_kept(model: str) -> tuple[Part, ...]:
    return (
        are_learnt(model),
        Part(
            "each set is retained: at the end the error is at most 0.1 above that after its own phase",
            lambda v: bool(np.all(on_each_set(v, model, "end") <= on_each_set(v, model, "learnt") + 0.1)),
        ),
        Part(
            "at the end the error on each set is at most half of the untrained network's",
            lambda v: bool(np.all(on_each_set(v, model, "end") <= on_each_set(v, model, "untrained") / 2)),
        ),
    )


BARS_KEPT = "at least 90 % of the bars are still shown at the end"


def window(
    results: Results,
    key: Key,
    snapshot: int,
    presentations: int,
    names: tuple[str, ...] = ("updates", "y", "burst"),
    seed: int | None = None,
) -> dict[str, np.ndarray]:
    """Traces of each step of some presentations that start at a snapshot, with learning as in the run. The stimuli are
    drawn from this seed, or from the snapshot's number."""
    run, kept = results.runs[key], results[key]
    phase = run.phases[0]
    rng = np.random.default_rng(snapshot % len(kept["step"]) if seed is None else seed)
    X = phase.stimulus.sample(rng, presentations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LateSpikes)  # the run has said so
        seen = advance(run.network, state_at(kept, snapshot), X, phase.hold, results.engine, names, phase.from_rest)[1]
    return seen | {"X": X}


def products(run: Run, seen: Mapping[str, np.ndarray]) -> np.ndarray:
    """At each step, the synapses with a non-zero Hebbian product, y_i x_j or y_i y_j, while neuron i may learn."""
    pre = (seen["y"] > 0).sum(axis=1) + np.repeat((seen["X"] > 0).sum(axis=1), run.phases[0].hold)
    return ((seen["y"] > 0) & seen["burst"]).sum(axis=1) * pre
