"""Figures of a sweep."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from asynchebb.checks import InputError, one_of
from asynchebb.drawing.figures import Figure, fields_at_end, styled
from asynchebb.runs.saved import open_run
from asynchebb.sweeps.folder import Folder

if TYPE_CHECKING:
    import xarray

MOST_PANELS = 64
NOT_DRAWN = ("run", "failure", "W", "M", "mean_activity")  # everything else in a sweep's dataset is a measure


@styled
def measure(dataset: xarray.Dataset, name: str) -> Figure:
    """Plot a measure against a sweep's parameters: a curve for one, a heat map for two, one per value of a third.

    Shows mean and standard deviation over seeds, and the last probe if there are several.
    """
    if "steps" not in dataset:
        raise InputError("no run of the sweep is finished yet; there is nothing to plot")
    one_of("measure", name, [str(one) for one in dataset if one not in NOT_DRAWN])
    if "trial" in dataset.dims:
        return _trials(dataset, name)
    parameters, constant = _parameters(dataset, most=3)
    array = dataset[name].isel(probe=-1, missing_dims="ignore")
    array = array.isel({dim: 0 for dim in array.dims if dim not in (*parameters, "seed")})
    seeds = array.sizes["seed"] if "seed" in array.dims and "seed" not in parameters else 1
    mean, sd = (array.mean("seed"), array.std("seed", ddof=1)) if seeds > 1 else (array.squeeze(), None)
    label = dataset[name].attrs["long_name"]
    if len(parameters) == 1:
        figure = Figure(figsize=(4.2, 3), layout="constrained")
        _curve(figure.subplots(), dataset, parameters[0], mean, sd)
        figure.axes[0].set_ylabel(label)
    else:
        mean = mean.transpose(*parameters)
        sd = sd if sd is None else sd.transpose(*parameters)
        figure = _heat_maps(dataset, parameters, mean, sd, label)
    over = [f"mean ± sd over {seeds} seeds"] if seeds > 1 else []
    missing = int(array.isnull().sum())
    gaps = [f"{missing} of {array.size} runs have no value"] if missing else []
    _set_title(figure, [label, *over, *constant, *gaps])
    return figure


def of_trials(dataset: xarray.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a measure for each trial of a search, over its seeds and probes."""
    array = dataset[name].mean("probe") if "probe" in dataset[name].dims else dataset[name]
    spread = array.std("seed", ddof=1).values if array.sizes["seed"] > 1 else np.zeros(len(array))
    return array.mean("seed", skipna=False).values, spread


def _trials(dataset: xarray.Dataset, name: str) -> Figure:
    """A measure of each trial, in the order of trials and against each field searched."""
    along = [str(coordinate.name) for coordinate in _tied(dataset, "trial")]
    values, spread = of_trials(dataset, name)
    figure = Figure(figsize=(2.6 * len(along), 2.6), layout="constrained")
    for panel, field in zip(figure.subplots(1, len(along), squeeze=False, sharey=True)[0], along, strict=True):
        x: Any = dataset[field].values
        if x.dtype.kind not in "if":
            kinds, x = np.unique(x.astype(str), return_inverse=True)
            panel.set_xticks(range(len(kinds)), [textwrap.fill(kind.replace("(", " ("), 12) for kind in kinds])
            panel.set_xlim(-0.5, len(kinds) - 0.5)
        elif x.min() > 0 and x.max() / x.min() >= 30 and field != "trial":
            panel.set_xscale("log")
        panel.errorbar(x, values, spread, linestyle="", elinewidth=0.6, color="tab:gray", zorder=0)
        panel.scatter(x, values, 10, dataset["trial"].values, cmap="viridis")
        panel.set_xlabel(field)
    figure.axes[0].set_ylabel(textwrap.fill(dataset[name].attrs["long_name"], 30))
    seeds = dataset.sizes["seed"]
    over = [f"mean ± sd over {seeds} seeds"] if seeds > 1 else []
    _set_title(figure, [f"{len(values)} trials, early ones dark", *over])
    return figure


@styled
def fields(dataset: xarray.Dataset) -> Figure:
    """Plot the first seed's receptive fields: one parameter varies across, another one down."""
    parameters, constant = _parameters(dataset, most=2)
    ticks = [_ticks(dataset, name) for name in parameters]
    across, down = len(ticks[0]), len(ticks[1]) if len(ticks) == 2 else 1
    if across * down > MOST_PANELS:
        raise InputError(f"the sweep has {across * down} points; select at most {MOST_PANELS} with --at 'axis=value'")
    figure = Figure(figsize=(1.6 * across + 0.5, 1.6 * down + 0.6), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False)
    runs = dataset.run.isel({dim: 0 for dim in dataset.run.dims if dim not in parameters}).transpose(*parameters)
    for row, column in np.ndindex(down, across):
        axes: Any = panels[down - 1 - row, column]  # values increase upwards, as in the heat maps
        axes.set(xticks=[], yticks=[])
        _fields_of(axes, dataset, str(runs.values[column, row] if len(parameters) == 2 else runs.values[column]))
        if row == down - 1:
            name = f"{_label(dataset, parameters[0])} = " if column == 0 else ""
            axes.set_title(textwrap.fill(name + ticks[0][column], 22), fontsize=7)
        if column == 0 and len(parameters) == 2:
            label = textwrap.fill(f"{_label(dataset, parameters[1])} = {ticks[1][row]}", 22)
            axes.text(-0.05, 0.5, label, rotation=90, transform=axes.transAxes, va="center", ha="right", fontsize=7)
    several = dataset.sizes.get("seed", 1) > 1 and "seed" not in parameters
    seed = [f"seed = {dataset.seed.values[0]}"] if several else []
    _set_title(figure, ["receptive fields, most active first", *constant, *seed])
    return figure


def _fields_of(axes: Axes, dataset: xarray.Dataset, identity: str) -> None:
    folder = Folder(dataset.encoding["source"])
    if folder.file(identity, "json").exists():
        with open_run(folder.file(identity, "nc")) as run:
            fields_at_end(axes, run, most=49)
    else:
        failed = folder.file(identity, "failed").exists()
        axes.text(0.5, 0.5, "failed" if failed else "not run yet", transform=axes.transAxes, ha="center", va="center")


def _parameters(dataset: xarray.Dataset, most: int) -> tuple[list[str], list[str]]:
    """The axes with several values, seeds excluded; and labels of those with one value: ["hold = 500"]."""
    dims = [str(dim) for dim in dataset.run.dims]
    seeds = [dim for dim in dims if dim == "seed" and len(_tied(dataset, dim)) == 1]  # nothing else is tied to them
    parameters = [dim for dim in dims if dim not in seeds and dataset.sizes[dim] > 1]
    constant = [f"{_label(dataset, dim)} = {_ticks(dataset, dim)[0]}" for dim in dims if dataset.sizes[dim] == 1]
    if len(parameters) > most:
        raise InputError(
            f"the sweep has {len(parameters)} parameters ({', '.join(parameters)}); fix values with --at 'axis=value' "
            f"until at most {most} are left"
        )
    return parameters or ["seed" if "seed" in dims else dims[0]], constant


def _tied(dataset: xarray.Dataset, dim: str) -> list[xarray.DataArray]:
    """An axis and those tied to it."""
    return [coordinate for coordinate in dataset.coords.values() if coordinate.dims == (dim,)]


def _label(dataset: xarray.Dataset, dim: str) -> str:
    return " / ".join(str(along.name) for along in _tied(dataset, dim))


def _ticks(dataset: xarray.Dataset, dim: str) -> list[str]:
    """Tick labels: the values along an axis and along those tied to it."""
    tied = _tied(dataset, dim)
    texts = [
        [f"{value:g}" if isinstance(value, float | int) else str(value) for value in along.values.tolist()]
        for along in tied
    ]
    return [" / ".join(values) for values in zip(*texts, strict=True)]


def _is_number(dataset: xarray.Dataset, dim: str) -> bool:
    return len(_tied(dataset, dim)) == 1 and dataset[dim].dtype.kind in "if"


def _curve(axes: Axes, dataset: xarray.Dataset, dim: str, mean: xarray.DataArray, sd: xarray.DataArray | None) -> None:
    along: Any = dataset[dim].values if _is_number(dataset, dim) else np.arange(dataset.sizes[dim])
    values, spread = np.atleast_1d(mean.values), None if sd is None else np.atleast_1d(sd.values)
    joined = _is_number(dataset, dim) and dim != "seed"  # categories, such as rules, are not
    line = "-" if joined else ""
    axes.errorbar(along, values, spread, linestyle=line, marker="o", markersize=3, capsize=2, color="tab:blue")
    axes.set_xlabel(_label(dataset, dim))
    axes.margins(x=0.08)
    if not line:
        axes.set_xticks(along, _ticks(dataset, dim), rotation=20, ha="right", rotation_mode="anchor")
    elif along.min() > 0 and along.max() / along.min() >= 30:
        axes.set_xscale("log")


def _heat_maps(
    dataset: xarray.Dataset, parameters: list[str], mean: xarray.DataArray, sd: xarray.DataArray | None, label: str
) -> Figure:
    """Heat maps: the first parameter across, the second up, one panel per value of the third."""
    first, second, *third = parameters
    titles = [f"{_label(dataset, third[0])} = {tick}" for tick in _ticks(dataset, third[0])] if third else [""]
    across, down = dataset.sizes[first], dataset.sizes[second]
    columns = min(len(titles), 4)
    rows = -(-len(titles) // columns)
    longest = max(len(text) for dim in (first, second) for text in _ticks(dataset, dim))
    width, height = max(2.2, 0.52 * across), max(1.8, 0.42 * down) + 0.03 * longest
    figure = Figure(figsize=(columns * width + 1.3, rows * (height + 0.5) + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    values = mean.values.reshape(across, down, len(titles))
    spreads = None if sd is None else sd.values.reshape(values.shape)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    for axes in panels.flat[len(titles) :]:
        axes.set_axis_off()
    for number, (axes, title) in enumerate(zip(panels.flat, titles, strict=False)):
        picture = axes.imshow(
            values[:, :, number].T, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower"
        )
        axes.set_title(title)
        _set_ticks(axes, _ticks(dataset, first))
        axes.set_yticks(range(down), _ticks(dataset, second))
        if number % columns == 0:
            axes.set_ylabel(_label(dataset, second))
        if number >= len(titles) - columns:
            axes.set_xlabel(_label(dataset, first))
        for i, j in np.ndindex(across, down):
            value = values[i, j, number]
            text = "" if not np.isfinite(value) else f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}"
            if text and spreads is not None:
                text += f"\n±{spreads[i, j, number]:.2g}"
            colour = "black" if value > (low + high) / 2 else "white"
            axes.text(i, j, text, ha="center", va="center", fontsize=6, color=colour)
    figure.colorbar(picture, ax=panels, label=textwrap.fill(label, 22))
    return figure


def _set_title(figure: Figure, parts: list[str]) -> None:
    figure.suptitle(textwrap.fill(" · ".join(parts), int(14 * figure.get_figwidth())), fontsize=9)


def _set_ticks(axes: Axes, texts: list[str]) -> None:
    """Rotate the labels if they are too long to fit side by side."""
    if max(map(len, texts)) > 4:
        axes.set_xticks(range(len(texts)), texts, rotation=30, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticks(range(len(texts)), texts)
