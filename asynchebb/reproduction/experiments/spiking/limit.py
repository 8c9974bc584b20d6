"""As spikes become small, does the spiking network become a rate network?

Its filtered spike trains relax to the positive part of the drive, so the network that it should become is that of
`Relaxing` rates. Both start alike and see the same stimuli, each from rest; the time step is short enough for the
smallest spikes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from asynchebb.contracts import Dynamics
from asynchebb.drawing import figures
from asynchebb.dynamics import IntegrateAndFire, Relaxing
from asynchebb.network import Network
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.experiments.spiking.settings import FIRE, SPIKING
from asynchebb.reproduction.readings import NOTEBOOK, sets
from asynchebb.reproduction.results import SAME, Key, Results, similarity
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Phase, Probe, Run
from asynchebb.schedules import Asynchronous

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

DT, TAU = 0.002, FIRE.tau
FINER = round(FIRE.dt / DT)  # steps for one of the others
SIZES = (0.2, 0.1, 0.05, 0.025, 0.0125)  # θ
PRESENTATIONS = 20
RATE = "rate"
# Over a whole training, at the usual time step and size of spikes.
LONG, SNAPSHOTS = "long", 12


def runs(scale: Scale) -> dict[Key, Run]:
    bars, base = sets(scale)[0], SPIKING[NOTEBOOK]
    hold = base.hold * FINER
    samples = max(1, min(PRESENTATIONS, scale.side_steps // base.hold))
    schedule = Asynchronous(base.r_b, base.r_r * FINER)
    dynamics: dict[object, Dynamics] = {RATE: Relaxing(DT, TAU)}
    dynamics |= {theta: IntegrateAndFire(DT, theta, TAU) for theta in SIZES}
    probe = Probe(bars, 1, scale.settling)
    phase = Phase(bars, max(1, scale.side_steps // base.hold), base.hold, SNAPSHOTS, from_rest=True)
    trained = base.network("asynchronous", scale.n, bars.m)
    relaxing = replace(trained, dynamics=Relaxing(FIRE.dt, TAU))
    long = {name: Run(each, (phase,), (probe,), ()) for name, each in (("spiking", trained), (RATE, relaxing))}
    return {(LONG, name): run for name, run in long.items()} | {
        (name, seed): Run(
            Network(scale.n, bars.m, each, base.asynchronous, schedule, base.weights),
            (Phase(bars, samples, hold, 1, from_rest=True),),
            (probe,),
            (),
            seed,
        )
        for name, each in dynamics.items()
        for seed in range(scale.seeds)
    }


def measure(scale: Scale, results: Results) -> Numbers:
    measures: dict[str, list[float]] = {}
    for seed in range(scale.seeds):
        differences = []
        for theta in SIZES:
            alike = similarity(results[theta, seed], results[RATE, seed])
            differences.append(float(1 - alike.mean()))
            measures.setdefault(apart(theta), []).append(differences[-1])
            measures.setdefault(same(theta), []).append(float(np.mean(alike > SAME)))
        measures.setdefault("exponent", []).append(exponent(SIZES[1:], differences[1:]))
    measures["long_similarity"] = [float(_over_training(results)[-1])]
    return {NOTEBOOK: measures}


def _over_training(results: Results) -> np.ndarray:
    """The mean cosine between the fields of both networks at each snapshot of a whole training."""
    spiking, rate = results[LONG, "spiking"], results[LONG, RATE]
    return np.array([similarity(spiking, rate, snapshot=k).mean() for k in range(len(rate["step"]))])


def apart(theta: float) -> str:
    """The name of a measure."""
    return f"apart_{theta:g}".replace(".", "_")


def same(theta: float) -> str:
    return f"same_{theta:g}".replace(".", "_")


def exponent(sizes: tuple[float, ...], differences: list[float]) -> float:
    """The power of θ with which networks come apart: the slope in a plot with logarithmic axes."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(differences, 1e-12)), 1)[0])


SMALLEST = f"{SIZES[-1]:g}"
CLAIMS = (
    Claim(
        "V11",
        "ours",
        "As spikes become small it becomes a rate network.",
        "a systematic comparison between spiking and rate-based models will be of interest",
        {apart(theta): f"1 − cosine between the fields of both networks, mean, θ = {theta:g}" for theta in SIZES}
        | {
            same(SIZES[-1]): f"share of fields that are practically identical (cosine above 0.95), θ = {SMALLEST}",
            "exponent": f"power of θ with which 1 − cosine falls, from θ = {SIZES[1]:g} on, where r_b ≥ θ/τ",
            "long_similarity": f"cosine between the fields of both networks at the end of training, θ = {FIRE.theta:g}",
        },
        (
            Part(
                "each time that θ is halved, the fields of both networks are more alike",
                lambda v: all(v[apart(small)] < v[apart(large)] for large, small in pairwise(SIZES)),
            ),
            Part("in proportion to θ or faster: the power is at least 1", lambda v: v.exponent >= 1),
            Part(f"at least 90 % are practically identical at θ = {SMALLEST}", lambda v: v[same(SIZES[-1])] >= 0.9),
        ),
        f"1 − cosine falls from {{{apart(SIZES[0])}}} at θ = {SIZES[0]:g} to {{{apart(SIZES[-1])}}} at θ = {SMALLEST}, "
        f"by a power {{exponent}} of θ; {{{same(SIZES[-1])}}} of the fields are practically identical then. Over a "
        "whole training at the usual size of spikes the cosine falls to {long_similarity}.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "spiking-limit": f"A spiking network and the rate network that it becomes (`Relaxing`), after {PRESENTATIONS} "
        f"presentations to both, dt = {DT:g}. (A) 1 − cosine between the fields of the same neuron in both, mean over "
        "neurons, against the size θ of a spike, all seeds; dotted: proportional to θ. Grey: one spike alone exceeds "
        "r_b. (B) Share of neurons whose fields are practically identical (cosine above 0.95). (C) The cosine over a "
        f"whole training at the usual size of spikes, θ = {FIRE.theta:g}, dt = {FIRE.dt:g}. Both learn bars, but small "
        "differences decide which neuron learns which. (D) The fields of the same 16 neurons in the rate network and "
        "with small and large spikes, as in A (seed 0)."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABC", "xyz"], (7.2, 4.2), letters="ABC")
    axes["x"].set_title("D", loc="left", fontweight="bold", fontsize=10)
    step = np.asarray(results[LONG, RATE]["step"])
    axes["C"].plot(step, _over_training(results), ".-", color="tab:blue", linewidth=0.7)
    figures.steps_axis(axes["C"], "cosine, mean")
    axes["C"].set_ylim(0, 1.02)
    measures = numbers[NOTEBOOK]
    differences = np.array([measures[apart(theta)] for theta in SIZES])
    axes["A"].loglog(SIZES, differences, ".-", color="tab:blue", linewidth=0.7)
    axes["A"].loglog(SIZES[1:], np.mean(differences[-1]) * np.array(SIZES[1:]) / SIZES[-1], "k:", linewidth=0.8)
    axes["A"].axvspan(SPIKING[NOTEBOOK].r_b * TAU, SIZES[0] * 1.1, color="0.9", linewidth=0)
    axes["A"].set(xlabel="θ", ylabel="1 − cosine")
    axes["B"].semilogx(SIZES, [measures[same(theta)] for theta in SIZES], ".-", color="tab:blue", linewidth=0.7)
    axes["B"].set(xlabel="θ", ylabel="share identical", ylim=(0, 1.02))
    for letter in "AB":
        axes[letter].set_xticks(SIZES[::2], [f"{theta:g}" for theta in SIZES[::2]])
        axes[letter].minorticks_off()
    rate = np.asarray(results[RATE, 0]["W"][-1])
    started = np.asarray(results[RATE, 0]["W"][0])
    chosen = np.argsort(np.sum((rate - started) ** 2, axis=1), kind="stable")[::-1][:16]
    for letter, key, title in (
        ("x", RATE, "rates"),
        ("y", SIZES[-1], f"θ = {SMALLEST}"),
        ("z", SIZES[0], f"θ = {SIZES[0]:g}"),
    ):
        kept = results[key, 0]
        W = np.asarray(kept["W"][-1])[chosen]
        figures.mosaic(axes[letter], W, figures.picture_shape(kept), np.arange(len(W), 0.0, -1))
        axes[letter].set_title(title, fontsize=7)
    return {"spiking-limit": figure}
