"""The commands for one's own data: learn, encode, compare."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from asynchebb.cli import shared

DataText = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="digits, patches, crossbars, a stimulus like 'Bars(8)', a file (.npy, .npz, .nc, idx) or a folder of "
        "images",
    ),
]
ArrayName = Annotated[str | None, typer.Option(help="which array of a file holds the data")]
Labels = Annotated[str | None, typer.Option(help="which array of the file holds the labels, or a file of them")]
Passes = Annotated[int, typer.Option(help="how often all data are shown")]

# Names that leave room for eight columns.
SHORT = {
    "asynchronous": "async",
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
    settle: Annotated[int, typer.Option(help="Euler steps in which a sample settles when it is encoded")] = 500,
    r_b: Annotated[float | None, typer.Option("--r-b", help="the asynchronous model's bursting threshold: 1.0")] = None,
    r_r: Annotated[float | None, typer.Option("--r-r", help="its refractory period: 100 Euler steps")] = None,
    rule: shared.Rule = None,
    dynamics: shared.Dynamics = None,
    weights: shared.Weights = None,
    from_rest: Annotated[
        bool, typer.Option("--from-rest/--carried-over", help="does activity start from rest at each sample?")
    ] = False,
    scale: Annotated[str, typer.Option(help="what data are divided by: norm (see docs), a number, or none")] = "norm",
    seed: shared.Seed = 0,
    array: ArrayName = None,
    engine: shared.Engine = "cpu",
    out: Annotated[Path, typer.Option(help="folder for the model, the picture of its fields and the report")] = Path(
        "learned"
    ),
) -> None:
    """Learn features of data; end in a model (NetCDF), a picture of the fields and a one-page report.

    What has been learned is not learned again, and what was broken off goes on where it stopped.
    """
    from asynchebb import data as datasets
    from asynchebb import learning, values
    from asynchebb.checks import InputError, at_least, one_of
    from asynchebb.estimators import MODELS

    one_of("model", model, MODELS)
    for name, value in (("n", n), ("passes", passes), ("hold", hold), ("settle", settle)):
        at_least(1)(name, value)
    at_least(0)("seed", seed)
    burst = {name: value for name, value in (("r_b", r_b), ("r_r", r_r)) if value is not None}
    if burst and model != "asynchronous":
        raise InputError(f"{', '.join(burst)} is given, but the {model} model has none; leave it out")
    given = {"rule": rule, "dynamics": dynamics, "weights": weights}
    parts = {kind: values.parse(kind, text) for kind, text in given.items() if text is not None}
    own = {**parts, **burst, "hold": hold, "settle": settle, "max_iter": passes, "scale": _scale(scale)}
    own["from_rest"] = from_rest
    network = MODELS[model](n, random_state=seed, engine=engine, **own)
    shown = datasets.load(data, array)
    with _sentences(), _progress(f"{model} on {shown.name}") as on_progress:
        measures = learning.learn(network, shown, out, "asynchebb " + shlex.join(sys.argv[1:]), on_progress)
    shared.print_table(f"{type(network).__name__} on {shown.name}", measures, learning.MEASURES)
    for name in ("model.nc", "fields.png", "report.html"):
        typer.echo(str(out / name))


def encode(
    model: Annotated[Path, typer.Argument(help="a model that `asynchebb learn` or ah.save_model has kept (.nc)")],
    data: DataText,
    array: ArrayName = None,
    labels: Labels = None,
    dynamics: shared.Dynamics = None,
    out: Annotated[Path, typer.Option(help=".npy for the codes alone, .npz for codes and labels")] = Path("codes.npy"),
) -> None:
    """Write the rates to which each sample brings the model: an array (samples, neurons)."""
    from asynchebb import data as datasets
    from asynchebb import learning, model_file, values
    from asynchebb.checks import InputError
    from asynchebb.rules import Hebbian
    from asynchebb.weights import Exponential

    if Path(data).exists() and out.exists() and out.samefile(data):
        raise InputError(f"out is {str(out)!r}, which is the data; it must be another file")
    # To encode, neither a rule nor initial weights are needed: those of the user's own need not be there.
    given = {"rule": Hebbian(), "weights": Exponential()} | (
        {} if dynamics is None else {"dynamics": values.parse("dynamics", dynamics)}
    )
    coder, _ = model_file.read(model, given)
    shown = datasets.load(data, array, labels)
    with _sentences(), _progress("encoding") as on_progress:
        learning.encode(coder, shown, out, on_progress)
    typer.echo(str(out))


def compare(
    data: DataText,
    n: Annotated[
        int | None, typer.Option(help="components; by default half as many as features, 100 at the most")
    ] = None,
    seeds: Annotated[int, typer.Option(help="how often each method is measured")] = 3,
    passes: Passes = 10,
    method: Annotated[list[str] | None, typer.Option(help="one of them, or several times: several; else all")] = None,
    array: ArrayName = None,
    labels: Labels = None,
    out: Annotated[Path, typer.Option(help="folder for table, JSON and plot")] = Path("comparison"),
) -> None:
    """Measure the networks beside scikit-learn's NMF, dictionary learning, PCA and ICA on the same data.

    What has been measured is not measured again.
    """
    from rich import box
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Table

    from asynchebb import comparison
    from asynchebb import data as datasets
    from asynchebb.comparison import measures

    shown = datasets.load(data, array, labels)
    with Progress(TextColumn("{task.description:>28}"), BarColumn(), MofNCompleteColumn()) as bars:
        task = bars.add_task("comparing", total=None)

        def on_progress(doing: str, done: int, of: int) -> None:
            bars.update(task, description=doing, completed=done, total=of)

        outcome = comparison.compare(shown, n, out, seeds, passes, method or (), on_progress)
    title = f"{shown.name}: {outcome['components']} components"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("mean of", no_wrap=True)
    for one in outcome["methods"]:
        table.add_column(SHORT.get(one, one), justify="right")
    for name in comparison.shown_measures(outcome):
        cells = (comparison.cell(found, name).partition(" ±")[0] for found in outcome["methods"].values())
        table.add_row(measures.MEASURES[name].says, *cells)
    Console().print(table)
    for line in outcome["left_out"]:
        typer.echo(line)
    typer.echo("What each measure is, what is better, and how it varies with the seed, is in comparison.md.")
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
    """What scikit-learn says against an argument, as what we say ourselves."""
    import warnings

    from asynchebb.checks import InputError
    from asynchebb.estimators import SilentNetwork

    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", SilentNetwork)
            yield
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
    for warning in said:
        if issubclass(warning.category, SilentNetwork):
            typer.echo(f"asynchebb: warning: {warning.message}", err=True)


@contextmanager
def _progress(name: str) -> Iterator[Any]:
    """A bar: samples done, samples a second, time left."""
    from rich import progress as bars

    with shared.bar("samples") as shown:
        tasks: list[bars.TaskID] = []

        def done(samples: int, of: int) -> None:
            if not tasks:  # not before it has begun: it may yet be refused
                tasks.append(shown.add_task(name, total=of, completed=samples))
            shown.update(tasks[0], completed=samples)

        yield done
