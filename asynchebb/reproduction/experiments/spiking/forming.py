"""What a spiking network learns from crossed bars, by which gate and with which neurons, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import metrics
from asynchebb.contracts import FactoredStimulus
from asynchebb.drawing import figures
from asynchebb.dynamics import EscapeNoise, HomeostaticIntegrateAndFire, IntegrateAndFire, LeakyIntegrateAndFire
from asynchebb.reproduction.claims import Claim, Means, Numbers, Part
from asynchebb.reproduction.experiments.spiking.counting import SHOWN, fired, found_over_time, row_updates
from asynchebb.reproduction.experiments.spiking.settings import R_B, R_R, SPIKING, rate_run, run_of, spiking_run
from asynchebb.reproduction.readings import NOTEBOOK, PRESET, SETTLED, sets
from asynchebb.reproduction.results import SHARES, Kept, Key, Results, are_bars, fields, window
from asynchebb.reproduction.scale import Scale
from asynchebb.rules import Hebbian, Oja, SpikePairs
from asynchebb.runs.run import Run
from asynchebb.schedules import Asynchronous, AtSpikes, Bursts, Continuous, Discrete

if TYPE_CHECKING:
    from asynchebb.drawing.figures import Figure

# What is changed in the network ("filtered" is the one without changes): with all seeds, and with one.
ALL_SEEDS: dict[str, dict[str, Any]] = {
    "unrefractory": {"schedule": Asynchronous(R_B, 0)},
    # About 50 times as many updates, each a fiftieth: as much is learned in a presentation.
    "unrefractory_slow": {"schedule": Asynchronous(R_B, 0), "rule": Hebbian(0.0002)},
    "bursts": {"schedule": Bursts()},
    "unrefractory_bursts": {"schedule": Bursts(r_r=0)},
    "pairs": {"schedule": AtSpikes(), "rule": SpikePairs(0.01)},
    "slow_pairs": {"schedule": AtSpikes(), "rule": SpikePairs(0.001)},
    "sparse": {"dynamics": IntegrateAndFire(theta=0.5, tau=2.0)},
    "homeostatic": {"dynamics": HomeostaticIntegrateAndFire()},
}
ONE_SEED: dict[str, dict[str, Any]] = {
    "leaky": {"dynamics": LeakyIntegrateAndFire()},
    "noisy": {"dynamics": EscapeNoise()},
    "discrete": {"schedule": Discrete()},
    "continuous": {"schedule": Continuous(), "rule": Oja(0.001)},
}
UNDER_PRESET = ("filtered", "unrefractory")
ENOUGH = 0.9  # the share of bars that a network must have found
SNAPSHOTS = {"unrefractory": 6, "bursts": 6, "homeostatic": 6}  # for the curves of the figure; the others have one


def runs(scale: Scale) -> dict[Key, Run]:
    ours = scale._replace(steps=scale.side_steps)
    found: dict[Key, Run] = {}
    for seed in range(scale.seeds):
        for name, changes in ALL_SEEDS.items():
            found[NOTEBOOK, name, seed] = run_of(ours, changes, seed=seed, snapshots=SNAPSHOTS.get(name, 1))
        for name in UNDER_PRESET:
            schedule = Asynchronous(SPIKING[PRESET].r_b, 0 if name == "unrefractory" else R_R)
            found[PRESET, name, seed] = run_of(scale, {"schedule": schedule}, PRESET, seed)  # it learns more slowly
        found[NOTEBOOK, "filtered", seed] = spiking_run(scale, seed)
        found[NOTEBOOK, "rate", seed] = rate_run(scale, seed)
    for name, changes in ONE_SEED.items():
        found[NOTEBOOK, name, 0] = run_of(ours, changes)
    return found


def measure(scale: Scale, results: Results) -> Numbers:
    bars = sets(scale)[0]
    numbers: dict[str, dict[str, list[float]]] = {NOTEBOOK: {}, PRESET: {}}
    for key in results:
        kept = results[key]
        if key[0] == PRESET:
            for measured, value in fields(kept, bars).items():
                numbers[PRESET].setdefault(f"{key[1]}_{measured}", []).append(value)
            continue
        found = fields(kept, bars) | fired(results, key)
        found["updates"] = float(np.mean(row_updates(kept)[-SHOWN:]))
        found["all_bars"] = metrics.count_fields(kept["W"][-1], bars).single / len(kept["W"][-1])
        found["gini"] = float(kept["gini"][-1, SETTLED])
        if key[1] in ("filtered", "rate"):
            found |= _until_found(kept, bars)
        for measured, value in found.items():
            numbers[NOTEBOOK].setdefault(f"{key[1]}_{measured}", []).append(value)
    return numbers


def _until_found(kept: Kept, bars: FactoredStimulus) -> dict[str, float]:
    """The presentations and updates up to the first snapshot at which enough bars are found, or in all."""
    shown, updates, share = found_over_time(kept, bars)
    first = int(np.argmax(share >= ENOUGH)) if (share >= ENOUGH).any() else -1
    return {"presentations": float(shown[first]), "events": float(updates[first])}


def _shows(name: str, of: dict[str, str], says: str) -> dict[str, str]:
    return {f"{name}_{measured}": f"{text}, {says}" for measured, text in of.items()}


def _are_crosses(name: str, how: str = "") -> tuple[Part, ...]:
    return (
        Part(f"more than half of the 100 most active fields are crosses{how}", lambda v: v[f"{name}_crosses"] > 0.5),
        Part(
            f"some are crosses, and there are at least four of them per single bar{how}",
            lambda v: v[f"{name}_crosses"] > 0 and v[f"{name}_crosses"] >= 4 * v[f"{name}_bars"],
        ),
    )


def _are_bars(name: str, how: str) -> tuple[Part, ...]:
    return tuple(part._replace(says=f"{part.says} ({how})") for part in are_bars(name))


def _in_factor_two(v: Means) -> bool:
    return v.rate_events / 2 <= v.filtered_events <= 2 * v.rate_events


NOT_PAPERS = "not in the paper, which asks whether spiking networks behave in the same way"
BARS_AND_CROSSES = {name: SHARES[name] for name in ("bars", "crosses")}
CLAIMS = (
    Claim(
        "V1",
        "ours",
        "With spiking neurons, too, the asynchronous network learns the parts of crosses.",
        NOT_PAPERS,
        _shows("filtered", SHARES, "spiking"),
        are_bars("filtered"),
        "{filtered_bars} of the 100 most active fields are bars, {filtered_crosses} crosses, and {filtered_factors} of "
        "the bars are found.",
    ),
    Claim(
        "V2",
        "ours",
        "Without refractoriness it learns the crosses.",
        "not in the paper; the spiking counterpart of 1c",
        _shows("unrefractory", BARS_AND_CROSSES, "spiking, r_r = 0"),
        _are_crosses("unrefractory"),
        "with r_r = 0, {unrefractory_crosses} of the 100 most active fields are crosses and {unrefractory_bars} bars.",
    ),
    Claim(
        "V2′",
        "ours",
        "That is because it learns too much from each stimulus: at a rate that is lowered accordingly, it learns the "
        "parts without refractoriness, too.",
        "not in the paper; a control",
        _shows("unrefractory_slow", SHARES, "spiking, r_r = 0, η = 0.0002")
        | {
            "unrefractory_slow_updates": "updates per presentation at the end, r_r = 0, η = 0.0002",
            "unrefractory_updates": "updates per presentation at the end, r_r = 0, η = 0.01",
            "filtered_updates": "updates per presentation at the end, r_r = 100, η = 0.01",
        },
        (
            *are_bars("unrefractory_slow"),
            Part(
                "it takes at least ten times as many updates",
                lambda v: v.unrefractory_slow_updates >= 10 * v.filtered_updates,
            ),
        ),
        "{unrefractory_slow_bars} of the 100 most active fields are bars, {unrefractory_slow_crosses} crosses, and "
        "{unrefractory_slow_factors} of the bars are found, with {unrefractory_slow_updates} updates per presentation "
        "instead of {filtered_updates}.",
    ),
    Claim(
        "V3",
        "ours",
        "A burst may be a given number of spikes within a window: the parts are learned again, and without "
        "refractoriness the crosses.",
        NOT_PAPERS,
        _shows("bursts", SHARES, "3 spikes in 20 steps")
        | _shows("unrefractory_bursts", BARS_AND_CROSSES, "3 spikes in 20 steps, r_r = 0"),
        (*are_bars("bursts"), *_are_crosses("unrefractory_bursts", " (r_r = 0)")),
        "{bursts_bars} of the 100 most active fields are bars, {bursts_crosses} crosses; with r_r = 0, "
        "{unrefractory_bursts_bars} and {unrefractory_bursts_crosses}.",
    ),
    Claim(
        "V4",
        "ours",
        "Pair-based updates, at every spike, do not learn the parts.",
        "not in the paper; a control",
        _shows("pairs", BARS_AND_CROSSES, "at every spike, η = 0.01")
        | _shows("slow_pairs", BARS_AND_CROSSES, "at every spike, η = 0.001"),
        (
            Part("at most half of the 100 most active fields are bars (η = 0.01)", lambda v: v.pairs_bars <= 0.5),
            Part("at most half are bars (η = 0.001)", lambda v: v.slow_pairs_bars <= 0.5),
        ),
        "{pairs_bars} of the 100 most active fields are bars with η = 0.01, and {slow_pairs_bars} with η = 0.001.",
    ),
    Claim(
        "V5",
        "ours",
        "Neither a leak of the potential nor stochastic spiking changes what is learned.",
        NOT_PAPERS,
        _shows("leaky", SHARES, "leaky") | _shows("noisy", SHARES, "escape noise"),
        (*_are_bars("leaky", "leaky"), *_are_bars("noisy", "escape noise")),
        "{leaky_bars} of the 100 most active fields are bars in the leaky and {noisy_bars} in the noisy network, "
        "{leaky_crosses} and {noisy_crosses} crosses.",
    ),
    Claim(
        "V6",
        "ours",
        "If all neurons learn at every step, or at the end of each presentation, the parts are not learned.",
        "not in the paper; the spiking counterparts of 1c and, where the rate network does learn them, 1b",
        _shows("continuous", BARS_AND_CROSSES, "continuous") | _shows("discrete", SHARES, "discrete"),
        (
            Part(
                "at most half of the 100 most active fields are bars (continuous)", lambda v: v.continuous_bars <= 0.5
            ),
            Part("at most half are bars (discrete)", lambda v: v.discrete_bars <= 0.5),
            Part("fewer than 90 % of the bars are found (discrete)", lambda v: v.discrete_factors < 0.9),
        ),
        "{continuous_bars} of the 100 most active fields of the continuous network are bars, {continuous_crosses} "
        "crosses; of the discrete network's, {discrete_bars} and {discrete_crosses}, and it finds {discrete_factors} "
        "of the bars.",
    ),
    Claim(
        "V8",
        "ours",
        "A few spikes per stimulus suffice.",
        "sparse spiking may restrict plasticity events in a similar way to refractoriness",
        _shows("sparse", SHARES, "θ = 0.5, τ = 2")
        | {
            "sparse_spikes_each": "spikes per stimulus and neuron that fires, θ = 0.5, τ = 2",
            "sparse_spikes": "spikes per stimulus, all neurons, θ = 0.5, τ = 2",
            "filtered_spikes": "spikes per stimulus, all neurons, θ = 0.05, τ = 0.2",
        },
        (
            *are_bars("sparse"),
            Part("a neuron that fires has at most five spikes per stimulus", lambda v: v.sparse_spikes_each <= 5),
        ),
        "with {sparse_spikes_each} spikes per stimulus and neuron that fires, {sparse_bars} of the 100 most active "
        "fields are bars, {sparse_crosses} crosses, and {sparse_factors} of the bars are found.",
    ),
    Claim(
        "V9",
        "ours",
        "It needs about as many plasticity events as the rate network to find the bars.",
        "the asynchronous model produces fewer plasticity events than a continuous model",
        {
            "filtered_events": "updates, summed over neurons, until 90 % of the bars are found, spiking",
            "rate_events": "updates until then, rate network",
            "filtered_presentations": "presentations until then, spiking",
            "rate_presentations": "presentations until then, rate network",
            "filtered_updates": "updates per presentation at the end, spiking",
            "rate_updates": "updates per presentation at the end, rate network",
        },
        (Part("the numbers of events differ by at most a factor of two", _in_factor_two),),
        "until 90 % of the bars are found, {filtered_events} updates, summed over neurons, in the spiking network "
        "({filtered_presentations} presentations) and {rate_events} in the rate network ({rate_presentations}).",
    ),
    Claim(
        "V9′",
        "ours",
        "Its neurons learn at different times, as in the rate network.",
        "not in the paper, whose model is asynchronous",
        {
            "filtered_together": "neurons that update in the same step, mean over updates, spiking",
            "noisy_together": "neurons that update in the same step, escape noise",
            "rate_together": "neurons that update in the same step, rate network",
        },
        (
            Part("at most twice as many update together", lambda v: v.filtered_together <= 2 * v.rate_together),
            Part("at most twice as many with escape noise", lambda v: v.noisy_together <= 2 * v.rate_together),
        ),
        "on average {filtered_together} neurons update in the same step, {noisy_together} with escape noise and "
        "{rate_together} in the rate network.",
    ),
    Claim(
        "V10",
        "ours",
        "With a homeostatic threshold more neurons take part.",
        "a homeostatic mechanism which maintains an appropriate target activity level enables stable competitive "
        "learning (Triesch 2004; Savin et al. 2010)",
        {
            "homeostatic_all_bars": "share of all fields that are single bars, homeostatic",
            "filtered_all_bars": "share of all fields that are single bars, without homeostasis",
            "homeostatic_gini": "Gini of mean rates, homeostatic",
            "filtered_gini": "Gini of mean rates, without homeostasis",
        },
        (
            Part(
                "the share of fields that are single bars is at least 0.1 higher",
                lambda v: v.homeostatic_all_bars >= v.filtered_all_bars + 0.1,
            ),
            Part("the Gini of mean rates is at least 0.1 lower", lambda v: v.homeostatic_gini <= v.filtered_gini - 0.1),
        ),
        "{homeostatic_all_bars} of all fields are single bars, {filtered_all_bars} without homeostasis; the Gini of "
        "mean rates is {homeostatic_gini} and {filtered_gini}.",
    ),
)


def captions(scale: Scale) -> dict[str, str]:
    return {
        "spiking": "Spiking neurons in the notebook's network (θ = 0.05, τ = 0.2, r_b = 0.5). (A) Spikes of the 60 "
        "neurons that fire most while three crosses are shown to the trained network, one after the other; red: "
        "updates of a neuron's weights. (B) The filtered spike train of one of them, its burst threshold r_b and its "
        "updates. (C) Settled error during training, mean and standard deviation over seeds; colours as below. (D–H) "
        "Fields of the 100 most active neurons: the notebook's rate network; spiking, with bursts by filtered rate; "
        "the same without refractoriness; bursts of three spikes in 20 steps; a homeostatic threshold (seed 0).",
    }


@figures.styled
def draw(scale: Scale, results: Results, numbers: Numbers) -> dict[str, Figure]:
    figure, axes = figures.lettered(["AABC", "DEFGH"], (7.2, 4.1), [1.4, 1])
    shown, hold = 3, results.runs[NOTEBOOK, "filtered", 0].phases[0].hold
    seen = window(results, (NOTEBOOK, "filtered", 0), -1, shown, ("spikes", "burst", "y"), seed=1)
    most = np.argsort(-seen["spikes"].sum(axis=0), kind="stable")[:60]
    by_first = most[np.argsort(np.argmax(seen["spikes"][:, most], axis=0), kind="stable")]
    for marked, colour, size in (("spikes", "k", 0.2), ("burst", "tab:red", 4)):
        steps, rows = np.nonzero(seen[marked][:, by_first])
        marker = "|" if marked == "spikes" else "o"
        axes["A"].scatter(steps, rows, size, c=colour, marker=marker, linewidths=0.4)
    for onset in range(hold, shown * hold, hold):
        axes["A"].axvline(onset, color="tab:gray", linewidth=0.5)
    axes["A"].set(xlabel="Euler step", ylabel="neuron", xlim=(0, shown * hold))
    one = by_first[np.argmax(seen["burst"][:, by_first].sum(axis=0))]
    axes["B"].plot(seen["y"][:, one], "k", linewidth=0.5)
    axes["B"].axhline(R_B, color="tab:gray", linestyle=":", linewidth=0.8)
    bursts = np.flatnonzero(seen["burst"][:, one])
    axes["B"].plot(bursts, seen["y"][bursts, one], "o", color="tab:red", markersize=2)
    axes["B"].set(xlabel="Euler step", ylabel="filtered spikes y_i", ylim=(0, None))
    networks = {
        "rate": ("k", "rate network"),
        "filtered": ("tab:blue", "spiking"),
        "unrefractory": ("tab:orange", "r_r = 0"),
        "bursts": ("tab:purple", "3 spikes in 20"),
        "homeostatic": ("tab:green", "homeostatic"),
    }
    for letter, (name, (colour, title)) in zip("DEFGH", networks.items(), strict=True):
        of = [results[NOTEBOOK, name, seed] for seed in range(scale.seeds)]
        error = [each["error_last"][:, SETTLED] for each in of]
        figures.mean_and_sd(axes["C"], np.asarray(of[0]["step"]), error, color=colour)
        figures.fields_at_end(axes[letter], of[0])
        axes[letter].set_title(title, color=colour)
    figures.steps_axis(axes["C"], "settled error")
    return {"spiking": figure}
