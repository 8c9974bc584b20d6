"""The records that hold equations: which methods each has, in which Python they are written.

An equation is straight-line arithmetic on scalars. That subset means the same to NumPy (by
broadcasting), to a compiler of the very function, and to a translator; so each equation is
written once and runs on every engine. A user's own record needs no base class and no entry in a
list: it is passed in.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

from asynchebb.checks import InputError

# What each kind of record must have, as its callers use it.
METHODS: dict[str, dict[str, tuple[str, ...]]] = {
    "dynamics": {"step": ("u_i", "drive_i")},
    "rule": {"leak_w": ("y_i",), "leak_m": ("y_i",), "rate": ("y_i", "a_i")},
    "schedule": {"gate": ("y_i", "c_i", "k", "hold")},
}
FUNCTIONS = ("exp", "log", "sqrt", "tanh", "abs", "minimum", "maximum")  # of NumPy

_ALLOWED = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.Load, ast.Store),
    *(ast.Name, ast.Constant, ast.Tuple, ast.Attribute, ast.UnaryOp, ast.USub),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.BitAnd, ast.BitOr),
    *(ast.Compare, ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq),
)
_SUBSET = (
    "an equation is straight-line arithmetic: assignments and one return, + - * / **, comparisons, & and |, "
    f"self.field, and np.{', np.'.join(FUNCTIONS)}"
)


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass or a named tuple, in order."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", ())


def constants(record: object) -> dict[str, Any]:
    return {name: getattr(record, name) for name in field_names(type(record))}


def check(kind: str, record: object) -> None:
    """Refuse a record that no engine could run, and say why."""
    if isinstance(record, type):
        raise InputError(f"{kind} is the class {record.__name__}; it must be a value: {record.__name__}(...)")
    for method, arguments in METHODS[kind].items():
        function = getattr(type(record), method, None)
        wanted = f"{method}(self, {', '.join(arguments)})"
        if function is None:
            raise InputError(f"{kind} is {record!r}; it must have a method {wanted}")
        if len(inspect.signature(function).parameters) != 1 + len(arguments):
            raise InputError(f"{kind} is {record!r}; its method {method} must be {wanted}")
        check_arithmetic(function)
    for name, value in constants(record).items():
        if isinstance(value, str) or not isinstance(value, int | float):
            raise InputError(f"{kind} is {record!r}; its field {name} must be a number")


@cache
def check_arithmetic(function: Callable) -> None:
    """Refuse an equation that steps outside the arithmetic every engine understands."""
    tree = _tree(function)
    if tree is None:  # typed at a bare prompt: the engines will say what they cannot run
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"np.{name}" for name in FUNCTIONS}:
            continue
        if not isinstance(node, _ALLOWED):
            what = ast.unparse(node).splitlines()[0] if hasattr(node, "lineno") else type(node).__name__
            raise InputError(f"{function.__qualname__} uses `{what}`; {_SUBSET}")


@cache
def fingerprint(cls: type) -> str:
    """A digest of what a record's class computes, so that an edited equation is a new one."""
    digest = hashlib.sha256(repr((cls.__name__, field_names(cls))).encode())
    for name, function in sorted(vars(cls).items()):
        if inspect.isfunction(function) and not name.startswith("_"):
            tree = _tree(function)
            code = function.__code__
            text = ast.unparse(tree) if tree else repr((code.co_code, code.co_consts, code.co_names))
            digest.update(text.encode())
    return digest.hexdigest()[:16]


def _tree(function: Callable) -> ast.FunctionDef | None:
    """The syntax tree of a function without its docstring; None where its source is not to be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    return tree
