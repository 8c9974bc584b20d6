"""What experiments measure in saved runs, against hand-made runs."""

import numpy as np
import pytest

import asynchebb as ah
from asynchebb.reproduction import results as measured
from asynchebb.reproduction.results import Results

BARS = ah.Crossbars(6)
FACTORS = BARS.factors()
CROSS = np.maximum(FACTORS[0], FACTORS[6])  # a row and a column


def kept(W, rates, **more):
    """A saved run of three snapshots: the last has these weights and, in the first of two tests, these mean rates."""
    others = np.random.default_rng(1).random((2, *W.shape))
    return {
        "W": np.stack([*others, W]),
        "mean_activity": np.stack([[rates[::-1], rates], [rates[::-1], rates], [rates, rates[::-1]]]),
        "step": np.array([0, 5, 10]),
        **{name: np.stack([*others[:, :, : array.shape[1]], array]) for name, array in more.items()},
    }


def test_the_fields_shown_are_those_of_the_100_most_active_neurons():
    W = np.random.default_rng(0).random((104, 36))
    W[:40], W[40:50], W[50] = FACTORS[0], CROSS, FACTORS[1]
    W[100:] = FACTORS[2:6]  # of the least active neurons
    run = kept(W, np.linspace(2, 1, 104))
    assert measured.most_active(run).tolist() == [*range(100)]
    found = measured.fields(run, BARS)
    assert found == {"bars": 0.41, "crosses": 0.1, "factors": pytest.approx(6 / 12)}
    assert measured.factors_found(run, BARS) == found["factors"]
    few = kept(W[:50], np.linspace(2, 1, 50))
    assert measured.fields(few, BARS) == {"bars": 0.8, "crosses": 0.2, "factors": pytest.approx(1 / 12)}


def at(cosine):
    return [cosine, np.sqrt(1 - cosine**2)]


def test_likeness_is_the_share_of_neurons_with_a_cosine_above_095():
    """Of four neurons, three are alike in W; of the three that are active in the discrete network, two are."""
    other = np.array([at(1), at(1), at(1), at(1)])
    W, M = np.array([at(0.96), at(0.94), at(0.97), at(1)]), np.array([at(0), at(0.951), at(0.2), at(0.1)])
    rates = np.array([0.1, 3, 1e-9, 0])
    alike = measured.likeness(kept(W, rates[::-1], M=M), kept(other, rates, M=other))
    assert alike == pytest.approx(
        {
            "same_W": 3 / 4,
            "same_active_W": 2 / 3,
            "similarity_W": (0.96 + 0.94 + 0.97 + 1) / 4,
            "same_M": 1 / 4,
            "same_active_M": 1 / 3,
            "similarity_M": (0 + 0.951 + 0.2 + 0.1) / 4,
        }
    )


def test_networks_are_compared_at_the_same_step():
    W = np.stack([np.eye(2), np.eye(2)[::-1], np.eye(2)])
    run, other = {"W": W, "step": [0, 5, 10]}, {"W": W[1:], "step": [5, 10]}
    assert measured.similarity(run, other).tolist() == [1, 1]
    assert measured.similarity(run, other, snapshot=1, of_other=0).tolist() == [1, 1]
    assert measured.similarity(run, {"W": W[::-1], "step": [0, 5, 10]}, snapshot=1).tolist() == [1, 1]
    for snapshot, of_other in ((0, 0), (2, 0)):
        with pytest.raises(AssertionError, match="snapshots at different steps"):
            measured.similarity(run, other, snapshot=snapshot, of_other=of_other)


def test_errors_are_taken_before_training_after_each_phase_and_at_the_end():
    sets = BARS, ah.Squares(6), ah.Diagonals(6)
    phase = np.array([0, 0, 0, 1, 1, 2])  # the untrained network is the first of phase 0
    error = np.arange(18).reshape(6, 3) / 100
    W = np.zeros((6, 2, 36))
    W[2] = FACTORS[:2]  # after the first phase
    W[5] = FACTORS[0], sets[1].factors()[0]
    found = measured.after_sets({"phase": phase, "error_last": error, "W": W}, sets)
    assert measured.ends({"phase": phase}) == [2, 4, 5]
    assert found == pytest.approx(
        {
            **{"untrained_1": 0.00, "untrained_2": 0.01, "untrained_3": 0.02},
            **{"learnt_1": 0.06, "learnt_2": 0.13, "learnt_3": 0.17},
            **{"end_1": 0.15, "end_2": 0.16, "end_3": 0.17},
            **{"bars_kept": 0.5, "fields_kept": 0.5, "took_up": 1, "taken_from_free": 0},
        }
    )


def test_errors_are_described_by_their_set():
    assert [*measured.LEARNT_AND_KEPT] == [f"{when}_{k}" for when in ("untrained", "learnt", "end") for k in (1, 2, 3)]
    assert measured.LEARNT_AND_KEPT["untrained_1"] == "error on set 1 before training"
    assert measured.LEARNT_AND_KEPT["learnt_3"] == "error on set 3 at the end of its own phase"


def test_the_fate_of_fields_is_told_where_there_were_none():
    blank = np.random.default_rng(0).random((3, 36))
    sets = BARS, ah.Squares(6)
    none = {"bars_kept": 0.0, "fields_kept": 0.0, "took_up": 0.0, "taken_from_free": 0.0}
    assert measured.fate_of_fields(blank, blank, sets) == none
    squares = np.stack([sets[1].factors()[0], blank[1], blank[2]])
    assert measured.fate_of_fields(blank, squares, sets) == none | {"took_up": 1.0, "taken_from_free": 1.0}
    kept = measured.fate_of_fields(np.stack([FACTORS[0], *blank]), np.stack([FACTORS[0], *blank]), sets)
    assert kept == none | {"bars_kept": 1.0, "fields_kept": 1.0}
    # A cross is neither free nor a bar; a field that comes to show another bar is not kept, though its bar may be.
    before, after = np.stack([CROSS, *FACTORS[:2]]), np.stack([sets[1].factors()[0], FACTORS[1], FACTORS[0]])
    told = {"bars_kept": 1.0, "fields_kept": 0.0, "took_up": 1.0, "taken_from_free": 0.0}
    assert measured.fate_of_fields(before, after, sets) == told


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two saved runs."""
    folder = tmp_path_factory.mktemp("runs")
    runs = {}
    phases = [ah.Phase(BARS, 4, 20, snapshots=2, from_rest=True), ah.Phase(ah.Squares(6), 2, 10, snapshots=1)]
    for key, schedule, shown in ((("a", 0), ah.Asynchronous(0.1, 3), phases[:1]), (("b", 1), ah.Discrete(), phases)):
        runs[key] = ah.Run(ah.Network(12, 36, schedule=schedule), shown, seed=3)
        ah.record(runs[key], folder / f"{runs[key].identity}.nc", engine="reference", progress=False).close()
    return Results(runs, folder, "reference")


def test_saved_runs_are_opened_by_their_keys(results):
    assert [*results] == [("a", 0), ("b", 1)] and len(results) == 2
    of_a, of_b = results.of("a"), results.of("b")
    assert [*of_a] == [(0,)] and of_a.runs[0,] is results.runs["a", 0]
    assert [*of_b] == [(1,)] and of_b[1,] is results["b", 1]
    assert of_b[1,].attrs["identity"] == results.runs["b", 1].identity
    file = results["a", 0]
    assert results["a", 0] is file
    results.close()
    assert not file and results["a", 0]["step"][-1] == 80


@pytest.mark.parametrize("key", [("a", 0), ("b", 1)])
@pytest.mark.parametrize(("snapshot", "seed"), [(0, None), (1, None), (-1, None), (-1, 7)])
def test_a_window_traces_the_network_as_it_was_at_a_snapshot(results, key, snapshot, seed):
    seen = measured.window(results, key, snapshot, 3, ("y", "burst", "updates"), seed)
    last = {"a": 2, "b": 3}[key[0]]
    X = BARS.sample(np.random.default_rng((last if snapshot < 0 else snapshot) if seed is None else seed), 3)
    assert np.array_equal(seen["X"], X)
    network, state = results.runs[key].network, ah.state_at(results[key], snapshot)
    _, expected = ah.advance(network, state, X, 20, "reference", ("y", "burst", "updates"), from_rest=True)
    assert all(np.array_equal(seen[name], expected[name]) for name in expected)
    by_hand = [
        np.count_nonzero(np.outer(y * gate, x)) + np.count_nonzero(np.outer(y * gate, y))
        for y, gate, x in zip(seen["y"], seen["burst"], np.repeat(X, 20, axis=0), strict=True)
    ]
    assert measured.products(results.runs[key], seen).tolist() == by_hand and max(by_hand) > 0


def test_a_silent_neuron_has_no_products_though_its_gate_is_open():
    run = ah.Run(ah.Network(2, 3), ah.Phase(ah.FromArray(np.ones((1, 3))), 1, hold=2))
    seen = {
        "y": np.array([[0, 2], [0, 0]]),
        "burst": np.array([[True, True], [True, False]]),
        "X": np.array([[1, 0, 1]]),
    }
    assert measured.products(run, seen).tolist() == [3, 0]  # of the second neuron: two pixels, and itself
