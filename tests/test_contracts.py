"""The contracts: mypy reads the typed lists below, and every variant in the package fulfils its own."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import contracts, notation
from asynchebb.engines import cpu, reference
from asynchebb.engines.traces import Traces
from asynchebb.sweeps.executors import Local, OnDask, OnSlurm

RATES: list[contracts.Dynamics] = [ah.Potential(), ah.Projected(), ah.Relaxing(), ah.HomeostaticRelaxing()]
SPIKES: list[contracts.Dynamics] = [
    *(ah.IntegrateAndFire(), ah.LeakyIntegrateAndFire(), ah.EscapeNoise(), ah.HomeostaticIntegrateAndFire())
]
DYNAMICS = [*RATES, *SPIKES]
RULES: list[contracts.Rule] = [ah.Hebbian(), ah.Oja(), ah.Pehlevan(), ah.Foldiak(), ah.Falconbridge(), ah.SpikePairs()]
SCHEDULES: list[contracts.Schedule] = [
    *(ah.Discrete(), ah.Continuous(), ah.Asynchronous(), ah.Frozen(), ah.Bursts(), ah.AtSpikes())
]
WEIGHTS: list[contracts.Weights] = [ah.Exponential(), ah.Gaussian()]
STIMULI: list[contracts.Stimulus] = [ah.Digits(), ah.Patches(), ah.FromArray(np.ones((1, 1)))]
FACTORED: list[contracts.FactoredStimulus] = [ah.Crossbars(), ah.Bars(), ah.Squares(), ah.Diagonals()]
ENGINES: list[contracts.Engine[ah.Network, ah.State, Traces]] = [cpu, reference]
EXECUTORS: list[type[contracts.Executor]] = [Local, OnDask, OnSlurm, ThreadPoolExecutor]


@pytest.mark.parametrize(
    ("kind", "contract", "listed"),
    [
        ("dynamics", contracts.Dynamics, DYNAMICS),
        ("rule", contracts.Rule, RULES),
        ("schedule", contracts.Schedule, SCHEDULES),
        ("weights", contracts.Weights, WEIGHTS),
        ("stimulus", contracts.Stimulus, [*STIMULI, *FACTORED]),
    ],
)
def test_every_variant_is_listed_above_and_fulfils_its_contract(kind, contract, listed):
    assert {type(value) for value in listed} == {*notation.variants(kind).values()}
    assert all(isinstance(value, contract) for value in listed) and not isinstance(object(), contract)
