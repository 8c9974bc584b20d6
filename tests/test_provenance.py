"""One policy of identity for everything that is saved."""

import ast

import numpy as np

import asynchebb as ah
from asynchebb import provenance, sources
from asynchebb.own_data import compare, learn, load

X = np.random.default_rng(0).random((60, 16))


def test_an_identity_changes_with_values_arrays_and_version_and_with_nothing_else(monkeypatch):
    same = provenance.identity(["a", 1, ah.Oja()], X)
    assert same == provenance.identity(("a", 1.0, ah.Oja(0.001)), X.copy(order="F"))
    others = [
        provenance.identity(["a", 2, ah.Oja()], X),
        provenance.identity(["a", 1, ah.Oja(0.002)], X),
        provenance.identity(["a", 1, ah.Oja()], np.nextafter(X, 1)),
        provenance.identity(["a", 1, ah.Oja()], X[:-1]),
        provenance.identity(["a", 1, ah.Oja()]),
    ]
    monkeypatch.setattr(provenance, "RESULTS_VERSION", provenance.RESULTS_VERSION + 1)
    others.append(provenance.identity(["a", 1, ah.Oja()], X))
    assert len({same, *others}) == 7


def test_code_is_identified_without_its_comments_and_docstrings():
    def of(text):
        return sources.text(ast.parse(text))

    assert of('"""A."""\ndef f():\n    """B."""\n    return 1  # one\n') == of("def f():\n    return 1\n")
    assert of("def f():\n    return 1\n") != of("def f():\n    return 2\n")
    assert of('"""A."""\n"a"\n') != of('"""A."""\n"b"\n')  # only the first text of a module is its docstring


def test_edited_code_measures_a_comparison_again_and_does_not_train_a_model_again(monkeypatch):
    network, data = ah.AsyncHebbian(4, random_state=0), load.Data("some", X)

    def identities():
        return compare._identity("raw data", X, None, None, 4, 1), learn._identity(network, data)

    before = identities()
    monkeypatch.setattr(provenance, "code", lambda: "edited")
    after = identities()
    assert after[0] != before[0] and after[1] == before[1]
