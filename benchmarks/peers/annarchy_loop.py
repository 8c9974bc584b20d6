"""The asynchronous Hebbian network (Potential) in ANNarchy (5.0.4.1).

What is rare is a spike, in ANNarchy's terms, and the rest is rate-coded:
- a neuron's burst is its spike: only then do its synapses learn (post_spike). As equations of the synapses,
  which run over all of them at every step, learning makes it about ten times as slow;
- an input spikes once for each stimulus: Wx is summed then, and afterwards moved by the neuron itself at its
  bursts, because w += η(y x − w) moves w·x by η(y x·x − w·x);
- My is summed over dense rows at every step (psp).

ANNarchy's templates for dense matrices name the spiking neuron in two ways, so that no post_spike with post.y
compiles; `_mend` puts this right. (Sparse matrices need no mending, but are about five times as slow.)
"""

import os
import sys
import tempfile
import time

import ANNarchy as ann
import numpy as np
from ANNarchy.generator.Projection.SingleThread import Dense

RESTED = 2**30  # the c of a neuron that has never burst may be too large for ANNarchy's 32-bit integers
FLAGS = "-O3 -march=native -ffast-math"  # a sum can be vectorised only if it may be reordered


def run(state, X, hold, model="asynchronous"):
    """Hold each row of X for `hold` steps. Gives the new state, and the seconds the steps took without compiling."""
    _mend()
    os.environ.setdefault("VIRTUAL_ENV", sys.prefix)  # where CMake looks for this Python and nanobind
    network = ann.Network(dt=1.0)
    dtype = state["W"].dtype
    network.config(dtype=getattr(ann, dtype.name), num_threads=1)
    inputs, neurons, feedforward, lateral = _build(network, *state["W"].shape)
    with tempfile.TemporaryDirectory() as directory:
        network.compile(directory=directory, compiler_flags=FLAGS, silent=True)
    feedforward.w = state["W"]
    lateral.w = state["M"]
    neurons.u = state["u"]
    neurons.y = state["y"]
    neurons.c = np.minimum(state["c"], RESTED)
    seconds = 0.0
    for x in X:
        inputs.x = x
        inputs.onset = 1.0
        neurons.Wx = 0.0
        neurons.x_x = float(x @ x)
        start = time.perf_counter()
        neurons.disable()  # spikes arrive one step later: the inputs' come before the neurons' first step
        network.step()
        neurons.enable()
        network.simulate(hold * network.dt)
        seconds += time.perf_counter() - start
    new_state = {name: np.array(getattr(neurons, name), dtype) for name in ("u", "y")}
    new_state["c"] = np.array(neurons.c, np.int64)
    new_state["W"] = np.array(feedforward.w, dtype)
    new_state["M"] = np.array(lateral.w, dtype)
    return new_state, seconds


def _build(network, n, m):
    """A step of ANNarchy: psp and pre_spike, the neurons' equations, their spikes and resets, post_spike."""
    stimulus = ann.Neuron(
        parameters="""
            x = 0.0
            onset = 0.0
        """,
        spike="onset > 0",
        reset="onset = 0",
    )
    neuron = ann.Neuron(
        parameters="""
            euler = 0.01 : population
            eta = 0.01 : population
            r_b = 1.0 : population
            r_r = 100.0 : population
            x_x = 0.0 : population
        """,
        equations="""
            Wx += g_stimulus
            u += euler * (Wx - g_inhibition)
            y = pos(u)
            c += 1 : int
        """,
        spike="(y > r_b) and (c > r_r + 1)",  # + 1: c has been counted up by then
        reset="""
            c = 0
            Wx += eta * (y * x_x - Wx)
        """,
    )
    excite = ann.Synapse(
        parameters="eta = 0.01 : projection",
        pre_spike="g_target += w * pre.x",
        post_spike="w += eta * (post.y * pre.x - w)",
    )
    inhibit = ann.Synapse(
        parameters="eta = 0.01 : projection",
        psp="w * pre.y",
        pre_spike="w = w",  # does nothing, but makes it a spiking synapse
        post_spike="w += eta * (post.y * pre.y - w)",
    )
    inputs = network.create(m, stimulus)
    neurons = network.create(n, neuron)
    feedforward = network.connect(inputs, neurons, "stimulus", excite)
    feedforward.all_to_all(0.0, storage_format="csr")
    lateral = network.connect(neurons, neurons, "inhibition", inhibit)
    lateral.all_to_all(0.0, allow_self_connections=True, storage_format="dense")
    return inputs, neurons, feedforward, lateral


def _mend():
    """Call the spiking neuron rk_post, as the equations do. A template without this fault stays as it is."""
    templates = Dense.conn_templates
    templates["post_event"] = templates["post_event"].replace("post_rank", "rk_post")
