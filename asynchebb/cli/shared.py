"""Shared by several commands: the options that define a run, progress bars, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from asynchebb.reproduction.findings import Outcome
    from asynchebb.runs.run import Phase, Run

Model = Annotated[str, typer.Option(help="asynchronous, continuous or discrete")]
TheReading = Annotated[
    str, typer.Option(help="reading of the paper: paper (most claims hold) or notebook (the authors' code)")
]
FromRest = Annotated[
    bool | None,
    typer.Option(
        "--from-rest/--carried-over",
        help="start from rest at each stimulus, or carry activity over",
        show_default="depends on the reading",
    ),
]
Stimulus = Annotated[str, typer.Option(help='stimulus set, like "Bars(14, probability=0.1)"')]
Phases = Annotated[
    list[str] | None,
    typer.Option(
        "--phase",
        help='a stimulus set to learn, instead of --stimulus; repeat it for several in succession: "Squares(14)", or '
        '"Squares(14), samples=500, hold=200"',
    ),
]
RB = Annotated[
    float | None,
    typer.Option("--r-b", help="bursting threshold of the asynchronous model", show_default="that of the reading"),
]
RR = Annotated[
    float | None, typer.Option("--r-r", help="its refractory period in Euler steps", show_default="that of the reading")
]
N = Annotated[int, typer.Option(help="number of neurons")]
Samples = Annotated[int, typer.Option(help="number of stimuli shown")]
Hold = Annotated[int, typer.Option(help="Euler steps per stimulus")]
Rule = Annotated[str | None, typer.Option(help='replaces the model\'s own, like "Foldiak(p=0.05)" or "file.py:Rule()"')]
Schedule = Annotated[str | None, typer.Option(help='replaces the model\'s own, like "Asynchronous(r_b=2, r_r=50)"')]
Dynamics = Annotated[str | None, typer.Option(help='replaces the model\'s own, like "Projected(dt=0.01)"')]
Weights = Annotated[str | None, typer.Option(help='replaces the model\'s own, like "Gaussian(rectified=True)"')]
Seed = Annotated[int, typer.Option(help="random seed for initial weights and stimuli")]
Dtype = Annotated[str, typer.Option(help="float32 or float64")]
Snapshots = Annotated[int, typer.Option(help="number of times the network is tested and saved during training")]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure", help='also record this measure, like "factors_found" or "file.py:function"; may be repeated'
    ),
]
Engine = Annotated[str, typer.Option(help="cpu, gpu, reference, or auto: the GPU where it pays")]
Workers = Annotated[int | None, typer.Option(help="number of processes (default: one per core), or of Slurm jobs")]
Dask = Annotated[str | None, typer.Option(help="run on this Dask scheduler, like tcp://host:8786")]
Slurm = Annotated[str | None, typer.Option(help="run on Slurm with these options: partition=short,time=60")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="retry runs that failed before")]


@dataclass(frozen=True)
class RunOptions:
    """The options that define a run."""

    model: Model = "asynchronous"
    stimulus: Stimulus = "Crossbars(14)"
    phase: Phases = None
    n: N = 500
    samples: Samples = 2000
    hold: Hold = 500
    rule: Rule = None
    schedule: Schedule = None
    r_b: RB = None
    r_r: RR = None
    dynamics: Dynamics = None
    weights: Weights = None
    seed: Seed = 0
    dtype: Dtype = "float32"
    snapshots: Snapshots = 20
    reading: TheReading = "paper"
    from_rest: FromRest = None
    measure: Measures = None

    def run(self) -> Run:
        """The run that they define."""
        from asynchebb import notation
        from asynchebb.checks import InputError, one_of
        from asynchebb.measures import USUAL
        from asynchebb.network import MODELS, READINGS
        from asynchebb.runs.run import Probe, Run

        one_of("model", self.model, MODELS)
        one_of("reading", self.reading, READINGS)
        given = {kind: getattr(self, kind) for kind in ("rule", "schedule", "dynamics", "weights")}
        changes = {kind: notation.parse_named(kind, text) for kind, text in given.items() if text is not None}
        changes |= self._burst()
        if self.phase and self.stimulus != RunOptions.stimulus:
            raise InputError("phase and stimulus are both given; it must be one or the other")
        phases = [self._phase(text) for text in self.phase or [self.stimulus]]
        recorded = (*USUAL, *(notation.parse_measure(text) for text in self.measure or []))
        if len({phase.stimulus.m for phase in phases}) > 1:
            sizes = ", ".join(f"{phase.stimulus!r} has {phase.stimulus.m}" for phase in phases)
            raise InputError(f"phase gives stimuli of different sizes ({sizes} pixels); all must have equally many")
        tested = {repr(phase.stimulus): phase for phase in phases}.values()
        return Run(
            MODELS[self.model](self.n, phases[0].stimulus.m, self.reading, **changes),
            tuple(phases),
            tuple(Probe(phase.stimulus, from_rest=phase.from_rest, measures=recorded) for phase in tested),
            seed=self.seed,
            dtype=self.dtype,
        )

    def _phase(self, text: str) -> Phase:
        """A stimulus, and perhaps what differs in its phase: "Squares(14), samples=500"."""
        from asynchebb import notation
        from asynchebb.checks import InputError
        from asynchebb.network import READINGS
        from asynchebb.runs.run import Phase, check_stimulus

        stimulus, *settings = notation.pieces(text) or [""]
        shown = notation.parse_named("stimulus", stimulus)
        check_stimulus(shown)
        rests = READINGS[self.reading].from_rest if self.from_rest is None else self.from_rest
        numbers = {"samples": self.samples, "hold": self.hold, "snapshots": self.snapshots}
        for setting in settings:
            name, _, value = (part.strip() for part in setting.partition("="))
            if name not in numbers or not value.isdecimal():
                accepted = ", ".join(f"{name}=…" for name in numbers)
                raise InputError(
                    f"phase is {text!r}; after the stimulus it may have {accepted}, each a whole number of at least 1"
                )
            numbers[name] = int(value)
        return Phase(shown, from_rest=rests, **numbers)

    def _burst(self) -> dict[str, Any]:
        """The asynchronous model's schedule, if its threshold or refractory period is given."""
        from asynchebb.checks import InputError
        from asynchebb.network import READINGS
        from asynchebb.schedules import Asynchronous

        given = {name: value for name in ("r_b", "r_r") if (value := getattr(self, name)) is not None}
        if given and (self.model != "asynchronous" or self.schedule is not None):
            other = "--schedule sets that" if self.schedule is not None else f"the {self.model} model has none"
            raise InputError(f"{', '.join(given)} is given, but {other}; leave it out")
        reading = READINGS[self.reading]
        return {"schedule": Asynchronous(**{"r_b": reading.r_b, "r_r": reading.r_r, **given})} if given else {}


def takes_run_options(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command whose parameter `options` is a RunOptions takes each of its fields as an option of its own."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        fields = [
            field.replace(kind=Parameter.KEYWORD_ONLY, default=defaults.get(name, field.default))
            for name, field in signature(RunOptions, eval_str=True).parameters.items()
        ]

        @wraps(command)
        def with_options(**given: Any) -> None:
            command(options=RunOptions(**{field.name: given.pop(field.name) for field in fields}), **given)

        own = signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for name, parameter in own.parameters.items():
            parameters += fields if name == "options" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
        with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def executor(workers: int | None, dask: str | None, slurm: str | None, out: Path) -> AbstractContextManager[Any]:
    """The executor that these options select."""
    from asynchebb.checks import InputError
    from asynchebb.sweeps import executors

    if dask is not None and slurm is not None:
        raise InputError("dask and slurm are both given; it must be one or the other")
    if dask is not None and workers is not None:
        raise InputError("workers is given, but a Dask cluster has its own; it must be left out with dask")
    if dask is not None:
        return executors.dask(dask)
    if slurm is not None:
        return executors.slurm(slurm, workers, out / "slurm")
    return executors.local(workers)


def warn(sentence: str) -> None:
    typer.echo(f"asynchebb: warning: {sentence}", err=True)


@contextmanager
def warnings_as_sentences() -> Iterator[None]:
    """Print our own warnings in one line each, at once: some come at the start of what takes hours."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, module="asynchebb")
        otherwise = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if category.__module__.startswith("asynchebb."):
                warn(str(message))
            else:
                otherwise(message, category, *where, **more)

        warnings.showwarning = show
        yield


def print_table(title: str, rows: dict[str, Any], labels: dict[str, str]) -> None:
    """Print measures by name; given one such table per model, print a column for each model."""
    from rich.console import Console
    from rich.table import Table

    columns = rows if all(isinstance(row, dict) for row in rows.values()) else {"value": rows}
    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    for name in columns:
        table.add_column(name, justify="right")
    for measure in dict.fromkeys(name for row in columns.values() for name in row):
        cells = (_number(row[measure]) if measure in row else "–" for row in columns.values())
        table.add_row(labels[measure], *cells)
    Console().print(table)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"


def print_claims(outcome: Outcome) -> None:
    """Print each claim and whether it holds."""
    from rich.console import Console
    from rich.table import Table

    from asynchebb.reproduction.report import MARKS, TOO_SHORT

    table = Table(title=f"The paper's claims, {outcome.scale} scale", title_justify="left")
    for column in ("", "claim", "where", ""):
        table.add_column(column)
    for finding in outcome.findings:
        for judged in finding.claims:
            verdict = f"{MARKS[judged.overall]} {judged.overall}"
            table.add_row(judged.claim.id, judged.claim.says, judged.claim.where, verdict)
    Console().print(table)
    if outcome.scale == "smoke":
        typer.echo(TOO_SHORT)
