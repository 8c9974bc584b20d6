"""Results are those of the last release, unless RESULTS_VERSION says otherwise (pinned.py)."""

import pinned
import pytest

from asynchebb import provenance

ADVICE = "if that is intended, raise provenance.RESULTS_VERSION and run `python tests/pinned.py --write`"


@pytest.mark.parametrize("name", pinned.NETWORKS)
def test_results_change_with_their_version_alone(name):
    differing = pinned.changed(name, pinned.results(name, "reference"))
    assert not differing, f"{differing[0]}; {ADVICE}"


def test_every_engine_has_the_pinned_results(engine):
    assert not pinned.changed("asynchronous", pinned.results("asynchronous", engine))


def test_the_pinned_results_are_of_this_version():
    assert pinned.pinned()["results_version"] == provenance.RESULTS_VERSION, "run `python tests/pinned.py --write`"
    assert {*pinned.pinned()["runs"]} == {*pinned.NETWORKS}
