"""What dynamics, rules and schedules promise, tried out on numbers when a network is made.

Engines rely on it and cannot tell it from the source: rates are never below 0, c_i is a whole number, `decay` and
`additive` are true. What is accepted here gives the same numbers on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from asynchebb import equations
from asynchebb.checks import InputError, at_least, non_negative, real, shown, true_or_false

SIZES = (0.01, 0.1, 1.0, 10.0, 100.0)  # of potentials and drives
RATES = np.array([0.0, *SIZES[:-1]])
NEURONS, STEPS = 300, 24  # that dynamics are tried with
LARGE = 1e6  # a variable beyond this begins again: it may overflow next, whatever the equation
MANY = 10_000  # records that are known to keep their promises

_kept: set[Any] = set()


def check(kind: str, record: Any) -> None:
    """Raise an error for a record that no engine can run, or that engines would run differently.

    The package's own keep their promises whatever their constants; those of others are tried once.
    """
    equations.check(kind, record)
    values = equations.constants(record).values()
    key = kind, type(record), tuple((type(value), value) for value in values)
    if key not in _kept and not type(record).__module__.startswith("asynchebb."):
        try_out(kind, record)
        if len(_kept) >= MANY:
            _kept.clear()
        _kept.add(key)


def try_out(kind: str, record: Any) -> None:
    """Raise an error for a record that does not keep a promise."""
    with np.errstate(all="ignore"):
        {"dynamics": _check_dynamics, "rule": _check_rule, "schedule": _check_schedule}[kind](record)


def _check_dynamics(dynamics: Any) -> None:
    """Simulate some neurons with drives of all sizes. What they reach counts, since an equation may need y_i ≤ 1."""
    rng, has_memory = np.random.default_rng(0), equations.has_memory(type(dynamics))
    size, bias = rng.choice(SIZES, NEURONS), rng.choice([-1, 0, 1], NEURONS)
    begin = {name: np.zeros(NEURONS) for name in ("u_i", "y_i", "h_i")}
    if not has_memory:
        begin["u_i"] = rng.standard_normal(NEURONS) * rng.choice([0, 1, 10], NEURONS)
    now = begin
    for _ in range(STEPS):
        drive = (rng.standard_normal(NEURONS) + bias) * size * (rng.random(NEURONS) > 0.2)
        given = now | {"drive_i": drive, "noise_i": rng.random(NEURONS)}
        after = _results("dynamics", "step", dynamics, given)
        for name, value in after.items():
            if (bad := np.isnan(value) | ((value < 0) & (name == "y_i"))).any():
                accepted = "rates are never below 0" if name == "y_i" else "it must be a number"
                raise _fault("dynamics", "step", dynamics, given, after, name, bad, accepted)
        if equations.spikes(dynamics):
            _check_decay(dynamics, given, after)
        now = {name: after.get(name, now[name]) for name in now}
        kept = np.all([np.abs(value) < LARGE for value in now.values()], axis=0)
        now = {name: np.where(kept, now[name], begin[name]) for name in now}
    if equations.spikes(dynamics):
        given = dict.fromkeys(("u_i", "h_i", "drive_i"), np.zeros(len(RATES))) | {"y_i": RATES, "noise_i": 1 - 2.0**-24}
        _check_decay(dynamics, given, _results("dynamics", "step", dynamics, given))
    if true_or_false(f"{type(dynamics).__name__}.additive", getattr(dynamics, "additive", False)) and not has_memory:
        _check_additive(dynamics)


def _check_decay(dynamics: Any, given: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> None:
    """Does y_i fall by this factor where there is no spike?"""
    decay = getattr(dynamics, "decay", None)
    if decay is None:
        return
    real(f"{type(dynamics).__name__}.decay", decay)
    wrong = ~(after["s_i"] > 0) & (np.abs(after["y_i"] - decay * given["y_i"]) > 1e-6 * given["y_i"] + 1e-30)
    if wrong.any():
        before, then = given["y_i"][wrong][0], after["y_i"][wrong][0]
        raise InputError(
            f"dynamics is {shown(dynamics)}, whose decay is {decay:g}, but without a spike its step makes {then:g} of "
            f"y_i = {before:g}; they must be the same (or there must be no decay)"
        )


def _check_additive(dynamics: Any) -> None:
    """Are silent steps of a neuron at rest one with the summed drive, and do u_i and y_i grow with the drive?"""
    positive = np.array([*SIZES, 1e3, 1e4])
    values = np.array([*-positive[::-1], 0, *positive])
    u, first, second = (axis.ravel() for axis in np.meshgrid(values, values, values, indexing="ij"))

    def step(u_i: np.ndarray, drive_i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = _results("dynamics", "step", dynamics, {"u_i": u_i, "drive_i": drive_i})
        return found["u_i"], found["y_i"]

    def refuse(what: str) -> None:
        raise InputError(f"dynamics is {shown(dynamics)}, whose additive is True, but {what}; it must be left out")

    start, drive = (axis.ravel() for axis in np.meshgrid(values, values, indexing="ij"))
    for name, moved in zip(("u_i", "y_i"), step(start, drive), strict=True):
        rows = moved.reshape(len(values), -1)
        if (np.diff(rows, axis=1) < -1e-9 * np.abs(rows[:, 1:])).any():
            refuse(f"a larger drive makes its {name} smaller")
    still, silent = step(u, np.zeros_like(u))
    rests = (still == u) & (silent <= 0)
    then, y_first = step(u, first)
    end, y_second = step(then, second)
    at_once, y_at_once = step(u, first + second)
    both = rests & (y_first <= 0) & (y_second <= 0)
    differs = np.abs(end - at_once) > 1e-9 * (np.abs(end) + np.abs(at_once) + np.abs(then))
    wakes = rests & (y_at_once <= 0) & (first >= 0) & (second >= 0) & ((y_first > 0) | (y_second > 0))
    if (wrong := both & (differs | (y_at_once > 0)) | wakes).any():
        at, one, other = (axis[wrong][0] for axis in (u, first, second))
        refuse(f"from u_i = {at:g}, steps with the drives {one:g} and {other:g} are not one with {one + other:g}")


def _check_rule(rule: Any) -> None:
    non_negative(f"{type(rule).__name__}.floor", getattr(rule, "floor", 0.0))
    rng = np.random.default_rng(0)
    begin = np.full(NEURONS, real(f"{type(rule).__name__}.a0", getattr(rule, "a0", 0.0)), np.float64)
    a = begin
    for _ in range(STEPS):
        given = {"y_i": rng.choice(RATES, NEURONS) * rng.choice([1.0, 0.5], NEURONS), "a_i": a}
        for method in equations.METHODS["rule"]:
            after = _results("rule", method, rule, given)
            for name, value in after.items():
                if (bad := ~np.isfinite(value)).any():
                    raise _fault("rule", method, rule, given, after, name, bad, "it must be finite")
            a = after.get("a_i", a)
        a = np.where(np.abs(a) < LARGE, a, begin)


def _check_schedule(schedule: Any) -> None:
    window = 0
    if "n_i" in equations.takes_and_gives("schedule", "gate", schedule.__class__)[0]:
        if not hasattr(schedule, "window"):
            raise InputError(
                f"schedule is {shown(schedule)}; its gate takes n_i, so it must have a window: a number of steps"
            )
        window = at_least(1)(f"{type(schedule).__name__}.window", schedule.window)
    rng = np.random.default_rng(0)
    c = rng.choice([-100, -1, 0, 1, 2, 50, 100, 101, 10_000, 2**40], NEURONS)
    given = {"y_i": rng.choice(RATES, NEURONS), "n_i": rng.integers(0, window + 1, NEURONS), "c_i": c}
    for k, hold in ((0, 1), (0, 2), (1, 2), (249, 500), (250, 500), (499, 500)):
        after = _results("schedule", "gate", schedule, given | {"k": np.int64(k), "hold": np.int64(hold)})
        if after["c_i"].dtype.kind == "f":
            raise InputError(
                f"schedule is {shown(schedule)}, whose gate gives a real number for c_i; c_i counts in whole numbers, "
                "so neither rates nor fields can be kept in it"
            )


def _results(kind: str, method: str, record: Any, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What an equation gives, by name: the same with the fields as they are and as compiled code has them."""
    takes, gives = equations.takes_and_gives(kind, method, record.__class__)
    function: Callable[..., Any] = getattr(type(record), method)
    compiled = SimpleNamespace(**{name: np.float64(value) for name, value in equations.constants(record).items()})
    shape, found = np.shape(given[takes[0]]), []
    for own in (compiled, record):
        try:
            result = function(own, *(given[name] for name in takes))
            values = [np.asarray(value) for value in (result if isinstance(result, tuple) else (result,))]
            by_name = {name: np.broadcast_to(value, shape) for name, value in zip(gives, values, strict=True)}
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise InputError(f"{kind} is {shown(record)}, whose {method} fails: {what}") from error
        for name, value in by_name.items():
            if value.dtype.kind not in "biuf":
                raise InputError(
                    f"{kind} is {shown(record)}, whose {method} gives {name} as {value.dtype}; it must be a real number"
                )
        found.append(by_name)
    for name, value in found[0].items():
        other = found[1][name]
        if not np.array_equal(value, other) and not np.allclose(value, other, rtol=1e-9, atol=0, equal_nan=True):
            raise InputError(
                f"{kind} is {shown(record)}, whose {method} gives another {name} if its fields are floating-point "
                "numbers, as they are in compiled code; a power of a negative number is one such case"
            )
    return found[0]


def _fault(
    kind: str,
    method: str,
    record: Any,
    given: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray],
    name: str,
    bad: np.ndarray,
    accepted: str,
) -> InputError:
    takes, _ = equations.takes_and_gives(kind, method, record.__class__)
    first = int(np.flatnonzero(bad)[0])
    at = ", ".join(f"{one} = {given[one][first]:g}" for one in takes)
    return InputError(
        f"{kind} is {shown(record)}, whose {method} gives {name} = {after[name][first]:g} for {at}; {accepted}"
    )
