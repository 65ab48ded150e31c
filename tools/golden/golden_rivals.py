#!/usr/bin/env python3
"""Writes golden/rivals.safetensors: logistic regressions by scikit-learn.

    golden_rivals.py OUT     OUT: the folder golden/

Each case has its rows x (n, features; NaN: missing), label and classes, the ridge, and what LogisticRegression(C = 1 / ridge) makes of the
standardised rows: weight (features + 1, columns; the constants last) and the probabilities of the rows. Needs numpy and scikit-learn
(golden_rng.py, whose `write` is used, also torch). The same versions give the same bytes.
"""
import os
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

from golden_rng import write

LIMIT = 10  # standard deviations


def standardised(x):
    z = (x - np.nanmean(x, 0)) / np.where(np.nanstd(x, 0) > 0, np.nanstd(x, 0), 1)
    return np.clip(np.nan_to_num(z), -LIMIT, LIMIT)


def regression(t, name, x, label, ridge):
    z = standardised(x)
    fit = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=100000, solver="newton-cg").fit(z, label)
    t[f"{name}.x"], t[f"{name}.label"], t[f"{name}.ridge"] = x, np.asarray(label, np.int32), np.array([float(ridge)])
    t[f"{name}.weight"] = np.vstack([fit.coef_.T, fit.intercept_])
    t[f"{name}.p"] = fit.predict_proba(z)


def rows(rng, n, features, classes):
    """Features of several sizes, some missing, one constant, one with a value far out."""
    x = rng.standard_normal((n, features))
    label = np.argmax(x[:, :classes] + rng.standard_normal((n, classes)), 1)
    x = x * np.logspace(-2, 3, features) + rng.standard_normal(features)
    x[rng.random_sample((n, features)) < 0.1] = np.nan
    x[:, features - 1], x[3, 1] = 7, 1e9
    return x, label


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = np.random.RandomState(17)
    t = {}
    regression(t, "two", *rows(rng, 161, 6, 2), 3)
    regression(t, "five", *rows(rng, 83, 7, 5), 0.5)
    regression(t, "strong", *rows(rng, 40, 6, 3), 1000)
    write(os.path.join(sys.argv[1], "rivals.safetensors"), t)


if __name__ == "__main__":
    main()
