"""Spiking neurons: what refractoriness is good for. A raster of one stimulus, and the fields with and without it."""

import numpy as np
from matplotlib.figure import Figure

import asynchebb as ah
from asynchebb.drawing import figures


def main(samples: int = 1000, picture: str = "spiking.png") -> int:
    bars = ah.Crossbars(10)
    X = bars.sample(np.random.default_rng(0), samples)
    drawn = Figure(figsize=(9, 3), layout="constrained")
    raster, *mosaics = drawn.subplots(1, 3)
    for panel, r_r in zip(mosaics, (100, 0), strict=True):
        schedule = ah.Asynchronous(r_b=0.5, r_r=r_r)  # or ah.Bursts(spikes=3, window=20, r_r=r_r)
        network = ah.Network(200, bars.m, ah.IntegrateAndFire(), ah.Hebbian(0.01), schedule, ah.Exponential())
        state = network.init(np.random.default_rng(1))
        state, _ = ah.advance(network, state, X, hold=500)
        found = ah.metrics.count_fields(state.W, bars)
        print(f"r_r = {r_r}: {found.single} fields are single bars, {found.mixed} crosses, {found.distinct} bars found")
        figures.mosaic(panel, state.W, bars.shape, ah.respond(network, state, X[:20], hold=500).mean_activity)
        panel.set_title(f"r_r = {r_r}")
        if r_r:
            learned = found.distinct
            _, seen = ah.advance(network, state, X[:2], hold=500, trace=("spikes", "burst"))
            raster.plot(*np.nonzero(seen["spikes"]), "k|", markersize=1)
            raster.plot(*np.nonzero(seen["burst"]), "r.", markersize=2)
            raster.set(xlabel="Euler step", ylabel="neuron", title="spikes, and updates (red)")
    figures.save(drawn, picture)
    return learned


if __name__ == "__main__":
    main()
