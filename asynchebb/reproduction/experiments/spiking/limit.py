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

from asynchebb import metrics
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
SMALL = tuple(theta for theta in SIZES if theta / TAU < SPIKING[NOTEBOOK].r_b)  # where one spike is no burst
PRESENTATIONS = 60
CHANGED = 0.05  # 1 − cosine of a field to what it was at the start, from which on it has been learned
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
        rate = results[RATE, seed]
        change = 1 - metrics.weight_similarity(rate["W"][-1], rate["W"][0])
        learned = change > CHANGED if (change > CHANGED).any() else change >= 0
        differences = []
        for theta in SIZES:
            alike = similarity(results[theta, seed], rate)[learned]
            differences.append(float(np.mean(1 - alike) / max(1e-9, np.mean(change[learned]))))
            measures.setdefault(apart(theta), []).append(differences[-1])
            measures.setdefault(same(theta), []).append(float(np.mean(alike > SAME)))
        measures.setdefault("learned", []).append(float(np.mean(learned)))
        measures.setdefault("exponent", []).append(exponent(SMALL, differences[-len(SMALL) :]))
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
        {
            apart(theta): f"difference between the fields of both networks, relative to what was learned, θ = {theta:g}"
            for theta in SIZES
        }
        | {
            same(
                SIZES[-1]
            ): f"share of learned fields that are practically identical (cosine above 0.95), θ = {SMALLEST}",
            "learned": "share of fields that the rate network has changed by then (1 − cosine above 0.05)",
            "exponent": f"power of θ by which the difference falls, from θ = {SMALL[0]:g} on, where r_b > θ/τ",
            "long_similarity": f"cosine between the fields of both networks at the end of training, θ = {FIRE.theta:g}",
        },
        (
            Part(
                "each time that θ is halved, the fields of both networks are more alike",
                lambda v: all(v[apart(small)] < v[apart(large)] for large, small in pairwise(SIZES)),
            ),
            Part("in proportion to θ or faster: the power is at least 1", lambda v: v.exponent >= 1),
            Part(
                f"at θ = {SMALLEST} the difference is at most a tenth of what was learned",
                lambda v: v[apart(SIZES[-1])] <= 0.1,
            ),
        ),
        f"the difference is {{{apart(SIZES[0])}}} of what was learned at θ = {SIZES[0]:g} and {{{apart(SIZES[-1])}}} "
        f"at θ = {SMALLEST}; it falls by a power {{exponent}} of θ. Over a whole training at the usual size of spikes "
        "the cosine falls to {long_similarity}.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "spiking-limit": f"A spiking network and the rate network that it becomes (`Relaxing`), after {PRESENTATIONS} "
        f"presentations to both, dt = {DT:g}. (A) 1 − cosine between the fields of the same neuron in both, relative "
        "to 1 − cosine between its field and what it was at the start, against the size θ of a spike; over the fields "
        "that the rate network has learned; all seeds; dotted: proportional to θ. Grey: one spike alone reaches r_b. "
        "(B) Share of these fields that are practically identical (cosine above 0.95). (C) The cosine over a whole "
        f"training at the usual size of spikes, θ = {FIRE.theta:g}, dt = {FIRE.dt:g}; dotted: between the rate "
        "network's fields and what they were at the start. (D) The 16 fields that changed most in the rate network, "
        "and the same with small and large spikes, as in A (seed 0)."
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["ABC", "xyz"], (7.2, 4.2), letters="ABC")
    axes["x"].set_title("D", loc="left", fontweight="bold", fontsize=10)
    step = np.asarray(results[LONG, RATE]["step"])
    axes["C"].plot(step, _over_training(results), ".-", color="tab:blue", linewidth=0.7)
    trained = results[LONG, RATE]["W"]
    own = [metrics.weight_similarity(trained[k], trained[0]).mean() for k in range(len(step))]
    axes["C"].plot(step, own, "k:", linewidth=0.8)
    figures.steps_axis(axes["C"], "cosine, mean")
    axes["C"].set_ylim(0, 1.02)
    measures = numbers[NOTEBOOK]
    differences = np.array([measures[apart(theta)] for theta in SIZES])
    axes["A"].loglog(SIZES, differences, ".-", color="tab:blue", linewidth=0.7)
    axes["A"].loglog(SMALL, np.mean(differences[-1]) * np.array(SMALL) / SIZES[-1], "k:", linewidth=0.8)
    axes["A"].axvspan(SPIKING[NOTEBOOK].r_b * TAU, SIZES[0] * 1.1, color="0.9", linewidth=0)
    axes["A"].set(xlabel="θ", ylabel="difference / learned")
    axes["B"].semilogx(SIZES, [measures[same(theta)] for theta in SIZES], ".-", color="tab:blue", linewidth=0.7)
    axes["B"].set(xlabel="θ", ylabel="share identical", ylim=(0, 1.02))
    for letter in "AB":
        axes[letter].set_xticks(SIZES[::2], [f"{theta:g}" for theta in SIZES[::2]])
        axes[letter].minorticks_off()
    rate = np.asarray(results[RATE, 0]["W"][-1])
    started = np.asarray(results[RATE, 0]["W"][0])
    chosen = np.argsort(metrics.weight_similarity(rate, started), kind="stable")[:16]
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
