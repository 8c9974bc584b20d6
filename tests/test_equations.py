"""Equations written once, in the arithmetic that every engine understands; a user's own among them."""

import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import equations, notation
from asynchebb.engines import cpu


@dataclass(frozen=True)
class Saturating:
    """A rule of one's own: the leak levels off."""

    eta: float = 0.02
    half: float = 0.5
    floor = 0.001

    def leak_w(self, y_i):
        return y_i / (y_i + self.half)

    def leak_m(self, y_i):
        return np.tanh(y_i) ** 2

    def rate(self, y_i, a_i):
        a_i = a_i + y_i
        return self.eta / (1 + a_i), a_i


class Tuple(NamedTuple):
    """The same as a named tuple."""

    eta: float = 0.02

    def leak_w(self, y_i):
        return 1.0

    def leak_m(self, y_i):
        return 1.0

    def rate(self, y_i, a_i):
        return self.eta, a_i


@dataclass(frozen=True)
class SlidingThreshold:
    """A rule whose rate depends on what the neuron has done, and moves while it is silent."""

    eta: float = 0.02
    a0: float = 0.5
    floor = 0.0

    def leak_w(self, y_i):
        return y_i

    def leak_m(self, y_i):
        return y_i * y_i

    def rate(self, y_i, a_i):
        a_i = a_i + 0.01 * (y_i * y_i - a_i) * (a_i > 0.3)
        return self.eta / (1 + a_i), a_i


@dataclass(frozen=True)
class Ending:
    """A rule whose only constant has a name that code around it might use."""

    end: float = 0.02
    floor = 0.0

    def leak_w(self, y_i):
        return y_i

    def leak_m(self, y_i):
        return 1.0

    def rate(self, y_i, a_i):
        return self.end, a_i


@dataclass(frozen=True)
class Leaky:
    """Dynamics of one's own."""

    dt: float = 0.01
    tau: float = 3.0

    def step(self, u_i, drive_i):
        u_i = u_i + self.dt * (drive_i - u_i / self.tau)
        return u_i, u_i * (u_i > 0)


@dataclass(frozen=True)
class EveryOther:
    """A schedule of one's own: bursting neurons, at even steps only, in the second half of the hold."""

    r_b: float = 0.1

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i >= 1) & (2 * k > hold)
        return beta_i, (c_i + 1) * (beta_i == 0)


@pytest.mark.parametrize("kind", equations.METHODS)
def test_the_package_keeps_to_the_arithmetic(kind):
    for name, cls in notation.variants(kind).items():
        equations.check(kind, cls())
        for method in equations.METHODS[kind]:
            assert equations.syntax_tree(getattr(cls, method)) is not None, name


@pytest.mark.parametrize(
    "parts",
    [
        dict(rule=Saturating()),
        dict(rule=Tuple()),
        dict(rule=Ending()),
        dict(dynamics=Leaky()),
        dict(schedule=EveryOther(), rule=ah.Oja()),
        dict(schedule=ah.Continuous(), rule=SlidingThreshold()),
        dict(schedule=ah.Continuous(), rule=SlidingThreshold(), dynamics=ah.Projected()),
    ],
    ids=repr,
)
def test_equations_of_ones_own_run_on_every_engine(parts):
    network = ah.Network(n=120, m=25, **{"schedule": ah.Asynchronous(0.3, 10), **parts})
    state = network.init(np.random.default_rng(0), np.float64)
    X = ah.Crossbars(5).sample(np.random.default_rng(1), 30)
    fast, traces = ah.advance(network, state, X, hold=50, engine="cpu", trace=("burst",))
    slow, _ = ah.advance(network, state, X, hold=50, engine="reference")
    assert traces["burst"].any()
    for name in ah.State._fields:
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("if y_i > 0:\n        return 1.0\n    return 0.0", "if y_i > 0"),
        ("return max(y_i, 1.0)", "max(y_i, 1.0)"),
        ("for k in (1, 2):\n        y_i = y_i + k\n    return y_i", "for k in"),
        ("return 1.0 if y_i > 0 else 0.0", "if y_i > 0 else"),
        ("return np.random.random()", "np.random.random()"),
        ("return y_i and 1.0", "y_i and 1.0"),
        ("return LEAK * y_i", "LEAK"),  # a number from outside: compiled code would not see it change
        ("return 0.5 < y_i < 2.0", "0.5 < y_i < 2.0"),
        ("return (y_i > 1) + (y_i > 2)", "(y_i > 1) + (y_i > 2)"),  # "or" to NumPy, 2 to a compiler
        ("on = y_i > 1\n    return on + (y_i > 2)", "on + (y_i > 2)"),
        ("return self.constant", "self.constant"),  # of the class, not a field
    ],
)
def test_what_no_engine_could_run_is_refused_by_name(body, named, tmp_path):
    leak = "    def leak_w(self, y_i):\n        " + body.replace("\n", "\n    ")
    lines = [
        "import numpy as np",
        "LEAK = 2.0",
        "class Bad:",
        "    constant = 1.0",
        leak,
        "    def leak_m(self, y_i):",
        "        return 1.0",
    ]
    lines += ["    def rate(self, y_i, a_i):", "        return 0.1, a_i"]
    (tmp_path / "bad.py").write_text("\n".join(lines) + "\n")
    with pytest.raises(ah.InputError, match="straight-line arithmetic") as refused:
        ah.Network(rule=notation.parse_named("rule", f"{tmp_path}/bad.py:Bad()"))
    assert named in str(refused.value) and "leak_w" in str(refused.value)


@pytest.fixture
def own_cache(tmp_path):
    """An environment with a cache of its own, where no rule of a test's is compiled; the loops and what tests measure,
    which know no rule and take long to compile, are taken along."""
    shared, own = cpu.cache_folder(), tmp_path / "cache"
    (own / "__pycache__").mkdir(parents=True)
    names = [cpu.response().__name__]
    for dtype in map(np.dtype, ("float32", "float64")):
        cpu.loop(dtype, False)
        names += cpu.loop_names(dtype, False)
    for name in names:
        for file in [*shared.glob(f"{name}.*"), *shared.glob(f"__pycache__/{name}.*")]:
            shutil.copy2(file, own / file.relative_to(shared))
    return {**os.environ, "ASYNCHEBB_CACHE": str(own)}


@pytest.mark.slow
def test_an_edited_rule_is_compiled_anew_and_an_old_one_is_not(tmp_path, own_cache):
    """In new processes that share a cache: the engine must never run yesterday's equation."""
    script = tmp_path / "own.py"
    source = textwrap.dedent("""
        from dataclasses import dataclass
        import numpy as np, asynchebb as ah

        @dataclass(frozen=True)
        class Own:
            eta: float = 0.1
            def leak_w(self, y_i):
                return LEAK
            def leak_m(self, y_i):
                return 1.0
            def rate(self, y_i, a_i):
                return self.eta, a_i

        network = ah.Network(n=3, m=2, rule=Own(), schedule=ah.Continuous())
        state = network.init(np.random.default_rng(0), np.float64)._replace(u=np.full(3, -9.0), y=np.zeros(3))
        after, _ = ah.advance(network, state, np.zeros((1, 2)), hold=1)
        print(round((after.W / state.W).mean(), 6))
    """)

    def kept(leak):
        script.write_text(source.replace("LEAK", leak))
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=own_cache, check=True)
        return float(done.stdout), "compiling" in done.stderr

    assert kept("1.0") == (0.9, True)
    assert kept("1.0") == (0.9, False)
    assert kept("2.0") == (0.8, True)
    assert kept("1.0") == (0.9, False)


def test_a_cache_folder_that_cannot_be_made_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASYNCHEBB_CACHE", str(tmp_path / "file" / "cache"))
    folder = cpu.cache_folder.__wrapped__()
    (folder / "a file").write_text("")
    assert tmp_path not in folder.parents


def test_a_method_that_returns_too_little_is_refused():
    @dataclass(frozen=True)
    class Halved:
        eta: float = 0.1

        def leak_w(self, y_i):
            return 1.0

        def leak_m(self, y_i):
            return 1.0

        def rate(self, y_i, a_i):
            return self.eta

    with pytest.raises(ah.InputError, match=r"its method rate must end by returning eta_i, a_i"):
        ah.Network(rule=Halved())


@pytest.mark.slow
def test_what_one_program_has_compiled_another_can_use(tmp_path, own_cache):
    """The same rule, under other module names: in a file of its own, in a script, on the command line."""
    rule = textwrap.dedent("""
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Shared:
            eta: float = 0.1
            def leak_w(self, y_i):
                return y_i
            def leak_m(self, y_i):
                return 1.0
            def rate(self, y_i, a_i):
                return self.eta, a_i
    """)
    use = textwrap.dedent("""
        import numpy as np, asynchebb as ah
        network = ah.Network(n=30, m=4, rule=Shared())
        ah.advance(network, network.init(np.random.default_rng(0)), np.ones((2, 4)), hold=5)
    """)
    (tmp_path / "first.py").write_text(rule)
    (tmp_path / "second.py").write_text(rule)
    (tmp_path / "imports.py").write_text("from first import Shared\n" + use)
    (tmp_path / "script.py").write_text(rule + use)
    command = ["-c", "from asynchebb.cli import main; main()", "run", "--stimulus", "Crossbars(2)", "--n", "30"]
    command += ["--samples", "2", "--hold", "5", "--rule", "second.py:Shared()"]
    for arguments in (["imports.py"], command, ["script.py"]):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, env=own_cache)
        assert done.returncode == 0, done.stderr
        assert ("compiling Shared" in done.stderr) == (arguments == ["imports.py"])


def closed_over(h):
    @dataclass(frozen=True)
    class Closed:
        eta: float = 0.1

        def leak_w(self, y_i):
            return h

        def leak_m(self, y_i):
            return 1.0

        def rate(self, y_i, a_i):
            return self.eta, a_i

    return Closed()


def test_a_number_from_an_enclosing_function_is_refused():
    with pytest.raises(ah.InputError, match="leak_w uses `h`"):
        ah.Network(rule=closed_over(2.0))


def test_a_fingerprint_tells_floors_inherited_methods_and_names_apart():
    class Base:
        def leak_w(self, y_i):
            return y_i

    class OtherBase:
        def leak_w(self, y_i):
            return y_i * y_i

    def made(base, floor):
        return type("Rule", (base,), {"floor": floor})

    kinds = [made(Base, 0.0), made(Base, 0.5), made(OtherBase, 0.0), type("Named", (Base,), {"floor": 0.0})]
    assert len({equations.fingerprint(cls) for cls in kinds}) == 4
    assert equations.fingerprint(made(Base, 0.0)) == equations.fingerprint(made(Base, 0.0))


def test_constants_may_be_numpy_numbers():
    network = ah.Network(n=np.int64(8), m=4, rule=ah.Hebbian(np.float64(0.02)), dynamics=ah.Potential(np.float32(0.5)))
    assert repr(network.rule) == "Hebbian(eta=0.02)" and repr(network.dynamics) == "Potential(dt=0.5)"
    assert notation.parse("rule", repr(network.rule)) == network.rule
    assert notation.parse("dynamics", repr(network.dynamics)) == network.dynamics
    state = network.init(np.random.default_rng(0))
    for engine in ("cpu", "reference"):
        after, _ = ah.advance(network, state, np.ones((2, 4)), hold=3, engine=engine)
        assert after.u.dtype == after.y.dtype == after.W.dtype == np.float32
