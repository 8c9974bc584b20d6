"""Typeset the equations that docstrings state in plain text: `Δw_ij = η (y_i x_j − y_i² w_ij)` becomes MathML.

Browsers draw MathML by themselves, so that a page needs neither a script nor fonts from elsewhere.
"""

import re
from html import escape

BEGINS = re.compile(r"(\w+|cos\(.*?\)) (=|←|~) ")  # how an equation begins
ACCENTS = {"ẏ": ("y", "˙"), "ỹ": ("y", "~"), "x̂": ("x", "^")}
FUNCTIONS = ("exp", "max", "min", "cos", "mean", "median", "Exp")
NAMES = ("dt", "drive", "target", "scale", "hold", "spikes")  # variables of more than one letter

TOKEN = re.compile(
    r"""(?P<variable>(?:Σ|√|Δ?(?:x̂|[^\W\d_]+))(?:_\{[^}]*\}|_\w+)?²?)
    |(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?[²]?)
    |(?P<space>\s+)
    |(?P<close>[\])|][₊²]?)
    |(?P<other>.)""",
    re.VERBOSE,
)


def equations_in(text: str) -> list[str] | None:
    """The lines of a paragraph that states equations; None of any other."""
    lines = [line.strip() for line in text.splitlines()]
    return lines if BEGINS.match(lines[0]) else None


def block(lines: list[str]) -> str:
    """Equations one below the other, as HTML."""
    return '<div class="equations">' + "".join(f"<div>{line_of(line)}</div>" for line in lines) + "</div>"


def line_of(text: str) -> str:
    """One line, in which words stay words, so that it may be broken there."""
    found, parts, formula = [*TOKEN.finditer(text)], [], ""
    for number, token in enumerate(found):
        beside_word = any(_is_word(found[one]) for one in (number - 1, number + 1) if 0 <= one < len(found))
        if _is_word(token) or token.group() in ",:;`" or (token.lastgroup == "space" and beside_word):
            parts += [_math(formula), escape(token.group().strip("`"))]
            formula = ""
        else:
            formula += _symbol(token)
    return "".join([*parts, _math(formula)])


def _math(formula: str) -> str:
    return f"<math><mrow>{formula}</mrow></math>" if formula else ""


def _symbol(token: re.Match[str]) -> str:
    kind, said = token.lastgroup, token.group()
    if kind == "space":
        return "<mspace width='0.17em'/>"
    if kind == "variable":
        return _variable(said)
    if kind == "number":
        return _raised(f"<mn>{said.rstrip('²')}</mn>", said)
    if kind == "close":
        return _closing(said)
    return f"<mo stretchy='false'>{escape(said)}</mo>"


def _is_word(token: re.Match[str]) -> bool:
    """Whether it is part of a sentence, like "at the last step", and no variable."""
    said = token.group()
    if token.lastgroup != "variable" or "_" in said:
        return False
    plain = said.strip("²ᵀΔ")
    # The article is the only word of one letter that is written like a variable.
    follows = re.match(r" [a-z]{2,}", token.string[token.end() :])
    return (len(plain) > 1 and plain not in (*FUNCTIONS, *NAMES, *ACCENTS, "Wᵀy", "Wx", "My")) or bool(
        plain == "a" and follows
    )


def _variable(said: str) -> str:
    said, _, subscript = said.partition("_")
    square = (said + subscript).endswith("²")
    said, subscript = said.rstrip("²"), subscript.rstrip("²").strip("{}")
    difference, said = said.startswith("Δ"), said.lstrip("Δ")
    if said in ACCENTS:
        letter, accent = ACCENTS[said]
        base = f"<mover><mi>{letter}</mi><mo>{accent}</mo></mover>"
    elif said == "Σ":
        base = "<mo>∑</mo>"
    elif said == "√":
        base = "<mo>√</mo>"
    elif "ᵀ" in said:  # Wᵀy: a product
        first, rest = said.split("ᵀ")
        base = f"<msup><mi>{first}</mi><mi mathvariant='normal'>T</mi></msup>" + "".join(f"<mi>{c}</mi>" for c in rest)
    elif said in FUNCTIONS or said in NAMES:
        base = f"<mi mathvariant='normal'>{said}</mi>"
    else:
        base = "".join(f"<mi>{letter}</mi>" for letter in said)
    if subscript:
        inside = _subscript(subscript)
        sub = f"<munder>{base}{inside}</munder>" if said in ("Σ", *FUNCTIONS) else f"<msub>{base}{inside}</msub>"
        if square:
            sub = f"<msubsup>{base}{inside}<mn>2</mn></msubsup>"
        base, square = sub, False
    base = f"<msup>{base}<mn>2</mn></msup>" if square else base
    return f"<mi mathvariant='normal'>Δ</mi>{base}" if difference else base


def _subscript(text: str) -> str:
    letters = "".join(f"<mo>{escape(c)}</mo>" if c in "<>=" else f"<mi>{c}</mi>" for c in text)
    return f"<mrow>{letters}</mrow>"


def _closing(said: str) -> str:
    """A bracket, which may be squared, or take the positive part."""
    bracket = f"<mo stretchy='false'>{said[0]}</mo>"
    if said.endswith("₊"):
        return f"<msub>{bracket}<mo>+</mo></msub>"
    return _raised(bracket, said)


def _raised(base: str, said: str) -> str:
    return f"<msup>{base}<mn>2</mn></msup>" if said.endswith("²") else base
