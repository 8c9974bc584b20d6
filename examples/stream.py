"""Real-time learning: a gaze drifts over a photograph, and the network learns from each frame exactly once."""

import time
from collections.abc import Iterator

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image

import asynchebb as ah
from asynchebb.drawing import figures

SIDE = 12


def video(frames: int, seed: int = 0) -> Iterator[np.ndarray]:
    """What an eye sees: a window that drifts by a pixel or two per frame and occasionally jumps elsewhere."""
    grey = load_sample_image("china.jpg").mean(axis=2)
    contrast = gaussian_filter(grey, 1) - gaussian_filter(grey, 3)  # centre minus surround, as in a retina
    room, rng = np.array(contrast.shape) - SIDE, np.random.default_rng(seed)
    place, speed = rng.random(2) * room, rng.normal(size=2)
    for _ in range(frames):
        if rng.random() < 0.05:
            place, speed = rng.random(2) * room, rng.normal(size=2)
        place = np.clip(place + speed, 0, room)
        top, left = place.astype(int)
        yield contrast[top : top + SIDE, left : left + SIDE]


def main(frames: int = 40_000, picture: str = "stream.png") -> list[float]:
    split = ah.OnOff()
    seen = split.fit_transform(np.stack([*video(500, seed=1)]))  # a first look around, for the scale and for testing
    model = ah.AsyncHebbian(100, hold=50, r_b=2, random_state=0).begin(seen)
    errors, started = [1 - model.score(seen)], time.perf_counter()
    for number, frame in enumerate(video(frames), 1):
        model.partial_fit(split.transform(frame[None]))  # one frame, 50 Euler steps; activity carries over
        if number % max(1, frames // 10) == 0:
            errors.append(1 - model.score(seen))
    rate = frames / (time.perf_counter() - started)
    print(f"{rate:,.0f} frames per second; error {errors[0]:.3f} before, {errors[-1]:.3f} after {frames:,} frames")

    model.set_params(learning=False)  # from now on only the activity follows the stream
    for frame in video(100, seed=2):
        model.partial_fit(split.transform(frame[None]))
    print(f"{np.count_nonzero(model.activity_)} neurons are active at the last frame")
    figures.save(figures.fields(model.components_, (2, SIDE, SIDE), model.transform(seen).mean(axis=0)), picture)
    return errors


if __name__ == "__main__":
    main()
