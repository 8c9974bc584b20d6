"""What `asynchebb learn` writes of a trained model besides the model itself: a picture of its fields and a report."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import files, metrics, provenance
from asynchebb.drawing import pages
from asynchebb.drawing.pages import Tile
from asynchebb.estimators import HebbianNetwork
from asynchebb.measures import factors_of
from asynchebb.network import NEVER_UPDATED
from asynchebb.own_data.load import Data

FIELDS = 144  # fields drawn in the picture
ON_PAGE = 400  # trained fields on the page, and untrained ones
COLUMNS = 20  # of the sheet that holds them
LARGE, SMALL = 88, 44  # pixels, of a trained and of an untrained field


class Learned(NamedTuple):
    """A trained network, and what was measured of it."""

    network: HebbianNetwork
    is_split: bool  # into ON and OFF channels
    data: Data
    measures: dict[str, Any]  # by their labels
    measured_on: int  # samples
    error: float
    error_of_mean: float
    error_of_weights: float
    curve: np.ndarray  # (points, 2): samples shown, error of Wᵀy
    tested_on: int  # samples
    activity: np.ndarray  # mean rate of each neuron
    samples: np.ndarray  # some of those it was trained on
    course: dict[int, np.ndarray]  # fields (neurons, features) after this many samples, from 0 to 255
    command: str

    @property
    def shape(self) -> tuple[int, ...]:
        """That of a field as a picture."""
        return (2, *self.data.shape) if self.is_split else self.data.shape

    @property
    def trained(self) -> np.ndarray:
        """Neurons that have learned and respond to the data."""
        return (self.network.state_.c < NEVER_UPDATED) & (self.activity > 0)


def write(learned: Learned, out: Path) -> None:
    """Write fields.png and report.html."""
    from asynchebb.drawing import figures

    fields = figures.fields(learned.network.components_, learned.shape, learned.activity, FIELDS)
    figures.save(fields, out / "fields.png")
    network, data = type(learned.network).__name__, learned.data
    body = f'<h1>{escape(network)} on {escape(data.name)}</h1><p class="lead">{_verdict(learned)}</p>'
    if learned.shape[-2] > 1:
        body += _fields_section(learned)
    else:
        body += pages.figure("fields", figures.png(fields), _caption_of_rows(learned))
    drawn, captions = _drawn(learned), _captions(learned)
    body += "".join(pages.figure(name, figures.png(picture), captions[name]) for name, picture in drawn.items())
    of = f"{learned.measured_on:,} of the {len(data.X):,} training samples"
    body += f"<h2>Measured on {of}</h2>{pages.facts(_numbers(learned.measures))}"
    body += f"<h2>How it was made</h2>{pages.facts(_how(learned, out))}"
    files.write_text(out / "report.html", pages.document(f"{network} on {data.name}", body, STYLE))


def _verdict(learned: Learned) -> str:
    """The result in a sentence or two."""
    neurons, trained = len(learned.activity), int(learned.trained.sum())
    if not trained:
        return (
            f"<b>None of the {neurons} neurons has learned anything</b> from {len(learned.data.X):,} samples, or none "
            "responds to them; what follows is of untrained weights."
        )
    fields = f"{trained} of {neurons} neurons have learned a field"
    error = f"{learned.error:.3f}" if learned.error >= 0.001 else "less than 0.001"
    close = f"reconstructions have an error of <b>{error}</b> (1 − cosine)"
    return (
        f"From {len(learned.data.X):,} samples, <b>{fields}</b>; {close}. By the weights alone, Wᵀy, it is "
        f"{learned.error_of_weights:.3f}; the mean sample's is {learned.error_of_mean:.3f}."
    )


def _fields_section(learned: Learned) -> str:
    """All fields, the most active first, those that have not learned folded away; a slider shows how they formed."""
    network, activity = learned.network, learned.activity
    order = np.argsort(-activity, kind="stable")
    large, small = (order[chosen[order]][:ON_PAGE] for chosen in (learned.trained, ~learned.trained))
    shown = np.concatenate([large, small])
    height, width = learned.shape[-2:]
    now = _coloured(quantised(network.components_)[shown], learned.shape)
    rows = -(-len(shown) // COLUMNS)
    says = _says(learned)
    grids = [
        pages.tiles([Tile(first + k, says[i]) for k, i in enumerate(some)], COLUMNS, rows, (height, width), size)
        for first, some, size in ((0, large, LARGE), (len(large), small, SMALL))
    ]
    body = grids[0] if len(large) else ""
    if (hidden := int(learned.trained.sum()) - len(large)) > 0:
        body += f"<p><small>The {ON_PAGE} most active; {hidden:,} more have learned.</small></p>"
    if len(small):
        count = int((~learned.trained).sum())
        kind = f"{count:,} untrained neuron{'s' * (count > 1)}: never learned, or silent"
        kind += f" (the first {ON_PAGE})" if count > ON_PAGE else ""
        body += pages.folded(kind, grids[1])
    steps = [*learned.course]
    sheets = [*(_coloured(fields[shown], learned.shape) for fields in learned.course.values()), now]
    steps.append(network.n_samples_seen_)
    errors = np.interp(steps, *learned.curve.T).round(4).tolist()
    style = "".join(f"--s{k}:{pages.sheet(pictures, COLUMNS)};" for k, pictures in enumerate(sheets))
    last = len(sheets) - 1
    slider = (
        f'<label class="slider" hidden>How they formed <input type="range" min="0" max="{last}" value="{last}"> '
        f"<output></output></label>"
        if last
        else ""
    )
    told = json.dumps({"shown": steps, "error": errors})
    return (
        f'<style>#fields{{{style}--sheet:var(--s{last})}}</style><section id="fields">{slider}{body}'
        f"<p><small>{_captions(learned)['fields']}</small></p></section>"
        f"<script>const told = {told}; {SCRIPT if last else ''}</script>"
    )


def _says(learned: Learned) -> list[str]:
    """Of each neuron: its number, its mean rate, and the factor its field is nearest to."""
    said = [f"neuron {i} · mean rate {rate:.3g}" for i, rate in enumerate(learned.activity)]
    factors = factors_of(learned.data.stimulus).get("factors")
    if factors is None:
        return said
    W = learned.network.components_
    nearest, cosine = metrics.nearest_factors(W, factors)
    return [f"{text} · nearest factor {k} (cosine {c:.2f})" for text, k, c in zip(said, nearest, cosine, strict=True)]


def quantised(W: np.ndarray) -> np.ndarray:
    """Fields in 256 steps, each from 0 to its own largest weight."""
    largest = W.max(axis=1, keepdims=True)
    return np.round(255 * (W / np.where(largest > 0, largest, 1))).astype(np.uint8)


def _coloured(fields: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """As pictures: in grey, or ON minus OFF in red and blue."""
    import matplotlib

    pictures = fields.reshape(len(fields), *shape)
    if len(shape) < 3:
        return pictures
    signed = (pictures[:, 0].astype(float) - pictures[:, 1]) / 255
    largest = np.abs(signed).max(axis=(1, 2), keepdims=True)
    colours = matplotlib.colormaps["RdBu_r"](0.5 + 0.5 * signed / np.where(largest > 0, largest, 1))
    return (255 * colours[..., :3]).astype(np.uint8)


def _drawn(learned: Learned) -> dict[str, Any]:
    from asynchebb.drawing import figures

    network, samples = learned.network, learned.samples
    again = network.inverse_transform(network.transform(samples)).reshape(len(samples), -1)
    return {
        "reconstructions": figures.reconstructions(samples.reshape(len(samples), -1), again, learned.shape),
        "learning": figures.learning(
            learned.curve, learned.error if network.readout else None, learned.error_of_mean, learned.activity
        ),
    }


def _caption_of_rows(learned: Learned) -> str:
    neurons = len(learned.activity)
    return (
        f"Receptive fields (rows of W) of the {min(FIELDS, neurons)} most active of {neurons} neurons, the most active "
        "first, each scaled from 0 to its own largest weight."
    )


def _captions(learned: Learned) -> dict[str, str]:
    data, shape = learned.data, learned.shape
    fields = "Receptive fields (rows of W), the most active neuron first, "
    if len(shape) == 3:
        fields += "ON minus OFF, each scaled by its own largest weight (red is positive)."
    else:
        fields += "each scaled from 0 to its own largest weight."
    is_guessed = data.X.ndim != 3 and data.stimulus is None
    if is_guessed and shape[-2] > 1:
        size = " × ".join(map(str, shape[-2:]))
        fields += f" Since the number of features is a square, they are drawn as {size} images."
    how = "the learned readout" if learned.network.readout else "Wᵀy"
    if shape[-2] == 1:
        reconstructions = f"Samples (black) and their reconstructions by {how} (blue)."
    else:
        reconstructions = f"Samples (top) and their reconstructions by {how} (bottom)."
    passes = f"{learned.network.max_iter} pass{'es' * (learned.network.max_iter > 1)}"
    learning = (
        f"Left: error of the reconstruction by Wᵀy, which is low where the fields are parts of the samples, on "
        f"{learned.tested_on} of them during {passes} through the data. Right: mean rates."
    )
    return {"fields": fields, "learning": learning, "reconstructions": reconstructions}


def _how(learned: Learned, out: Path) -> dict[str, str]:
    """How the model was made, and how it is used."""
    network, data, model = learned.network, learned.data, out / "model.nc"
    parameters = ", ".join(f"{name}={value!r}" for name, value in network.get_params(deep=False).items())
    how = f"; {data.how}" if data.how else ""
    split = ", signed, and so split into an ON and an OFF channel" if learned.is_split else ""
    rows = {
        "data": f"{data.name}: {len(data.X):,} samples of {' × '.join(map(str, data.X.shape[1:]))} numbers{split}{how}",
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


STYLE = """
.slider { display: flex; gap: 12px; align-items: center; flex-wrap: wrap; position: sticky; top: 0;
  background: var(--page); padding: 8px 0; z-index: 1; }
.slider[hidden] { display: none; }
.slider input { flex: 1 1 200px; max-width: 460px; } .slider output { color: var(--soft); min-width: 16em; }
@media (max-width: 500px) { .slider { position: static; } }
"""

# The page is complete without it; it adds the slider.
SCRIPT = """
const fields = document.getElementById("fields"), slider = fields.querySelector(".slider");
const range = slider.querySelector("input"), says = slider.querySelector("output");
const show = () => {
  const k = +range.value;
  fields.style.setProperty("--sheet", `var(--s${k})`);
  says.textContent = `after ${told.shown[k].toLocaleString("en")} samples, error of Wᵀy ${told.error[k].toFixed(3)}`;
};
range.addEventListener("input", show);
slider.hidden = false;
show();
"""
