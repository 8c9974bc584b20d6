"""The layout of a run's file: each variable's axes, type and meaning."""

from __future__ import annotations

import numpy as np

from asynchebb.measures import Measure
from asynchebb.network import State

FORMAT = "asynchebb run"

# Each variable's axes, type ("float": that of the run) and meaning. Variables over snapshots are values at
# each snapshot; traces cover the time in between.
COORDINATES = {
    "step": (("snapshot",), "int64", "Euler steps since the start"),
    "phase": (("snapshot",), "int64", "the phase that the snapshot lies in"),
    "stimulus": (("probe",), "text", "what the probe shows"),
    "hold": (("probe",), "int64", "Euler steps for which it is held"),
}
STATE = {
    "W": (("snapshot", "neuron", "input"), "float", "feed-forward weights"),
    "M": (("snapshot", "neuron", "presynaptic"), "float", "lateral weights"),
    "u": (("snapshot", "neuron"), "float", "what the dynamics integrate"),
    "y": (("snapshot", "neuron"), "float", "rates"),
    "c": (("snapshot", "neuron"), "int64", "Euler steps since the last update"),
    "a": (("snapshot", "neuron"), "float", "activity accumulated by the rule"),
    # The first two only where the network needs them:
    "h": (("snapshot", "neuron"), "float", "the third variable of the dynamics"),
    "recent": (
        ("snapshot", "window", "neuron"),
        "uint8",
        "spikes in the last steps: those of step t in row t mod window",
    ),
    "t": (("snapshot",), "int64", "Euler steps as the network counts them, which choose its random numbers"),
}
DIMENSIONS = ("snapshot", "neuron", "presynaptic", "input", "window", "probe", "sample")
TRACES = {
    "trace_updates": (("sample",), "float64", "synapses changed in an Euler step, mean over each stimulus"),
    "trace_active": (("sample",), "float64", "neurons with a rate above 0, mean over each stimulus"),
    "trace_y": (("snapshot", "neuron"), "float", "rate, mean since the snapshot before"),
    "trace_burst": (("snapshot", "neuron"), "float64", "share of steps with an open gate, since the snapshot before"),
    "trace_spikes": (("snapshot", "neuron"), "float64", "spikes per step, since the snapshot before"),
}
NOT_MEASURES = {*COORDINATES, *STATE, *TRACES, *DIMENSIONS}  # everything else in a file is a measure
PARTS = ("dynamics", "rule", "schedule", "weights")  # of a network


def saved_arrays(state: State) -> dict[str, np.ndarray]:
    """What of a state is saved: all that its network needs."""
    return {name: array for name, array in state._asdict().items() if array.size}


def variable(measure: Measure) -> tuple[tuple[str, ...], str, str]:
    """A measure as a variable of the file."""
    return ("snapshot", "probe", "neuron")[: 3 if measure.per_neuron else 2], "float64", measure.label
