"""Input data as rows of numbers: images, sparse matrices and arrays, brought to a common form and scale."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from asynchebb.checks import InputError, shown

# choice: data are scaled to the root mean square norm of the paper's stimuli, crosses of 14 × 14 pixels. The rates of a
# settled network have about the norm of its input, so a threshold r_b means the same for any data.
NORM = 27**0.5

# What scikit-learn's users pass as data.
Samples = ArrayLike | sparse.spmatrix | sparse.sparray

ROWS = 4096  # samples converted to the network's precision at a time

# A sample whose norm is so many times the median is an outlier, if there are few of them. One of a thousand times the
# median would otherwise make all others too weak to learn from.
OUTLYING, FEW = 10.0, 0.01


class Outliers(UserWarning):
    """Some samples are so much stronger than the others that they would ruin what is learned from those.

    >>> import warnings
    >>> warnings.simplefilter("error", ah.Outliers)  # stop instead of warning
    """


def norm_scale(X: Any, outlying: np.ndarray | None = None) -> float:
    """The divisor that brings the root mean square norm of the rows, without outliers, to NORM."""
    outlying = outliers(row_norms(X)) if outlying is None else outlying
    if outlying.any():
        X = X[~outlying]
    largest = float(X.max())  # squares of very large or very small numbers would overflow or underflow
    squares = sum(float(np.sum(np.square(block / largest))) for block in dense_blocks(X))
    return largest * (squares / X.shape[0]) ** 0.5 / NORM


def outliers(norms: np.ndarray) -> np.ndarray:
    """Which rows are outliers, by their norms."""
    outlying = strong(norms)
    return outlying & (outlying.sum() <= max(1, FEW * len(norms)))


def strong(norms: np.ndarray) -> np.ndarray:
    """Which rows are much stronger than most; if there are more than a few, they are no outliers."""
    return norms > OUTLYING * np.median(norms[norms > 0])


def warn_of_outliers(norms: np.ndarray, outlying: np.ndarray, stacklevel: int) -> None:
    """Name the outliers; `norms` are relative to the usual one."""
    numbers = np.flatnonzero(outlying)
    named = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    times = f"{norms.max():,.0f}" if norms.max() < 1e12 else f"{norms.max():.3g}"
    warnings.warn(
        f"{len(numbers)} of {len(norms):,} samples (number {named}) have up to {times} times the usual norm; they "
        f"are shown with {OUTLYING:.0f} times it. Remove or clip them, or set scale",
        Outliers,
        stacklevel=stacklevel,
    )


def warn_of_mixture(mixed: np.ndarray, stacklevel: int) -> None:
    """Some samples are strong, and too many to be outliers."""
    warnings.warn(
        f"{np.count_nonzero(mixed):,} of {len(mixed):,} samples have more than {OUTLYING:.0f} times the median norm, "
        "too many to be outliers; little is learned from the others. Scale samples alike, or set scale",
        Outliers,
        stacklevel=stacklevel,
    )


def row_norms(X: Any) -> np.ndarray:
    norms = []
    for block in dense_blocks(X):  # each row by its own largest number, whose square may be too large or too small
        largest = block.max(axis=1)
        with np.errstate(over="ignore"):
            norms.append(largest * np.linalg.norm(block / np.where(largest > 0, largest, 1)[:, None], axis=1))
    return np.concatenate(norms)


def real(estimator: Any, X: Any) -> Any:
    """X, unless scikit-learn would take what is no array of real numbers, or fail to say what it is."""
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is an iterator ({type(X).__name__}), which {type(estimator).__name__} cannot use directly; pass its "
            "batches one by one: for batch in X: model.partial_fit(batch)"
        )
    if isinstance(X, type) or not any(hasattr(X, part) for part in ("__len__", "shape", "__array__")):
        raise InputError(f"X is {shown(X)}; it must be an array (samples, features) or (samples, height, width)")
    if np.ma.is_masked(X) or getattr(getattr(X, "dtype", None), "kind", "f") in "mMV":
        what = "masked entries" if np.ma.is_masked(X) else f"dtype {X.dtype}"
        raise InputError(f"X has {what}; it must hold real numbers alone")
    return X


def floats(X: Any) -> Any:
    """Numbers in float64, or in float32 as they are. (If scikit-learn is asked for these, it takes texts as well.)"""
    return X if X.dtype in (np.float64, np.float32) else X.astype(np.float64)


def flat(estimator: Any, X: Any, reset: bool) -> tuple[Any, tuple[int, ...] | None]:
    """Images as rows, and their shape, which must be the fitted one unless `reset`; other data unchanged, and None."""
    X, name = real(estimator, X), type(estimator).__name__
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
        shapes = {np.shape(image) for image in X}
        if len(shapes) > 1:
            raise ValueError(
                f"X is a list of images of shapes {', '.join(map(str, sorted(shapes)))}; all must have the same shape"
            )
        X = np.stack(X)
    dimensions = getattr(X, "ndim", 0)
    if dimensions > 3:
        raise ValueError(f"X has shape {X.shape}; it must be (samples, features) or (samples, height, width)")
    fitted = None if reset else estimator.image_shape_
    if fitted is not None and tuple(getattr(X, "shape", ())) == fitted:
        raise ValueError(f"X has shape {X.shape}, which is a single image; pass it as a batch of one: X[None]")
    if dimensions < 3 or sparse.issparse(X):
        return X, None
    X = np.asanyarray(X)
    shape = tuple(X.shape[1:])
    if fitted is not None and shape != fitted:
        raise ValueError(f"X has images of shape {shape}; {name} was fitted on {fitted}")
    return X.reshape(len(X), prod(shape)), shape


def dense_blocks(X: Any) -> Iterator[np.ndarray]:
    for start in range(0, X.shape[0], ROWS):
        block = X[start : start + ROWS]
        yield np.asarray(block.toarray() if sparse.issparse(block) else block, np.float64)
