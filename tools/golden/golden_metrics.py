#!/usr/bin/env python3
"""Writes golden/metrics.safetensors: splits, preprocessing and metrics by scikit-learn, NumPy and the published code.

    golden_metrics.py REFERENCE OUT     REFERENCE: a checkout of the published code; OUT: the folder golden/

Needs numpy, scikit-learn and torch. The same versions give the same bytes.
"""
import os
import sys
import unittest.mock
import warnings

import numpy as np
import torch
from sklearn import metrics
from sklearn.model_selection import StratifiedKFold, train_test_split

from golden_rng import fnv_mix, write


def i32(x):
    return np.asarray(x, np.int32)


# ---- splits


def two_draws(n, first, second):
    rest, test = train_test_split(np.arange(n), train_size=0.8, random_state=first, shuffle=True)
    train, valid = train_test_split(rest, train_size=0.8, random_state=second, shuffle=True)
    return train, valid, test


def fold_parts(label, fold, seed):
    """As in the published code's get_mimiciii_data with its default --old-split."""
    kfold = StratifiedKFold(n_splits=5, shuffle=True, random_state=seed)
    train, test = list(kfold.split(np.zeros(len(label)), label))[fold]
    frac = int(0.8 * train.shape[0])
    return train[:frac], train[frac:], test


def put_parts(t, name, parts):
    for part, positions in zip(("train", "valid", "test"), parts):
        t[f"{name}.{part}"] = i32(positions)


def fold_labels():
    rng = np.random.RandomState(0)
    rare = np.array([3] * 4 + [1] * 93 + [0] * 3)
    return [rng.randint(0, 2, 23), 2 - rng.randint(0, 3, 57), rare[rng.permutation(100)], np.zeros(5, int),
            (rng.random_sample(203) < 0.08).astype(int), np.array([7, 7, 7, 7, 7, 2])]


def split_hash(parts):
    """Hash of the records r0, r1, ... and their parts, low word first."""
    h = 0
    for i in range(sum(map(len, parts))):
        part = [i in p for p in parts].index(True)
        h = fnv_mix(h.to_bytes(8, "little") + fnv_mix(f"r{i}".encode()).to_bytes(8, "little") + bytes([part]))
    return np.array([h & 0xFFFFFFFF, h >> 32], np.uint32)


def of_groups(groups, parts):
    """Positions of the records of each group, group by group."""
    return [np.concatenate([groups[g] for g in part]) for part in parts]


def splits(t):
    warnings.filterwarnings("ignore", message="The least populated class")
    labels = fold_labels()
    t["fold.n"] = i32([len(y) for y in labels])
    t["fold.label"] = i32(np.concatenate(labels))
    t["fold.of"] = i32(np.concatenate([assigned(y) for y in labels]))
    put_parts(t, "fold.2", fold_parts(labels[4], 2, 0))
    put_parts(t, "fold.2.seed9", fold_parts(labels[4], 2, 9))
    put_parts(t, "two.137", two_draws(137, 42, 11))
    put_parts(t, "two.137.seed7", two_draws(137, 7, 8))
    put_parts(t, "two.3", two_draws(3, 42, 11))
    t["two.3.hash"] = split_hash(two_draws(3, 42, 11))
    train, test = train_test_split(np.arange(137), train_size=0.8, random_state=42, shuffle=True)
    t["one.137.train"], t["one.137.test"] = i32(train), i32(test)
    put_parts(t, "two.4000", [np.concatenate((part[:8], part[-8:])) for part in two_draws(4000, 42, 11)])
    rng = np.random.RandomState(1)
    key = np.where(rng.random_sample(90) < 0.1, -1, 1000 * rng.randint(0, 23, 90))
    names, groups = [], []
    for i, k in enumerate(key):  # in order of first appearance; -1 is its own group
        if k >= 0 and k in names:
            groups[names.index(k)].append(i)
        else:
            names.append(k)
            groups.append([i])
    label = (key // 1000 % 3 == 1).astype(int)
    label[[g[0] for g in groups if len(g) > 1]] = 0  # a group has the largest label of its records
    t["group.key"], t["group.label"] = i32(key), i32(label)
    put_parts(t, "group.two", of_groups(groups, two_draws(len(groups), 42, 11)))
    put_parts(t, "group.fold", of_groups(groups, fold_parts(np.array([max(label[g]) for g in groups]), 3, 0)))


def assigned(label):
    """The fold in which each item is tested."""
    of = np.empty(len(label), int)
    for f, (_, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(label)), label)):
        of[test] = f
    return of


# ---- preprocessing

CHANNELS = 8  # 4 is never observed, 5 only in a test record


def make_records(test):
    """(time, channel, value) of 23 records in float32, by time and channel."""
    rng = np.random.RandomState(2)
    records = []
    for r in range(23):
        events = []
        ticks = rng.choice(60 - r, 6 + r % 3, replace=False)  # the parts of the split end at different times
        for time in np.sort(ticks).astype(np.float32) * np.float32(0.8):
            draw = {0: 100 + 15 * rng.randn(), 1: -3 - rng.exponential(), 2: rng.choice([-1, 50, 71.5, 80]), 3: 0.0,
                    6: np.float32(7.3), 7: rng.standard_cauchy()}
            events += [(time, c, v) for c, v in draw.items() if rng.random_sample() < (0.9 if c in (0, 7) else 0.2)]
        if r == test:
            events.append((time, 5, 4.25))
            events.sort(key=lambda e: (e[0], e[1]))
        records.append(np.array(events, np.float32).reshape(-1, 3))
    return records


def dense(record, seen):
    """A record as the published loader returns it, with the channels `seen`."""
    times = np.unique(record[:, 0])
    values, mask = np.zeros((2, len(times), len(seen)), np.float32)
    row, column = np.searchsorted(times, record[:, 0]), np.searchsorted(seen, record[:, 1])
    values[row, column], mask[row, column] = record[:, 2], 1
    return ("", *map(torch.from_numpy, (times, values, mask)), None), row, column


def published(t, utils, physionet, records, parts):
    """Results of the published code, which does not accept a channel that is never observed."""
    seen = [c for c in range(CHANNELS) if c != 4]
    low, high = physionet.get_data_min_max([dense(r, seen)[0] for r in records], "cpu")
    time, value = {}, {}
    for part in parts:
        batch = [dense(records[i], seen) for i in part]
        out = utils.variable_time_collate_fn([b[0] for b in batch], data_min=low, data_max=high).numpy()
        for i, (_, row, column), tensor in zip(part, batch, out):
            time[i], value[i] = tensor[row, -1], tensor[row, column]
    t["prep.published.time"] = np.concatenate([time[i] for i in range(len(records))])
    t["prep.published.value"] = np.concatenate([value[i] for i in range(len(records))])


def correct(t, records, train):
    """Offset, scale, low and high of each channel for z-scores and for min-max; -1 of channel 2 is missing."""
    events = np.concatenate([records[i] for i in train]).astype(np.float64)
    zscore, minmax = [], []
    for c in range(CHANNELS):
        x = events[(events[:, 1] == c) & ~((c == 2) & (events[:, 2] == -1)), 2]
        if len(x) == 0:
            zscore.append((0, 1, -np.inf, np.inf))
            minmax.append((0, 1, -np.inf, np.inf))
            continue
        low, high = np.percentile(x, [0.1, 99.9])
        constant = x.min() == x.max()
        clipped = np.clip(x, low, high)
        zscore.append((x[0], 1, -np.inf, np.inf) if constant else (clipped.mean(), clipped.std(), low, high))
        minmax.append((x.min(), 1 if constant else x.max() - x.min(), -np.inf, np.inf))
    t["prep.zscore"], t["prep.minmax"] = np.array(zscore), np.array(minmax)


def preprocessing(t, utils, physionet):
    parts = two_draws(23, 42, 11)
    records = make_records(test=parts[2][0])
    t["prep.offset"] = i32(np.cumsum([0] + [len(r) for r in records]))
    events = np.concatenate(records)
    t["prep.time"], t["prep.channel"], t["prep.value"] = events[:, 0], i32(events[:, 1]), events[:, 2]
    put_parts(t, "prep", parts)
    published(t, utils, physionet, records, parts)
    correct(t, records, parts[0])
    t["percentile.x"] = np.random.RandomState(3).standard_cauchy(41)
    t["percentile.q"] = np.array([0, 0.1, 1.8, 2.5, 25, 31.7, 41.7, 41.9, 50, 97.5, 99.9, 100])
    t["percentile"] = np.percentile(t["percentile.x"], t["percentile.q"])


# ---- metrics


def binary_cases():
    rng = np.random.RandomState(4)
    y = (rng.random_sample(110) < 0.3).astype(int)
    logit = rng.randn(110) + 1.2 * y
    yield y, logit
    yield y, np.round(logit)  # heavy ties
    yield y, np.sign(logit)
    yield y, np.zeros(110)
    yield y, -logit * 1e300
    yield np.arange(40) % 40 == 17, np.round(rng.random_sample(40), 1)  # one positive
    yield np.arange(20) >= 10, np.arange(20.0)  # perfect
    yield np.arange(2) == 0, np.array([-0.0, 0.0])  # still a tie


def binary(t):
    cases = [(i32(y), s) for y, s in binary_cases()]
    t["binary.n"] = i32([len(y) for y, _ in cases])
    t["binary.label"], t["binary.score"] = (np.concatenate(x) for x in zip(*cases))
    t["binary.auc"] = np.array([metrics.roc_auc_score(y, s) for y, s in cases])
    t["binary.auprc"] = np.array([metrics.average_precision_score(y, s) for y, s in cases])
    y, s = cases[1]
    fpr, tpr, _ = metrics.roc_curve(y, s, drop_intermediate=False)
    precision, recall, _ = metrics.precision_recall_curve(y, s)
    t["binary.1.roc"], t["binary.1.pr"] = np.stack((fpr, tpr)), np.stack((recall[::-1], precision[::-1]))


def calibration_bins(confidence, hit):
    """(k/15, (k+1)/15]; the edges are the quotients. Mean confidence, accuracy, count; NaN where empty."""
    edges, rows = np.arange(1, 15) / 15, []
    k = np.digitize(confidence, edges, right=True)
    for b in range(15):
        inside = k == b
        n = inside.sum()
        rows.append((confidence[inside].mean() if n else np.nan, hit[inside].mean() if n else np.nan, n))
    return np.array(rows, np.float64)


def calibration_error(bins):
    used = bins[bins[:, 2] > 0]
    return np.sum(used[:, 2] * np.abs(used[:, 1] - used[:, 0])) / used[:, 2].sum()


def macro(score, y, p):
    return np.mean([score(y == c, p[:, c]) for c in np.unique(y)])


def per_row(t, name, y, p, classes):
    """p (n, C); some rows have ties, some confidences lie on the edge of a bin."""
    best = p.argmax(1)
    t[f"{name}.label"], t[f"{name}.p"] = i32(y), p
    bins = calibration_bins(p.max(1), best == y)
    t[f"{name}.bins"] = bins
    t[f"{name}.bins1"] = calibration_bins(p[:, 1], y == 1)
    auc = metrics.roc_auc_score(y, p[:, 1]) if classes == 2 else macro(metrics.roc_auc_score, y, p)
    ap = metrics.average_precision_score(y, p[:, 1]) if classes == 2 else macro(metrics.average_precision_score, y, p)
    loss = metrics.log_loss(y, np.maximum(p, 1e-15), labels=range(classes))
    brier = metrics.brier_score_loss(y, p, labels=range(classes))
    t[f"{name}.metrics"] = np.array([auc, ap, metrics.accuracy_score(y, best), loss, brier, calibration_error(bins)])
    t[f"{name}.confusion"] = i32(metrics.confusion_matrix(y, best, labels=range(classes)))
    table = metrics.precision_recall_fscore_support(y, best, labels=range(classes), zero_division=np.nan)
    t[f"{name}.classes"] = np.array(table[:3]).T.copy()


def probabilities(rng, n, classes, y):
    logit = rng.randn(n, classes)
    logit[np.arange(n), y] += 1
    p = np.round(np.exp(logit) / np.exp(logit).sum(1, keepdims=True) * 60) / 60  # ties, and edges of bins
    p[:, 0] += 1 - p.sum(1)
    return np.abs(p)


def bootstrap(t):
    """Rows and groups drawn as RandomState gives them; draws with one class are left out."""
    rng = np.random.RandomState(6)
    y, group = i32(rng.random_sample(48) < 0.15), i32(np.sort(rng.randint(0, 15, 48)) * 7)
    score = np.round(rng.randn(2, 48) + y, 1)
    t["boot.label"], t["boot.group"], t["boot.score"] = y, group, score
    rows, by_group = np.random.RandomState(5), np.random.RandomState(5)
    names = list(dict.fromkeys(group.tolist()))
    auc, difference, grouped = [], [], []
    for _ in range(100):
        at = rows.randint(0, 48, 48)
        if 0 < y[at].sum() < 48:
            one, two = (metrics.roc_auc_score(y[at], s[at]) for s in score)
            auc.append(one)
            difference.append(one - two)
        at = np.concatenate([np.where(group == names[g])[0] for g in by_group.randint(0, len(names), len(names))])
        if 0 < y[at].sum() < len(at):
            grouped.append(metrics.average_precision_score(y[at], score[0][at]))
    t["boot.kept"] = i32([len(auc), len(grouped)])
    t["boot.intervals"] = np.array([np.percentile(x, [2.5, 97.5]) for x in (auc, difference, grouped)])


def scores(t):
    binary(t)
    rng = np.random.RandomState(7)
    y = i32(rng.random_sample(90) < 0.3)
    per_row(t, "two", y, probabilities(rng, 90, 2, y), 2)
    y = i32(rng.choice([0, 1, 2, 4], 90, p=[0.5, 0.3, 0.15, 0.05]))  # 3 does not occur
    per_row(t, "five", y, probabilities(rng, 90, 5, y), 5)
    bootstrap(t)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reference, out = sys.argv[1:]
    sys.path.insert(0, os.path.join(reference, "src"))
    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.utils"):  # no data set is fetched
        sys.modules[name] = unittest.mock.MagicMock()
    import utils
    import physionet

    t = {}
    splits(t)
    preprocessing(t, utils, physionet)
    scores(t)
    write(os.path.join(out, "metrics.safetensors"), t)


if __name__ == "__main__":
    main()
