"""A sweep's results as one labelled dataset: measures in memory, weights read on access."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asynchebb import files
from asynchebb.checks import InputError
from asynchebb.measures import LABELS, MEASURES
from asynchebb.notation import pieces
from asynchebb.runs.layout import STATE
from asynchebb.sweeps.folder import DAMAGED, SILENT, UNSTABLE, DamagedRuns, Folder, Points, error_in

if TYPE_CHECKING:
    import pandas as pd
    import xarray


# Variables read from the runs' files on access: values at the end of each run, for the last probe.
LAZY = {
    "W": (("neuron", "input"), ("n", "m"), STATE["W"][2]),
    "M": (("neuron", "presynaptic"), ("n", "n"), STATE["M"][2]),
    "mean_activity": (("neuron",), ("n",), MEASURES["mean_activity"].label),
}


def open_sweep(folder: str | Path, grid: str | None = None, *, verify: bool = True) -> xarray.Dataset:
    """Open the sweep in this folder, with its axes as coordinates.

    It holds each measure at the end of each run, NaN where a run has none yet, and W, M and mean_activity, which are
    read on access. `run` names each run's file, runs/<run>.nc; `failure` is the error of a failed run; `silent` is 1
    for a run that learned nothing or has died, `unstable` for one whose dt is too long for its initial weights. If the
    folder holds several sweeps, `grid` names one; by default it is the one started last. A run whose file is damaged
    counts as failed, with a warning; a run's file is verified when its W, M or mean_activity are read, unless
    `verify=False`.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> run = ah.Run(ah.asynchronous(n=20, m=36), ah.Phase(ah.Crossbars(6), samples=20, hold=100, snapshots=1))
    >>> with ThreadPoolExecutor(1) as threads:
    ...     dataset = ah.sweep(run, {"seed": [0, 1]}, "sweep", executor=threads, progress=False)
    >>> ah.open_sweep("sweep").identical(dataset)
    True
    """
    import xarray

    from asynchebb.sweeps.lazy import at_end

    points = Folder(folder).points(grid)
    groups = points.content["axes"]
    dims = tuple(group[0]["name"] for group in groups)
    shape = tuple(len(group[0]["values"]) for group in groups)
    coords = {axis["name"]: (group[0]["name"], axis["values"]) for group in groups for axis in group}
    identities = np.array(points.identities, object).reshape(shape)
    variables: dict[str, Any] = {
        "run": (dims, identities.astype(str), {"long_name": "names the run's file, runs/<run>.nc"}),
        "failure": (dims, np.full(shape, "", object), {"long_name": "error of a failed run"}),
    }
    troubles = {SILENT: "1 if nothing was learned or no neuron responds", UNSTABLE: "1 if dt is too long at the start"}
    probes, labels = points.content["probes"], LABELS | troubles | points.content.get("labels", {})
    found = {at: _result(points, str(identities[at])) for at in np.ndindex(shape)}
    if damaged := [failure for _, failure in found.values() if DAMAGED in failure]:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        warnings.warn(f"{damaged[0]}{more}; the same sweep runs what is damaged again", DamagedRuns, stacklevel=2)
    per_probe = {name for measures, _ in found.values() for name, value in measures.items() if isinstance(value, list)}
    for at, (measures, failure) in found.items():
        variables["failure"][1][at] = failure
        for name, value in measures.items():
            if name not in variables:
                inner = (probes,) if name in per_probe else ()
                attributes = {"long_name": labels.get(name, name)}
                variables[name] = (dims + ("probe",) * len(inner), np.full(shape + inner, np.nan), attributes)
            array = variables[name][1]
            if array.ndim == len(shape):
                array[at] = value
            else:  # a run with fewer probes fills the last entries
                array[at][-np.size(value) :] = value
    variables["failure"] = (dims, variables["failure"][1].astype(str), variables["failure"][2])
    dataset = xarray.Dataset(
        variables, coords, {"title": f"sweep of {', '.join(coords)}", "run": points.content["run"]}
    )
    for name, (inner_dims, sizes, meaning) in LAZY.items():
        lazy = at_end(points, identities, name, tuple(points.content[size] for size in sizes), verify)
        dataset[name] = xarray.Variable(dims + inner_dims, lazy, {"long_name": meaning})
    dataset.encoding["source"] = str(points.folder.path)
    return dataset


def table(dataset: xarray.Dataset) -> pd.DataFrame:
    """A row per run: its values on the axes, its measures (of several probes: error_0, error_1, …), file and error."""
    plain = dataset.drop_vars([*LAZY])
    for name, variable in plain.items():
        if "probe" in variable.dims:
            columns = {f"{name}_{q}": variable.isel(probe=q) for q in range(variable.sizes["probe"])}
            plain = plain.drop_vars([name]).assign(columns)
    frame = plain.to_dataframe().reset_index()
    axes = [name for name in frame.columns if name in dataset.coords]
    return frame[[*axes, *(name for name in frame.columns if name not in axes)]]


def select(dataset: xarray.Dataset, text: str) -> xarray.Dataset:
    """The part of the sweep with these values of an axis: "hold=500", "schedule.r_b=0.5,1"."""
    name, _, wanted = (part.strip() for part in text.partition("="))
    if name not in dataset.coords:
        raise InputError(f"at names {name!r}; the axes of the sweep are {', '.join(map(str, dataset.coords))}")
    values = dataset[name].values
    chosen: list[int] = []
    if not pieces(wanted):
        raise InputError(f"at is {text!r}; it must be written like {name}=value,value")
    for value in pieces(wanted):
        index = [k for k, label in enumerate(values) if _same(label, value)]
        if not index:
            raise InputError(f"at gives {name} the value {value!r}; its values are {', '.join(map(str, values))}")
        chosen += index
    return dataset.isel({dataset[name].dims[0]: chosen})


def _same(label: Any, text: str) -> bool:
    try:
        return bool(np.isclose(float(label), float(text), rtol=1e-5))  # figures print rounded values
    except ValueError:
        return str(label) == text or str(label).partition("(")[0] == text


def _result(points: Points, identity: str) -> tuple[dict[str, Any], str]:
    """The measures of a finished run, and the error of a failed one."""
    measured, failed = (points.folder.file(identity, kind) for kind in ("json", "failed"))
    if measured.exists():
        content = files.read_json_if_whole(measured)
        return content, "" if content else f"{measured} {DAMAGED}"
    return {}, error_in(failed) if failed.exists() else ""
