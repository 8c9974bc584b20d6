"""The asynchronous Hebbian network (Potential) in Brian2's C++ standalone mode (2.9.0, which needs numpy < 2.4).

In Brian2's own terms what is sparse or rare is an event, and only its synapses are touched:
- `active` (y > 0): a neuron sends its y to the others; silent neurons add nothing to My;
- `burst`: a neuron's gate is open, so that its synapses learn, and its Wx is summed anew.
Wx is otherwise summed once for each stimulus. (With summed variables, which run over all synapses
at every step, it is about six times as slow.)
"""

import tempfile

import brian2 as b2
import numpy as np

STEP = 1 * b2.ms  # Brian2 wants steps in seconds; the equations themselves are without dimensions
CONSTANTS = {"euler": 0.01, "eta": 0.01, "r_b": 1.0, "r_r": 100}  # `dt` would be Brian2's own
RESTED = 2**30  # the c of a neuron that has never burst may be too large for Brian2's 32-bit integers


def run(state, X, hold, model="asynchronous"):
    """Hold each row of X for `hold` steps. Gives the new state, and the seconds the steps took without compiling.

    Brian2 takes the time itself, around its loop.
    """
    n, m = state["W"].shape
    b2.prefs.core.default_float_dtype = state["W"].dtype.type
    b2.prefs.devices.cpp_standalone.openmp_threads = 0  # without OpenMP
    b2.prefs.devices.cpp_standalone.extra_make_args_unix = ["-j1"]  # leave the other cores alone
    b2.device.reinit()  # forget the last run
    b2.set_device("cpp_standalone", build_on_run=False)
    b2.defaultclock.dt = STEP
    neurons, feedforward, lateral, network = _network(state, X, hold)
    network.run(len(X) * hold * STEP, namespace=CONSTANTS)
    with tempfile.TemporaryDirectory() as directory:
        b2.device.build(directory=directory, with_output=False)
        new_state = {name: np.array(getattr(neurons, name)) for name in ("u", "y", "c")}
        new_state["W"] = np.array(feedforward.W).reshape(m, n).T
        new_state["M"] = np.array(lateral.M).reshape(n, n).T
    return new_state, b2.device._last_run_time


def _network(state, X, hold):
    """What runs in a step is in the order of its slots: before_start, start, before_groups, groups, ..."""
    n, m = state["W"].shape
    once_a_stimulus = {"dt": hold * STEP, "when": "before_start"}

    inputs = b2.NeuronGroup(m, "x : 1", namespace={"stimuli": b2.TimedArray(X, dt=hold * STEP)})
    inputs.run_regularly("x = stimuli(t, i)", **once_a_stimulus)

    neurons = b2.NeuronGroup(
        n,
        """u : 1
           y : 1
           c : integer
           Wx : 1
           My : 1""",
        events={"active": "y > 0", "burst": "y > r_b and c > r_r + 1"},  # + 1: c has been counted up by then
    )
    neurons.run_regularly("Wx = 0", **once_a_stimulus)
    neurons.set_event_schedule("active", when="start")
    neurons.run_regularly("u += euler * (Wx - My); y = clip(u, 0, inf); c += 1; My = 0", when="groups")
    neurons.set_event_schedule("burst", when="thresholds")
    neurons.run_on_event("burst", "c = 0; Wx = 0", when="before_synapses")

    feedforward = b2.Synapses(
        inputs,
        neurons,
        "W : 1",
        on_post={"learn": "W += eta * (y_post * x_pre - W); Wx_post += W * x_pre"},
        on_event={"learn": "burst"},  # in the slot synapses
    )
    feedforward.run_regularly("Wx_post += W * x_pre", **once_a_stimulus, order=1)  # after x and Wx are set

    lateral = b2.Synapses(
        neurons,
        neurons,
        "M : 1",
        on_pre={"send": "My_post += M * y_pre"},
        on_post={"learn": "M += eta * (y_post * y_pre - M)"},
        on_event={"send": "active", "learn": "burst"},
    )
    lateral.send.when = "before_groups"

    for synapses in (feedforward, lateral):
        synapses.connect()  # all to all, sorted by the sender: W and M are transposed
    feedforward.W = state["W"].T.ravel()
    lateral.M = state["M"].T.ravel()
    neurons.u = state["u"]
    neurons.y = state["y"]
    neurons.c = np.minimum(state["c"], RESTED)
    return neurons, feedforward, lateral, b2.Network(inputs, neurons, feedforward, lateral)
