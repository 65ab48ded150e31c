"""What estimators inherit: scikit-learn's classes where it is installed, else the little of them that is needed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
except ImportError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """An estimator is asked before `fit`."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters are those of the constructor."""

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
            """The share of records whose class is predicted."""
            return float(np.mean(self.predict(X) == np.asarray(y)))  # type: ignore[attr-defined]

    class RegressorMixin:  # type: ignore[no-redef]
        def score(self, X: Any, y: Any) -> float:
            """R2."""
            truth = np.asarray(y, dtype=float)
            error = truth - self.predict(X)  # type: ignore[attr-defined]
            return float(1 - np.sum(error**2) / np.sum((truth - truth.mean()) ** 2))


__all__ = ["BaseEstimator", "ClassifierMixin", "NotFittedError", "RegressorMixin"]
