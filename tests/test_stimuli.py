"""Stimuli: what is shown, and the factors it is made of."""

import numpy as np
import pytest

import asynchebb as ah
from asynchebb import notation

SETS = [cls(6) for name, cls in notation.variants("stimulus").items() if name != "FromArray"]
FACTORED = [stimulus for stimulus in SETS if hasattr(stimulus, "factors")]


@pytest.mark.parametrize("stimulus", [*SETS, ah.FromArray(np.eye(36))], ids=repr)
def test_samples_are_images_in_0_to_1_and_the_same_for_the_same_seed(stimulus):
    X = stimulus.sample(np.random.default_rng(0), 50)
    assert X.shape == (50, stimulus.m) and stimulus.m == np.prod(stimulus.shape)
    assert X.min() >= 0 and X.max() <= 1 and X.any()
    assert np.array_equal(X, stimulus.sample(np.random.default_rng(0), 50))
    assert not np.array_equal(X, stimulus.sample(np.random.default_rng(1), 50))
    assert stimulus.sample(np.random.default_rng(0), 0).shape == (0, stimulus.m)


@pytest.mark.parametrize(("stimulus", "parts"), [(ah.Crossbars(6), 2), (ah.Diagonals(6), 2), (ah.Squares(14), 3)])
def test_each_image_is_the_union_of_so_many_factors(stimulus, parts):
    factors = stimulus.factors().astype(bool)
    for x in stimulus.sample(np.random.default_rng(0), 100).astype(bool):
        inside = [factor for factor in factors if not (factor & ~x).any()]
        assert len(inside) == parts and np.array_equal(np.any(inside, axis=0), x)


def test_a_cross_is_one_row_and_one_column():
    images = ah.Crossbars(5).sample(np.random.default_rng(0), 200).reshape(-1, 5, 5)
    assert (images.all(axis=2).sum(axis=1) == 1).all() and (images.all(axis=1).sum(axis=1) == 1).all()
    assert (images.sum(axis=(1, 2)) == 9).all()
    shown = {(int(i.all(axis=1).argmax()), int(i.all(axis=0).argmax())) for i in images}
    assert len(shown) == 25  # each of them, sooner or later


def test_bars_appear_independently_with_their_probability():
    bars = ah.Bars(6, probability=0.3)
    X = bars.sample(np.random.default_rng(0), 4000).reshape(-1, 6, 6)
    assert X.all(axis=2).mean() == pytest.approx(0.3, abs=0.03)
    assert not ah.Bars(6, probability=0.0).sample(np.random.default_rng(0), 5).any()


@pytest.mark.parametrize("stimulus", FACTORED, ids=repr)
def test_factors_are_different_images_of_the_sets_own_size(stimulus):
    factors = stimulus.factors()
    assert factors.shape[1] == stimulus.m
    assert len(np.unique(factors, axis=0)) == len(factors)


def test_squares_lie_apart_on_the_papers_image():
    assert ah.Squares(14).factors().sum(axis=0).max() == 1 and len(ah.Squares(14).factors()) == 16


def test_patches_hold_one_sign_in_each_channel():
    on, off = ah.Patches(8).sample(np.random.default_rng(0), 500).reshape(500, 2, 64).transpose(1, 0, 2)
    assert not (on * off).any() and on.any() and off.any()


def test_patches_are_whitened():
    """Power at a twenty-fifth of the sampling frequency over that at a quarter: of order 100 in photographs."""
    patches = ah.Patches(48).sample(np.random.default_rng(0), 400).reshape(-1, 2, 48, 48)
    power = np.abs(np.fft.fft2(patches[:, 0] - patches[:, 1])).mean(axis=0) ** 2
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(48), np.fft.fftfreq(48)))
    low, high = power[(f > 0.03) & (f < 0.05)].mean(), power[(f > 0.2) & (f < 0.3)].mean()
    assert 0.1 < low / high < 10


def test_an_array_is_shown_row_by_row_from_memory_or_from_a_file(tmp_path):
    images = np.random.default_rng(0).random((7, 3, 4))
    np.save(tmp_path / "images.npy", images)
    from_memory, from_file = ah.FromArray(images), ah.FromArray(str(tmp_path / "images.npy"))
    for stimulus in (from_memory, from_file):
        X = stimulus.sample(np.random.default_rng(0), 40)
        assert stimulus.shape == (3, 4) and stimulus.m == 12
        assert {x.tobytes() for x in X} == {x.tobytes() for x in images.reshape(7, 12)}
    assert from_memory.digest == from_file.digest
    assert ah.FromArray(np.zeros((2, 16))).shape == (4, 4) and ah.FromArray(np.zeros((2, 15))).shape == (1, 15)
