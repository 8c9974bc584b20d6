"""Equations: the methods that dynamics, rules and schedules must have, and the subset of Python allowed in them.

An equation is straight-line arithmetic on scalars. That subset means the same to NumPy (by
broadcasting), to a compiler of the same function and to a translator, so each equation is
written once and runs on every engine. A user-defined record needs no base class and no
registration: it is simply passed in.
"""

from __future__ import annotations

import ast
import dataclasses
import dis
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from numbers import Real
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from asynchebb.checks import InputError, frozen, real, shown


class Form(NamedTuple):
    """What an equation takes and gives. What stands in brackets it may do without, by name; what it may take and give
    back (h_i) it does both or neither."""

    takes: str
    gives: str

    @property
    def all_taken(self) -> tuple[str, ...]:
        return _plain_names(self.takes)

    @property
    def all_given(self) -> tuple[str, ...]:
        return _plain_names(self.gives)


# The methods that each kind of record must have. Dynamics that take y_i, the rate after the step before, have it for a
# second state variable, and h_i for a third; noise_i is a random number in [0, 1). s_i is how many spikes the neuron
# should fire in this step: it fires one at the most. n_i is how many it fired in the last `window` steps, a member of
# the schedule.
METHODS: dict[str, dict[str, Form]] = {
    "dynamics": {"step": Form("u_i [y_i] [h_i] drive_i [noise_i]", "u_i y_i [h_i] [s_i]")},
    "rule": {
        "leak_w": Form("y_i", "leak_w"),
        "leak_m": Form("y_i", "leak_m"),
        "rate": Form("y_i a_i", "eta_i a_i"),
    },
    "schedule": {"gate": Form("y_i [n_i] c_i k hold", "beta_i c_i")},
}
WHOLE_NUMBERS = ("n_i", "c_i", "k", "hold")  # the others are real
FUNCTIONS = ("exp", "log", "sqrt", "tanh", "abs", "minimum", "maximum")  # of NumPy

_SUBSET = (
    "an equation is straight-line arithmetic on its arguments and fields: assignments and one return, "
    "+ - * / **, comparisons of two values, & and |, self.field (of a @dataclass(frozen=True)), "
    f"and np.{', np.'.join(FUNCTIONS)}"
)


def statement(documented: Any) -> str:
    """What a docstring states, the equations included; the examples at its end are for the reference."""
    return (inspect.getdoc(documented) or "").partition("\n\n>>> ")[0]


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
        raise InputError(f"{kind} is the text {shown(record)}; it must be a value, like {_example(kind)}")
    cls: type = type(record)
    frozen(kind, record)
    if fault := _fault(kind, cls):
        raise InputError(f"{kind} is {shown(record)}; {fault}")
    for name, value in constants(record).items():
        real(f"{cls.__name__}.{name}", value)
        if not isinstance(value, int | float | np.integer | np.floating):
            raise InputError(f"{cls.__name__}.{name} is {value!r}; it must be an int or a float")


def _example(kind: str) -> str:
    return {"rule": "ah.Oja(eta=0.01)", "schedule": "ah.Discrete()", "dynamics": "ah.Projected()"}[kind]


@cache
def _fault(kind: str, cls: type) -> str | None:
    """Why the engines cannot run the methods of this class; None if they can."""
    for method, form in METHODS[kind].items():
        function = getattr(cls, method, None)
        wanted = f"{method}(self, {form.takes.replace(' ', ', ')})"
        if not callable(function):
            return f"it must have a method {wanted}"
        if (taken := _taken(form, function)) is None:
            return f"its method {method} must be {wanted}"
        names = [*inspect.signature(function).parameters][1:]
        whole = tuple(name for name, meaning in zip(names, taken, strict=True) if meaning in WHOLE_NUMBERS)
        check_arithmetic(function, field_names(cls), whole)
        if not any(len(given) == _results(function) for given in _givable(form, taken)):
            return f"its method {method} must end by returning {_either(form, taken)}"
        returned = _returned_names(function)
        optional = {name.strip("[]") for name in form.gives.split() if name.startswith("[")}
        if not any(_fits(returned, given, optional) for given in _givable(form, taken)):
            return f"its method {method} returns {', '.join(map(str, returned))}; it must be {_either(form, taken)}"
    return None


def _either(form: Form, taken: tuple[str, ...]) -> str:
    return " or ".join(map(", ".join, _givable(form, taken)))


def _fits(returned: list[str | None], given: tuple[str, ...], optional: set[str]) -> bool:
    """May what is returned be this? A variable that is called like an optional value must be in that one's place."""
    pairs = zip(returned, given, strict=False)
    return len(returned) in (0, len(given)) and all(name == wanted or name not in optional for name, wanted in pairs)


@cache
def takes_and_gives(kind: str, method: str, cls: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What this method of a class that has been checked takes and gives, by name."""
    form, function = METHODS[kind][method], getattr(cls, method)
    taken = _taken(form, function) or ()
    return taken, next(given for given in _givable(form, taken) if len(given) == _results(function))


def _taken(form: Form, function: Callable) -> tuple[str, ...] | None:
    """What the function takes: all that is required, called whatever it likes, or what it names; None for others."""
    names = tuple(inspect.signature(function).parameters)[1:]
    required = tuple(name for name in form.takes.split() if not name.startswith("["))
    if len(names) == len(required) and not {*names} & ({*form.all_taken} - {*required}):
        return required
    in_order = tuple(name for name in form.all_taken if name in names or name in required)
    return names if names == in_order else None


def _givable(form: Form, taken: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What a function that takes this may return: what is required, or that and the rest."""
    takable = form.all_taken
    required, all_ = [], []
    for written, name in zip(form.gives.split(), form.all_given, strict=True):
        is_optional = written != name
        if is_optional and name in takable and name not in taken:
            continue
        all_.append(name)
        if not is_optional or name in taken:
            required.append(name)
    return [tuple(required), tuple(all_)] if required != all_ else [tuple(required)]


def _returned_names(function: Callable) -> list[str | None]:
    """The variables that the last statement returns, None for other expressions; nothing without the source."""
    tree = syntax_tree(function)
    end = tree.body[-1] if tree else None
    if not isinstance(end, ast.Return) or not isinstance(end.value, ast.Tuple):
        return []
    return [element.id if isinstance(element, ast.Name) else None for element in end.value.elts]


def _plain_names(form: str) -> tuple[str, ...]:
    return tuple(form.replace("[", "").replace("]", "").split())


@cache
def check_arithmetic(function: Callable, fields: tuple[str, ...], whole: tuple[str, ...] = ()) -> None:
    """Raise an error for an equation that goes beyond the arithmetic every engine understands; `whole` names those of
    its arguments that are whole numbers.

    Global variables are not allowed either: an engine that caches compiled code would not notice when they change.
    """
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        raise InputError(f"{getattr(function, '__qualname__', function)} is not a plain function; {_SUBSET}")
    tree = syntax_tree(function)
    try:
        if tree is not None:
            _check_statements(tree, fields, whole)
        elif outside := {*code.co_names, *code.co_freevars} - {"np", *FUNCTIONS, *fields}:
            raise _Unknown(min(outside))  # typed at an interactive prompt: only the names it uses are known
    except _Unknown as unknown:
        raise InputError(f"{function.__qualname__} uses `{unknown}`; {_SUBSET}") from None


class _Unknown(Exception):
    """What an equation must not contain."""

    def __init__(self, what: ast.AST | str) -> None:
        text = what if isinstance(what, str) else ast.unparse(what)
        super().__init__(text.splitlines()[0] if text else type(what).__name__)


# What a number is. NumPy takes + of truths as "or", − as an error, and exp of one in half precision, where a compiler
# takes all of them as numbers; and a whole number has negative powers for neither.
TRUTH, WHOLE, REAL = range(3)
LARGEST = 2**63  # no whole number of an engine reaches it


def _check_statements(tree: ast.FunctionDef, fields: tuple[str, ...], whole: tuple[str, ...]) -> None:
    """Assignments and, last, what is returned."""
    kinds = {argument.arg: WHOLE if argument.arg in whole else REAL for argument in tree.args.args[1:]}
    *assignments, end = tree.body
    for statement in assignments:
        if not isinstance(statement, ast.Assign):
            raise _Unknown(statement)
        for target in statement.targets:
            pairs = [(target, statement.value)]
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                if len(target.elts) != len(statement.value.elts):
                    raise _Unknown(statement)
                pairs = [*zip(target.elts, statement.value.elts, strict=True)]
            found = [(name, _kind(value, kinds, fields)) for name, value in pairs]
            for name, kind in found:
                if not isinstance(name, ast.Name) or name.id in ("np", "self"):
                    raise _Unknown(statement)
                kinds[name.id] = kind
    if not isinstance(end, ast.Return) or end.value is None:
        raise _Unknown(end)
    for value in end.value.elts if isinstance(end.value, ast.Tuple) else [end.value]:
        _kind(value, kinds, fields)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and abs(_whole_number(node) or 0) >= LARGEST:
            raise _Unknown(node)


def _kind(node: ast.expr, kinds: dict[str, int], fields: tuple[str, ...]) -> int:
    """Is this a truth, a whole or a real number? Raises `_Unknown` for what is not in the subset."""

    def of(*operands: ast.expr, truths: bool = True) -> list[int]:
        found = [_kind(operand, kinds, fields) for operand in operands]
        if TRUTH in found and not truths:
            raise _Unknown(node)
        return found

    match node:
        case ast.Name() if node.id in kinds:
            return kinds[node.id]
        case ast.Attribute(value=ast.Name(id="self")) if node.attr in fields:
            return REAL
        case ast.Constant(value=bool()):
            return TRUTH
        case ast.Constant(value=int(value)) if value < LARGEST:
            return WHOLE
        case ast.Constant(value=float()):
            return REAL
        case ast.UnaryOp(op=ast.USub()):
            return of(node.operand, truths=False)[0]
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            if (largest := max(of(node.left, node.right))) != TRUTH:
                return largest
        case ast.BinOp(op=ast.Mult()):
            return max(of(node.left, node.right))
        case ast.BinOp(op=ast.Div()):
            of(node.left, node.right)
            return REAL
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            if (largest := max(of(node.left, node.right))) != REAL:
                return largest
        case ast.BinOp(op=ast.Pow()):
            largest = max(of(node.left, node.right, truths=False))
            if largest == REAL or isinstance(node.right, ast.Constant):
                return largest
        case ast.Compare(ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE() | ast.Eq() | ast.NotEq()]):
            of(node.left, node.comparators[0])
            return TRUTH
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), keywords=[]) if name in FUNCTIONS:
            if len(node.args) == (2 if name in ("minimum", "maximum") else 1):
                largest = max(of(*node.args, truths=False))
                return largest if name in ("abs", "minimum", "maximum") else REAL
    raise _Unknown(node)


def _whole_number(node: ast.expr) -> int | None:
    """The whole number that an expression of numbers alone stands for; None for others."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub()):
            operand = _whole_number(node.operand)
            return None if operand is None else -operand
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Pow()):
            left, right = _whole_number(node.left), _whole_number(node.right)
            if left is None or right is None:
                return None
            if abs(left) >= LARGEST:
                return LARGEST
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
            return left**right if abs(left) < 2 or right < 64 else LARGEST
    return None


def _results(function: Callable) -> int:
    """The number of values that the last statement returns."""
    tree = syntax_tree(function)
    if tree is None:
        *_, before, last = dis.get_instructions(function)
        value = last.argval if last.opname == "RETURN_CONST" else before.argval
        if before.opname == "BUILD_TUPLE" and last.opname == "RETURN_VALUE":
            return before.arg or 0
        return len(value) if isinstance(value, tuple) else 1
    end = tree.body[-1]
    if not isinstance(end, ast.Return) or end.value is None:
        return 0
    return len(end.value.elts) if isinstance(end.value, ast.Tuple) else 1


def has_memory(cls: type) -> bool:
    """Do these dynamics take or give more than step(u_i, drive_i) does?"""
    return takes_and_gives("dynamics", "step", cls) != (("u_i", "drive_i"), ("u_i", "y_i"))


def has_third_variable(dynamics: Any) -> bool:
    return "h_i" in takes_and_gives("dynamics", "step", dynamics.__class__)[0]


def spikes(dynamics: Any) -> bool:
    return "s_i" in takes_and_gives("dynamics", "step", dynamics.__class__)[1]


def noisy(dynamics: Any) -> bool:
    return "noise_i" in takes_and_gives("dynamics", "step", dynamics.__class__)[0]


def window(schedule: Any) -> int:
    """The steps in which this schedule counts a neuron's spikes; 0 if it does not."""
    counts = "n_i" in takes_and_gives("schedule", "gate", schedule.__class__)[0]
    return int(schedule.window) if counts else 0


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
    tree = syntax_tree(function)
    return canonical(tree) if tree else repr(_plain(function.__code__))


def canonical(tree: Any) -> str:
    """A syntax tree as text, the same on every Python: `ast.dump` and `ast.unparse` change from version to version."""
    if isinstance(tree, list):
        return f"[{', '.join(map(canonical, tree))}]"
    if not isinstance(tree, ast.AST):
        return ascii(tree)
    is_constant = isinstance(tree, ast.Constant)  # whose value None counts; other empty fields only some versions have
    fields = ((name, value) for name, value in ast.iter_fields(tree) if is_constant or value not in (None, []))
    return f"{type(tree).__name__}({', '.join(f'{name}={canonical(value)}' for name, value in fields)})"


def _plain(code: CodeType) -> tuple:
    """Compiled code without the addresses of the functions inside."""
    consts = tuple(_plain(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.co_code, consts, code.co_names


def syntax_tree(function: Callable) -> ast.FunctionDef | None:
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
