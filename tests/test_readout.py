"""What an ML engineer expects of the estimators: reconstructions, early stopping, warm starts, searches, pruning."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import MiniBatchNMF
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, train_test_split

import asynchebb as ah
from asynchebb.estimators import readout
from asynchebb.estimators.readout import Sample, least_squares
from asynchebb.estimators.rows import NORM

X = load_digits().data
TRAIN, TEST = train_test_split(X, test_size=0.25, random_state=0)


def small(n=20, **changes):
    return ah.AsyncHebbian(n, **{"random_state": 0, "hold": 100, "settle": 200, "max_iter": 1, **changes})


def explained(model, codes):
    residual = np.sum((TEST - model.inverse_transform(codes)) ** 2)
    return 1 - residual / np.sum((TEST - TEST.mean(axis=0)) ** 2)


# The readout


def test_reconstructions_are_at_least_as_good_as_those_of_nmf():
    network = ah.AsyncHebbian(32, random_state=0).fit(TRAIN)
    nmf = MiniBatchNMF(32, random_state=0).fit(TRAIN)
    codes = network.transform(TEST)
    assert explained(network, codes) >= explained(nmf, nmf.transform(TEST))
    assert network.score(TEST) > 0.97
    assert network.set_params(readout=False).score(TEST) < 0.9  # the paper's Wᵀy


def test_a_stream_has_the_readout_of_the_network_as_it_is_now():
    """Not of codes that it has left behind: as good as a regression on its present codes of all data shown."""
    model = small(30, max_iter=1).begin(TRAIN)
    for batch in np.array_split(np.tile(TRAIN, (4, 1)), 50):
        model.partial_fit(batch)
    regression = Ridge(1e-3, fit_intercept=False).fit(model.transform(TRAIN), TRAIN)
    best = np.maximum(regression.predict(model.transform(TEST)), 0)
    errors = [ah.metrics.residual(TEST, again) for again in (best, model.inverse_transform(model.transform(TEST)))]
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_a_sample_is_uniform_and_the_same_however_the_stream_is_cut():
    def kept(cuts, seed):
        sample, stream = Sample(np.empty((0, 1)), 50), np.arange(1000.0)[:, None]
        for rows in np.split(stream, cuts):
            chosen, places = sample.choose(len(rows), seed)
            if len(chosen):
                sample.put(rows[chosen], places)
            sample.offered += len(rows)
        assert sample.offered == 1000
        return sample.rows[:, 0]

    assert np.array_equal(kept([], 3), kept([1, 2, 49, 51, 300, 301], 3))
    assert len(np.unique(kept([], 3))) == 50
    drawn = np.concatenate([kept([], seed) for seed in range(200)])
    counts = np.histogram(drawn, 10, (0, 1000))[0]  # 1,000 expected in each tenth, with an sd of 30
    assert abs(counts - 1000).max() < 130


def test_the_sample_stays_within_its_size(monkeypatch):
    monkeypatch.setattr(readout, "KEPT", 64)
    monkeypatch.setattr(readout, "KEPT_PER_NEURON", 1)
    model = small().fit(X[:500])
    assert model._sample.rows.shape == (64, 64) and model._sample.offered == 500
    assert not small(readout=False).fit(X[:100])._sample.rows.size


def test_least_squares_without_a_response_and_with_an_outlier():
    assert not least_squares(np.zeros((5, 3)), np.ones((5, 2))).any()
    rng = np.random.default_rng(0)
    codes, D = rng.random((200, 4)), rng.random((4, 6))
    data = codes @ D * NORM / 2
    data[0], codes[0] = 1e4 * data[0], 1e4 * codes[0] * rng.random(4)  # one that does not fit, and is very strong
    plain = np.linalg.lstsq(codes, data, rcond=None)[0]
    errors = [abs(found - D * NORM / 2).max() for found in (least_squares(codes, data), plain)]
    assert errors[0] < errors[1] / 10


def test_the_readout_follows_what_it_depends_on():
    model = small().fit(X[:200])
    before = model.readout_
    assert model.readout_ is before
    model.partial_fit(X[200:220])
    assert not np.array_equal(model.readout_, before)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.readout_, model.readout_)
    assert not np.array_equal(model.set_params(settle=20).readout_, again.readout_)


def test_a_second_fit_has_a_readout_of_its_own():
    """Data of the same size, so that nothing else tells the two apart."""
    model = small().fit(X[:300])
    model.score(X[:300])
    fresh = small().fit(X[300:600])
    assert model.fit(X[300:600]).score(X[300:600]) == fresh.score(X[300:600])
    warm = small(warm_start=True, max_iter=2).fit(X[:300])
    for _ in range(2):
        warm.fit(X[:300])
    again = warm.inverse_transform(warm.transform(X[:300]))
    assert warm.reconstruction_err_ == pytest.approx(np.linalg.norm(X[:300] - again), rel=1e-4)


def test_refused_samples_are_not_kept():
    model = small().fit(X[:100])
    with pytest.raises(ValueError, match="it would ruin the weights"):
        model.partial_fit(1e5 * X[:10])
    assert model._sample.offered == 100


def test_a_large_sample_is_bounded_in_bytes_and_its_size_stays(monkeypatch):
    monkeypatch.setattr(readout, "LARGEST", 64 * 50)
    model = small().fit(X[:200])
    assert model._sample.rows.shape == (50, 64)
    pruned = model.prune(X[:200])
    assert pruned._sample.size == 50
    again = pickle.loads(pickle.dumps(model))
    again._sample._buffer.flags.writeable = False  # as joblib.load(mmap_mode="r") leaves it
    assert again.partial_fit(X[200:260])._sample.offered == 260


def test_memory_mapped_data_are_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((20_000, 64)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = small(readout=False, max_iter=1)
    tracemalloc.start()
    try:
        model._begin_fit(mapped)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.8 * mapped.nbytes


def test_the_readout_survives_a_model_file(tmp_path):
    model = small().fit(X[:200])
    ah.save_model(model, tmp_path / "m.nc")
    again = ah.load_model(tmp_path / "m.nc")
    codes = model.transform(X[:5])
    assert np.array_equal(model.inverse_transform(codes), again.inverse_transform(codes))
    for one in (model, again):
        one.partial_fit(X[200:260])
    assert np.array_equal(model.readout_, again.readout_) and again._sample.offered == 260


def test_without_data_there_is_no_readout():
    model = small().begin(X)
    assert not hasattr(model, "readout_") and not hasattr(small(), "readout_")
    assert model.score(X[:5]) == model.set_params(readout=False).score(X[:5])
    model.partial_fit(X[:20]).set_params(readout=True)
    with pytest.raises(ValueError, match="readout is True, but this network has kept no data"):
        model.score(X[:5])


def test_the_reconstruction_error_is_that_of_scikit_learns_nmf():
    model = small().fit(X[:300])
    again = model.inverse_transform(model.transform(X[:300]))
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X[:300] - again), rel=1e-4)
    assert not hasattr(small(readout=False).fit(X[:20]), "reconstruction_err_")


# Stopping early, starting warm


def test_a_fit_stops_once_the_score_on_held_out_samples_no_longer_rises():
    model = small(max_iter=40, tol=0.005).fit(X[:300])
    scores = model.validation_scores_
    assert 3 <= model.n_iter_ < 40 and len(scores) == model.n_iter_
    assert model.n_samples_seen_ == model.n_iter_ * 270 and model._sample.offered == 270  # a tenth is held out
    assert max(scores[-2:]) <= max(scores[:-2]) + 0.005
    whole = small(max_iter=3).fit(X[:300])
    assert whole.n_samples_seen_ == 900 and whole.validation_scores_ == []


def test_an_interrupted_fit_with_early_stopping_ends_the_same(tmp_path):
    whole = small(max_iter=10, tol=0.005).fit(X[:200])
    model = small(max_iter=10, tol=0.005)
    for shown in model.iter_fit(X[:200]):
        if shown == 180:  # after the first pass, before its score
            break
    ah.save_model(model, tmp_path / "m.nc")
    model = ah.load_model(tmp_path / "m.nc")
    list(model.iter_fit(X[:200], resume=True))
    assert model.validation_scores_ == whole.validation_scores_
    assert np.array_equal(model.components_, whole.components_)


def test_a_warm_start_goes_on_from_the_weights_learned_before():
    model = small(warm_start=True).fit(X[:200])
    stream = copy.deepcopy(model)
    model.fit(2 * X[200:400])
    order = np.random.default_rng([model._seed, 0]).permutation(200)
    stream.partial_fit(2 * X[200:400][order])
    assert np.array_equal(model.components_, stream.components_) and model.scale_ == stream.scale_
    assert model.n_samples_seen_ == 200 and model.n_iter_ == 1 and model._sample.offered == 200
    with pytest.raises(ValueError, match="n_components is 30, but this network began with 20"):
        model.set_params(n_components=30).fit(X[:20])


# Parameters


def test_constants_of_values_can_be_searched():
    search = GridSearchCV(small(), {"rule__eta": [1e-6, 0.02], "dynamics__dt": [0.01]}, cv=2).fit(X[:120])
    assert search.best_params_["rule__eta"] == 0.02
    assert search.best_estimator_.rule == ah.Hebbian(eta=0.02)
    model = clone(small()).set_params(rule=ah.Oja(), rule__eta=0.5)
    assert model.rule == ah.Oja(eta=0.5) and model.get_params()["rule__eta"] == 0.5
    assert "rule__eta" not in model.get_params(deep=False)
    with pytest.raises(ValueError, match=r"rule__a is given, but .* has no a; it has eta"):
        model.set_params(rule__a=1)
    with pytest.raises(ValueError, match="eta is -1"):
        model.set_params(rule__eta=-1)
    assert model.rule == ah.Oja(eta=0.5)


def test_as_many_neurons_as_features():
    model = small(None).fit(X[:50])
    assert model.n_components_ == 64 == model.transform(X[:2]).shape[1]
    assert model.partial_fit(X[:5]).n_components_ == 64


@pytest.mark.parametrize("jobs", [1, 2, -1, None])
def test_codes_do_not_depend_on_the_number_of_threads(jobs):
    model = small().fit(X[:50])
    assert np.array_equal(model.transform(X[:200]), model.set_params(n_jobs=jobs).transform(X[:200]))


@pytest.mark.parametrize(
    "bad, says",
    [
        ({"tol": -1}, "tol is -1; it must be a number of at least 0, or None"),
        ({"validation_fraction": 1}, "validation_fraction is 1; it must be a number above 0 and below 1"),
        ({"n_jobs": 0}, "n_jobs is 0; it must be a number of threads"),
        ({"n": 0}, "n_components is 0; it must be a whole number of at least 1, or None"),
        ({"readout": "yes"}, "readout is 'yes'; it must be True or False"),
        ({"n_iter_no_change": 0}, "n_iter_no_change is 0; it must be"),
    ],
)
def test_bad_parameters_are_named(bad, says):
    with pytest.raises(ValueError, match=says):
        small(**bad).fit(X[:20])


# Pruning


def test_pruning_drops_untrained_silent_and_duplicate_neurons():
    model = ah.AsyncHebbian(100, r_b=2.0, random_state=0, max_iter=2).fit(
        ah.Crossbars(8).sample(np.random.default_rng(0), 300)
    )
    bars = ah.Crossbars(8).sample(np.random.default_rng(1), 200)
    kept, before = model.prune(bars), copy.deepcopy(model)
    untrained = np.count_nonzero(model.state_.c >= ah.network.NEVER_UPDATED)
    assert untrained and kept.n_components_ <= 100 - untrained and kept.n_components == kept.n_components_
    assert ah.metrics.duplicate_units(kept.components_) == 0
    assert {*map(tuple, kept.components_)} <= {*map(tuple, model.components_)}
    assert np.array_equal(before.components_, model.components_)  # the model itself is unchanged
    found = [ah.metrics.count_fields(one.components_, ah.Crossbars(8)).distinct for one in (model, kept)]
    assert found[0] == found[1]
    assert kept.score(bars) > model.score(bars) - 0.1
    kept.partial_fit(bars[:5])
    with pytest.raises(ValueError, match="X activates no trained neuron"):
        model.prune(0 * bars)
    with pytest.raises(ValueError, match="similarity is 2"):
        model.prune(bars, similarity=2)
