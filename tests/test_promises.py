"""What engines rely on: a part that does not keep to it is refused when a network is made."""

from dataclasses import dataclass

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import equations, notation, promises

KINDS = {"rule": ah.Hebbian, "schedule": ah.Asynchronous, "dynamics": ah.Relaxing}


def own(kind, members, tmp_path):
    """A network with a part of one's own, which has these members besides those of one of the package's."""
    usual = f"ah.{KINDS[kind].__name__}"
    lines = [
        "from dataclasses import dataclass",
        "import numpy as np",
        "import asynchebb as ah",
        "@dataclass(frozen=True)",
    ]
    lines += [f"class Own({usual}):", *(f"    {line}" for line in members.splitlines()), ""]
    (tmp_path / "own.py").write_text("\n".join(lines))
    return ah.Network(n=4, m=4, **{kind: notation.parse_named(kind, f"{tmp_path}/own.py:Own()")})


ADDITIVE = "additive = True\ndef step(self, u_i, drive_i):\n    "
REFUSED = {
    # What is kept from step to step
    "a rate in c_i": ("schedule", "def gate(self, y_i, c_i, k, hold):\n    return y_i > c_i, y_i", "whole numbers"),
    "a field in c_i": (
        "schedule",
        "def gate(self, y_i, c_i, k, hold):\n    return y_i > 1, c_i + self.r_r",
        "whose gate gives a real number for c_i; c_i counts in whole numbers, so neither rates nor fields can be kept",
    ),
    "c_i divided": ("schedule", "def gate(self, y_i, c_i, k, hold):\n    return y_i > 1, c_i / 2", "whole numbers"),
    # Rates
    "a rate below 0": (
        "dynamics",
        "def step(self, u_i, drive_i):\n    u_i = u_i + self.dt * drive_i\n    return u_i, np.maximum(u_i, 0.2 * u_i)",
        r"whose step gives y_i = -\S+ for u_i = \S+, drive_i = \S+; rates are never below 0",
    ),
    "a rate that is not a number": (
        "dynamics",
        "def step(self, u_i, drive_i):\n    return u_i, np.sqrt(u_i + drive_i)",
        "whose step gives y_i = nan for .*; rates are never below 0",
    ),
    "u_i that is not a number": (
        "dynamics",
        "def step(self, u_i, drive_i):\n    u_i = np.log(u_i)\n    return u_i, 1.0",
        "whose step gives u_i = nan for .*; it must be a number",
    ),
    # What engines are told
    "additive, with a leak": (
        "dynamics",
        f"{ADDITIVE}u_i = u_i + self.dt * (drive_i - u_i * (u_i < -1))\n    return u_i, u_i * (u_i > 0)",
        r"whose additive is True, but from u_i = \S+, steps with the drives \S+ and \S+ are not one with",
    ),
    "additive, with a floor": (
        "dynamics",
        f"{ADDITIVE}u_i = np.maximum(u_i + self.dt * drive_i, -0.05)\n    return u_i, u_i * (u_i > 0)",
        "are not one with",
    ),
    "additive, but falling": (
        "dynamics",
        f"{ADDITIVE}return u_i, np.maximum(1 - drive_i, 0.0)",
        "whose additive is True, but a larger drive makes its y_i smaller",
    ),
    "additive, in words": ("dynamics", "additive = 'yes'", "Own.additive is 'yes'; it must be True or False"),
    "a floor below 0": ("rule", "floor = -0.1", "Own.floor is -0.1; it must be a number of at least 0"),
    "no floor": ("rule", "floor = None", "Own.floor is None; it must be a finite number"),
    "an endless floor": ("rule", "floor = np.inf", "Own.floor is inf; it must be a finite number"),
    "a text as a0": ("rule", "a0 = '1'", "Own.a0 is '1'; it must be a finite number"),
    "half a window": (
        "schedule",
        "window = 2.5\ndef gate(self, y_i, n_i, c_i, k, hold):\n    return n_i > 1, c_i",
        "Own.window is 2.5; it must be a whole number",
    ),
    # What rules give
    "a rate without end": (
        "rule",
        "def rate(self, y_i, a_i):\n    return self.eta / y_i, a_i",
        r"whose rate gives eta_i = inf for y_i = 0, a_i = 0; it must be finite",
    ),
    "a leak that is not a number": (
        "rule",
        "def leak_m(self, y_i):\n    return np.log(y_i) * y_i",
        "whose leak_m gives leak_m = nan for y_i = 0; it must be finite",
    ),
    # Fields
    "a truth": ("rule", "on: bool = True", "Own.on is True; it must be a finite number"),
    "nan": ("rule", "other: float = np.nan", "Own.other is nan; it must be a finite number"),
    "a huge number": ("rule", "other: int = 10**400", "Own.other is .*; it must be a finite number"),
    "a fraction": (
        "rule",
        "from fractions import Fraction\nother: float = Fraction(1, 3)",
        "must be an int or a float",
    ),
    "powers of fields": (
        "rule",
        "base: float = -2.0\ndef leak_w(self, y_i):\n    return y_i + np.abs(self.base ** 0.5)",
        "whose leak_w gives another leak_w if its fields are floating-point numbers",
    ),
    "division of fields": (
        "rule",
        "none: float = 0.0\ndef leak_w(self, y_i):\n    return y_i * (self.eta / self.none)",
        "whose leak_w fails: ZeroDivisionError: float division by zero",
    ),
    # What NumPy and a compiler take differently
    "exp of a truth": (
        "rule",
        "def leak_w(self, y_i):\n    return np.exp(y_i > 1)",
        r"leak_w uses `np.exp\(y_i > 1\)`",
    ),
    "minus a truth": ("rule", "def leak_w(self, y_i):\n    return -(y_i > 1)", r"leak_w uses `-\(y_i > 1\)`"),
    "a sum of products of truths": (
        "rule",
        "def leak_w(self, y_i):\n    both = (y_i > 1) * (y_i < 2)\n    return both + (y_i > 3)",
        r"leak_w uses `both \+ \(y_i > 3\)`",
    ),
    "a power of a truth": ("rule", "def leak_w(self, y_i):\n    return (y_i > 1) ** 2", r"uses `\(y_i > 1\) \*\* 2`"),
    "a large whole number": ("rule", "def leak_w(self, y_i):\n    return 2**70 * y_i", r"uses `2 \*\* 70`"),
    "an imaginary number": ("rule", "def leak_w(self, y_i):\n    return np.abs(1j * y_i)", "leak_w uses `1j`"),
    "text": ("rule", "def leak_w(self, y_i):\n    return 'y_i'", "leak_w uses `'y_i'`"),
    "1 / c_i as a power": (
        "schedule",
        "def gate(self, y_i, c_i, k, hold):\n    return c_i ** -1 > 0, c_i",
        r"gate uses `c_i \*\* \(?-1\)?`",
    ),
    "k as a power": (
        "schedule",
        "def gate(self, y_i, c_i, k, hold):\n    return y_i > 1, 2 ** (k - 5)",
        r"gate uses `2 \*\* \(k - 5\)`",
    ),
    "& of rates": ("schedule", "def gate(self, y_i, c_i, k, hold):\n    return y_i & 1, c_i", "gate uses `y_i & 1`"),
    "an assignment to a field": (
        "rule",
        "def rate(self, y_i, a_i):\n    self.eta = y_i\n    return self.eta, a_i",
        "rate uses `self.eta = y_i`",
    ),
    "a function as a value": (
        "rule",
        "def leak_w(self, y_i):\n    f = np.exp\n    return f(y_i)",
        "leak_w uses `np.exp`",
    ),
    "two returns": ("rule", "def leak_w(self, y_i):\n    return y_i\n    return 1.0", "leak_w uses `return y_i`"),
    "a decorated method": (
        "rule",
        "from functools import lru_cache\n@lru_cache\ndef leak_w(self, y_i):\n    return y_i",
        "leak_w is not a plain function",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_part_that_engines_would_run_differently_is_refused(name, tmp_path):
    kind, members, said = REFUSED[name]
    with pytest.raises(ah.InputError, match=said):
        own(kind, members, tmp_path)


ACCEPTED = {
    "a countdown": "def gate(self, y_i, c_i, k, hold):\n    return c_i < 1, (c_i < 1) * 9 + np.maximum(c_i, 1) - 1",
    "c_i as a truth": "def gate(self, y_i, c_i, k, hold):\n    return (y_i > 1) & (c_i == 0), y_i > 1",
    "c_i mixed with k": "def gate(self, y_i, c_i, k, hold):\n    return y_i > 1, np.minimum(np.abs(c_i - k), hold)",
    "β_i as a number": "def gate(self, y_i, c_i, k, hold):\n    return y_i - np.minimum(y_i, 0.5), c_i",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_gate_may_keep_whole_numbers_in_c_i(name, tmp_path):
    own("schedule", ACCEPTED[name], tmp_path)


def test_decay_is_tried_at_all_rates():
    @dataclass(frozen=True)
    class Quadratic(ah.IntegrateAndFire):
        """It falls as its decay says at y_i = 0.25, and only there."""

        def step(self, u_i, y_i, drive_i):
            s_i = (u_i + drive_i > self.theta) * 1
            return u_i + drive_i, y_i - y_i * y_i * 0.2 + (self.theta / self.tau) * (s_i > 0), s_i

    with pytest.raises(ah.InputError, match=r"whose decay is 0.95, but without a spike its step makes"):
        ah.Network(dynamics=Quadratic())


def test_what_equations_reach_counts_not_what_no_neuron_can_have():
    @dataclass(frozen=True)
    class Bounded:
        """A rate between 0 and 1, which would fall below 0 from far above 1."""

        dt: float = 0.005

        def step(self, u_i, y_i, drive_i):
            up = drive_i * (drive_i > 0)
            y_i = y_i + self.dt * ((1 - y_i) * np.minimum(up, 100.0) - y_i)
            return y_i, y_i

    assert Bounded().step(0.0, 5.0, 100.0)[1] > 0 > Bounded(0.02).step(0.0, 5.0, 100.0)[1]
    ah.Network(dynamics=Bounded())
    with pytest.raises(ah.InputError, match="rates are never below 0"):  # its steps overshoot
        ah.Network(dynamics=Bounded(0.02))


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        *((kind, cls()) for kind in equations.METHODS for cls in notation.variants(kind).values()),
        *(("dynamics", cls(dt)) for cls in (ah.Potential, ah.Projected) for dt in (1e-6, 0.3, 100.0)),
        *(("dynamics", ah.Relaxing(dt, 0.2)) for dt in (1e-6, 0.1999999, 0.2)),
        ("dynamics", ah.HomeostaticRelaxing(0.2, 0.2, 1.0, 0.2)),
        ("dynamics", ah.IntegrateAndFire(0.2, 3.0, 0.2)),
        ("dynamics", ah.EscapeNoise(0.2, 1e-3, 0.2, 1e-3, 1e6)),
        *(("rule", ah.Foldiak(eta, p)) for eta in (1e-9, 100.0) for p in (0, 3)),
        ("schedule", ah.Asynchronous(r_r=3e38)),
        ("schedule", ah.Bursts(1, 1, 0)),
    ],
    ids=repr,
)
def test_the_packages_own_parts_keep_their_promises(kind, record):
    promises.try_out(kind, record)
