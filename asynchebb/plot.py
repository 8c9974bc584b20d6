"""Figures of saved runs, for papers and notebooks.

Each function returns a Matplotlib figure, which shows itself in a notebook and can be changed and saved like any other:
`ah.plot.error(dataset).savefig("error.pdf")`. `width` is "single" or "double", the width of a journal's column or page,
or a number of inches.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from asynchebb import metrics
from asynchebb.checks import InputError, at_least, is_whole, matrix, one_of, real, several, shown
from asynchebb.drawing.figures import (
    Figure,
    error_curves,
    fields_at_end,
    mosaic,
    over_time,
    picture_shape,
    probe_labels,
    styled,
)
from asynchebb.network import State
from asynchebb.runs.saved import open_as, opened

if TYPE_CHECKING:
    import xarray

WIDTHS = {"single": 3.5, "double": 7.2}  # inches: 89 and 183 mm, as most journals have them
NARROWEST, WIDEST = 1, 300  # inches: at 192 dots per inch, Matplotlib draws no more than 65,535 dots
ERRORS, RATES = ("error", "error_last"), "mean_activity"  # the measures that are drawn
LETTERS = "ABCDEFGH"
MOST_RUNS = len(LETTERS)  # compared in one figure


def fields(source: Any, most: int = 100, width: str | float = "single", shape: tuple[int, ...] | None = None) -> Figure:
    """Receptive fields of the most active neurons, most active first, each scaled by its own largest weight.

    `source` is a saved run (a dataset or its file), whose neurons are ordered by their activity on the first probe, or
    a State or a fitted estimator, whose neurons are ordered by their present rates. `shape` is that of a field as an
    image: (height, width), or (2, height, width) for ON and OFF channels.

    >>> state = ah.asynchronous(n=50, m=36).init(np.random.default_rng(0))
    >>> figure = ah.plot.fields(state, most=25)
    >>> figure.savefig("fields.png")
    """
    most = at_least(1)("most", most)
    W, drawn, activity = _weights(source, shape)
    figure = _figure(width, 1.0)
    mosaic(figure.subplots(), W, drawn, activity, most)
    return figure


@styled
def error(source: Any, width: str | float = "single") -> Figure:
    """The reconstruction error on each probe over time, mean over a presentation (solid) and at its end (dotted).

    Vertical lines separate the phases.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> ah.plot.error(ah.record(run, "run.nc"), width="double").savefig("error.pdf")
    """
    dataset = _dataset(source, "source", *ERRORS)
    figure = _figure(width, 0.7)
    axes = figure.subplots()
    error_curves(axes, dataset)
    title = "mean (solid), at the end (dotted)"
    axes.legend(edgecolor="none", framealpha=0.9, title=title, title_fontsize=7, fontsize=7)
    return figure


@styled
def similarity(source: Any, other: Any = None, width: str | float = "single", weights: str = "W") -> Figure:
    """How similar a run's weights are to another run's at each snapshot, or without one to its own at the end.

    Mean over neurons of the cosine between their weights; the shade spans the middle half of the neurons.

    >>> phase = ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2)
    >>> one, other = (ah.record(ah.Run(model(n=20, m=36), phase), "runs") for model in (ah.asynchronous, ah.discrete))
    >>> figure = ah.plot.similarity(one, other)
    """
    one_of("weights", weights, ("W", "M"))
    dataset = _dataset(source)
    compared = dataset if other is None else _dataset(other, "other")
    steps = dataset["step"].values
    if other is not None and not np.array_equal(steps, compared["step"].values):
        raise InputError("other has snapshots at other steps than source; both runs must have the same")
    if dataset[weights].shape[1:] != compared[weights].shape[1:]:
        theirs, ours = (one[weights].shape[1:] for one in (compared, dataset))
        raise InputError(f"other has weights {weights} of shape {theirs}; it must be {ours}")
    cosines = [
        metrics.weight_similarity(dataset[weights][k].values, compared[weights][-1 if other is None else k].values)
        for k in range(len(steps))
    ]
    figure = _figure(width, 0.7)
    axes = figure.subplots()
    axes.fill_between(steps, *np.quantile(cosines, [0.25, 0.75], axis=1), alpha=0.25, linewidth=0)
    axes.plot(steps, np.mean(cosines, axis=1))
    over_time(axes, dataset, f"cosine of {weights}")
    axes.set_title("with the end" if other is None else f"with {short_title(compared)}", fontsize=7)
    return figure


@styled
def activity(source: Any, width: str | float = "single") -> Figure:
    """Mean rates of all neurons at the end of a run, by rank, for each probe.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> figure = ah.plot.activity(ah.record(run, "run.nc"))
    """
    dataset = _dataset(source, "source", RATES)
    figure = _figure(width, 0.7)
    axes = figure.subplots()
    _ranks(axes, dataset)
    axes.legend(frameon=False, fontsize=7)
    return figure


@styled
def raster(bursts: Any, hold: int | None = None, width: str | float = "double") -> Figure:
    """Which neurons burst when: `bursts` is the trace "burst" of `ah.advance`, or all its traces.

    If these have "spikes", they are drawn in black and bursts in red. Neurons that do so most are at the bottom. `hold`
    draws a line at the onset of each stimulus.

    >>> network = ah.asynchronous(n=50, m=36)
    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 5)
    >>> _, traces = ah.advance(network, network.init(np.random.default_rng(0)), X, hold=100, trace=("burst",))
    >>> figure = ah.plot.raster(traces, hold=100)
    """
    traces = bursts if isinstance(bursts, Mapping) else {"burst": bursts}
    shape = "(steps, neurons)"
    drawn = {name: matrix("bursts", traces[name], shape) for name in ("spikes", "burst") if name in traces}
    if not drawn:
        raise InputError('bursts has neither "burst" nor "spikes"; it must be one of them, or the traces of ah.advance')
    if any(((each != 0) & (each != 1)).any() for each in drawn.values()):
        raise InputError("bursts holds other numbers than 0 and 1; it must say which neurons burst when")
    first = next(iter(drawn.values()))
    order, highest = np.argsort(-first.sum(axis=0), kind="stable"), 1
    figure = _figure(width, 0.4)
    axes = figure.subplots()
    for (name, each), colour in zip(drawn.items(), ("black", "tab:red"), strict=False):
        steps, ranks = np.nonzero(each[:, order])
        size = 0.5 if name == "spikes" else 2
        axes.scatter(steps, ranks, size, colour, linewidths=0, rasterized=True)
        highest = max(highest, int(ranks.max(initial=0)) + 1)
    if hold is not None:
        hold = at_least(1)("hold", hold)
        for onset in range(hold, len(first), hold):
            axes.axvline(onset, color="tab:gray" if "spikes" in drawn else "tab:red", linewidth=0.4)
    before = 0.01 * len(first)  # so that bursts at the first step are not on the axis
    what = "spikes" if "spikes" in drawn else "bursts"
    axes.set(xlabel="Euler step", ylabel=f"neuron, by {what}", xlim=(-before, len(first)), ylim=(-0.5, highest - 0.5))
    if not any(np.any(each) for each in drawn.values()):
        axes.text(0.5, 0.5, f"no neuron {what}", transform=axes.transAxes, ha="center", va="center")
    return figure


@styled
def run(source: Any, width: str | float = 10.0) -> Figure:
    """A saved run at a glance: its fields at the end, the error over time, and the neurons' activity by rank.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> figure = ah.plot.run(ah.record(run, "run.nc"))
    """
    dataset = _dataset(source, "source", *ERRORS, RATES)
    figure = _figure(width, 0.34)
    shown, curves, ranks = figure.subplots(1, 3, width_ratios=(1.1, 1.2, 1))
    figure.suptitle(str(dataset.attrs["title"]), fontsize=9)
    fields_at_end(shown, dataset)
    shown.set_title("receptive fields, most active first")
    error_curves(curves, dataset)
    curves.set_title("mean (solid), at the end (dotted)")
    curves.legend(edgecolor="none", framealpha=0.9)
    _ranks(ranks, dataset)
    ranks.set_title("activity")
    return figure


@styled
def compare(sources: Sequence[Any], names: Sequence[str] | None = None, width: str | float = 10.0) -> Figure:
    """Several saved runs side by side: their fields, and on the last probe of each the error and the activity.

    Letters stand for the runs; the legend says in what they differ, or has the `names`.

    >>> phase = ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2)
    >>> runs = [ah.record(ah.Run(model(n=20, m=36), phase), "runs") for model in (ah.asynchronous, ah.discrete)]
    >>> figure = ah.plot.compare(runs, names=["asynchronous", "discrete"])
    """
    if not isinstance(sources, list | tuple):
        raise InputError(f"sources is {shown(sources)}; it must be a list of saved runs: compare([one, other])")
    datasets = [_dataset(source, "source", *ERRORS, RATES) for source in sources]
    if not 2 <= len(datasets) <= MOST_RUNS:
        raise InputError(f"sources has length {len(datasets)}; it must hold 2 to {MOST_RUNS} runs")
    names = differences(datasets) if names is None else several("names", names, str)
    if len(names) != len(datasets):
        raise InputError(f"names has {len(names)} names; there are {len(datasets)} runs")
    figure = _figure(width, 0.62)
    upper: Any = figure.subfigures(2, 1, height_ratios=(1, 1.15))
    above, below = upper
    curves, ranks = below.subplots(1, 2, width_ratios=(1.4, 1))
    for k, (panel, dataset, name) in enumerate(zip(above.subplots(1, len(datasets)), datasets, names, strict=True)):
        fields_at_end(panel, dataset)
        panel.set_title(LETTERS[k], color=f"C{k}", fontweight="bold")
        curves.plot(dataset["step"], dataset["error"][:, -1], color=f"C{k}", label=f"{LETTERS[k]}: {name}")
        curves.plot(dataset["step"], dataset["error_last"][:, -1], ":", color=f"C{k}")
        level = np.sort(dataset["mean_activity"][-1, -1].values)[::-1]
        ranks.plot(np.arange(len(level)), level, color=f"C{k}")
    longest = max(datasets, key=lambda dataset: int(dataset["step"][-1]))
    over_time(curves, longest, "reconstruction error")
    probes = {probe_labels(dataset)[-1] for dataset in datasets}
    on = f"on {probes.pop()}; " if len(probes) == 1 else "on the last probe; "
    curves.set_title(f"{on}dotted: at the end of a presentation", fontsize=7)
    curves.legend(edgecolor="none", framealpha=0.9, fontsize=7)
    ranks.set(xlabel="neuron, by rank", ylabel="mean rate", ylim=(0, None))
    return figure


# Panels


def differences(datasets: Sequence[xarray.Dataset]) -> list[str]:
    """What tells each of these runs from the others: its title, or those of its parts that differ.

    >>> phase = ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2)
    >>> runs = [ah.record(ah.Run(ah.asynchronous(n=20, m=36), phase, seed=seed), "runs") for seed in (0, 1)]
    >>> ah.plot.differences(runs)
    ['seed 0', 'seed 1']
    """
    titles = [short_title(dataset) for dataset in datasets]
    if len({*titles}) == len(titles):
        return titles
    parts = ("n", "m", "dynamics", "rule", "schedule", "weights", "phases", "seed", "dtype")
    differing = [part for part in parts if len({str(dataset.attrs[part]) for dataset in datasets}) > 1]
    said = [", ".join(_said(part, dataset.attrs[part]) for part in differing) for dataset in datasets]
    return [text or title for text, title in zip(said, titles, strict=True)]


def _said(part: str, value: Any) -> str:
    return str(value) if "(" in str(value) and part != "phases" else f"{part} {textwrap.shorten(str(value), 60)}"


def short_title(dataset: xarray.Dataset) -> str:
    """Model and stimuli, without the words between them.

    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=2))
    >>> ah.plot.short_title(ah.record(run, "run.nc"))
    'Asynchronous Oja, Crossbars(p=6)'
    """
    return str(opened("dataset", dataset).attrs["title"]).replace(" network on ", ", ")


def _ranks(axes: Axes, dataset: xarray.Dataset) -> None:
    for probe, label in enumerate(probe_labels(dataset)):
        level = np.sort(dataset["mean_activity"][-1, probe].values)[::-1]
        axes.fill_between(np.arange(len(level)), level, alpha=0.4, step="mid", color=f"C{probe}", label=label)
    axes.set(xlabel="neuron, by rank", ylabel="mean rate", ylim=(0, None))


# Arguments


def _dataset(source: Any, name: str = "source", *measures: str) -> xarray.Dataset:
    return opened(name, open_as(name, source) if isinstance(source, str | Path) else source, *measures)


def _weights(source: Any, shape: tuple[int, ...] | None) -> tuple[np.ndarray, tuple[int, ...], np.ndarray]:
    """W, the shape of a field, and the activity that orders the neurons."""
    if hasattr(source, "fit") and not hasattr(source, "state_"):
        raise InputError(f"source is {shown(source)}; it must be fitted, and of a pipeline its last step")
    state = source if isinstance(source, State) else getattr(source, "state_", None)
    if state is not None:
        from asynchebb.thumbnails import guessed_shape

        known = getattr(source, "image_shape_", None) or guessed_shape(state.W.shape[1])
        return state.W, _fitting(known if shape is None else shape, state.W.shape[1]), state.y
    dataset = _dataset(source, "source", RATES)
    W = dataset["W"][-1].values
    return (
        W,
        _fitting(picture_shape(dataset) if shape is None else shape, W.shape[1]),
        dataset["mean_activity"][-1, 0].values,
    )


def _fitting(shape: tuple[int, ...], m: int) -> tuple[int, ...]:
    fits = isinstance(shape, list | tuple) and all(is_whole(size) and size > 0 for size in shape)
    if not fits or len(shape) not in (2, 3) or prod(shape) != m or (len(shape) == 3 and shape[0] != 2):
        raise InputError(
            f"shape is {shown(shape)}; it must be (height, width) or (2, height, width), of {m} pixels in all"
        )
    return tuple(shape)


def _figure(width: str | float, height: float) -> Figure:
    """An empty figure; its height is relative to its width."""
    if isinstance(width, str) and width in WIDTHS:
        width = WIDTHS[width]
    try:
        if NARROWEST <= (inches := real("width", width)) <= WIDEST:
            return Figure(figsize=(inches, inches * height), layout="constrained")
    except InputError:
        pass
    raise InputError(
        f"width is {shown(width)}; it must be {', '.join(WIDTHS)} or a number of inches from {NARROWEST} to {WIDEST}"
    )
