"""Asynchronous Hebbian/anti-Hebbian networks (Aguiar & Hennig 2024)."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from asynchebb import metrics
from asynchebb.checks import InputError
from asynchebb.dynamics import (
    EscapeNoise,
    HomeostaticIntegrateAndFire,
    HomeostaticRelaxing,
    IntegrateAndFire,
    LeakyIntegrateAndFire,
    Potential,
    Projected,
    Relaxing,
)
from asynchebb.engines import advance, advance_many
from asynchebb.engines.traces import LateSpikes
from asynchebb.measures import MEASURES, USUAL, Measure, measure
from asynchebb.network import READINGS, Network, Reading, State, asynchronous, continuous, discrete
from asynchebb.rules import Falconbridge, Foldiak, Hebbian, Oja, Pehlevan, SpikePairs
from asynchebb.runs.recording import record
from asynchebb.runs.run import Phase, Probe, Run
from asynchebb.runs.saved import network_of, open_run, state_at
from asynchebb.runs.silence import SilentNetwork, UnstableNetwork
from asynchebb.runs.simulate import Diverged, Snapshot, simulate
from asynchebb.runs.testing import error_matrix, reconstruction_error, respond
from asynchebb.schedules import Asynchronous, AtSpikes, Bursts, Continuous, Discrete, Frozen
from asynchebb.stimuli import Bars, Crossbars, Diagonals, Digits, FromArray, Patches, Squares
from asynchebb.sweeps import DamagedRuns, Range, Stopped, open_sweep, search, sweep
from asynchebb.weights import Exponential, Gaussian

if _TYPE_CHECKING:
    from asynchebb import plot
    from asynchebb.estimators import AsyncHebbian, ContinuousHebbian, DiscreteHebbian, HebbianNetwork, OnOff, Outliers
    from asynchebb.estimators.model_file import load_model, save_model
    from asynchebb.live_page import live

__version__ = _version("asynchebb")

# These bring scikit-learn or Matplotlib with them, which take a second to load: they are imported when first asked for.
_LATER = {
    "plot": "plot",
    **dict.fromkeys(
        ("AsyncHebbian", "ContinuousHebbian", "DiscreteHebbian", "HebbianNetwork", "OnOff", "Outliers"),
        "estimators",
    ),
    **dict.fromkeys(("load_model", "save_model"), "estimators.model_file"),
    "live": "live_page",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(f"asynchebb.{_LATER[name]}")
    return module if name == _LATER[name] else getattr(module, name)


def __dir__() -> list[str]:
    return [*globals(), *_LATER]
