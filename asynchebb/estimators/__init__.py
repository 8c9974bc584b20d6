"""The networks as scikit-learn estimators, and the ON/OFF split that brings signed data to them."""

from asynchebb.estimators.hebbian import HebbianNetwork
from asynchebb.estimators.models import MODELS, AsyncHebbian, ContinuousHebbian, DiscreteHebbian
from asynchebb.estimators.on_off import OnOff
from asynchebb.estimators.silence import SilentNetwork

__all__ = [
    "MODELS",
    "AsyncHebbian",
    "ContinuousHebbian",
    "DiscreteHebbian",
    "HebbianNetwork",
    "OnOff",
    "SilentNetwork",
]
