"""Records: observations (time, channel, value), sparse and irregular, grouped by record."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from ._flat import Error

NO_DATE = np.iinfo(np.int64).min
_TICKS = {"ns": (1, 100), "us": (10, 1), "ms": (10_000, 1)}  # to ticks of 100 ns: factor, divisor


class Events:
    """Observations of many records, the input of models.

    A frame has a row for each observation:

        Events(df, record="stay", time="t", channel="var", value="x")

    `df` is a frame of pandas, polars, pyarrow or another library that narwhals supports. Rows may be in any order;
    records keep the order of their first row. Times are numbers, or dates with or without a time zone, which count as
    hours since a record's first observation. A row without a value is left out. `static` is a frame with a row for each
    record and, besides the record's column, a column for each static variable.

    `events[3]`, `events[3:9]`, `events[mask]` and `events[[3, 1]]` are events too. `len(events)` is the number of
    records.
    """

    def __init__(
        self,
        frame: Any,
        *,
        record: str = "record",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        static: Any = None,
    ) -> None:
        df = _frame(frame)
        codes, names = _codes(_column(df, record), record)
        channel_codes, channels = _codes(_column(df, channel), channel)
        values = _numbers(_column(df, value), value)
        time_column, date_column = _times(_column(df, time), time)
        _check_rows(values, time_column, date_column, value, time)
        self._set(names, codes, channels, channel_codes, values, time_column, date_column)
        if static is not None:
            self._add_static(_frame(static), record)

    # ---- other constructors ----

    @classmethod
    def from_wide(
        cls, frame: Any, *, record: str = "record", time: str = "time", channels: Sequence[str] | None = None
    ) -> Events:
        """A frame with a column for each channel. An empty cell is not observed."""
        df = _frame(frame)
        chosen = list(channels) if channels is not None else [c for c in df.columns if c not in (record, time)]
        codes, names = _codes(_column(df, record), record)
        time_column, date_column = _times(_column(df, time), time)
        cells = np.column_stack([_numbers(_column(df, c), c) for c in chosen]) if chosen else np.empty((len(df), 0))
        row, channel = np.nonzero(~np.isnan(cells))
        at_time = None if time_column is None else time_column[row]
        at_date = None if date_column is None else date_column[row]
        _check_rows(cells[row, channel], at_time, at_date, "value", time, row)
        return cls._make(names, codes[row], chosen, channel.astype(np.int32), cells[row, channel], at_time, at_date)

    @classmethod
    def from_dense(
        cls,
        values: Any,
        times: Any = None,
        mask: Any = None,
        *,
        records: Iterable[Any] | None = None,
        channels: Iterable[Any] | None = None,
    ) -> Events:
        """Arrays in the published code's form: values (records, times, channels), times (times) or (records, times),
        mask like values.

        Without a mask, NaN means not observed; without times, they are 0, 1, 2, ... Values of two dimensions are
        (records, times) of a single channel.
        """
        x = np.asarray(values, dtype=np.float64)
        x = x[:, :, None] if x.ndim == 2 else x
        if x.ndim != 3:
            raise Error(f"dense values have two or three dimensions, not {x.ndim}: (records, times, channels)")
        n, length, width = x.shape
        t = np.arange(length, dtype=np.float64) if times is None else np.asarray(times, dtype=np.float64)
        if t.shape not in ((length,), (n, length)):
            raise Error(f"times of shape {t.shape} do not go with values of shape {x.shape}")
        seen = ~np.isnan(x) if mask is None else np.asarray(mask).reshape(x.shape) != 0
        record, step, channel = np.nonzero(seen)
        at = np.broadcast_to(t, (n, length))[record, step]
        _check_rows(x[record, step, channel], at, None, "value", "time", record)
        names = [_text(r) for r in records] if records is not None else [str(i) for i in range(n)]
        wide = [_text(c) for c in channels] if channels is not None else [str(i) for i in range(width)]
        if len(names) != n or len(wide) != width or len(set(names)) != n:
            raise Error("names of records and channels must be as many as there are, and records' all different")
        return cls._make(names, record, wide, channel.astype(np.int32), x[record, step, channel], at, None)

    @classmethod
    def from_meds(cls, folder: Any, labels: Any = None) -> Any:
        """A MEDS data set: a folder with data/**/*.parquet. Codes are channels; rows without a time are static.

        With labels, a parquet file or a folder of them, returns (events, y, groups): each label becomes a record,
        called subject@time, with the subject's observations up to that time; y has the labels, and groups the subjects.
        """
        from ._meds import read_meds

        return read_meds(cls, pathlib.Path(folder), labels)

    @classmethod
    def _make(cls, *columns: Any) -> Events:
        made = cls.__new__(cls)
        made._set(*columns)
        return made

    # ---- columns ----

    def _set(
        self,
        names: list[str],
        codes: np.ndarray,
        channels: list[str],
        channel: np.ndarray,
        value: np.ndarray,
        time: np.ndarray | None,
        date: np.ndarray | None,
    ) -> None:
        """Groups rows in any order by record; each record's rows keep their order."""
        if len(names) == 0:
            raise Error("no record")
        if np.any(codes[1:] < codes[:-1]):
            order = np.argsort(codes, kind="stable")
            codes, channel, value = codes[order], channel[order], value[order]
            time, date = (None if x is None else x[order] for x in (time, date))
        self.records: list[str] = names
        self.channels: list[str] = list(channels)
        self.statics = 0
        self.offset = np.searchsorted(codes, np.arange(len(names) + 1)).astype(np.int64)
        self.channel = np.ascontiguousarray(channel, dtype=np.int32)
        self.value = np.ascontiguousarray(value, dtype=np.float64)
        self.time = None if time is None else np.ascontiguousarray(time, dtype=np.float64)
        self.date = None if date is None else np.ascontiguousarray(date, dtype=np.int64)

    def _add_static(self, df: Any, record: str) -> None:
        """Each column except the record's becomes a channel or, for texts, a channel per value; its rows have no
        time."""
        place = {name: i for i, name in enumerate(self.records)}
        at = np.array([place.get(_text(r), -1) for r in _column(df, record).to_list()], dtype=np.int64)
        if len(set(at[at >= 0].tolist())) != np.count_nonzero(at >= 0):
            raise Error(f'the static frame has two rows of one "{record}"')
        channels, cells = _static_channels(df, record)
        row, column = np.nonzero(~np.isnan(cells) & (at >= 0)[:, None])
        codes = np.repeat(np.arange(len(self.records)), np.diff(self.offset))
        n = len(row)
        self._set(
            self.records,
            np.concatenate([codes, at[row]]),
            channels + self.channels,
            np.concatenate([self.channel + len(channels), column]),
            np.concatenate([self.value, cells[row, column]]),
            None if self.time is None else np.concatenate([self.time, np.full(n, np.nan)]),
            None if self.date is None else np.concatenate([self.date, np.full(n, NO_DATE)]),
        )
        self.statics = len(channels)

    def to_dense(self, channels: Sequence[str] | None = None, *, from_first: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Values, (records, times, channels) with NaN where nothing was observed, and times, (records, times) padded
        with zeros; in float32, like models. Times may count from a record's first observation; dates always do, in
        hours. Repeats are averaged, and static values stand at a record's first time."""
        wide = list(channels) if channels is not None else self.channels
        place = np.array([wide.index(name) if name in wide else -1 for name in self.channels])[self.channel]
        record = np.repeat(np.arange(len(self)), np.diff(self.offset))
        time = self._counted(record, from_first)
        kept = (place >= 0) & ~np.isnan(self.value)
        record, time, place, value = record[kept], time[kept], place[kept], self.value[kept].astype(np.float32)
        row, length = _rows(record, time, len(self))
        total, count = np.zeros((len(self), length, len(wide))), np.zeros((len(self), length, len(wide)))
        np.add.at(total, (record, row, place), value)
        np.add.at(count, (record, row, place), 1)
        times = np.zeros((len(self), length), dtype=np.float32)
        times[record, row] = time
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32), times

    def _counted(self, record: np.ndarray, from_first: bool) -> np.ndarray:
        """The time of each row, in float32."""
        first = self.first()[record]
        clock = self.date if self.date is not None else np.asarray(self.time)
        clock = np.where(clock == NO_DATE if self.date is not None else np.isnan(clock), first, clock)
        if self.date is not None:
            return ((clock - first) / 36e9).astype(np.float32)
        return (clock - first if from_first else clock).astype(np.float32)

    # ---- as a sequence of records ----

    @property
    def shape(self) -> tuple[int]:
        return (len(self.records),)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, key: Any) -> Events:
        if isinstance(key, tuple):  # scikit-learn indexes rows of an array as [rows, ...]
            key = key[0]
        places = np.arange(len(self))[key]
        places = np.atleast_1d(places)
        part = object.__new__(type(self))
        rows = _rows_of(self.offset, places)
        part.records = _unique([self.records[i] for i in places])
        part.channels, part.statics = self.channels, self.statics
        part.offset = np.concatenate([[0], np.cumsum(np.diff(self.offset)[places])]).astype(np.int64)
        part.channel, part.value = self.channel[rows], self.value[rows]
        part.time = None if self.time is None else self.time[rows]
        part.date = None if self.date is None else self.date[rows]
        return part

    def align(self, frame: Any, *, record: str = "record", value: str = "label") -> np.ndarray:
        """A column of another frame in the order of the records; NaN or None for records without a row."""
        df = _frame(frame)
        of = dict(zip((_text(r) for r in _column(df, record).to_list()), _column(df, value).to_list()))
        return np.array([of.get(name) for name in self.records])

    def first(self) -> np.ndarray:
        """The time, or date in ticks of 100 ns, of each record's first observation with a value: the origin of relative
        times."""
        return self._reduced(np.minimum)

    def last(self) -> np.ndarray:
        """The same for each record's last observation."""
        return self._reduced(np.maximum)

    def _reduced(self, ufunc: np.ufunc) -> np.ndarray:
        """The smallest or the largest time of each record's observations; 0 if it has none."""
        clock = self.date if self.date is not None else np.asarray(self.time)
        known = ~np.isnan(self.value) & (clock != NO_DATE if self.date is not None else ~np.isnan(clock))
        record = np.repeat(np.arange(len(self)), np.diff(self.offset))[known]
        out = np.zeros(len(self), dtype=clock.dtype)
        if len(record):
            starts = np.flatnonzero(np.r_[True, record[1:] != record[:-1]])
            out[record[starts]] = ufunc.reduceat(clock[known], starts)
        return out

    def __repr__(self) -> str:
        clock = "dates" if self.date is not None else "numbers"
        return f"Events({len(self)} records, {len(self.channels)} channels, {len(self.value)} observations, times are {clock})"


# ---- frames ----


def _frame(frame: Any) -> Any:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise Error(f"{type(frame).__name__} is no frame of pandas, polars, pyarrow or another that narwhals knows") from None


def _column(df: Any, name: str) -> Any:
    if name not in df.columns:
        raise Error(f'no column "{name}": the frame has {", ".join(map(str, df.columns))}')
    return df[name]


def _text(x: Any) -> str:
    """A name as it would be in a file."""
    if isinstance(x, (bytes, np.bytes_)):
        return bytes(x).decode("utf-8", "surrogateescape")
    if isinstance(x, (float, np.floating)) and float(x).is_integer():
        return str(int(x))
    return str(x)


def _unique(texts: list[str]) -> list[str]:
    """The same names, with a number added to repeated ones: records drawn with replacement are separate records."""
    seen: dict[str, int] = {}
    out = []
    for text in texts:
        again = seen[text] = seen.get(text, -1) + 1
        out.append(f"{text}#{again}" if again else text)
    return out


def _codes(column: Any, name: str) -> tuple[np.ndarray, list[str]]:
    """The names of a column in the order of their first row, and the index of each row's name."""
    null = column.is_null()
    if null.any():
        raise Error(f'row {int(null.arg_true()[0])}: no {name}')
    codes, seen = _encoded(column)
    texts = [_text(v) for v in seen]
    if len(set(texts)) == len(texts):
        return codes.astype(np.int32), texts
    merged: dict[str, int] = {}
    place = np.array([merged.setdefault(t, len(merged)) for t in texts])
    return place[codes].astype(np.int32), list(merged)


def _encoded(column: Any) -> tuple[np.ndarray, list[Any]]:
    """The distinct entries of a column in the order of their first row, and the index of each row's entry; by pyarrow
    if it is installed."""
    try:
        import pyarrow as pa

        array = column.to_arrow()
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        coded = array.dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()
    except Exception:  # no pyarrow, or objects of a type that it does not support
        seen: dict[Any, int] = {}
        values = column.to_list()
        codes = np.fromiter((seen.setdefault(v, len(seen)) for v in values), dtype=np.int64, count=len(values))
        return codes, list(seen)


def _numbers(column: Any, name: str) -> np.ndarray:
    """A column of numbers, with NaN for missing ones."""
    try:
        return column.cast(nw.Float64).to_numpy().astype(np.float64)
    except Exception as error:
        raise Error(f'column "{name}": {error}') from None


def _times(column: Any, name: str) -> tuple[np.ndarray | None, np.ndarray | None]:
    """A column of times as numbers, or as dates in ticks."""
    if column.dtype == nw.String or column.dtype == nw.Object:
        column = _parsed(column, name)
    dtype = column.dtype
    if dtype == nw.Date:
        column, dtype = column.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(dtype, nw.Datetime) or dtype == nw.Datetime:
        return None, _ticks(column)
    if dtype == nw.Duration:
        return column.dt.total_microseconds().cast(nw.Float64).to_numpy() / 3.6e9, None  # hours
    return _numbers(column, name), None


def _parsed(column: Any, name: str) -> Any:
    """Converts texts and objects to numbers, or else to dates."""
    try:
        return column.cast(nw.Float64)
    except Exception:
        pass
    try:
        return column.cast(nw.String).str.to_datetime()
    except Exception as error:
        raise Error(f'column "{name}" has texts that are neither numbers nor dates: {error}') from None


def _ticks(column: Any) -> np.ndarray:
    unit = getattr(column.dtype, "time_unit", "us")
    unit = unit if unit in _TICKS else "us"
    multiply, divide = _TICKS[unit]
    null = column.is_null().to_numpy()
    ticks = column.dt.timestamp(unit).fill_null(0).cast(nw.Int64).to_numpy() * multiply // divide
    return np.where(null, NO_DATE, ticks).astype(np.int64)


def _check_rows(
    values: np.ndarray,
    time: np.ndarray | None,
    date: np.ndarray | None,
    value_name: str,
    time_name: str,
    row: np.ndarray | None = None,
) -> None:
    """Refuses values that no model accepts, naming the row of the frame. A row without a value may have any time."""
    known = ~np.isnan(values)
    bad_value = np.isinf(values)
    bad_time = known & (date == NO_DATE if date is not None else ~np.isfinite(np.asarray(time)))
    for bad, words in ((bad_value, f"an infinite {value_name}"), (bad_time, f"no {time_name} that is finite")):
        if bad.any():
            at = int(np.argmax(bad))
            raise Error(f"row {int(row[at]) if row is not None else at}: {words}")


def _static_channels(df: Any, record: str) -> tuple[list[str], np.ndarray]:
    """Names, and cells (rows, names): a numeric column gives one name, a categorical column one per value (sex=F)."""
    names: list[str] = []
    cells: list[np.ndarray] = []
    for name in df.columns:
        column = df[name]
        if name == record:
            continue
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            names.append(str(name))
            cells.append(_numbers(column, name))
            continue
        texts = [None if x is None or x != x else _text(x) for x in column.to_list()]
        for category in sorted({t for t in texts if t is not None}):
            names.append(f"{name}={category}")
            cells.append(np.array([np.nan if t is None else float(t == category) for t in texts]))
    return names, np.column_stack(cells) if cells else np.empty((len(df), 0))


# ---- rows of records ----


def _rows(record: np.ndarray, time: np.ndarray, records: int, repeat: np.ndarray | None = None) -> tuple[np.ndarray, int]:
    """The row of each observation within its record, one row per time and further rows for repeats; and the number of
    rows."""
    keys = (record, time) if repeat is None else (record, time, repeat)
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    rows_of = np.bincount(record[order][new], minlength=records)
    row = np.empty(len(order), dtype=np.int64)
    row[order] = np.cumsum(new) - 1 - (np.cumsum(rows_of) - rows_of)[record[order]]
    return row, int(rows_of.max(initial=1))


def _rows_of(offset: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The rows of some records, one record after the other."""
    lengths = np.diff(offset)[places]
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(offset[places] - starts, lengths)
