"""A user's own classes and functions are identified by all that they compute."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import notation

STIMULUS = """
'''Shapes.'''
from dataclasses import dataclass
import numpy as np
import beside

LEVEL = 0.5

def drawn(rng, count, m):
    return LEVEL * (rng.random((count, m)) < 0.5)

@dataclass(frozen=True)
class Shapes:
    p: int = 4

    @property
    def m(self):
        return self.p**2

    def sample(self, rng, count):
        return self._with_noise(drawn(rng, count, self.m))

    def _with_noise(self, X):
        return np.minimum(X + 0.1, beside.MOST)

    def factors(self):
        return np.eye(self.m)
"""
BESIDE = "from deeper import MOST\n"
DEEPER = "MOST = 1.0\n"
EDITS = {
    "a helper method": ("X + 0.1", "X + 0.2"),
    "a module constant": ("LEVEL = 0.5", "LEVEL = 0.6"),
    "a helper function": ("< 0.5)", "< 0.6)"),
    "what another file imports": ("MOST = 1.0", "MOST = 0.9"),
}


def write(folder, edit=("", "")):
    for name, text in (("mine.py", STIMULUS), ("beside.py", BESIDE), ("deeper.py", DEEPER)):
        (folder / name).write_text(text.replace(*edit) if edit[0] else text)


def identity(folder):
    for name in ("beside", "deeper"):
        sys.modules.pop(name, None)
    stimulus = notation.parse("stimulus", f"{folder}/mine.py:Shapes(4)")
    return ah.Run(ah.asynchronous(n=5, m=16), ah.Phase(stimulus, 2)).identity


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_stimulus_makes_another_run(what, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files edited within a second
    write(tmp_path)
    before = identity(tmp_path)
    write(tmp_path, ("'''Shapes.'''", "'''Other shapes.'''  # with a comment"))
    assert identity(tmp_path) == before
    write(tmp_path, EDITS[what])
    assert identity(tmp_path) != before


SCRIPT = """
from dataclasses import dataclass
import numpy as np, asynchebb as ah

LEVEL = 0.5
SHOWN = "a title"
TABLE = {table}

def level():
    return LEVEL

@ah.measure("contrast")
def contrast(W):
    return float(W.mean() * FACTOR)

FACTOR = 2.0

@dataclass(frozen=True)
class Mine:
    m: int = 4
    def sample(self, rng, count):
        return level() * rng.random((count, self.m)) + np.sum(TABLE)

run = ah.Run(ah.asynchronous(n=5, m=4), ah.Phase(Mine(), 2), ah.Probe(Mine(), measures=("error", contrast)))
print(run.identity, SHOWN)
"""


def of_script(*edit, table="(0, 0)"):
    text = SCRIPT.format(table=table)
    command = [sys.executable, "-"]
    return subprocess.run(command, input=text.replace(*edit) if edit else text, capture_output=True, text=True)


def test_in_a_script_only_what_is_used_counts():
    before = of_script().stdout.split()[0]
    assert of_script('"a title"', '"another"').stdout.split()[0] == before
    for edit in (("LEVEL = 0.5", "LEVEL = 0.4"), ("FACTOR = 2.0", "FACTOR = 3.0"), ("(0, 0)", "(0, 1)")):
        assert of_script(*edit).stdout.split()[0] != before, edit
    refused = of_script(table="object()").stderr
    assert "Mine uses TABLE, a object, from which it cannot be seen whether it has changed" in refused


def test_what_can_be_changed_after_its_run_was_identified_is_refused():
    @dataclass
    class Changing:
        eta: float = 0.1

        leak_w, leak_m, rate = ah.Hebbian.leak_w, ah.Hebbian.leak_m, ah.Hebbian.rate

    @dataclass
    class Shown:
        m: int = 4

        def sample(self, rng, count):
            return np.zeros((count, 4))

    @dataclass
    class Drawn:
        def draw(self, rng, shape, n):
            return np.ones(shape)

    for make in (
        lambda: ah.Network(rule=Changing()),
        lambda: ah.Network(weights=Drawn()),
        lambda: ah.Run(ah.asynchronous(n=5, m=4), ah.Phase(Shown(), 2)),
    ):
        with pytest.raises(ah.InputError, match=r"whose class can be changed afterwards; it must be a @dataclass\(fro"):
            make()
