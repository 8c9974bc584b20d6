"""The estimators: scikit-learn's own checks, and what its checks do not ask."""

import gc
import itertools
import pickle
import re
import signal
import threading
import tracemalloc
import warnings

import h5py
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from test_equations import Saturating

import asynchebb as ah
from asynchebb.engines import reference
from asynchebb.estimators.rows import NORM

X, LABELS = load_digits(return_X_y=True)
MODELS = [ah.AsyncHebbian, ah.DiscreteHebbian, ah.ContinuousHebbian]


def small(model=ah.AsyncHebbian, n=20, **changes):
    return model(n, **{"random_state": 0, "hold": 100, "settle": 200, "max_iter": 1, **changes})


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.state_, other.state_, strict=True))


@pytest.mark.parametrize("estimator", [*(model() for model in MODELS), ah.OnOff()], ids=lambda one: type(one).__name__)
def test_all_of_scikit_learns_checks_pass(estimator, record_property):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    passed = sum(result["status"] == "passed" for result in results)
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert passed > 40 and skipped <= {"check_array_api_input"}  # that one only runs where SCIPY_ARRAY_API is set
    record_property("scikit-learn's checks", f"{passed} passed, none expected to fail, skipped: {sorted(skipped)}")


# Learning


def test_one_sample_at_a_time_or_all_at_once_is_the_same():
    once, one_by_one = small().begin(X), small().begin(X)
    once.partial_fit(X[:40])
    for x in X[:40]:
        one_by_one.partial_fit(x[None])
    assert same(once, one_by_one) and once.n_samples_seen_ == 40 and one_by_one.n_iter_ == 40


def test_it_is_the_paper_s_network():
    """Shown for `hold` steps each, from rest, activity carrying over: what `ah.advance` does."""
    bars = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
    model = small(scale=None, n=30).partial_fit(bars)
    network = ah.asynchronous(30, 36, reading="notebook")
    state = network.init(np.random.default_rng(model._seed))
    state = state._replace(u=0 * state.u, y=0 * state.y)
    state, _ = ah.advance(network, state, bars, hold=100)
    assert all(np.array_equal(a, b) for a, b in zip(model.state_, state, strict=True))
    assert np.array_equal(model.components_, state.W) and np.array_equal(model.lateral_, state.M)


@pytest.mark.parametrize("broken_off_after", [1, 3, 5])
def test_a_fit_that_is_broken_off_and_kept_ends_in_the_same_bits(broken_off_after, tmp_path):
    whole = small(max_iter=2).fit(X[:150])
    model = small(max_iter=2)
    for number, _ in enumerate(model.iter_fit(X[:150]), 1):
        if number == broken_off_after:
            break
    ah.save_model(model, tmp_path / "model.nc")
    resumed = ah.load_model(tmp_path / "model.nc")
    with h5py.File(tmp_path / "model.nc") as file:
        assert {"asynchebb_version", "python_version", "numpy_version", "numba_version"} <= {*file.attrs}
    shown = [*resumed.iter_fit(X[:150], resume=True)]
    assert shown[-1] == 300 and same(whole, resumed) and resumed.n_iter_ == whole.n_iter_ == 2


def test_the_seed_decides():
    assert same(small().fit(X[:50]), small().fit(X[:50]))
    assert not same(small().fit(X[:50]), small(random_state=1).fit(X[:50]))


def test_learning_can_be_switched_off_and_on():
    model = small().partial_fit(X[:20])
    W, y = model.components_, model.activity_
    model.set_params(learning=False).partial_fit(X[20:30])
    assert np.array_equal(model.components_, W) and not np.array_equal(model.activity_, y)
    model.set_params(learning=True).partial_fit(X[30:40])
    assert not np.array_equal(model.components_, W)


def test_what_is_handed_out_stays_as_it_is():
    model = small().partial_fit(X[:10])
    W = model.components_
    before = W.copy()
    model.partial_fit(X[10:30])
    assert np.array_equal(W, before) and not np.array_equal(model.components_, before)
    with pytest.raises(ValueError, match="read-only"):
        W[0] = 1


CALLS = 400


@pytest.mark.slow
def test_memory_levels_off_in_a_stream():
    """NumPy keeps some small arrays to use them again: it grows at first, and then no more."""
    model = small(n=10, hold=1).partial_fit(X[:100])

    def stream():
        for k in range(CALLS):
            model.partial_fit(X[k : k + 1])
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        memory = [stream(), stream()]
        while memory[-1] - memory[-2] > CALLS * 4 and len(memory) < 15:  # bytes: not even a number a call
            memory.append(stream())
    finally:
        tracemalloc.stop()
    assert memory[-1] - memory[-2] <= CALLS * 4, np.diff(memory)


def test_a_rule_of_ones_own():
    untrained = small().begin(X[:5])
    model = small(rule=Saturating(eta=0.0), engine="reference").fit(X[:5])
    assert np.array_equal(model.components_, untrained.components_)
    assert not np.array_equal(small(engine="reference").fit(X[:5]).components_, untrained.components_)


def test_progress_can_be_watched(capsys):
    small(max_iter=3, verbose=True).fit(X[:30])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("[AsyncHebbian] 1 of 3") and "samples/s" in lines[0]


def test_scikit_learns_callbacks_are_told_of_each_pass_and_may_stop():
    callback = pytest.importorskip("sklearn.callback")
    assert hasattr(callback.CallbackSupportMixin, "_init_callback_context")  # private, and called in callbacks.py alone

    class Watching:
        def __init__(self, stop_after):
            self.scores, self.stop_after = [], stop_after

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
            if context.task_name == "pass":
                self.scores.append(fitted_estimator.score(X))
            return len(self.scores) >= self.stop_after

    watching = Watching(stop_after=9)
    model = small(max_iter=3).set_callbacks(watching).fit(X[:40])
    assert len(watching.scores) == 3 and watching.scores[-1] == pytest.approx(model.score(X[:40]), abs=1e-12)
    assert small(max_iter=3).set_callbacks(Watching(stop_after=2)).fit(X[:40]).n_iter_ == 2


def test_scikit_learns_progress_bar_shows_the_passes(capfd):
    callback = pytest.importorskip("sklearn.callback")
    small(max_iter=2).set_callbacks(callback.ProgressBar()).fit(X[:20])
    assert "AsyncHebbian" in capfd.readouterr().out


def test_a_fit_that_is_refused_leaves_the_older_one_as_it_was():
    model = small().fit(X[:20])
    codes = model.transform(X[:3])
    with pytest.raises(ValueError, match="rule is 3"):
        model.set_params(rule=3).fit(X[:20, :10])
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(rule=None).fit(np.full((3, 5, 5), np.nan))
    assert np.array_equal(model.transform(X[:3]), codes) and model.image_shape_ is None


def test_a_sample_that_would_ruin_the_weights_is_refused_and_nothing_is_lost():
    model = small().partial_fit(X[:50])
    with pytest.raises(
        ValueError, match=r"norm, divided by scale_ \(.*\), is .*clip it, or raise scale \(now 'norm'\)"
    ):
        model.partial_fit(1e30 * X[50:55])
    assert same(model, small().partial_fit(X[:50]))


def test_a_sample_may_be_a_hundred_times_as_strong_as_the_strongest_usual_one_and_no_stronger():
    direction = np.ones((1, 64)) / 8
    model = small(scale=2.0, engine="reference").partial_fit(X[:5])
    model.partial_fit(99.9 * NORM * 2.0 * direction)
    with pytest.raises(ValueError, match="it would ruin the weights"):
        model.partial_fit(100.1 * NORM * 2.0 * direction)
    assert model.n_samples_seen_ == 6


def test_a_few_outliers_do_not_weaken_the_others_and_are_named(tmp_path):
    data = X[:400].copy()
    clean = small(max_iter=3).fit(data)
    data[[17, 203]] *= 10_000
    with pytest.warns(ah.Outliers, match=r"2 of 400 samples \(number 17, 203\) have up to \d\d,\d\d\d times the usual"):
        model = small(max_iter=3).fit(data)
    assert model.scale_ == pytest.approx(clean.scale_, rel=0.01)
    rest = np.delete(X[:400], [17, 203], axis=0)
    assert model.score(rest) > clean.score(rest) - 0.02
    with pytest.warns(ah.Outliers) as caught:
        broken = small(max_iter=3)
        next(broken.iter_fit(data))
    ah.save_model(broken, tmp_path / "model.nc")
    resumed = ah.load_model(tmp_path / "model.nc")
    for _ in resumed.iter_fit(data, resume=True):
        pass
    assert same(resumed, model) and len(caught) == 1
    many = X[:400] * np.where(np.arange(400) % 10 == 0, 1000, 1)[:, None]  # these are no outliers, but how the data are
    with pytest.warns(ah.Outliers, match="40 of 400 samples have more than 10 times the median norm, too many"):
        assert small().begin(many).scale_ > 100 * clean.scale_


@pytest.mark.parametrize("largest", [1e39, 1e200, 1e308])  # beyond float32, and beyond what can be squared
def test_an_outlier_may_be_as_large_as_a_number_can_be(largest):
    data = X[:400].astype(np.float64)
    models = []
    for value in (1e30, largest):
        data[17, 3] = value
        with pytest.warns(ah.Outliers, match=r"1 of 400 samples \(number 17\)"):
            models.append(small().fit(data))
    assert models[0].scale_ == models[1].scale_
    np.testing.assert_array_equal(*(model.components_ for model in models))


def test_a_ctrl_c_while_the_engine_runs_waits_until_its_samples_are_counted(monkeypatch):
    model = small(engine="reference").partial_fit(X[:20])
    advance = reference.advance

    def interrupted(*arguments):
        after = advance(*arguments)
        signal.raise_signal(signal.SIGINT)
        return after

    monkeypatch.setattr(reference, "advance", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[20:40])
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    whole = small(engine="reference").partial_fit(X[:20]).partial_fit(X[20:40])
    assert model.n_samples_seen_ == 40 and same(model, whole)


def test_a_ctrl_c_parts_no_state_from_its_count(tmp_path):
    """Whenever it comes, what goes on from there ends in the same bits."""
    data = np.tile(X, (3, 1))
    whole = small(n=60, hold=2000).fit(data[:640])
    model = small(n=60, hold=2000)
    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in model.iter_fit(data[:640]):
            pass
    assert 0 < model.n_samples_seen_ < 640
    [*model.iter_fit(data[:640], resume=True)]
    assert same(model, whole)


# Codes


def test_codes_do_not_depend_on_order_company_or_activity():
    model = small().fit(X[:100])
    activity = model.activity_
    codes = model.transform(X[:150])
    order = np.random.default_rng(0).permutation(150)
    assert np.array_equal(model.transform(X[:150][order]), codes[order])
    assert np.array_equal(np.concatenate([model.transform(x[None]) for x in X[:150]]), codes)
    assert np.array_equal(model.activity_, activity) and same(model, pickle.loads(pickle.dumps(model)))
    model.set_params(learning=False).partial_fit(X[:5])
    assert np.array_equal(model.transform(X[:150]), codes)


def test_codes_are_those_of_the_reference_engine():
    model = small().fit(X[:100])
    slow = clone(model).set_params(engine="reference")
    slow.__dict__.update({**model.__dict__, "engine": "reference"})
    np.testing.assert_allclose(model.transform(X[:5]), slow.transform(X[:5]), atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_a_reconstruction_is_the_multiple_of_what_was_learned_that_is_nearest(model):
    model = small(model, settle=3000, max_iter=3, readout=False).fit(X[:300])
    codes = model.transform(X[:50])
    again = model.inverse_transform(codes)
    direction = codes @ model.components_
    nearest = np.einsum("ij,ij->i", X[:50], direction) / np.einsum("ij,ij->i", direction, direction)
    np.testing.assert_allclose(again, nearest[:, None] * direction, rtol=0.05, atol=0.3)
    cosine = ah.metrics.weight_similarity(X[:50], again)
    assert model.score(X[:50]) == pytest.approx(cosine.mean(), abs=1e-5)
    np.testing.assert_allclose(model.inverse_transform(2 * codes), 2 * again, rtol=1e-6)
    assert not model.inverse_transform(0 * codes).any()


def test_it_works_in_pipelines_searches_and_unions():
    search = GridSearchCV(small(hold=50), {"r_b": [0.5, 2.0], "rule": [ah.Hebbian(), ah.Hebbian(0.05)]}, cv=2)
    search.fit(X[:100])
    assert search.best_params_["r_b"] in (0.5, 2.0) and np.isfinite(search.cv_results_["mean_test_score"]).all()
    union = FeatureUnion([("one", small()), ("other", small(ah.DiscreteHebbian, n=5))])
    assert make_pipeline(union).fit_transform(X[:40]).shape == (40, 25)
    assert [*union.get_feature_names_out()][:2] == ["one__asynchebbian0", "one__asynchebbian1"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_codes_come_as_data_frames(kind):
    pytest.importorskip(kind)
    frame = small().set_output(transform=kind).fit_transform(X[:30])
    assert type(frame).__module__.startswith(kind) and frame.shape == (30, 20)
    assert frame.columns[0] == "asynchebbian0"


# Data


def test_the_scale_of_the_data_does_not_matter_and_can_be_given():
    model = small().fit(X[:60])
    assert np.sqrt(np.mean(np.sum((X[:60] / model.scale_) ** 2, axis=1))) == pytest.approx(NORM)
    for factor in (2.0**-40, 2.0**30):
        other = small().fit(factor * X[:60])
        assert same(model, other) and other.scale_ == factor * model.scale_
        assert np.array_equal(other.transform(factor * X[:9]), model.transform(X[:9]))
    given = small(scale=model.scale_).fit(X[:60])
    assert same(model, given)
    assert small(scale=None).fit(X[:60] / 16).scale_ == 1.0


def test_a_stream_that_begins_in_the_dark_finds_its_scale_later():
    model = small()
    with pytest.warns(ah.SilentNetwork, match="all zeros"):
        model.partial_fit(0 * X[:3])
    model.partial_fit(X[:50])
    assert model.scale_ == small().begin(X[:50]).scale_


def test_images_come_as_they_are_and_go_as_they_came():
    images = X.reshape(-1, 8, 8)
    model = small().fit(images[:50])
    assert (
        model.image_shape_ == (8, 8) and same(model, small().fit(X[:50])) and same(model, small().fit([*images[:50]]))
    )
    assert model.inverse_transform(model.transform(images[:3])).shape == (3, 8, 8)
    with pytest.raises(ValueError, match=r"\(4, 16\)"):
        model.transform(X[:3].reshape(3, 4, 16))
    with pytest.raises(ValueError, match=r"shape \(2, 2, 8, 8\); it must be \(samples, features\) or"):
        model.transform(images[:4].reshape(2, 2, 8, 8))
    with pytest.raises(ValueError, match=r"a single image; pass it as a batch of one: X\[None\]"):
        model.partial_fit(images[0])
    with pytest.raises(ValueError, match=r"images of shapes \(4, 8\), \(8, 8\); all must have the same shape"):
        model.transform([images[0], images[1][:4]])


def test_sparse_and_mapped_data_are_the_same_as_in_memory(tmp_path):
    model = small().fit(X[:50])
    assert same(model, small().fit(sparse.csr_array(X[:50]))) and same(model, small().fit(sparse.coo_matrix(X[:50])))
    np.save(tmp_path / "x.npy", X[:50].astype(np.uint8))
    mapped = small().fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert same(model, mapped)
    assert np.array_equal(mapped.transform(sparse.csr_matrix(X[:5])), model.transform(X[:5]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8", "int64", "bool"])
def test_numbers_of_any_type_are_taken(dtype):
    data = (X[:50] > 8).astype(dtype) if dtype == "bool" else X[:50].astype(dtype)
    model = small().fit(data)
    np.testing.assert_allclose(model.scale_, small().fit(data.astype(float)).scale_, rtol=1e-12)
    codes = model.transform(data)
    assert codes.dtype == np.float32 and codes.any()
    np.testing.assert_allclose(model.transform(data.astype(float)), codes, rtol=1e-3, atol=1e-3)


def test_an_iterator_is_told_how_to_be_shown():
    with pytest.raises(TypeError, match=r"for batch in X: model\.partial_fit"):
        small().fit(iter([X[:10]]))


def test_signed_data_are_split_and_put_together_again():
    signed = X[:60] - 8
    with pytest.raises(ValueError, match=r"Negative values in data .* ah.OnOff\(\)"):
        small().fit(signed)
    split = ah.OnOff().fit(signed.reshape(-1, 8, 8))
    both = split.transform(signed)
    assert both.min() == 0 and both.shape == (60, 128) and np.array_equal(both[:, :64] - both[:, 64:], signed)
    assert np.array_equal(split.inverse_transform(both), signed.reshape(-1, 8, 8))
    assert np.array_equal(split.transform(sparse.csr_array(signed)).toarray(), both)
    assert [*split.get_feature_names_out()][::64] == ["x0_on", "x0_off"]
    assert make_pipeline(ah.OnOff(), small()).fit(signed).score(signed) > 0.5


def test_the_documentation_of_a_model_lists_all_its_parameters_in_one_section():
    for name, own in (("AsyncHebbian", ["r_b", "r_r"]), ("DiscreteHebbian", [])):
        lines = getattr(ah, name).__doc__.splitlines()
        headings = [above.strip() for above, below in itertools.pairwise(lines) if {*below.strip()} == {"-"}]
        assert headings == ["Parameters", "Attributes"]
        documented = re.findall(r"^    (\w[\w, ]*) :", "\n".join(lines).partition("Attributes")[0], re.M)
        listed = {one for names in documented for one in names.split(", ")}
        assert listed == {*getattr(ah, name)().get_params(deep=False)} and [*own] == documented[: len(own)]


def test_the_package_shows_its_own_names_only():
    assert not {*dir(ah)} & {"Any", "TYPE_CHECKING", "import_module", "version"}


# Bad input, and data that teach nothing


def test_a_model_is_not_saved_under_the_name_of_another_format(tmp_path):
    with pytest.raises(ah.InputError, match=r"must be a file that ends in .nc \(NetCDF; use pickle for .pkl\)"):
        ah.save_model(small().partial_fit(X[:5]), tmp_path / "model.pkl")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_components": 0}, "n_components is 0; it must be a whole number of at least 1"),
        ({"hold": 1.5}, "hold is 1.5; it must be a whole number"),
        ({"scale": "max"}, 'scale is .max.; it must be "norm", a number above 0, or None'),
        ({"scale": 0}, "scale is 0; it must be"),
        ({"r_b": -1}, "r_b is -1; it must be a number of at least 0"),
        ({"engine": "quantum"}, "engine is 'quantum'; it must be one of cpu, gpu, reference, auto"),
        ({"rule": "Oja"}, "rule is the text 'Oja'; it must be a value, like ah.Oja"),
        ({"dynamics": ah.Projected}, "dynamics is the class Projected"),
    ],
)
def test_bad_parameters_are_named_with_what_is_accepted(changes, said):
    with pytest.raises(ValueError, match=said):
        small().set_params(**changes).fit(X[:10])


def test_a_parameter_set_between_calls_is_checked_too():
    model = small().partial_fit(X[:5])
    with pytest.raises(ValueError, match="hold is 0; it must be a whole number"):
        model.set_params(hold=0).partial_fit(X[:5])
    with pytest.raises(ValueError, match="n_components is 7, but this network began with 20"):
        small().partial_fit(X[:5]).set_params(n_components=7).partial_fit(X[:5])
    with pytest.raises(ValueError, match="learning is 'no'; it must be True or False"):
        model.set_params(hold=5, learning="no").partial_fit(X[:5])
    with pytest.raises(ValueError, match="settle is -1; it must be a whole number of at least 1"):
        model.set_params(learning=True, settle=-1).transform(X[:5])


def test_data_that_never_make_a_neuron_burst_give_a_warning_that_says_what_to_change():
    with pytest.warns(ah.SilentNetwork, match=r"nothing was learned: no neuron has burst .* Lower r_b \(now 1000000"):
        small(r_b=1e6).fit(X[:20])
    with pytest.warns(ah.SilentNetwork, match=r"let scale='norm' .* \(now None\)"):
        small(scale=None).partial_fit(X[:20] * 1e-6)
    for model in MODELS:
        with pytest.warns(ah.SilentNetwork, match="all zeros"):
            small(model).fit(0 * X[:20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().fit(X[:20])
        small(learning=False).fit(X[:20])


def test_learning_that_has_stopped_is_told_from_none():
    with pytest.warns(
        ah.SilentNetwork, match=r"learning has stopped: .* in the last 50 samples, and \d+ of 20 ever have"
    ):
        small(scale=None, max_iter=3, hold=500).fit(X[:100] / 1000)


def test_data_so_strong_that_no_neuron_answers_any_more_give_a_warning():
    with pytest.warns(
        ah.SilentNetwork, match=r"no neuron responds .* Raise scale \(now None: 1\).*dt \(now 0.01\)"
    ) as said:
        model = ah.AsyncHebbian(32, scale=None, max_iter=1, random_state=0).fit(X[:200])
    assert not model.transform(X[:20]).any() and said[0].filename == __file__
    stream = small(hold=500).partial_fit(X[:50])
    with pytest.warns(ah.SilentNetwork, match="no neuron responds"):
        stream.partial_fit(30 * X[50:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().partial_fit(X[:50]).partial_fit(0 * X[:50])  # the lights go out: that is another matter


def test_a_network_that_diverges_says_so():
    with pytest.raises(FloatingPointError, match=r"diverged.*dynamics.dt \(now 50\)"):
        small(dynamics=ah.Projected(dt=50), engine="reference").fit(X[:60])


def test_a_silent_rate_is_zero_and_not_minus_zero():
    codes = small().fit(X[:50]).transform(X[:50])
    assert (codes == 0).any() and not np.signbit(codes).any()


# Models that are kept


def test_a_kept_model_goes_on_in_the_same_bits(tmp_path):
    for model in (small(rule=ah.Oja(0.02), r_b=0.5, engine="reference", hold=5), small(ah.DiscreteHebbian, scale=3.0)):
        model.partial_fit(X[:20])
        ah.save_model(model, tmp_path / "model.nc")
        kept = ah.load_model(tmp_path / "model.nc")
        assert kept.get_params() == model.get_params() and same(kept, model) and kept.n_iter_ == 1
        assert same(kept.partial_fit(X[20:30]), model.partial_fit(X[20:30]))
        assert np.array_equal(kept.transform(X[:3]), model.transform(X[:3]))


def test_a_kept_pipeline_is_a_pipeline_again(tmp_path):
    signed = X[:60].reshape(-1, 8, 8) - 8
    pipeline = Pipeline([("split", ah.OnOff()), ("network", small())]).fit(signed)
    ah.save_model(pipeline, tmp_path / "model.nc")
    kept = ah.load_model(tmp_path / "model.nc")
    assert [*kept.named_steps] == ["split", "network"]
    again = kept.inverse_transform(kept.transform(signed))
    assert np.array_equal(again, pipeline.inverse_transform(pipeline.transform(signed))) and again.shape == (60, 8, 8)


def test_a_model_file_that_is_none_and_a_model_that_cannot_be_kept_are_refused(tmp_path):
    for model, said in ((small(), "not fitted"), (ah.OnOff().fit(X), "model is OnOff"), (3, "model is int")):
        with pytest.raises(ah.InputError, match=said):
            ah.save_model(model, tmp_path / "model.nc")
    (tmp_path / "text.nc").write_text("no model")
    for name, said in (("missing.nc", "no such file"), ("text.nc", "another program wrote it")):
        with pytest.raises(ah.InputError, match=said):
            ah.load_model(tmp_path / name)


def test_a_rule_of_ones_own_has_to_be_given_again(tmp_path):
    class Mine(ah.Oja):
        def __repr__(self):
            return f"{name}(eta={self.eta})"

    name = "Oja"  # even one that is called like one of ours
    ah.save_model(small(rule=Mine(0.01), engine="reference", hold=2).partial_fit(X[:3]), tmp_path / "model.nc")
    with pytest.raises(ah.InputError, match=r"pass it in: rule=Oja\(eta=0.01\)"):
        ah.load_model(tmp_path / "model.nc")
    name = "Mine"
    model = small(rule=Mine(0.01), engine="reference", hold=2).partial_fit(X[:3])
    ah.save_model(model, tmp_path / "model.nc")
    with pytest.raises(ah.InputError, match=r"pass it in: rule=Mine\(eta=0.01\)"):
        ah.load_model(tmp_path / "model.nc")
    assert same(ah.load_model(tmp_path / "model.nc", rule=Mine(0.01)).partial_fit(X[3:5]), model.partial_fit(X[3:5]))
