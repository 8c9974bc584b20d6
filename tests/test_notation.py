"""Values as text and back, and text that is none."""

import sys
from dataclasses import dataclass

import pytest

import asynchebb as ah
from asynchebb import notation
from asynchebb.checks import InputError

MINE = """
from dataclasses import dataclass
import math
from math import sqrt
import asynchebb as ah
from helpers import helper
from zeta import late

NUMBER = 3

def contrast(W):
    return W.std() / W.mean()

@ah.measure("a label")
def labelled(W):
    return W.max()

@dataclass(frozen=True)
class Mine:
    eta: float = 0.1
    parts: tuple = ()

class _Hidden:
    pass
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helpers.py").write_text("def helper(W):\n    return 0\n")
    (tmp_path / "zeta.py").write_text("def late(W):\n    return 0\n")
    (tmp_path / "mine.py").write_text(MINE)
    yield f"{tmp_path}/mine.py"
    for name in ("helpers", "zeta", "user_mine"):
        sys.modules.pop(name, None)


@dataclass(frozen=True)
class Oja:
    """Another one than the package's."""

    eta: float = 0.1


@pytest.mark.parametrize("kind", notation.MODULES)
def test_every_value_of_the_package_is_read_as_it_was_written(kind):
    for name, cls in notation.variants(kind).items():
        if name != "FromArray":
            assert notation.from_text(kind, notation.to_text(cls()), {}) == cls()
    assert not any(name.startswith("_") or name == "InputError" for name in notation.variants(kind))


def test_what_is_of_no_class_or_of_ones_own_is_written_as_such():
    assert notation.to_text(None) == "None" and notation.from_text("schedule", "None", {}, "bursts") is None
    assert notation.to_text(ah.Oja(0.5)) == "Oja(eta=0.5)" and notation.to_text(Oja()) == "own Oja(eta=0.1)"
    with pytest.raises(
        InputError, match=r"^the rule is Oja\(eta=0.1\), whose class is not the package's; pass it in: r"
    ):
        notation.from_text("rule", "own Oja(eta=0.1)", {})
    with pytest.raises(InputError, match=r"pass it in: bursts=Oja\(eta=0.1\)$"):
        notation.from_text("schedule", "own Oja(eta=0.1)", {"schedule": 1}, "bursts")
    assert notation.from_text("rule", "own Oja(eta=0.1)", {"rule": Oja()}) == Oja()
    assert notation.from_text("schedule", "None", {"bursts": 3}, "bursts") == 3


def test_a_class_or_a_measure_may_be_in_a_file_that_a_person_names(file):
    assert (
        repr(notation.parse_named("rule", f"{file}:Mine(eta=0.5, parts=(1, 'a'))")) == "Mine(eta=0.5, parts=(1, 'a'))"
    )
    assert notation.parse_named("rule", "Oja(0.5)") == ah.Oja(0.5)
    assert notation.parse_measure("gini") == "gini"
    assert notation.parse_measure(f"{file}:contrast").__name__ == "contrast"
    assert notation.parse_measure(f"{file}:labelled").label == "a label"
    for other in ("helper", "late", "sqrt", "Mine", "NUMBER", "math", "nothing"):
        with pytest.raises(
            InputError, match=rf"^measure is '{file}:{other}'; {file} has the functions contrast, labelled$"
        ):
            notation.parse_measure(f"{file}:{other}")
    with pytest.raises(InputError, match=r"^rule is '_Hidden'; it must be one of Mine$"):
        notation.parse_named("rule", f"{file}:_Hidden()")
    with pytest.raises(InputError, match=r"^measure names the file 'absent.py'; there is no such Python file$"):
        notation.parse_measure("absent.py:f")


def test_a_file_is_read_as_it_is_now_and_one_that_fails_is_named(file, tmp_path):
    (tmp_path / "mine.py").write_text("def other(W):\n    return 1\n")
    assert notation.parse_measure(f"{file}:other").__module__ == "user_mine"
    (tmp_path / "mine.py").write_text("def other(W):\n    return 2\n")
    assert notation.parse_measure(f"{file}:other")(0) == 2
    (tmp_path / "mine.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=r"^measure names the file '.*', which cannot be imported: ZeroDivisionError"):
        notation.parse_measure(f"{file}:other")
    (tmp_path / "mine.py").write_text("NUMBER = 3\n")
    with pytest.raises(InputError, match=r"has the functions none$"):
        notation.parse_measure(f"{file}:other")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("rule", "oya(0.1)", r"rule is 'oya'; it must be one of Hebbian, Oja, .*, SpikePairs \(did you mean Oja\?\)$"),
        ("rule", "FOLDIAK", r"\(did you mean Foldiak\?\)$"),
        ("dynamics", "IntegrateAndFir()", r"\(did you mean IntegrateAndFire\?\)$"),  # or two others, less near
        ("rule", "Xyz()", r"it must be one of Hebbian, Oja, Foldiak, Falconbridge, Pehlevan, SpikePairs$"),
        ("rule", "Oja(", r"rule is 'Oja\('; it must be written like Name\(field=value\)$"),
        ("rule", "Oja(0.1, 0.2)", r"rule is .*: too many positional arguments; the fields of Oja are: eta$"),
        ("schedule", "Discrete(1)", r"the fields of Discrete are: none$"),
        ("rule", "Oja(**{'eta': 1})", r"it must be written like Name\(field=value\), without \*\*$"),
        ("rule", "3", r"rule is '3'; it must be one of Hebbian, "),
        ("rule", "Oja(eta=1 + x)", r"it must be written like Name\(field=value\)$"),
        ("rule", "ah.Oja()", r"it must be written like Name\(field=value\)$"),
        ("rule", "Discrete()", r"rule is 'Discrete'; it must be one of Hebbian"),
        ("rule", "(" * 300 + ")" * 300, r"it must be written like Name\(field=value\)$"),
        ("rule", "\0", r"it must be written like Name\(field=value\)$"),
        ("stimulus", "Crossbars(Bars(6))", r"Crossbars.p is Bars"),
    ],
)
def test_text_that_is_no_value_is_refused_in_a_sentence(kind, text, said):
    with pytest.raises(InputError, match=said):
        notation.parse(kind, text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a, b ,c", ["a", "b", "c"]),
        ("Oja(0.1, 2), [1, (2, 3)],x", ["Oja(0.1, 2)", "[1, (2, 3)]", "x"]),
        ("'a, b', \"c, 'd\", e", ["'a, b'", '"c, \'d"', "e"]),
        ("')', (']', \"(\"), x", ["')'", "(']', \"(\")", "x"]),
        ("", []),
        (" , a,, ", ["a"]),
    ],
)
def test_text_is_split_at_commas_outside_brackets_and_quotes(text, pieces):
    assert notation.pieces(text) == pieces
