"""`asynchebb sweep`: run a parameter sweep, check its progress, plot it."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from asynchebb import progress
from asynchebb.cli import shared

if TYPE_CHECKING:
    from asynchebb.sweeps.folder import Points

app = typer.Typer(no_args_is_help=True, help="Run a parameter sweep, check its progress, plot it.")

# Types of the options in a file that are not text.
KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("n", "samples", "hold", "seed", "snapshots", "workers"), (int, "a whole number")),
    "from_rest": (bool, "true or false"),
    **dict.fromkeys(("r_b", "r_r"), (int | float, "a number")),
    "measure": (list, "a list of names"),
    "phase": (list, "a list of stimuli"),
}
# The options that a file may set, besides the axes.
KNOWN = [*(field.name for field in fields(shared.RunOptions)), "engine", "workers", "dask", "slurm", "out"]

TheFolder = Annotated[Path, typer.Argument(help="the sweep's folder")]
TheGrid = Annotated[str | None, typer.Option(help="which sweep, if the folder holds several; by default the latest")]


def _set_defaults(context: typer.Context, file: Path | None) -> Path | None:
    """The options in the file stand in for those that the command line leaves out."""
    if file is not None:
        context.default_map = _options_in(file)
    return file


@app.command()
@shared.takes_run_options(snapshots=1)
def run(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            help=r"TOML file with any of these options, \[vary] and zip", is_eager=True, callback=_set_defaults
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help='one axis: "schedule.r_b=0.5,1,2", "rule.eta=log(1e-4, 1e-1, 4)", "seed=range(5)"'),
    ] = None,
    zip: Annotated[
        list[str] | None, typer.Option(help='axes that vary together instead of multiplying, like "n,hold"')
    ] = None,
    options: shared.RunOptions,
    engine: shared.Engine = "cpu",
    workers: shared.Workers = None,
    dask: shared.Dask = None,
    slurm: shared.Slurm = None,
    retry_failed: shared.RetryFailed = False,
    yes: Annotated[bool, typer.Option("--yes", help="confirm a very large grid")] = False,
    out: Annotated[Path, typer.Option(help="output folder")] = Path("sweep"),
) -> None:
    """Run a model with every combination of some values and save all runs in one folder; no run is repeated.

    If interrupted, the same command resumes. A run that fails is recorded with its error.
    """
    with progress.working("starting"):
        from asynchebb.checks import InputError
        from asynchebb.sweeps import bar, run_grid
        from asynchebb.sweeps.grid import axis_from_text, grid

    base = options.run()
    tied = [[name.strip() for name in names.split(",")] for names in zip or []]
    axes: dict[str, list] = {}
    if file is not None:
        from_file, tied_in_file = _axes_in(file)
        axes |= {name: _values(base, name, given) for name, given in from_file.items()}
        tied = tied or tied_in_file
    here = [axis_from_text(base, text) for text in vary or []]
    for name, along in here:
        if [other for other, _ in here].count(name) > 1:
            raise InputError(f"vary names {name} twice; it must name each axis once")
        axes[name] = along
    if "model" in axes and (options.rule or options.schedule):
        raise InputError(
            "vary names model, which brings its own rule and schedule; --rule and --schedule must be left out"
        )
    made = grid(base, axes, tied)
    with bar(str(out)) as on_status:
        executor = shared.executor(workers, dask, slurm, out)
        points, status = run_grid(made, out, executor, engine, retry_failed=retry_failed, yes=yes, on_status=on_status)
    typer.echo(f"{status.done} of {status.total} runs done, {status.failed} failed: {out}")
    _end(points)


def _end(points: Points) -> None:
    """Report failed runs, and networks that learned nothing or are unstable; exit with 1 if any failed."""
    from asynchebb.sweeps.folder import TROUBLES

    status = points.status()
    _print_failures(points)
    for trouble, what in TROUBLES.items():
        if found := points.troubled(trouble):
            some = "; ".join(found[:5]) + ("; …" if len(found) > 5 else "")
            shared.warn(f"{len(found)} of {status.total} runs {what} ({some})")
    if status.failed:
        raise typer.Exit(1)


@app.command()
@shared.takes_run_options(snapshots=1)
def search(
    *,
    vary: Annotated[
        list[str],
        typer.Option(help='a field to search: "rule.eta=log(1e-4, 1e-1)", "schedule.r_b=linear(0, 2)", "hold=100,500"'),
    ],
    objective: Annotated[
        str, typer.Option(help="measure to minimise or maximise, mean over a trial's seeds")
    ] = "error",
    goal: Annotated[str | None, typer.Option(help="less or more", show_default="what is better of the measure")] = None,
    trials: Annotated[int, typer.Option(help="number of settings to try")] = 50,
    seeds: Annotated[int, typer.Option(help="runs per trial, which differ in their seed")] = 1,
    sampler: Annotated[str, typer.Option(help="adaptive (near the best so far; needs Optuna) or random")] = "adaptive",
    batch: Annotated[int, typer.Option(help="trials chosen at a time")] = 8,
    options: shared.RunOptions,
    engine: shared.Engine = "cpu",
    workers: shared.Workers = None,
    dask: shared.Dask = None,
    slurm: shared.Slurm = None,
    retry_failed: shared.RetryFailed = False,
    out: Annotated[Path, typer.Option(help="output folder")] = Path("search"),
) -> None:
    """Search a space of parameters for the best value of a measure, at random or adaptively.

    Runs are saved as those of a grid are; the same command resumes, and with more trials continues.
    """
    with progress.working("starting"):
        from asynchebb.sweeps import bar, dataset, sampling

    base = options.run()
    space = sampling.space_of(base, sampling.space_from_text(base, vary))
    better = sampling.direction(base, objective, goal, "objective")
    executor = shared.executor(workers, dask, slurm, out)
    with bar(str(out)) as on_status:
        points = sampling.search_runs(
            base, space, out, executor, engine, measure=objective, goal=goal, trials=trials, seeds=seeds,
            sampler=sampler, batch=batch, retry_failed=retry_failed, on_status=on_status,
        )  # fmt: skip
    found = dataset.open_sweep(out, points.name)
    if objective in found:  # else no run is finished
        _print_best(found, objective, better, [*space])
    typer.echo(f"{found.sizes['trial']} trials: {out}")
    _end(points)


def _print_best(dataset: Any, measure: str, better: str, names: list[str], most: int = 5) -> None:
    from rich.console import Console
    from rich.table import Table

    from asynchebb.sweeps.plots import of_trials

    values, _ = of_trials(dataset, measure)
    order = [k for k in np.argsort(values if better == "less" else -values, kind="stable") if np.isfinite(values[k])]
    if not order:
        typer.echo("no trial has a value for each of its seeds")
        return
    table = Table(title=f"the best trials, by {dataset[measure].attrs['long_name']}", title_justify="left")
    for name in ("trial", *names, measure):
        table.add_column(name, justify="right")
    for k in order[:most]:
        settings = [_short(dataset[name].values[k].item()) for name in names]
        table.add_row(str(dataset["trial"].values[k]), *settings, f"{values[k]:.4g}")
    Console().print(table)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _content(file: Path) -> dict[str, Any]:
    import tomllib

    from asynchebb.checks import InputError

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"file is {str(file)!r}; it must be a TOML file ({error})") from None


def _options_in(file: Path) -> dict[str, Any]:
    """The options in a TOML file, by their names."""
    from asynchebb.checks import InputError

    options = {name: value for name, value in _content(file).items() if name not in ("vary", "zip")}
    for name, value in options.items():
        if name not in KNOWN:
            raise InputError(f"{file} sets {name!r}; it may set {', '.join(KNOWN)}, zip and [vary]")
        kind, accepted = KINDS.get(name, (str, "text"))
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise InputError(f"{file} sets {name} = {value!r}; it must be {accepted}")
    return options


def _axes_in(file: Path) -> tuple[dict[str, Any], list[list[str]]]:
    """The axes and the tied axes in a TOML file."""
    from asynchebb.checks import InputError

    content = _content(file)
    vary, tied = content.get("vary", {}), content.get("zip", [])
    groups = tied if isinstance(tied, list) else [tied]
    names = [name for group in groups for name in (group if isinstance(group, list) else [group])]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f'{file} sets zip = {tied!r}; it must be written like zip = ["n", "hold"]')
    if not isinstance(vary, dict):
        raise InputError(f"{file} sets vary = {vary!r}; it must be a table: [vary]")
    tied = [tied] if isinstance(tied, str) else tied
    if tied and all(isinstance(name, str) and "," not in name for name in tied):
        tied = [tied]  # zip = ["n", "hold"]
    groups = [names.split(",") if isinstance(names, str) else names for names in tied]
    return _flat(vary), [[name.strip() for name in names] for names in groups]


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables: TOML reads an unquoted schedule.r_b = [...] as a table within a table."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _values(base: Any, name: str, given: Any) -> list:
    from asynchebb.sweeps.grid import value_from_text, values_from_text

    if isinstance(given, str):
        return values_from_text(base, name, given)
    given = given if isinstance(given, list) else [given]
    return [value_from_text(name, value) if isinstance(value, str) else value for value in given]


@app.command()
def status(
    folder: TheFolder,
    watch: Annotated[bool, typer.Option("--watch", help="follow the latest sweep until it has ended")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="everything about all sweeps, as JSON")] = False,
) -> None:
    """Show the progress of the sweeps in a folder, started on any machine: runs done, running, failed, time left."""
    import json

    from asynchebb.sweeps import Folder, watched

    at = Folder(folder)
    names = [*reversed(at.grid_names())]
    if as_json:
        typer.echo(json.dumps([at.points(name).facts() for name in names], indent=1))
        return
    if watch:
        watched(at.points(names[0]))
        names = [*reversed(at.grid_names())]
    for name in names:
        points = at.points(name)
        now = points.status()
        typer.echo(f"{name}  {points.axes_in_words}: {now.done} of {now.total} done, {now.in_words}")
        if name == names[0]:
            _print_failures(points)


@app.command()
def export(
    folder: TheFolder,
    table: Annotated[Path, typer.Argument(help="file to write: .csv, .tsv or .parquet")],
    grid: TheGrid = None,
) -> None:
    """Write a table with a row per run: its values on the axes, its measures, its file, its error."""
    with progress.working("reading"):
        from asynchebb import tables
        from asynchebb.sweeps import dataset

    tables.check("table", table)
    tables.write("table", dataset.table(dataset.open_sweep(folder, grid)), table)
    typer.echo(str(table))


@app.command()
def rm(
    folder: TheFolder,
    grid: Annotated[str, typer.Argument(help="the sweep to delete, as `sweep status` names it")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Delete a sweep and its runs; runs that other sweeps in the folder share stay."""
    from asynchebb.sweeps import Folder

    at = Folder(folder)
    points = at.points(grid)
    if not yes:
        if sys.stdin is None:  # it was closed, so nobody can answer
            raise typer.Abort
        runs = f"{len(at.runs_of(grid)):,} runs, which no other sweep shares, from {at.runs}"
        typer.confirm(f"Delete {grid} ({points.axes_in_words}) and the files of {runs}?", abort=True)
    typer.echo(f"{at.remove_grid(grid):,} runs deleted from {folder}")


def _print_failures(points: Points, most: int = 5) -> None:
    failures = points.failures()
    for values, error in [*failures.items()][:most]:
        typer.echo(f"  {values}: {error.splitlines()[0]}")
    if failures:
        more = f"and {len(failures) - most} more; " if len(failures) > most else ""
        typer.echo(f"  {more}all errors are in {points.folder.runs}/*.failed; --retry-failed runs them again")


@app.command()
def plot(
    folder: TheFolder,
    measure: Annotated[str, typer.Option(help="measure to plot: any one of the sweep")] = "error",
    at: Annotated[
        list[str] | None,
        typer.Option(help='plot only these values of an axis, like "hold=500" or "schedule.r_b=0.5,1"'),
    ] = None,
    fields: Annotated[bool, typer.Option("--fields", help="plot the receptive fields instead of a measure")] = False,
    grid: TheGrid = None,
    out: Annotated[Path | None, typer.Option(help="PNG or PDF to write; by default in the folder")] = None,
) -> None:
    """Plot a sweep: a curve for one parameter, a heat map for two, several for three; mean ± sd over seeds."""
    with progress.working("reading"):
        from asynchebb.drawing.figures import save
        from asynchebb.sweeps import open_sweep, plots
        from asynchebb.sweeps.dataset import select

        dataset = open_sweep(folder, grid)
    for text in at or []:
        dataset = select(dataset, text)
    drawn = " ".join(["fields" if fields else measure, *filter(None, [grid]), *(at or [])])
    picture = out or folder / f"{drawn.replace('/', '|')}.png"
    save(plots.fields(dataset) if fields else plots.measure(dataset, measure), picture)
    typer.echo(str(picture))
