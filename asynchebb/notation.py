"""Converting values to text and back: `Foldiak(p=0.05)`, `my_rules.py:Bcm(eta=0.02)`.

Only literals, and names and calls of this package's variants, are evaluated. `parse_named` alone reads and runs files
that a person has named; text that comes out of a saved file or a message never reaches it.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from asynchebb import dynamics, rules, schedules, stimuli, weights
from asynchebb.checks import InputError, shown
from asynchebb.measures import Measure

# The module that defines the variants of each kind; all lists of variants are read from these.
MODULES: dict[str, ModuleType] = {
    "rule": rules,
    "schedule": schedules,
    "dynamics": dynamics,
    "stimulus": stimuli,
    "weights": weights,
}


OWN = "own "  # marks the text of a value of a user-defined class


def variants(kind: str) -> dict[str, type]:
    """The public classes of a kind's module, by name, in order of definition."""
    return _public_classes(MODULES[kind])


def parse(kind: str, text: str) -> Any:
    """Build the value of this package that the text describes; `kind` names the argument and selects the variants.

    It reads no file, so it does not know FromArray.
    """
    names = {name: cls for name, cls in variants(kind).items() if cls is not stimuli.FromArray}
    return _value(kind, text, text, names)


def parse_named(kind: str, text: str) -> Any:
    """Build the value that a person has typed, who may also name files: FromArray("x.npy"), mine.py:Mine(eta=0.1)."""
    file, _, expression = text.rpartition(".py:")
    return _value(kind, text, expression, _public_classes(_load(kind, file + ".py")) if file else variants(kind))


def _value(kind: str, text: str, expression: str, names: dict[str, type]) -> Any:
    value = _build(kind, _expression(kind, expression), names, text)
    if type(value).__name__ not in names:
        raise InputError(f"{kind} is {shown(text)}; it must be one of {', '.join(names)}")
    return value


def parse_measure(text: str) -> Any:
    """A measure by its name, or a function in a user's file: my_measures.py:contrast."""
    file, _, name = text.rpartition(".py:")
    if not file:
        return text
    functions = {key: value for key, value in vars(_load("measure", file + ".py")).items() if _is_measure(value, file)}
    if name not in functions:
        raise InputError(f"measure is {text!r}; {file}.py has the functions {', '.join(functions) or 'none'}")
    return functions[name]


def _is_measure(value: Any, file: str) -> bool:
    return isinstance(value, Measure) or (inspect.isfunction(value) and value.__module__ == _module_name(file))


def to_text(value: Any) -> str:
    """A value as text; one of a user-defined class is marked, even if the class shares a name with the package's."""
    return repr(value) if value is None or type(value).__module__.startswith("asynchebb.") else f"{OWN}{value!r}"


def from_text(kind: str, text: str, given: Mapping[str, Any], name: str = "") -> Any:
    """The value of this kind that `to_text` wrote, or the one given in its place by name, which is usually the kind."""
    name = name or kind
    if name in given:
        return given[name]
    if text == "None":
        return None
    if text.startswith(OWN):
        written = text.removeprefix(OWN)
        raise InputError(f"the {kind} is {written}, whose class is not the package's; pass it in: {name}={written}")
    return parse(kind, text)


def _expression(kind: str, text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # of null bytes; of too many brackets
        raise InputError(f"{kind} is {shown(text)}; it must be written like Name(field=value)") from None


def _build(kind: str, node: ast.expr, names: dict[str, type], text: str) -> Any:
    name = node.id if isinstance(node, ast.Name) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
    if name is None:
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise InputError(f"{kind} is {shown(text)}; it must be written like Name(field=value)") from None
    if name not in names:
        near = difflib.get_close_matches(name.lower(), [known.lower() for known in names], 1)
        hint = next((f" (did you mean {known}?)" for known in names if [known.lower()] == near), "")
        raise InputError(f"{kind} is {shown(name)}; it must be one of {', '.join(names)}{hint}")
    cls = names[name]
    arguments = [_build(kind, argument, names, text) for argument in getattr(node, "args", [])]
    given = getattr(node, "keywords", [])
    if any(keyword.arg is None for keyword in given):
        raise InputError(f"{kind} is {shown(text)}; it must be written like Name(field=value), without **")
    keywords = {keyword.arg: _build(kind, keyword.value, names, text) for keyword in given}
    try:
        inspect.signature(cls).bind(*arguments, **keywords)
    except TypeError as error:
        fields = ", ".join(inspect.signature(cls).parameters) or "none"
        raise InputError(f"{kind} is {shown(text)}: {error}; the fields of {name} are: {fields}") from None
    return cls(*arguments, **keywords)


def _public_classes(module: ModuleType) -> dict[str, type]:
    return {
        name: cls
        for name, cls in vars(module).items()
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and not name.startswith("_")
    }


def _module_name(path: str) -> str:
    return "user_" + re.sub(r"\W", "_", Path(path).name.removesuffix(".py"))


def _load(kind: str, path: str) -> ModuleType:
    """Import a user's file as a module."""
    name = _module_name(path)
    if not Path(path).is_file():
        raise InputError(f"{kind} names the file {path!r}; there is no such Python file")
    loader = SourceFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        # Always from the source: bytecode is taken for current if the file was edited within the same second.
        exec(loader.source_to_code(Path(path).read_bytes(), path), vars(module))
    except Exception as error:
        raise InputError(f"{kind} names the file {path!r}, which cannot be imported: {error!r}") from error
    return module


def pieces(text: str) -> list[str]:
    """Split the text at commas outside brackets and quotes."""
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
