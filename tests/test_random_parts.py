"""Dynamics, rules and schedules assembled at random from the arithmetic that is allowed: they are refused when a
network is made, or the cpu engine computes with them what the reference computes."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, event, example, given, settings
from hypothesis import strategies as st

import asynchebb as ah
from asynchebb import equations, notation
from asynchebb.engines import cpu

FIELDS = {"a": 0.3, "b": 2.0, "dt": 0.02}
STIMULUS = ah.Crossbars(4)
N, STIMULI, HOLD = 40, 3, 60
NUMBERS = ("0.0", "0.5", "1", "2.0", "self.a", "self.b")

_numbers = itertools.count()


def joined(template, *parts):
    return st.tuples(*parts).map(lambda found: template.format(*found))


def one_of_weighted(*choices):
    """The first are the likeliest."""
    return st.integers(0, 2 ** len(choices) - 2).flatmap(lambda k: choices[len(choices) - 1 - int(np.log2(k + 1))])


def reals(*names):
    """Real numbers made of these."""

    def larger(inner):
        truth = joined("({} {} {})", inner, st.sampled_from((">", "<", ">=", "<=", "!=")), inner)
        return st.one_of(
            joined("({} {} {})", inner, st.sampled_from("+-*"), inner),
            joined("({} / (1.0 + np.abs({})))", inner, inner),
            joined("(self.dt * {})", inner),
            joined("({} * {})", truth, inner),
            joined("np.{}({}, {})", st.sampled_from(("minimum", "maximum")), inner, inner),
            joined("np.{}({})", st.sampled_from(("abs", "tanh")), inner),
            joined("np.{}(np.{}({}, 3.0))", st.sampled_from(("exp", "sqrt", "log")), st.just("minimum"), inner),
            joined("({} ** {})", inner, st.sampled_from(("2", "0.5", "3.0", "-1.0", "self.b"))),
            joined("({} / {})", inner, inner),
            joined("(-{})", inner),
        )

    return st.recursive(st.sampled_from((*names, *names, *NUMBERS)), larger, max_leaves=4)


def wholes(*names):
    def larger(inner):
        truth = joined("({} {} {})", inner, st.sampled_from((">", "==", "<=")), inner)
        return st.one_of(
            joined("({} {} {})", inner, st.sampled_from("+-*"), inner),
            joined("({} * {})", truth, inner),
            joined("np.{}({}, {})", st.sampled_from(("minimum", "maximum")), inner, inner),
            joined("({} ** 2)", inner),
            joined("({} & {})", inner, inner),
            joined("np.abs({})", inner),
        )

    return st.recursive(st.sampled_from((*names, "0", "1", "7")), larger, max_leaves=4)


def truths(real, whole):
    one = st.one_of(
        joined("({} {} {})", real, st.sampled_from((">", "<")), real),
        joined("({} {} {})", whole, st.sampled_from((">", "<=", "==", "!=")), whole),
        joined("({} > {})", whole, real),
    )
    return st.recursive(one, lambda inner: joined("({} {} {})", inner, st.sampled_from("&|*"), inner), max_leaves=3)


def method(name, takes, *lines):
    return joined(f"    def {name}(self, {', '.join(takes)}):\n" + "".join(f"        {line}\n" for line, *_ in lines),
                  *(part for _, *parts in lines for part in parts))  # fmt: skip


# Some of them are additive, with some rates; others nearly.
INTEGRATED = (
    *("u_i + self.dt * drive_i", "np.maximum(u_i + self.dt * drive_i, 0.0)", "u_i + self.dt * np.tanh(drive_i)"),
    *("np.maximum(u_i + self.dt * drive_i, -self.b)", "np.minimum(u_i + self.dt * drive_i, self.b)"),
    *("u_i + self.dt * np.maximum(drive_i, 0.0)", "u_i + self.dt * (drive_i - u_i * (u_i > 0))"),
    *("u_i + self.dt * (drive_i - u_i * (u_i < -1))", "u_i + self.dt * drive_i * (drive_i > -9)"),
)
FROM_INTEGRATED = (
    *("u_i * (u_i > 0)", "np.maximum(u_i - 0.5, 0.0)", "np.minimum(np.maximum(u_i, 0.0), self.a)", "(u_i > 0.2) * 1"),
    *("np.tanh(np.maximum(u_i, 0.0))", "np.maximum(u_i, 0.0) ** 2", "np.sqrt(np.maximum(u_i, 0.0))", "np.abs(u_i)"),
    *(
        "np.maximum(drive_i, 0.0)",
        "np.maximum(u_i + 0.1, 0.0)",
        "np.maximum(u_i, 0.0) * (u_i < 1)",
        "u_i * (u_i > 0.1)",
    ),
)


@st.composite
def dynamics(draw):
    """A rate of what is integrated; one that it keeps itself; or a spike train."""
    kind = draw(st.sampled_from(("additive", "additive", "plain", "plain", "memory", "third", "spikes", "noisy")))
    if kind == "additive":
        moved, rate = st.sampled_from(INTEGRATED), st.sampled_from(FROM_INTEGRATED)
        return kind, draw(method("step", ("u_i", "drive_i"), ("u_i = {}", moved), ("return u_i, {}", rate)))
    if kind == "spikes":
        takes = ("u_i", "y_i", "drive_i")
        moved = one_of_weighted(st.just("u_i + self.dt * drive_i"), reals(*takes))
        return "decay" * draw(st.booleans()), draw(
            method(
                "step", takes, ("u_i = np.maximum({}, -0.5)", moved),
                ("s_i = (u_i > {}) * 1", st.sampled_from(NUMBERS)),
                ("u_i = u_i - self.a * (s_i > 0)",), ("y_i = {} * y_i", st.sampled_from(("0.9", "(1 - self.dt)"))),
                ("y_i = y_i * (y_i > 1e-30) + {} * (s_i > 0)", st.sampled_from(NUMBERS)), ("return u_i, y_i, s_i",),
            )
        )  # fmt: skip
    takes = {
        "memory": ("u_i", "y_i", "drive_i"),
        "third": ("u_i", "y_i", "h_i", "drive_i"),
        "noisy": ("u_i", "drive_i", "noise_i"),
    }.get(kind, ("u_i", "drive_i"))
    moved = one_of_weighted(
        st.just("u_i + self.dt * drive_i"),
        joined("u_i + self.dt * ({} - u_i)", reals(*takes)),
        joined("u_i + self.dt * {}", reals(*takes)),
        reals(*takes),
    )
    value = reals("u_i", *(takes[1:-1] if kind != "noisy" else ()))
    rate = one_of_weighted(
        st.just("u_i * (u_i > 0)"),
        joined("np.maximum({}, 0.0)", value),
        joined("np.minimum(np.maximum({}, 0.0), self.b)", value),
        joined("np.abs({})", value),
        value,
    )
    third = [("h_i = h_i + self.dt * {}", reals("h_i", "y_i", "drive_i"))] * (kind == "third")
    gives = "u_i, y_i, h_i" if third else "u_i, y_i"
    lines = [("u_i = {}", moved), ("y_i = {}", rate), *third, (f"return {gives}",)]
    return "", draw(method("step", takes, *lines))


@st.composite
def schedules(draw):
    real, whole = reals("y_i"), wholes("c_i", "k", "hold")
    opened = one_of_weighted(
        st.just("(y_i > 0.2) & (c_i > 5)"), truths(real, whole), joined("({} - {})", real, real), st.just("True")
    )
    count = one_of_weighted(st.just("(c_i + 1) * (beta_i == 0)"), whole, joined("({} * 1)", truths(real, whole)), real)
    return draw(method("gate", ("y_i", "c_i", "k", "hold"), ("beta_i = {}", opened), ("return beta_i, {}", count)))


@st.composite
def rules(draw):
    leak = one_of_weighted(st.just("y_i * y_i"), reals("y_i"), st.sampled_from(("0.0", "1.0")))
    eta = one_of_weighted(st.just("0.02"), joined("(0.05 * np.tanh({}))", reals("y_i", "a_i")), reals("y_i", "a_i"))
    account = one_of_weighted(
        st.just("a_i"), joined("a_i + 0.1 * ({} - a_i)", reals("y_i", "a_i")), reals("y_i", "a_i")
    )
    leaks = (draw(method(name, ("y_i",), ("return {}", leak))) for name in ("leak_w", "leak_m"))
    floor = draw(st.sampled_from(("0.0", "0.0", "0.01")))
    return floor, "".join(leaks) + draw(method("rate", ("y_i", "a_i"), ("return {}, {}", eta, account)))


def record(kind, body, folder, *members):
    """A value of a class with this body."""
    lines = ["from dataclasses import dataclass", "import numpy as np", "@dataclass(frozen=True)", "class Own:"]
    lines += [*(f"    {name}: float = {value}" for name, value in FIELDS.items()), *(f"    {one}" for one in members)]
    file = folder / f"own{next(_numbers)}.py"
    file.write_text("\n".join([*lines, body]))
    return notation.parse_named(kind, f"{file}:Own()")


def network_of(moves, opens, learns, folder):
    promise, step = moves
    members = {"additive": ["additive = True"], "decay": ["decay = 0.9"], "": []}[promise]
    floor, rule = learns
    return ah.Network(
        N, STIMULUS.m, record("dynamics", step, folder, *members), record("rule", rule, folder, f"floor = {floor}"),
        record("schedule", opens, folder), ah.Exponential(),
    )  # fmt: skip


X = STIMULUS.sample(np.random.default_rng(1), STIMULI)


def outcome(network, state, engine, from_rest, stimuli=X):
    with np.errstate(all="ignore"):
        try:
            return ah.advance(network, state, stimuli, HOLD, engine, ("updates", "burst"), from_rest)
        except ah.InputError as error:
            return str(error)


def sensitivity(network, state, from_rest, end):
    """How far from its end the network is if all its variables are off by a rounding error or so at each stimulus."""
    rng = np.random.default_rng(2)
    for x in X:
        off = {name: getattr(state, name) for name in ("W", "M", "u", "y")}
        off = {name: value * (1 + 1e-14 * rng.standard_normal(value.shape)) for name, value in off.items()}
        found = outcome(network, state._replace(**off), "reference", from_rest, x[None])
        if isinstance(found, str):
            return np.inf
        state, _ = found
    return largest_difference(state, end)


def largest_difference(one, other):
    """Of all their variables, relative to the largest number in each."""
    found = [0.0]
    for name in ah.State._fields:
        ours, theirs = (np.asarray(getattr(state, name), np.float64) for state in (one, other))
        scale = max(1.0, np.abs(theirs).max(initial=0.0))
        found.append(float(np.abs(ours - theirs).max(initial=0.0) / scale))
    return max(found)


def check(moves, opens, learns, from_rest, folder):
    try:
        network = network_of(moves, opens, learns, folder)
    except ah.InputError as error:
        event(f"refused: {str(error).partition(';')[0].rpartition('whose')[2][:30]}")
        return
    state = network.init(np.random.default_rng(0), np.float64)
    theirs = outcome(network, state, "reference", from_rest)
    ours = outcome(network, state, "cpu", from_rest)
    if isinstance(theirs, str) or isinstance(ours, str):  # a rate below 0
        assert isinstance(theirs, str) and isinstance(ours, str)
        event("refused by its rates")
        return
    if not (theirs[0].is_finite() and np.isfinite(theirs[0].a).all()):
        assert not (ours[0].is_finite() and np.isfinite(ours[0].a).all())
        event("diverged")
        return
    sensitive = sensitivity(network, state, from_rest, theirs[0])
    assume(sensitive < 1e-11)  # else a rounding error decides
    event("opened" if theirs[1]["burst"].any() else "never opened")
    takes, gives = equations.takes_and_gives("dynamics", "step", type(network.dynamics))
    event(f"compared: {moves[0]} {', '.join(takes)} to {', '.join(gives)}")
    assert largest_difference(ours[0], theirs[0]) < max(1e-9, 1e3 * sensitive)
    for name, trace in ours[1].items():
        assert np.array_equal(trace, theirs[1][name]), name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where parts are written and compiled, which no later process will need."""
    cpu.loop(np.dtype(np.float64), False)
    monkeypatch.setattr(cpu, "cache_folder", lambda: tmp_path)
    return tmp_path


ALL = bool(os.environ.get("ASYNCHEBB_ALL"))
RANDOM = settings(
    max_examples=60 if ALL else 3,
    deadline=None,
    derandomize=not ALL,
    phases=(Phase.explicit, Phase.generate),  # to shrink an example means to compile for minutes
    suppress_health_check=[*HealthCheck],
    print_blob=True,
)


def methods(**written):
    """Methods by name, each with what it takes and its lines."""
    return "".join(
        f"    def {name}(self, {takes}):\n" + "".join(f"        {line}\n" for line in lines)
        for name, (takes, *lines) in written.items()
    )


RULE = methods(
    leak_w=("y_i", "return y_i * y_i"),
    leak_m=("y_i", "return np.minimum(y_i, 1.0)"),
    rate=("y_i, a_i", "return 0.05 * np.tanh(a_i + 0.2), a_i + 0.1 * (y_i - a_i)"),
)


@RANDOM
@example(  # one number for all neurons
    moves=("", methods(step=("u_i, drive_i", "return u_i + self.dt * drive_i, 0.5"))),
    opens=methods(gate=("y_i, c_i, k, hold", "return True, y_i > 1")),
    learns=("0.0", RULE),
    from_rest=False,
)
@example(  # neurons that sleep, and gates that are numbers and count down
    moves=(
        "additive",
        methods(step=("u_i, drive_i", "u_i = u_i + self.dt * drive_i", "return u_i, u_i * (u_i > 0.1)")),
    ),
    opens=methods(gate=("y_i, c_i, k, hold", "return y_i * (c_i < 1), (c_i < 1) * 9 + np.maximum(c_i, 1) - 1")),
    learns=("0.0", RULE),
    from_rest=True,
)
@given(moves=dynamics(), opens=schedules(), learns=rules(), from_rest=st.booleans())
def test_parts_made_at_random_are_refused_or_give_the_same_numbers(moves, opens, learns, from_rest, folder):
    check(moves, opens, learns, from_rest, folder)
