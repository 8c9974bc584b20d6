"""A user's own classes and functions are identified by all that they compute."""

import ast
import hashlib
import inspect
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from release import pythons

import asynchebb as ah
from asynchebb import equations, notation, sources

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
    stimulus = notation.parse_named("stimulus", f"{folder}/mine.py:Shapes(4)")
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


def test_a_file_or_an_array_that_a_stimulus_uses_counts_by_its_content(tmp_path):
    @dataclass(frozen=True)
    class Layer:
        file: str
        m: int = 4

        def sample(self, rng, count):
            return np.tile(np.load(self.file), (count, 1))

    def run(file):
        return ah.Run(ah.asynchronous(n=5, m=4), ah.Phase(Layer(str(file)), 2, hold=10, snapshots=1))

    file = tmp_path / "layer.npy"
    np.save(file, np.full(4, 0.1))
    first = run(file)
    assert first.identity == run(file).identity
    np.save(file, np.full(4, 0.9))
    assert run(file).identity != first.identity
    with pytest.raises(ah.InputError, match="run has changed since its identity was computed: an array or a file"):
        ah.record(first, tmp_path / "runs")
    assert not [*(tmp_path / "runs").glob("*.nc")]
    np.save(file, np.full(4, 0.1))
    with pytest.raises(ah.InputError, match="run has changed"):  # while it is computed
        ah.record(run(file), tmp_path / "runs", on_progress=lambda steps: np.save(file, np.full(4, steps / 1e6)))
    assert not [*(tmp_path / "runs").glob("*.nc")]


@dataclass(frozen=True)
class Held:
    data: np.ndarray
    m: int = 4

    def sample(self, rng, count):
        return np.tile(self.data, (count, 1))


@pytest.mark.parametrize("kind", [ah.FromArray, Held])
def test_whoever_changes_an_array_later_does_not_change_what_a_run_is(kind, tmp_path):
    given = np.full((3, 4) if kind is ah.FromArray else 4, 0.5, np.float32)
    run = ah.Run(ah.asynchronous(n=5, m=4), ah.Phase(kind(given), 2, hold=10, snapshots=1))
    before = run.identity
    given[:] = 0.25
    if kind is Held:  # an array of one's own class stays one's own: it is noticed
        with pytest.raises(ah.InputError, match="run has changed"):
            ah.record(run, tmp_path)
        return
    assert (run.phases[0].stimulus.sample(np.random.default_rng(0), 2) == 0.5).all()
    assert not run.phases[0].stimulus.rows.flags.writeable and run.phases[0].stimulus.rows.dtype == np.float32
    again = ah.Run(run.network, ah.Phase(kind(np.full((3, 4), 0.5, np.float32)), 2, hold=10, snapshots=1))
    assert ah.record(run, tmp_path).attrs["identity"] == before == again.identity


# What versions of Python may write differently: docstrings, f-strings, decorators, annotations, literals, patterns.
SOURCE = '''
"""A module."""
from __future__ import annotations
import numpy as np

@decorated(1, *rest, key=None, **more)
class Rule(Base, metaclass=Meta):
    """A rule."""
    eta: float = 0.01
    name = "η" 'joined' f"{eta:>{width}.2f} {eta!r} {{}}"

    def leak_w(self, y_i: float, /, *others, floor: int = 1_000, **named) -> tuple[int, ...]:
        """Leak."""
        (a, b), *c = y_i, -2.5e-7, 1j, b"bytes", None, True, ...
        return [x for x in c if x > 0 and not (a := x)], {**named, "k": lambda z=1: z @ b}, y_i[1:, ::2], (yield)

    async def wait(self):
        try:
            async with self as x, open("f") as y: await x
        except (ValueError, *others) as error: raise error from None
        else: pass
        finally: del x
        match y:
            case {"a": [1, *_], **rest} | Point(x=0) if rest: return
        global g
        while True: continue
'''
DIGEST = "e582c7c2f5c5c27f"


def test_the_same_source_has_the_same_digest_on_every_python():
    digest = hashlib.sha256(sources.text(ast.parse(SOURCE)).encode()).hexdigest()[:16]
    assert digest == DIGEST
    program = (
        "import ast, hashlib\nfrom typing import Any\n"
        f"{inspect.getsource(equations.canonical)}\n"
        f"{inspect.getsource(sources.text).replace('equations.', '')}\n"
        f"print(hashlib.sha256(text(ast.parse({SOURCE!r})).encode()).hexdigest()[:16])"
    )
    for python in pythons().values():
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == DIGEST, python


def test_digests_of_ones_own_classes_are_pinned(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path)
    sys.modules.pop("beside", None)
    assert sources.digest(type(notation.parse_named("stimulus", f"{tmp_path}/mine.py:Shapes(4)"))) == "6ca1525fc7a76929"
