"""The base class of the scikit-learn estimators: everything except the schedule."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from asynchebb import engines, metrics
from asynchebb.checks import InputError, at_least, one_of, positive, true_or_false
from asynchebb.contracts import Dynamics, Rule, Schedule, Weights
from asynchebb.engines import traces
from asynchebb.estimators import callbacks
from asynchebb.estimators.callbacks import CallbackSupportMixin, with_callbacks
from asynchebb.estimators.rows import (
    NORM,
    OUTLYING,
    ROWS,
    Samples,
    flat,
    norm_scale,
    outliers,
    row_norms,
    warn_of_outliers,
)
from asynchebb.estimators.silence import PATIENCE, how_to_calm, warn_if_silent
from asynchebb.network import READINGS, Network, State

READING = READINGS["notebook"]  # supplies the value of a parameter that is None
BLOCK = 64  # samples per engine call, which cannot be interrupted
TOO_STRONG = 100 * NORM  # a sample of this norm would ruin the weights


def norm_or_positive(name: str, value: object) -> None:
    try:
        if value is not None and value != "norm":
            positive(name, value)
    except InputError:
        raise InputError(f'{name} is {value!r}; it must be "norm", a number above 0, or None') from None


@dataclass(eq=False, repr=False)
class HebbianNetwork(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of the models; each adds a `schedule()`.

    Parameters
    ----------
    n_components : int, default=100
        Number of neurons.
    rule, dynamics, weights : default=None
        Values like `ah.Oja(eta=0.01)`, `ah.Projected()`, `ah.Gaussian()`, or your own; None: the model's default.
    hold : int, default=500
        Euler steps per sample while the network learns.
    from_rest : bool, default=False
        Whether activity starts from rest at each sample during learning, or carries over from the previous one.
    settle : int, default=500
        Euler steps for which `transform` lets the network settle on each sample, from rest.
    max_iter : int, default=10
        Number of passes of `fit` through the data, each in a new random order.
    scale : "norm", a number, or None, default="norm"
        Divisor for the data (`scale_`). "norm": the number that brings their root mean square norm to √27, that of
        the paper's stimuli; `fit` computes it from all data, `partial_fit` from the first batch that is not all zero.
        None: use the data unscaled.
    learning : bool, default=True
        False: the weights are frozen while the activity still evolves.
    random_state : int, RandomState or None, default=None
        Seeds the initial weights and the order in which `fit` shows the data.
    verbose : bool, default=False
        Print a line per pass through the data.
    engine : "cpu" or "reference", default="cpu"

    `n_components`, `weights`, `scale` and `random_state` take effect when training starts; the others may be changed
    between calls to `partial_fit`.

    Attributes
    ----------
    components_ : (n_components, n_features), the feed-forward weights W
    lateral_ : (n_components, n_components), the lateral weights M
    activity_ : (n_components,), the rates y after the last sample shown
    scale_ : the divisor for the data
    n_iter_ : number of passes of `fit`, or of calls to `partial_fit`
    n_samples_seen_ : number of samples shown
    image_shape_ : (height, width) if the data were images (samples, height, width), else None
    state_ : all variables that change while the network runs, an `ah.State`
    """

    n_components: int = 100
    _: KW_ONLY
    rule: Rule | None = None
    dynamics: Dynamics | None = None
    weights: Weights | None = None
    hold: int = 500
    from_rest: bool = False
    settle: int = 500
    max_iter: int = 10
    scale: str | float | None = "norm"
    learning: bool = True
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False
    engine: str = "cpu"

    accepted: ClassVar[dict[str, Callable[[str, Any], None]]] = {
        **dict.fromkeys(("n_components", "hold", "settle", "max_iter"), at_least(1)),
        **dict.fromkeys(("from_rest", "learning"), true_or_false),
        "scale": norm_or_positive,
        "engine": partial(one_of, accepted=engines.NAMES),
    }
    model: ClassVar[str] = "asynchronous"  # the model that supplies the default rule
    _weakens = False  # whether `fit` has found outliers

    def schedule(self) -> Schedule:
        """The schedule, which determines when a neuron's weights may change."""
        raise NotImplementedError(f"{type(self).__name__} needs a method schedule(self) that returns its schedule")

    # Learning

    @with_callbacks
    def fit(self, X: Samples, y: object = None) -> HebbianNetwork:
        """Start from scratch and show all of X `max_iter` times."""
        X = self._begin(X)
        passes, stop = callbacks.Passes(self, X, self.max_iter), False
        while self.n_iter_ < self.max_iter and not stop:
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
        X = self._checked(X, reset=False) if resume else self._begin(X)
        while self.n_samples_seen_ < self.max_iter * X.shape[0]:
            yield from self._rest_of_pass(X)
        warn_if_silent(self, X, whole=True)

    def partial_fit(self, X: Samples, y: object = None) -> HebbianNetwork:
        """Show X once, in order; a single sample is enough. Unless `from_rest`, activity carries over between calls."""
        if not hasattr(self, "state_"):
            X = self._begin(X)
        else:
            self._check_parameters()
            X = self._checked(X, reset=False)
            if self.n_components != len(self.state_.W):
                raise ValueError(
                    f"n_components is {self.n_components}, but this network began with {len(self.state_.W)}; it must "
                    "not change between calls to partial_fit (fit starts from scratch)"
                )
            self._weakens = False  # in a stream, what is too strong is refused
            if not self._has_scale:
                self._find_scale(X)
        for start in range(0, X.shape[0], BLOCK):
            self._show(X[start : start + BLOCK])
        self.n_iter_ += 1
        warn_if_silent(self, X, whole=False)
        return self

    def begin(self, X: Samples, y: object = None) -> HebbianNetwork:
        """Start from scratch and compute the scale from X without learning yet, before a stream of similar data."""
        self._begin(X)
        return self

    def _begin(self, X: Samples) -> Any:
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            X = self._checked(X, reset=True)
            self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            network = self.make_network(self.n_components, X.shape[1])
            state = network.init(np.random.default_rng(self._seed))
            # choice: start from rest, so that everything learned comes from the data.
            u, rates = network.dynamics.step(np.zeros_like(state.u), np.zeros_like(state.u))
            self.state_ = state._replace(u=np.asarray(u, state.u.dtype), y=np.array(rates, state.y.dtype))
            self.n_iter_ = self.n_samples_seen_ = 0
            self._find_scale(X)
            return X
        except BaseException:  # leave an earlier fit unchanged
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_parameters(self) -> None:
        for name, check in self.accepted.items():
            check(name, getattr(self, name))

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
        if self.learning and outlying.any():
            self._weakens = True
            warn_of_outliers(norms / (NORM * self.scale_), outlying, stacklevel=6 if callbacks.AVAILABLE else 5)

    def _weakened(self, X: np.ndarray) -> np.ndarray:
        """Outliers with the largest norm at which they are shown."""
        most = OUTLYING * NORM
        if not self._weakens:
            return X
        norms = np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
        return np.where(norms > most, X * (most / np.maximum(norms, most)), X).astype(X.dtype)

    def _rest_of_pass(self, X: Any) -> Iterator[int]:
        """Show X once, in this pass's random order, or the rest of an interrupted pass."""
        samples = X.shape[0]
        number, start = divmod(self.n_samples_seen_, samples)
        order = np.random.default_rng([self._seed, number]).permutation(samples)
        for first in range(start, samples, BLOCK):
            self._show(X[order[first : first + BLOCK]])
            self.n_iter_ = self.n_samples_seen_ // samples
            yield self.n_samples_seen_

    def _show(self, X: Any) -> None:
        X = self._weakened(self._scaled(X))
        self._check_strength(X)
        network = self.make_network(*self.state_.W.shape)
        no_traces = traces.empty((), 0, network.n, X.dtype)
        # The state changes in place; Ctrl-C must not come between that and the count of samples seen.
        with np.errstate(over="ignore", invalid="ignore"), _uninterrupted():
            self.state_ = engines.module(self.engine).advance(
                network, self.state_, X, self.hold, no_traces, bool(self.from_rest)
            )
            self.n_samples_seen_ += len(X)
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

    def make_network(self, n: int, m: int) -> Network:
        """The network defined by the parameters, with n neurons and m inputs."""
        defaults = {"dynamics": READING.dynamics, "weights": READING.weights, "rule": getattr(READING, self.model)}
        parts = {kind: defaults[kind] if getattr(self, kind) is None else getattr(self, kind) for kind in defaults}
        network = Network(n, m, schedule=self.schedule(), **parts)
        return network if self.learning else network.frozen()

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

        Weights and `activity_` do not change. Uses all cores.
        """
        check_is_fitted(self)
        self._check_parameters()
        X = self._checked(X, reset=False)
        return self._settled(X).astype(np.float64 if X.dtype == np.float64 else np.float32, copy=False)

    def _settled(self, X: Any) -> np.ndarray:
        network = self.make_network(*self.state_.W.shape)
        Y = np.empty((X.shape[0], network.n), self.state_.W.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(Y), ROWS):
                block = self._scaled(X[start : start + ROWS])
                Y[start : start + ROWS] = engines.settle(network, self.state_, block, self.settle, self.engine)
        self._check_finite(Y)
        Y += 0  # turns −0, which a silent neuron's rate may be, into 0
        return Y

    def inverse_transform(self, X: Samples) -> np.ndarray:
        """Reconstruct the data from the rates as a Wᵀy, in the data's own scale and shape.

        a = yᵀMy / |Wᵀy|². Once the network has settled, (My)_i = (Wx)_i for every active neuron, so a Wᵀy is the
        multiple of Wᵀy closest to x, at a squared distance of (1 − cos²(x, Wᵀy)) |x|².
        """
        check_is_fitted(self)
        Y = check_array(X, dtype=[np.float64, np.float32], input_name="X", estimator=self)
        if Y.shape[1] != len(self.state_.W):
            raise ValueError(
                f"X has {Y.shape[1]} features, but {type(self).__name__} has n_components={len(self.state_.W)}"
            )
        again = Y @ self.state_.W
        size = np.einsum("ij,ij->i", again, again)
        inhibition = np.einsum("ij,ij->i", Y @ self.state_.M.T, Y)
        again *= (self.scale_ * inhibition / np.where(size > 0, size, 1))[:, None]
        return again if self.image_shape_ is None else again.reshape(len(again), *self.image_shape_)

    def score(self, X: Samples, y: object = None) -> float:
        """1 − the reconstruction error: cos(x, Wᵀy), averaged over the samples; 0 where x or y is zero."""
        check_is_fitted(self)
        self._check_parameters()
        X = self._checked(X, reset=False)
        total = 0.0
        for start in range(0, X.shape[0], ROWS):
            block = X[start : start + ROWS]
            again = self._settled(block) @ self.state_.W
            total += metrics.weight_similarity(self._scaled(block), again).sum()
        return float(total / X.shape[0])

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
    def _n_features_out(self) -> int:
        return len(self._fitted().W)

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
            hint = " Use ah.OnOff() for signed data." if "Negative values" in str(error) else ""
            raise ValueError(f"{error}{hint}") from None
        if reset:
            self.image_shape_ = shape
        return X

    def _scaled(self, X: Any) -> np.ndarray:
        X = X.toarray() if sparse.issparse(X) else X
        if X.dtype == np.float16:  # the division would lose precision or overflow
            X = X.astype(np.float32)
        return np.ascontiguousarray(X / self.scale_, self.state_.W.dtype)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "state_"):  # arrays of a memory-mapped pickle are read-only
            self.state_ = State(*(np.require(array, requirements=["W"]) for array in self.state_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


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
