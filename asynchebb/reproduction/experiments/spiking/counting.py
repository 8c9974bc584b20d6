"""What is counted in spiking networks and in the rate networks beside them: spikes, updates and the bars found."""

from __future__ import annotations

import numpy as np

from asynchebb import metrics
from asynchebb.contracts import FactoredStimulus
from asynchebb.reproduction.results import Kept, Key, Results, window

SHOWN = 20  # presentations in which spikes are counted


def row_updates(kept: Kept) -> np.ndarray:
    """Updates of a neuron's weights in each presentation: a rule's leak takes from every synapse."""
    _, n, m = kept["W"].shape
    updates = np.asarray(kept["trace_updates"])
    return updates * (int(kept["step"][-1]) / len(updates)) / (n + m)


def found_over_time(kept: Kept, bars: FactoredStimulus) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At each snapshot: the presentations so far, the updates so far, and the share of bars that are found."""
    updates, step = np.concatenate([[0], np.cumsum(row_updates(kept))]), np.asarray(kept["step"])
    shown = step * (len(updates) - 1) // step[-1]
    share = [metrics.count_fields(W, bars).distinct / len(bars.factors()) for W in kept["W"]]
    return shown, updates[shown], np.array(share)


def fired(results: Results, key: Key) -> dict[str, float]:
    """Some presentations during which the network goes on learning: spikes in each, spikes of a neuron that fires at
    all, updates of such neurons in the less active half, relative to the other half, the share of updates in the first
    tenth of a presentation, and how many neurons update in the same step, on average over all updates."""
    phase, names = results.runs[key].phases[0], ("spikes", "burst")
    shown = min(SHOWN, phase.samples)
    seen = window(results, key, -1, shown, names, seed=0)
    spikes, updates = (seen[name].reshape(shown, phase.hold, -1) for name in names)
    each, learns = spikes.sum(axis=1), updates.sum(axis=1)
    fires = each > 0
    weak = fires & (each <= np.median(each[fires]) if fires.any() else False)
    strong = fires & ~weak
    early = updates[:, : max(1, phase.hold // 10)].sum()
    return {
        "spikes": float(each.sum() / shown),
        "spikes_each": float(each.sum() / max(1, fires.sum())),
        "weak": float(learns[weak].sum() / max(1, weak.sum()) / max(1e-9, learns[strong].sum() / max(1, strong.sum()))),
        "early": float(early / max(1, updates.sum())),
        "together": float((updates.sum(axis=2) ** 2).sum() / max(1, updates.sum())),
    }
