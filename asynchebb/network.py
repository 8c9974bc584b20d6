"""Networks as values, their state as plain arrays, and the paper's three models as presets under two readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from asynchebb import checks, equations, promises
from asynchebb.checks import InputError, at_least, one_of, shown
from asynchebb.contracts import Dynamics, Rule, Schedule, Weights
from asynchebb.dynamics import Potential, Projected
from asynchebb.rules import Hebbian, Oja
from asynchebb.schedules import Asynchronous, Continuous, Discrete
from asynchebb.weights import Exponential, Gaussian

# Steps since the last update for a neuron that has never updated: longer than any refractory period.
NEVER_UPDATED = 2**40

# choice: a silent neuron's weights may decay geometrically forever. Once its largest weight is this
# small, the row no longer shrinks, so that its direction survives in float32 (whose smallest normal
# number is 2⁻¹²⁶) and no denormal numbers slow down the arithmetic.
VANISHING = 2.0**-100

# The numbers from which a network with noise may start to count its steps: they choose its random numbers (`noise.py`).
RANDOM_STARTS = 2**40


class State(NamedTuple):
    """All variables that change while a network runs. Row i of W and M belongs to the postsynaptic neuron i.

    >>> state = ah.asynchronous(n=50, m=36).init(np.random.default_rng(0))
    >>> state.W.shape, state.M.shape, state.y.shape
    ((50, 36), (50, 50), (50,))
    >>> silenced = state._replace(y=np.zeros_like(state.y))
    >>> isinstance(silenced, ah.State)
    True
    """

    W: np.ndarray  # (n, m) feed-forward weights
    M: np.ndarray  # (n, n) lateral weights, stored by presynaptic column (Fortran order)
    u: np.ndarray  # (n,) the variable that the dynamics integrate: a potential, or the rate itself
    y: np.ndarray  # (n,) rates
    c: np.ndarray  # (n,) steps since the last update
    a: np.ndarray  # (n,) activity accumulated by the rule
    # Empty where the network does not need them:
    h: np.ndarray = np.empty(0, np.float32)  # (n,) the third variable of dynamics that have one
    recent: np.ndarray = np.empty((0, 0), np.uint8)  # (window, n) the last spikes: those of step t in row t mod window
    t: np.ndarray = np.array(0)  # () steps so far; with noise, counted from a random number

    def _repr_html_(self) -> str:
        from asynchebb import thumbnails

        return thumbnails.state(self)

    def copy(self) -> State:
        return State(*(array.copy(order="K") for array in self))

    def is_finite(self) -> bool:
        # A sum is not finite if any term is not, and needs no boolean array of the size of M.
        return all(np.isfinite(array.sum(dtype=np.float64)) for array in (self.W, self.M, self.u, self.y))


for _default in State._field_defaults.values():  # all states share them
    _default.flags.writeable = False


class Reading(NamedTuple):
    """One way to settle, for all three models, what the paper leaves open or states in two ways (docs/choices.md).

    >>> reading = ah.READINGS["paper"]._replace(r_b=1.0)
    >>> isinstance(reading, ah.Reading)
    True
    >>> reading.network("asynchronous", n=50, m=36).schedule
    Asynchronous(r_b=1.0, r_r=100)
    """

    dynamics: Dynamics
    weights: Weights
    from_rest: bool  # whether activity starts from rest at each stimulus or carries over
    asynchronous: Rule  # each model's rule
    continuous: Rule
    discrete: Rule
    r_b: float = 1.0
    r_r: float = 100
    hold: int = 500

    def network(self, model: str, n: int, m: int, **changes: Any) -> Network:
        """One of the three models under this reading."""
        for name in changes:
            if name not in (accepted := Network.__dataclass_fields__):
                hint = f" (set schedule=ah.Asynchronous({name}=…))" if name in ("r_b", "r_r") else ""
                raise InputError(f"{name} is given; a network has {', '.join(accepted)}{hint}")
        schedules = dict(asynchronous=Asynchronous(self.r_b, self.r_r), continuous=Continuous(), discrete=Discrete())
        parts = dict(dynamics=self.dynamics, weights=self.weights, rule=getattr(self, model), schedule=schedules[model])
        return Network(n, m, **{**parts, **changes})


# choice: "paper" is the reading under which most of the paper's results hold with a single setting; "notebook" is that
# of the authors' public code.
READINGS = {
    "paper": Reading(
        dynamics=Projected(),
        weights=Gaussian(scale=0.2, shrinks_from=500),
        from_rest=True,
        asynchronous=Oja(
            0.002
        ),  # about four updates per presentation, which add up to the discrete network's single one
        continuous=Oja(0.001),
        discrete=Oja(0.01),
        r_b=0.75,
    ),
    "notebook": Reading(
        dynamics=Potential(),
        weights=Exponential(),
        from_rest=False,
        asynchronous=Hebbian(0.01),
        continuous=Oja(0.001),
        discrete=Hebbian(0.01),
    ),
}
"""The readings of the presets, by name: "paper", under which most of the paper's results hold, and "notebook".

>>> [*ah.READINGS]
['paper', 'notebook']
>>> ah.READINGS["notebook"].discrete
Hebbian(eta=0.01)
"""
_USUAL = READINGS["paper"]
_NEVER = Asynchronous(r_r=3e38)  # a refractory period longer than any run
_USUAL_SCHEDULE = Asynchronous(_USUAL.r_b, _USUAL.r_r)


@dataclass(frozen=True)
class Network:
    """A network of n neurons with m inputs: its equations and parameters, without its state.

    >>> network = ah.Network(n=50, m=36, rule=ah.Hebbian(), schedule=ah.Discrete())
    >>> state = network.init(np.random.default_rng(0), dtype=np.float64)
    >>> network.frozen().n  # the same network, which no longer learns
    50
    """

    n: int = 500
    m: int = 196
    dynamics: Dynamics = _USUAL.dynamics
    rule: Rule = _USUAL.asynchronous
    schedule: Schedule = _USUAL_SCHEDULE
    weights: Weights = _USUAL.weights

    def __post_init__(self) -> None:
        for name in ("n", "m"):
            object.__setattr__(self, name, at_least(1)(name, getattr(self, name)))
        for kind in equations.METHODS:
            promises.check(kind, getattr(self, kind))
        if not hasattr(self.weights, "draw") or isinstance(self.weights, type):
            raise InputError(f"weights is {shown(self.weights)}; it must be a value with a method draw(rng, shape, n)")
        checks.frozen("weights", self.weights)
        if equations.window(self.schedule) and not equations.spikes(self.dynamics):
            raise InputError(
                f"schedule is {self.schedule!r}, which counts spikes, but dynamics is {self.dynamics!r}, which has "
                "none; it must be that of spiking neurons, like ah.IntegrateAndFire()"
            )

    def _repr_html_(self) -> str:
        from asynchebb import thumbnails

        return thumbnails.network(self)

    def init(self, rng: np.random.Generator, dtype: Any = np.float32) -> State:
        """Draw W, M and u; y follows from u by one step of the dynamics without drive."""
        dtype = float_type(dtype)
        if not isinstance(rng, np.random.Generator):
            raise InputError(f"rng is {shown(rng)}; it must be a generator: np.random.default_rng(seed)")
        self._ask_for_memory(dtype.itemsize)
        W = self._draw(rng, np.empty((self.n, self.m), dtype))
        M = self._draw(rng, np.empty((self.n, self.n), dtype, order="F"))
        zeros = np.zeros(self.n, dtype)
        # choice: spiking neurons start from rest. A potential of standard normal size would be many spikes.
        u, y = (
            self.rest(dtype)
            if equations.has_memory(type(self.dynamics))
            else self.dynamics.step(rng.standard_normal(self.n).astype(dtype), zeros)
        )
        c = np.full(self.n, NEVER_UPDATED, np.int64)
        a = np.full(self.n, getattr(self.rule, "a0", 0.0), dtype)
        t = rng.integers(RANDOM_STARTS) if equations.noisy(self.dynamics) else 0
        u, y = (np.full(self.n, value, dtype) for value in (u, y))
        return self.complete(State(W, M, u, y, c, a, t=np.array(t)))

    def _ask_for_memory(self, itemsize: int) -> None:
        """Refuse a network that does not fit; simulations copy its weights."""
        n, m, window = float(self.n), self.m, equations.window(self.schedule)
        needed = {("n", self.n): itemsize * n * n, ("m", m): itemsize * n * m, ("window", window): window * n}
        checks.memory(*max(needed, key=lambda one: needed[one]), 2 * sum(needed.values()))

    def rest(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """u and y at rest: 0, or what the dynamics make of 0 without drive."""
        u, y = np.zeros((2, self.n), dtype)
        if not equations.has_memory(type(self.dynamics)):
            u, y = (np.full(self.n, value, dtype) for value in self.dynamics.step(u, y))
        return u, y

    def complete(self, state: State) -> State:
        """The state with whatever this network needs besides what it has: another network may have needed less."""
        h, recent, t = state.h, state.recent, np.asarray(state.t)
        if h.size and h.shape != (self.n,):
            raise InputError(f"state.h has shape {h.shape}; it must be empty or ({self.n},)")
        if recent.size and recent.shape[1:] != (self.n,):
            raise InputError(f"state.recent has shape {recent.shape}; it must be empty or (window, {self.n})")
        if equations.has_third_variable(self.dynamics) and not h.size:
            h = np.zeros(self.n, np.asarray(state.u).dtype)
        window = equations.window(self.schedule)
        if recent.shape != (window, self.n):
            recent = np.zeros((window, self.n), np.uint8)
        return state._replace(h=h, recent=recent, t=t if t.flags.writeable else t.copy())

    def frozen(self) -> Network:
        """The same network without learning: it is always refractory, so its rule is never applied.

        It does not use the schedule Frozen, so that testing an asynchronous network needs no extra compilation.
        """
        return replace(self, schedule=_NEVER, rule=Hebbian())

    def _draw(self, rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
        # One block of rows at a time: the draws are float64, and drawing all of M at once would take twice its size.
        rows = max(1, 2**20 // weights.shape[1])
        for i in range(0, self.n, rows):
            block, name = weights[i : i + rows], f"{type(self.weights).__name__}.draw"
            drawn = checks.array(name, self.weights.draw(rng, block.shape, self.n), str(block.shape))
            if drawn.shape != block.shape:
                raise InputError(f"{name} has shape {drawn.shape}; it must be {block.shape}")
            block[:] = drawn
            checks.weights(name, block)
            if not np.isfinite(block.max()):
                raise InputError(f"{name} has weights that are not finite in {block.dtype}")
        return weights


def float_type(dtype: Any) -> np.dtype:
    try:
        if isinstance(dtype, str | type | np.dtype) and np.dtype(dtype) in (np.float32, np.float64):
            return np.dtype(dtype)
    except Exception:  # NumPy evaluates texts as literals
        pass
    raise InputError(f"dtype is {shown(dtype)}; it must be float32 or float64")


def asynchronous(n: int = 500, m: int = 196, reading: str = "paper", **changes: Any) -> Network:
    """Each neuron learns when it bursts, then is refractory (App. C): the paper's proposal.

    >>> ah.asynchronous(n=50, m=36).schedule
    Asynchronous(r_b=0.75, r_r=100)
    >>> ah.asynchronous(n=50, m=36, reading="notebook").dynamics
    Potential(dt=0.01)
    """
    return _preset("asynchronous", n, m, reading, changes)


def continuous(n: int = 500, m: int = 196, reading: str = "paper", **changes: Any) -> Network:
    """All neurons learn at every step (App. B).

    >>> ah.continuous(n=50, m=36).rule
    Oja(eta=0.001)
    """
    return _preset("continuous", n, m, reading, changes)


def discrete(n: int = 500, m: int = 196, reading: str = "paper", **changes: Any) -> Network:
    """All neurons learn once the dynamics have settled (main text, App. A): the classic model.

    >>> ah.discrete(n=50, m=36, rule=ah.Foldiak(p=0.1)).rule
    Foldiak(eta=0.01, p=0.1)
    """
    return _preset("discrete", n, m, reading, changes)


def _preset(model: str, n: int, m: int, reading: str, changes: dict[str, Any]) -> Network:
    one_of("reading", reading, READINGS)
    return READINGS[reading].network(model, n, m, **changes)


MODELS = {model.__name__: model for model in (asynchronous, continuous, discrete)}
