"""Equations: the methods that dynamics, rules and schedules must have, and the subset of Python allowed in them.

An equation is straight-line arithmetic on scalars. That subset means the same to NumPy (by
broadcasting), to a compiler of the same function and to a translator, so each equation is
written once and runs on every engine. A user-defined record needs no base class and no
registration: it is simply passed in.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from numbers import Real
from types import CodeType
from typing import Any

from asynchebb.checks import InputError, frozen

# Methods that each kind of record must have: their arguments, and how many values they return.
METHODS: dict[str, dict[str, tuple[tuple[str, ...], int]]] = {
    "dynamics": {"step": (("u_i", "drive_i"), 2)},
    "rule": {"leak_w": (("y_i",), 1), "leak_m": (("y_i",), 1), "rate": (("y_i", "a_i"), 2)},
    "schedule": {"gate": (("y_i", "c_i", "k", "hold"), 2)},
}
FUNCTIONS = ("exp", "log", "sqrt", "tanh", "abs", "minimum", "maximum")  # of NumPy

_ALLOWED = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.Load, ast.Store),
    *(ast.Name, ast.Constant, ast.Tuple, ast.Attribute, ast.UnaryOp, ast.USub),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.BitAnd, ast.BitOr),
    *(ast.Compare, ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq),
)
_SUBSET = (
    "an equation is straight-line arithmetic on its arguments and fields: assignments and one return, "
    "+ - * / **, comparisons of two values, & and |, self.field (of a @dataclass(frozen=True)), "
    f"and np.{', np.'.join(FUNCTIONS)}"
)


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass or a named tuple, in order."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", ())


def constants(record: object) -> dict[str, Any]:
    return {name: getattr(record, name) for name in field_names(type(record))}


def check(kind: str, record: object) -> None:
    """Raise an error for a record that no engine can run."""
    if isinstance(record, type):
        raise InputError(f"{kind} is the class {record.__name__}; it must be a value: {record.__name__}(...)")
    if isinstance(record, str):
        raise InputError(f"{kind} is the text {record!r}; it must be a value, like {_example(kind)}")
    cls: type = type(record)
    frozen(kind, record)
    if fault := _fault(kind, cls):
        raise InputError(f"{kind} is {record!r}; {fault}")
    for name, value in constants(record).items():
        if not isinstance(value, Real):
            raise InputError(f"{kind} is {record!r}; its field {name} must be a number")


def _example(kind: str) -> str:
    return {"rule": "ah.Oja(eta=0.01)", "schedule": "ah.Discrete()", "dynamics": "ah.Projected()"}[kind]


@cache
def _fault(kind: str, cls: type) -> str | None:
    """Why the engines cannot run the methods of this class; None if they can."""
    for method, (arguments, results) in METHODS[kind].items():
        function = getattr(cls, method, None)
        wanted = f"{method}(self, {', '.join(arguments)})"
        if function is None:
            return f"it must have a method {wanted}"
        if len(inspect.signature(function).parameters) != 1 + len(arguments):
            return f"its method {method} must be {wanted}"
        check_arithmetic(function, field_names(cls))
        if (tree := _tree(function)) and results != _results(tree):
            return f"its method {wanted} must end by returning {results} value(s)"
    return None


@cache
def check_arithmetic(function: Callable, fields: tuple[str, ...]) -> None:
    """Raise an error for an equation that goes beyond the arithmetic every engine understands.

    Global variables are not allowed either: an engine that caches compiled code would not notice when they change.
    """
    tree = _tree(function)
    if tree is None:  # typed at an interactive prompt: only the names it uses are known
        code = function.__code__
        outside = {*code.co_names, *code.co_freevars} - {"np", *FUNCTIONS, *fields}
        if outside:
            raise InputError(f"{function.__qualname__} uses `{min(outside)}`; {_SUBSET}")
        return
    known = {argument.arg for argument in tree.args.args}
    known |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    booleans = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_boolean(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not _is_arithmetic(node, known, booleans, fields):
            what = ast.unparse(node).splitlines()[0] if hasattr(node, "lineno") else type(node).__name__
            raise InputError(f"{function.__qualname__} uses `{what}`; {_SUBSET}")


def _is_arithmetic(node: ast.AST, known: set[str], booleans: set[str], fields: tuple[str, ...]) -> bool:
    match node:
        case ast.Call():
            return not node.keywords and ast.unparse(node.func) in {f"np.{name}" for name in FUNCTIONS}
        case ast.Attribute(value=ast.Name(id="self")):
            return node.attr in fields
        case ast.Attribute():
            return ast.unparse(node) in {f"np.{name}" for name in FUNCTIONS}
        case ast.Name():
            return node.id in known or node.id == "np"
        case ast.Compare():
            return len(node.ops) == 1
        case ast.BinOp(
            op=ast.Add() | ast.Sub()
        ):  # of booleans: NumPy takes + as "or" and rejects −, a compiler takes both as numbers
            return not (_is_boolean(node.left, booleans) and _is_boolean(node.right, booleans))
    return isinstance(node, _ALLOWED)


def _results(tree: ast.FunctionDef) -> int:
    """The number of values that the last statement returns."""
    last = tree.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return 0
    return len(last.value.elts) if isinstance(last.value, ast.Tuple) else 1


def _is_boolean(node: ast.AST, booleans: set[str]) -> bool:
    match node:
        case ast.Compare():
            return True
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return True
        case ast.Name():
            return node.id in booleans
    return False


@cache
def fingerprint(cls: type) -> str:
    """A digest of all methods and constants of a record's class, including inherited ones; edits change it."""
    digest = hashlib.sha256(repr((cls.__name__, field_names(cls))).encode())
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or name in field_names(cls):
            continue
        if isinstance(member, property):
            member = member.fget
        text = source(member) if inspect.isfunction(member) else repr(member) if isinstance(member, Real) else ""
        digest.update(f"{name}: {text}\n".encode())
    return digest.hexdigest()[:16]


def source(function: Callable) -> str:
    """What a function computes, as text: its source without docstring and comments, or its code if there is none."""
    tree = _tree(function)
    return ast.unparse(tree) if tree else repr(_plain(function.__code__))


def _plain(code: CodeType) -> tuple:
    """Compiled code without the addresses of the functions inside."""
    consts = tuple(_plain(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.co_code, consts, code.co_names


def _tree(function: Callable) -> ast.FunctionDef | None:
    """The syntax tree of a function without its docstring; None if its source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list = []
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    return tree
