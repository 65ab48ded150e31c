"""Base classes of the estimators: scikit-learn's if it is installed, otherwise minimal replacements."""

from __future__ import annotations

import html
import inspect
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import estimator_html_repr
    from sklearn.utils.validation import column_or_1d, validate_data

    def checked_array(estimator: Any, X: Any, fitting: bool) -> np.ndarray:
        """A two-dimensional array, checked as in scikit-learn's own estimators, except that NaN means not observed."""
        least = 2 if fitting else 1
        return validate_data(estimator, X, reset=fitting, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=least)

    def checked_target(y: Any) -> np.ndarray:
        return column_or_1d(y, warn=True)

    def html_of(estimator: Any) -> str:
        """scikit-learn's display of the parameters."""
        return estimator_html_repr(estimator)

except ImportError:

    def checked_array(estimator: Any, X: Any, fitting: bool) -> np.ndarray:
        return np.asarray(X, dtype=np.float64)

    def checked_target(y: Any) -> np.ndarray:
        return np.asarray(y)

    def html_of(estimator: Any) -> str:
        return f"<pre>{html.escape(repr(estimator))}</pre>"

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """An estimator was used before `fit`."""

    class BaseEstimator:  # type: ignore[no-redef]
        """The parameters are those of the constructor."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {name: getattr(self, name) for name in list(inspect.signature(type(self).__init__).parameters)[1:]}

        def set_params(self, **params: Any) -> Any:
            for name, value in params.items():
                if name not in self.get_params():
                    raise ValueError(f"no parameter {name} of {type(self).__name__}")
                setattr(self, name, value)
            return self

    class ClassifierMixin:  # type: ignore[no-redef]
        def score(self, X: Any, y: Any) -> float:
            """The fraction of records whose class is predicted."""
            return float(np.mean(self.predict(X) == np.asarray(y)))  # type: ignore[attr-defined]

    class RegressorMixin:  # type: ignore[no-redef]
        def score(self, X: Any, y: Any) -> float:
            """R2."""
            truth = np.asarray(y, dtype=float)
            error = truth - self.predict(X)  # type: ignore[attr-defined]
            return float(1 - np.sum(error**2) / np.sum((truth - truth.mean()) ** 2))


__all__ = ["BaseEstimator", "ClassifierMixin", "NotFittedError", "RegressorMixin", "checked_array", "checked_target", "html_of"]
