"""The commands for the user's own data: learn, encode, compare."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from asynchebb import progress
from asynchebb.cli import shared

DataText = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="digits, patches, crossbars, a stimulus like 'Bars(8)', a file (.npy, .npz, .nc, .csv, .parquet, idx) "
        "or a folder of images",
    ),
]
ArrayName = Annotated[str | None, typer.Option(help="name of the array in the file that holds the data")]
Labels = Annotated[
    str | None, typer.Option(help="name of the array or column that holds the labels, or a file of labels")
]
Passes = Annotated[int, typer.Option(help="number of passes through the data")]

# Short names, so that eight columns fit.
SHORT = {
    "asynchronous": "async",
    "asynchronous, retentive": "retent.",
    "continuous": "contin.",
    "MiniBatchNMF": "NMF",
    "MiniBatchDictionaryLearning": "dict. l.",
    "IncrementalPCA": "PCA",
    "FastICA": "ICA",
    "raw data": "raw",
}


def learn(
    data: DataText,
    model: shared.Model = "asynchronous",
    n: shared.N = 100,
    passes: Passes = 10,
    hold: shared.Hold = 500,
    settle: Annotated[int, typer.Option(help="Euler steps for which each sample settles when it is encoded")] = 500,
    r_b: Annotated[
        float | None, typer.Option("--r-b", help="bursting threshold of the asynchronous model (1.0)")
    ] = None,
    r_r: Annotated[float | None, typer.Option("--r-r", help="its refractory period in Euler steps (100)")] = None,
    rule: shared.Rule = None,
    dynamics: shared.Dynamics = None,
    weights: shared.Weights = None,
    from_rest: Annotated[
        bool, typer.Option("--from-rest/--carried-over", help="start from rest at each sample, or carry activity over")
    ] = False,
    readout: Annotated[
        bool, typer.Option("--readout/--no-readout", help="reconstruct by a learned readout, or by the paper's Wᵀy")
    ] = True,
    scale: Annotated[str, typer.Option(help="divisor for the data: norm (see docs), a number, or none")] = "norm",
    seed: shared.Seed = 0,
    array: ArrayName = None,
    labels: Labels = None,
    engine: shared.Engine = "cpu",
    out: Annotated[Path, typer.Option(help="output folder for the model, its receptive fields and the report")] = Path(
        "learned"
    ),
) -> None:
    """Learn features from data; save the model (NetCDF), a picture of its fields and a one-page report.

    A finished model is not trained again; an interrupted one resumes where it stopped.
    """
    with progress.working("starting"):
        from asynchebb import notation
        from asynchebb.checks import InputError, at_least, one_of
        from asynchebb.estimators import MODELS
        from asynchebb.own_data import learn
        from asynchebb.own_data import load as datasets

    one_of("model", model, MODELS)
    for name, value in (("n", n), ("passes", passes), ("hold", hold), ("settle", settle)):
        at_least(1)(name, value)
    at_least(0)("seed", seed)
    burst = {name: value for name, value in (("r_b", r_b), ("r_r", r_r)) if value is not None}
    if burst and model != "asynchronous":
        raise InputError(f"{', '.join(burst)} is given, but the {model} model does not use it; leave it out")
    given = {"rule": rule, "dynamics": dynamics, "weights": weights}
    parts = {kind: notation.parse_named(kind, text) for kind, text in given.items() if text is not None}
    options = {**parts, **burst, "hold": hold, "settle": settle, "max_iter": passes, "scale": _scale(scale)}
    options |= {"from_rest": from_rest, "readout": readout}
    network = MODELS[model](n, random_state=seed, engine=engine, **options)
    with progress.working(f"reading {data}"):
        shown = datasets.load(data, array, labels)
    if shown.how:
        typer.echo(f"{data}: {shown.how}")
    with _sentences(), _progress(f"{model} on {shown.name}") as on_progress:
        measures = learn.learn(network, shown, out, "asynchebb " + shlex.join(sys.argv[1:]), on_progress)
    shared.print_table(f"{type(network).__name__} on {shown.name}", measures, learn.ROW_LABELS)
    for name in ("model.nc", "fields.png", "report.html"):
        typer.echo(str(out / name))


def encode(
    model: Annotated[Path, typer.Argument(help="a model saved by `asynchebb learn` or ah.save_model (.nc)")],
    data: DataText,
    array: ArrayName = None,
    labels: Labels = None,
    dynamics: shared.Dynamics = None,
    out: Annotated[
        Path, typer.Option(help=".npy for the codes alone; .npz, .csv, .tsv or .parquet for codes and labels")
    ] = Path("codes.npy"),
) -> None:
    """Encode data: write the settled rates for each sample, an array (samples, neurons)."""
    with progress.working("starting"):
        from asynchebb import notation
        from asynchebb.checks import InputError
        from asynchebb.estimators import model_file
        from asynchebb.own_data import learn
        from asynchebb.own_data import load as datasets
        from asynchebb.rules import Hebbian
        from asynchebb.weights import Exponential

    if Path(data).exists() and out.exists() and out.samefile(data):
        raise InputError(f"out is {str(out)!r}, which is the data file; it must be a different file")
    # Encoding needs neither a rule nor initial weights, so user-defined ones need not be available.
    given = {"rule": Hebbian(), "weights": Exponential()} | (
        {} if dynamics is None else {"dynamics": notation.parse_named("dynamics", dynamics)}
    )
    with progress.working(f"reading {model} and {data}"):
        coder, _ = model_file.read(model, given)
        shown = datasets.load(data, array, labels)
    with _sentences(), _progress("encoding") as on_progress:
        learn.encode(coder, shown, out, on_progress)
    typer.echo(str(out))


def compare(
    data: DataText,
    n: Annotated[
        int | None, typer.Option(help="components; by default half the number of features, at most 100")
    ] = None,
    seeds: Annotated[int, typer.Option(help="number of random seeds per method")] = 3,
    passes: Passes = 10,
    method: Annotated[
        list[str] | None, typer.Option(help="method to measure; repeat for several; by default all")
    ] = None,
    array: ArrayName = None,
    labels: Labels = None,
    out: Annotated[Path, typer.Option(help="output folder for table, JSON and plot")] = Path("comparison"),
) -> None:
    """Compare the networks with scikit-learn's NMF, dictionary learning, PCA and ICA on the same data.

    Finished measurements are not repeated.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    with progress.working("starting"):
        from asynchebb.own_data import compare
        from asynchebb.own_data import load as datasets
        from asynchebb.own_data.compare import trial

    with progress.working(f"reading {data}"):
        shown = datasets.load(data, array, labels)
    with progress.shown("measurements") as begin:
        update = begin("comparing", None)

        def on_progress(doing: str, done: int, of: int) -> None:
            update(done, of, doing)

        outcome = compare.compare(shown, n, out, seeds, passes, method or (), on_progress)
    title = f"{shown.name}: {outcome['components']} components"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("mean of", no_wrap=True)
    for one in outcome["methods"]:
        table.add_column(SHORT.get(one, one), justify="right")
    for name in compare.shown_measures(outcome):
        cells = (compare.cell(found, name).partition(" ±")[0] for found in outcome["methods"].values())
        table.add_row(trial.MEASURES[name].label, *cells)
    Console().print(table)
    for line in outcome["left_out"]:
        typer.echo(line)
    typer.echo("comparison.md defines each measure, says which direction is better and gives the spread over seeds.")
    for name in ("comparison.md", "comparison.json", "comparison.png"):
        typer.echo(str(out / name))


def _scale(text: str) -> Any:
    from asynchebb.checks import InputError

    if text in ("norm", "none"):
        return None if text == "none" else text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"scale is {text!r}; it must be norm, none or a number above 0") from None


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn scikit-learn's errors about arguments into ours, and warnings of a silent network into one-line messages."""
    from asynchebb.checks import InputError

    try:
        with shared.warnings_as_sentences():
            yield
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error


@contextmanager
def _progress(name: str) -> Iterator[Any]:
    """Samples done, samples per second, time left."""
    with progress.shown("samples") as begin:
        yield begin(name, None)
