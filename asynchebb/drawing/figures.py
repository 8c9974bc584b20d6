"""All figures except those of sweeps (sweeps/plots.py) and animations (movies.py); only these use matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.figure
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes

from asynchebb import checks
from asynchebb.checks import InputError
from asynchebb.files import atomic, disk_is_full

ON_SCREEN, SHARP = 96, 192  # pixels per inch: of a page, and of screens of high resolution
COLOURS = {
    "asynchronous": "tab:blue",
    "asynchronous, retentive": "tab:cyan",
    "continuous": "tab:orange",
    "discrete": "tab:green",
}

# Figures are made without pyplot, so that the caller's own plots are not affected.
styled = matplotlib.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})


class Figure(matplotlib.figure.Figure):
    """A figure that shows itself at the end of a notebook's cell, sharp on screens of high resolution."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(size * ON_SCREEN) for size in self.get_size_inches())
        return png(self), {"width": width, "height": height}


def save(figure: matplotlib.figure.Figure, path: str | Path) -> None:
    path = checks.path("out", path)
    try:
        with atomic(path, path.parent) as temporary:
            figure.savefig(temporary, dpi=SHARP, format=path.suffix[1:].lower() or None)
    except (OSError, ValueError) as error:
        if disk_is_full(error):
            raise
        raise InputError(f"out is {str(path)!r}; it must be a writable image file, .png or .pdf ({error})") from None


def png(figure: matplotlib.figure.Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, dpi=SHARP, format="png")
    return picture.getvalue()


def mosaic(axes: Axes, W: np.ndarray, shape: tuple[int, ...], activity: np.ndarray, most: int = 100) -> None:
    """Receptive fields of the most active neurons, most active first, each scaled by its own largest weight."""
    order = np.argsort(-activity, kind="stable")[:most]
    fields = _scaled(W[order], shape)
    columns = int(np.ceil(np.sqrt(len(fields) * fields.shape[1] / fields.shape[2])))
    signed = fields.min() < 0
    canvas = _tiled(fields, columns)
    axes.imshow(canvas, cmap=_colours(signed), vmin=-1 if signed else 0, vmax=1, interpolation="nearest")
    axes.set_axis_off()


def _scaled(W: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Fields as images, each divided by its own largest weight: from 0 to 1, or from −1 to 1 for ON minus OFF."""
    fields = _pictures(W, shape)
    largest = np.abs(fields).max(axis=(1, 2), keepdims=True)
    return fields / np.where(largest > 0, largest, 1)


def _pictures(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Rows of numbers as images, ON minus OFF if there are both channels."""
    pictures = rows.reshape(len(rows), *shape)
    return pictures[:, 0] - pictures[:, 1] if len(shape) == 3 else pictures


def _tiled(pictures: np.ndarray, columns: int) -> np.ndarray:
    """Images tiled in this many columns, with a gap of one pixel between them."""
    height, width = pictures.shape[1:]
    rows = int(np.ceil(len(pictures) / columns))
    canvas = np.full((rows * (height + 1) + 1, columns * (width + 1) + 1), np.nan)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        top, left = row * (height + 1) + 1, column * (width + 1) + 1
        canvas[top : top + height, left : left + width] = picture
    return canvas


def _colours(signed: bool) -> matplotlib.colors.Colormap:
    name, gap = ("RdBu_r", "white") if signed else ("gray", "tab:gray")
    return matplotlib.colormaps[name].with_extremes(bad=gap)


def fields_at_end(axes: Axes, saved: Any, most: int = 100) -> None:
    """The most active neurons' fields, from a run's dataset or its file opened by h5py."""
    mosaic(axes, np.asarray(saved["W"][-1]), picture_shape(saved), np.asarray(saved["mean_activity"][-1, 0]), most)


def error_curves(axes: Axes, dataset: Any, snapshots: int | None = None) -> None:
    """Both errors on each probe over time, up to this many snapshots."""
    steps = dataset["step"].values[:snapshots]
    for probe, label in enumerate(probe_labels(dataset)):
        axes.plot(steps, dataset["error"].values[:snapshots, probe], color=f"C{probe}", label=label)
        axes.plot(steps, dataset["error_last"].values[:snapshots, probe], ":", color=f"C{probe}")
    over_time(axes, dataset, "reconstruction error")


def phase_lines(axes: Axes, dataset: Any) -> None:
    """A vertical line where one phase ends and the next begins."""
    phase, step = np.asarray(dataset["phase"]), np.asarray(dataset["step"])
    for k in np.flatnonzero(np.diff(phase)):
        axes.axvline(step[k], color="tab:red", linestyle="--", linewidth=0.8)


def over_time(axes: Axes, dataset: Any, label: str) -> None:
    """The axes of a plot over a run's time, with its phases."""
    phase_lines(axes, dataset)
    axes.set(xlabel="Euler step", ylabel=label, ylim=(0, 1))
    axes.ticklabel_format(axis="x", scilimits=(-3, 4))


def probe_labels(dataset: Any) -> list[str]:
    return [f"{shows}, hold {hold}" for shows, hold in zip(dataset.stimulus.values, dataset.hold.values, strict=True)]


def picture_shape(saved: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in np.atleast_1d(saved.attrs["picture_shape"]))


# Building blocks of the reproduction's figures


def lettered(
    layout: list[str], size: tuple[float, float], heights: Sequence[float] | None = None, letters: str = ""
) -> tuple[Figure, dict[str, Axes]]:
    """Rows of panels named by letters, which are shown above them; `letters` restricts which ones are shown."""
    figure = Figure(figsize=size, layout="constrained")
    axes: dict[str, Axes] = {}
    for row, of in zip(
        layout, figure.subfigures(len(layout), 1, height_ratios=heights, squeeze=False)[:, 0], strict=True
    ):
        axes |= of.subplot_mosaic([[*row]])
    for letter, panel in axes.items():
        if letter in (letters or axes):
            panel.set_title(letter, loc="left", fontweight="bold", fontsize=10)
    return figure, axes


def ramp(count: int) -> list:
    """This many colours from dark to light, for ordered values."""
    return [*matplotlib.colormaps["viridis"](np.linspace(0, 0.85, count))]


def steps_axis(axes: Axes, ylabel: str) -> None:
    axes.set(xlabel="Euler steps (millions)", ylabel=ylabel, ylim=(0, None))
    axes.xaxis.set_major_formatter(lambda step, _: f"{step / 1e6:g}")


def mean_and_sd(axes: Axes, x: Any, y: Any, **style: Any) -> None:
    """A curve of the mean over the first axis of y, with standard deviations if that axis has several entries."""
    y = np.asarray(y, np.float64)
    spread = y.std(axis=0, ddof=1) if len(y) > 1 else None
    axes.errorbar(x, y.mean(axis=0), spread, elinewidth=0.6, capsize=1.2, **style)


SET_COLOURS = ("tab:purple", "tab:brown", "tab:pink")


def errors_on_sets(axes: Axes, runs: Sequence[Any], labels: Sequence[str], ylabel: str) -> None:
    """The settled error on each of three sets shown in succession, over the seeds of a run."""
    for number, (colour, label) in enumerate(zip(SET_COLOURS, labels, strict=True)):
        error = [saved["error_last"][:, number] for saved in runs]
        mean_and_sd(axes, np.asarray(runs[0]["step"]), error, color=colour, label=label)
    phase_lines(axes, runs[0])
    steps_axis(axes, ylabel)
    axes.set_ylim(0, 0.95)  # room for the legend


def stimuli(axes: Axes, sets: Sequence[Any], labels: Sequence[str], count: int = 6) -> None:
    """Some stimuli of each set, one row per set."""
    pictures = np.stack([each.sample(np.random.default_rng(0), count).reshape(count, *each.shape) for each in sets])
    axes.imshow(_tiled(pictures.reshape(-1, *pictures.shape[2:]), count), cmap=_colours(signed=False), vmin=0, vmax=1)
    height = pictures.shape[2] + 1
    axes.set_yticks([height * (row + 0.5) for row in range(len(sets))], labels, fontsize=6)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


@styled
def grid_of_fields(grid: Sequence[Sequence[Any]], rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """The most active neurons' fields of many runs."""
    figure, axes = _grid(rows, columns, 1.0)
    for panels, runs in zip(axes, grid, strict=True):
        for panel, saved in zip(panels, runs, strict=True):
            fields_at_end(panel, saved)
            panel.set_axis_on()
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_visible(False)
    return figure


@styled
def grid_of_activity(
    grid: Sequence[Sequence[Any]], rows: Sequence[str], columns: Sequence[str], colours: Sequence[str]
) -> Figure:
    """Mean rates by rank for many runs, relative to the largest."""
    figure, axes = _grid(rows, columns, 0.8)
    for panels, runs in zip(axes, grid, strict=True):
        for panel, saved, colour in zip(panels, runs, colours, strict=True):
            level = np.sort(np.asarray(saved["mean_activity"][-1, 0]))[::-1]
            panel.fill_between(
                np.arange(len(level)), level / max(level[0], 1e-12), color=colour, step="mid", linewidth=0
            )
            panel.set(ylim=(0, 1), xlim=(0, len(level)), yticks=[0, 1], xticks=[0, len(level)])
            panel.tick_params(labelsize=6)
    return figure


def _grid(rows: Sequence[str], columns: Sequence[str], shape: float) -> tuple[Figure, Any]:
    width = 7.2 / len(columns)
    figure = Figure(figsize=(7.2, width * shape * len(rows) + 0.4), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for panel, title in zip(axes[0], columns, strict=True):
        panel.set_title(title)
    for panel, label in zip(axes[:, 0], rows, strict=True):
        panel.set_ylabel(label, fontsize=8)
    return figure, axes


@styled
def evolution(saved: Any, neurons: np.ndarray, sets: Sequence[str]) -> Figure:
    """The fields of these neurons (rows) at all snapshots (columns), with a line where the stimulus set changes."""
    step, phase = np.asarray(saved["step"]), np.asarray(saved["phase"])
    fields = [_scaled(np.asarray(saved["W"][k])[neurons], picture_shape(saved)) for k in range(len(step))]
    height, width = fields[0].shape[1:]
    canvas = _tiled(np.stack(fields, axis=1).reshape(-1, height, width), len(step))
    figure = Figure(figsize=(7.2, 0.5 + 7.0 * canvas.shape[0] / canvas.shape[1]), layout="constrained")
    axes = figure.subplots()
    axes.imshow(canvas, cmap=_colours(signed=False), vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([(width + 1) * (k + 0.5) for k in range(len(step))], [f"{t / 1e6:.3g}" for t in step])
    axes.set(yticks=[], xlabel="Euler steps (millions)", ylabel="neurons")
    axes.spines[:].set_visible(False)
    changes = [0, *(int(k) + 1 for k in np.flatnonzero(np.diff(phase)))]
    for k, label in zip(changes, sets, strict=True):
        axes.text((width + 1) * k, -2, label, fontsize=8)
        if k:
            axes.axvline((width + 1) * k, color="tab:red", linewidth=1.5)
    return figure


def error_matrix(axes: Axes, E: np.ndarray, phases: Sequence[str], sets: Sequence[str]) -> None:
    """E[p, s]: the error on set s after phase p."""
    heat_map(axes, E, phases, sets, most=0.8)
    axes.tick_params(labelsize=6)
    axes.tick_params("x", rotation=40)


def heat_map(
    axes: Axes, table: np.ndarray, rows: Sequence[Any], columns: Sequence[Any], most: float = 1.0, better: str = "low"
) -> None:
    """A table of numbers as a heat map with the numbers printed on it; better values are darker."""
    colours = matplotlib.colormaps["viridis" if better == "low" else "viridis_r"]
    axes.imshow(table, cmap=colours, vmin=0, vmax=most, aspect="auto")
    for row, column in np.ndindex(table.shape):
        dark = sum(colours(table[row, column] / most)[:3]) < 1.5
        text = f"{table[row, column]:.2f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=6, color="w" if dark else "k")
    axes.set_xticks(range(len(columns)), [str(label) for label in columns])
    axes.set_yticks(range(len(rows)), [str(label) for label in rows])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


# Figures of `asynchebb learn`


@styled
def fields(W: np.ndarray, shape: tuple[int, ...], activity: np.ndarray, most: int = 144) -> Figure:
    """The most active neurons' fields, most active first; as rows of one matrix if they are not images."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    if shape[-2] > 1:
        mosaic(axes, W, shape, activity, most)
        return figure
    rows = _scaled(W[np.argsort(-activity, kind="stable")[:most]], shape)[:, 0]
    signed = bool(rows.min() < 0)
    colours = axes.imshow(rows, cmap=_colours(signed), vmin=-1 if signed else 0, vmax=1, aspect="auto")
    figure.colorbar(colours, label="weight / neuron's largest weight", shrink=0.6)
    axes.set(xlabel="feature", ylabel="neuron, most active first")
    return figure


@styled
def learning(error: np.ndarray, readout: float | None, error_of_mean: float, activity: np.ndarray) -> Figure:
    """The error of Wᵀy during training, compared with that of the readout at the end and of the mean sample; and all
    neurons' activity by rank."""
    figure = Figure(figsize=(7.2, 2.4), layout="constrained")
    curve, ranks = figure.subplots(1, 2)
    curve.plot(*error.T, ".-", label="Wᵀy")
    if readout is not None:
        curve.axhline(readout, linestyle="--", color="tab:blue", label="readout, at the end")
    curve.axhline(error_of_mean, linestyle=":", color="k", label="mean sample")
    curve.set(
        xlabel="samples shown", ylabel="reconstruction error", ylim=(0, 1.1 * max(error[:, 1].max(), error_of_mean))
    )
    curve.legend(frameon=False)
    level = np.sort(activity)[::-1]
    ranks.fill_between(np.arange(len(level)), level, alpha=0.5, step="mid")
    ranks.set(xlabel="neuron, by rank", ylabel="mean rate", ylim=(0, None))
    return figure


@styled
def reconstructions(X: np.ndarray, again: np.ndarray, shape: tuple[int, ...]) -> Figure:
    """Samples above their reconstructions, each scaled by its own largest value; as curves if they are not images."""
    if shape[-2] == 1:
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        panels = figure.subplots(3, 4).ravel()[: len(X)]
        for panel, x, y in zip(panels, _pictures(X, shape), _pictures(again, shape), strict=True):
            panel.plot(x[0], color="k", linewidth=0.8)
            panel.plot(y[0], color="tab:blue", linewidth=0.8)
            panel.tick_params(labelsize=5)
        return figure
    pictures = np.concatenate([_scaled(X, shape), _scaled(again, shape)])
    height = min(8.0, 7.2 * 2 * pictures.shape[1] / (len(X) * pictures.shape[2]) + 0.1)
    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.subplots()
    signed = pictures.min() < 0
    axes.imshow(_tiled(pictures, len(X)), cmap=_colours(bool(signed)), vmin=-1 if signed else 0, vmax=1)
    axes.set_axis_off()
    return figure


@styled
def comparison(
    means: dict[str, dict[str, float]],
    sds: dict[str, dict[str, float | None]],
    measures: dict[str, Any],
    logarithmic: Sequence[str],
    components: dict[str, np.ndarray],
    shape: tuple[int, ...],
) -> Figure:
    """Some components of each method, and a panel per measure: one bar per method, with the sd over seeds."""
    shown = [name for name in measures if any(name in found for found in means.values())]
    columns, methods = 4, [*means]
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(9.6, 1.7 + 0.26 * (len(methods) + 2) * rows), layout="constrained")
    upper: Any = figure.subfigures(2, 1, height_ratios=(1.7, 0.26 * (len(methods) + 2) * rows))
    above, below = upper
    for panel, method in zip(above.subplots(1, max(1, len(components)), squeeze=False)[0], components, strict=False):
        W = components[method]
        mosaic(panel, W, shape, np.linalg.norm(W, axis=1), 25)
        panel.set_title(method, color=COLOURS.get(method, "k"), fontsize=6)
    axes = below.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for panel, name in zip(axes, shown, strict=False):
        on_a_line = name in logarithmic  # points instead of bars, since a logarithmic axis has no zero
        for place, method in enumerate(methods):
            if name in means[method]:
                mean, colour = means[method][name], COLOURS.get(method, "tab:gray")
                if not on_a_line:
                    panel.barh(place, mean, color=colour)
                panel.errorbar(
                    mean, place, xerr=sds[method][name], fmt="o" if on_a_line else "none", color=colour, ecolor="k",
                    elinewidth=0.8, markersize=4,
                )  # fmt: skip
        says, better = measures[name].label, measures[name].better
        notes = [f"{better} is better"] * bool(better) + ["logarithmic"] * on_a_line
        panel.set_title(f"{says}\n" + (f"({', '.join(notes)})" if notes else ""), fontsize=6.5)
        panel.set_yticks(range(len(methods)), methods, fontsize=6.5)
        panel.set_ylim(len(methods) - 0.4, -0.6)
        panel.tick_params(axis="x", labelsize=6)
        if on_a_line:
            panel.set_xscale("log")
            panel.grid(axis="x", linewidth=0.3)
            lowest, highest = panel.get_xlim()
            subs = (1, 2, 5) if highest < 30 * lowest else (1,)
            panel.xaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=subs, numticks=6))
            panel.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
            panel.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    for panel in axes[len(shown) :]:
        panel.set_axis_off()
    return figure
