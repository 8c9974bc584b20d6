"""Asynchronous Hebbian/anti-Hebbian networks (Aguiar & Hennig 2024)."""

from importlib.metadata import version

from asynchebb import metrics
from asynchebb.checks import InputError
from asynchebb.dynamics import Potential, Projected
from asynchebb.engines import advance
from asynchebb.network import Network, State, asynchronous, continuous, discrete
from asynchebb.recording import network_of, open_run, record, state_at
from asynchebb.rules import Falconbridge, Foldiak, Hebbian, Oja, Pehlevan
from asynchebb.schedules import Asynchronous, Continuous, Discrete, Frozen
from asynchebb.simulate import Diverged, Phase, Probe, Run, Snapshot, simulate
from asynchebb.stimuli import Bars, Crossbars, Diagonals, Digits, FromArray, Patches, Squares
from asynchebb.sweeps import Stopped, open_sweep, sweep
from asynchebb.weights import Exponential, Gaussian

__version__ = version("asynchebb")
