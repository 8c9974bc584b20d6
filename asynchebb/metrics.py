"""Metrics of weights and rates: the paper's (App. E) and others, in float64.

Arrays in, numbers out: nothing here runs a network (`runs/testing.py` does). The measures recorded for a run are
declared in `measures.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asynchebb import stimuli
from asynchebb.checks import InputError, fraction, matrix, shown
from asynchebb.contracts import FactoredStimulus

# A field whose cosine with a template exceeds this counts as that template.
MATCH = 0.85


class Fields(NamedTuple):
    """How many receptive fields show one factor, a pair of factors or neither, and how many factors are shown.

    >>> bars = ah.Crossbars(6)
    >>> ah.metrics.count_fields(bars.factors(), bars)
    Fields(single=12, mixed=0, unstructured=0, distinct=12)
    """

    single: int
    mixed: int
    unstructured: int
    distinct: int


class Similarity(NamedTuple):
    """A mean over all neurons, and over the active ones alone.

    >>> W = np.eye(2)
    >>> ah.metrics.mean_similarity(W, W, activity=np.array([1.0, 0.0]))
    Similarity(all=1.0, active=1.0)
    """

    all: float
    active: float


def reconstruction_cosines(W: np.ndarray, x: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """How well Wᵀy points to the stimulus x, for each row y of Y (App. E1); 0 where x or Wᵀy is zero.

    cos(x, Wᵀy) = x · Wᵀy / (|x| |Wᵀy|)

    >>> W, x, Y = np.eye(2), np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> ah.metrics.reconstruction_cosines(W, x, Y)
    array([1., 0.])
    """
    W, Y, x = matrix("W", W), matrix("Y", Y, "(samples, n)"), matrix("x", x, "(m,)")
    if W.shape != (Y.shape[1], len(x)):
        raise InputError(f"W has shape {W.shape}; for these x and Y it must be {Y.shape[1], len(x)}")
    on = Y.any(axis=0)  # silent neurons add nothing to Wᵀy
    reconstructed = Y[:, on] @ W[on] if 2 * np.count_nonzero(on) < len(W) else Y @ W
    norms = np.sqrt(np.einsum("ij,ij->i", reconstructed, reconstructed)) * np.linalg.norm(x)
    return np.divide(reconstructed @ x, norms, out=np.zeros(len(Y)), where=norms > 0)


def reconstruction_errors(X: np.ndarray, reconstructed: np.ndarray) -> np.ndarray:
    """The error of each row x̂ as a reconstruction of x; 1 where x or x̂ is zero.

    e = 1 − cos(x, x̂)

    >>> ah.metrics.reconstruction_errors(np.array([[1.0, 0.0]]), np.array([[3.0, 0.0]]))
    array([0.])
    """
    return 1 - _cosines_of_rows(X=X, reconstructed=reconstructed)


def residual(X: np.ndarray, reconstructed: np.ndarray) -> float:
    """The share of the squared norm that is not reconstructed.

    r = Σ|x − x̂|² / Σ|x|²

    >>> ah.metrics.residual(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
    0.5
    """
    X, reconstructed = _alike(X=X, reconstructed=reconstructed)
    return float(np.sum((X - reconstructed) ** 2) / max(np.sum(X**2), 1e-300))


def gini(activity: np.ndarray) -> float:
    """How unevenly activity is shared (App. E2): 0 if all are equal, close to 1 if only a few are active.

    G = Σ_i Σ_j |y_i − y_j| / (2 n Σ_i y_i)

    All-zero activity counts as equal: 0.

    >>> ah.metrics.gini(np.array([1.0, 1.0, 1.0, 1.0])), ah.metrics.gini(np.array([1.0, 0.0, 0.0, 0.0]))
    (0.0, 0.75)
    """
    y = np.sort(_non_negative("activity", activity))
    n = len(y)
    total = y.sum()
    return float((2 * np.arange(1, n + 1) - n - 1) @ y / (n * total)) if total > 0 else 0.0


def weight_similarity(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """How similar each row of two weight matrices is (App. E3).

    cos(a_i, b_i) = a_i · b_i / (|a_i| |b_i|)

    No epsilon is added, so a row that has decayed to 1e-30 still has its direction. A row of zeros
    has none: its similarity is 0.

    >>> ah.metrics.weight_similarity(np.eye(2), np.array([[1e-30, 0.0], [1.0, 0.0]]))
    array([1., 0.])
    """
    return _cosines_of_rows(A=A, B=B)


def mean_similarity(A: np.ndarray, B: np.ndarray, activity: np.ndarray) -> Similarity:
    """The similarity of two networks' weights over all neurons, and over those that are active.

    S = Σ_i cos(a_i, b_i) / n, and the same over those with ỹ_i > 0

    A neuron that is silent in a discrete Hebbian network keeps its initial direction, so silent
    neurons say little about what was learned. If no neuron is active, the second value is NaN.

    >>> A, B = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> ah.metrics.mean_similarity(A, B, activity=np.array([1.0, 0.0]))
    Similarity(all=0.5, active=1.0)
    """
    similarity, active = weight_similarity(A, B), _non_negative("activity", activity) > 0
    if len(active) != len(similarity):
        raise InputError(f"activity has {len(active)} neurons and A {len(similarity)}; they must have equally many")
    return Similarity(float(similarity.mean()), float(similarity[active].mean()) if active.any() else float("nan"))


def count_fields(W: np.ndarray, stimulus: FactoredStimulus | np.ndarray) -> Fields:
    """Count receptive fields by template: how many show a single factor (a bar), how many a pair (a cross)?

    - single: cos(w_i, f) > 0.85 for the nearest factor f, and above the cosine with the nearest pair
    - mixed: cos(w_i, max(f, f')) > 0.85 for the nearest pair, and above the cosine with the nearest factor
    - distinct: factors that are nearest to at least one single field

    >>> bars = ah.Crossbars(6)
    >>> fields = np.concatenate([bars.factors(), bars.sample(np.random.default_rng(0), 5)])
    >>> ah.metrics.count_fields(fields, bars)  # twelve bars and five crosses
    Fields(single=12, mixed=5, unstructured=0, distinct=12)
    """
    single, mixed = _factor_and_pair(W, stimulus)
    singles, pairs = int(np.count_nonzero(single >= 0)), int(np.count_nonzero(mixed))
    return Fields(singles, pairs, len(single) - singles - pairs, len(np.unique(single[single >= 0])))


def without_background(W: np.ndarray) -> np.ndarray:
    """Fields without a uniform background, for fields that cover less than half the pixels.

    w_ij ← [w_ij − median_j w_ij]₊

    >>> ah.metrics.without_background(np.array([[0.5, 0.5, 2.0]]))
    array([[0. , 0. , 1.5]])
    """
    W = matrix("W", W)
    return np.maximum(W - np.median(W, axis=1, keepdims=True), 0)


def tuned_to(W: np.ndarray, stimulus: FactoredStimulus | np.ndarray) -> np.ndarray:
    """The index of the factor that each neuron's field shows; −1 if it shows none, −2 if it shows a pair.

    >>> bars = ah.Crossbars(6)
    >>> fields = np.stack([bars.factors()[3], bars.sample(np.random.default_rng(0), 1)[0], np.ones(36)])
    >>> ah.metrics.tuned_to(fields, bars)
    array([ 3, -2, -1])
    """
    single, mixed = _factor_and_pair(W, stimulus)
    return np.where(mixed, -2, single)


def _factor_and_pair(W: np.ndarray, stimulus: FactoredStimulus | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of each field's factor, or −1; and whether it shows a pair instead."""
    W, factors = _fields_and_factors(W, stimulus)
    a, b = np.triu_indices(len(factors), 1)
    to_factor = _cosines(W, factors)
    to_pair = _cosines(W, np.maximum(factors[a], factors[b]))
    factor, pair = to_factor.max(axis=1), to_pair.max(axis=1, initial=-1.0)
    single = (factor > MATCH) & (factor > pair)
    return np.where(single, to_factor.argmax(axis=1), -1), (pair > MATCH) & (pair > factor)


def nearest_factors(W: np.ndarray, stimulus: FactoredStimulus | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the factor nearest to each neuron's field, and its cosine.

    >>> bars = ah.Crossbars(6)
    >>> which, cosine = ah.metrics.nearest_factors(bars.factors()[[3, 5]], bars)
    >>> which
    array([3, 5])
    """
    cosine = _cosines(*_fields_and_factors(W, stimulus))
    return cosine.argmax(axis=1), cosine.max(axis=1)


def factor_recovery(W: np.ndarray, stimulus: FactoredStimulus | np.ndarray) -> np.ndarray:
    """How well each factor f is represented by a neuron of its own, π(f).

    r_f = cos(f, w_π(f))

    π maximises the total (Hungarian method). If there are fewer neurons than factors, a factor left
    without a neuron counts as 0.

    >>> bars = ah.Crossbars(6)
    >>> round(float(ah.metrics.factor_recovery(bars.factors()[:9], bars).mean()), 2)  # nine of twelve
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    W, factors = _fields_and_factors(W, stimulus)
    cosine = _cosines(factors, W)
    recovered = np.zeros(len(factors))
    factor, neuron = linear_sum_assignment(cosine, maximize=True)
    recovered[factor] = cosine[factor, neuron]
    return recovered


def dead_units(activity: np.ndarray) -> int:
    """Neurons whose mean activity is 0.

    d = |{i : ỹ_i = 0}|

    >>> ah.metrics.dead_units(np.array([0.3, 0.0, 0.0]))
    2
    """
    return int(np.count_nonzero(_non_negative("activity", activity) == 0))


def duplicate_units(W: np.ndarray, threshold: float = 0.95) -> int:
    """Neurons whose field duplicates an earlier neuron's.

    d = |{i : max_{k<i} cos(w_i, w_k) > 0.95}|

    >>> ah.metrics.duplicate_units(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    1
    """
    return int(np.count_nonzero(duplicates(W, threshold)))


def duplicates(W: np.ndarray, threshold: float) -> np.ndarray:
    """Whether each neuron's field duplicates an earlier neuron's: max_{k<i} cos(w_i, w_k) > threshold.

    >>> ah.metrics.duplicates(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), threshold=0.95)
    array([False,  True, False])
    """
    rows, threshold = _directions(matrix("W", W)), fraction("threshold", threshold)
    found = np.zeros(len(rows), bool)
    for i in range(0, len(rows), 256):  # in blocks: all pairs of a large network would take more memory than it
        cosine = np.tril(rows[i : i + 256] @ rows[: i + 256].T, i - 1)
        found[i : i + 256] = cosine.max(axis=1, initial=0.0) > threshold
    return found


def hoyer(activity: np.ndarray) -> float:
    """Hoyer's sparseness (2004): 0 if all are equal, 1 if only one is active.

    H = (√n − Σ_i |y_i| / √(Σ_i y_i²)) / (√n − 1)

    All-zero activity counts as equal: 0.

    >>> ah.metrics.hoyer(np.array([1.0, 1.0, 1.0, 1.0])), ah.metrics.hoyer(np.array([1.0, 0.0, 0.0, 0.0]))
    (0.0, 1.0)
    """
    y = _non_negative("activity", activity)
    norm, root = np.linalg.norm(y), np.sqrt(len(y))
    return float((root - y.sum() / norm) / (root - 1)) if norm > 0 and len(y) > 1 else 0.0


def treves_rolls(activity: np.ndarray) -> float:
    """Treves and Rolls's sparseness (1991): 0 if all are equal, 1 − 1/n if only one is active.

    T = 1 − (Σ_i y_i / n)² / (Σ_i y_i² / n)

    All-zero activity counts as equal: 0.

    >>> ah.metrics.treves_rolls(np.array([1.0, 0.0, 0.0, 0.0]))
    0.75
    """
    y = _non_negative("activity", activity)
    power = np.mean(y * y)
    return float(1 - y.mean() ** 2 / power) if power > 0 else 0.0


def forgetting(E: np.ndarray) -> float:
    """How far errors on earlier sets s have risen by the last phase P, on average.

    F = mean_{s<P} (E_Ps − min_{p<P} E_ps)

    >>> ah.metrics.forgetting(np.array([[0.1, 0.6], [0.4, 0.1]]))  # of the first set
    0.30000000000000004
    """
    E = _phases_by_sets(E)
    return float(np.mean(E[-1, :-1] - E[:-1, :-1].min(axis=0)))


def backward_transfer(E: np.ndarray) -> float:
    """How far later phases have improved earlier sets s, on average: below 0 where they have made them worse.

    B = mean_{s<P} (E_ss − E_Ps)

    >>> ah.metrics.backward_transfer(np.array([[0.5, 0.6], [0.25, 0.1]]))
    0.25
    """
    E = _phases_by_sets(E)
    return float(np.mean(np.diag(E)[:-1] - E[-1, :-1]))


def _phases_by_sets(E: np.ndarray) -> np.ndarray:
    E = matrix("E", E, "(phases, sets)")
    if E.shape[0] != E.shape[1] or len(E) < 2:
        raise InputError(f"E has shape {E.shape}; it must be (phases, sets), equally many of each and at least 2")
    return E


def _non_negative(name: str, values: np.ndarray) -> np.ndarray:
    values = matrix(name, values, "(neurons,)")
    if values.min() < 0:
        raise InputError(f"{name} holds {values.min()}; all must be at least 0")
    return values


def _alike(**arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of the same shape."""
    (one, A), (other, B) = ((name, matrix(name, values)) for name, values in arrays.items())
    if A.shape != B.shape:
        raise InputError(f"{one} has shape {A.shape} and {other} {B.shape}; both must be the same (n, m)")
    return A, B


def _fields_and_factors(W: np.ndarray, stimulus: FactoredStimulus | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights, and the factors of a set of stimuli, or those that were passed in."""
    if isinstance(stimulus, np.ndarray | list | tuple):
        factors = matrix("stimulus", stimulus, "(factors, m)")
    elif hasattr(stimulus, "factors") and not isinstance(stimulus, type):
        factors = stimulus.factors()
    else:
        known = [name for name, cls in vars(stimuli).items() if hasattr(cls, "factors")]
        raise InputError(f"stimulus is {shown(stimulus)}; it must be a set of known factors: {', '.join(known)}")
    W = matrix("W", W)
    if W.shape[1] != factors.shape[1]:
        raise InputError(f"W has shape {W.shape}; for the factors of this stimulus it must be (n, {factors.shape[1]})")
    return W, factors


def _cosines_of_rows(**arrays: np.ndarray) -> np.ndarray:
    A, B = map(_directions, _alike(**arrays))
    return np.einsum("ij,ij->i", A, B).clip(-1, 1)


def _directions(rows: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norm > 0, norm, 1)


def _cosines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """cos(a, b) for each row a of A and each row b of B; 0 where one of them is zero."""
    return _directions(A) @ _directions(B).T
