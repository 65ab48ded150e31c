"""MEDS data sets: parquet files of subject_id, time, code, numeric_value, and labels with a prediction_time."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from ._flat import Error


def _read(path: pathlib.Path, columns: list[str]) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.dataset as dataset
    except ImportError:
        raise ImportError("MEDS data needs pyarrow: pip install mtan[meds]") from None
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise Error(f"{path}: no parquet file")
    table = dataset.dataset([str(f) for f in files], format="parquet").to_table(columns=columns)
    return table.cast(pa.schema([_plain(pa, field) for field in table.schema]))


def _plain(pa: Any, field: Any) -> Any:
    """Decodes dictionaries, and converts dates to microseconds."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return field.with_type(pa.timestamp("us") if pa.types.is_timestamp(kind) else kind)


def _ticks(column: Any, no_date: int) -> np.ndarray:
    dates = column.to_numpy().astype("datetime64[us]")
    ticks = dates.astype(np.int64) * 10
    ticks[np.isnat(dates)] = no_date
    return ticks


def read_meds(cls: Any, folder: pathlib.Path, labels: Any) -> Any:
    """See Events.from_meds."""
    from .events import NO_DATE, _text

    data = folder / "data" if (folder / "data").is_dir() else folder
    table = _read(data, ["subject_id", "time", "code", "numeric_value"])
    subjects, codes = np.unique(table["subject_id"].to_numpy(), return_inverse=True)
    channels, channel = np.unique(table["code"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    value = table["numeric_value"].to_numpy(zero_copy_only=False).astype(np.float64)
    date = _ticks(table["time"], NO_DATE)
    names = [_text(s) for s in subjects]
    events = cls._make(names, codes, [str(c) for c in channels], channel.astype(np.int32), value, None, date)
    return events if labels is None else _cut(events, subjects, _read(pathlib.Path(labels), LABEL_COLUMNS), NO_DATE)


LABEL_COLUMNS = ["subject_id", "prediction_time", "boolean_value"]


def _cut(events: Any, subjects: np.ndarray, labels: Any, no_date: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Makes a record for each label, from its subject's rows until the label's time."""
    subject = labels["subject_id"].to_numpy()
    place = np.searchsorted(subjects, subject)
    if np.any(place >= len(subjects)) or np.any(subjects[np.minimum(place, len(subjects) - 1)] != subject):
        raise Error("the labels have a subject that the data does not have")
    until = _ticks(labels["prediction_time"], no_date)
    cut = events[place]
    row_until = np.repeat(until, np.diff(cut.offset))
    keep = (cut.date == no_date) | (cut.date <= row_until)
    lengths = np.add.reduceat(np.r_[keep, False], np.minimum(cut.offset[:-1], len(keep))) * (np.diff(cut.offset) > 0)
    cut.records = [f"{s}@{t}" for s, t in zip(subject, labels["prediction_time"].to_pylist())]
    if len(set(cut.records)) != len(cut.records):
        raise Error("the labels have one subject and prediction_time twice")
    cut.channel, cut.value, cut.date = cut.channel[keep], cut.value[keep], cut.date[keep]
    cut.offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return cut, np.array(labels["boolean_value"].to_pylist()), subject
