"""What a user's class or function computes, as far as its source tells: so that an edit makes another run of it.

One from a file is identified by the source of that whole file, and of the files next to it that it imports. One from a
script or a notebook, where everything else changes all the time, is identified by its own source and by all that it
uses there: functions, classes and values.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.checks import InputError


def digest(thing: type | Callable) -> str:
    """Identifies what a class or function computes; comments and docstrings do not count."""
    parts = _imported_code(thing) if _file(thing) else _used(thing, {id(thing)})
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache  # each run of a sweep asks; an edited file that is imported again has other classes and functions
def _imported_code(thing: Any) -> list[str]:
    """What identifies one from a file."""
    path = _file(thing)
    assert path is not None
    parts = [thing.__qualname__, *_of_file(path)]
    if isinstance(thing, FunctionType):  # there may be several of one name, made by the same function
        enclosing = inspect.getclosurevars(thing).nonlocals
        parts += [equations.source(thing), *(f"{name} = {_value(name, enclosing[name], thing)}" for name in enclosing)]
    return parts


def text(tree: ast.AST) -> str:
    """A syntax tree as text, without docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return equations.canonical(tree)


def _file(thing: Any) -> Path | None:
    """The file that a class or function, or a module, was imported from; None in a script or a notebook."""
    module = _module(thing)
    path = getattr(module, "__file__", None)
    return Path(path) if module and module.__name__ != "__main__" and path and Path(path).is_file() else None


def _module(thing: Any) -> ModuleType | None:
    return thing if isinstance(thing, ModuleType) else sys.modules.get(getattr(thing, "__module__", ""))


def _of_file(path: Path) -> list[str]:
    """The source of a file, and of those next to it that it imports, directly or not."""
    found: dict[Path, str] = {}
    left = [path.resolve()]
    while left:
        one = left.pop()
        if one not in found:
            tree = ast.parse(one.read_text(encoding="utf-8"))
            left += _imported(tree, one.parent)
            found[one] = f"{one.name}: {text(tree)}"
    return [found[one] for one in sorted(found)]


def _imported(tree: ast.AST, folder: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            place = folder.joinpath(*name.split("."))
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file():
                    yield file.resolve()


def _used(thing: Any, seen: set[int]) -> list[str]:
    """The source of a class or function, and of all that it uses."""
    if isinstance(thing, type):
        functions = [*_functions(thing)]
        constants = {
            name: value
            for name, value in sorted(vars(thing).items())
            if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__")
        }
        parts = [f"class {thing.__name__}", *(f"{name} = {_value(name, constants[name], thing)}" for name in constants)]
        parents = [base for base in thing.__mro__[1:] if not _is_installed(base)]
        parts += [part for base in parents for part in _once(base, seen)]
    else:
        functions, parts = [thing], []
    for function in functions:
        parts.append(equations.source(function))
        for name, value in _names(function).items():
            parts += [f"{name}:", *_of_value(name, value, thing, seen)]
    return parts


def _functions(cls: type) -> Iterator[FunctionType]:
    for _, member in sorted(vars(cls).items()):
        member = member.fget if isinstance(member, property) else inspect.unwrap(getattr(member, "__func__", member))
        if isinstance(member, FunctionType) and member.__code__.co_filename != "<string>":  # those of a dataclass
            yield member


def _once(thing: Any, seen: set[int]) -> list[str]:
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    return _of_file(path) if (path := _file(thing)) else _used(thing, seen)


def _of_value(name: str, value: Any, user: Any, seen: set[int]) -> list[str]:
    """What a name that is used stands for; what is installed is taken for granted."""
    if isinstance(value, ModuleType | type | FunctionType):
        return [] if _is_installed(value) else _once(value, seen)
    if callable(value) and not dataclasses.is_dataclass(value):
        return []  # a function of NumPy, say
    return [_value(name, value, user)]


def _value(name: str, value: Any, user: Any) -> str:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_value(name, item, user) for item in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(_value(name, item, user) for item in value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_value(name, k, user)}: {_value(name, v, user)}' for k, v in value.items())}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return repr(value)
    raise InputError(
        f"{user.__name__} uses {name}, a {type(value).__name__}, from which it cannot be seen whether it has changed; "
        f"move {user.__name__} to a file of its own and import it, or use numbers, text and arrays"
    )


def _names(function: FunctionType) -> dict[str, Any]:
    """The global and enclosing names that a function uses, and what they stand for now."""
    enclosing = inspect.getclosurevars(function).nonlocals
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    known = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    return {**known, **{name: enclosing[name] for name in sorted(enclosing)}}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _is_installed(thing: Any) -> bool:
    """Is it Python's or of an installed package, this one included?"""
    module = _module(thing)
    name = module.__name__.partition(".")[0] if module else ""
    if name in (*sys.stdlib_module_names, "asynchebb"):
        return name != "__main__"
    path = getattr(module, "__file__", None)
    installed = [Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib", "stdlib")]
    places = Path(path).resolve().parents if path else ()
    # An environment may also see packages of another one, or of the user.
    return any(place in installed or place.name in ("site-packages", "dist-packages") for place in places)
