"""Stimulus sets: `sample(rng, count)` returns (count, m) images in [0, 1].

`shape` is the image shape of the m pixels: (height, width), or (2, height, width) where ON and OFF
channels hold the two signs of one image. A set composed of known parts has `factors()`, one image
per row.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path

import numpy as np

from asynchebb import checks, thumbnails
from asynchebb.checks import InputError, at_least, checked, fraction, shown


class _Stimulus:
    """Base class of the sets, which says how they are drawn and shown in a notebook."""

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw so many images, one per row."""
        if not isinstance(rng, np.random.Generator):
            raise InputError(f"rng is {shown(rng)}; it must be a generator: np.random.default_rng(seed)")
        count = at_least(0)("count", count)
        name, value = ("p", self.p) if hasattr(self, "p") and self.m > count else ("count", count)
        checks.memory(name, value, 8.0 * count * self.m)
        return self._draw(rng, count)

    @property
    def m(self) -> int:
        raise NotImplementedError

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return thumbnails.stimulus(self)


class _Image(_Stimulus):
    """Base class of square images of p × p pixels."""

    p: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.p, self.p)

    @property
    def m(self) -> int:
        return prod(self.shape)


def _places(p: int, factors: int) -> np.ndarray:
    """The row and the column of each pixel, for this many factors of a p × p image."""
    checks.memory("p", p, 9.0 * factors * p * p)  # a byte and a number for each pixel
    return np.indices((p, p)).reshape(2, -1)


def _bars(p: int) -> np.ndarray:
    """The p rows, then the p columns, of a p × p image."""
    row, column = _places(p, 2 * p)
    return np.concatenate([row == np.arange(p)[:, None], column == np.arange(p)[:, None]]) * 1.0


def _one_of_each_half(factors: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Images that combine a random factor from the first half with one from the second."""
    half = len(factors) // 2
    first, second = rng.integers(half, size=(count, 2)).T
    return np.maximum(factors[first], factors[half + second])


@dataclass(frozen=True)
@checked(p=at_least(2))
class Crossbars(_Image):
    """One random row and one random column of a p × p image (the paper's "Földiák's bars").

    >>> bars = ah.Crossbars(4)
    >>> bars.sample(np.random.default_rng(1), 1).reshape(4, 4).astype(int)
    array([[0, 0, 1, 0],
           [1, 1, 1, 1],
           [0, 0, 1, 0],
           [0, 0, 1, 0]])
    >>> bars.factors().shape  # four rows and four columns
    (8, 16)
    """

    p: int = 14

    def factors(self) -> np.ndarray:
        return _bars(self.p)

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return _one_of_each_half(self.factors(), rng, count)


@dataclass(frozen=True)
@checked(p=at_least(2), probability=fraction)
class Bars(_Image):
    """Each of the 2p rows and columns of a p × p image appears independently (Földiák 1990).

    >>> X = ah.Bars(8, probability=0.125).sample(np.random.default_rng(0), 1000)
    >>> round(float(X.mean()), 1)  # 1 − (1 − 0.125)²
    0.2
    """

    p: int = 14
    probability: float = 0.125

    def factors(self) -> np.ndarray:
        return _bars(self.p)

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        shown = rng.random((count, 2 * self.p)) < self.probability
        return np.minimum(shown @ _bars(self.p), 1.0)


@dataclass(frozen=True)
@checked(p=at_least(2))
class Diagonals(_Image):
    """One wrapped diagonal and one wrapped anti-diagonal of a p × p image (our choice of set).

    >>> ah.Diagonals(4).factors()[1].reshape(4, 4).astype(int)
    array([[0, 1, 0, 0],
           [0, 0, 1, 0],
           [0, 0, 0, 1],
           [1, 0, 0, 0]])
    """

    p: int = 14

    def factors(self) -> np.ndarray:
        row, column = _places(self.p, 2 * self.p)
        offset = np.arange(self.p)[:, None]
        diagonals = (column - row) % self.p == offset
        return np.concatenate([diagonals, (column + row) % self.p == offset]) * 1.0

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return _one_of_each_half(self.factors(), rng, count)


@dataclass(frozen=True)
@checked(p=at_least(6))
class Squares(_Image):
    """Three of sixteen 3 × 3 blocks on a 4 × 4 grid of positions (our choice of set).

    >>> squares = ah.Squares(14)
    >>> len(squares.factors()), squares.sample(np.random.default_rng(0), 5).sum(axis=1).max()
    (16, np.float64(27.0))
    """

    p: int = 14

    def factors(self) -> np.ndarray:
        row, column = _places(self.p, 16)
        corner = np.arange(4) * (self.p - 3) // 3
        top, left = (z.reshape(-1, 1) for z in np.meshgrid(corner, corner, indexing="ij"))
        inside = (row >= top) & (row < top + 3) & (column >= left) & (column < left + 3)
        return inside * 1.0

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        blocks = rng.permuted(np.tile(np.arange(16), (count, 1)), axis=1)[:, :3]
        return self.factors()[blocks].max(axis=1)


@dataclass(frozen=True)
@checked(p=at_least(2))
class Digits(_Image):
    """scikit-learn's 1,797 handwritten digits, resampled from 8 × 8 to p × p.

    >>> ah.Digits(8).sample(np.random.default_rng(0), 5).shape
    (5, 64)
    """

    p: int = 14

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        images = _digits(self.p)
        return images[rng.integers(len(images), size=count)]


@lru_cache(maxsize=4)
def _digits(p: int) -> np.ndarray:
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    images = load_digits().images / 16.0
    return zoom(images, (1, p / 8, p / 8), order=1).clip(0, 1).reshape(len(images), p * p)


@dataclass(frozen=True)
@checked(p=at_least(2))
class Patches(_Image):
    """Whitened p × p patches of photographs, split by sign into an ON and an OFF channel (m = 2p²).

    The photographs ship with scikit-image and scikit-learn. Whitening follows Olshausen & Field
    (1997); three standard deviations map to 1, and larger values are clipped.

    >>> patches = ah.Patches(8)
    >>> patches.m, patches.shape
    (128, (2, 8, 8))
    """

    p: int = 14

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, self.p, self.p)

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        photographs = _whitened_photographs()
        smallest = min(min(image.shape) for image in photographs)
        if self.p > smallest:
            raise InputError(f"Patches.p is {self.p}; the smallest photograph has {smallest} pixels a side")
        X = np.empty((count, 2, self.p * self.p))
        for x in X:
            image = photographs[rng.integers(len(photographs))]
            top, left = (rng.integers(side - self.p + 1) for side in image.shape)
            z = image[top : top + self.p, left : left + self.p].ravel() / 3.0
            x[:] = np.clip(z, 0, 1), np.clip(-z, 0, 1)
        return X.reshape(count, self.m)


@lru_cache(maxsize=1)
def _whitened_photographs() -> list[np.ndarray]:
    try:
        from skimage import color, data
    except ImportError:
        raise InputError("Patches needs scikit-image: pip install 'asynchebb[images]'") from None
    from sklearn.datasets import load_sample_images

    names = "camera", "astronaut", "chelsea", "coffee", "rocket", "grass"
    photographs = [getattr(data, name)() for name in names] + load_sample_images().images
    whitened = []
    for image in photographs:
        grey = color.rgb2gray(image) if image.ndim == 3 else image / 255.0
        # R(f) = f exp(−(f/f₀)⁴): flattens the 1/f spectrum and removes aliased frequencies.
        f = np.hypot(*np.meshgrid(*map(np.fft.fftfreq, grey.shape), indexing="ij"))
        z = np.fft.ifft2(np.fft.fft2(grey) * f * np.exp(-((f / 0.4) ** 4))).real
        whitened.append(z / z.std())
    return whitened


@dataclass(frozen=True, eq=False)
class FromArray(_Stimulus):
    """Rows of your own array, or of a .npy file, drawn at random with replacement.

    `data` is (samples, m) or (samples, height, width), in [0, 1].

    >>> images = np.random.default_rng(0).random((20, 6, 6))
    >>> stimulus = ah.FromArray(images)
    >>> stimulus.m, stimulus.sample(np.random.default_rng(1), 3).shape
    (36, (3, 36))
    """

    data: np.ndarray | str

    def __post_init__(self) -> None:
        self.rows  # noqa: B018  a bad array is rejected immediately
        if not isinstance(self.data, str | Path):
            object.__setattr__(self, "data", self._array)

    @cached_property
    def _array(self) -> np.ndarray:
        """The data as they are now, read-only: whoever changes an array later changes neither stimulus nor identity."""
        try:
            if not isinstance(self.data, str | Path):
                array = np.array(checks.array("FromArray.data", self.data, "(samples, m) or images"), order="C")
            elif not isinstance(array := np.load(self.data), np.ndarray):
                raise ValueError("it holds several arrays")
            array.flags.writeable = False
            return array
        except InputError:
            raise
        except Exception:  # NumPy's, of the file system, or of a zip file
            raise InputError(
                f"FromArray.data is {shown(self.data)}; it must be an array of numbers or a .npy file with one"
            ) from None

    @cached_property
    def rows(self) -> np.ndarray:
        array = self._array
        if array.ndim not in (2, 3) or not array.size:
            raise InputError(
                f"FromArray.data has shape {array.shape}; it must be (samples, m) or (samples, height, width)"
            )
        return checks.stimuli("FromArray.data", array.reshape(len(array), -1))

    @property
    def shape(self) -> tuple[int, ...]:
        if self._array.ndim == 3:
            return self._array.shape[1:]
        return thumbnails.guessed_shape(self.m)

    @property
    def m(self) -> int:
        return self.rows.shape[1]

    @cached_property
    def digest(self) -> str:
        """The same for the same images, wherever they were read from."""
        content = np.ascontiguousarray(self.rows, np.float64).tobytes()
        return hashlib.sha256(repr((self.rows.shape, self.shape)).encode() + content).hexdigest()

    def __repr__(self) -> str:
        if isinstance(self.data, str | Path):
            return f"FromArray({str(self.data)!r})"
        return f"FromArray(<array of shape {self._array.shape}>)"

    def _draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return self.rows[rng.integers(len(self.rows), size=count)] * 1.0
