"""Gabor functions: a wave under a Gaussian envelope, like the fields of simple cells (Jones & Palmer 1987)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asynchebb.drawing import figures
from asynchebb.reproduction.results import Kept, most_active

BINS = 8  # for orientations
GOOD_FIT = 0.5  # share of a field's variance that a Gabor function explains


class Fit(NamedTuple):
    explained: float  # share of the field's variance
    orientation: float  # of the wave's crests, 0 to π
    width: float  # of the envelope, √(σ_x σ_y), in pixels
    frequency: float  # cycles per pixel


def gabor(pixels: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """a exp(−x'²/2σ_x² − y'²/2σ_y²) cos(2πf x' + φ), where x' is across the crests and y' along them.

    `pixels` are np.indices of the picture's shape.
    """
    a, row, column, log_x, log_y, theta, f, phi = parameters
    y, x = pixels[0] - row, pixels[1] - column
    across, along = x * np.cos(theta) + y * np.sin(theta), y * np.cos(theta) - x * np.sin(theta)
    envelope = np.exp(-((across / np.exp(log_x)) ** 2 + (along / np.exp(log_y)) ** 2) / 2)
    return a * envelope * np.cos(2 * np.pi * f * across + phi)


def fit(field: np.ndarray) -> Fit:
    """The Gabor function closest to the field: a least-squares fit that starts from its centre and strongest wave."""
    from scipy.optimize import least_squares

    field = np.asarray(field, float)
    field = field / max(np.abs(field).max(), 1e-300)
    height, width = field.shape
    variance = float(np.sum((field - field.mean()) ** 2))
    if variance == 0:
        return Fit(0.0, 0.0, float(min(field.shape)), 0.0)
    pixels = np.indices(field.shape, float)
    energy = field**2 / np.sum(field**2)
    row, column = (float((energy * along).sum()) for along in pixels)
    # Start from the wave at the peak of the field's Fourier transform, finely sampled.
    spectrum = np.abs(np.fft.fft2(field, (64, 64)))
    spectrum[0, 0] = 0
    down, right = (np.fft.fftfreq(64)[k] for k in np.unravel_index(spectrum.argmax(), spectrum.shape))
    theta, f = float(np.arctan2(down, right)), float(np.hypot(down, right))
    side = min(height, width)
    low = [-4, -0.5, -0.5, np.log(0.5), np.log(0.5), -2 * np.pi, 0.01, -4 * np.pi]
    high = [4, height - 0.5, width - 0.5, np.log(2 * side), np.log(2 * side), 2 * np.pi, 0.5, 4 * np.pi]
    best = None
    for phi in (0.0, np.pi / 2):  # the amplitude may be negative
        start = np.clip([1, row, column, np.log(side / 5), np.log(side / 5), theta, f, phi], low, high)
        found = least_squares(lambda p: (gabor(pixels, p) - field).ravel(), start, bounds=(low, high), max_nfev=40)
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    _, _, _, log_x, log_y, theta, f, _ = best.x
    explained = 1 - 2 * best.cost / variance
    return Fit(float(explained), float((theta + np.pi / 2) % np.pi), float(np.exp((log_x + log_y) / 2)), float(f))


def oriented(kept: Kept, snapshot: int = -1) -> dict[str, Any]:
    """How well Gabor functions fit the most active neurons' fields, and the orientations of those that they fit."""
    fits = [fit(field) for field in _fields(kept, snapshot)]
    good = [found for found in fits if found.explained > GOOD_FIT]
    side = figures.picture_shape(kept)[-1]
    angles = [found.orientation for found in good]
    return {
        "good": len(good) / len(fits),
        "width": float(np.median([found.width for found in good])) / side if good else 1.0,
        "orientations": float(np.count_nonzero(np.histogram(angles, BINS, (0, np.pi))[0])),
        "angles": angles,
        "explained": [found.explained for found in fits],
    }


def _fields(kept: Kept, snapshot: int) -> np.ndarray:
    """Fields of the most active neurons, ON minus OFF."""
    W = np.asarray(kept["W"][snapshot])[most_active(kept)]
    fields = W.reshape(len(W), *figures.picture_shape(kept))
    return fields[:, 0] - fields[:, 1]
