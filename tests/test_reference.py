"""Every public name says what it is and shows how it is used, and its examples run."""

import doctest

import matplotlib.pyplot
import numpy as np
import public
import pytest

import asynchebb as ah

NAMES = [name for name in public.names() if name.name not in ("metrics", "plot", "contracts")]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_public_names_are_found_wherever_they_are_defined():
    assert {"Oja", "advance", "READINGS", "AsyncHebbian", "load_model", "metrics.gini", "plot.error"} <= {
        name.name for name in NAMES
    }


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.name)
def test_a_public_name_is_documented_and_its_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = name.documentation
    assert text, f"ah.{name.name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {"ah": ah, "np": np}, name.name, None, 0)
    assert test.examples, f"the docstring of ah.{name.name} has no example"
    shown = "".join(example.source + example.want for example in test.examples)
    assert name.name.rpartition(".")[2] in shown, f"the example of ah.{name.name} does not show it"
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    matplotlib.pyplot.close("all")
    assert not failed, "".join(said)
