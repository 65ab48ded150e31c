"""Models as ONNX graphs, run by onnxruntime on records in the data's units: the numbers of predict."""

from __future__ import annotations

import os
import pathlib
import tarfile

import numpy as np
import pandas as pd
import pytest
from conftest import BEST, KINDS, SMALL, made_frame, with_static

import mtan

pytest.importorskip("onnx", reason="no onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="no onnxruntime")

KINDS = {**KINDS, "fixed, times from the first": {"origin": "record", **KINDS["fixed"]}}


class Session:
    """A model's graph, asked about events."""

    def __init__(self, estimator, path) -> None:
        estimator.to_onnx(path)
        self.channels = estimator.channels_
        self.run = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run

    def __call__(self, X: mtan.Events, **more) -> list[np.ndarray]:
        values, time = X.to_dense(self.channels)
        mask = (~np.isnan(values)).astype(np.float32)
        return self.run(None, {"time": time, "value": np.nan_to_num(values), "mask": mask, **more})


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_those_of_predict(kind, events, data, tmp_path):
    X = with_static(data[0]) if kind.startswith("static") else events
    clf = mtan.Classifier(**{"head_hidden": 6, **KINDS[kind]}).fit(X, data[1])
    session = Session(clf, tmp_path / "m.onnx")
    expected = clf.predict_proba(X, samples=0)
    assert np.abs(session(X)[0] - expected).max() < 2e-6
    for i in (0, 7):  # alone: another batch, another length
        assert np.abs(session(X[i])[0] - expected[i]).max() < 2e-6


def test_times_are_classified(per_time, events, tmp_path):
    for rows, expected in zip(Session(per_time, tmp_path / "m.onnx")(events)[0], per_time.predict_proba(events)):
        assert np.abs(rows[: len(expected)] - expected).max() < 2e-6


def test_records_of_one_observation_and_of_none(events, data, tmp_path):
    clf = mtan.Classifier(head_hidden=6, **BEST).fit(events, data[1])
    session = Session(clf, tmp_path / "m.onnx")
    one = mtan.Events(pd.DataFrame({"record": ["a"], "time": [3.0], "channel": ["heat"], "value": [4.5]}))
    assert np.abs(session(one)[0] - clf.predict_proba(one)).max() < 2e-6
    D = len(clf.channels_)
    nothing = {"time": np.zeros((1, 2), np.float32), "value": np.ones((1, 2, D), np.float32), "mask": np.zeros((1, 2, D), np.float32)}
    assert np.isfinite(session.run(None, nothing)[0]).all()


def test_hundreds_of_records(tmp_path):
    """With outliers that are clipped, repeats and many lengths."""
    frame, labels, _ = made_frame(300, seed=5)
    frame.loc[::50, "value"] *= 40
    frame = pd.concat([frame, frame.iloc[::9].assign(value=5.0)])
    X = mtan.Events(frame)
    clf = mtan.Classifier(head_hidden=6, **BEST).fit(X, labels)
    assert np.abs(Session(clf, tmp_path / "m.onnx")(X)[0] - clf.predict_proba(X)).max() < 1e-5


def physionet() -> mtan.Events:
    """The 4000 records of the challenge's set A, as they stand."""
    folder = os.environ.get("MTAN_PHYSIONET")
    if not folder:
        pytest.skip("no records of PhysioNet: MTAN_PHYSIONET, a folder with set-a.tar.gz")
    frames = []
    with tarfile.open(pathlib.Path(folder) / "set-a.tar.gz") as archive:
        for member in archive:
            if member.name.endswith(".txt"):
                frames.append(pd.read_csv(archive.extractfile(member)).assign(record=pathlib.Path(member.name).stem))
    frame = pd.concat(frames)
    frame = frame[frame.Parameter.notna() & (frame.Parameter != "RecordID") & (frame.Value >= 0)]
    clock = frame.Time.str.split(":", expand=True).astype(float)
    return mtan.Events(frame.assign(time=clock[0] + clock[1] / 60), channel="Parameter", value="Value")


@pytest.mark.parametrize("preset", ["correct", "best"])
def test_the_records_of_physionet(preset, tmp_path):
    """Each preset at its own sizes, those of `correct` being the published ones, after one epoch on some records with made-up labels."""
    X = physionet()
    assert len(X) == 4000
    clf = mtan.Classifier(preset=preset, epochs=1, threads=1).fit(X[:400], np.arange(400) % 2)
    session, p, worst = Session(clf, tmp_path / "m.onnx"), clf.predict_proba(X), 0.0
    for first in range(0, len(X), 100):
        worst = max(worst, np.abs(session(X[first : first + 100])[0] - p[first : first + 100]).max())
    assert worst < 1e-5


@pytest.mark.parametrize("interval", [None, 0.8])
def test_numbers_are_in_the_datas_unit(interval, events, data, tmp_path):
    reg = mtan.Regressor(interval=interval, head_hidden=6, **BEST).fit(events, data[2])
    out = Session(reg, tmp_path / "m.onnx")(events)[0]
    assert np.abs(out[:, out.shape[1] // 2] - reg.predict(events)).max() < 1e-4  # numbers up to 80
    if interval:
        assert np.abs(out[:, ::2].T - reg.predict_interval(events)).max() < 1e-4


@pytest.mark.parametrize("variance", ["fixed", "learned"])
def test_curves_are_those_of_predict(variance, events, tmp_path):
    curves = mtan.Interpolator(variance=variance, dec_hidden=6, latent=3, options={"mlp_hidden": 6}, **SMALL).fit(events)
    at = np.linspace(0, 12, 5)
    found = Session(curves, tmp_path / "m.onnx")(events, at=np.tile(at, (len(events), 1)).astype(np.float32))
    expected = curves.predict(events, at, samples=0)
    assert len(found) == (2 if variance == "learned" else 1)
    for ours, theirs in zip(found, expected):
        assert np.abs(ours - theirs).max() < 2e-5


def test_the_file_says_what_is_what(classifier, tmp_path):
    import json

    import onnx

    classifier.to_onnx(tmp_path / "m.onnx")
    made = onnx.load(tmp_path / "m.onnx")
    said = {p.key: json.loads(p.value) for p in made.metadata_props}
    assert said == {"channels": classifier.channels_, "classes": classifier.model_.classes}
    assert [i.name for i in made.graph.input] == ["time", "value", "mask"]
    (gru,) = [n for n in made.graph.node if n.op_type == "GRU"]
    assert any(a.name == "linear_before_reset" and a.i == 1 for a in gru.attribute)
