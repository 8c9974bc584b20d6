"""Equations translated to C++, and those that cannot be."""

import ctypes
import inspect
import subprocess
from dataclasses import dataclass

import emulated
import numpy as np
import pytest

import asynchebb as ah
from asynchebb import equations, notation
from asynchebb.checks import InputError
from asynchebb.engines import gpu
from asynchebb.engines.gpu import translate

needs_compiler = emulated.needs_compiler
on_a_gpu = pytest.mark.gpu


@needs_compiler
def test_translated_equations_compute_what_the_python_ones_do(tmp_path):
    """All of the package's, on random numbers, to the last bit but for transcendental functions."""
    parts = ["#include <cmath>\nusing namespace std;\ntypedef double real;"]
    parts.append("#define DEVICE static inline\n#define MEMBER inline")
    parts.append(translate.FUNCTIONS)
    for kind, methods in equations.METHODS.items():
        for name, cls in notation.variants(kind).items():
            parts.append(f"namespace {name} {{\n{translate.functions(kind, cls)}}}\n")
            for method, form in methods.items():
                types = {
                    one: "long long" if one in translate.WHOLE_NUMBERS else "real" for one in translate_names(form)
                }
                takes = ", ".join(f"{types[one]} {one}" for one in form.all_taken)
                given = " ".join(f"{types[one]} out_{one};" for one in form.all_given)
                results = ", ".join(f"out_{one}" for one in form.all_given)
                copied = " ".join(f"out[{place}] = out_{one};" for place, one in enumerate(form.all_given))
                called = f"{name}::{method}(constants, {', '.join(form.all_taken)}, {results});"
                parts.append(
                    f'extern "C" void {name}_{method}(const real* constants, {takes}, double* out) '
                    f"{{ {given} {called} {copied} }}"
                )
    source, library = tmp_path / "equations.cpp", tmp_path / "equations.so"
    source.write_text("\n".join(parts))
    subprocess.run([emulated.COMPILER, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    compiled, rng, compared = ctypes.CDLL(str(library)), np.random.default_rng(0), 0
    for kind, methods in equations.METHODS.items():
        for name, cls in notation.variants(kind).items():
            record = cls()
            constants = np.array([*equations.constants(record).values(), 0.0])
            for method, form in methods.items():
                takes, gives = equations.takes_and_gives(kind, method, cls)
                for _ in range(100):
                    values = {one: random_value(rng, one) for one in form.all_taken}
                    out = (ctypes.c_double * 4)()
                    arguments = (
                        ctypes.c_longlong(value) if isinstance(value, int) else ctypes.c_double(value)
                        for value in values.values()
                    )
                    getattr(compiled, f"{name}_{method}")(ctypes.c_void_p(constants.ctypes.data), *arguments, out)
                    wanted = getattr(record, method)(*(values[one] for one in takes))
                    found = dict(zip(form.all_given, out, strict=False))
                    for one, value in zip(gives, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
                        assert found[one] == pytest.approx(float(value), rel=1e-15, abs=1e-15), (name, method, values)
                        compared += 1
    assert compared > 5_000


def translate_names(form):
    return {*form.all_taken, *form.all_given}


def random_value(rng, name):
    if name in translate.WHOLE_NUMBERS:
        return int(rng.integers(0, 300))
    if name == "noise_i":
        return float(rng.random())
    return float(abs(rng.normal())) + (name == "a_i") if name in ("y_i", "a_i") else float(rng.normal())


@dataclass(frozen=True)
class Saturating:
    """A rule of a user's own, with what the package's do not use: powers, np functions, truths as numbers."""

    eta: float = 0.01
    most: float = 2.0
    floor = 0.0

    def leak_w(self, y_i):
        return np.minimum(y_i, self.most) ** 2 / (1 + np.exp(-y_i))

    def leak_m(self, y_i):
        high = y_i > self.most
        return np.sqrt(np.abs(y_i)) * (high == 0) + np.tanh(y_i) * high

    def rate(self, y_i, a_i):
        a_i = a_i + np.log(1 + y_i)
        return self.eta / (1 + a_i), a_i


@dataclass(frozen=True)
class Trembling(ah.Potential):
    """Additive, and noisy."""

    def step(self, u_i, drive_i, noise_i):
        u_i = u_i + self.dt * (drive_i + noise_i - 0.5)
        return u_i, u_i * (u_i > 0)


@dataclass(frozen=True)
class EveryOther:
    """A schedule of a user's own: every other step for bursting neurons, and once in between for silent ones."""

    r_b: float = 0.3
    every: int = 7

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i > 1) | (c_i > self.every * 5)
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class Wrapping(ah.Asynchronous):
    """Its count starts again by itself."""

    def gate(self, y_i, c_i, k, hold):
        return (y_i > self.r_b) & (c_i > self.r_r), (c_i + 1) * (c_i < 50)


@dataclass(frozen=True)
class Saturated(ah.Asynchronous):
    """Its count ends somewhere."""

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i > self.r_b) & (c_i > self.r_r)
        return beta_i, np.minimum(c_i + 1, 100) * (beta_i == 0)


@dataclass(frozen=True)
class Powers(ah.Asynchronous):
    """Whole numbers have 64 bits, and so have their powers: of larger ones only the last bits remain."""

    def gate(self, y_i, c_i, k, hold):
        beta_i = (y_i**3 > self.r_b) & (c_i**2 > self.r_r) & (k**0 == hold**1 - hold + 1) & (k < 60_000 * 60_000)
        return beta_i, (c_i + 1) * (beta_i == 0)


@dataclass(frozen=True)
class TooLarge(ah.Hebbian):
    def leak_w(self, y_i):
        y_i = y_i + 1
        return y_i * 99999999999999999999


def test_an_equation_that_cannot_be_translated_names_the_line_and_the_construct():
    line = inspect.getsourcelines(TooLarge.leak_w)[1] + 2
    wanted = rf"TooLarge.leak_w has `9{{20}}` in line {line} \(Constant\), which cannot be translated for a GPU"
    with pytest.raises(InputError, match=wanted):
        translate.functions("rule", TooLarge)
    typed = type("Typed", (ah.Hebbian,), {"leak_m": eval("lambda self, y_i: 1.0")})
    with pytest.raises(InputError, match="Typed, whose method leak_m has no source"):
        translate.functions("rule", typed)


def test_how_long_silent_gates_are_certainly_closed():
    assert [gpu.quiet(one, 50) for one in (ah.Asynchronous(), ah.Asynchronous(r_b=0), ah.Frozen())] == [50, 50, 50]
    assert gpu.quiet(ah.Discrete(), 50) == 49 and gpu.quiet(ah.Continuous(), 50) == 0
    assert gpu.quiet(EveryOther(), 50) == 0 and gpu.quiet(Wrapping(), 50) == 0 and gpu.quiet(Saturated(), 50) == 0
