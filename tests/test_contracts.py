"""The contracts: mypy reads the typed lists below, and every variant in the package fulfils its own."""

import dataclasses
import inspect
import re
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
def test_every_variant_is_listed_above_and_has_the_members_of_its_contract(kind, contract, listed):
    assert {type(value) for value in listed} == {*notation.variants(kind).values()}
    assert all(isinstance(value, contract) for value in listed) and not isinstance(object(), contract)


@pytest.mark.parametrize("value", [*DYNAMICS, *RULES, *SCHEDULES, *WEIGHTS, *STIMULI, *FACTORED], ids=repr)
def test_no_part_can_be_changed_once_it_is_made(value):
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.other = 1


NUMBERS = [
    (type(value), field.name)
    for value in (*DYNAMICS, *RULES, *SCHEDULES, *WEIGHTS, *STIMULI, *FACTORED)
    if dataclasses.is_dataclass(value)
    for field in dataclasses.fields(value)
    if field.name not in ("data", "rectified")
]
MAY_BE_ZERO = {*("Foldiak.p", "Falconbridge.p", "Asynchronous.r_b", "Asynchronous.r_r", "Bursts.r_r")}
MAY_BE_ZERO |= {"HomeostaticRelaxing.target", "HomeostaticIntegrateAndFire.target", "Bars.probability"}


@pytest.mark.parametrize(("cls", "constant"), NUMBERS)
def test_no_constant_may_be_negative_and_only_some_may_be_zero(cls, constant):
    name = f"{cls.__name__}.{constant}"
    with pytest.raises(ah.InputError, match=rf"^{re.escape(name)} is -1; it must be "):
        cls(**{constant: -1})
    if name in MAY_BE_ZERO:
        assert getattr(cls(**{constant: 0}), constant) == 0
    else:
        with pytest.raises(ah.InputError, match=rf"^{re.escape(name)} is 0; it must be "):
            cls(**{constant: 0})


@pytest.mark.parametrize("dynamics", [one for one in DYNAMICS if getattr(one, "additive", False)], ids=repr)
def test_silent_steps_of_additive_dynamics_are_one_step_with_their_summed_drive(dynamics):
    rest, _ = dynamics.step(np.linspace(-2, 0, 50), 0.0)
    assert np.array_equal(dynamics.step(rest, 0.0)[0], rest)
    drives, u = -np.random.default_rng(0).random((7, 50)), rest
    for drive in drives:
        u, y = dynamics.step(u, drive)
        assert not y.any()
    np.testing.assert_allclose(u, dynamics.step(rest, drives.sum(axis=0))[0], rtol=1e-12, atol=1e-15)
    u, y = dynamics.step(0.3, np.linspace(-100, 100, 50))  # a larger drive never gives less
    assert (np.diff(u) >= 0).all() and (np.diff(y) >= 0).all() and y[0] == 0 < y[-1]


@pytest.mark.parametrize("dynamics", SPIKES, ids=repr)
def test_between_spikes_a_rate_falls_by_the_decay_that_its_dynamics_name(dynamics):
    y = np.linspace(0, 5, 50)
    given = {"u_i": np.full(50, -0.05), "y_i": y, "drive_i": 0.0, "h_i": 0.0, "noise_i": 0.999}
    after = dynamics.step(*(given[name] for name in inspect.signature(dynamics.step).parameters))
    assert not after[-1].any()
    np.testing.assert_allclose(after[1], dynamics.decay * y, rtol=1e-12)


def test_pairs_of_spikes_change_by_eta_whatever_the_rate_and_without_one_by_nothing():
    eta, _ = ah.SpikePairs(eta=0.5).rate(np.array([0.0, 0.25, 1, 2]), 0.0)
    assert eta.tolist() == [0, 2, 0.5, 0.25]


def test_a_gate_opens_above_its_threshold_and_after_its_refractory_period_and_not_at_them():
    def opens(schedule, *arguments):
        return bool(schedule.gate(*arguments, k=0, hold=9)[0])

    rates = ah.Asynchronous(r_b=1, r_r=100)
    assert opens(rates, 1.001, 101) and not opens(rates, 1.0, 101) and not opens(rates, 1.001, 100)
    spikes = ah.Bursts(spikes=3, window=20, r_r=100)
    assert opens(spikes, 0, 3, 101) and not opens(spikes, 0, 2, 101) and not opens(spikes, 0, 3, 100)
    assert opens(ah.Bursts(spikes=20, window=20), 0, 20, 101)
    assert opens(ah.AtSpikes(), 0, 1, 0) and not opens(ah.AtSpikes(), 0, 0, 0)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_steps_are_counted_from_the_last_update(schedule):
    y, c, k, n = (each.ravel() for each in np.meshgrid([0, 0.5, 2], [0, 99, 100, 101], [0, 8, 9], [0, 2, 3]))
    given = {"y_i": y, "n_i": n, "c_i": c, "k": k, "hold": 10}
    gate, count = schedule.gate(*(given[name] for name in inspect.signature(schedule.gate).parameters))
    assert np.array_equal(count + 0 * c, np.where(gate, 0, c + 1))
