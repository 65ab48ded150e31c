#!/usr/bin/env python3
"""Prints the AUC of a random forest on the made-up sets of tests/command/test_best_command.c, which lists these numbers
next to its sets.

    forest.py

The sets are those of the test, draw for draw. A record has 47 features: count, mean, deviation, smallest, largest,
first and last value, the mean absolute difference; mean, deviation, median, smallest and largest gap; ten counts and
ten means in tenths of the time; the amplitude at fourteen periods. RandomForestClassifier(300, random_state=0) learns
the 240 records and predicts the 400 others. Needs numpy and scikit-learn.
"""
import math

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

RECORDS, FRESH, MASK = 240, 400, (1 << 64) - 1
PERIODS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 33, 50, 100)


class Draws:
    """small_random of tests/support/small.c (splitmix64)."""

    def __init__(self):
        self.state = 17

    def real(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) % (1 << 21) - (1 << 20)) / (1 << 20)

    def even(self):
        return (self.real() + 1) / 2

    def noise(self):
        return sum(self.real() for _ in range(4)) * 0.866


def value(what, label, time, u, z):
    s = (time - 20 - 60 * u) / 8
    if what == "level":
        return z + 0.4 * label
    if what == "spread":
        return z * (1 + 0.4 * label)
    if what == "shape":
        return 0.4 * z + (2 if label else -2) * (-1 if s < 0 else 1) * math.exp(-s * s)
    if what == "period":
        return 0.4 * z + math.sin(2 * math.pi * (time / (12 if label else 20) + u))
    return z


def record(what, label, draws):
    u = draws.even()
    counts = {"density": (8 + int(8 * u)) * (1 + label), "crowd": 10 + int(20 * u) + 8 * label, "shape": 48, "period": 48}
    n = counts.get(what, 24)
    t, x = np.zeros(n), np.zeros(n)
    for i in range(n):
        t[i] = 100 * draws.even()
        if what == "place" and i % 2:
            t[i] = (20 if label else 60) + t[i] / 5
        x[i] = value(what, label, t[i], u, draws.noise())
    order = np.argsort(t, kind="stable")
    return t[order], x[order]


def features(t, x):
    gap, tenth = np.diff(t), np.minimum(t // 10, 9)
    places = [np.sum(tenth == k) for k in range(10)]
    means = [x[tenth == k].mean() if (tenth == k).any() else 0 for k in range(10)]
    waves = [abs(np.mean(x * np.exp(2j * np.pi * t / p))) for p in PERIODS]
    return [len(x), x.mean(), x.std(), x.min(), x.max(), x[0], x[-1], np.abs(np.diff(x)).mean(),
            gap.mean(), gap.std(), np.median(gap), gap.min(), gap.max(), *places, *means, *waves]


def main():
    for what in ("level", "spread", "place", "density", "crowd", "shape", "period"):
        draws = Draws()
        rows = [features(*record(what, r % 2, draws)) for n in (RECORDS, FRESH) for r in range(n)]
        label = np.array([r % 2 for n in (RECORDS, FRESH) for r in range(n)])
        forest = RandomForestClassifier(300, random_state=0).fit(rows[:RECORDS], label[:RECORDS])
        print(f"{what:8s} {roc_auc_score(label[RECORDS:], forest.predict_proba(rows[RECORDS:])[:, 1]):.4f}")


if __name__ == "__main__":
    main()
