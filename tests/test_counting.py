"""What experiments count, against counts by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import asynchebb as ah
from asynchebb.reproduction import effort
from asynchebb.reproduction.claims import HOLDS, IN_PART
from asynchebb.reproduction.experiments.spiking import counting


def test_spikes_and_updates_are_counted_for_each_neuron_and_presentation(monkeypatch):
    """Two presentations of 20 steps, and four neurons, of which the last never fires."""
    spikes, updates = np.zeros((2, 2, 20, 4), bool)
    spikes[0, :8, 0] = spikes[1, :6, 0] = True  # 8 and 6 spikes of neuron 0
    spikes[0, 5:8, 1] = True  # 3 of neuron 1
    spikes[1, 3, 2] = True  # a single one of neuron 2
    updates[0, [0, 1, 19], 0] = updates[1, [0, 5], 0] = True  # three in the first tenth, which is two steps
    updates[0, [7, 19], 1] = updates[1, 5, 2] = True  # two in the same step as one of neuron 0

    def window(results, key, snapshot, presentations, names, seed):
        assert (snapshot, presentations, names) == (-1, 2, ("spikes", "burst"))
        return {"spikes": spikes.reshape(40, 4), "burst": updates.reshape(40, 4)}

    monkeypatch.setattr(counting, "window", window)
    run = SimpleNamespace(phases=[ah.Phase(ah.Crossbars(2), 2, hold=20)])
    assert counting.fired(SimpleNamespace(runs={"key": run}), "key") == pytest.approx(
        {
            "spikes": 18 / 2,
            "spikes_each": 18 / 4,  # over four pairs of neuron and presentation with a spike
            # The less active half: 3 and 1 spikes, with 2 and 1 updates. The other: 8 and 6, with 3 and 2.
            "weak": (3 / 2) / (5 / 2),
            "early": 3 / 8,
            "together": (4 * 1 + 4 * 2) / 8,  # four alone, four in a step with another
        }
    )


def test_a_network_that_never_fires_has_no_shares(monkeypatch):
    silent = {name: np.zeros((60, 3), bool) for name in ("spikes", "burst")}
    monkeypatch.setattr(counting, "window", lambda *args, **options: silent)
    run = SimpleNamespace(phases=[ah.Phase(ah.Crossbars(2), 3, hold=20)])
    counted = counting.fired(SimpleNamespace(runs={"key": run}), "key")
    assert counted == dict.fromkeys(("spikes", "spikes_each", "weak", "early", "together"), 0.0)


def test_row_updates_are_those_of_whole_rows_and_bars_are_found_as_they_come():
    """10 neurons and 4 pixels, 2 presentations of 50 steps: an update of a row changes 14 synapses."""
    bars = ah.Crossbars(2)
    W = np.zeros((3, 10, 4))
    W[1, 0], W[2, :2] = bars.factors()[0], bars.factors()[:2]
    kept = {"W": W, "step": [0, 50, 100], "trace_updates": [14 * 3 / 50, 14 * 5 / 50]}  # means per step
    assert counting.row_updates(kept) == pytest.approx([3, 5])
    shown, updates, share = counting.found_over_time(kept, bars)
    assert shown.tolist() == [0, 1, 2] and updates == pytest.approx([0, 3, 8]) and share.tolist() == [0, 0.25, 0.5]


@pytest.mark.parametrize(
    ("work", "hours", "gigabytes", "holds"),
    [
        # Two workers for half an hour each, for ten million steps: one hour of one core.
        ({"seconds": 1800, "workers": 2, "steps": 10_000_000, "peak_memory": 2_000_000_000}, 1, 2, HOLDS),
        ({"seconds": 1800, "workers": 2, "steps": 5_000_000, "peak_memory": 500_000_000}, 2, 0.5, HOLDS),
        ({"seconds": 10_800, "workers": 1, "steps": 10_000_000, "peak_memory": 3_999_000_000}, 3, 3.999, IN_PART),
        ({"seconds": 60, "workers": 1, "steps": 10_000_000, "peak_memory": 4_000_000_000}, 1 / 60, 4, IN_PART),
    ],
)
def test_hours_and_memory_are_those_of_ten_million_steps_on_one_core(work, hours, gigabytes, holds):
    found = effort.judged({"gpu": "", **work})
    [verdict] = found.verdicts.values()
    assert verdict.mean == pytest.approx({"hours": hours, "gigabytes": gigabytes})
    assert verdict.holds == found.overall == holds
