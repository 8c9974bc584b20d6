"""`asynchebb sweep`: run a parameter sweep, check its progress, plot it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from asynchebb.cli import shared
from asynchebb.cli.shared import build_run

app = typer.Typer(no_args_is_help=True, help="Run a parameter sweep, check its progress, plot it.")

# Types of the options in a file that are not text.
KINDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("n", "samples", "hold", "seed", "snapshots", "workers"), (int, "a whole number")),
    "from_rest": (bool, "true or false"),
    "measure": (list, "a list of names"),
}
OTHERS = ("engine", "workers", "dask", "slurm", "out")  # options a file may set besides the run and the axes

TheFolder = Annotated[Path, typer.Argument(help="the sweep's folder")]
TheGrid = Annotated[str | None, typer.Option(help="which sweep, if the folder holds several; by default the latest")]


@app.command()
def run(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help=r"TOML file with any of these options, \[vary] and zip")] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help='one axis: "schedule.r_b=0.5,1,2", "rule.eta=log(1e-4, 1e-1, 4)", "seed=range(5)"'),
    ] = None,
    zip: Annotated[
        list[str] | None, typer.Option(help='axes that vary together instead of multiplying, like "n,hold"')
    ] = None,
    model: shared.Model = "asynchronous",
    stimulus: shared.Stimulus = "Crossbars(14)",
    n: shared.N = 500,
    samples: shared.Samples = 2000,
    hold: shared.Hold = 500,
    rule: shared.Rule = None,
    schedule: shared.Schedule = None,
    dynamics: shared.Dynamics = None,
    weights: shared.Weights = None,
    seed: shared.Seed = 0,
    dtype: shared.Dtype = "float32",
    snapshots: shared.Snapshots = 1,
    reading: shared.TheReading = "paper",
    from_rest: shared.FromRest = None,
    measure: shared.Measures = None,
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
    from asynchebb.checks import InputError
    from asynchebb.sweeps import run_grid
    from asynchebb.sweeps.grid import axis_from_text, grid
    from asynchebb.sweeps.progress import bar

    options = {name: context.params[name] for name in inspect.signature(build_run).parameters}
    axes: dict[str, list] = {}
    tied = [[name.strip() for name in names.split(",")] for names in zip or []]
    if file is not None:
        settings, from_file, tied_in_file = _read(file, [*options, *OTHERS])
        settings = {name: value for name, value in settings.items() if not _is_given(context, name)}
        options |= {name: value for name, value in settings.items() if name in options}
        engine, workers = settings.get("engine", engine), settings.get("workers", workers)
        dask, slurm, out = settings.get("dask", dask), settings.get("slurm", slurm), Path(settings.get("out", out))
        tied = tied or tied_in_file
    base = build_run(**options)
    if file is not None:
        axes |= {name: _values(base, name, given) for name, given in from_file.items()}
    here = [axis_from_text(base, text) for text in vary or []]
    for name, along in here:
        if [other for other, _ in here].count(name) > 1:
            raise InputError(f"vary names {name} twice; it must name each axis once")
        axes[name] = along
    if "model" in axes and (options["rule"] or options["schedule"]):
        raise InputError(
            "vary names model, which brings its own rule and schedule; --rule and --schedule must be left out"
        )
    made = grid(base, axes, tied)
    with bar(out) as on_status:
        executor = shared.executor(workers, dask, slurm, out)
        points, status = run_grid(made, out, executor, engine, retry_failed=retry_failed, yes=yes, on_status=on_status)
    typer.echo(f"{status.done} of {status.total} runs done, {status.failed} failed: {out}")
    _print_failures(points)
    if status.failed:
        raise typer.Exit(1)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _read(file: Path, known: list[str]) -> tuple[dict[str, Any], dict[str, Any], list[list[str]]]:
    """The options, axes and tied axes in a TOML file."""
    import tomllib

    from asynchebb.checks import InputError

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"file is {str(file)!r}; it must be a TOML file ({error})") from None
    vary, tied = content.pop("vary", {}), content.pop("zip", [])
    for name, value in content.items():
        if name not in known:
            raise InputError(f"{file} sets {name!r}; it may set {', '.join(known)}, zip and [vary]")
        kind, accepted = KINDS.get(name, (str, "text"))
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(f"{file} sets {name} = {value!r}; it must be {accepted}")
    if not isinstance(tied, str | list) or not all(isinstance(names, str | list) for names in tied):
        raise InputError(f'{file} sets zip = {tied!r}; it must be written like zip = ["n", "hold"]')
    if not isinstance(vary, dict):
        raise InputError(f"{file} sets vary = {vary!r}; it must be a table: [vary]")
    tied = [tied] if isinstance(tied, str) else tied
    if tied and all(isinstance(name, str) and "," not in name for name in tied):
        tied = [tied]  # zip = ["n", "hold"]
    groups = [names.split(",") if isinstance(names, str) else names for names in tied]
    return content, _flat(vary), [[name.strip() for name in names] for names in groups]


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
def status(folder: TheFolder) -> None:
    """Show the progress of a sweep started on any machine: runs done, running, failed, time left."""
    from datetime import datetime

    from asynchebb.sweeps import Folder
    from asynchebb.sweeps.progress import time_left

    at = Folder(folder)
    for name in reversed(at.grid_names()):
        points = at.points(name)
        now = points.status()
        groups = points.content["axes"]
        sizes = ("|".join(axis["name"] for axis in group) + f" ({len(group[0]['values'])})" for group in groups)
        axes = " × ".join(sizes)
        started = datetime.fromtimestamp(points.started).isoformat(" ", "seconds")
        typer.secho(f"{name}  {axes}, started {started}", bold=True)
        typer.echo(f"  {points.content['run']}")
        typer.echo(
            f"  {now.done} of {now.total} done, {now.running} running, {now.failed} failed, {now.waiting} waiting"
            + time_left(now)
        )
        _print_failures(points)


def _print_failures(points: Any, most: int = 5) -> None:
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
