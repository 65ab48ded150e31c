"""The package against the command: the same model files, the same numbers."""

from __future__ import annotations

import csv
import hashlib
import io
import re

import numpy as np
from conftest import ROOT, SMALL, SMALL_WORDS

import mtan
from mtan import _flat


def sha(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def train(command, files, out, *words) -> bytes:
    command("train", "own", "--data", files / "events.csv", "--out", out, "--quiet", *SMALL_WORDS, *words)
    return (out / "best.safetensors").read_bytes()


def test_the_header_has_no_other_functions():
    header = (ROOT / "tools" / "mtan" / "flat" / "flat.h").read_text()
    declared = set(re.findall(r"^MTAN_FLAT [^;]*?mtan_flat_(\w+)\(", header, re.M))
    assert declared == set(_flat.SIGNATURES)


def test_fit_writes_the_commands_bytes(command, files, classifier, tmp_path):
    labels = ["--labels", files / "labels.csv"]
    expected = train(command, files, tmp_path / "run", "--model", "enc", "--head-hidden", 6, "--seed", 3, *labels)
    assert sha(classifier.model_.contents) == sha(expected)


def test_a_number_and_curves_have_the_commands_bytes(command, files, events, data, tmp_path):
    number = mtan.Regressor(seed=1, head_hidden=6, interval=0.8, **SMALL).fit(events, data[2])
    words = ["--model", "enc", "--head-hidden", 6, "--seed", 1, "--task", "number", "--interval", 0.8]
    assert sha(number.model_.contents) == sha(
        train(command, files, tmp_path / "number", "--labels", files / "numbers.csv", *words)
    )
    small = dict(SMALL, options={"mlp_hidden": 6}, dec_hidden=6, latent=3)
    curves = mtan.Interpolator(**small).fit(events)
    words = ["--model", "interp", "--mlp-hidden", 6, "--dec-hidden", 6, "--latent", 3, "--seed", 0]
    assert sha(curves.model_.contents) == sha(train(command, files, tmp_path / "curves", *words))


def test_predictions_are_the_commands(command, files, classifier, events, tmp_path):
    classifier.save(tmp_path / "m.safetensors")
    shown = rows(command("predict", tmp_path / "m.safetensors", "--data", files / "events.csv", "--quiet"))
    p = classifier.predict_proba(events)
    assert [r["record"] for r in shown] == events.records
    for k, name in enumerate(classifier.classes_):
        printed = np.array([float(r[f"p_{name}"]) for r in shown])
        assert np.array_equal(printed.astype(np.float32), p[:, k].astype(np.float32))  # nine digits are a float
    assert [r["predicted"] for r in shown] == classifier.predict(events).tolist()


def test_curves_are_the_commands(command, files, events, tmp_path):
    small = dict(SMALL, options={"mlp_hidden": 6}, dec_hidden=6, latent=3)
    curves = mtan.Interpolator(seed=2, **small).fit(events)
    curves.save(tmp_path / "m.safetensors")
    shown = rows(
        command("interpolate", tmp_path / "m.safetensors", "--data", files / "events.csv", "--at", "1:7:3", "--quiet")
    )
    mean, sd = curves.predict(events, at=[1, 4, 7])
    assert mean.shape == (len(events), 3, 3)
    column = next(name for name in shown[0] if name in ("mean", "value"))
    assert np.allclose([float(r[column]) for r in shown], mean.ravel(), rtol=1e-7)
    assert np.allclose([float(r["sd"]) for r in shown], sd.ravel(), rtol=1e-7)


def test_metrics_are_the_commands(command, files, classifier, events, data, tmp_path):
    import json

    classifier.save(tmp_path / "m.safetensors")
    text = command(
        *["eval", tmp_path / "m.safetensors", "--data", files / "events.csv", "--labels", files / "labels.csv"],
        *["--split", "all", "--bootstrap", 100, "--json", "--quiet"],
    )
    ours = classifier.evaluate(events, data[1], draws=100)
    theirs = json.loads(text)
    flat = json.dumps(theirs)
    for name in ("auc", "log_loss"):
        printed = float(re.search(rf'"{name}": (?:{{[^}}]*?"value": )?(-?[\d.e+-]+)', flat).group(1))
        assert abs(printed - ours[name][0]) < 1e-6
