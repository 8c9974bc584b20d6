"""All drawing. The only module that imports matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from asynchebb.checks import InputError

if TYPE_CHECKING:
    import xarray

COLOURS = {"asynchronous": "tab:blue", "continuous": "tab:orange", "discrete": "tab:green"}

# Figures are made without pyplot: nothing of the caller's own plots is touched.
styled = matplotlib.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})


def save(figure: Figure, path: str | Path) -> None:
    try:
        figure.savefig(path, dpi=160)
    except (OSError, ValueError) as error:
        raise InputError(
            f"out is {str(path)!r}; it must be a picture that can be written, .png or .pdf ({error})"
        ) from None


def mosaic(axes: Axes, W: np.ndarray, shape: tuple[int, ...], activity: np.ndarray, most: int = 100) -> None:
    """Receptive fields of the most active neurons, the most active first, each from 0 to its own largest weight."""
    order = np.argsort(-activity, kind="stable")[:most]
    fields = W[order].reshape(len(order), *shape)
    if len(shape) == 3:  # ON minus OFF
        fields = fields[:, 0] - fields[:, 1]
    largest = np.abs(fields).max(axis=(1, 2), keepdims=True)
    fields = fields / np.where(largest > 0, largest, 1)
    height, width = fields.shape[1:]
    columns = int(np.ceil(np.sqrt(len(fields) * height / width)))
    rows = int(np.ceil(len(fields) / columns))
    canvas = np.full((rows * (height + 1) + 1, columns * (width + 1) + 1), np.nan)
    for number, field in enumerate(fields):
        row, column = divmod(number, columns)
        top, left = row * (height + 1) + 1, column * (width + 1) + 1
        canvas[top : top + height, left : left + width] = field
    signed = fields.min() < 0
    colours = matplotlib.colormaps["RdBu_r" if signed else "gray"].with_extremes(
        bad="tab:gray" if not signed else "white"
    )
    axes.imshow(canvas, cmap=colours, vmin=-1 if signed else 0, vmax=1, interpolation="nearest")
    axes.set_axis_off()


@styled
def run(dataset: xarray.Dataset) -> Figure:
    """A kept run: the fields at its end, the error over time, the activity of all neurons by rank."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    fields, error, activity = figure.subplots(1, 3, width_ratios=(1.1, 1.2, 1))
    figure.suptitle(str(dataset.attrs["title"]), fontsize=9)
    fields_at_end(fields, dataset)
    fields.set_title("receptive fields, most active first")
    for probe, label in enumerate(_labels(dataset)):
        line = error.plot(dataset.step, dataset.error[:, probe], label=label)[0]
        error.plot(dataset.step, dataset.error_last[:, probe], ":", color=line.get_color())
        level = np.sort(dataset.mean_activity[-1, probe].values)[::-1]
        activity.fill_between(np.arange(len(level)), level, alpha=0.4, step="mid", color=line.get_color())
    error.set(xlabel="Euler step", ylabel="reconstruction error", ylim=(0, 1), title="mean (line), last step (dots)")
    error.ticklabel_format(axis="x", scilimits=(-3, 4))
    error.legend(frameon=False)
    activity.set(xlabel="neuron, by rank", ylabel="mean rate", title="activity", ylim=(0, None))
    return figure


@styled
def models(datasets: dict[str, xarray.Dataset], captions: dict[str, str]) -> Figure:
    """The paper's three models side by side: fields, and under them what was measured."""
    figure = Figure(figsize=(3.2 * len(datasets), 3.9), layout="constrained")
    for axes, (model, dataset) in zip(figure.subplots(1, len(datasets)), datasets.items(), strict=True):
        fields_at_end(axes, dataset)
        axes.set_title(model, color=COLOURS[model], fontsize=11, fontweight="bold")
        axes.text(0.5, -0.02, captions[model], transform=axes.transAxes, ha="center", va="top", fontsize=8)
    return figure


@styled
def learning_curves(datasets: dict[str, xarray.Dataset]) -> Figure:
    """Error over training as the first probe takes it; activity by rank and Gini as the last one does."""
    figure = Figure(figsize=(9.6, 2.8), layout="constrained")
    error, activity, gini = figure.subplots(1, 3, width_ratios=(1.4, 1.4, 0.7))
    for model, dataset in datasets.items():
        colour = COLOURS[model]
        error.plot(dataset.step, dataset.error[:, 0], color=colour, label=model)
        level = np.sort(dataset.mean_activity[-1, -1].values)[::-1]
        activity.plot(level / level.max(), color=colour)
        gini.bar(model, float(dataset.gini[-1, -1]), color=colour)
    first, last = int(dataset.hold[0]), int(dataset.hold[-1])
    error.set(xlabel="Euler step", ylabel=f"reconstruction error,\nmean over {first} steps", ylim=(0, None))
    error.ticklabel_format(axis="x", scilimits=(-3, 4))
    error.legend(frameon=False)
    activity.set(xlabel="neuron, by rank", ylabel=f"mean rate over {last} steps\n(largest = 1)")
    gini.set(ylabel=f"Gini of the mean rates\nover {last} steps", ylim=(0, 1))
    gini.tick_params(axis="x", rotation=30)
    return figure


def fields_at_end(axes: Axes, dataset: xarray.Dataset, most: int = 100) -> None:
    shape = tuple(int(size) for size in np.atleast_1d(dataset.attrs["picture_shape"]))
    mosaic(axes, dataset.W[-1].values, shape, dataset.mean_activity[-1, 0].values, most)


def _labels(dataset: xarray.Dataset) -> list[str]:
    return [f"{shows}, hold {hold}" for shows, hold in zip(dataset.stimulus.values, dataset.hold.values, strict=True)]
