#!/usr/bin/env python3
"""Writes golden/rivals.safetensors: logistic and ridge regressions, boosted trees, thresholds and recalibrations by
scikit-learn.

    golden_rivals.py OUT     OUT: the folder golden/

Each case has its rows x (n, features; NaN: missing), label and classes, the ridge, and the results of
LogisticRegression(C = 1 / ridge) on the standardised rows: weight (features + 1, columns; the constants last) and the
probabilities of the rows. boosted has the probabilities of boosted trees of LEAVES leaves on the rows in float32. For
two classes they are those of HistGradientBoostingClassifier after ROUNDS trees; for more classes, those after one tree
that all classes share, a DecisionTreeRegressor of their gradients. A case with y instead has Ridge(alpha = ridge) and
its predictions for the rows; there boosted has those of HistGradientBoostingRegressor after ROUNDS trees.

decisions.* has probabilities p and label, thresholds and, for each threshold, sensitivity, specificity, PPV, NPV and
the fraction flagged from confusion_matrix, the net benefit (Vickers and Elkin's formula) and that of flagging all;
recalibration is intercept and slope of the log-odds without a penalty. Needs numpy and scikit-learn (golden_rng.py,
whose `write` is used, also needs torch). The same versions give the same bytes.
"""
import os
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix
from sklearn.tree import DecisionTreeRegressor

from golden_rng import write

LIMIT = 10  # standard deviations
ROUNDS, LEAVES, LEAST = 40, 12, 5


def standardised(x):
    z = (x - np.nanmean(x, 0)) / np.where(np.nanstd(x, 0) > 0, np.nanstd(x, 0), 1)
    return np.clip(np.nan_to_num(z), -LIMIT, LIMIT)


def regression(t, name, x, label, ridge):
    z = standardised(x)
    fit = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=100000, solver="newton-cg").fit(z, label)
    t[f"{name}.x"], t[f"{name}.label"], t[f"{name}.ridge"] = x, np.asarray(label, np.int32), np.array([float(ridge)])
    t[f"{name}.weight"] = np.vstack([fit.coef_.T, fit.intercept_])
    t[f"{name}.p"] = fit.predict_proba(z)
    t[f"{name}.boosted"] = boosted(np.float32(x), label)


TREES = dict(max_iter=ROUNDS, learning_rate=0.1, max_leaf_nodes=LEAVES, l2_regularization=5, min_samples_leaf=LEAST,
             early_stopping=False)


def boosted(x, label):
    if label.max() == 1:
        return HistGradientBoostingClassifier(**TREES).fit(x, label).predict_proba(x)
    share = np.bincount(label) / len(label)
    size = np.sqrt(share * (1 - share))  # of a gradient, so that the tree's squares are Newton's
    tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=LEAST, random_state=0)
    logit = np.log(share) + 0.5 * tree.fit(x, (np.eye(len(share))[label] - share) / size).predict(x) / size
    return np.exp(logit) / np.exp(logit).sum(1, keepdims=True)


def ridge_regression(t, name, x, y, ridge):
    z = standardised(x)
    fit = Ridge(alpha=ridge, solver="cholesky").fit(z, y)
    t[f"{name}.x"], t[f"{name}.y"], t[f"{name}.ridge"] = x, y, np.array([float(ridge)])
    t[f"{name}.weight"], t[f"{name}.p"] = np.append(fit.coef_, fit.intercept_), fit.predict(z)
    t[f"{name}.boosted"] = HistGradientBoostingRegressor(**TREES).fit(np.float32(x), y).predict(np.float32(x))


def numbers(rng, n, features):
    x, label = rows(rng, n, features, 2)
    return x, 100 + 20 * label + np.nan_to_num(x[:, 0]) * 500 + 3 * rng.standard_normal(n)


def rows(rng, n, features, classes):
    """Features of several sizes, some missing, one constant, one with an outlier."""
    x = rng.standard_normal((n, features))
    label = np.argmax(x[:, :classes] + rng.standard_normal((n, classes)), 1)
    x = x * np.logspace(-2, 3, features) + rng.standard_normal(features)
    x[rng.random_sample((n, features)) < 0.1] = np.nan
    x[:, features - 1], x[3, 1] = 7, 1e9
    return x, label


def decisions(t, rng, n):
    z = rng.standard_normal(n) * 1.5 - 1
    label = (rng.random_sample(n) < 1 / (1 + np.exp(-(0.6 * z + 0.3)))).astype(np.int32)
    p = 1 / (1 + np.exp(-z))
    p[7] = 0.25  # on a threshold
    at = np.array([0.05, 0.25, 0.5, 0.8])
    rows = []
    for threshold in at:
        (tn, fp), (fn, tp) = confusion_matrix(label, p >= threshold)
        odds = threshold / (1 - threshold)
        rows.append([tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), tn / (tn + fn), (tp + fp) / n, tp / n - fp / n * odds,
                     label.mean() - (1 - label.mean()) * odds])
    fit = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cg").fit(np.log(p / (1 - p))[:, None], label)
    t["decisions.p"], t["decisions.label"], t["decisions.threshold"], t["decisions.rows"] = p, label, at, np.array(rows)
    t["decisions.recalibration"] = np.array([fit.intercept_[0], fit.coef_[0, 0]])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = np.random.RandomState(17)
    t = {}
    regression(t, "two", *rows(rng, 161, 6, 2), 3)
    regression(t, "five", *rows(rng, 83, 7, 5), 0.5)
    regression(t, "strong", *rows(rng, 40, 6, 3), 1000)
    decisions(t, rng, 301)
    ridge_regression(t, "number", *numbers(rng, 120, 7), 2)
    ridge_regression(t, "wide", *numbers(rng, 25, 40), 0.1)
    write(os.path.join(sys.argv[1], "rivals.safetensors"), t)


if __name__ == "__main__":
    main()
