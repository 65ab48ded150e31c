"""A model file in memory and what it says of records: the handle behind estimators."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np

from . import _flat
from ._flat import Error, address, check, flat, handle
from .events import NO_DATE, Events


class Data:
    """Records, and what is known or asked about them, as C takes them. Keeps the arrays alive that C looks at."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.kept: list[Any] = [_flat.names(events.records), _flat.names(events.channels)]
        self.handle = handle(
            flat.data_new(
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
        flat.data_statics(self.handle, events.statics)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            flat.data_free(self.handle)

    def _keep(self, array: Any, dtype: Any) -> int:
        kept = np.ascontiguousarray(array, dtype=dtype)
        self.kept.append(kept)
        return kept.ctypes.data

    def classes(self, names: list[str], label: np.ndarray) -> None:
        self.kept.append(_flat.names(names))
        flat.data_classes(self.handle, len(names), self.kept[-1], self._keep(label, np.int32))

    def numbers(self, number: np.ndarray) -> None:
        flat.data_numbers(self.handle, self._keep(number, np.float64))

    def groups(self, group: np.ndarray) -> None:
        flat.data_groups(self.handle, self._keep(group, np.int32))

    def parts(self, part: np.ndarray) -> None:
        flat.data_parts(self.handle, self._keep(part, np.int32))

    def skip_unknown(self, skip: bool) -> None:
        flat.data_skip_unknown(self.handle, skip)

    def queries(self, offset: np.ndarray, time: np.ndarray) -> None:
        flat.data_queries(self.handle, self._keep(offset, np.int64), self._keep(time, np.float64))


class Model:
    """A model file: its bytes, its settings, its predictions."""

    def __init__(self, contents: bytes) -> None:
        self.contents = bytes(contents)
        self.handle = handle(flat.model_open(self.contents, len(self.contents)))
        self.channels = self._names(flat.model_channel)
        self.classes = self._names(flat.model_class)
        self.outputs = flat.model_outputs(self.handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            flat.model_free(self.handle)

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
        if flat.model_text(self.handle, key.encode(), None, 0, ctypes.byref(length)) != 0:
            return otherwise
        text = ctypes.create_string_buffer(length.value + 1)
        check(flat.model_text(self.handle, key.encode(), text, len(text), None))
        return text.value.decode("utf-8", "surrogateescape")

    @property
    def metadata(self) -> dict[str, str]:
        """All that the file says beside its weights."""
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

    @property
    def is_per_time(self) -> bool:
        return self.text("classify") == "time"

    @property
    def counts_from_first(self) -> bool:
        """Times are counted from a record's first observation."""
        return self.text("mtan.data.origin") == "record" or self.has_dates

    @property
    def has_dates(self) -> bool:
        return self.text("mtan.time.unit") == "hours" and self.text("mtan.data.kind", "own") == "own"

    # ---- predictions ----

    def times(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """Where each record's distinct times begin, and those times as the model counts them."""
        offset = np.empty(len(data.events) + 1, dtype=np.int64)
        check(flat.times(self.handle, data.handle, address(offset), None))
        time = np.empty(offset[-1])
        check(flat.times(self.handle, data.handle, None, address(time)))
        return offset, time

    def predict(self, data: Data, rows: int, threads: int, samples: int, seed: int) -> np.ndarray:
        out = np.empty((rows, self.outputs))
        check(flat.predict(self.handle, data.handle, threads, samples, seed, address(out)))
        return out

    def interpolate(self, data: Data, rows: int, threads: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        mean, sd = np.empty((rows, len(self.channels))), np.empty((rows, len(self.channels)))
        check(flat.interpolate(self.handle, data.handle, threads, samples, seed, address(mean), address(sd)))
        return mean, sd

    def latent(self, data: Data, threads: int) -> tuple[np.ndarray, np.ndarray]:
        shape = (len(data.events), int(self.text("ref_points")), int(self.text("latent")))
        mean, logvar = np.empty(shape), np.empty(shape)
        check(flat.latent(self.handle, data.handle, threads, address(mean), address(logvar)))
        return mean, logvar

    def attention(self, data: Data, head: int, channel: int) -> dict[str, np.ndarray]:
        """Of the first record."""
        offset, time = self.times(data)
        time = time[: offset[1]]
        points = len(time) if self.text("reference") == "observed" else int(self.text("ref_points"))
        weight, reference = np.empty((points, len(time))), np.empty(points)
        check(flat.attention(self.handle, data.handle, 0, head, channel, address(weight), address(reference)))
        return {"reference": reference, "time": time, "weight": weight}

    def observations(self, data: Data) -> dict[str, np.ndarray]:
        """The first record's as the model is shown them."""
        count = ctypes.c_int32()
        check(flat.observations(self.handle, data.handle, 0, ctypes.byref(count), None, None, None))
        n = count.value
        time, channel, value = np.empty(n), np.empty(n, dtype=np.int32), np.empty(n)
        check(
            flat.observations(
                self.handle, data.handle, 0, ctypes.byref(count), address(time), address(channel), address(value)
            )
        )
        return {"time": time, "channel": np.array(self.channels, dtype=object)[channel], "value": value}

    def importance(self, data: Data, of: int, threads: int) -> tuple[int, float, np.ndarray]:
        """The class that it is about, its log-odds, and by how much each observation raises them."""
        which, log_odds = ctypes.c_int32(of), ctypes.c_double()
        count = ctypes.c_int32()
        check(flat.observations(self.handle, data.handle, 0, ctypes.byref(count), None, None, None))
        change = np.empty(count.value)
        check(
            flat.importance(
                self.handle, data.handle, 0, threads, ctypes.byref(which), ctypes.byref(log_odds), address(change)
            )
        )
        return which.value, log_odds.value, change

    def evaluate(self, data: Data, threads: int, samples: int, seed: int, draws: int) -> dict[str, tuple[float, float, float]]:
        names: list[str] = []
        while (name := flat.metric(self.handle, len(names))) is not None:
            names.append(name.decode())
        value = np.empty((len(names), 3))
        check(flat.evaluate(self.handle, data.handle, threads, samples, seed, draws, address(value)))
        return {name: (float(x), float(low), float(high)) for name, (x, low, high) in zip(names, value)}


class Stream:
    """One record whose observations arrive one by one, in any order, in constant memory.

    `push` takes them as they come; `predict_proba`, `predict` and `interpolate` say what the model makes of them so far. Times are numbers,
    or dates where the model was trained on dates.
    """

    def __init__(self, model: Model, record: str = "record", samples: int = -1, seed: int = 0) -> None:
        self._model = model
        self.handle = handle(flat.stream_new(model.handle, record.encode("utf-8", "surrogateescape"), samples, seed))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            flat.stream_free(self.handle)

    def _clock(self, time: Any) -> tuple[float, int]:
        if time is None:
            return float("nan"), NO_DATE
        if self._model.has_dates:
            return float("nan"), _date_ticks(time)
        return float(time), NO_DATE

    def push(self, time: Any, channel: str, value: float) -> Stream:
        """An observation. A value that is NaN is none."""
        number, date = self._clock(time)
        check(flat.stream_push(self.handle, number, date, str(channel).encode("utf-8", "surrogateescape"), float(value)))
        return self

    def outputs(self, time: Any = None) -> np.ndarray:
        """The row of a prediction as the model has it."""
        out = np.empty(self._model.outputs)
        number, date = self._clock(time)
        check(flat.stream_predict(self.handle, number, date, address(out)))
        return out

    predict_proba = outputs  # of classes, in the order of the model's; estimators have their own order

    def interpolate(self, time: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each channel at a time."""
        mean, sd = np.empty(len(self._model.channels)), np.empty(len(self._model.channels))
        number, date = self._clock(time)
        check(flat.stream_interpolate(self.handle, number, date, address(mean), address(sd)))
        return mean, sd

    def reset(self) -> None:
        """Forgets everything."""
        check(flat.stream_reset(self.handle))


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
