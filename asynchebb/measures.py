"""The measures of a network, each declared once: files, sweeps, tables, plots and `asynchebb list` read them from here.

A measure is a pure function with a name. Its parameters say what it needs, out of NEEDS:

    @ah.measure("contrast of the fields", better="more")
    def contrast(W):
        return W.std() / W.mean()

Give it to a probe, `ah.Probe(stimulus, measures=(*ah.USUAL, contrast))`, and it is recorded at every
snapshot like the package's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from asynchebb import metrics, sources
from asynchebb.checks import InputError, function, instance, is_list, one_of, or_none, shown, true_or_false
from asynchebb.contracts import MeasureFunction

# What a measure may ask for, as names of its parameters. It is left out where one of them is missing.
NEEDS = {
    "errors": "(stimuli, steps): 1 − cos(x, Wᵀy) at each step of the test",
    "rates": "(stimuli, neurons): rates at the end of each presentation of the test",
    "mean_rates": "(neurons): rates, mean over the test",
    "active": "neurons with a rate above 0, mean over the steps of the test",
    "X": "(stimuli, pixels): what the test shows",
    "W": "(neurons, pixels): feed-forward weights",
    "M": "(neurons, neurons): lateral weights",
    "stimulus": "the set of stimuli",
    "factors": "(factors, pixels): the parts that the stimuli are made of, where they are known",
    "fields": "how many fields show one factor, a pair or neither, and how many factors are shown (`metrics.Fields`)",
    "other_W": "(neurons, pixels): feed-forward weights of a second network",
    "codes": "(samples, neurons): a model's codes of the data X",
    "reconstructed": "(samples, pixels): what the model makes of its codes",
}
# What follows from others of them; it is computed once for all measures that ask for it.
DERIVED: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {"fields": (("W", "factors"), metrics.count_fields)}
BETTER = ("less", "more", "")


@dataclass(frozen=True)
class Measure:
    """What is measured of a network: a pure function, and how to speak of its result.

    >>> ah.MEASURES["gini"].label, ah.MEASURES["gini"].needs
    ('Gini coefficient of the mean activity', ('mean_rates',))
    >>> isinstance(ah.MEASURES["gini"], ah.Measure)
    True
    """

    name: str
    label: str
    function: MeasureFunction | None  # None of what cannot be computed afterwards, such as a time
    better: str = ""  # "less" or "more", where one can say
    unit: str = ""  # or the range: "0 to 1"
    per_neuron: bool = False  # one number for each neuron, not one in all
    meaning: str = ""  # what exactly is measured, where the label does not say; the function's docstring

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise InputError(f"Measure.name is {shown(self.name)}; it must be a name like contrast")
        one_of("Measure.better", self.better, BETTER)
        or_none(function)("Measure.function", self.function)
        for name in ("label", "unit", "meaning"):
            instance(f"Measure.{name}", getattr(self, name), str)
        true_or_false("Measure.per_neuron", self.per_neuron)
        for need in self.needs:
            if need not in NEEDS:
                raise InputError(f"the measure {self.name} needs {need!r}; it may need {', '.join(NEEDS)}")

    @cached_property
    def needs(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters) if self.function else ()

    def missing(self, known: Mapping[str, Any]) -> list[str]:
        """What it cannot be computed without."""
        given = [one for need in self.needs for one in (DERIVED[need][0] if need in DERIVED else (need,))]
        return [need for need in given if need not in known]

    @property
    def is_own(self) -> bool:
        """Is it the package's own?"""
        return MEASURES.get(self.name) is self

    @property
    def digest(self) -> str:
        """Identifies the measure: the package's by its name, a user's by its source as well."""
        if self.is_own or self.function is None:
            return self.name
        return f"{self.name} {sources.digest(self.function)}"

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self.function(*values, **named) if self.function else None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        if self.is_own:
            return _package_measure, (self.name,)
        return Measure, tuple(getattr(self, field.name) for field in fields(self))

    def of(self, known: dict[str, Any]) -> float | np.ndarray | None:
        """Its value, given what is known by the names in NEEDS; None where something is missing.

        What it derives is added to what is known, for the next measure.
        """
        if self.function is None or self.missing(known):
            return None
        for need in self.needs:
            if need not in known:
                sources, derive = DERIVED[need]
                known[need] = derive(*(known[source] for source in sources))
        value = np.asarray(self.function(**{need: known[need] for need in self.needs}))
        wanted = np.shape(known["mean_rates"]) if self.per_neuron else ()
        if value.shape != wanted or value.dtype.kind not in "iufb":
            raise InputError(
                f"the measure {self.name} gave an array of shape {value.shape} and type {value.dtype}; it must give "
                + ("one number per neuron" if self.per_neuron else "one number")
            )
        return value if self.per_neuron else value.item()


def measure(label: str = "", better: str = "", unit: str = "", per_neuron: bool = False) -> Callable[..., Measure]:
    """Make a function a measure, which is called as it is; without a label, by the first line of its docstring.

    >>> @ah.measure("contrast of the fields", better="more")
    ... def contrast(W):
    ...     return W.std() / W.mean()
    >>> float(contrast(np.array([[1.0, 3.0]])))
    0.5
    >>> probe = ah.Probe(ah.Crossbars(6), measures=(*ah.USUAL, contrast))
    """

    instance("label", label, str)  # or it is the function, if `measure` was not called

    def made(function: Callable[..., Any]) -> Measure:
        documented = inspect.getdoc(function) or ""
        said = label or (documented or function.__name__).splitlines()[0].rstrip(".")
        return Measure(function.__name__, said, function, better, unit, per_neuron, " ".join(documented.split()))

    return made


# At each snapshot of a run


@measure("reconstruction error, mean over the test", better="less", unit="0 to 1")
def error(errors):
    return errors.mean()


@measure("reconstruction error at the last step of each test stimulus", better="less", unit="0 to 1")
def error_last(errors):
    return errors[:, -1].mean()


@measure("standard deviation of the error over the test's stimuli", unit="0 to 1")
def error_sd(errors):
    return errors.mean(axis=1).std()


@measure("Gini coefficient of the mean activity", unit="0 to 1")
def gini(mean_rates):
    return metrics.gini(mean_rates)


@measure("neurons with a rate above 0, mean over the test", unit="neurons")
def active_neurons(active):
    return active


@measure("rate, mean over the test", per_neuron=True)
def mean_activity(mean_rates):
    return mean_rates


USUAL = (error, error_last, error_sd, gini, active_neurons, mean_activity)
"""The measures that a probe records unless told otherwise.

>>> ah.USUAL
(error, error_last, error_sd, gini, active_neurons, mean_activity)
"""


# At the end of a run


@measure("Hoyer sparseness", unit="0 to 1")
def hoyer(mean_rates):
    return metrics.hoyer(mean_rates)


@measure("Treves–Rolls sparseness", unit="0 to 1")
def treves_rolls(mean_rates):
    return metrics.treves_rolls(mean_rates)


@measure("silent neurons", better="less", unit="neurons")
def silent_neurons(mean_rates):
    return metrics.dead_units(mean_rates)


@measure("duplicate fields", better="less", unit="neurons")
def duplicate_fields(W):
    return metrics.duplicate_units(W)


@measure("fields of a single factor", better="more", unit="neurons")
def single_fields(fields):
    return fields.single


@measure("fields of a pair of factors", unit="neurons")
def mixed_fields(fields):
    return fields.mixed


@measure("unstructured fields", unit="neurons")
def unstructured_fields(fields):
    return fields.unstructured


@measure("factors found", better="more", unit="factors")
def factors_found(fields):
    return fields.distinct


@measure("factor recovery, mean cosine", better="more", unit="0 to 1")
def factor_recovery(W, factors):
    return metrics.factor_recovery(W, factors).mean()


# Of a model's codes


@measure("reconstruction error", better="less", unit="0 to 1")
def code_error(X, reconstructed):
    """1 − cos(x, x̂), mean over the samples; x̂ is what inverse_transform makes of the code"""
    return metrics.reconstruction_errors(X, reconstructed).mean()


@measure("residual", better="less")
def residual(X, reconstructed):
    """Σ|x − x̂|² / Σ|x|² over the samples"""
    return metrics.residual(X, reconstructed)


@measure("active neurons per sample", unit="neurons")
def active_per_sample(codes):
    return np.count_nonzero(codes) / len(codes)


@measure("Hoyer sparseness", unit="0 to 1")
def code_hoyer(codes):
    """of a code's absolute values: 0 all alike, 1 one alone (Hoyer 2004)"""
    return np.mean([metrics.hoyer(np.abs(code)) for code in codes])


# Compared with a second network


@measure("similarity of the feed-forward weights, mean cosine", better="more", unit="−1 to 1")
def weight_similarity(W, other_W):
    return metrics.weight_similarity(W, other_W).mean()


MEASURES: dict[str, Measure] = {name: value for name, value in globals().items() if isinstance(value, Measure)}
"""The package's measures by name; `asynchebb list` prints them.

>>> ah.MEASURES["factors_found"].better
'more'
"""
# What tables, sweeps and plots call them, and facts of a run that stand next to them.
LABELS = {
    "steps": "Euler steps",
    **{name: one.label for name, one in MEASURES.items()},
    "updates": "synapses changed per Euler step",
    "factors": "known factors",
}
# Names that a run's file or summary uses for something, so that no measure of a user's own can have them.
TAKEN = {*MEASURES, *"WMuyca", "step", "steps", "phase", "stimulus", "hold", "updates", "factors"} | {
    *("run", "failure", "silent", "unstable")
}


def factors_of(stimulus: object) -> dict[str, np.ndarray]:
    """The factors of a set of stimuli, by their name among NEEDS; nothing if they are not known."""
    return {"factors": stimulus.factors()} if hasattr(stimulus, "factors") else {}


def named(argument: str, given: Any) -> tuple[Measure, ...]:
    """Measures, given as such, by name, or as plain functions; `argument` is what they were given as."""
    several = given if is_list(given) else (given,)
    found = tuple(_named(argument, one) for one in several)
    if not found:
        raise InputError(f"{argument} is empty; it must name at least one measure")
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) > 1:
            raise InputError(f"{argument} names {one.name} twice; each measure must have a name of its own")
        if one.name in TAKEN and not one.is_own:
            raise InputError(f"{argument} has a measure called {one.name}, a name that the package uses; rename it")
    return found


def _named(argument: str, given: Any) -> Measure:
    if isinstance(given, Measure):
        return given
    if isinstance(given, str):
        one_of(argument, given, MEASURES)
        return MEASURES[given]
    if inspect.isfunction(given):
        return measure()(given)
    raise InputError(f"{argument} holds {shown(given)}; it must hold functions, or names out of {', '.join(MEASURES)}")


def _package_measure(name: str) -> Measure:
    return MEASURES[name]
