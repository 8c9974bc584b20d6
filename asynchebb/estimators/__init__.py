"""The networks as scikit-learn estimators, and an ON/OFF split for signed data."""

from asynchebb.estimators.hebbian import HebbianNetwork
from asynchebb.estimators.models import MODELS, AsyncHebbian, ContinuousHebbian, DiscreteHebbian
from asynchebb.estimators.on_off import OnOff
from asynchebb.estimators.rows import Outliers
from asynchebb.estimators.silence import SilentNetwork

__all__ = [
    "MODELS",
    "AsyncHebbian",
    "ContinuousHebbian",
    "DiscreteHebbian",
    "HebbianNetwork",
    "OnOff",
    "Outliers",
    "SilentNetwork",
]
