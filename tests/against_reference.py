"""What the gpu engine computes, compared with the reference engine in float64."""

import numpy as np

import asynchebb as ah

BARS = ah.Crossbars(6)


def compared(network, from_rest, stimuli=8, hold=80, trace=("updates", "active", "y"), seed=0):
    """Their states, which agree, and the gpu engine's traces, which agree, too."""
    state = network.init(np.random.default_rng(seed), np.float64)
    X = BARS.sample(np.random.default_rng(seed + 1), stimuli)
    ours, our_traces = ah.advance(network, state, X, hold, "gpu", trace, from_rest)
    theirs, their_traces = ah.advance(network, state, X, hold, "reference", trace, from_rest)
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9, err_msg=name)
    for name in trace:
        np.testing.assert_allclose(our_traces[name], their_traces[name], rtol=1e-9, atol=1e-9, err_msg=name)
    return ours, theirs, our_traces
