"""Which runs: a base run, and the axes along which fields of it vary.

A field is named as one would say it: `n`, `rule`, `rule.eta`, `schedule.r_b`, `stimulus`, `hold`, `seed`.
Those of a phase hold for all phases; `phases.1.hold` names one phase's.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from asynchebb import equations, values
from asynchebb.checks import InputError, one_of
from asynchebb.network import MODELS, Network
from asynchebb.simulate import Phase, Run, describe

OF_NETWORK = tuple(field.name for field in fields(Network) if field.name != "m")  # m is what the stimulus has
OF_PHASES = tuple(field.name for field in fields(Phase))
OF_RUN = ("seed", "dtype")


@dataclass(frozen=True)
class Axis:
    """A field and the values that it takes."""

    name: str
    values: tuple

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError(f"vary gives {self.name} no value; it must give at least one")
        seen: set[str] = set()
        for value in self.values:
            if describe(value) in seen:
                raise InputError(f"vary gives {self.name} the value {value!r} twice; each must be another")
            seen.add(describe(value))

    @property
    def labels(self) -> list:
        """The values as numbers and text."""
        return [value if isinstance(value, int | float | str) else repr(value) for value in self.values]


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes; those of one group are tied, and go through their values together."""

    run: Run
    groups: tuple[tuple[Axis, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(group[0].values) for group in self.groups)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def at(self, *indices: int) -> Run:
        """The run at a point of the grid."""
        chosen = zip(self.groups, indices, strict=True)
        return varied(self.run, {axis.name: axis.values[k] for group, k in chosen for axis in group})

    def __iter__(self) -> Iterator[Run]:
        return (self.at(*indices) for indices in itertools.product(*map(range, self.shape)))


def grid(run: Run, vary: Mapping[str, Iterable], tie: Sequence[Sequence[str]] = ()) -> Grid:
    """The grid of these axes. `tie` names those that do not multiply but go together, for example [("n", "hold")]."""
    if not isinstance(run, Run):
        raise InputError(f"run is {run!r}; it must be a Run")
    if not vary:
        raise InputError(f"vary is empty; it must name at least one field to vary, of {_fields(run)}")
    axes = {name: Axis(name, tuple(_plain(value) for value in along)) for name, along in vary.items()}
    tied = [name for names in tie for name in names]
    for name in tied:
        one_of("a name in zip", name, axes)
        if tied.count(name) > 1:
            raise InputError(f"zip names {name} twice; it must name each axis once")
    for names in tie:
        lengths = {name: len(axes[name].values) for name in names}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise InputError(f"zip ties axes of different lengths: {said}; they must have as many values each")
    groups = []
    for name in axes:
        group = next((names for names in tie if name in names), (name,))
        if name == group[0]:
            groups.append(tuple(axes[other] for other in group))
    return Grid(run, tuple(groups))


def varied(run: Run, changes: Mapping[str, Any]) -> Run:
    """The run with these fields changed. It is tested with what it is shown, unless it has probes of its own."""
    probes = run.probes if run.has_own_probes else ()
    parts: dict[str, Any] = {"network": run.network, "phases": run.phases, "probes": probes}
    parts |= {name: getattr(run, name) for name in OF_RUN}
    for name in sorted(changes, key=lambda name: (name != "model", name.count("."))):  # parts before their fields
        if name == "model":
            one_of("model", changes[name], MODELS)
            model = MODELS[changes[name]](run.network.n, run.network.m)
            parts["network"] = replace(parts["network"], rule=model.rule, schedule=model.schedule)
            continue
        head, *path = _path(run, name)
        parts[head] = _changed(parts[head], path, changes[name], run, name)
    parts["network"] = replace(parts["network"], m=parts["phases"][0].stimulus.m)
    return replace(run, **parts)


def _path(run: Run, name: str) -> list[str]:
    """Where the field stands in a run."""
    head, *rest = name.split(".")
    if head in OF_NETWORK:
        return ["network", head, *rest]
    if head in OF_PHASES:
        return ["phases", "*", head, *rest]
    if (head in OF_RUN and not rest) or (head in ("phases", "probes") and len(rest) > 1):
        return [head, *rest]
    raise _unknown(run, name)


def _changed(value: Any, path: list[str], new: Any, run: Run, name: str) -> Any:
    """The value with what stands at the path replaced."""
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
        raise _unknown(run, name)
    inner = _changed(getattr(value, head), rest, new, run, name)
    if not rest and _is_whole(cls, head) and isinstance(inner, float) and inner.is_integer():
        inner = int(inner)  # 100.0, out of a range of numbers
    return cls(**{**equations.constants(value), head: inner})


def _is_whole(cls: type, field: str) -> bool:
    return inspect.get_annotations(cls).get(field) in (int, "int")


def _unknown(run: Run, name: str) -> InputError:
    return InputError(f"vary names {name!r}, which is no field of this run; its fields are {_fields(run)}")


def _fields(run: Run) -> str:
    names = ["model"]
    for name in (*OF_NETWORK, *OF_PHASES, *OF_RUN):
        names.append(name)
        owner: Any = run.network if name in OF_NETWORK else run.phases[0] if name in OF_PHASES else run
        names += [f"{name}.{field}" for field in equations.field_names(type(getattr(owner, name)))]
    return ", ".join(names)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


# Axes written as text: schedule.r_b=0.5,1,2   rule.eta=log(1e-4, 1e-1, 4)   rule=Hebbian(),my_rules.py:Mine(eta=0.1)

RANGES = {
    "linear": lambda first, last, count: np.linspace(first, last, count).tolist(),
    "log": lambda first, last, count: np.geomspace(first, last, count).tolist(),
    "range": lambda *bounds: list(range(*bounds)),
}
FORMS = "name=value,value,… or name=linear(first, last, count), log(first, last, count) or range(stop)"


def axis_from_text(run: Run, text: str) -> tuple[str, list]:
    """The name and the values of an axis."""
    name, equals, along = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise InputError(f"vary is {text!r}; it must be written like {FORMS}")
    return name, values_from_text(run, name, along)


def values_from_text(run: Run, name: str, text: str) -> list:
    """Values separated by commas, or a range of numbers."""
    function, _, arguments = text.partition("(")
    if function.strip() not in RANGES:
        return [value_from_text(name, piece) for piece in pieces(text)]
    try:
        bounds = ast.literal_eval(f"({arguments.rstrip()[:-1]},)")
        along = RANGES[function.strip()](*bounds)
        if not all(map(math.isfinite, along)):
            raise ValueError("a logarithmic range has no 0 in it")
    except (ValueError, SyntaxError, TypeError) as error:
        raise InputError(f"vary gives {name} the range {text!r} ({error}); it must be written like {FORMS}") from None
    return list(dict.fromkeys(map(round, along))) if _holds_whole_numbers(run, name) else along


def value_from_text(name: str, text: str) -> Any:
    """A value of a field: a rule, a stimulus and their like by their names, else a number, a truth or a word."""
    kind = name.rpartition(".")[2]
    if kind in values.MODULES:
        return values.parse(kind, text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text.isidentifier():
            return text
        raise InputError(f"vary gives {name} the value {text!r}; it must be a number, True, False or a name") from None


def pieces(text: str) -> list[str]:
    """The text cut at its commas, but not at those inside brackets or quotes."""
    pieces, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += 0 if quote else (letter in "([") - (letter in ")]")
        if letter == "," and not depth and not quote:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


def _holds_whole_numbers(run: Run, name: str) -> bool:
    """Is the field declared as one of whole numbers? Then a range's values are rounded."""
    value: Any = run
    *path, last = _path(run, name) if name != "model" else ["model"]
    for part in path:
        value = value[0] if part == "*" else value[int(part)] if part.isdigit() else getattr(value, part, None)
    return _is_whole(type(value), last)
