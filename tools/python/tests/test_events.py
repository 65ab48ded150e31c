"""Frames and arrays of all kinds become the same records."""

from __future__ import annotations

import datetime
import sys
import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mtan

ROWS = {
    "record": ["b", "b", "a", "b", "a"],
    "time": [1.5, 0.25, 3.0, 2.0, 1.0],
    "channel": ["HR", "pH", "HR", "HR", "pH"],
    "value": [80.0, 7.25, 61.0, None, 7.5],
}
START = datetime.datetime(2024, 5, 31, 23, 0, tzinfo=datetime.timezone.utc)


def same(a: mtan.Events, b: mtan.Events) -> bool:
    columns = ("offset", "channel", "value", "time", "date")
    return (a.records, a.channels, a.statics) == (b.records, b.channels, b.statics) and all(
        (getattr(a, c) is None and getattr(b, c) is None)
        or np.array_equal(getattr(a, c), getattr(b, c), equal_nan=c in ("value", "time"))
        for c in columns
    )


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS)


FRAMES = {
    "pandas": pandas_frame(),
    "polars": pl.DataFrame(ROWS),
    "pyarrow": pa.table(ROWS),
    "pandas with a duplicated index": pandas_frame().set_index(pd.Index([7, 7, 7, 1, 1])),
    "pandas categories": pandas_frame().astype({"record": "category", "channel": "category"}),
    "pandas of arrow": pandas_frame().convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": pandas_frame().astype({"record": object, "channel": object}),
    "polars categories": pl.DataFrame(ROWS).with_columns(pl.col("record", "channel").cast(pl.Categorical)),
    "arrow dictionaries": pa.table({**ROWS, "channel": pa.array(ROWS["channel"]).dictionary_encode()}),
    "every second row of more": pd.DataFrame({k: np.repeat(np.array(v, dtype=object), 2) for k, v in ROWS.items()})[::2],
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_has_the_same_records(name):
    events = mtan.Events(FRAMES[name])
    assert same(events, mtan.Events(FRAMES["pandas"]))
    assert events.records == ["b", "a"] and events.offset.tolist() == [0, 3, 5]
    assert [events.channels[c] for c in events.channel] == ["HR", "pH", "HR", "HR", "pH"]
    assert np.isnan(events.value[2]) and events.time.tolist() == [1.5, 0.25, 2.0, 3.0, 1.0]


def test_frames_need_no_pyarrow(monkeypatch):
    expected = mtan.Events(FRAMES["pandas"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert same(mtan.Events(FRAMES["polars"]), expected)
    assert same(mtan.Events(FRAMES["pandas objects"]), expected)


def test_dates_have_zones():
    hours = [1.5, 0.25, 3.0, 2.0, 1.0]
    utc = [START + datetime.timedelta(hours=h) for h in hours]
    tokyo = [t.astimezone(datetime.timezone(datetime.timedelta(hours=9))) for t in utc]
    naive = [t.replace(tzinfo=None) for t in utc]
    one = mtan.Events(pd.DataFrame({**ROWS, "time": pd.to_datetime(pd.Series(naive))}))
    assert one.time is None
    assert (one.date[0] - one.date[1]) / 36e9 == 1.25
    for frame in (
        pd.DataFrame({**ROWS, "time": pd.to_datetime(pd.Series(utc), utc=True)}),
        pd.DataFrame({**ROWS, "time": pd.to_datetime(pd.Series(tokyo), utc=True).dt.tz_convert("Asia/Tokyo")}),
        pl.DataFrame({**ROWS, "time": naive}),
        pl.DataFrame({**ROWS, "time": utc}),
        pa.table({**ROWS, "time": pa.array(utc, pa.timestamp("us", tz="UTC"))}),
        pa.table({**ROWS, "time": pa.array(naive, pa.timestamp("ns"))}),
        pd.DataFrame({**ROWS, "time": [t.isoformat() for t in naive]}),
    ):
        assert same(mtan.Events(frame), one)
    expected = np.datetime64(naive[0]).astype("datetime64[us]").astype(np.int64) * 10
    assert one.date[0] == expected


def test_wide_and_dense_agree():
    frame = pd.DataFrame({"record": ["a", "a", "b"], "time": [0.0, 1.0, 0.5], "x": [1.0, None, 3.0], "y": [None, 5.0, 6.0]})
    wide = mtan.Events.from_wide(frame)
    assert wide.channels == ["x", "y"] and wide.value.tolist() == [1, 5, 3, 6] and wide.offset.tolist() == [0, 2, 4]
    values = np.array([[[1, np.nan], [np.nan, 5]], [[3, 6], [np.nan, np.nan]]])
    times = np.array([[0, 1], [0.5, 9]])
    dense = mtan.Events.from_dense(values, times, records=["a", "b"], channels=["x", "y"])
    assert same(wide, dense)
    mask = ~np.isnan(values)
    assert same(dense, mtan.Events.from_dense(np.nan_to_num(values), times, mask, records=["a", "b"], channels=["x", "y"]))
    assert same(dense, mtan.Events.from_dense(np.asfortranarray(values), times, records=["a", "b"], channels=["x", "y"]))
    assert mtan.Events.from_dense(np.zeros((3, 4))).channels == ["0"]


def test_records_are_taken_as_rows_of_an_array():
    events = mtan.Events(pandas_frame())
    assert events[1].records == ["a"] and events[1].value.tolist() == [61.0, 7.5]
    assert events[-1:].records == ["a"] and events[[True, False]].records == ["b"]
    again = events[[1, 0, 1]]
    assert again.records == ["a", "b", "a#1"] and again.offset.tolist() == [0, 2, 5, 7]
    assert len(events) == 2 and events.shape == (2,)


def test_statics_are_channels_of_their_own():
    static = pd.DataFrame({"record": ["a", "b", "z"], "age": [70, 60, 1], "sex": ["F", "M", None]})
    events = mtan.Events(pandas_frame(), static=static)
    assert events.channels == ["age", "sex=F", "sex=M", "HR", "pH"] and events.statics == 3
    assert np.isnan(events.time[events.channel < 3]).all() and (events.channel < 3).sum() == 6


def test_nonsense_is_refused_by_row():
    def bad(**columns):
        return pd.DataFrame({**ROWS, **columns})

    for frame, words in (
        (bad(value=[1, 2, np.inf, 4, 5]), "row 2: an infinite value"),
        (bad(time=[1, 2, 3, None, None]), "row 4: no time that is finite"),  # row 3 has no value either
        (bad(record=["a", None, "a", "a", "a"]), "row 1: no record"),
        (bad(value=["x", "1", "1", "1", "1"]), 'column "value"'),
        (bad(time=["noon", "1", "1", "1", "1"]), "neither numbers nor dates"),
        (pandas_frame().drop(columns="time"), 'no column "time": the frame has record, channel, value'),
        (pandas_frame()[:0], "no record"),
        ([1, 2], "list is no frame"),
    ):
        with pytest.raises(mtan.Error, match=words):
            mtan.Events(frame)
    with pytest.raises(mtan.Error, match="dimensions"):
        mtan.Events.from_dense(np.zeros(3))
    with pytest.raises(mtan.Error, match="do not go with"):
        mtan.Events.from_dense(np.zeros((3, 4)), times=[1, 2])


def test_meds_is_cut_at_the_prediction(tmp_path):
    (tmp_path / "data" / "train").mkdir(parents=True)
    when = [START + datetime.timedelta(hours=h) for h in (0, 1, 2, 3, 0)]
    table = {
        "subject_id": [1, 1, 1, 1, 2, 1],
        "time": pa.array([*(t.replace(tzinfo=None) for t in when), None], pa.timestamp("us")),
        "code": ["HR", "HR", "HR", "HR", "HR", "SEX"],
        "numeric_value": pa.array([60.0, 61, 62, 63, 80, 1], pa.float32()),
    }
    pq.write_table(pa.table(table), tmp_path / "data" / "train" / "0.parquet")
    events = mtan.Events.from_meds(tmp_path)
    assert events.records == ["1", "2"] and events.offset.tolist() == [0, 5, 6]
    labels = {
        "subject_id": [1, 1, 2],
        "prediction_time": pa.array([t.replace(tzinfo=None) for t in (when[1], when[2], when[0])], pa.timestamp("us")),
        "boolean_value": [True, False, True],
    }
    pq.write_table(pa.table(labels), tmp_path / "labels.parquet")
    cut, y, groups = mtan.Events.from_meds(tmp_path, tmp_path / "labels.parquet")
    assert cut.offset.tolist() == [0, 3, 7, 8] and y.tolist() == [True, False, True] and groups.tolist() == [1, 1, 2]
    assert cut.records[0] == "1@2024-06-01 00:00:00" and cut.value[:3].tolist() == [60, 61, 1]


def test_a_million_rows(tmp_path):
    """In a few times the time and memory that pandas itself takes to read them."""
    n = 1_000_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "record": np.char.add("r", rng.integers(0, 5000, n).astype(str)),
            "time": rng.uniform(0, 48, n).round(3),
            "channel": rng.choice(["HR", "BP", "T"], n),
            "value": rng.normal(size=n).round(3),
        }
    )
    frame.to_csv(tmp_path / "e.csv", index=False)
    start = time.perf_counter()
    pd.read_csv(tmp_path / "e.csv")
    reading = time.perf_counter() - start
    start = time.perf_counter()
    events = mtan.Events(frame)
    seconds = time.perf_counter() - start
    assert len(events) == 5000 and len(events.value) == n
    tracemalloc.start()
    mtan.Events(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"\npandas reads the file in {reading:.2f} s; Events takes {seconds:.2f} s and {peak / 1e6:.0f} MB at most")
    assert seconds < 5 * reading + 1 and peak < 300e6
