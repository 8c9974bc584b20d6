"""The ON/OFF split, which makes signed data non-negative, as the networks require."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from asynchebb.estimators.rows import Samples, flat, floats, real


class OnOff(TransformerMixin, BaseEstimator):
    """Split signed data into two non-negative channels, [x]₊ and [−x]₊, side by side: (samples, 2 · n_features).

    Also accepts images (samples, height, width); a field over both channels has the shape (2, height, width).

    >>> ah.OnOff().fit_transform(np.array([[1.0, -2.0]]))
    array([[1., 0., 0., 2.]])
    """

    def fit(self, X: Samples, y: object = None) -> OnOff:
        self._checked(X, reset=True)
        return self

    def transform(self, X: Samples) -> Any:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if sparse.issparse(X):
            return sparse.hstack([X.maximum(0), (-X).maximum(0)], format="csr")
        return np.concatenate([np.maximum(X, 0), np.maximum(-X, 0)], axis=1)

    def inverse_transform(self, X: Samples) -> Any:
        """ON minus OFF, in the original shape of the data."""
        check_is_fitted(self)
        X = check_array(real(self, X), accept_sparse="csr", dtype="numeric", input_name="X", estimator=self)
        X = floats(X)
        m = self.n_features_in_
        if X.shape[1] != 2 * m:
            raise ValueError(f"X has {X.shape[1]} features, but OnOff produces {2 * m} from {m}")
        signed = X[:, :m] - X[:, m:]
        if self.image_shape_ is None:
            return signed
        signed = signed.toarray() if sparse.issparse(signed) else signed
        return signed.reshape(len(signed), *self.image_shape_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        from sklearn.utils.validation import _check_feature_names_in

        names = _check_feature_names_in(self, input_features)
        return np.array([f"{name}_{sign}" for sign in ("on", "off") for name in names], dtype=object)

    def _checked(self, X: Samples, reset: bool) -> Any:
        X, shape = flat(self, X, reset)
        X = floats(validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric"))
        if reset:
            self.image_shape_ = shape
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
