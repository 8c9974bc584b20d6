"""What `asynchebb learn` writes of a trained model besides the model itself: a picture of its fields and a report."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import files, provenance
from asynchebb.drawing import pages
from asynchebb.estimators import HebbianNetwork
from asynchebb.own_data.load import Data

FIELDS = 144  # fields drawn


class Learned(NamedTuple):
    """A trained network, and what was measured of it."""

    network: HebbianNetwork
    is_split: bool  # into ON and OFF channels
    data: Data
    measures: dict[str, Any]  # by their labels
    measured_on: int  # samples
    error_of_mean: float
    curve: np.ndarray  # (points, 2): samples shown, error
    tested_on: int  # samples
    activity: np.ndarray  # mean rate of each neuron
    samples: np.ndarray  # some of those it was trained on
    command: str

    @property
    def shape(self) -> tuple[int, ...]:
        """That of a field as a picture."""
        return (2, *self.data.shape) if self.is_split else self.data.shape


def write(learned: Learned, out: Path) -> None:
    """Write fields.png and report.html."""
    from asynchebb.drawing import figures

    drawn = _drawn(learned)
    figures.save(drawn["fields"], out / "fields.png")
    network, data = type(learned.network).__name__, learned.data
    title = f"What {network} learned from {data.name}"
    of = f"on {learned.measured_on:,} of the {len(data.X):,} training samples"
    body = f"<h1>{escape(title)}</h1><p>Measured {of}:</p>{pages.facts(_numbers(learned.measures))}"
    captions = _captions(learned)
    body += "".join(pages.figure(name, figures.png(picture), captions[name]) for name, picture in drawn.items())
    body += f"<h2>How it was made</h2>{pages.facts(_how(learned, out))}"
    files.write_text(out / "report.html", pages.document(f"{network} on {data.name}", body))


def _drawn(learned: Learned) -> dict[str, Any]:
    from asynchebb.drawing import figures

    network, samples = learned.network, learned.samples
    again = network.inverse_transform(network.transform(samples)).reshape(len(samples), -1)
    return {
        "fields": figures.fields(network.components_, learned.shape, learned.activity, FIELDS),
        "learning": figures.learning(learned.curve, learned.error_of_mean, learned.activity),
        "reconstructions": figures.reconstructions(samples.reshape(len(samples), -1), again, learned.shape),
    }


def _captions(learned: Learned) -> dict[str, str]:
    data, shape, neurons = learned.data, learned.shape, len(learned.activity)
    fields = (
        f"Receptive fields (rows of W) of the {min(FIELDS, neurons)} most active of {neurons} neurons, the most active "
        "first, "
    )
    if len(shape) == 3:
        fields += "ON minus OFF, each scaled by its own largest weight (red is positive)."
    else:
        fields += "each scaled from 0 to its own largest weight."
    is_guessed = data.X.ndim != 3 and data.stimulus is None
    if is_guessed and shape[-2] > 1:
        size = " × ".join(map(str, shape[-2:]))
        fields += f" Since the number of features is a square, they are drawn as {size} images."
    if shape[-2] == 1:
        reconstructions = "Samples (black) and their reconstructions by the settled network (blue)."
    else:
        reconstructions = "Samples (top) and their reconstructions by the settled network (bottom)."
    learning = (
        f"Left: reconstruction error on {learned.tested_on} of the samples during {learned.network.max_iter} passes "
        "through the data. Right: mean rates."
    )
    return {"fields": fields, "learning": learning, "reconstructions": reconstructions}


def _how(learned: Learned, out: Path) -> dict[str, str]:
    """How the model was made, and how it is used."""
    network, data, model = learned.network, learned.data, out / "model.nc"
    parameters = ", ".join(f"{name}={value!r}" for name, value in network.get_params(deep=False).items())
    split = ", signed, and so split into an ON and an OFF channel" if learned.is_split else ""
    rows = {
        "data": f"{data.name}: {len(data.X):,} samples of {' × '.join(map(str, data.X.shape[1:]))} numbers{split}",
        "model": f"{type(network).__name__}({parameters})",
        "scale": f"data are divided by {network.scale_:.6g}",
        "command": learned.command,
        "use it": f'ah.load_model("{model}").transform(X), or asynchebb encode {model} DATA',
        "machine": pages.listed(provenance.machine()),
        "versions": pages.listed(provenance.versions()),
    }
    return {name: text for name, text in rows.items() if text}


def _numbers(measures: dict[str, Any]) -> dict[str, str]:
    return {label: f"{value:,}" if isinstance(value, int) else f"{value:.3g}" for label, value in measures.items()}
