"""The base class of the scikit-learn estimators: everything except the schedule."""

from __future__ import annotations

import copy
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from asynchebb import engines, metrics
from asynchebb.checks import fraction
from asynchebb.engines import traces
from asynchebb.estimators import callbacks, pruning
from asynchebb.estimators.callbacks import CallbackSupportMixin, with_callbacks
from asynchebb.estimators.parameters import Parameters
from asynchebb.estimators.readout import Sample, least_squares, reconstruct, sample_size
from asynchebb.estimators.rows import (
    NORM,
    OUTLYING,
    ROWS,
    Samples,
    flat,
    floats,
    norm_scale,
    outliers,
    real,
    row_norms,
    strong,
    warn_of_mixture,
    warn_of_outliers,
)
from asynchebb.estimators.silence import PATIENCE, how_to_calm, warn_if_silent
from asynchebb.network import Network, State
from asynchebb.runs.silence import UnstableNetwork, instability

BLOCK = 64  # samples per engine call, which cannot be interrupted
TOO_STRONG = 100 * NORM  # a sample of this norm would ruin the weights


class HebbianNetwork(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Parameters):
    """Base class of the models; each adds a `schedule()`.

    >>> class Restless(ah.HebbianNetwork):
    ...     def schedule(self):
    ...         return ah.Asynchronous(r_b=1, r_r=0)
    >>> X = ah.Crossbars(6).sample(np.random.default_rng(0), 20)
    >>> Restless(40, max_iter=1, hold=100, random_state=0).fit(X).components_.shape
    (40, 36)

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The feed-forward weights W.
    lateral_ : array of shape (n_components, n_components)
        The lateral weights M.
    activity_ : array of shape (n_components,)
        The rates y after the last sample shown.
    readout_ : array of shape (n_components, n_features)
        The linear readout D of data divided by `scale_`; computed when asked for.
    reconstruction_err_ : float
        |X − X̂|, the Frobenius norm as in scikit-learn's NMF, for the data shown; computed when asked for, from the
        sample that the model keeps.
    validation_scores_ : list of float
        cos(x, Wᵀy) on the held-out samples after each pass of `fit`, if `tol` is a number.
    scale_ : float
        The divisor for the data.
    n_components_ : int
        Number of neurons.
    n_iter_ : int
        Number of passes of `fit`, or of calls to `partial_fit`.
    n_samples_seen_ : int
        Number of samples shown since `fit` or the stream began.
    image_shape_ : tuple or None
        (height, width) if the data were images (samples, height, width), else None.
    state_ : ah.State
        All variables that change while the network runs.
    """

    _weakens = False  # whether `fit` has found outliers
    _sample: Sample  # of the data shown, for the readout
    _decoder: tuple[object, np.ndarray] | None = None  # the readout, and what it depends on

    # Learning

    @with_callbacks
    def fit(self, X: Samples, y: object = None) -> HebbianNetwork:
        """Show all of X up to `max_iter` times, from scratch or, with `warm_start`, from the weights learned before."""
        X = self._begin_fit(X)
        passes, stop = callbacks.Passes(self, X, int(self.max_iter)), False
        while not (self._is_finished(X) or stop):
            started = time.perf_counter()
            passes.begin()
            for _ in self._rest_of_pass(X):
                pass
            if self.verbose:
                rate = X.shape[0] / (time.perf_counter() - started)
                print(f"[{type(self).__name__}] {self.n_iter_} of {self.max_iter}: {rate:,.0f} samples/s")
            stop = passes.end()
        passes.finish()
        warn_if_silent(self, X, whole=True, stacklevel=4 if callbacks.AVAILABLE else 3)
        return self

    def iter_fit(self, X: Samples, y: object = None, *, resume: bool = False) -> Iterator[int]:
        """`fit` one block of samples at a time; yields the number of samples shown so far.

        With `resume`, a network whose `iter_fit` was interrupted (and perhaps saved and loaded since) continues with
        the same X; the result is bit-identical to an uninterrupted fit.
        """
        X = self._checked(X, reset=False) if resume else self._begin_fit(X)
        if self.n_samples_seen_ == 0 and not self._sample.offered:  # after `begin`
            self._keep(X, self._shown(X.shape[0]))
        while not self._is_finished(X):
            yield from self._rest_of_pass(X)
        warn_if_silent(self, X, whole=True)

    def partial_fit(self, X: Samples, y: object = None) -> HebbianNetwork:
        """Show X once, in order; a single sample is enough. Unless `from_rest`, activity carries over between calls."""
        X = self._continue(X) if hasattr(self, "state_") else self._begin(X)
        for start in range(0, X.shape[0], BLOCK):
            self._show(X[start : start + BLOCK])
        self._keep(X, np.arange(X.shape[0]))  # now that none was refused
        self.n_iter_ += 1
        warn_if_silent(self, X, whole=False)
        return self

    def begin(self, X: Samples, y: object = None) -> HebbianNetwork:
        """Start from scratch and compute the scale from X without learning yet, before a stream of similar data."""
        self._begin(X)
        return self

    def _begin_sample(self, n: int, m: int) -> None:
        self._sample = Sample(np.empty((0, m), np.float32), sample_size(n, m))
        self._decoder = None
        self._fired = np.zeros(2, np.int64)  # spikes, and those that came late (`traces.check_spikes`)

    def _begin_fit(self, X: Samples) -> Any:
        if self._checked_parameters()["warm_start"] and hasattr(self, "state_"):
            X = self._continue(X)
            self.n_iter_ = self.n_samples_seen_ = 0
            self.validation_scores_: list[float] = []
            self._begin_sample(*self.state_.W.shape)
        else:
            X = self._begin(X)
        self._keep(X, self._shown(X.shape[0]))
        return X

    def _continue(self, X: Samples) -> Any:
        """Check data that are shown to a network which has seen some before."""
        self._checked_parameters()
        X = self._checked(X, reset=False)
        if self.n_components not in (None, len(self.state_.W)):
            raise ValueError(
                f"n_components is {self.n_components}, but this network began with {len(self.state_.W)}; it must not "
                "change between calls to partial_fit, or to fit with warm_start (fit without it starts from scratch)"
            )
        self._weakens = False  # in a stream, what is too strong is refused
        if not self._has_scale:
            self._find_scale(X)
        return X

    def _begin(self, X: Samples) -> Any:
        before = dict(self.__dict__)
        try:
            self._checked_parameters()
            X = self._checked(X, reset=True)
            self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            network = self.make_network(self.n_components or X.shape[1], X.shape[1])
            state = network.init(np.random.default_rng(self._seed))
            if unstable := instability(network, state.M):
                warnings.warn(unstable, UnstableNetwork, stacklevel=5 if callbacks.AVAILABLE else 4)
            # choice: start from rest, so that everything learned comes from the data.
            u, rates = network.rest(state.u.dtype)
            self.state_ = state._replace(u=u, y=rates)
            self.n_iter_ = self.n_samples_seen_ = 0
            self.validation_scores_ = []
            self._begin_sample(*state.W.shape)
            self._find_scale(X)
            return X
        except BaseException:  # leave an earlier fit unchanged
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _find_scale(self, X: Any) -> None:
        """Find the divisor for the data. A few samples much stronger than the others do not count for it, and are
        weakened while learning."""
        self._has_scale, self._weakens = bool(X.max() > 0), False
        if self.scale != "norm" or not self._has_scale:
            self.scale_ = 1.0 if self.scale in ("norm", None) else float(self.scale)
            return
        norms = row_norms(X)
        outlying = outliers(norms)
        self.scale_ = norm_scale(X, outlying)
        level = 6 if callbacks.AVAILABLE else 5
        if self.learning and outlying.any():
            self._weakens = True
            warn_of_outliers(norms / (NORM * self.scale_), outlying, level)
        elif self.learning and (mixed := strong(norms)).any():
            warn_of_mixture(mixed, level)

    def _weakened(self, X: np.ndarray) -> np.ndarray:
        """Outliers with the largest norm at which they are shown."""
        most = OUTLYING * NORM
        if not self._weakens:
            return X
        norms = np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
        return np.where(norms > most, X * (most / np.maximum(norms, most)), X).astype(X.dtype)

    def _keep(self, X: Any, rows: np.ndarray) -> None:
        """Offer these rows to the sample that the readout is learned from."""
        if self.readout:
            chosen, places = self._sample.choose(len(rows), self._seed)
            if len(chosen):  # of a long stream, hardly ever
                self._sample.put(self._weakened(self._scaled(X[rows[chosen]])), places)
            self._sample.offered += len(rows)

    def _held_out(self, samples: int) -> np.ndarray:
        """Which samples `fit` does not show, to decide by them when to stop."""
        if self.tol is None:
            return np.empty(0, int)
        count = min(samples - 1, max(1, round(self.validation_fraction * samples)))
        return np.sort(np.random.default_rng([self._seed, 0, 1]).permutation(samples)[:count])

    def _shown(self, samples: int) -> np.ndarray:
        return np.delete(np.arange(samples), self._held_out(samples))

    def _is_finished(self, X: Any) -> bool:
        """Has `fit` made its last pass?"""
        held_out = self._held_out(X.shape[0])
        if len(held_out) and self.n_iter_ > len(self.validation_scores_):
            self.validation_scores_.append(self._score(X[held_out], self._by_weights))
        stalled = len(held_out) and _passes_without_progress(self.validation_scores_, self.tol) >= self.n_iter_no_change
        return bool(stalled) or self.n_samples_seen_ >= int(self.max_iter) * (X.shape[0] - len(held_out))

    def _rest_of_pass(self, X: Any) -> Iterator[int]:
        """Show X once, in this pass's random order, or the rest of an interrupted pass."""
        shown = self._shown(X.shape[0])
        number, start = divmod(self.n_samples_seen_, len(shown))
        order = shown[np.random.default_rng([self._seed, number]).permutation(len(shown))]
        for first in range(start, len(shown), BLOCK):
            self._show(X[order[first : first + BLOCK]])
            self.n_iter_ = self.n_samples_seen_ // len(shown)
            yield self.n_samples_seen_

    def _show(self, X: Any) -> None:
        X = self._weakened(self._scaled(X))
        self._check_strength(X)
        network = self.make_network(*self.state_.W.shape)
        no_traces = traces.empty((), 0, network.n, X.dtype)
        # The state changes in place; Ctrl-C must not come between that and the count of samples seen.
        with np.errstate(over="ignore", invalid="ignore"), _uninterrupted():
            self.state_ = engines.module(self.engine).advance(
                network, network.complete(self.state_), X, int(self.hold), no_traces, bool(self.from_rest)
            )
            self.n_samples_seen_ += len(X)
        self._fired = getattr(self, "_fired", 0) + no_traces.fired
        traces.check_spikes(network.dynamics, self._fired)
        self._check_finite(self.state_.u)

    def _check_strength(self, X: np.ndarray) -> None:
        if not self.learning or X.max() * X.shape[1] ** 0.5 < TOO_STRONG:  # then no norm can exceed it
            return
        largest = np.linalg.norm(X.astype(np.float64), axis=1).max()
        if largest > TOO_STRONG:
            raise ValueError(
                f"X holds a sample whose norm, divided by scale_ ({self.scale_:.4g}), is {largest:.3g}; beyond "
                f"{TOO_STRONG:.0f} it would ruin the weights: clip it, or raise scale (now {self.scale!r})"
            )

    def _check_finite(self, values: np.ndarray) -> None:
        if not np.isfinite(values.sum()):
            raise FloatingPointError(
                f"the network has diverged: its rates are no longer finite after {self.n_samples_seen_:,} samples. "
                f"{how_to_calm(self)} and fit again"
            )

    def _patience(self) -> int:
        """Euler steps without a burst that do not warrant a warning."""
        return PATIENCE

    def _how_to_burst(self) -> str:
        return f"Lower the schedule's threshold, or show each sample longer (hold, now {self.hold})"

    # Using the fitted network

    def transform(self, X: Samples) -> np.ndarray:
        """The rates (samples, n_components) at which the network settles for each sample, starting from rest.

        Weights and `activity_` do not change.
        """
        check_is_fitted(self)
        self._checked_parameters()
        X = self._checked(X, reset=False)
        return self._settled(X).astype(np.float64 if X.dtype == np.float64 else np.float32, copy=False)

    def _settled(self, X: Any) -> np.ndarray:
        network = self.make_network(*self.state_.W.shape)
        Y = np.empty((X.shape[0], network.n), self.state_.W.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(Y), ROWS):
                block = self._scaled(X[start : start + ROWS])
                Y[start : start + ROWS] = self._encoded(network, block)
        self._check_finite(Y)
        Y += 0  # turns −0, which a silent neuron's rate may be, into 0
        return Y

    def _encoded(self, network: Network, block: np.ndarray) -> np.ndarray:
        """The settled rates for data already scaled."""
        threads = None if self.n_jobs is None else effective_n_jobs(int(self.n_jobs))
        return engines.settle(network, self.state_, block, int(self.settle), self.engine, threads)

    def inverse_transform(self, X: Samples) -> np.ndarray:
        """Reconstruct the data from the rates by the readout, [Dᵀy]₊, in the data's own scale and shape.

        Without a readout: a Wᵀy with a = yᵀMy / |Wᵀy|². Once the network has settled, (My)_i = (Wx)_i for every active
        neuron, so a Wᵀy is the multiple of Wᵀy closest to x, at a squared distance of (1 − cos²(x, Wᵀy)) |x|².
        """
        check_is_fitted(self)
        Y = floats(check_array(real(self, X), dtype="numeric", input_name="X", estimator=self))
        if Y.shape[1] != len(self.state_.W):
            raise ValueError(
                f"X has {Y.shape[1]} features, but {type(self).__name__} has n_components={len(self.state_.W)}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            again = self._reconstructed(Y) * self.scale_
        if not np.isfinite(again).all():
            raise ValueError("X holds rates so large that the data are not finite; it must hold those of transform")
        return again if self.image_shape_ is None else again.reshape(len(again), *self.image_shape_)

    def _reconstructed(self, Y: np.ndarray) -> np.ndarray:
        """Data divided by the scale, from rates."""
        if self._has_readout():
            return reconstruct(Y, self.readout_.astype(Y.dtype, copy=False))
        return self._by_weights(Y)

    def _by_weights(self, Y: np.ndarray) -> np.ndarray:
        """The multiple of Wᵀy nearest to the data."""
        again = Y @ self.state_.W
        size = np.einsum("ij,ij->i", again, again)
        inhibition = np.einsum("ij,ij->i", Y @ self.state_.M.T, Y)
        again *= (inhibition / np.where(size > 0, size, 1))[:, None]
        return again

    def _has_readout(self) -> bool:
        if self.readout and not self._sample.offered and self.n_samples_seen_:
            raise ValueError(
                "readout is True, but this network has kept no data to learn one from: readout was False while it "
                "learned, or its first partial_fit was interrupted; set readout=False, or show it data (partial_fit)"
            )
        return bool(self.readout and self._sample.offered)

    @property
    def readout_(self) -> np.ndarray:
        self._fitted()
        if not self.readout or not self._sample.offered:
            raise AttributeError(f"this {type(self).__name__} has no readout: readout is False, or no data were shown")
        # The codes, and so the readout, depend on all of these.
        now = (self.n_samples_seen_, self._sample.offered, self.settle, self.dynamics, len(self.state_.W))
        if self._decoder is None or self._decoder[0] != now:
            rows = self._sample.rows
            with np.errstate(over="ignore", invalid="ignore"):
                codes = self._encoded(self.make_network(*self.state_.W.shape), rows)
            self._check_finite(codes)
            self._decoder = now, least_squares(codes, rows)
        return self._decoder[1]

    @property
    def reconstruction_err_(self) -> float:
        self._fitted()
        if not self._sample.offered:
            raise AttributeError("reconstruction_err_ needs readout=True while the network learns")
        rows = self._sample.rows
        network = self.make_network(*self.state_.W.shape)
        again = self._reconstructed(self._encoded(network, rows))
        share = len(rows) / self._sample.offered
        return float(np.linalg.norm((rows - again).astype(np.float64)) * self.scale_ / share**0.5)

    def score(self, X: Samples, y: object = None) -> float:
        """1 − the reconstruction error: cos(x, x̂), averaged over the samples; 0 where x or x̂ is zero."""
        check_is_fitted(self)
        self._checked_parameters()
        return self._score(self._checked(X, reset=False), self._reconstructed)

    def _score(self, X: Any, reconstructed: Callable[[np.ndarray], np.ndarray]) -> float:
        total = 0.0
        for start in range(0, X.shape[0], ROWS):
            block = X[start : start + ROWS]
            again = reconstructed(self._settled(block))
            total += metrics.weight_similarity(self._scaled(block), again).sum()
        return float(total / X.shape[0])

    def prune(self, X: Samples, similarity: float = 0.95) -> HebbianNetwork:
        """A copy of the network without neurons that never learned or are silent on X, and without duplicates.

        Of neurons whose fields have a cosine above `similarity`, the one most active on X remains. The others' codes
        change somewhat, since less inhibits them; the readout is learned anew.
        """
        check_is_fitted(self)
        fraction("similarity", similarity)
        kept = pruning.useful(self.state_, self.transform(X).mean(axis=0), similarity)
        pruned = copy.deepcopy(self).set_params(n_components=len(kept))
        pruned.state_, pruned._decoder = pruning.only(self.state_, kept), None
        return pruned

    @property
    def components_(self) -> np.ndarray:
        return _read_only(self._fitted().W)

    @property
    def lateral_(self) -> np.ndarray:
        return _read_only(self._fitted().M)

    @property
    def activity_(self) -> np.ndarray:
        return _read_only(self._fitted().y)

    @property
    def n_components_(self) -> int:
        return len(self._fitted().W)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _fitted(self) -> State:
        if not hasattr(self, "state_"):  # as for any missing attribute
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.state_

    # Data

    def _checked(self, X: Samples, reset: bool) -> Any:
        X, shape = flat(self, X, reset)
        try:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_non_negative=True)
        except ValueError as error:
            if "Negative values" in str(error):
                raise ValueError(f"{error} Use ah.OnOff() for signed data.") from None
            raise
        if reset:
            self.image_shape_ = shape
        return X

    def _scaled(self, X: Any) -> np.ndarray:
        X = X.toarray() if sparse.issparse(X) else X
        if X.dtype == np.float16:  # the division would lose precision or overflow
            X = X.astype(np.float32)
        dtype = self.state_.W.dtype
        with np.errstate(over="ignore"):  # of an outlier, which stays finite
            return np.ascontiguousarray(np.minimum(X / self.scale_, np.finfo(dtype).max), dtype)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "state_"):  # arrays of a memory-mapped pickle are read-only
            self.state_ = State(*(np.require(array, requirements=["W"]) for array in self.state_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _passes_without_progress(scores: list[float], tol: float | None) -> int:
    """How many of the last passes have not raised the best score by more than `tol`."""
    best, without = -np.inf, 0
    for score in scores:
        without = 0 if score > best + (tol or 0) else without + 1
        best = max(best, score)
    return without


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
        if received:
            signal.raise_signal(signal.SIGINT)


def _read_only(array: np.ndarray) -> np.ndarray:
    """A copy, since the network changes its own array in place."""
    array = array.copy()
    array.flags.writeable = False
    return array
