"""Results are those of the last release, unless RESULTS_VERSION says otherwise (pinned.py)."""

import re

import pinned
import pytest

import asynchebb as ah
from asynchebb import provenance

ADVICE = "if that is intended, raise provenance.RESULTS_VERSION and run `python tests/pinned.py --write`"


DEFAULTS = """
Projected(dt=0.01) Potential(dt=0.01) Relaxing(dt=0.01, tau=0.2) IntegrateAndFire(dt=0.01, theta=0.05, tau=0.2)
HomeostaticRelaxing(dt=0.01, tau=0.2, target=0.07, tau_h=50.0)
LeakyIntegrateAndFire(dt=0.01, theta=0.05, tau=0.2, tau_m=0.5)
EscapeNoise(dt=0.01, theta=0.05, tau=0.2, delta=0.02, rho=50.0)
HomeostaticIntegrateAndFire(dt=0.01, theta=0.05, tau=0.2, target=0.07, tau_h=50.0)
Hebbian(eta=0.01) Oja(eta=0.001) Pehlevan(a0=100.0) Foldiak(eta=0.01, p=0.05) Falconbridge(eta=0.01, p=0.05)
SpikePairs(eta=0.01) Discrete() Continuous() Asynchronous(r_b=1.0, r_r=100) Frozen() AtSpikes()
Bursts(spikes=3, window=20, r_r=100)
"""


@pytest.mark.parametrize("default", re.findall(r"\w+\(.*?\)", DEFAULTS))
def test_defaults_are_those_that_results_without_constants_were_made_with(default):
    assert repr(getattr(ah, default.partition("(")[0])()) == default


@pytest.mark.parametrize("name", pinned.NETWORKS)
def test_results_change_with_their_version_alone(name):
    differing = pinned.changed(name, pinned.results(name, "reference"))
    assert not differing, f"{differing[0]}; {ADVICE}"


def test_every_engine_has_the_pinned_results(engine):
    assert not pinned.changed("asynchronous", pinned.results("asynchronous", engine))


def test_the_pinned_results_are_of_this_version():
    assert pinned.pinned()["results_version"] == provenance.RESULTS_VERSION, "run `python tests/pinned.py --write`"
    assert {*pinned.pinned()["runs"]} == {*pinned.NETWORKS}
