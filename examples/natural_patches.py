"""Learn from patches of a photograph, whose signed contrasts are split into an ON and an OFF channel."""

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.pipeline import make_pipeline

import asynchebb as ah
from asynchebb.drawing import figures


def contrasts() -> np.ndarray:
    """A photograph as filtered by a retina: centre minus surround."""
    grey = load_sample_image("china.jpg").mean(axis=2)
    return gaussian_filter(grey, 1) - gaussian_filter(grey, 3)


def main(samples: int = 10_000, picture: str = "natural_patches.png") -> float:
    patches = extract_patches_2d(contrasts(), (12, 12), max_patches=samples, random_state=0)  # (samples, 12, 12)
    model = make_pipeline(ah.OnOff(), ah.AsyncHebbian(144, r_b=2, max_iter=2, random_state=0)).fit(patches)

    codes = model.transform(patches[:1000])
    again = model.inverse_transform(codes)  # back to signed patches
    error = float(np.sum((again - patches[:1000]) ** 2) / np.sum(patches[:1000] ** 2))
    active = np.count_nonzero(codes) / codes.size
    print(f"squared error {error:.2f} relative to the patches, {active:.2f} of the neurons active at a time")
    figures.save(figures.fields(model[-1].components_, (2, 12, 12), codes.mean(axis=0)), picture)
    return error


if __name__ == "__main__":
    main()
