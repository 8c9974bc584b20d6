"""The parameters that all estimators share: their defaults, their checks, and the network they define."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from asynchebb import engines, equations
from asynchebb.checks import (
    InputError,
    at_least,
    is_whole,
    non_negative,
    one_of,
    or_none,
    positive,
    real,
    shown,
    true_or_false,
)
from asynchebb.contracts import Dynamics, Rule, Schedule, Weights
from asynchebb.network import READINGS, Network

READING = READINGS["notebook"]  # supplies the value of a parameter that is None
VALUES = ("rule", "dynamics", "weights")  # values with fields of their own that a network is made of


def norm_or_positive(name: str, value: object) -> str | float | None:
    if value is None or (isinstance(value, str) and value == "norm"):
        return value
    try:
        return positive(name, value)
    except InputError:
        raise InputError(f'{name} is {shown(value)}; it must be "norm", a number above 0, or None') from None


def share(name: str, value: object) -> float:
    if not 0 < (number := real(name, value)) < 1:
        raise InputError(f"{name} is {number!r}; it must be a number above 0 and below 1")
    return number


def number_of_jobs(name: str, value: object) -> int | None:
    if value is not None and (not is_whole(value) or not 0 < abs(int(value)) < 2**31):
        raise InputError(f"{name} is {shown(value)}; it must be a number of threads, or −1 or None for all cores")
    return None if value is None else int(value)


def seed_or_none(name: str, value: Any) -> Any:
    try:
        check_random_state(value)
    except Exception:  # scikit-learn's, or one that comes while it shows the value
        raise InputError(
            f"{name} is {shown(value)}; it must be a whole number from 0 to 2³² − 1, a RandomState or None"
        ) from None
    return value


@dataclass(eq=False, repr=False)
class Parameters(BaseEstimator):
    """The parameters of the models, and the network they define once a schedule is added.

    Parameters
    ----------
    n_components : int or None, default=100
        Number of neurons; None: as many as the data have features.
    rule, dynamics, weights : default=None
        Values like `ah.Oja(eta=0.01)`, `ah.Projected()`, `ah.Gaussian()`, or your own; None: the model's default. Their
        constants can be set by themselves, in a search for instance: `rule__eta=0.02`.
    hold : int, default=500
        Euler steps per sample while the network learns.
    from_rest : bool, default=False
        Whether activity starts from rest at each sample during learning, or carries over from the previous one.
    settle : int, default=500
        Euler steps for which `transform` lets the network settle on each sample, from rest.
    max_iter : int, default=10
        Number of passes of `fit` through the data, each in a new random order; with `tol`, the largest number.
    tol : float or None, default=None
        If a number, `fit` holds out a share of the data, computes cos(x, Wᵀy) on it after each pass, which tells how
        well the fields fit, and stops once that has not risen by more than `tol` for `n_iter_no_change` passes.
    validation_fraction : float, default=0.1
        The share of the data that `fit` holds out if `tol` is a number.
    n_iter_no_change : int, default=2
        Passes without progress after which `fit` stops if `tol` is a number.
    warm_start : bool, default=False
        If True, `fit` continues from the weights and scale of the previous fit.
    scale : "norm", a number, or None, default="norm"
        Divisor for the data (`scale_`). "norm": the number that brings their root mean square norm to √27, that of
        the paper's stimuli; `fit` computes it from all data, `partial_fit` from the first batch that is not all zero.
        None: use the data unscaled.
    readout : bool, default=True
        Whether `inverse_transform` and `score` use a linear readout of the codes, found by least squares on a random
        sample of the data shown (4,096, or ten per neuron if that is more, and at most 128 MB), which the model keeps.
        False: they use the paper's Wᵀy, and no data are kept.
    learning : bool, default=True
        False: the weights are frozen while the activity still evolves.
    random_state : int, RandomState or None, default=None
        Seeds the initial weights and the order in which `fit` shows the data.
    verbose : bool, default=False
        Print a line per pass through the data.
    engine : "cpu", "gpu", "reference" or "auto", default="cpu"
    n_jobs : int or None, default=None
        Threads that encode; None or −1: one per core. Learning uses one, and all cores from 4,000 neurons on.

    `n_components`, `weights`, `scale` and `random_state` take effect when training starts; the others may be changed
    between calls to `partial_fit`.
    """

    n_components: int | None = 100
    _: KW_ONLY
    rule: Rule | None = None
    dynamics: Dynamics | None = None
    weights: Weights | None = None
    hold: int = 500
    from_rest: bool = False
    settle: int = 500
    max_iter: int = 10
    tol: float | None = None
    validation_fraction: float = 0.1
    n_iter_no_change: int = 2
    warm_start: bool = False
    scale: str | float | None = "norm"
    readout: bool = True
    learning: bool = True
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False
    engine: str = "cpu"
    n_jobs: int | None = None

    accepted: ClassVar[dict[str, Callable[[str, Any], Any]]] = {
        "n_components": or_none(at_least(1)),
        **dict.fromkeys(("hold", "settle", "max_iter", "n_iter_no_change"), at_least(1)),
        **dict.fromkeys(("from_rest", "warm_start", "readout", "learning"), true_or_false),
        "tol": or_none(non_negative),
        "validation_fraction": share,
        "scale": norm_or_positive,
        "engine": partial(one_of, accepted=engines.CHOICES),
        "n_jobs": number_of_jobs,
        "random_state": seed_or_none,
        "verbose": lambda name, value: value if isinstance(value, bool | np.bool) else at_least(0)(name, value),
    }
    model: ClassVar[str] = "asynchronous"  # the model that supplies the default rule
    values: ClassVar[dict[str, str]] = {kind: kind for kind in VALUES}  # all such parameters, and their kinds

    def schedule(self) -> Schedule:
        """The schedule, which determines when a neuron's weights may change."""
        raise NotImplementedError(f"{type(self).__name__} needs a method schedule(self) that returns its schedule")

    def make_network(self, n: int, m: int) -> Network:
        """The network defined by the parameters, with n neurons and m inputs."""
        network = Network(n, m, schedule=self.schedule(), **self._values())
        return network if self.learning else network.frozen()

    def _values(self) -> dict[str, Any]:
        """Rule, dynamics and weights: those given, or the defaults."""
        defaults = {"rule": getattr(READING, self.model), "dynamics": READING.dynamics, "weights": READING.weights}
        return {kind: defaults[kind] if getattr(self, kind) is None else getattr(self, kind) for kind in VALUES}

    def _checked_parameters(self) -> dict[str, Any]:
        """Those that have a check, as Python's own values; scikit-learn wants the attributes left as they are."""
        return {name: check(name, getattr(self, name)) for name, check in self.accepted.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters; if `deep`, also the constants of rule, dynamics and weights, as rule__eta."""
        found = super().get_params(deep=deep)
        for name, value in self._with_fields().items() if deep else ():
            found |= {f"{name}__{field}": constant for field, constant in equations.constants(value).items()}
        return found

    def _with_fields(self) -> dict[str, Any]:
        """All values with fields of their own: those given, or the defaults."""
        others = {name: getattr(self, name) for name in self.values if name not in VALUES}
        return self._values() | {name: value for name, value in others.items() if value is not None}

    def set_params(self, **params: Any) -> Parameters:
        """Set parameters. `rule__eta=0.02` replaces the rule by one with this constant; so for dynamics and weights."""
        nested = {name: params[name] for name in params if "__" in name and name.partition("__")[0] in self.values}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name, constant in nested.items():
            kind, _, field = name.partition("__")
            value: Any = self._with_fields().get(kind)
            known = equations.field_names(type(value))
            if field not in known:
                raise InputError(f"{name} is given, but {value!r} has no {field}; it has {', '.join(known) or 'none'}")
            setattr(self, kind, replace(value, **{field: constant}))
        return self
