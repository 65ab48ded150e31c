#!/usr/bin/env python3
"""Writes golden/tasks.safetensors: losses of numbers and labels with their gradients by PyTorch, their metrics by
scikit-learn.

    golden_tasks.py OUT     OUT: the folder golden/

Needs numpy, scikit-learn and torch. The same versions give the same bytes. x are a head's outputs, y the targets, NaN
where missing; losses are means over the targets that are present.
"""
import os
import sys

import numpy as np
import torch
from sklearn import metrics

from golden_rng import write

ROWS, COUNT, INTERVAL = 7, 3, 0.9


def with_gaps(rng, y):
    y[rng.rand(*y.shape) < 0.2] = np.nan
    return y


def put_loss(t, name, x, y, loss):
    """The mean over the targets that are present, and its gradient."""
    x = torch.tensor(x, requires_grad=True)
    there = ~torch.isnan(torch.tensor(y))
    value = loss(x, torch.tensor(y), there)
    value.backward()
    t[f"{name}.x"], t[f"{name}.y"] = x.detach().numpy(), y
    t[f"{name}.loss"], t[f"{name}.grad"] = np.array([value.item()]), x.grad.numpy()


def squared(x, y, there):
    return torch.nn.MSELoss()(x[there], y[there])


def labels(x, y, there):
    return torch.nn.BCEWithLogitsLoss()(x[there], y[there])


def pinball(x, y, there):
    """For three outputs per number: the sum of their losses."""
    quantile = torch.tensor([(1 - INTERVAL) / 2, 0.5, (1 + INTERVAL) / 2], dtype=torch.float64)
    error = y[there][:, None] - x.reshape(ROWS, COUNT, 3)[there]
    return torch.maximum(quantile * error, (quantile - 1) * error).sum(1).mean()


def losses(t):
    rng = np.random.RandomState(0)
    put_loss(t, "squared", rng.randn(ROWS, COUNT), with_gaps(rng, rng.randn(ROWS, COUNT)), squared)
    put_loss(t, "pinball", rng.randn(ROWS, 3 * COUNT), with_gaps(rng, rng.randn(ROWS, COUNT)), pinball)
    x = 4 * rng.randn(ROWS, COUNT)
    x[0], x[1] = 40, -40
    put_loss(t, "labels", x, with_gaps(rng, rng.randint(0, 2, (ROWS, COUNT)).astype(float)), labels)


def numbers(t):
    rng = np.random.RandomState(1)
    y = 50 + 10 * rng.randn(83)
    p = y + 4 * rng.randn(83)
    low, high = p - 5, p + 6
    t["numbers.y"], t["numbers.p"], t["numbers.low"], t["numbers.high"] = y, p, low, high
    t["numbers.rmse"] = np.array([metrics.root_mean_squared_error(y, p)])
    t["numbers.mae"] = np.array([metrics.mean_absolute_error(y, p)])
    t["numbers.r2"] = np.array([metrics.r2_score(y, p)])
    t["numbers.coverage"] = np.array([np.mean((low <= y) & (y <= high))])


def several(t):
    """Metrics of labels, and their mean over the labels; one label is always true, so that it has no AUC, and some are
    unknown."""
    rng = np.random.RandomState(2)
    y = (rng.rand(61, 4) < [0.5, 0.2, 0.8, 2]).astype(float)
    p = 1 / (1 + np.exp(-(2 * y - 1 + 1.5 * rng.randn(61, 4))))
    p[5] = p[6]  # ties
    y = with_gaps(rng, y)
    known = [~np.isnan(y[:, c]) for c in range(4)]
    def mean(metric, labels=4):
        return np.array([np.mean([metric(y[known[c], c], p[known[c], c]) for c in range(labels)])])
    t["several.y"], t["several.p"] = y, p
    t["several.auc"] = mean(metrics.roc_auc_score, 3)
    t["several.auprc"] = mean(metrics.average_precision_score)
    t["several.log_loss"] = mean(lambda a, b: metrics.log_loss(a, b, labels=[0, 1]))
    t["several.brier"] = mean(metrics.brier_score_loss)
    t["several.accuracy"] = mean(lambda a, b: metrics.accuracy_score(a, b > 0.5))


def main():
    t = {}
    losses(t)
    numbers(t)
    several(t)
    write(os.path.join(sys.argv[1], "tasks.safetensors"), t)


if __name__ == "__main__":
    main()
