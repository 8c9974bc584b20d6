"""Which settings a spiking network learns the parts with: size and filter of its spikes, threshold, pause and hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asynchebb.drawing import figures
from asynchebb.dynamics import IntegrateAndFire
from asynchebb.reproduction.claims import Claim, Numbers, Part
from asynchebb.reproduction.experiments.spiking.counting import fired, found_over_time
from asynchebb.reproduction.experiments.spiking.settings import FIRE, R_B, R_R, rate_run, run_of, spiking_run
from asynchebb.reproduction.readings import NOTEBOOK, sets
from asynchebb.reproduction.results import Key, Results, fields
from asynchebb.reproduction.scale import Scale
from asynchebb.runs.run import Run
from asynchebb.schedules import Asynchronous

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

# What is varied by itself. "size" is θ with τ = 4 θ, so that one spike always leaves a trace of θ/τ = r_b/2.
VARIED: dict[str, tuple[float, ...]] = {
    "theta": (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2),
    "tau": (0.05, 0.1, 0.2, 0.5, 1),
    "r_b": (0.2, 0.25, 0.3, 0.35, 0.5, 0.75, 1),
    "r_r": (0, 10, 30, 100, 300, 450, 500, 600),
    "hold": (50, 80, 100, 120, 150, 200, 500, 1500),
    "size": (0.025, 0.05, 0.1, 0.2, 0.5, 1, 2),
}
CROWDED = (0.25, 0.3, 0.35, 80, 120, 150)  # values that have no room for their labels
COMPARED = {"spiking": spiking_run, "rate network": rate_run}


def changed(name: str, value: float) -> dict[str, Any]:
    if name == "size":
        return {"dynamics": IntegrateAndFire(theta=value, tau=4 * value)}
    if name in ("theta", "tau"):
        return {"dynamics": replace(FIRE, **{name: value})}
    if name == "hold":
        return {}
    return {"schedule": replace(Asynchronous(R_B, R_R), **{name: value})}


def runs(scale: Scale) -> dict[Key, Run]:
    ours = scale._replace(steps=scale.side_steps)
    found: dict[Key, Run] = {
        (name, seed): run(scale, seed) for name, run in COMPARED.items() for seed in range(scale.seeds)
    }
    for name, values in VARIED.items():
        for value in values:
            found[name, value] = run_of(ours, changed(name, value), hold=int(value) if name == "hold" else None)
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    measures: dict[str, list[float]] = {}
    settings = [(name, value) for name, values in VARIED.items() for value in values]
    for name, value in settings:
        found = fields(results[name, value], bars) | fired(results, (name, value))
        measures |= {f"{name}_{value:g}_{measured}": [number] for measured, number in found.items()}
    enough = [measures[f"{name}_{value:g}_bars"][0] for name, value in settings if one_spike(name, value) >= 1]
    several = [
        measures[f"{name}_{value:g}_bars"][0]
        for name, value in settings
        if one_spike(name, value) <= 1 / 1.5 and name in ("theta", "tau", "size")
    ]
    measures |= {"one_spike_most_bars": [max(enough)], "several_spikes_least_bars": [min(several)]}
    return {NOTEBOOK: measures}


def one_spike(name: str, value: float) -> float:
    """What one spike leaves, θ/τ, as a share of the burst threshold."""
    parts = changed(name, value)
    dynamics, schedule = parts.get("dynamics", FIRE), parts.get("schedule", Asynchronous(R_B, R_R))
    return dynamics.theta / dynamics.tau / schedule.r_b


CLAIMS = (
    Claim(
        "V7",
        "ours",
        "One spike must not be a burst: the parts are learned only if the burst threshold r_b exceeds the trace θ/τ "
        "that a spike leaves.",
        "plasticity events are more likely during bursts of spikes",
        {
            "one_spike_most_bars": "share of bars among the 100 most active fields, at most, where r_b ≤ θ/τ",
            "several_spikes_least_bars": "share of bars, at least, for all θ and τ with r_b ≥ 1.5 θ/τ (r_b = 0.5)",
            "theta_0.05_weak": "updates of the less active half of the neurons that fire, relative to the other half, "
            "θ = 0.05",
            "theta_0.1_weak": "updates of the less active half, relative to the other half, θ = 0.1",
        },
        (
            Part("never more than half are bars if r_b ≤ θ/τ", lambda v: v.one_spike_most_bars <= 0.5),
            Part("always more than half if r_b ≥ 1.5 θ/τ", lambda v: v.several_spikes_least_bars > 0.5),
        ),
        "up to {one_spike_most_bars} of the 100 most active fields are bars if one spike suffices, and at least "
        "{several_spikes_least_bars} if it does not.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "spiking-settings": f"Shares of bars (blue) and crosses (orange) among the 100 most active fields after "
        f"{scale.side_steps:,} steps, one seed, as one setting is varied: (A) θ, (B) the time constant τ of the "
        "filter, (C) the burst threshold r_b, (D) the refractory period r_r, (E) the hold. Grey: one spike alone "
        "reaches r_b. (F) Fewer and larger spikes that leave the same trace (τ = 4 θ): shares against the spikes of a "
        "neuron that fires, per stimulus. (G) Bars found against the updates of a neuron's weights, for the spiking "
        "network and the notebook's rate network, all seeds.",
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    measures = numbers[NOTEBOOK]
    figure, axes = figures.lettered(["ABCD", "EFG"], (7.2, 4.0))
    labels = {"theta": "θ", "tau": "τ", "r_b": "r_b", "r_r": "r_r (steps)", "hold": "hold (steps)"}
    labels["size"] = "spikes per neuron that fires"
    for letter, (name, values) in zip("ABCDEF", VARIED.items(), strict=True):
        places: Sequence[float] = values
        if name == "size":
            places = [measures[f"size_{value:g}_spikes_each"][0] for value in values]
        elif name == "r_r":  # 0 has no place on a logarithmic axis
            places = range(len(values))
        for kind, colour in (("bars", "tab:blue"), ("crosses", "tab:orange")):
            of = [measures[f"{name}_{value:g}_{kind}"][0] for value in values]
            axes[letter].plot(places, of, ".-", color=colour, label=kind)
        alone = [place for place, value in zip(places, values, strict=True) if one_spike(name, value) >= 1]
        if alone:
            axes[letter].axvspan(min(alone) / 1.05, max(alone) * 1.05, color="0.9", linewidth=0)
        axes[letter].set(xlabel=labels[name], ylabel="share of 100 fields" if letter in "AE" else "", ylim=(0, 1.02))
        axes[letter].set_xscale("linear" if name == "r_r" else "log")
        marked = {place: f"{value:g}" for place, value in zip(places, values, strict=True) if value not in CROWDED}
        if name == "size":
            marked = {place: f"{place:g}" for place in (2, 5, 10, 20, 50)}
        axes[letter].set_xticks([*marked], [*marked.values()], fontsize=6)
        axes[letter].minorticks_off()
    axes["A"].legend(frameon=False, fontsize=6)
    bars = sets(scale)[0]
    for name, colour in zip(COMPARED, ("tab:blue", "k"), strict=True):
        for seed in range(scale.seeds):
            _, updates, share = found_over_time(results[name, seed], bars)
            label = name if seed == 0 else None
            axes["G"].plot(updates[1:], share[1:], ".-", color=colour, linewidth=0.7, label=label)
    axes["G"].set(xscale="log", xlabel="updates of a neuron's weights", ylabel="share of bars found", ylim=(0, 1.02))
    axes["G"].legend(frameon=False, fontsize=6, loc="lower right")
    return {"spiking-settings": figure}
