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

from asynchebb.checks import InputError, at_least, frozen, real


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
        raise InputError(f"{kind} is the text {record!r}; it must be a value, like {_example(kind)}")
    cls: type = type(record)
    frozen(kind, record)
    if fault := _fault(kind, cls):
        raise InputError(f"{kind} is {record!r}; {fault}")
    for name, value in constants(record).items():
        if not isinstance(value, Real):
            raise InputError(f"{kind} is {record!r}; its field {name} must be a number")
    if kind == "dynamics" and spikes(record):
        _check_decay(record)
    if kind == "schedule" and "n_i" in takes_and_gives(kind, "gate", cls)[0]:
        if not hasattr(record, "window"):
            raise InputError(f"{kind} is {record!r}; its gate takes n_i, so it must have a window: a number of steps")
        at_least(1)(f"{cls.__name__}.window", record.window)


def _check_decay(dynamics: Any) -> None:
    """Engines rely on it: y_i falls by this factor in a step without a spike."""
    decay = getattr(dynamics, "decay", None)
    if decay is None:
        return
    real(f"{type(dynamics).__name__}.decay", decay)
    takes, gives = takes_and_gives("dynamics", "step", dynamics.__class__)
    values = {"u_i": 0.0, "y_i": 1.0, "h_i": 0.0, "drive_i": 0.0, "noise_i": 1.0 - 2**-24}
    after = dict(zip(gives, dynamics.step(*(values[name] for name in takes)), strict=True))
    if not after["s_i"] and abs(after["y_i"] - decay) > 1e-6:
        raise InputError(
            f"dynamics is {dynamics!r}, whose decay is {decay:g}, but without drive and spike its step makes "
            f"{after['y_i']:g} of y_i = 1; they must be the same (or there must be no decay)"
        )


def _example(kind: str) -> str:
    return {"rule": "ah.Oja(eta=0.01)", "schedule": "ah.Discrete()", "dynamics": "ah.Projected()"}[kind]


@cache
def _fault(kind: str, cls: type) -> str | None:
    """Why the engines cannot run the methods of this class; None if they can."""
    for method, form in METHODS[kind].items():
        function = getattr(cls, method, None)
        wanted = f"{method}(self, {form.takes.replace(' ', ', ')})"
        if function is None:
            return f"it must have a method {wanted}"
        if (taken := _taken(form, function)) is None:
            return f"its method {method} must be {wanted}"
        check_arithmetic(function, field_names(cls))
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
def check_arithmetic(function: Callable, fields: tuple[str, ...]) -> None:
    """Raise an error for an equation that goes beyond the arithmetic every engine understands.

    Global variables are not allowed either: an engine that caches compiled code would not notice when they change.
    """
    tree = syntax_tree(function)
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


def _is_boolean(node: ast.AST, booleans: set[str]) -> bool:
    match node:
        case ast.Compare():
            return True
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return True
        case ast.Name():
            return node.id in booleans
    return False


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
    return ast.unparse(tree) if tree else repr(_plain(function.__code__))


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
