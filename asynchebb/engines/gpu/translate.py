"""Equations in C++: the same arithmetic, as functions that a compiler of device code takes.

A method becomes `method(constants, what it may take…, what it may give…&)` over the type `real`. An assignment makes a
new variable each time, since a name may change its type: a truth becomes a number.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

from asynchebb import equations
from asynchebb.checks import InputError

WHOLE_NUMBERS = ("c_i", "n_i", "k", "hold")  # the others are real
OPERATORS: Mapping[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|"}
COMPARISONS: Mapping[type, tuple[str, str]] = {
    ast.Gt: ("greater", ">"), ast.GtE: ("not_less", ">="), ast.Lt: ("less", "<"), ast.LtE: ("not_greater", "<="),
    ast.Eq: ("equal", "=="), ast.NotEq: ("unequal", "!="),
}  # fmt: skip
# c_i is also handed over as a real number, since the kernels can convert it while they wait for something else.
FUNCTIONS = """
struct Count {
    long long whole;
    real as_real;
    MEMBER Count(long long c) : whole(c), as_real((real)c) {}
    MEMBER Count(long long c, real as_real) : whole(c), as_real(as_real) {}
    MEMBER operator long long() const { return whole; }
};
template <typename T> DEVICE real as_real(T x) { return (real)x; }
DEVICE real as_real(Count c) { return c.as_real; }
template <typename A, typename B> DEVICE A like(A a, B) { return a; }
DEVICE real like(Count c, real) { return c.as_real; }
template <int N, typename T> DEVICE auto power(T x) {  // of a whole number, a whole number
    if constexpr (N == 0) {
        return (decltype(x * x))1;
    } else {
        auto root = power<N / 2>(x);
        return N % 2 ? root * root * x : root * root;
    }
}
DEVICE real np_maximum(real a, real b) { return a > b || a != a ? a : b; }
DEVICE real np_minimum(real a, real b) { return a < b || a != a ? a : b; }
DEVICE real np_abs(real a) { return a < 0 ? -a : a; }
""" + "\n".join(
    f"template <typename A, typename B> DEVICE bool {name}(A a, B b) {{ return like(a, b) {symbol} like(b, a); }}"
    for name, symbol in COMPARISONS.values()
)


def functions(kind: str, cls: type) -> str:
    """All equations of a class."""
    return "\n".join(_function(kind, method, cls) for method in equations.METHODS[kind])


def _function(kind: str, method: str, cls: type) -> str:
    tree = equations.syntax_tree(getattr(cls, method))
    if tree is None:
        raise InputError(
            f"{kind} is {cls.__name__}, whose method {method} has no source that can be read; to run it on a GPU it "
            "must be defined in a file or a notebook"
        )
    form = equations.METHODS[kind][method]
    takes, gives = equations.takes_and_gives(kind, method, cls)
    body = _Body(cls, method, dict(zip((one.arg for one in tree.args.args[1:]), takes, strict=True)))
    lines = [f"out_{name} = {name};" for name in form.all_given if name not in gives and name in form.all_taken]
    lines += ["out_s_i = 0;"] if "s_i" in form.all_given and "s_i" not in gives else []
    for number, statement in enumerate(tree.body):
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            fresh = f"value_{number}"  # its own name need not be one in C++
            lines.append(f"auto {fresh} = {body.text(statement.value)};")
            body.variables[target.id] = fresh
        elif isinstance(statement, ast.Return) and statement.value is not None:
            value = statement.value
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            lines += [f"out_{name} = {body.text(part)};" for name, part in zip(gives, parts, strict=True)]
        else:
            raise body.cannot(statement)
    arguments = [*(f"{'Count' if name == 'c_i' else _type(name)} {name}" for name in form.all_taken)]
    arguments += [f"{_type(name)}& out_{name}" for name in form.all_given]
    written = "".join(f"    {line}\n" for line in lines)
    return f"DEVICE void {method}(const real* constants, {', '.join(arguments)}) {{\n{written}}}\n"


def _type(name: str) -> str:
    return "long long" if name in WHOLE_NUMBERS else "real"


class _Body:
    """Expressions of one method; `variables` says what its names are called in C++."""

    def __init__(self, cls: type, method: str, variables: dict[str, str]) -> None:
        self.cls, self.method, self.variables = cls, method, variables
        self.fields = {name: f"constants[{place}]" for place, name in enumerate(equations.field_names(cls))}

    def text(self, node: ast.expr) -> str:
        match node:
            case ast.Name() if node.id in self.variables:
                return self.variables[node.id]
            case ast.Attribute(value=ast.Name(id="self")) if node.attr in self.fields:
                return self.fields[node.attr]
            case ast.Constant(value=bool()):
                return "true" if node.value else "false"
            case ast.Constant(value=int(value)) if value < 2**63:
                return f"{value}ll"
            case ast.Constant(value=float(value)) if abs(value) < float("inf"):
                return f"(real){value!r}"
            case ast.UnaryOp(op=ast.USub()):
                return f"(-{self.text(node.operand)})"
            case ast.BinOp(op=ast.Div()):
                return f"(as_real({self.text(node.left)}) / as_real({self.text(node.right)}))"
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int(power))) if power < 2**31:
                return f"power<{power}>({self.text(node.left)})"
            case ast.BinOp(op=ast.Pow()):
                return f"pow(as_real({self.text(node.left)}), as_real({self.text(node.right)}))"
            case ast.BinOp() if type(node.op) in OPERATORS:
                return f"({self.text(node.left)} {OPERATORS[type(node.op)]} {self.text(node.right)})"
            case ast.Compare(ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                return f"{COMPARISONS[type(op)][0]}({self.text(node.left)}, {self.text(right)})"
            case ast.Call(func=ast.Attribute(attr=name)) if name in equations.FUNCTIONS:
                arguments = ", ".join(f"as_real({self.text(argument)})" for argument in node.args)
                return f"{'np_' if name in ('maximum', 'minimum', 'abs') else ''}{name}({arguments})"
        raise self.cannot(node)

    def cannot(self, node: ast.stmt | ast.expr) -> InputError:
        _, first = inspect.getsourcelines(getattr(self.cls, self.method))
        line = first + node.lineno - 1
        return InputError(
            f"{self.cls.__name__}.{self.method} has `{ast.unparse(node)}` in line {line} ({type(node).__name__}), "
            "which cannot be translated for a GPU; use arithmetic, comparisons of two values, & and |, or engine cpu"
        )
