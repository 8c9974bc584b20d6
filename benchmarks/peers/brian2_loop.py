"""The asynchronous Hebbian network in Brian2's C++ standalone mode (2.9.0, which needs numpy < 2.4): with rates
(Potential), and with spikes (IntegrateAndFire).

In Brian2's own terms what is sparse or rare is an event, and only its synapses are touched:
- `active` (y > 0): a neuron sends its y to the others; silent neurons add nothing to My;
- a spike: My, which fades with y, rises by what the spike adds;
- `burst`: a neuron's gate is open, so that its synapses learn, and its Wx (and with spikes its My) is summed anew.
Wx is otherwise summed once for each stimulus. (With summed variables, which run over all synapses
at every step, it is about six times as slow.)
"""

import tempfile

import brian2 as b2
import numpy as np

STEP = 1 * b2.ms  # Brian2 wants steps in seconds; the equations themselves are without dimensions
CONSTANTS = {"euler": 0.01, "eta": 0.01, "r_r": 100}  # `dt` would be Brian2's own
OF_MODEL = {
    "asynchronous": {"r_b": 1.0},
    "spiking": {"r_b": 0.5, "theta": 0.05, "fades": 0.01 / 0.2, "adds": 0.05 / 0.2},
}
RESTED = 2**30  # the c of a neuron that has never burst may be too large for Brian2's 32-bit integers


def run(state, X, hold, model="asynchronous", watched=False):
    """Hold each row of X for `hold` steps. Gives the new state, and the seconds the steps took without compiling.

    Brian2 takes the time itself, around its loop. If it is watched, the state has the spikes (steps, n) as well.
    """
    n, m = state["W"].shape
    b2.prefs.core.default_float_dtype = state["W"].dtype.type
    b2.prefs.devices.cpp_standalone.openmp_threads = 0  # without OpenMP
    b2.prefs.devices.cpp_standalone.extra_make_args_unix = ["-j1"]  # leave the other cores alone
    b2.device.reinit()  # forget the last run
    b2.set_device("cpp_standalone", build_on_run=False)
    b2.defaultclock.dt = STEP
    make = {"asynchronous": _rates, "spiking": _spikes}[model]
    neurons, feedforward, lateral, network = make(state, X, hold)
    if watched:
        monitor = b2.SpikeMonitor(neurons)
        network.add(monitor)
    network.run(len(X) * hold * STEP, namespace={**CONSTANTS, **OF_MODEL[model]})
    with tempfile.TemporaryDirectory() as directory:
        b2.device.build(directory=directory, with_output=False)
        new_state = {name: np.array(getattr(neurons, name)) for name in ("u", "y", "c")}
        new_state["W"] = np.array(feedforward.W).reshape(m, n).T
        new_state["M"] = np.array(lateral.M).reshape(n, n).T
        if watched:
            new_state["spikes"] = np.zeros((len(X) * hold, n), bool)
            new_state["spikes"][np.rint(monitor.t / STEP).astype(int), np.array(monitor.i)] = True
    return new_state, b2.device._last_run_time


VARIABLES = """u : 1
               y : 1
               c : integer
               Wx : 1
               My : 1"""
BURST = "y > r_b and c > r_r + 1"  # + 1: c has been counted up by then


def _inputs(X, hold):
    inputs = b2.NeuronGroup(X.shape[1], "x : 1", namespace={"stimuli": b2.TimedArray(X, dt=hold * STEP)})
    inputs.run_regularly("x = stimuli(t, i)", **_once_a_stimulus(hold))
    return inputs


def _once_a_stimulus(hold):
    return {"dt": hold * STEP, "when": "before_start"}


def _feedforward(inputs, neurons, hold):
    """Wx is summed once for each stimulus, and anew at a burst, when W learns (in the slot synapses, unless set)."""
    feedforward = b2.Synapses(
        inputs,
        neurons,
        "W : 1",
        on_post={"learn": "W += eta * (y_post * x_pre - W); Wx_post += W * x_pre"},
        on_event={"learn": "burst"},
    )
    feedforward.run_regularly("Wx_post += W * x_pre", **_once_a_stimulus(hold), order=1)  # after x and Wx are set
    return feedforward


def _start(state, inputs, neurons, feedforward, lateral):
    for synapses in (feedforward, lateral):
        synapses.connect()  # all to all, sorted by the sender: W and M are transposed
    feedforward.W = state["W"].T.ravel()
    lateral.M = state["M"].T.ravel()
    neurons.u = state["u"]
    neurons.y = state["y"]
    neurons.c = np.minimum(state["c"], RESTED)
    return neurons, feedforward, lateral, b2.Network(inputs, neurons, feedforward, lateral)


def _rates(state, X, hold):
    """What runs in a step is in the order of its slots: before_start, start, before_groups, groups, ..."""
    once_a_stimulus = _once_a_stimulus(hold)
    inputs = _inputs(X, hold)
    neurons = b2.NeuronGroup(len(state["W"]), VARIABLES, events={"active": "y > 0", "burst": BURST})
    neurons.run_regularly("Wx = 0", **once_a_stimulus)
    neurons.set_event_schedule("active", when="start")
    neurons.run_regularly("u += euler * (Wx - My); y = clip(u, 0, inf); c += 1; My = 0", when="groups")
    neurons.set_event_schedule("burst", when="thresholds")
    neurons.run_on_event("burst", "c = 0; Wx = 0", when="before_synapses")

    feedforward = _feedforward(inputs, neurons, hold)
    lateral = b2.Synapses(
        neurons,
        neurons,
        "M : 1",
        on_pre={"send": "My_post += M * y_pre"},
        on_post={"learn": "M += eta * (y_post * y_pre - M)"},
        on_event={"send": "active", "learn": "burst"},
    )
    lateral.send.when = "before_groups"
    return _start(state, inputs, neurons, feedforward, lateral)


def _spikes(state, X, hold):
    """Slots: groups (move), thresholds, synapses (spikes arrive), resets, after_resets (bursts), end (learn)."""
    once_a_stimulus = _once_a_stimulus(hold)
    inputs = _inputs(X, hold)
    neurons = b2.NeuronGroup(
        len(state["W"]), VARIABLES, threshold="u > theta", reset="u -= theta; y += adds", events={"burst": BURST}
    )
    neurons.run_regularly("Wx = 0", **once_a_stimulus)
    moves = "u = clip(u + euler * (Wx - My), -theta, inf); y -= y * fades; My -= My * fades; c += 1"
    neurons.run_regularly(moves, when="groups")
    neurons.set_event_schedule("burst", when="after_resets")
    neurons.run_on_event("burst", "c = 0; Wx = 0; My = 0", when="before_end")
    feedforward = _feedforward(inputs, neurons, hold)
    lateral = b2.Synapses(
        neurons,
        neurons,
        "M : 1",
        on_pre={"arrive": "My_post += M * adds"},
        on_post={"learn": "M += eta * (y_post * y_pre - M); My_post += M * y_pre"},
        on_event={"arrive": "spike", "learn": "burst"},
    )
    feedforward.learn.when = lateral.learn.when = "end"
    started = _start(state, inputs, neurons, feedforward, lateral)
    neurons.My = state["M"] @ state["y"]
    return started
