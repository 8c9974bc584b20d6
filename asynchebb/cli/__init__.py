"""The command line interface. Heavy modules are imported inside the commands, so that `--help` is instant."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from asynchebb import progress
from asynchebb.cli import learn, live, shared, sweep
from asynchebb.cli.shared import print_table

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
RESUME = "the same command resumes"


app.add_typer(sweep.app, name="sweep")
for command in (learn.learn, learn.encode, learn.compare, live.live):
    app.command()(command)


@app.callback(invoke_without_command=True)
def asynchebb(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Asynchronous Hebbian/anti-Hebbian networks (Aguiar & Hennig 2024)."""
    if version:
        from asynchebb import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
@shared.takes_run_options()
def run(
    options: shared.RunOptions,
    engine: shared.Engine = "cpu",
    out: Annotated[Path, typer.Option(help="output folder, or an .nc file")] = Path("runs"),
) -> None:
    """Train a model on a stimulus; print its measures, and save the run (NetCDF) and a figure (PNG).

    A finished run is not repeated; an interrupted one resumes where it stopped.
    """
    with progress.working("starting"):
        from asynchebb import plot
        from asynchebb.drawing import figures
        from asynchebb.runs.recording import file_of, record

    requested = options.run()
    with shared.warnings_as_sentences():
        dataset = record(requested, out, engine, progress=True)
    if engine != "auto" and dataset.attrs["engine"] != engine:
        typer.echo(f"this run was already finished, on the {dataset.attrs['engine']} engine")
    picture = file_of(requested, out).with_suffix(".png")
    figures.save(plot.run(dataset), picture)
    _print_summary(dataset, requested)
    typer.echo(f"{file_of(requested, out)}\n{picture}")


@app.command("list")
def list_variants() -> None:
    """List every rule, schedule, dynamics, stimulus and measure, with its equation or a short description."""
    import inspect

    from asynchebb import measures, metrics, notation

    for kind in notation.MODULES:
        typer.secho(kind, bold=True)
        for name, cls in notation.variants(kind).items():
            typer.echo(f"  {name}{inspect.signature(cls)}".replace(" -> None", "").replace("'", ""))
            typer.echo(_indented(cls))
    typer.secho("measure", bold=True)
    for measure in measures.MEASURES.values():
        details = "; ".join(filter(None, [measure.unit, measure.better and f"{measure.better} is better"]))
        typer.echo(f"  {measure.name}({', '.join(measure.needs)})")
        typer.echo(f"      {measure.label}{f' ({details})' if details else ''}")
    typer.secho("metric", bold=True)
    for name, function in vars(metrics).items():
        if inspect.isfunction(function) and function.__module__ == metrics.__name__ and not name.startswith("_"):
            typer.echo(f"  {name}({', '.join(inspect.signature(function).parameters)})")
            typer.echo(_indented(function))


def _print_summary(dataset: Any, run: Any = None) -> None:
    """The measures at the end, in a column for each probe."""
    from asynchebb.runs.saved import summary

    if "diverged_at_step" in dataset.attrs:
        shared.warn(f"this run diverged at step {int(dataset.attrs['diverged_at_step']):,}; it shows what came before")
    shown = [str(stimulus) for stimulus in dataset["stimulus"].values]
    found = [summary(dataset, q, run) for q in range(len(shown))]
    columns: dict[str, Any] = dict(zip(shown, found, strict=True)) if len({*shown}) > 1 else found[-1]
    print_table(str(dataset.attrs["title"]), columns, _labels(dataset))


def _labels(dataset: Any) -> dict[str, str]:
    """Labels of all measures, including user-defined ones."""
    from asynchebb.measures import LABELS

    return {str(name): str(variable.attrs.get("long_name", name)) for name, variable in dataset.items()} | LABELS


@app.command()
def show(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="runs saved by asynchebb (.nc)")],
    out: Annotated[
        Path | None, typer.Option(help="PNG or PDF to write; by default next to the run, or comparison.png")
    ] = None,
) -> None:
    """Draw a saved run again, or compare several: measures in one table, fields and errors in one figure."""
    with progress.working("reading"):
        from asynchebb import plot
        from asynchebb.drawing import figures
        from asynchebb.runs.saved import open_run, summary

        datasets = [open_run(file) for file in files]
    if len(files) == 1:
        picture = out or files[0].with_suffix(".png")
        figures.save(plot.run(datasets[0]), picture)
        _print_summary(datasets[0])
    else:
        picture = out or files[0].parent / "comparison.png"
        figures.save(plot.compare(datasets), picture)
        letters = plot.LETTERS[: len(files)]
        for letter, file, name in zip(letters, files, plot.differences(datasets), strict=True):
            typer.echo(f"{letter}  {file}: {name}")
        columns = {letter: summary(dataset) for letter, dataset in zip(letters, datasets, strict=True)}
        labels = {name: label for dataset in datasets for name, label in _labels(dataset).items()}
        print_table("at the end, on the last probe", columns, labels)
    typer.echo(str(picture))


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="fig1, fig2, fig3, figA, figC, figF …; by default all of them", show_default=False),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="smoke (seconds), small (a million steps per run) or paper (ten million)")
    ] = "small",
    workers: shared.Workers = None,
    dask: shared.Dask = None,
    slurm: shared.Slurm = None,
    engine: shared.Engine = "cpu",
    retry_failed: shared.RetryFailed = False,
    beside: Annotated[
        Path | None, typer.Option(help="folder of a reproduction at another scale, to include in claims.md")
    ] = None,
    out: Annotated[Path, typer.Option(help="output folder for runs, figures, numbers and report")] = Path(
        "reproduction"
    ),
) -> None:
    """Run the paper's experiments, draw its figures and judge each of its claims, all on one page (index.html).

    Finished runs are not repeated: if interrupted, the same command resumes, and once complete it only redraws.
    """
    with progress.working("starting"):
        from asynchebb.reproduction import reproduce as all_experiments
        from asynchebb.sweeps import bar, executors

    known = 0 if dask is not None or slurm is not None else workers or executors.cores()
    executor = shared.executor(workers, dask, slurm, all_experiments.sweep_folder(out))
    with bar(str(out)) as on_status:
        outcome = all_experiments.reproduce(
            figures or [], scale, out, executor, known, engine, retry_failed, on_status, typer.echo, beside
        )
    shared.print_claims(outcome)
    typer.echo(f"{out / 'index.html'}\n{out / 'claims.json'}")
    if outcome.failures:
        for name, why in outcome.failures.items():
            typer.echo(f"failed: {name}: {why.splitlines()[0]}", err=True)
        raise typer.Exit(1)


@app.command()
def movie(
    run: Annotated[Path, typer.Argument(help="a run saved by asynchebb (.nc)")],
    out: Annotated[Path | None, typer.Option(help="GIF or MP4 to write; by default a GIF next to the run")] = None,
    neurons: Annotated[int, typer.Option(help="number of neurons to show, the most active ones")] = 100,
    seconds: Annotated[float, typer.Option(help="duration of the animation")] = 6.0,
) -> None:
    """Animate the receptive fields as they form."""
    with progress.working("drawing"):
        from asynchebb.drawing import movies
        from asynchebb.runs.saved import open_run, opened

        dataset = opened("run", open_run(run), "error", "error_last", "mean_activity")
        picture = out or run.with_suffix(".gif")
        movies.write(dataset, picture, neurons, seconds)
    typer.echo(str(picture))


@app.command()
def warmup() -> None:
    """Compile the paper's models in advance, so that the first run of each starts immediately."""
    with progress.working("starting"):
        from asynchebb.engines import cpu
        from asynchebb.network import MODELS

    for name, preset in MODELS.items():
        with progress.working(f"compiling {name}"):  # snapshots are tested on a frozen copy of the network
            new = [cpu.warm_up(network) for network in (preset(), preset().frozen())]
        typer.echo(f"{name}: {'compiled' if any(new) else 'already compiled'}")
    typer.echo(str(cpu.cache_folder()))


@app.command()
def doctor() -> None:
    """Examine this installation (versions, optional parts, cache, threads, BLAS, GPU): what is wrong, how to fix it.

    Exits with 1 if something is wrong.
    """
    with progress.working("starting"):
        from asynchebb.doctor import examine

    wrong, part = 0, ""
    for finding in examine():
        mark = typer.style("✗", fg="red") if finding.fix else typer.style("✓", fg="green")
        name = finding.part if finding.part != part else ""
        typer.echo(f"{name:>10} {mark} {finding.says}")
        if finding.fix:
            typer.echo(f"{'':>12} → {finding.fix}")
            wrong += 1
        part = finding.part
    typer.echo(f"\n{wrong} thing{'s' if wrong > 1 else ''} to fix" if wrong else "\nAll is well.")
    raise typer.Exit(bool(wrong))


def _indented(documented: Any) -> str:
    from asynchebb.equations import statement

    return "\n".join(f"      {line}".rstrip() for line in statement(documented).splitlines())


def main() -> None:
    """Run the command line; report user errors in one sentence, without a traceback."""
    from asynchebb.checks import InputError
    from asynchebb.files import disk_is_full
    from asynchebb.runs.simulate import Diverged
    from asynchebb.sweeps.executors import Stopped

    # An unknown option, or a word where a number belongs. Typer has no public name for the error itself.
    usage_error: Any = typer.BadParameter.__base__
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal may not know our letters
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except usage_error as error:
        code = _report(error.format_message(), 2)
    except InputError as error:
        code = _report(str(error), 2)
    except MemoryError as error:
        code = _report(f"n or m is too large for this machine's memory ({error})", 2)
    except (Diverged, FloatingPointError) as error:
        code = _report(str(error), 1)
    except typer.Abort:
        code = _report("nothing was done", 1)
    except Stopped as error:
        code = _report(f"{error}; finished work is saved, and {RESUME}", 1)
    except PermissionError as error:
        code = _report(f"permission denied: {error.filename or error}", 2)
    except (OSError, RuntimeError) as error:
        if not disk_is_full(error):
            raise
        code = _report(f"there is no space left, or files may not be so large; finished work is saved, and {RESUME}", 1)
    except Exception as error:
        if (where := _in_ones_own_code(error)) is None:
            raise
        code = _report(f"{where}: {type(error).__name__}: {error}", 1)
    if code == 130:  # Ctrl-C, as Typer passes it on
        writes_nothing = sys.argv[1:2] == ["encode"] or sys.argv[1:3] == ["sweep", "status"]
        outcome = "nothing was written" if writes_nothing else f"{RESUME} from the last snapshot"
        _report(f"interrupted; {outcome}", code)
    sys.exit(code)


def _in_ones_own_code(error: BaseException) -> str | None:
    """Where an error was raised, if in a file that is neither the package's nor a library's."""
    import sysconfig
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    others = (str(Path(__file__).parent.parent), *sysconfig.get_paths().values())
    if not frames or frames[-1].filename.startswith((*others, "<")):
        return None
    return f"{frames[-1].filename}, line {frames[-1].lineno}"


def _report(sentence: str, code: int) -> int:
    if sentence:  # it is empty when help was shown because no command was given
        print(f"asynchebb: {sentence}", file=sys.stderr)
    return code
