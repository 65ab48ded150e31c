"""Estimators: Classifier, Regressor and Interpolator. Each is one model file."""

from __future__ import annotations

import os
import pathlib
import tempfile
import warnings
from typing import Any

import numpy as np

from . import _plots
from ._flat import Error
from ._model import Data, Model, Stream
from ._sklearn import BaseEstimator, ClassifierMixin, NotFittedError, RegressorMixin, checked_array, checked_target, html_of
from ._train import Progress, command, train
from .events import Events, _text

# Parameters of estimators that are not options of `mtan train`, and options whose names are methods here.
_OURS = ("options", "out", "verbose", "validation", "skip_unknown")
_RENAMED = {"embed_size": "embed", "forecast_horizon": "forecast"}


class _Estimator(BaseEstimator):
    """The common part of all estimators: training, keeping a model, explaining it."""

    model_: Model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def _events(self, X: Any, fitting: bool = False) -> Events:
        """Events, or an array in the form of Events.from_dense."""
        if isinstance(X, Events):
            return X
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            raise Error("a frame has to say which column is what: Events(frame, record=..., time=..., channel=..., value=...)")
        return Events.from_dense(X if getattr(X, "ndim", 0) == 3 else checked_array(self, X, fitting))

    def _target(self, y: Any) -> np.ndarray:
        if y is None:
            raise Error(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        return checked_target(y)

    def _keep(self, given: dict[str, Any]) -> None:
        """Stores the parameters as given: locals() of an __init__, whose parameter names scikit-learn reads."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    # ---- training ----

    def _words(self) -> list[str]:
        """The options of `mtan train` for the parameters; None means the command's own default."""
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in _OURS}
        given.update(self.options or {})
        words: list[str] = []
        for name, value in given.items():
            option = "--" + _RENAMED.get(name, name).replace("_", "-")
            if value is True:
                words.append(option)
            elif value is not None and value is not False:
                words += [option, _option_text(value)]
        return words

    def _train(self, data: Data, words: list[str], X: Events, y: Any) -> None:
        run = train(data, words, None if self.out is None else os.fspath(self.out), Progress(bool(self.verbose), "metric"))
        self.history_, self.remarks_, self._log = run.history, run.remarks, run.log
        if run.contents:
            self._take(Model(run.contents))
            self._fitted_on = (X, y)
        if run.interrupted is not None:
            if run.contents and isinstance(run.interrupted, KeyboardInterrupt):
                warnings.warn("interrupted: the estimator has the best model so far", stacklevel=3)
            raise run.interrupted
        if not run.contents:
            raise Error("the training has left no model")

    def _take(self, model: Model) -> None:
        self.model_ = model
        self.channels_ = list(model.channels)

    def _split(self, data: Data, groups: Any, strata: np.ndarray | None = None) -> list[str]:
        """Records of one group stay in one part of the split. The command draws the split, unless `validation` is set;
        then it is drawn here."""
        codes = np.arange(len(data.events)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        _same_length(data.events, codes, "groups")
        if groups is not None:
            data.groups(codes)
        if self.validation is not None:
            data.parts(_drawn_parts(codes, strata, float(self.validation), int(self.seed or 0)))
        return [] if groups is None else ["--by-group"]

    def _data(self, events: Events) -> Data:
        data = Data(events)
        data.skip_unknown(bool(self.skip_unknown))
        return data

    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit, or mtan.load a model file")
        return self.model_

    def _threads(self) -> int:
        return int(self.threads or 0)

    # ---- files ----

    def save(self, path: Any) -> None:
        """Writes the model file, which `mtan` and `mtan.load` read: completely or not at all."""
        target = pathlib.Path(path)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
            file.write(self._model().contents)
        os.replace(file.name, target)

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and the model file's bytes, without the records that it was fitted on."""
        return {name: value for name, value in self.__dict__.items() if name != "_fitted_on"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ---- evaluation and explanation ----

    def evaluate(
        self, X: Any, y: Any = None, *, times: Any = None, draws: int = 1000, samples: int = -1, seed: int = 0
    ) -> dict[str, Any]:
        """The metrics of `mtan eval`: each with its value and the ends of its 95 % interval over records; for several
        labels, means over the labels. The ends are NaN without draws, and of the calibration error."""
        events = self._events(X)
        model, data = self._model(), self._labelled(events, y if times is None else _AtTimes(events, y, times))
        return model.evaluate(data, self._threads(), samples, seed, draws)

    def _labelled(self, events: Events, y: Any) -> Data:
        return self._data(events)

    def _outputs(self, X: Any, times: Any, samples: int = -1, seed: int = 0) -> tuple[np.ndarray, np.ndarray | None]:
        """The model's (rows, outputs), and the offset of each record's rows, or None if each record has one row. A
        model of times is asked at `times`, a list with ascending times for each record, or at the times of its
        observations."""
        model, events = self._model(), self._events(X)
        data = self._data(events)
        if not model.is_per_time:
            if times is not None:
                raise Error("this model predicts of records, not of times")
            return model.predict(data, len(events), self._threads(), samples, seed), None
        if times is None:
            offset, _ = model.times(data)
        else:
            at = _AtTimes(events, times, times)
            offset = at.offset
            data.queries(offset, _as_counted(model, events, at.time, at.record))
        return model.predict(data, int(offset[-1]), self._threads(), samples, seed), offset

    def _importance(self, X: Any, of: int) -> tuple[int, float, dict[str, Any]]:
        """The class or label explained, its log-odds (or the number), and how much each observation of a record raises
        it."""
        model, data = self._model(), self._data(_one(self._events(X)))
        which, said, change = model.importance(data, of, self._threads())
        return which, said, {**model.observations(data), "change": change}

    def attention(self, X: Any, *, channel: str | None = None, head: int = 0) -> dict[str, Any]:
        """The attention weight of each time of a record at each reference point: arrays `reference`, `time` and
        `weight` (references, times). For one channel or, without a name, as a dictionary of all channels."""
        model, data = self._model(), self._data(_one(self._events(X)))
        if channel is None:
            return {name: model.attention(data, head, i) for i, name in enumerate(model.channels)}
        if channel not in model.channels:
            raise Error(f'the model has no channel "{channel}"')
        return model.attention(data, head, model.channels.index(channel))

    def report(self, path: Any, X: Any = None, y: Any = None, *, card: bool = False) -> None:
        """Writes the page of `mtan report`: curves, calibration, attention; or its model card, in Markdown for the
        Hugging Face Hub. Without records it uses those of `fit`, and measures on the part kept for testing."""
        if X is None and not hasattr(self, "_fitted_on"):
            raise Error("report needs records: report(path, X, y)")
        X, y = self._fitted_on if X is None else (self._events(X), y)
        with tempfile.TemporaryDirectory(prefix="mtan-") as folder:
            run = pathlib.Path(folder)
            (run / "best.safetensors").write_bytes(self._model().contents)
            if getattr(self, "_log", ""):
                (run / "log.csv").write_text(self._log)
            own_part = ["--split", "valid"] if self._fitted_here(X) and "2" not in self._model().text("mtan.split.given", "2") else []
            words = ["report", folder, "--out", os.fspath(path), *own_part, *(["--card"] if card else [])]
            command(self._labelled(X, y), words)

    def _fitted_here(self, X: Events) -> bool:
        return getattr(self, "_fitted_on", (None,))[0] is X

    # ---- notebooks ----

    def _repr_html_(self) -> str:
        """Parameters and, for a fitted estimator, curves: of its training, and of its predictions for records that it
        was not trained on."""
        figures = []
        if getattr(self, "history_", None) and hasattr(self, "model_"):
            figures.append(_plots.training(self.history_, self.model_.text("kind") == "enc"))
        if hasattr(self, "_fitted_on") and hasattr(self, "model_"):
            figures += self._figures(*self._fitted_on)
        return html_of(self) + f"<div>{' '.join(figures)}</div>"

    def _repr_mimebundle_(self, **_asked: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _figures(self, X: Events, y: Any) -> list[str]:
        return []

    def _kept_apart(self) -> tuple[np.ndarray, str]:
        """The records of `fit` that were kept for testing or, if there are none, for validation; all records if the
        file does not say."""
        part = np.array(list(self._model().text("mtan.split.given")))
        if len(part) == 0:
            return np.arange(len(self._fitted_on[0])), "all records"
        which, name = ("2", "test records") if "2" in part else ("1", "validation records")
        return np.flatnonzero(part == which), name

    # ---- other frameworks ----

    def dense(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Records as the model sees them, in the published code's form: (records, times, 2 channels) of values, 0 where
        there is none, then mask; and (records, times), padded with zeros. In the model's units."""
        return self._model().dense(self._data(self._events(X)))

    def to_torch(self) -> Any:
        """The model as a torch.nn.Module with the published code's names and outputs, in the model's units:

            net = m.to_torch()
            logits = net(*map(torch.from_numpy, m.dense(X)))  # mTAND-Full: an Output, with logits, mean, logvar, ...
        """
        try:
            from ._torch import to_torch
        except ModuleNotFoundError:
            raise ImportError("to_torch needs torch: pip install mtan[torch]") from None
        return to_torch(self._model())

    def to_onnx(self, path: Any) -> None:
        """Writes the model as an ONNX graph, which takes records in the data's units, any number of any length: `time`
        (B, L), `value` and `mask` (B, L, channels), float32 (Events.to_dense), and for curves `at` (B, Q). It returns
        the same as predict: the `probability`, (B, classes) in the model's order, the `number`, or `mean` and `sd`; a
        latent state is at its mean, as with samples=0."""
        try:
            import onnx

            from ._onnx import to_onnx
        except ModuleNotFoundError:
            raise ImportError("to_onnx needs onnx: pip install mtan[onnx]") from None
        onnx.save(to_onnx(self._model()), os.fspath(path))

    def stream(self, record: str = "record", *, samples: int = -1, seed: int = 0) -> Stream:
        """A record whose observations arrive one by one."""
        return Stream(self._model(), record, samples, seed)


class Classifier(ClassifierMixin, _Estimator):
    """Predicts the class of a record.

        clf = mtan.Classifier(preset="correct", seed=0).fit(X, y)
        clf.predict_proba(X_new)

    Parameters are options of `mtan train own`, with underscores in their names; None is the command's default.
    `options` is a dictionary of any others: {"decay": 0.01}. `out` is a folder that keeps the run. Of the records given
    to `fit`, the command trains on 64 %, chooses the epoch on 16 % and sets 20 % apart, which `report` shows.
    `validation=0.2` sets none apart: that fraction chooses the epoch, and all others are trained on. `skip_unknown`
    leaves out observations of channels that a model does not have.
    """

    def __init__(
        self,
        model: str = "enc",
        preset: str | None = None,
        seed: int = 0,
        epochs: int | None = None,
        batch: int | None = None,
        lr: float | None = None,
        patience: int | None = None,
        dropout: float | None = None,
        thin: float | None = None,
        ensemble: int | None = None,
        budget: str | None = None,
        class_weights: Any = None,
        positive: str | None = None,
        origin: str | None = None,
        embed_size: int | None = None,
        enc_heads: int | None = None,
        enc_hidden: int | None = None,
        ref_points: int | None = None,
        head_hidden: int | None = None,
        validation: float | None = None,
        skip_unknown: bool = False,
        threads: int | None = None,
        options: dict[str, Any] | None = None,
        out: Any = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, groups: Any = None, *, times: Any = None) -> Classifier:
        """Trains on records and their classes; None or NaN means unknown. Records of one group stay in one part of the
        split.

        y may be (records, labels) of 1, 0 and NaN, or a frame of such columns: several labels that are each true or
        not. A model of times, Classifier("per-time"), takes `times`, a list with each record's times, and y is a list
        of the classes at them.

        Ctrl-C ends the training after the current step; the estimator then has the best model so far."""
        events = self._events(X, fitting=True)
        several, timed = _is_table(y) and times is None, None if times is None else _AtTimes(events, y, times)
        y = timed or (y if several else self._target(y))
        self._given_classes = None if several else _classes_of(timed.label if timed else y)
        strata = None if several or timed else _missing_as_class(y)
        data = self._labelled(events, y)
        task = ["--task", "labels" if several else "classes"]
        self._train(data, self._words() + task + self._split(data, groups, strata), events, y)
        return self

    def _take(self, model: Model) -> None:
        super()._take(model)
        self.classes_ = _ordered_classes(getattr(self, "_given_classes", None), model.classes)
        self._order = [model.classes.index(_text(c)) for c in self.classes_] if model.classes else slice(None)

    def _labelled(self, events: Events, y: Any) -> Data:
        data = self._data(events)
        if y is None:
            return data
        if _is_table(y):
            names, value = _several(y, self.model_.classes if hasattr(self, "model_") else [])
            _same_length(events, value[:, 0], "y")
            data.labels(names, value)
            return data
        if isinstance(y, _AtTimes):
            data.label_times(y.offset, y.time)
            labels = y.label
        else:
            labels = np.asarray(y)
            _same_length(events, labels, "y")
        known = ~_missing(labels)
        values, codes = np.unique(labels[known], return_inverse=True)
        label = np.full(len(labels), -1, dtype=np.int32)
        label[known] = codes
        data.classes([_text(v) for v in values], label)
        return data

    def predict_proba(self, X: Any, *, times: Any = None, samples: int = -1, seed: int = 0) -> Any:
        """(records, classes) in the order of `classes_`. For a model that classifies times, a list with (times,
        classes) for each record, at `times`, a list with ascending times for each record, or at the times of its
        observations."""
        out, offset = self._outputs(X, times, samples, seed)
        return _by_record(out[:, self._order], offset)

    def predict(self, X: Any, *, times: Any = None) -> Any:
        """The most likely class of each record; for a model of several labels (records, labels), whether each label is
        likely."""
        p = self.predict_proba(X, times=times)
        if self._model().text("task") == "labels":
            return [rows > 0.5 for rows in p] if isinstance(p, list) else p > 0.5
        if isinstance(p, list):
            return [self.classes_[np.argmax(rows, axis=1)] for rows in p]
        return self.classes_[np.argmax(p, axis=1)]

    def _figures(self, X: Events, y: Any) -> list[str]:
        if len(self.classes_) != 2 or _is_table(y) or isinstance(y, _AtTimes):
            return []
        chosen, name = self._kept_apart()
        labels = np.asarray(y)[chosen]
        known = ~_missing(labels)
        return [_plots.roc(self.predict_proba(X[chosen[known]])[:, 1], labels[known] == self.classes_[1], name)]

    def importance(self, X: Any, *, of: Any = None) -> dict[str, Any]:
        """How much each observation of a record raises the log-odds of a class or of a label, by default of the most
        likely one: arrays `time`, `channel`, `value` and `change`, the class or label `of` and its `log_odds`."""
        classes = self._model().classes
        if of is not None and _text(of) not in classes:
            raise Error(f"of={of!r}: must be one of {', '.join(classes)}")
        which, log_odds, why = self._importance(X, -1 if of is None else classes.index(_text(of)))
        of = self.classes_[self._order.index(which)] if isinstance(self._order, list) else which
        return {"of": of, "log_odds": log_odds, **why}

    def stream(self, record: str = "record", *, samples: int = -1, seed: int = 0) -> Stream:
        return _ClassStream(self, record, samples, seed)


class _ClassStream(Stream):
    """A stream with the class names of its estimator."""

    def __init__(self, estimator: Classifier, record: str, samples: int, seed: int) -> None:
        super().__init__(estimator._model(), record, samples, seed)
        self.classes_, self._order = estimator.classes_, estimator._order

    def predict_proba(self, time: Any = None) -> np.ndarray:
        """The probability of each of `classes_`, for the record so far or for one of its times."""
        return self.outputs(time)[self._order]

    def predict(self, time: Any = None) -> Any:
        return self.classes_[int(np.argmax(self.predict_proba(time)))]


class Regressor(RegressorMixin, _Estimator):
    """Predicts a number per record, or per time, in the data's unit. Parameters are those of Classifier. With
    `interval`, a probability, it learns the median and an interval that contains the number with that probability."""

    def __init__(
        self,
        model: str = "enc",
        preset: str | None = None,
        seed: int = 0,
        interval: float | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        lr: float | None = None,
        patience: int | None = None,
        dropout: float | None = None,
        thin: float | None = None,
        ensemble: int | None = None,
        budget: str | None = None,
        origin: str | None = None,
        embed_size: int | None = None,
        enc_heads: int | None = None,
        enc_hidden: int | None = None,
        ref_points: int | None = None,
        head_hidden: int | None = None,
        validation: float | None = None,
        skip_unknown: bool = False,
        threads: int | None = None,
        options: dict[str, Any] | None = None,
        out: Any = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, groups: Any = None, *, times: Any = None) -> Regressor:
        """Trains on records and their numbers; NaN means unknown. A model of times, Regressor("per-time"), takes
        `times`, a list with each record's times, and y is a list of the numbers at them. Groups and Ctrl-C work as in
        Classifier.fit."""
        events = self._events(X, fitting=True)
        y = self._target(y) if times is None else _AtTimes(events, y, times)
        data = self._labelled(events, y)
        self._train(data, self._words() + ["--task", "number"] + self._split(data, groups), events, y)
        return self

    def _labelled(self, events: Events, y: Any) -> Data:
        data = self._data(events)
        if y is None:
            return data
        if isinstance(y, _AtTimes):
            data.label_times(y.offset, y.time)
            numbers = np.asarray(y.label, dtype=np.float64)
        else:
            numbers = np.asarray(y, dtype=np.float64)
            _same_length(events, numbers, "y")
        if np.isinf(numbers).any():
            raise Error(f"Input y contains infinity: y[{int(np.argmax(np.isinf(numbers)))}]")
        if np.isnan(numbers).all():
            raise Error("Input y contains NaN alone: no record has a number")
        data.numbers(numbers)
        return data

    def predict(self, X: Any, *, times: Any = None) -> Any:
        """The number of each record; with `interval`, its median. For a model of times, a list: the numbers of each
        record, at `times`, a list with ascending times for each record, or at the times of its observations."""
        out, offset = self._outputs(X, times)
        return _by_record(_middle(out), offset)

    def predict_interval(self, X: Any, *, times: Any = None) -> tuple[Any, Any]:
        """The ends of the interval around each number that `predict` returns."""
        out, offset = self._outputs(X, times)
        low, high = _ends(out)
        return _by_record(low, offset), _by_record(high, offset)

    def importance(self, X: Any) -> dict[str, Any]:
        """How much each observation of a record raises its number: arrays `time`, `channel`, `value` and `change`, and
        the number `predicted`."""
        _, predicted, why = self._importance(X, 0)
        return {"predicted": predicted, **why}

    def stream(self, record: str = "record", *, samples: int = -1, seed: int = 0) -> Stream:
        return _NumberStream(self._model(), record, samples, seed)

    def _figures(self, X: Events, y: Any) -> list[str]:
        if isinstance(y, _AtTimes):
            return []
        chosen, name = self._kept_apart()
        out, truth = self._outputs(X[chosen], None)[0], np.asarray(y, dtype=np.float64)[chosen]
        middle = _middle(out)
        order = np.argsort(middle)
        band = {"low": out[order, 0], "high": out[order, 2]} if out.shape[1] == 3 else {}
        place = np.arange(len(order))
        said = _plots.Curve("predicted", place, middle[order], **band)
        return [_plots.figure(f"Numbers of {name}", "records", "", [said, _plots.Curve("true", place, truth[order], dots=True)])]


class _NumberStream(Stream):
    """A stream that predicts a number."""

    def predict(self, time: Any = None) -> float:
        """The number for the record so far, or for one of its times."""
        return float(_middle(self.outputs(time)))

    def predict_interval(self, time: Any = None) -> tuple[float, float]:
        low, high = _ends(self.outputs(time))
        return float(low), float(high)


def _middle(out: np.ndarray) -> np.ndarray:
    """The numbers themselves, from outputs that may include an interval."""
    return out[..., out.shape[-1] // 2]


def _ends(out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if out.shape[-1] != 3:
        raise Error("this model has learned no interval: Regressor(interval=0.9)")
    return out[..., 0], out[..., 2]


class Interpolator(_Estimator):
    """Predicts unobserved values: each channel at any time, with an uncertainty, even after a record's last time.

        i = mtan.Interpolator().fit(X)
        mean, sd = i.predict(X, at=[0, 6, 12])
    """

    def __init__(
        self,
        model: str = "interp",
        preset: str | None = None,
        seed: int = 0,
        epochs: int | None = None,
        batch: int | None = None,
        lr: float | None = None,
        variance: str | None = None,
        observed: float | None = None,
        forecast_horizon: float | None = None,
        budget: str | None = None,
        origin: str | None = None,
        embed_size: int | None = None,
        enc_heads: int | None = None,
        enc_hidden: int | None = None,
        dec_hidden: int | None = None,
        ref_points: int | None = None,
        latent: int | None = None,
        validation: float | None = None,
        skip_unknown: bool = False,
        threads: int | None = None,
        options: dict[str, Any] | None = None,
        out: Any = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Interpolator:
        """Trains on records; y is not used."""
        events = self._events(X, fitting=True)
        data = self._data(events)
        self._train(data, self._words() + self._split(data, groups), events, None)
        return self

    def predict(self, X: Any, at: Any, *, samples: int = -1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation at times: (records, times, channels), channels as in `channels_`. `at` is (times)
        for all records or (records, times), ascending, in the data's unit; if times are dates, `at` holds dates, or
        hours since a record's first observation."""
        model, events = self._model(), self._events(X)
        grid = _counted(model, events, at)
        data = self._data(events)
        n, q = grid.shape
        data.queries(np.arange(n + 1) * q, grid)
        mean, sd = model.interpolate(data, n * q, self._threads(), samples, seed)
        return mean.reshape(n, q, -1), sd.reshape(n, q, -1)

    def _figures(self, X: Events, y: Any) -> list[str]:
        """A figure of a record: its channel with the most observations, and a band of two standard deviations."""
        chosen, _ = self._kept_apart()
        one = X[int(chosen[0])]
        seen = self._model().observations(self._data(one))
        names, counts = np.unique(seen["channel"].astype(str), return_counts=True)
        name = str(names[np.argmax(counts)])
        at = np.linspace(seen["time"].min(), seen["time"].max(), 60)
        mean, sd = (part[0, :, self.channels_.index(name)] for part in self.predict(one, _Counted(at[None])))
        own = seen["channel"] == name
        curves = [
            _plots.Curve("curve", at, mean, mean - 2 * sd, mean + 2 * sd),
            _plots.Curve("observed", seen["time"][own], seen["value"][own], dots=True),
        ]
        return [_plots.figure(f"{name} of {one.records[0]}", "time", "", curves)]

    def forecast(self, X: Any, horizon: float, *, steps: int = 10, samples: int = -1, seed: int = 0) -> tuple[np.ndarray, ...]:
        """Times after each record's last observation, in the model's count, with mean and standard deviation at
        them."""
        model, events = self._model(), self._events(X)
        last = _as_counted(model, events, events.last())
        at = last[:, None] + np.linspace(horizon / steps, horizon, steps)
        return (at, *self.predict(events, _Counted(at), samples=samples, seed=seed))

    def embed(self, X: Any) -> np.ndarray:
        """The mean of each record's latent state: (records, reference points, latent size)."""
        return self._model().latent(self._data(self._events(X)), self._threads())[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The negative mean squared error of held-out points, in the model's units: higher is better."""
        return -self.evaluate(X, draws=0)["mse_held_out"][0]


def load(path: Any) -> Any:
    """The estimator of a model file, written by `save`, `mtan train` or `mtan convert`."""
    return _estimator_of(Model(pathlib.Path(path).read_bytes()))


def _estimator_of(model: Model) -> Any:
    classifies = model.text("classify") != "none"
    kind = Interpolator if not classifies else Regressor if model.text("task") == "number" else Classifier
    estimator = kind()
    estimator._take(model)
    return estimator


# ---- labels, names, times ----


class _Counted(np.ndarray):
    """Times that are already in the model's count."""

    def __new__(cls, array: np.ndarray) -> _Counted:
        return np.asarray(array, dtype=np.float64).view(cls)


def _as_counted(model: Model, events: Events, times: np.ndarray, record: Any = slice(None)) -> np.ndarray:
    """Times or ticks of these records, in the model's count."""
    if events.date is not None:
        return (times - events.first()[record]) / 36e9
    return times - events.first()[record] if model.counts_from_first else times.astype(np.float64)


class _AtTimes:
    """Labels of times: the offset of each record's times, the times in the form of its events (numbers or ticks), and
    the labels."""

    def __init__(self, events: Events, labels: Any, times: Any) -> None:
        if len(labels) != len(events) or len(times) != len(events) or not all(hasattr(x, "__len__") for x in (*labels, *times)):
            raise Error(f"y and times must be lists of {len(events)} lists, one to a record")
        counts = [len(t) for t in times]
        if counts != [len(label) for label in labels]:
            raise Error("y and times must have as many entries for each record")
        self.offset = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.record = np.repeat(np.arange(len(events)), counts)
        self.label = np.concatenate([np.asarray(label) for label in labels])
        flat_times = np.concatenate([np.asarray(t) for t in times])
        dates = events.date is not None
        self.time = flat_times.astype("datetime64[us]").astype(np.int64) * 10 if dates else flat_times.astype(np.float64)


def _by_record(rows: np.ndarray, offset: np.ndarray | None) -> Any:
    """A row for each record, or a list with the rows of each."""
    return rows if offset is None else np.split(rows, offset[1:-1])


def _is_table(y: Any) -> bool:
    """Are these several labels, a frame or a two-dimensional array?"""
    return hasattr(y, "columns") or (getattr(y, "ndim", 1) == 2 and y.shape[1] > 1)


def _several(y: Any, known: list[str]) -> tuple[list[str], np.ndarray]:
    """The names of labels (the frame's, the model's, or numbers) and their values."""
    if hasattr(y, "columns"):
        return [_text(c) for c in y.columns], np.asarray(y.to_numpy(), dtype=np.float64)
    value = np.asarray(y, dtype=np.float64)
    return known if len(known) == value.shape[1] else [str(i) for i in range(value.shape[1])], value


def _counted(model: Model, events: Events, at: Any) -> np.ndarray:
    """(records, times) in the model's count."""
    n = len(events)
    if isinstance(at, _Counted):
        return np.asarray(at)
    grid = np.asarray(at)
    is_date = np.issubdtype(grid.dtype, np.datetime64) or (grid.dtype == object and grid.size and hasattr(grid.flat[0], "year"))
    if is_date and events.date is None:
        raise Error("at has dates, and the records' times are numbers")
    if is_date:
        ticks = grid.astype("datetime64[us]").astype(np.int64) * 10
        grid = (np.broadcast_to(ticks, (n, ticks.shape[-1])) - events.first()[:, None]) / 36e9
    elif model.counts_from_first and events.date is None:
        grid = np.broadcast_to(grid, (n, grid.shape[-1])) - events.first()[:, None]
    grid = np.array(np.broadcast_to(grid, (n, grid.shape[-1])), dtype=np.float64)
    if not np.isfinite(grid).all() or np.any(np.diff(grid, axis=1) < 0):
        raise Error("at must be finite times in ascending order")
    return grid


def _missing_as_class(labels: np.ndarray) -> np.ndarray:
    """Class numbers, with one extra class for records without a label."""
    known = ~_missing(labels)
    out = np.zeros(len(labels), dtype=np.int64)
    out[known] = 1 + np.unique(labels[known], return_inverse=True)[1]
    return out


def _drawn_parts(group: np.ndarray, strata: np.ndarray | None, share: float, seed: int) -> np.ndarray:
    """0 for training, 1 for validation: that fraction of the groups of each class, and at least one group of a class
    with two."""
    if not 0 < share < 1:
        raise Error(f"validation={share}: must be a share between 0 and 1")
    groups, first = np.unique(group, return_index=True)
    classes = np.zeros(len(groups), dtype=np.int64) if strata is None else strata[first]
    part = np.zeros(len(groups), dtype=np.int32)
    rng = np.random.default_rng(seed)
    for c in np.unique(classes):
        members = rng.permutation(np.flatnonzero(classes == c))
        part[members[: max(round(share * len(members)), int(len(members) > 1))]] = 1
    return part[np.searchsorted(groups, group)]


def _one(events: Events) -> Events:
    if len(events) != 1:
        raise Error(f"this is about one record, X[i], and there are {len(events)}")
    return events


def _same_length(events: Events, array: np.ndarray, name: str) -> None:
    if array.shape != (len(events),):
        raise Error(f"{name} has the shape {array.shape}, and there are {len(events)} records")


def _missing(labels: np.ndarray) -> np.ndarray:
    if labels.dtype == object:
        return np.array([x is None or x != x for x in labels], dtype=bool)
    if np.issubdtype(labels.dtype, np.floating):
        return np.isnan(labels)
    return np.zeros(len(labels), dtype=bool)


def _classes_of(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    known = labels[~_missing(labels)]
    if np.issubdtype(known.dtype, np.floating) and np.any(known != np.floor(known)):
        raise Error("Unknown label type: continuous. Classes have names or whole numbers; Regressor predicts numbers")
    return np.unique(known)


def _ordered_classes(given: np.ndarray | None, names: list[str]) -> np.ndarray:
    """The classes as in y or, for a model file, their names, as numbers if all names are numbers."""
    if given is not None:
        return given
    try:
        return np.array([int(name) for name in names])
    except ValueError:
        return np.array(names)


def _option_text(value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(_option_text(x) for x in value)
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)
