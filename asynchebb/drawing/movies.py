"""Animations of receptive fields as they form."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.animation import FFMpegWriter, PillowWriter

from asynchebb import checks
from asynchebb.checks import InputError, at_least, positive
from asynchebb.drawing import figures

if TYPE_CHECKING:
    import xarray

KINDS: dict[str, Any] = {".gif": PillowWriter, ".mp4": FFMpegWriter}
PAUSE = 1.0  # seconds on the last frame before the loop restarts
FASTEST = 50.0  # frames per second that a GIF can show


@figures.styled
def write(dataset: xarray.Dataset, path: str | Path, neurons: int = 100, seconds: float = 6.0) -> None:
    """Write one frame per snapshot of a saved run: the fields of the neurons most active at its end, at fixed
    positions, and the errors so far: on each probe, mean over a presentation (solid) and at its end (dotted)."""
    path = checks.path("out", path)
    neurons, seconds = at_least(1)("neurons", neurons), positive("seconds", seconds)
    if path.suffix.lower() not in KINDS:
        raise InputError(f"out is {str(path)!r}; it must be a .gif or .mp4 file")
    if not path.parent.is_dir():
        raise InputError(f"out is {str(path)!r}; the folder {str(path.parent)!r} must exist")
    kind = KINDS[path.suffix.lower()]
    if not kind.isAvailable():
        raise InputError(f"out is {str(path)!r}; .mp4 needs the program ffmpeg, which is not installed; .gif does not")
    step = dataset["step"].values
    activity, shape = dataset["mean_activity"].values[-1, 0], figures.picture_shape(dataset)
    figure = figures.Figure(figsize=(3.2, 3.9), layout="constrained")
    fields, curve = figure.subplots(2, 1, height_ratios=(5, 1))
    frames = len(step)
    writer = kind(fps=min(frames / seconds, FASTEST))
    try:
        # Written to a temporary folder until complete, since the writers need the final file extension.
        with TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder) / path.name
            with writer.saving(figure, str(whole), dpi=100):
                for k in range(frames):
                    fields.clear()
                    figures.mosaic(fields, dataset["W"][k].values, shape, activity, neurons)
                    fields.set_title(f"{step[k]:,} Euler steps")
                    curve.clear()
                    figures.error_curves(curve, dataset, k + 1)
                    curve.set(xlim=(0, step[-1]), ylabel="error", xlabel="", xticks=[])
                    writer.grab_frame()
                for _ in range(int(np.ceil(PAUSE * writer.fps))):
                    writer.grab_frame()
            whole.replace(path)
    except OSError as error_of_file:
        raise InputError(f"out is {str(path)!r}; it cannot be written ({error_of_file})") from None
