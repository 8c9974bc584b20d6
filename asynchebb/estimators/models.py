"""The paper's three models as estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from asynchebb.checks import InputError, non_negative, shown
from asynchebb.contracts import Schedule
from asynchebb.estimators.hebbian import HebbianNetwork
from asynchebb.estimators.parameters import Parameters
from asynchebb.estimators.silence import PATIENCE
from asynchebb.schedules import Asynchronous, Continuous, Discrete


def schedule_or_none(name: str, value: object) -> Any:
    if value is not None and not callable(getattr(value, "gate", None)):
        raise InputError(f"{name} is {shown(value)}; it must be a schedule, like ah.Bursts(), or None")
    return value


@dataclass(eq=False, repr=False)
class AsyncHebbian(HebbianNetwork):
    """The asynchronous network: each neuron learns when it bursts (y_i > r_b), then is refractory for r_r steps.

    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 100)
    >>> model = ah.AsyncHebbian(40, max_iter=1, hold=100, random_state=0)
    >>> model.fit_transform(X).shape
    (100, 40)
    >>> model.partial_fit(X[:1]).n_samples_seen_  # online, sample by sample
    101

    Parameters
    ----------
    r_b : number, default=1.0
        The rate above which a neuron bursts, for data divided by `scale_`.
    r_r : number, default=100
        Refractory period after an update, in Euler steps.
    bursts : default=None
        A schedule in the place of `ah.Asynchronous(r_b, r_r)`, like `ah.Bursts(spikes=3, window=20)` for spiking
        neurons; r_b and r_r are then not used. Its constants can be set by themselves: `bursts__window=30`.
    """

    _: KW_ONLY
    r_b: float = 1.0
    r_r: float = 100
    bursts: Schedule | None = None

    accepted: ClassVar = {
        **HebbianNetwork.accepted,
        "r_b": non_negative,
        "r_r": non_negative,
        "bursts": schedule_or_none,
    }
    values: ClassVar = {**HebbianNetwork.values, "bursts": "schedule"}

    def schedule(self) -> Schedule:
        return Asynchronous(self.r_b, self.r_r) if self.bursts is None else self.bursts

    def _patience(self) -> int:
        return PATIENCE + int(getattr(self.schedule(), "r_r", 0))  # neurons may be refractory

    def _how_to_burst(self) -> str:
        scale = "" if self.scale == "norm" else f", let scale='norm' rescale the data (now {self.scale!r})"
        threshold = f"r_b (now {self.r_b})" if self.bursts is None else f"the threshold of {self.bursts!r}"
        return f"Lower {threshold}{scale}, or show each sample longer (hold, now {self.hold})"


@dataclass(eq=False, repr=False)
class DiscreteHebbian(HebbianNetwork):
    """The discrete network: all neurons learn at the last step of each sample's hold.

    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 100)
    >>> ah.DiscreteHebbian(40, max_iter=1, hold=100, random_state=0).fit(X).components_.shape
    (40, 36)
    """

    model: ClassVar[str] = "discrete"

    def schedule(self) -> Schedule:
        return Discrete()


@dataclass(eq=False, repr=False)
class ContinuousHebbian(HebbianNetwork):
    """The continuous network: all neurons learn at every step, by Oja's rule at η = 0.001.

    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 100)
    >>> ah.ContinuousHebbian(40, max_iter=1, hold=100, random_state=0).fit(X).lateral_.shape
    (40, 40)
    """

    model: ClassVar[str] = "continuous"

    def schedule(self) -> Schedule:
        return Continuous()


MODELS = {"asynchronous": AsyncHebbian, "discrete": DiscreteHebbian, "continuous": ContinuousHebbian}

_HEADING = "    Parameters\n    ----------\n"
for _model in MODELS.values():  # their own parameters first, then those that all have, then the attributes
    _about, _, _own = (_model.__doc__ or "").partition(_HEADING)
    _common = (Parameters.__doc__ or "").partition(_HEADING)[2].rstrip()
    _attributes = "".join((HebbianNetwork.__doc__ or "").partition("    Attributes\n")[1:])
    _model.__doc__ = f"{_about.rstrip()}\n\n{_HEADING}{_own.rstrip(' ')}{_common}\n\n{_attributes}"
