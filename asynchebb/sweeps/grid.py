"""The grid of a sweep: a base run, and the axes along which its fields vary.

Fields are named `n`, `rule`, `rule.eta`, `schedule.r_b`, `stimulus`, `hold`, `seed` and so on.
A phase's field applies to all phases; `phases.1.hold` names that of one phase.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from asynchebb import equations, notation
from asynchebb.checks import InputError, instance, is_list, one_of, shown
from asynchebb.network import MODELS, READINGS, Network
from asynchebb.notation import pieces
from asynchebb.runs.run import Phase, Run, check_stimulus

OF_NETWORK = tuple(field.name for field in fields(Network) if field.name != "m")  # the stimulus determines m
OF_PHASES = tuple(field.name for field in fields(Phase))
OF_RUN = ("seed", "dtype")
MANY_VALUES = 100_000  # the most allowed on one axis


def labels(values: Iterable) -> list:
    """The values as numbers or text."""
    try:
        return [value if isinstance(value, int | float | str) else repr(value) for value in values]
    except Exception as error:  # from a user-defined class
        raise InputError(f"vary gives a value that has no text; its class must have a __repr__ ({error})") from error


@dataclass(frozen=True)
class Axis:
    """A field and the values it takes."""

    name: str
    values: tuple

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError(f"vary gives {self.name} no value; it must give at least one")
        seen: set[Any] = set()
        for value, label in zip(self.values, self.labels, strict=True):
            if label in seen:
                raise InputError(f"vary gives {self.name} the value {shown(value)} twice; all values must differ")
            seen.add(label)

    @property
    def labels(self) -> list:
        return labels(self.values)


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes; the axes within a group are tied and step through their values together."""

    run: Run
    groups: tuple[tuple[Axis, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(group[0].values) for group in self.groups)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def axes(self) -> list[list[dict[str, Any]]]:
        """As saved in the sweep's folder: for each group, its axes with their values."""
        return [[{"name": axis.name, "values": axis.labels} for axis in group] for group in self.groups]

    def at(self, *indices: int) -> Run:
        """The run at a point of the grid."""
        chosen = zip(self.groups, indices, strict=True)
        return varied(self.run, {axis.name: axis.values[k] for group, k in chosen for axis in group})

    def __iter__(self) -> Iterator[Run]:
        return (self.at(*indices) for indices in itertools.product(*map(range, self.shape)))


def grid(run: Run, vary: Mapping[str, Iterable], tie: Sequence[str] | Sequence[Sequence[str]] = ()) -> Grid:
    """The grid of these axes. `tie` names axes that vary together instead of multiplying: one group or several."""
    instance("run", run, Run)
    named("vary", vary)
    if not vary:
        raise InputError(f"vary is empty; it must name at least one field to vary, of {_fields(run)}")
    axes = {name: _axis(run, name, along) for name, along in vary.items()}
    if isinstance(tie, list | tuple) and tie and all(isinstance(name, str) for name in tie):
        tie = [[*map(str, tie)]]
    if not isinstance(tie, list | tuple) or not all(isinstance(names, list | tuple) and names for names in tie):
        raise InputError(f"zip is {shown(tie)}; it must be a list of names, or several such lists")
    tied = [name for names in tie for name in names]
    for name in tied:
        one_of("zip", name, axes)
        if tied.count(name) > 1:
            raise InputError(f"zip names {name} twice; it must name each axis once")
    for names in tie:
        lengths = {name: len(axes[name].values) for name in names}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise InputError(f"zip ties axes of different lengths: {found}; they must have equally many values")
    groups = []
    for name in axes:
        group = next((names for names in tie if name in names), (name,))
        if name == group[0]:
            groups.append(tuple(axes[other] for other in group))
    return Grid(run, tuple(groups))


def named(what: str, given: Any) -> None:
    """Refuse anything but values by the names of fields."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputError(f"{what} is {shown(given)}; it must be a dict of values by the names of fields, like rule.eta")


def values_of(what: str, name: str, along: Any) -> list:
    """The values given to a field."""
    if not (is_list(along) or isinstance(along, np.ndarray)) or getattr(along, "ndim", 1) != 1:
        raise InputError(f"{what} gives {name} {shown(along)}; it must be given a list of values")
    values = [*itertools.islice(along, MANY_VALUES + 1)]
    if len(values) > MANY_VALUES:
        raise InputError(f"{what} gives {name} more than {MANY_VALUES:,} values; it may have at most so many")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _axis(run: Run, name: str, along: Any) -> Axis:
    values = values_of("vary", name, along)
    if holds_whole_numbers(run, name):  # a range may give 100.0
        values = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return Axis(name, tuple(values))


def varied(run: Run, changes: Mapping[str, Any]) -> Run:
    """The run with these fields changed. Its default probes change with the stimuli; user-defined probes do not."""
    probes = run.probes if run.has_own_probes else ()
    parts: dict[str, Any] = {"network": run.network, "phases": run.phases, "probes": probes}
    parts |= {name: getattr(run, name) for name in OF_RUN}
    for name in sorted(changes, key=lambda name: (name != "model", name.count("."))):  # parts before their fields
        if name == "model":
            one_of("model", changes[name], MODELS)
            model = MODELS[changes[name]](run.network.n, run.network.m, reading_of(run.network))
            parts["network"] = replace(parts["network"], rule=model.rule, schedule=model.schedule)
            continue
        head, *path = _path(run, name)
        parts[head] = _changed(parts[head], path, changes[name], run, name)
    for phase in parts["phases"]:
        check_stimulus(phase.stimulus)
    parts["network"] = replace(parts["network"], m=parts["phases"][0].stimulus.m)
    new = replace(run, **parts)
    if run.has_own_probes:
        return new
    return replace(new, probes=tuple(replace(probe, measures=run.probes[0].measures) for probe in new.probes))


def reading_of(network: Network) -> str:
    """The reading that shares most parts with this network, where another model finds its rule; or the presets'."""

    def shared(name: str) -> int:
        reading = READINGS[name]
        rules = (reading.asynchronous, reading.continuous, reading.discrete)
        return (network.dynamics == reading.dynamics) + (network.weights == reading.weights) + (network.rule in rules)

    return max(READINGS, key=shared)  # the first if there is a tie


def _path(run: Run, name: str) -> list[str]:
    """The path to the field within a run."""
    head, *rest = name.split(".")
    if head in OF_NETWORK:
        return ["network", head, *rest]
    if head in OF_PHASES:
        return ["phases", "*", head, *rest]
    if (head in OF_RUN and not rest) or (head in ("phases", "probes") and len(rest) > 1):
        return [head, *rest]
    raise _unknown(run, name)


def _changed(value: Any, path: list[str], new: Any, run: Run, name: str) -> Any:
    """A copy of the value with the part at the path replaced."""
    if not path:
        return new
    head, *rest = path
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        if head != "*" and head not in map(str, range(len(value))):
            raise _unknown(run, name)
        return tuple(
            _changed(item, rest, new, run, name) if head in ("*", str(k)) else item for k, item in enumerate(value)
        )
    cls = type(value)
    if head not in equations.field_names(cls):
        raise _unknown(run, name, f"; {cls.__name__} has no {head}")
    inner = _changed(getattr(value, head), rest, new, run, name)
    try:
        return cls(**{**equations.constants(value), head: inner})
    except InputError:
        raise
    except Exception as error:  # from a user-defined class
        raise InputError(f"vary gives {name} the value {shown(new)}, which {cls.__name__} rejects ({error})") from error


def _is_whole(cls: type, field: str) -> bool:
    return inspect.get_annotations(cls).get(field) in (int, "int")


def _unknown(run: Run, name: str, reason: str = "") -> InputError:
    known = _fields(run).split(", ")
    meant = [field for field in known if field.endswith(f".{name}")] or difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {meant[0]}?)" if meant and not reason else ""
    return InputError(
        f"vary names {shown(name)}, which is not a field of this run{reason}{hint}; its fields are {', '.join(known)}"
    )


def _fields(run: Run) -> str:
    names = ["model"]
    for name in (*OF_NETWORK, *OF_PHASES, *OF_RUN):
        names.append(name)
        owner: Any = run.network if name in OF_NETWORK else run.phases[0] if name in OF_PHASES else run
        names += [f"{name}.{field}" for field in equations.field_names(type(getattr(owner, name)))]
    return ", ".join(names)


# Axes written as text: schedule.r_b=0.5,1,2   rule.eta=log(1e-4, 1e-1, 4)   rule=Hebbian(),my_rules.py:Mine(eta=0.1)

RANGES = {
    "linear": lambda first, last, count: np.linspace(first, last, count).tolist(),
    "log": lambda first, last, count: np.geomspace(first, last, count).tolist(),
    "range": lambda *bounds: list(itertools.islice(range(*bounds), MANY_VALUES + 1)),  # too many are refused later
}
FORMS = "name=value,value,… or name=linear(first, last, count), log(first, last, count) or range(stop)"


def axis_from_text(run: Run, text: str) -> tuple[str, list]:
    """The name and the values of an axis."""
    name, equals, along = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise InputError(f"vary is {text!r}; it must be written like {FORMS}")
    return name, values_from_text(run, name, along)


def pair_from_text(text: str) -> tuple[str, tuple[float, float, bool] | None]:
    """The name of a field; if it is given as linear(low, high) or log(low, high), also low, high and if logarithmic."""
    name, _, along = (part.strip() for part in text.partition("="))
    function, _, arguments = along.partition("(")
    bounds = pieces(arguments.rstrip().removesuffix(")"))
    if function.strip() not in ("linear", "log") or len(bounds) != 2:
        return name, None
    try:
        low, high = map(float, bounds)
    except ValueError:
        raise InputError(
            f"vary gives {name} the range {shown(along)}; it must be written like log(1e-4, 1e-1)"
        ) from None
    return name, (low, high, function.strip() == "log")


def values_from_text(run: Run, name: str, text: str) -> list:
    """Values separated by commas, or a range of numbers."""
    function, _, arguments = text.partition("(")
    if function.strip() not in RANGES:
        return [value_from_text(name, piece) for piece in pieces(text)]
    try:
        bounds = ast.literal_eval(f"({arguments.rstrip()[:-1]},)")
        if function.strip() != "range" and bounds[-1] > MANY_VALUES:
            raise InputError(f"vary gives {name} {bounds[-1]:,} values; it may have at most {MANY_VALUES:,}")
        with np.errstate(all="ignore"):
            along = RANGES[function.strip()](*bounds)
        if not all(map(math.isfinite, along)):
            raise ValueError("a logarithmic range cannot include 0")
    except InputError:
        raise
    except (ValueError, SyntaxError, TypeError, IndexError, ArithmeticError):
        raise InputError(f"vary gives {name} the range {shown(text)}; it must be written like {FORMS}") from None
    return list(dict.fromkeys(map(round, along))) if holds_whole_numbers(run, name) else along


def value_from_text(name: str, text: str) -> Any:
    """A field's value from text: a rule, stimulus and so on by name, otherwise a number, True, False or a name."""
    kind = name.rpartition(".")[2]
    if kind in notation.MODULES:
        return notation.parse_named(kind, text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text.isidentifier():
            return text
        what = f"vary gives {name} the value {shown(text)}"
        raise InputError(f"{what}; it must be a number, True, False or a name") from None


def holds_whole_numbers(run: Run, name: str) -> bool:
    """Is the field declared as an integer? If so, a range's values are rounded."""
    value: Any = run
    try:
        *path, last = _path(run, name)
        for part in path:
            value = value[0] if part == "*" else value[int(part)] if part.isdigit() else getattr(value, part)
    except (InputError, AttributeError, IndexError):
        return False  # an unknown field is reported elsewhere
    return _is_whole(type(value), last)
