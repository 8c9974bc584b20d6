"""What changes an identity and what does not: each kind of value, of code, and of place where code may stand."""

import dataclasses
import itertools
import linecache
import platform
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import provenance, sources
from asynchebb.checks import InputError, added_later

# Code as in a notebook: in no file.
CELL = """
from dataclasses import dataclass
import math
import numpy as np
import asynchebb as ah

LEVEL = 0.5
TEXT, FLAG, NONE, STEPS, BYTES, TURN = "text", True, None, range(3), b"bytes", 1j
ARRAY = np.array([[1.0, 2.0], [3.0, 4.0]])
NUMBER = np.float32(2)
PAIR, LIST = (1, 2), [3, [4]]
SET = frozenset({"a", "b", "c"})
TABLE = {"a": 1, "b": 2}
RULE = ah.Oja(0.5)
UNUSED = 0
root = np.sqrt

@dataclass(frozen=True)
class Scale:
    by: float

    def __call__(self, x):
        return self.by * x

SCALE = Scale(0.75)

def twice(x):
    return 2 * x

def called():
    return twice(LEVEL)

def even(count):
    return count == 0 or odd(count - 1)

def odd(count):
    return count != 0 and even(count - 1)

def made(power):
    floor = 1.5
    def inside(x):
        return x**power + floor
    return inside

ENCLOSED = made(2)

class Parent:
    share = 0.25

    def inherited(self):
        return 10

class Mine(Parent):
    '''A class.'''

    constant = 7
    MANY = (1, 2)

    def __init__(self):
        self.x = TEXT, FLAG, NONE, STEPS, BYTES, TURN

    @property
    def own(self):
        return ARRAY, NUMBER

    @staticmethod
    def static():
        return PAIR, LIST, SET

    @classmethod
    def of_class(cls):
        return TABLE, RULE

    def method(self):
        '''A method.'''
        def nested():
            return math.sqrt(called()) + root(SCALE(2)) + ENCLOSED(3)  # a comment
        return nested() + even(4) + np.sum(1)
"""
EDITS = {
    "a number": ("LEVEL = 0.5", "LEVEL = 0.4"),
    "a text": ('"text"', '"texts"'),
    "a flag": ('"text", True', '"text", False'),
    "nothing": ('NONE, STEPS, BYTES, TURN = "text", True, None', 'NONE, STEPS, BYTES, TURN = "text", True, 0'),
    "a range": ("range(3)", "range(4)"),
    "bytes": ('b"bytes"', 'b"byte"'),
    "a complex number": ("1j", "2j"),
    "an entry of an array": ("4.0]])", "4.5]])"),
    "the shape of an array": ("[[1.0, 2.0], [3.0, 4.0]]", "[1.0, 2.0, 3.0, 4.0]"),
    "the type of an array": ("[3.0, 4.0]])", "[3.0, 4.0]], '>f8')"),
    "a number of NumPy": ("np.float32(2)", "np.float32(3)"),
    "the type of a number": ("np.float32(2)", "np.float64(2)"),
    "a tuple": ("PAIR, LIST = (1, 2)", "PAIR, LIST = (1, 3)"),
    "a list in a list": ("[3, [4]]", "[3, [5]]"),
    "a set": ('{"a", "b", "c"}', '{"a", "b", "d"}'),
    "a value in a table": ('"b": 2}', '"b": 3}'),
    "a key in a table": ('"b": 2}', '"c": 2}'),
    "a part of the package": ("ah.Oja(0.5)", "ah.Oja(0.25)"),
    "a value that can be called": ("SCALE = Scale(0.75)", "SCALE = Scale(0.7)"),
    "a function that is used by one that is used": ("return 2 * x", "return 3 * x"),
    "one of two functions that use each other": ("return count == 0", "return count == 1"),
    "the other": ("return count != 0", "return count != 1"),
    "what a function is made with": ("ENCLOSED = made(2)", "ENCLOSED = made(3)"),
    "what a function encloses": ("floor = 1.5", "floor = 1.25"),
    "a function inside another one": ("return x**power + floor", "return x**power - floor"),
    "a constant of a parent": ("share = 0.25", "share = 0.5"),
    "a method of a parent": ("return 10", "return 11"),
    "a constant of the class": ("constant = 7", "constant = 8"),
    "the name of a constant": ("constant = 7", "other = 7"),
    "a tuple of the class": ("MANY = (1, 2)", "MANY = (1, 3)"),
    "the name of the class": ("class Mine(", "class Mine2("),
    "a property": ("return ARRAY, NUMBER", "return NUMBER, ARRAY"),
    "a static method": ("return PAIR, LIST, SET", "return LIST, PAIR, SET"),
    "a class method": ("return TABLE, RULE", "return RULE, TABLE"),
    "a function inside a method": ("ENCLOSED(3)", "ENCLOSED(2)"),
    "a module that is used": ("np.sum(1)", "math.sum(1)"),
}
SAME = {
    "nothing at all": ("", ""),
    "a comment": ("a comment", "another one"),
    "a docstring": ("'''A method.'''", "'''Another text.'''"),
    "a docstring less": ("'''A class.'''", ""),
    "what is not used": ("UNUSED = 0", "UNUSED = 1"),
    "the order of a set": ('{"a", "b", "c"}', '{"c", "b", "a"}'),
}
cells = itertools.count()


def in_notebook(text, module="a_notebook"):
    """The last class that the text defines; its source can be read, and is in no file."""
    name = f"<cell {next(cells)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    defined = {"__name__": module}
    exec(compile(text, name, "exec"), defined)
    return [value for value in defined.values() if isinstance(value, type)][-1]


@pytest.fixture(scope="module")
def original():
    return sources.digest(in_notebook(CELL))


@pytest.mark.parametrize("what", EDITS)
def test_in_a_notebook_whatever_a_class_uses_changes_its_digest(what, original):
    before, after = EDITS[what]
    assert CELL.count(before) == 1
    assert sources.digest(in_notebook(CELL.replace(before, after))) != original


def test_a_class_of_a_script_is_not_identified_by_the_whole_script(original, monkeypatch, tmp_path):
    (tmp_path / "script.py").write_text(CELL)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "script.py"), raising=False)
    assert sources.digest(in_notebook(CELL, "__main__")) == original


@pytest.mark.parametrize("what", SAME)
def test_in_a_notebook_nothing_else_changes_it(what, original):
    assert sources.digest(in_notebook(CELL.replace(*SAME[what]))) == original


def test_in_a_notebook_a_value_that_cannot_be_read_is_refused_by_name():
    with pytest.raises(InputError, match=r"^Mine uses TABLE, a object, from which it cannot be seen whether it has ch"):
        sources.digest(in_notebook(CELL.replace('TABLE = {"a": 1, "b": 2}', "TABLE = object()")))
    with pytest.raises(InputError, match=r"^Mine uses constant, a object, "):
        sources.digest(in_notebook(CELL.replace("constant = 7", "constant = object()")))


def test_in_a_notebook_this_package_and_pythons_own_are_taken_for_granted(monkeypatch):
    monkeypatch.setattr(sources, "_of_file", lambda path: pytest.fail(f"{path} is read"))
    uses = (
        "import json\nimport asynchebb as ah\nfrom asynchebb.metrics import gini\nfrom email import message, policy\n"
    )
    cell = uses + "\nclass Mine:\n    def method(self):\n        return ah.Oja, gini, json, message.Message, policy\n"
    assert sources.digest(in_notebook(cell)) == sources.digest(in_notebook(cell))


MODULE = """
import {imported}

def made(power):
    def inside(x):
        return x**power
    return inside

square, cube = made(2), made(3)

class Mine:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Import a file anew, as it is now."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files edited within a second

    def imported(name="mine"):
        for known in [known for known in sys.modules if known.partition(".")[0] in ("mine", "beside", "deep", "json5")]:
            del sys.modules[known]
        linecache.clearcache()
        sources._imported_code.cache_clear()
        __import__(name)
        return sys.modules[name]

    return imported


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ("beside", "beside.py"),
        ("math, beside as other", "beside.py"),
        ("beside\nfrom beside import LEVEL", "beside.py"),
        ("deep.inside", "deep/inside.py"),
        ("math\nfrom deep import inside", "deep/__init__.py"),
        ("math\nfrom deep.inside import LEVEL", "deep/inside.py"),
        ("math\ndef later():\n    import beside", "beside.py"),
    ],
)
def test_of_a_file_all_that_it_imports_from_next_to_it_counts(written, file, tmp_path, module):
    (tmp_path / "deep").mkdir()
    for name in ("beside.py", "deep/__init__.py", "deep/inside.py"):
        (tmp_path / name).write_text("LEVEL = 0.5\n")
    (tmp_path / "other.py").write_text("LEVEL = 0.5\n")
    (tmp_path / "mine.py").write_text(MODULE.format(imported=written))
    before = sources.digest(module().Mine)
    (tmp_path / "other.py").write_text("LEVEL = 0.4\n")
    assert sources.digest(module().Mine) == before
    (tmp_path / file).write_text("LEVEL = 0.4\n")
    assert sources.digest(module().Mine) != before


@pytest.mark.parametrize("where", ["site-packages", "dist-packages", "mine"])
def test_in_a_notebook_what_is_installed_is_taken_for_granted_wherever_it_is(where, tmp_path, monkeypatch):
    """An environment may see packages of the user or of another environment, as one on top of it does."""
    folder = tmp_path / where / "package"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    cell = "import package\n\nclass Mine:\n    def method(self):\n        return package.LEVEL\n"
    found = set()
    for level in (1, 2):
        (folder / "__init__.py").write_text(f"LEVEL = {level}\n")
        sys.modules.pop("package", None)
        found.add(sources.digest(in_notebook(cell)))
    sys.modules.pop("package")
    assert len(found) == (2 if where == "mine" else 1)


def test_files_that_import_each_other_count_once(tmp_path, module):
    (tmp_path / "mine.py").write_text(MODULE.format(imported="beside"))
    (tmp_path / "beside.py").write_text("import mine\nLEVEL = 0.5\n")
    before = sources.digest(module().Mine)
    (tmp_path / "beside.py").write_text("import mine\nLEVEL = 0.4\n")
    assert sources.digest(module().Mine) != before


def test_functions_of_one_file_are_told_apart_by_name_and_by_what_they_enclose(tmp_path, module):
    (tmp_path / "mine.py").write_text(MODULE.format(imported="math"))
    mine = module()
    digests = [sources.digest(one) for one in (mine.square, mine.cube, mine.made, mine.Mine)]
    assert len({*digests}) == 4
    (tmp_path / "mine.py").write_text(MODULE.format(imported="math") + "\nOTHER = 1\n")
    assert sources.digest(module().Mine) not in digests


# Values


@dataclass(frozen=True)
class Shown:
    """A stimulus of one's own."""

    level: float = 0.5
    file: str = ""
    later: int = added_later(3)
    m: int = 4

    def sample(self, rng, count):
        return np.full((count, 4), self.level)


@dataclass(frozen=True)
class Learns:
    """A rule of one's own."""

    eta: float = 0.1
    floor = 0.0

    def leak_w(self, y_i):
        return y_i

    def leak_m(self, y_i):
        return y_i

    def rate(self, y_i, a_i):
        return self.eta, a_i


class Floored(Learns):
    floor = 0.1


ARRAY = np.arange(6.0).reshape(2, 3)
DIFFERENT = [
    *(None, True, False, "1", "", 0, 1, -1, 0.5, 1.5, (), (1,), (1, 1), ((1,), 1), "None", "true"),
    *(ARRAY, ARRAY.T, ARRAY.ravel(), ARRAY.astype(np.float32), ARRAY + 1, ARRAY[:1]),
    *(ah.Oja(), ah.Oja(0.5), ah.Hebbian(0.5), ah.Foldiak(0.5), ah.Foldiak(0.5, 0.5)),
    *(ah.Gaussian(), ah.Gaussian(rectified=True), ah.Gaussian(scale=2.0), ah.Exponential()),
    *(ah.FromArray(np.ones((2, 4))), ah.FromArray(np.zeros((2, 4))), ah.FromArray(np.ones((1, 4)))),
    *(Shown(), Shown(0.25), Shown(later=4), Shown(file="x"), Learns(), Learns(0.2), Floored()),
    *(ah.MEASURES["gini"], ah.MEASURES["error"]),
]
ALIKE = [
    (1, 1.0, np.float32(1), np.int8(1), Fraction(1)),
    (0.5, np.float64(0.5), Fraction(1, 2)),
    ((1, 2), [1, 2], (1.0, np.int64(2))),
    ("a/b", Path("a/b")),
    (ARRAY, np.asfortranarray(ARRAY), ARRAY.copy()),
    (ah.Asynchronous(1, 100), ah.Asynchronous(1.0, 100.0)),
    (ah.FromArray(np.ones((2, 4))), ah.FromArray([[1] * 4] * 2)),
    (Shown(), Shown(later=3)),
]


def test_values_that_differ_are_described_differently():
    described = {}
    for value in DIFFERENT:
        text = provenance.describe([value])
        assert text not in described, (value, described[text])
        described[text] = value


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_values_that_mean_the_same_are_described_alike(values):
    assert len({provenance.describe(value) for value in values}) == 1


def test_a_rule_without_a_floor_has_the_floor_0():
    def described(**floor):
        methods = {name: vars(Learns)[name] for name in ("leak_w", "leak_m", "rate")}
        made = type("Made", (), {**methods, "__annotations__": {"eta": float}, "eta": 0.1, **floor})
        return provenance.describe(dataclass(frozen=True)(made)())

    assert '"floor": 0}' in described() and '"floor": 0.5}' in described(floor=0.5)
    assert len({described(floor=floor) for floor in (0, 1, -1, 0.5)} | {described()}) == 5


def test_a_value_that_nothing_identifies_is_refused():
    with pytest.raises(InputError, match=r"^<object .*> has no fields that identify it; make its class a frozen dat"):
        provenance.describe(object())

    @dataclass
    class Loose:
        eta: float = 0.1

    with pytest.raises(InputError, match="can be changed afterwards"):
        provenance.describe(Loose())


def test_a_file_that_a_field_names_counts_by_its_name_and_content(tmp_path):
    for folder, name, text in (("a", "x", "1"), ("b", "x", "1"), ("a", "y", "1"), ("a", "z", "2")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text)
    described = [provenance.describe(Shown(file=str(tmp_path / name))) for name in ("a/x", "b/x", "a/y", "a/z", "a")]
    assert described[0] == described[1] and len({*described}) == 4
    assert provenance.describe(Shown(file="\0")) != described[0]  # no file can have that name
    assert provenance.describe(str(tmp_path / "a/x")) == f'"{tmp_path}/a/x"'  # a text, not a field


@pytest.mark.parametrize("in_blocks_of", [1, 40, 80, 10**6])
def test_an_identity_does_not_depend_on_how_an_array_is_read(in_blocks_of):
    rows = np.random.default_rng(0).random((7, 5))
    blocks = [*provenance._blocks(rows, in_blocks_of)]
    assert np.array_equal(np.concatenate(blocks), rows)
    assert max(block.nbytes for block in blocks) <= max(in_blocks_of, rows[0].nbytes)
    assert [*provenance._blocks(rows[:0], in_blocks_of)] == []


def test_contents_change_with_the_arrays_and_files_that_a_value_uses_and_with_nothing_else(tmp_path):
    file = tmp_path / "x"
    file.write_text("1")
    array = np.ones(3)
    value = (Shown(0.5, str(file)), [array, ah.Oja()], ah.FromArray(np.ones((2, 4))), ah.MEASURES["gini"])
    before = provenance.contents(value)
    assert provenance.contents((Shown(0.25, str(file)), [array, ah.Hebbian()], *value[2:])) == before
    for other in ((*value[:2], ah.FromArray(np.zeros((2, 4)))), value[1:], (value[0], *value[2:])):
        assert provenance.contents(other) != before
    array[0] = 2
    changed = provenance.contents(value)
    file.write_text("22")
    assert len({before, changed, provenance.contents(value)}) == 3
    network = ah.Network(5, 4)
    assert provenance.contents(ah.Run(network, ah.Phase(value[0], 2))) != provenance.contents(
        ah.Run(network, ah.Phase(dataclasses.replace(value[0], file=""), 2))
    )


def test_versions_and_the_machine_are_named():
    files = provenance.versions_in_files()
    assert {*files} == {f"{name}_version" for name in ("python", "asynchebb", "numpy", "numba")}
    assert files["numpy_version"] == np.__version__ and files["asynchebb_version"] == ah.__version__
    machine = provenance.machine()
    assert machine["cores"] >= 1 and len(machine["processor"]) > 3 and machine["system"].count(" ") == 1
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and "model name" in (known := cpuinfo.read_text()):
        assert re.search(rf"^model name\s*: {re.escape(machine['processor'])}$", known, re.M)


def test_a_machine_that_does_not_tell_its_processor_is_known_by_its_kind(monkeypatch):
    monkeypatch.setattr(platform, "processor", lambda: "")
    for told in ("cpu family: 6\n", None):

        def read_text(path, encoding, told=told):
            if told is None:
                raise FileNotFoundError
            return told

        monkeypatch.setattr(Path, "read_text", read_text)
        assert provenance.machine()["processor"] == platform.machine() != ""
    monkeypatch.setattr(platform, "processor", lambda: "a processor")
    assert provenance.machine()["processor"] == "a processor"


def test_the_code_is_all_of_the_packages_files(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    (tmp_path / "deep").mkdir()
    found = []
    for file, text in (
        ("provenance.py", "a = 1\n"),
        ("deep/inside.py", "b = 1\n"),
        ("deep/inside.py", "b = 2\n"),
        ("deep/inside.py", "b = 2  # a comment\n"),
        ("deep/notes.txt", "b"),
        ("provenance.py", "a = 2\n"),
    ):
        (tmp_path / file).write_text(text)
        provenance.code.cache_clear()
        found.append(provenance.code())
    provenance.code.cache_clear()
    assert found[2] == found[3] == found[4] and len({*found}) == 4
