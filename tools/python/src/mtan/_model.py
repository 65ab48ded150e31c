"""A model file in memory and its predictions: the handle behind the estimators."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _flat
from ._flat import Error, Functions, address, flat
from .events import NO_DATE, Events, _rows


class Data:
    """Records with their labels and queries, in C's form. Keeps the arrays alive that C reads."""

    def __init__(self, events: Events, library: Functions = flat) -> None:
        self.events, self.flat = events, library
        self.kept: list[Any] = [_flat.names(events.records), _flat.names(events.channels)]
        self.handle = self.flat.handle(
            self.flat.data_new(
                len(events),
                self.kept[0],
                address(events.offset),
                len(events.channels),
                self.kept[1],
                address(events.time),
                address(events.date),
                address(events.channel),
                address(events.value),
            )
        )
        self.flat.data_statics(self.handle, events.statics)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.flat.data_free(self.handle)

    def _keep(self, array: Any, dtype: Any) -> int:
        kept = np.ascontiguousarray(array, dtype=dtype)
        self.kept.append(kept)
        return kept.ctypes.data

    def classes(self, names: list[str], label: np.ndarray) -> None:
        self.kept.append(_flat.names(names))
        self.flat.data_classes(self.handle, len(names), self.kept[-1], self._keep(label, np.int32))

    def numbers(self, number: np.ndarray) -> None:
        self.flat.data_numbers(self.handle, self._keep(number, np.float64))

    def groups(self, group: np.ndarray) -> None:
        self.flat.data_groups(self.handle, self._keep(group, np.int32))

    def parts(self, part: np.ndarray) -> None:
        self.flat.data_parts(self.handle, self._keep(part, np.int32))

    def labels(self, names: list[str], value: np.ndarray) -> None:
        self.kept.append(_flat.names(names))
        self.flat.data_labels(self.handle, len(names), self.kept[-1], self._keep(value, np.float64))

    def label_times(self, offset: np.ndarray, time: np.ndarray) -> None:
        """Numbers, or dates in ticks, whichever the records have."""
        at = self._keep(offset, np.int64)
        if self.events.date is None:
            self.flat.data_label_times(self.handle, at, self._keep(time, np.float64), None)
        else:
            self.flat.data_label_times(self.handle, at, None, self._keep(time, np.int64))

    def skip_unknown(self, skip: bool) -> None:
        self.flat.data_skip_unknown(self.handle, skip)

    def queries(self, offset: np.ndarray, time: np.ndarray) -> None:
        self.flat.data_queries(self.handle, self._keep(offset, np.int64), self._keep(time, np.float64))


class Model:
    """A model file: its bytes, its settings, its predictions."""

    def __init__(self, contents: bytes, library: Functions = flat) -> None:
        self.contents, self.flat = bytes(contents), library
        self.handle = self.flat.handle(self.flat.model_open(self.contents, len(self.contents)))
        self.channels = self._names(self.flat.model_channel)
        self.classes = self._names(self.flat.model_class)
        self.outputs = self.flat.model_outputs(self.handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.flat.model_free(self.handle)

    def __reduce__(self) -> Any:
        return Model, (self.contents,)

    def _names(self, name_at: Any) -> list[str]:
        found: list[str] = []
        while (name := name_at(self.handle, len(found))) is not None:
            found.append(name.decode("utf-8", "surrogateescape"))
        return found

    def text(self, key: str, otherwise: str = "") -> str:
        """A setting ("enc_hidden") or a value of the file's metadata ("mtan.plan.seed")."""
        length = ctypes.c_size_t()
        if self.flat.model_text(self.handle, key.encode(), None, 0, ctypes.byref(length)) != 0:
            return otherwise
        text = ctypes.create_string_buffer(length.value + 1)
        self.flat.check(self.flat.model_text(self.handle, key.encode(), text, len(text), None))
        return text.value.decode("utf-8", "surrogateescape")

    def number(self, key: str) -> float:
        """A number among the settings; files store numbers that are not short in hexadecimal."""
        text = self.text(key, "0")
        return float.fromhex(text) if "x" in text else float(text)

    @property
    def metadata(self) -> dict[str, str]:
        """The file's metadata."""
        return self._header().get("__metadata__", {})

    def _header(self) -> dict[str, Any]:
        return json.loads(self.contents[8 : 8 + int.from_bytes(self.contents[:8], "little")])

    def tensors(self) -> dict[str, np.ndarray]:
        """The weights under the names of the published code's state dicts, prefixed rec., dec. and classifier."""
        start = 8 + int.from_bytes(self.contents[:8], "little")
        kinds = {"F32": np.float32, "F64": np.float64, "I8": np.int8, "I32": np.int32, "F16": np.float16}
        out = {}
        for name, entry in self._header().items():
            if name == "__metadata__" or entry["dtype"] not in kinds:
                continue
            first, last = entry["data_offsets"]
            flat_array = np.frombuffer(self.contents[start + first : start + last], dtype=kinds[entry["dtype"]])
            out[name] = flat_array.reshape(entry["shape"])
        return out

    def with_weights(self, weights: dict[str, np.ndarray]) -> Model:
        """The same model with other weights. Measurements of the old weights and the state for resuming training are
        left out."""
        ours = {name: self.tensors()[name] for name, _ in self._parameters()}
        for name in ours:
            if name not in weights or weights[name].shape != ours[name].shape:
                found = f"{weights[name].shape}" if name in weights else "missing"
                raise Error(f"{name} is {found}, and the model has {ours[name].shape}")
        kept = {key: value for key, value in self.metadata.items() if not key.startswith(("mtan.golden.", "mtan.run."))}
        return Model(_file(kept, {name: np.asarray(weights[name], dtype=np.float32) for name in ours}))

    def bare(self, **settings: str) -> bytes:
        """A file with the weights but no preprocessing, so that times and values are in the model's units. `settings`
        replace the model's own."""
        named = ("mtan.names.channels", "mtan.names.classes")
        kept = {key: value for key, value in self.metadata.items() if key.count(".") < 2 or key in named}
        kept.update({"mtan." + key: value for key, value in settings.items()})
        return _file(kept, {name: self.tensors()[name] for name, _ in self._parameters()})

    @property
    def is_per_time(self) -> bool:
        return self.text("classify") == "time"

    @property
    def counts_from_first(self) -> bool:
        """Do times count from a record's first observation?"""
        return bool(self.flat.model_from_first(self.handle))

    @property
    def has_dates(self) -> bool:
        return bool(self.flat.model_has_dates(self.handle))

    # ---- predictions ----

    def times(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """The offset of each record's distinct times, and those times in the model's count."""
        offset = np.empty(len(data.events) + 1, dtype=np.int64)
        self.flat.check(self.flat.times(self.handle, data.handle, address(offset), None))
        time = np.empty(offset[-1])
        self.flat.check(self.flat.times(self.handle, data.handle, None, address(time)))
        return offset, time

    def predict(self, data: Data, rows: int, threads: int, samples: int, seed: int) -> np.ndarray:
        out = np.empty((rows, self.outputs))
        self.flat.check(self.flat.predict(self.handle, data.handle, threads, samples, seed, address(out)))
        return out

    def interpolate(self, data: Data, rows: int, threads: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        mean, sd = np.empty((rows, len(self.channels))), np.empty((rows, len(self.channels)))
        self.flat.check(self.flat.interpolate(self.handle, data.handle, threads, samples, seed, address(mean), address(sd)))
        return mean, sd

    def latent(self, data: Data, threads: int) -> tuple[np.ndarray, np.ndarray]:
        shape = (len(data.events), int(self.text("ref_points")), int(self.text("latent")))
        mean, logvar = np.empty(shape), np.empty(shape)
        self.flat.check(self.flat.latent(self.handle, data.handle, threads, address(mean), address(logvar)))
        return mean, logvar

    # ---- for comparisons ----

    def prepared(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Records as the model sees them: the offset of their events, then times, channels and values in the model's
        units."""
        offset = np.empty(len(data.events) + 1, dtype=np.int64)
        self.flat.check(self.flat.prepare(self.handle, data.handle, address(offset), None, None, None))
        time, channel, value = np.empty(offset[-1]), np.empty(offset[-1], dtype=np.int32), np.empty(offset[-1])
        found = (address(offset), address(time), address(channel), address(value))
        self.flat.check(self.flat.prepare(self.handle, data.handle, *found))
        return offset, time, channel, value

    def dense(self, data: Data, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
        """The same in the published code's form: (records, times, 2 channels) of values, then mask; (records,
        times)."""
        offset, time, channel, value = self.prepared(data)
        record = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
        repeat = _repeats(record, time, channel)
        row, length = _rows(record, time, len(offset) - 1, repeat)
        D = len(self.channels)
        x, times = np.zeros((len(offset) - 1, length, 2 * D), dtype), np.zeros((len(offset) - 1, length), dtype)
        x[record, row, channel], x[record, row, D + channel], times[record, row] = value, 1, time
        return x, times

    def gradient(self, data: Data, noise: np.ndarray | None, kl_weight: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Loss, negative bound, cross-entropy and KL of labelled records; and the loss's gradient for each
        parameter."""
        shapes = dict(self._parameters())
        size = sum(rows * cols for rows, cols in shapes.values())
        loss, gradient = np.empty(4), np.empty(size)
        kept = None if noise is None else np.ascontiguousarray(noise, dtype=np.float64)
        self.flat.check(
            self.flat.gradient(self.handle, data.handle, address(kept), 0, kl_weight, address(loss), address(gradient))
        )
        ends = np.cumsum([rows * cols for rows, cols in shapes.values()])
        return loss, dict(zip(shapes, np.split(gradient, ends[:-1])))

    def _parameters(self) -> Iterator[tuple[str, tuple[int, int]]]:
        name, rows, cols = ctypes.create_string_buffer(256), ctypes.c_int32(), ctypes.c_int32()
        for i in range(self.flat.parameters(self.handle)):
            self.flat.check(self.flat.parameter(self.handle, i, name, len(name), ctypes.byref(rows), ctypes.byref(cols)))
            yield name.value.decode(), (rows.value, cols.value)

    # ---- explanations ----

    def attention(self, data: Data, head: int, channel: int) -> dict[str, np.ndarray]:
        """The attention weights of the first record."""
        offset, time = self.times(data)
        time = time[: offset[1]]
        points = len(time) if self.text("reference") == "observed" else int(self.text("ref_points"))
        weight, reference = np.empty((points, len(time))), np.empty(points)
        self.flat.check(self.flat.attention(self.handle, data.handle, 0, head, channel, address(weight), address(reference)))
        return {"reference": reference, "time": time, "weight": weight}

    def observations(self, data: Data) -> dict[str, np.ndarray]:
        """The first record's observations as the model sees them."""
        count = ctypes.c_int32()
        self.flat.check(self.flat.observations(self.handle, data.handle, 0, ctypes.byref(count), None, None, None))
        n = count.value
        time, channel, value = np.empty(n), np.empty(n, dtype=np.int32), np.empty(n)
        self.flat.check(
            self.flat.observations(
                self.handle, data.handle, 0, ctypes.byref(count), address(time), address(channel), address(value)
            )
        )
        return {"time": time, "channel": np.array(self.channels, dtype=object)[channel], "value": value}

    def importance(self, data: Data, of: int, threads: int) -> tuple[int, float, np.ndarray]:
        """The class or label explained, its log-odds (or the predicted number), and how much each observation raises
        that."""
        which, said = ctypes.c_int32(of), ctypes.c_double()
        count = ctypes.c_int32()
        self.flat.check(self.flat.observations(self.handle, data.handle, 0, ctypes.byref(count), None, None, None))
        change = np.empty(count.value)
        self.flat.check(
            self.flat.importance(
                self.handle, data.handle, 0, threads, ctypes.byref(which), ctypes.byref(said), address(change)
            )
        )
        return which.value, said.value, change

    def evaluate(self, data: Data, threads: int, samples: int, seed: int, draws: int) -> dict[str, tuple[float, float, float]]:
        names: list[str] = []
        while (name := self.flat.metric(self.handle, len(names))) is not None:
            names.append(name.decode())
        value = np.empty((len(names), 3))
        self.flat.check(self.flat.evaluate(self.handle, data.handle, threads, samples, seed, draws, address(value)))
        return {name: (float(x), float(low), float(high)) for name, (x, low, high) in zip(names, value)}


class Stream:
    """One record whose observations arrive one by one, in any order, in constant memory.

    `push` takes observations as they arrive; `outputs` and `interpolate` give the model's results so far. Streams of
    classifiers also have `predict_proba` and `predict`, those of regressors `predict` and `predict_interval`. Times are
    numbers, or dates if the model was trained on dates.
    """

    def __init__(self, model: Model, record: str = "record", samples: int = -1, seed: int = 0) -> None:
        self._model, self.flat = model, model.flat
        self.handle = self.flat.handle(self.flat.stream_new(model.handle, record.encode("utf-8", "surrogateescape"), samples, seed))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.flat.stream_free(self.handle)

    def _clock(self, time: Any) -> tuple[float, int]:
        if time is None:
            return float("nan"), NO_DATE
        if self._model.has_dates:
            return float("nan"), _date_ticks(time)
        return float(time), NO_DATE

    def push(self, time: Any, channel: str, value: float) -> Stream:
        """Adds an observation. NaN as a value is ignored."""
        number, date = self._clock(time)
        self.flat.check(self.flat.stream_push(self.handle, number, date, str(channel).encode("utf-8", "surrogateescape"), float(value)))
        return self

    def outputs(self, time: Any = None) -> np.ndarray:
        """The model's prediction as a row of outputs."""
        out = np.empty(self._model.outputs)
        number, date = self._clock(time)
        self.flat.check(self.flat.stream_predict(self.handle, number, date, address(out)))
        return out

    def interpolate(self, time: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each channel at a time."""
        mean, sd = np.empty(len(self._model.channels)), np.empty(len(self._model.channels))
        number, date = self._clock(time)
        self.flat.check(self.flat.stream_interpolate(self.handle, number, date, address(mean), address(sd)))
        return mean, sd

    def reset(self) -> None:
        """Forgets everything."""
        self.flat.check(self.flat.stream_reset(self.handle))


def _file(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> bytes:
    """A safetensors file of float32."""
    header: dict[str, Any] = {"__metadata__": metadata}
    at, blobs = 0, [np.ascontiguousarray(tensor, dtype="<f4").tobytes() for tensor in tensors.values()]
    for (name, tensor), blob in zip(tensors.items(), blobs):
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blobs)


def _repeats(record: np.ndarray, time: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """For each observation, the number of earlier ones with the same record, time and channel."""
    order = np.lexsort((channel, time, record))
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([np.diff(key[order]) != 0 for key in (record, time, channel)], axis=0)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    repeat = np.empty(len(order), dtype=np.int64)
    repeat[order] = np.arange(len(order)) - first
    return repeat


def _date_ticks(time: Any) -> int:
    """A date in ticks of 100 ns: datetime, datetime64, a pandas Timestamp or an ISO text."""
    if getattr(time, "tzinfo", None) is not None:
        import datetime

        time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    try:
        date = np.datetime64(time)
    except ValueError:
        raise Error(f"{time!r} is no date, and the model's times are dates") from None
    if np.isnat(date):
        raise Error("the time is missing")
    return int(date.astype("datetime64[us]").astype(np.int64)) * 10
