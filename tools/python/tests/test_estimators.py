"""Estimators: training, prediction, files, streams, interrupts, threads."""

from __future__ import annotations

import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import SMALL, made_frame, with_static

import mtan
from mtan._sklearn import NotFittedError


def test_a_card_is_one_that_the_hub_reads(classifier, events, data, tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="no huggingface_hub")
    classifier.report(tmp_path / "README.md", events, data[1], card=True)
    card = hub.ModelCard.load(tmp_path / "README.md")
    assert card.data.library_name == "mtan" and card.data.pipeline_tag == "tabular-classification"
    found = {r.metric_type: r.metric_value for r in card.data.eval_results}
    kept_apart = np.array(list(classifier.model_.text("mtan.split.given"))) == "2"
    measured = classifier.evaluate(events[kept_apart], data[1][kept_apart], draws=0)
    assert abs(found["log_loss"] - measured["log_loss"][0]) < 1e-6
    assert "It reads 3 channels: BP, heat, pulse." in card.text


@pytest.mark.parametrize("kind", ["classes", "curves", "forecast"])
def test_the_lines_of_a_card_run(kind, data, events, tmp_path, monkeypatch):
    frame, labels, _ = data
    horizon = 2 if kind == "forecast" else None
    if kind == "classes":
        estimator = mtan.Classifier(**SMALL).fit(with_static(frame), labels)
    else:
        estimator = mtan.Interpolator(forecast_horizon=horizon, dec_hidden=6, latent=3, **SMALL).fit(with_static(frame))
    estimator.report(tmp_path / "README.md", card=True)
    estimator.save(tmp_path / "best.safetensors")
    frame.to_csv(tmp_path / "events.csv", index=False)
    pd.DataFrame({"record": frame["record"].unique(), "age": 40}).to_csv(tmp_path / "static.csv", index=False)
    lines = (tmp_path / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert ("static.csv" in lines) and (".forecast(" in lines) == (kind == "forecast")
    monkeypatch.chdir(tmp_path)
    exec(lines, {})


def test_a_classifier_learns(classifier, events, data):
    p = classifier.predict_proba(events)
    assert p.shape == (len(events), 2) and np.allclose(p.sum(axis=1), 1)
    assert classifier.classes_.tolist() == ["down", "up"] and classifier.channels_ == ["BP", "heat", "pulse"]
    assert classifier.evaluate(events, data[1], draws=0)["auc"][0] > 0.8
    assert classifier.score(events, data[1]) == np.mean(classifier.predict(events) == data[1])
    assert [h["epoch"] for h in classifier.history_] == [1, 2, 3, 4] and "val_auc" in classifier.history_[0]
    assert any("channels" in remark for remark in classifier.remarks_)


def test_labels_of_any_kind(events, data):
    up = data[1] == "up"
    for y, classes in ((up, [False, True]), (up.astype(int) * 10 + 1, [1, 11]), (pd.Series(np.where(up, "u", "d")), ["d", "u"])):
        clf = mtan.Classifier(**{**SMALL, "epochs": 1}).fit(events, y)
        assert clf.classes_.tolist() == classes and clf.predict(events)[0] in classes
    some = np.where(np.arange(len(up)) % 5 == 0, None, np.where(up, "up", "down"))
    clf = mtan.Classifier(**{**SMALL, "epochs": 1}).fit(events, some)
    assert clf.classes_.tolist() == ["down", "up"]


def test_a_model_file_is_the_estimator(classifier, events, tmp_path):
    classifier.save(tmp_path / "m.safetensors")
    loaded = mtan.load(tmp_path / "m.safetensors")
    assert isinstance(loaded, mtan.Classifier)
    assert np.array_equal(loaded.predict_proba(events), classifier.predict_proba(events))
    copied = pickle.loads(pickle.dumps(classifier))
    assert copied.model_.contents == classifier.model_.contents
    assert np.array_equal(copied.predict_proba(events), classifier.predict_proba(events))
    assert copied.get_params() == classifier.get_params()
    assert "enc_hidden" not in classifier.model_.metadata and classifier.model_.text("enc_hidden") == "8"
    assert sum(t.size for t in classifier.model_.tensors().values()) > 100


def test_a_stream_ends_where_a_record_does(classifier, events):
    one = events[0]
    order = np.argsort(one.time, kind="stable")
    s = classifier.stream("r0")
    for i in order:
        s.push(one.time[i], one.channels[one.channel[i]], one.value[i])
    assert np.allclose(s.predict_proba(), classifier.predict_proba(one)[0], atol=1e-6)
    assert s.predict() in classifier.classes_
    with pytest.raises(mtan.Error, match='no channel "heart"'):
        s.push(1, "heart", 1)
    s.reset()


def test_why(classifier, events):
    one = events[3]
    a = classifier.attention(one, channel="pulse")
    assert a["weight"].shape == (len(a["reference"]), len(a["time"])) and np.allclose(a["weight"].sum(axis=1), 1, atol=1e-5)
    assert set(classifier.attention(one)) == set(classifier.channels_)
    why = classifier.importance(one, of="up")
    assert why["of"] == "up" and len(why["change"]) == len(why["time"]) == len(why["channel"]) == len(why["value"])
    p = classifier.predict_proba(one)[0]
    assert np.isclose(why["log_odds"], np.log(p[1] / p[0]), atol=1e-4)
    with pytest.raises(mtan.Error, match="one record"):
        classifier.importance(events)


def test_a_report(classifier, events, data, tmp_path):
    classifier.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert text.rstrip().endswith("</html>") and "AUC" in text
    copied = pickle.loads(pickle.dumps(classifier))
    with pytest.raises(mtan.Error, match="needs records"):
        copied.report(tmp_path / "again.html")
    copied.report(tmp_path / "again.html", events, data[1])


def test_a_regressor(events, data):
    reg = mtan.Regressor(interval=0.8, **{**SMALL, "epochs": 30}).fit(events, data[2])
    low, high = reg.predict_interval(events)
    middle = reg.predict(events)
    assert np.all(low <= middle + 1e-6) and np.all(middle <= high + 1e-6)
    assert reg.score(events, data[2]) > 0.3
    assert set(reg.evaluate(events, data[2], draws=0)) == {"rmse", "mae", "r2", "coverage"}
    one, s = events[0], reg.stream("r0")
    for i in range(len(one.time)):
        s.push(one.time[i], one.channels[one.channel[i]], one.value[i])
    assert np.allclose([*s.predict_interval(), s.predict()], [low[0], high[0], middle[0]], rtol=1e-5)
    plain = mtan.Regressor(**{**SMALL, "epochs": 1}).fit(events, data[2])
    assert set(plain.evaluate(events, data[2], draws=0)) == {"rmse", "mae", "r2"}
    with pytest.raises(mtan.Error, match="of records, not of times"):
        plain.predict(events, times=[[1.0]] * len(events))
    with pytest.raises(mtan.Error, match="no interval"):
        plain.predict_interval(events)


def test_numbers_of_times(events):
    at = [np.array([1.0, 4.0, 9.5]) + 0.01 * i for i in range(len(events))]
    y = [10 * times for times in at]
    y[3][1] = np.nan
    with pytest.raises(mtan.Error, match="the labels belong to times: --model per-time"):
        mtan.Regressor(**SMALL).fit(events, y, times=at)
    reg = mtan.Regressor("per-time", interval=0.8, **{**SMALL, "epochs": 40}).fit(events, y, times=at)
    said, (low, high) = reg.predict(events, times=at), reg.predict_interval(events, times=at)
    assert [len(rows) for rows in said] == [3] * len(events)
    assert all(np.all(a <= b + 1e-6) and np.all(b <= c + 1e-6) for a, b, c in zip(low, said, high))
    found = reg.evaluate(events, y, times=at, draws=0)
    assert found["r2"][0] > 0.8 and 0 <= found["coverage"][0] <= 1
    error = np.concatenate(said) - np.concatenate(y)
    assert np.isclose(found["rmse"][0], np.sqrt(np.nanmean(error**2)), rtol=1e-5)
    assert [len(rows) for rows in reg.predict(events[:2])] == [len(np.unique(events[i].time)) for i in range(2)]
    with pytest.raises(mtan.Error, match="as many entries for each record"):
        reg.fit(events, y, times=[t[:2] for t in at])
    with pytest.raises(mtan.Error, match="must be lists of 80 lists"):
        reg.fit(events, np.arange(80.0), times=at)
    assert "<svg" in reg._repr_html_()


def test_why_a_number_and_why_a_label(events, data):
    reg = mtan.Regressor(**SMALL).fit(events, data[2])
    why = reg.importance(events[3])
    assert np.isclose(why["predicted"], reg.predict(events[3])[0]) and len(why["change"]) == len(why["time"])
    frame = data[0][data[0].record == "r3"]
    left = frame.drop(frame.index[np.argmin(frame.time)])
    assert np.isclose(why["predicted"] - why["change"][0], reg.predict(mtan.Events(left))[0], atol=1e-4)
    labels = pd.DataFrame({"up": data[1] == "up", "high": data[2] > 45}).astype(float)
    clf = mtan.Classifier(**SMALL).fit(events, labels)
    p = clf.predict_proba(events[3])[0]
    for k, name in enumerate(labels):
        assert np.isclose(clf.importance(events[3], of=name)["log_odds"], np.log(p[k] / (1 - p[k])), atol=1e-4)
    assert clf.importance(events[3])["of"] == labels.columns[np.argmax(p)]
    with pytest.raises(mtan.Error, match="of='low': must be one of up, high"):
        clf.importance(events[3], of="low")


def test_an_interpolator(events):
    curves = mtan.Interpolator(dec_hidden=6, latent=3, **SMALL).fit(events)
    mean, sd = curves.predict(events[:2], at=np.linspace(0, 10, 700))
    assert mean.shape == (2, 700, 3) and np.all(sd >= 0)
    each, _ = curves.predict(events[:2], at=np.tile(np.linspace(0, 10, 700), (2, 1)))
    assert np.array_equal(mean, each)
    at, ahead, _ = curves.forecast(events[:2], horizon=2, steps=4)
    assert at.shape == (2, 4) and ahead.shape == (2, 4, 3) and np.allclose(at[:, -1] - events[:2].last(), 2)
    assert curves.embed(events).shape == (len(events), 6, 3)
    assert curves.score(events) < 0
    m, s = curves.stream().push(1, "heat", 5).interpolate(2)
    assert m.shape == s.shape == (3,)
    with pytest.raises(mtan.Error, match="ascending"):
        curves.predict(events, at=[3, 1])


def test_dates_count_from_the_first(data):
    frame = data[0].copy()
    shift = frame["record"].str[1:].astype(int) * 7
    frame["time"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["time"] + shift, unit="h")
    X = mtan.Events(frame)
    curves = mtan.Interpolator(dec_hidden=6, latent=3, **SMALL).fit(X)
    first = frame[frame.record == "r0"].time.min()
    dates = np.array([first + pd.Timedelta(hours=h) for h in (1, 2)], dtype="datetime64[ns]")
    assert np.allclose(curves.predict(X[0], at=dates)[0], curves.predict(X[0], at=[1, 2])[0])
    clf = mtan.Classifier(head_hidden=6, **SMALL).fit(X, data[1])
    s = clf.stream("r0")
    rows = frame[frame.record == "r0"].sort_values("time")
    for row in rows.itertuples():
        s.push(row.time, row.channel, row.value)
    assert np.allclose(s.predict_proba(), clf.predict_proba(X[0])[0], atol=1e-6)
    with pytest.raises(mtan.Error, match="times are"):
        clf.predict_proba(mtan.Events(data[0]))


def test_groups_stay_on_one_side(events, data):
    groups = np.arange(len(events)) // 4
    clf = mtan.Classifier(**{**SMALL, "epochs": 1}).fit(events, data[1], groups=groups)
    parts = np.array(list(clf.model_.text("mtan.split.given")))
    assert all(len(set(parts[groups == g])) == 1 for g in groups) and set(parts) == {"0", "1", "2"}


def test_validation_keeps_nothing_apart(events, data, tmp_path):
    groups = np.arange(len(events)) // 2
    clf = mtan.Classifier(validation=0.25, **{**SMALL, "epochs": 1}).fit(events, data[1], groups=groups)
    parts = np.array(list(clf.model_.text("mtan.split.given")))
    assert set(parts) == {"0", "1"} and 0.15 < np.mean(parts == "1") < 0.35
    assert all(len(set(parts[groups == g])) == 1 for g in groups)
    clf.report(tmp_path / "r.html")
    mtan.Interpolator(validation=0.2, dec_hidden=6, latent=3, **{**SMALL, "epochs": 1}).fit(events)
    with pytest.raises(mtan.Error, match="between 0 and 1"):
        mtan.Classifier(validation=1).fit(events, data[1])


def test_errors_are_the_tools_sentences(events, data):
    for clf, words in (
        (mtan.Classifier(options={"dropuot": 0.5}), "no option --dropuot; did you mean --dropout"),
        (mtan.Classifier(model="encoder"), "--model encoder: must be enc, full"),
        (mtan.Classifier(lr=-1), "--lr -1: must be from"),
        (mtan.Classifier(preset="perfect"), "must be one of faithful, correct, best"),
    ):
        with pytest.raises(mtan.Error, match=words):
            clf.fit(events, data[1])
    with pytest.raises(mtan.Error, match="at least two classes"):
        mtan.Classifier().fit(events, np.zeros(len(events)))
    with pytest.raises(mtan.Error, match="shape"):
        mtan.Classifier().fit(events, data[1][:-1])
    with pytest.raises(mtan.Error, match="which column is what"):
        mtan.Classifier().fit(data[0], data[1])
    with pytest.raises(NotFittedError):
        mtan.Classifier().predict(events)
    with pytest.raises(mtan.Error, match="the model: "):
        mtan._model.Model(b"nonsense")


def test_unknown_channels_are_refused(classifier):
    other = mtan.Events(pd.DataFrame({"record": ["x"], "time": [1], "channel": ["SpO2"], "value": [97]}))
    with pytest.raises(mtan.Error, match='the model has no channel "SpO2"'):
        classifier.predict_proba(other)
    lenient = pickle.loads(pickle.dumps(classifier)).set_params(skip_unknown=True)
    assert lenient.predict_proba(other).shape == (1, 2)


@pytest.fixture
def ctrl_c():
    """As at a terminal: what a script runs in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_the_best_model(events, data, ctrl_c):
    clf = mtan.Classifier(**{**SMALL, "epochs": 100000, "patience": 0})
    threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start()
    start = time.perf_counter()
    with pytest.warns(UserWarning, match="best model so far"), pytest.raises(KeyboardInterrupt):
        clf.fit(events, data[1])
    assert time.perf_counter() - start < 20
    assert clf.predict_proba(events).shape == (len(events), 2) and len(clf.history_) >= 1


def test_ctrl_c_ends_a_search(events, data, ctrl_c):
    clf = mtan.Classifier(budget="60s", threads=1)
    threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start()
    start = time.perf_counter()
    with warnings.catch_warnings(), pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("ignore")
        clf.fit(events, data[1])
    assert time.perf_counter() - start < 30


def test_two_threads_train_what_one_does(events, data):
    seeds = (1, 2)
    alone = [mtan.Classifier(seed=s, **SMALL).fit(events, data[1]).model_.contents for s in seeds]
    together: dict[int, bytes] = {}

    def fit(seed: int) -> None:
        together[seed] = mtan.Classifier(seed=seed, **SMALL).fit(events, data[1]).model_.contents

    threads = [threading.Thread(target=fit, args=(s,)) for s in seeds]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [together[s] for s in seeds] == alone


def test_the_gil_is_released(events, data):
    """Python goes on while C trains."""
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    big = mtan.Events(made_frame(400, seed=1)[0])
    clf = mtan.Classifier(**{**SMALL, "epochs": 1, "batch": 400, "enc_hidden": 64, "ref_points": 64})
    clf.fit(big, np.arange(400) % 2)
    done.set()
    thread.join()
    assert counted > 5


def test_several_labels(events, data):
    up = (data[1] == "up").astype(float)
    high = (data[2] > 45).astype(float)
    high[::9] = np.nan
    frame = pd.DataFrame({"up": up, "high": high})
    clf = mtan.Classifier(**{**SMALL, "epochs": 20}, head_hidden=6).fit(events, frame)
    assert clf.classes_.tolist() == ["up", "high"]
    p, said = clf.predict_proba(events), clf.predict(events)
    assert p.shape == (len(events), 2) and said.dtype == bool and np.array_equal(said, p > 0.5)
    found = clf.evaluate(events, frame, draws=20)
    assert "calibration_error" not in found and found["auc"][0] > 0.7 and found["auc"][1] <= found["auc"][0] <= found["auc"][2]
    assert clf.evaluate(events, frame.to_numpy(), draws=0)["auc"][0] == found["auc"][0]
    from_array = mtan.Classifier(**SMALL, head_hidden=6).fit(events, frame.to_numpy())
    assert from_array.classes_.tolist() == [0, 1]
    with pytest.raises(mtan.Error, match='"high" is 0.5: it must be 1 or 0'):
        mtan.Classifier(**SMALL).fit(events, frame.assign(high=0.5))


def test_labels_of_times(events, data):
    at = [np.array([1.0, 4.0, 9.5]) + 0.01 * i for i in range(len(events))]
    y = [np.array(["late" if t > 5 else "early" for t in times], dtype=object) for times in at]
    y[3][1] = None
    with pytest.raises(mtan.Error, match="the labels belong to times: --model per-time"):
        mtan.Classifier(**SMALL).fit(events, y, times=at)
    clf = mtan.Classifier("per-time", **{**SMALL, "epochs": 40}).fit(events, y, times=at)
    p = clf.predict_proba(events, times=at)
    assert len(p) == len(events) and all(rows.shape == (3, 2) for rows in p)
    said = np.concatenate(clf.predict(events, times=at))
    truth = np.concatenate([np.where(times > 5, "late", "early") for times in at])
    assert np.mean(said == truth) > 0.9
    assert clf.evaluate(events, y, times=at, draws=0)["accuracy"][0] > 0.9
    own = clf.predict_proba(events[:2])  # at the observations
    assert [len(rows) for rows in own] == [len(np.unique(events[i].time)) for i in range(2)]
    with pytest.raises(mtan.Error, match="as many entries for each record"):
        clf.fit(events, y, times=[t[:2] for t in at])
