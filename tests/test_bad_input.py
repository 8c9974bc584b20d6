"""Bad input to the library: one sentence that names the argument, the value and what is accepted."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import asynchebb as ah

NETWORK = ah.Network(n=5, m=4)
STATE = NETWORK.init(np.random.default_rng(0))
X = np.full((3, 4), 0.5)
RUN = ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5))


class Signed:
    def draw(self, rng, shape, n):
        return rng.standard_normal(shape)


def with_value(value):
    bad = X.copy()
    bad[1, 2] = value
    return bad


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ah.advance(NETWORK, STATE, with_value(np.nan), 1), r"X holds nan; .* finite and in \[0, 1\]"),
        (lambda: ah.advance(NETWORK, STATE, with_value(np.inf), 1), "X holds inf"),
        (lambda: ah.advance(NETWORK, STATE, with_value(-0.1), 1), "X holds -0.1"),
        (lambda: ah.advance(NETWORK, STATE, with_value(1.5), 1), "X holds 1.5"),
        (lambda: ah.advance(NETWORK, STATE, X[:, :3], 1), r"X has shape \(3, 3\); it must be \(samples, 4\)"),
        (lambda: ah.advance(NETWORK, STATE, X[0], 1), r"X has shape \(4,\)"),
        (lambda: ah.advance(NETWORK, STATE, X.astype(complex), 1), "X has dtype complex128"),
        (lambda: ah.advance(NETWORK, STATE, X.astype(object), 1), "X has dtype object"),
        (lambda: ah.advance(NETWORK, STATE, [[0.1, 0.2], [0.3]], 1), "X has rows of different lengths"),
        (lambda: ah.FromArray([[0.1], [0.2, 0.3]]), "FromArray.data has rows of different lengths"),
        (lambda: ah.advance(NETWORK, STATE, X, 0), "hold is 0; it must be a whole number of at least 1"),
        (lambda: ah.advance(NETWORK, STATE, X, 2.5), "hold is 2.5"),
        (lambda: ah.advance(NETWORK, STATE, X, 1, engine="gpux"), "engine is 'gpux'; it must be one of cpu"),
        (lambda: ah.advance(NETWORK, STATE, X, 1, trace=("spike",)), "trace is 'spike'; it must be one of upd"),
        (lambda: ah.advance(NETWORK, STATE, X, 1, trace="y"), "trace is 'y'; it must be a tuple"),
        (lambda: ah.advance(NETWORK, STATE._replace(u=STATE.u[:3]), X, 1), r"state.u has shape \(3,\)"),
        (lambda: ah.advance(ah.Network(n=6, m=4), STATE, X, 1), r"state.W has shape \(5, 4\)"),
        (lambda: ah.advance(NETWORK, STATE._replace(M=-STATE.M), X, 1), r"state.M has weights that are negative"),
        (lambda: ah.advance(NETWORK, STATE._replace(W=STATE.W * np.nan), X, 1), r"state.W has .* not a number"),
        (lambda: ah.Network(5, 4, weights=Signed()).init(np.random.default_rng(0)), r"Signed.draw has weights .*neg"),
        (
            lambda: ah.advance(NETWORK, STATE._replace(W=STATE.W.astype(np.float16)), X, 1),
            "state.W has dtype float16; it must be float32",
        ),
        (lambda: ah.asynchronous(r_b=1), r"r_b is given; a network has n, m, .* \(set schedule=ah.Asynchronous"),
        (lambda: ah.Network(n=0), "n is 0; it must be a whole number of at least 1"),
        (lambda: ah.Network(m=-1), "m is -1"),
        (lambda: ah.Network(n=2.0), "n is 2.0"),
        (lambda: ah.Network(rule=ah.Hebbian), r"rule is the class Hebbian; it must be a value: Hebbian\(...\)"),
        (lambda: ah.Network(rule=ah.Frozen()), r"rule is Frozen\(\); it must have a method leak_w\(self, y_i\)"),
        (
            lambda: ah.Network(schedule="Discrete"),
            r"schedule is the text 'Discrete'; it must be a value, like ah.Discrete\(\)",
        ),
        (lambda: ah.Network(weights=None), "weights is None; it must be a value with a method draw"),
        (lambda: NETWORK.init(np.random.default_rng(0), "float16"), "dtype is 'float16'; it must be float32 or"),
        (lambda: NETWORK.init(0), r"rng is 0; it must be a generator: np.random.default_rng\(seed\)"),
        (lambda: ah.Hebbian(eta=0), "Hebbian.eta is 0; it must be a number above 0"),
        (lambda: ah.Oja(eta=float("nan")), "Oja.eta is nan; it must be a finite number"),
        (lambda: ah.Pehlevan(a0=-1), "Pehlevan.a0 is -1"),
        (lambda: ah.Potential(dt=-0.01), "Potential.dt is -0.01"),
        (lambda: ah.Asynchronous(r_b=-1), "Asynchronous.r_b is -1; it must be a number of at least 0"),
        (lambda: ah.Asynchronous(r_r=-1), "Asynchronous.r_r is -1"),
        (lambda: ah.Bars(6, probability=1.5), "Bars.probability is 1.5; it must be a number from 0 to 1"),
        (lambda: ah.Squares(5), "Squares.p is 5; it must be a whole number of at least 6"),
        (lambda: ah.Gaussian(rectified="yes"), "Gaussian.rectified is 'yes'; it must be True or False"),
        (lambda: ah.FromArray(X * 3), "FromArray.data holds 1.5"),
        (lambda: ah.FromArray(X[0]), r"FromArray.data has shape \(4,\)"),
        (lambda: ah.Patches(400).sample(np.random.default_rng(0), 1), "Patches.p is 400; the smallest photograph"),
        (lambda: ah.Phase(ah.Crossbars(6), samples=0), "Phase.samples is 0"),
        (lambda: ah.Phase(ah.Crossbars(6), 5, hold=0), "Phase.hold is 0"),
        (lambda: ah.Run(NETWORK, ()), "phases is empty"),
        (lambda: ah.Run(NETWORK, ah.Phase(ah.Crossbars(6), 5)), "36 pixels; the network's m is 4, it must be 36"),
        (lambda: ah.Run(NETWORK, (ah.Crossbars(6),)), r"phases holds Crossbars\(p=6\); it must hold only Phase"),
        (lambda: ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5), seed=-1), "seed is -1"),
        (lambda: ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5), trace=("W",)), "trace is 'W'"),
        (lambda: ah.Run(NETWORK, ah.Phase("Crossbars", 5)), "stimulus is 'Crossbars'; it must be a value with sample"),
        (lambda: ah.metrics.gini(np.array([-1.0])), "activity holds -1.0; all must be at least 0"),
        (lambda: ah.metrics.weight_similarity(X, X.T), "both must be the same"),
        (lambda: ah.metrics.count_fields(X, ah.Digits(2)), "must be a set of known factors: Crossbars, Bars"),
        (lambda: ah.metrics.count_fields(X, ah.Crossbars(6)), r"W has shape \(3, 4\); .* must be \(n, 36\)"),
        (lambda: ah.metrics.forgetting(np.ones((1, 1))), r"E has shape \(1, 1\)"),
        (lambda: ah.reconstruction_error(NETWORK, STATE, X[:0]), "X holds no stimulus"),
        # Numbers that would be saved as text that cannot be read back, that overflow, or that are none
        (lambda: ah.Oja(eta=10**400), "Oja.eta is 1000.*…; it must be a finite number"),
        (lambda: ah.Oja(eta=np.timedelta64(1, "s")), "Oja.eta is .*timedelta64.*; it must be a finite number"),
        (
            lambda: ah.Crossbars(p=2**63),
            "Crossbars.p is .*; it must be a whole number of at most 9,223,372,036,854,775,807",
        ),
        (
            lambda: ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5), dtype=None),
            "dtype is None; it must be float32 or float64",
        ),
        (lambda: ah.Network(n=2**31).init(np.random.default_rng(0)), "n is 2147483648; it must be smaller: .* memory"),
        # What would count as empty, or be taken letter by letter
        (lambda: ah.Run(NETWORK, None), "phases is None; it must be a Phase, or a list of them"),
        (lambda: ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5), ""), "probes is ''; it must be a Probe"),
        (
            lambda: ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5), trace={}),
            "trace is {}; it must be a tuple of names out of",
        ),
        (lambda: ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5), trace=None), "trace is None; it must be a tuple"),
        (lambda: ah.error_matrix(NETWORK, "", [X]), "states is ''; it must be a State, or a list of them"),
        (lambda: ah.error_matrix(NETWORK, [STATE], []), "sets is empty; it must hold at least one"),
        # Arrays that NumPy takes for numbers
        (lambda: ah.metrics.weight_similarity(1j * X, X), "A has dtype complex128; it must hold real numbers"),
        (lambda: ah.metrics.gini(np.ma.array([1.0, 2.0], mask=[0, 1])), "activity has masked entries"),
        (lambda: ah.metrics.duplicate_units(with_value(np.nan)), "W holds nan; it must hold finite numbers"),
        (lambda: ah.metrics.residual(with_value(1e200), X), "X holds 1e\\+200; it must hold finite numbers between"),
        (lambda: ah.metrics.duplicate_units(X, threshold=-1), "threshold is -1; it must be a number from 0 to 1"),
        (lambda: ah.metrics.forgetting([[0.1, np.nan], [0.2, 0.3]]), "E holds nan"),
        (lambda: ah.FromArray(np.ma.array(X, mask=X > 0)), "FromArray.data has masked entries"),
        (lambda: ah.OnOff().fit(np.ma.array(X, mask=X > 0)), "X has masked entries; it must hold real numbers alone"),
        (lambda: ah.OnOff().fit(X.astype("m8[s]")), r"X has dtype timedelta64\[s\]; it must hold real numbers alone"),
        # Other things
        (lambda: ah.advance(NETWORK, X, X, 1), "state is .*; it must be a State"),
        (lambda: ah.respond(None, STATE, X), "network is None; it must be a Network"),
        (lambda: ah.simulate(None), "run is None; it must be a Run"),
        (lambda: ah.Crossbars(6).sample(0, 3), r"rng is 0; it must be a generator: np.random.default_rng\(seed\)"),
        (lambda: ah.state_at({}), "dataset is {}; it must be a saved run"),
        (
            lambda: ah.plot.fields(STATE, width=0),
            "width is 0; it must be single, double or a number of inches from 1 to 300",
        ),
        (lambda: ah.sweep(RUN, "x", "out"), "vary is 'x'; it must be a dict of values by the names of fields"),
        (lambda: ah.sweep(RUN, {3: [0]}, "out"), "vary is {3: .*}; it must be a dict"),
        (lambda: ah.sweep(RUN, {"seed": 3}, "out"), "vary gives seed 3; it must be given a list of values"),
        (lambda: ah.sweep(RUN, {"seed": [0]}, "out", zip=3), "zip is 3; it must be a list of names"),
        (lambda: ah.sweep(RUN, {"seed": [0]}, "out", workers=10**6), "workers is 1000000; .* at most 1,024"),
        (lambda: ah.search(RUN, {"rule.eta": [0.1]}, "out", sampler=3), "sampler is 3; it must be adaptive, random or"),
        (lambda: ah.open_run("nowhere.nc"), "path is 'nowhere.nc'; it must be a run .* there is no such file"),
        (lambda: ah.record(None, "x"), "run is None; it must be a Run"),
    ],
)
def test_it_is_refused_in_a_sentence(call, said):
    with pytest.raises(ah.InputError, match=said) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("path", [None, 3, b"x.nc", "a\0b.nc", "\ud800.nc", "x" * 300 + ".nc", "s3://bucket/x.nc", ""])
def test_what_cannot_be_a_path_is_refused_everywhere(path):
    doors = (
        lambda: ah.record(RUN, path),
        lambda: ah.open_run(path),
        lambda: ah.save_model(None, path),
        lambda: ah.load_model(path),
        lambda: ah.sweep(RUN, {"seed": [0]}, path, progress=False),
        lambda: ah.search(RUN, {"rule.eta": [0.1]}, path, sampler="random", progress=False),
        lambda: ah.open_sweep(path),
    )
    for door in doors:
        with pytest.raises(ah.InputError, match="must be the path of a file or folder on this machine"):
            door()


def test_a_number_in_other_clothes_is_the_number():
    for eta in (np.float64(0.25), np.longdouble(0.25), Fraction(1, 4), np.float32(0.25)):
        assert repr(ah.Oja(eta)) == "Oja(eta=0.25)" and type(ah.Oja(eta).eta) is float
    assert repr(ah.Asynchronous(r_r=np.int8(100))) == "Asynchronous(r_b=1.0, r_r=100)"
    expected, _ = ah.advance(NETWORK, STATE, X, 100)
    for hold in (np.int8(100), np.uint64(100)):
        assert repr(ah.Phase(ah.Crossbars(6), 5, hold)) == repr(ah.Phase(ah.Crossbars(6), 5, 100))
        np.testing.assert_array_equal(ah.advance(NETWORK, STATE, X, hold)[0].W, expected.W)
        np.testing.assert_array_equal(
            ah.respond(NETWORK, STATE, X, hold).errors, ah.respond(NETWORK, STATE, X, 100).errors
        )
    model, same = (ah.AsyncHebbian(5, hold=kind(100), settle=kind(100), random_state=0) for kind in (int, np.int8))
    np.testing.assert_array_equal(model.fit_transform(X), same.fit_transform(X))


def test_an_error_shows_any_value_in_one_line():
    class Hidden:
        def __repr__(self):
            raise RuntimeError

    for value in (Hidden(), "9" * 100_000, np.zeros((100, 100)), 10**5000):
        with pytest.raises(ah.InputError, match=r"eta is .{,120}; it must be a finite number$"):
            ah.Oja(value)


def test_a_plot_says_which_measure_a_run_lacks(tmp_path):
    probe = ah.Probe(ah.FromArray(X), 2, 5, measures=("hoyer",))
    with ah.record(ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 2, 5, 1), probe), tmp_path / "one.nc") as dataset:
        for plot, missing in ((ah.plot.error, "error"), (ah.plot.activity, "mean_activity"), (ah.plot.run, "error")):
            with pytest.raises(
                ah.InputError, match=f"source has no {missing}; it must be a run whose probes record it"
            ):
                plot(dataset)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("asynchebb.runs.recording.work", lambda *a, **k: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    run = ah.Run(NETWORK, ah.Phase(ah.FromArray(X), 5))
    for path in (tmp_path / "file" / "runs", Path("/proc/nowhere")):
        with pytest.raises(ah.InputError, match="must be a writable folder"):
            ah.record(run, path)
