"""The command line. Heavy modules are imported where they are used: `--help` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from asynchebb.simulate import Run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def asynchebb(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Asynchronous Hebbian/anti-Hebbian networks (Aguiar & Hennig 2024)."""
    if version:
        from asynchebb import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def run(
    model: Annotated[str, typer.Option(help="asynchronous, continuous or discrete")] = "asynchronous",
    stimulus: Annotated[str, typer.Option(help='what is shown, like "Bars(14, probability=0.1)"')] = "Crossbars(14)",
    n: Annotated[int, typer.Option(help="neurons")] = 500,
    samples: Annotated[int, typer.Option(help="stimuli shown")] = 2000,
    hold: Annotated[int, typer.Option(help="Euler steps each stimulus is held")] = 500,
    rule: Annotated[
        str | None, typer.Option(help='instead of the model\'s, like "Foldiak(p=0.05)" or "file.py:Rule()"')
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help='instead of the model\'s, like "Asynchronous(r_b=2, r_r=50)"')
    ] = None,
    dynamics: Annotated[str | None, typer.Option(help='instead of the model\'s, like "Projected(dt=0.01)"')] = None,
    weights: Annotated[
        str | None, typer.Option(help='instead of the model\'s, like "Gaussian(rectified=True)"')
    ] = None,
    seed: Annotated[int, typer.Option(help="of initial weights and stimuli")] = 0,
    dtype: Annotated[str, typer.Option(help="float32 or float64")] = "float32",
    snapshots: Annotated[int, typer.Option(help="moments on the way at which the network is tested and kept")] = 20,
    engine: Annotated[str, typer.Option(help="cpu or reference")] = "cpu",
    out: Annotated[Path, typer.Option(help="folder for the run, or its .nc file")] = Path("runs"),
) -> None:
    """Train a model on a stimulus; end in a table of measures, a NetCDF file and a PNG.

    What has been run is not run again, and what was broken off goes on where it stopped.
    """
    from asynchebb import figures, values
    from asynchebb.checks import one_of
    from asynchebb.network import MODELS
    from asynchebb.recording import file_of, record, summary
    from asynchebb.simulate import Phase, Run, check_stimulus

    one_of("model", model, MODELS)
    given = {"rule": rule, "schedule": schedule, "dynamics": dynamics, "weights": weights}
    changes = {kind: values.parse(kind, text) for kind, text in given.items() if text is not None}
    shown = values.parse("stimulus", stimulus)
    check_stimulus(shown)
    what = Run(MODELS[model](n, shown.m, **changes), (Phase(shown, samples, hold, snapshots),), seed=seed, dtype=dtype)
    with progress() as started:
        dataset = record(what, out, engine, on_progress=started(model, what))
    if dataset.attrs["engine"] != engine:
        typer.echo(f"this run was finished before, on the {dataset.attrs['engine']} engine")
    picture = file_of(what, out).with_suffix(".png")
    figures.save(figures.run(dataset), picture)
    print_table(str(dataset.attrs["title"]), summary(dataset))
    typer.echo(f"{file_of(what, out)}\n{picture}")


@app.command("list")
def list_variants() -> None:
    """Every rule, schedule, dynamics, stimulus and metric, with its equation or a line on what it is."""
    import inspect

    from asynchebb import metrics, values

    for kind in values.MODULES:
        typer.secho(kind, bold=True)
        for name, cls in values.variants(kind).items():
            typer.echo(f"  {name}{inspect.signature(cls)}".replace(" -> None", "").replace("'", ""))
            typer.echo(_indented(cls))
    typer.secho("metric", bold=True)
    for name, function in vars(metrics).items():
        if inspect.isfunction(function) and function.__module__ == metrics.__name__ and not name.startswith("_"):
            typer.echo(f"  {name}({', '.join(inspect.signature(function).parameters)})")
            typer.echo(_indented(function))


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="a run kept by asynchebb (.nc)")],
    out: Annotated[Path | None, typer.Option(help="PNG to draw; by default beside the file")] = None,
) -> None:
    """Draw a kept run again."""
    from asynchebb import figures
    from asynchebb.recording import open_run, summary

    dataset = open_run(file)
    picture = out or file.with_suffix(".png")
    figures.save(figures.run(dataset), picture)
    print_table(str(dataset.attrs["title"]), summary(dataset))
    typer.echo(str(picture))


@app.command()
def reproduce(
    scale: Annotated[str, typer.Option(help="smoke (seconds) or small (n=500, a million steps a run)")] = "small",
    out: Annotated[Path, typer.Option(help="folder for runs, pictures and numbers")] = Path("reproduction"),
) -> None:
    """Train the paper's three models on crossed bars and draw them side by side with their measures."""
    from asynchebb.checks import one_of
    from asynchebb.experiments import three_models

    one_of("scale", scale, three_models.SCALES)
    with progress() as started:
        table = three_models.reproduce(scale, out, started)
    print_table(three_models.title(scale), table)
    typer.echo("\n".join(str(out / name) for name in three_models.FILES))


@app.command()
def warmup() -> None:
    """Compile the paper's models once, so that the first run of each starts at once."""
    from asynchebb.engines import cpu
    from asynchebb.network import MODELS

    for name, preset in MODELS.items():
        # Snapshots are tested on a frozen copy of the network.
        new = [cpu.warm_up(network) for network in (preset(), preset().frozen())]
        typer.echo(f"{name}: {'compiled' if any(new) else 'compiled before'}")
    typer.echo(str(cpu.cache_folder()))


@contextmanager
def progress() -> Iterator[Callable[[str, Run], Callable[[int], object]]]:
    """A bar for each run: steps done, steps a second, time left."""
    from rich import progress as bars

    class Speed(bars.ProgressColumn):
        def render(self, task: bars.Task) -> str:
            return f"{task.speed:,.0f} steps/s" if task.speed else ""

    columns = (
        bars.TextColumn("{task.description:>12}"),
        bars.BarColumn(),
        bars.TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"),
        Speed(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns) as shown:

        def started(name: str, run: Run) -> Callable[[int], object]:
            tasks: list[bars.TaskID] = []

            def done(steps: int) -> None:
                if not tasks:  # not before the run has begun: it may yet be refused
                    tasks.append(shown.add_task(name, total=run.steps, completed=steps))
                shown.update(tasks[0], completed=steps)

            return done

        yield started


def print_table(title: str, rows: dict[str, Any]) -> None:
    """Measures by name; or, for a table of them by model, a column for each model."""
    from rich.console import Console
    from rich.table import Table

    columns = rows if all(isinstance(row, dict) for row in rows.values()) else {"value": rows}
    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    for name in columns:
        table.add_column(name, justify="right")
    for measure in next(iter(columns.values())):
        table.add_row(measure, *(_number(row[measure]) for row in columns.values()))
    Console().print(table)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"


def _indented(documented: Any) -> str:
    import inspect

    return "\n".join(f"      {line}".rstrip() for line in (inspect.getdoc(documented) or "").splitlines())


def main() -> None:
    """Run the command line; what the user got wrong is said in a sentence, without a traceback."""
    from asynchebb.checks import InputError
    from asynchebb.simulate import Diverged

    usage_error: Any = typer.BadParameter.__base__  # an unknown option, a word where a number belongs
    try:
        code = app(standalone_mode=False)
    except usage_error as error:
        code = _said(error.format_message(), 2)
    except InputError as error:
        code = _said(str(error), 2)
    except MemoryError as error:
        code = _said(f"n or m is too large for this machine's memory ({error})", 2)
    except Diverged as error:
        code = _said(str(error), 1)
    if code == 130:  # Ctrl-C, as Typer passes it on
        _said("interrupted; the same command goes on from the last snapshot", code)
    sys.exit(code)


def _said(sentence: str, code: int) -> int:
    if sentence:  # help that was shown for want of a command needs no more words
        print(f"asynchebb: {sentence}", file=sys.stderr)
    return code
