"""The names that the package offers, what is said of them, and the examples in that.

A name is public if `asynchebb/__init__.py` imports it; of the modules among those, whatever they define is public too.
So are the types in `contracts`, which describe what a user may pass in.
"""

import ast
import importlib
import inspect
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import asynchebb

PACKAGE = Path(asynchebb.__file__).parent


class Public(NamedTuple):
    name: str  # as a user writes it after `ah.`: Oja, metrics.gini
    module: str  # where it is defined: rules, runs.recording
    value: Any

    @property
    def room(self) -> str:
        """The part of the package that it belongs to: rules, runs."""
        return self.module.partition(".")[0]

    def position(self) -> tuple[str, int]:
        """Where it is defined, to put names in order."""
        module = importlib.import_module(f"asynchebb.{self.module}")
        return self.module, [*vars(module)].index(self.name.rpartition(".")[2])

    @property
    def documentation(self) -> str:
        """Its docstring; of a constant, the text after its definition."""
        if isinstance(self.value, ModuleType) or inspect.isclass(self.value) or inspect.isfunction(self.value):
            return inspect.getdoc(self.value) or ""
        return _texts_after_constants(self.module).get(self.name.rpartition(".")[2], "")


def names() -> list[Public]:
    imported = [
        (alias.name, str(node.module).removeprefix("asynchebb").removeprefix("."))
        for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("asynchebb")
        for alias in node.names
    ]
    found = []
    for name, module in [*imported, ("contracts", "")]:
        value = getattr(asynchebb, name)
        found.append(Public(name, module or name, value))
        if isinstance(value, ModuleType):
            found += [Public(f"{name}.{one}", name, each) for one, each in defined_in(value).items()]
    return found


def defined_in(module: ModuleType) -> dict[str, Any]:
    """Its public classes and functions, in the order in which it defines them."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


def _texts_after_constants(module: str) -> dict[str, str]:
    source = Path(str(importlib.import_module(f"asynchebb.{module}").__file__))
    body = ast.parse(source.read_text(encoding="utf-8")).body
    found = {}
    for node, after in itertools.pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found |= {one.id: inspect.cleandoc(after.value.value) for one in targets if isinstance(one, ast.Name)}
    return found
