"""The command line. Heavy modules are imported where they are used: `--help` answers at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from asynchebb.cli import shared, sweep
from asynchebb.cli.shared import build_run, print_table, progress

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(sweep.app, name="sweep")


@app.callback(invoke_without_command=True)
def asynchebb(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Asynchronous Hebbian/anti-Hebbian networks (Aguiar & Hennig 2024)."""
    if version:
        from asynchebb import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def run(
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
    snapshots: shared.Snapshots = 20,
    engine: shared.Engine = "cpu",
    out: Annotated[Path, typer.Option(help="folder for the run, or its .nc file")] = Path("runs"),
) -> None:
    """Train a model on a stimulus; end in a table of measures, a NetCDF file and a PNG.

    What has been run is not run again, and what was broken off goes on where it stopped.
    """
    from asynchebb import figures
    from asynchebb.recording import SUMMARY, file_of, record, summary

    what = build_run(model, stimulus, n, samples, hold, rule, schedule, dynamics, weights, seed, dtype, snapshots)
    with progress() as started:
        dataset = record(what, out, engine, on_progress=started(model, what))
    if dataset.attrs["engine"] != engine:
        typer.echo(f"this run was finished before, on the {dataset.attrs['engine']} engine")
    picture = file_of(what, out).with_suffix(".png")
    figures.save(figures.run(dataset), picture)
    print_table(str(dataset.attrs["title"]), summary(dataset), SUMMARY)
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
    from asynchebb.recording import SUMMARY, open_run, summary

    dataset = open_run(file)
    picture = out or file.with_suffix(".png")
    figures.save(figures.run(dataset), picture)
    print_table(str(dataset.attrs["title"]), summary(dataset), SUMMARY)
    typer.echo(str(picture))


@app.command()
def reproduce(
    scale: Annotated[str, typer.Option(help="smoke (seconds) or small (n=500, a million steps a run)")] = "small",
    out: Annotated[Path, typer.Option(help="folder for runs, pictures and numbers")] = Path("reproduction"),
) -> None:
    """Train the paper's three models on crossed bars and draw them side by side with their measures."""
    from asynchebb.checks import one_of
    from asynchebb.experiments import three_models
    from asynchebb.recording import SUMMARY

    one_of("scale", scale, three_models.SCALES)
    with progress() as started:
        table = three_models.reproduce(scale, out, started)
    print_table(three_models.title(scale), table, SUMMARY | three_models.LABELS)
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


def _indented(documented: Any) -> str:
    import inspect

    return "\n".join(f"      {line}".rstrip() for line in (inspect.getdoc(documented) or "").splitlines())


def main() -> None:
    """Run the command line; what the user got wrong is said in a sentence, without a traceback."""
    from asynchebb.checks import InputError
    from asynchebb.recording import disk_is_full
    from asynchebb.simulate import Diverged
    from asynchebb.sweeps.executors import Stopped

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
    except Stopped as error:
        code = _said(f"{error}; what is done is kept, and the same command goes on from there", 1)
    except (OSError, RuntimeError) as error:
        if not disk_is_full(error):
            raise
        code = _said("there is no space left; what is done is kept, and the same command goes on from there", 1)
    if code == 130:  # Ctrl-C, as Typer passes it on
        _said("interrupted; the same command goes on from the last snapshot", code)
    sys.exit(code)


def _said(sentence: str, code: int) -> int:
    if sentence:  # help that was shown for want of a command needs no more words
        print(f"asynchebb: {sentence}", file=sys.stderr)
    return code
