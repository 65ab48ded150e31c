"""A model as an ONNX graph that takes records in the data's units: any number of them, of any length.

Inputs are time (B, L), value and mask (B, L, D) and, for a model of curves, at (B, Q). The graph scales them as the
library does, then computes the same as the module in _torch.py, which is easier to read; a latent state is at its mean,
as with predict(samples=0).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ._flat import Error
from ._model import Model
from ._settings import COURSE, LEAVES, Settings

_OPSET, _IR = 18, 9
_HIDDEN = -1e30  # a score that softmax turns into 0, without NaN where all scores are this low
_LATE = 1e300


class Graph:
    """Nodes and constants, whose names are numbers."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {}

    def __call__(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node and returns its outputs. Inputs are names, or numbers and arrays, which become constants."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        made = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, value: Any) -> str:
        array = np.ascontiguousarray(np.asarray(value, dtype=np.float32 if type(value) is float else None))
        array = array.reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"constant_{len(self.constants)}")
        return self.constants[key].name

    # ---- frequent operations ----

    def axes(self, *axes: int) -> np.ndarray:
        return np.array(axes, dtype=np.int64)

    def unsqueeze(self, x: str, *axes: int) -> str:
        return self("Unsqueeze", x, self.axes(*axes))

    def reduce(self, kind: str, x: str, axis: int, keep: int = 0) -> str:
        return self("Reduce" + kind, x, self.axes(axis), keepdims=keep)

    def shape(self, x: str, *sizes: int) -> str:
        """Reshapes. 0: keeps a size; -1: takes the rest."""
        return self("Reshape", x, np.array(sizes, dtype=np.int64))

    def cut(self, x: str, axis: int, first: int, end: int) -> str:
        return self("Slice", x, self.axes(first), self.axes(end), self.axes(axis))

    def linear(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        return self("Add", self("MatMul", x, weight.T), bias)

    def double(self, x: str) -> str:
        return self("Cast", x, to=TensorProto.DOUBLE)

    def float(self, x: str) -> str:
        return self("Cast", x, to=TensorProto.FLOAT)


class Series:
    """Each channel's observations, (B, L, D), in double: present ones first, in order of time. Their numbers are (B,
    D)."""

    def __init__(self, g: Graph, time: str, value: str, mask: str) -> None:
        self.g, self.zero, self.one = g, np.float64(0), np.float64(1)
        here = g("Greater", mask, 0.0)
        key = g("Where", here, g.double(g.unsqueeze(time, 2)), np.float64(_LATE))
        t, order = g("TopK", key, g.cut(g("Shape", key), 0, 1, 2), outputs=2, axis=1, largest=0, sorted=1)
        v = g("GatherElements", g.double(value), order, axis=1)
        self.there = g("Less", t, np.float64(_LATE))
        self.inside = g.double(self.there)
        self.t, self.v = (g("Where", self.there, x, self.zero) for x in (t, v))
        self.count = g.reduce("Sum", self.inside, 1)
        self.seen, self.n = g("Min", self.count, self.one), g("Max", self.count, self.one)
        self.u, self.d = (g("Mul", g("Sub", x, g.cut(x, 1, 0, 1)), self.inside) for x in (self.v, self.t))
        self.step, self.gap = (g("Mul", g("Sub", x, self._before(x)), self.inside) for x in (self.v, self.t))

    def _before(self, x: str) -> str:
        """The value before each; for the first, the first itself."""
        return self.g("Concat", self.g.cut(x, 1, 0, 1), self.g.cut(x, 1, 0, -1), axis=1)

    def _mean(self, x: str) -> str:
        return self.g("Div", self.g.reduce("Sum", x, 1), self.n)

    def _step_mean(self, x: str) -> str:
        return self.g("Div", self.g.reduce("Sum", x, 1), self.g("Max", self.g("Sub", self.n, self.one), self.one))

    def _covariance(self, a: str, b: str) -> str:
        return self.g("Sub", self._mean(self.g("Mul", a, b)), self.g("Mul", self._mean(a), self._mean(b)))

    def _root(self, x: str) -> str:
        return self.g("Sqrt", self.g("Max", x, self.zero))

    def _drawn(self, x: str) -> str:
        return self.g("Mul", self.g("Sign", x), self.g("Log", self.g("Add", self.g("Abs", x), self.one)))

    def numbers(self, summaries: int, rate: float) -> list[str]:
        return self.level() + (self.shape(rate) if summaries > 1 else []) + (self.course() if summaries > 2 else [])

    def level(self) -> list[str]:
        g = self.g
        after = g("Concat", g.cut(self.inside, 1, 1, 1 << 40), g("Mul", g.cut(self.inside, 1, 0, 1), self.zero), axis=1)
        last = g("Sub", self.inside, after)  # 1 at the last observation

        def ends(x: str) -> str:
            return g.reduce("Sum", g("Mul", x, last), 1)

        width = self._root(self._covariance(self.d, self.d))
        wide = g("Greater", width, self.zero)
        trend = g("Where", wide, g("Div", self._covariance(self.d, self.u), g("Where", wide, width, self.one)), self.zero)
        first = g("Squeeze", g.cut(self.v, 1, 0, 1), g.axes(1))
        far = np.float64(_LATE)
        least = g.reduce("Min", g("Where", self.there, self.v, far), 1)
        most = g.reduce("Max", g("Where", self.there, self.v, -far), 1)
        numbers = [self.seen, g("Log", g("Add", self.count, self.one)), g("Add", first, self._mean(self.u))]
        numbers += [self._root(self._covariance(self.u, self.u)), first, ends(self.v), least, most]
        numbers += [self._step_mean(g("Abs", self.step)), trend, ends(self.t)]
        return [g("Mul", x, self.seen) for x in numbers]

    def shape(self, rate: float) -> list[str]:
        g, one, step = self.g, self.one, self.step
        size, square = g("Abs", step), g("Mul", step, step)
        spread, root = self._root(self._covariance(self.u, self.u)), self._root(self._step_mean(square))
        some = g("And", g("Greater", spread, self.zero), g("Greater", root, self.zero))
        spread, root = g("Where", some, spread, one), g("Where", some, root, one)
        z = g("Mul", g("Div", g("Sub", self.u, g.unsqueeze(self._mean(self.u), 1)), g.unsqueeze(spread, 1)), self.inside)
        far = g("Mul", self.gap, np.float64(rate))
        second = g("Mul", self.inside, g("Concat", g("Mul", g.cut(self.inside, 1, 0, 1), self.zero), g.cut(self.inside, 1, 0, -1), axis=1))
        weight = g("Mul", g("Reciprocal", g("Add", g("Mul", far, far), one)), second)  # the first has no step
        sums = g("CumSum", self.u, np.int64(1))
        before = g("Div", self._before(sums), self._before(g("Max", g("CumSum", self.inside, np.int64(1)), one)))
        away = g("Mul", g("Abs", g("Sub", self.u, before)), self.inside)
        third, fourth = self._mean(g("Mul", g("Mul", z, z), z)), self._mean(g("Mul", g("Mul", z, z), g("Mul", z, z)))
        cubes = g("Div", self._step_mean(g("Mul", square, step)), g("Mul", g("Mul", root, root), root))
        weights = g("Where", some, g.reduce("Sum", weight, 1), one)
        numbers = [self._drawn(third), g("Log", g("Max", fourth, one))]
        numbers += [self._drawn(g.reduce("Max", x, 1)) for x in (z, g("Neg", z))]
        numbers += [g("Div", self._step_mean(size), spread)]
        numbers += [g("Div", g("Div", g.reduce("Sum", g("Mul", weight, size), 1), weights), spread)]
        numbers += [g("Div", self._step_mean(size), root), self._drawn(cubes), g("Div", self._step_mean(away), spread)]
        fine = np.float64(65536)
        return [g("Where", some, g("Div", g("Round", g("Mul", x, fine)), fine), self.zero) for x in numbers]

    def course(self) -> list[str]:
        g = self.g
        part = g("Min", g("Max", g("Floor", g("Mul", self.t, np.float64(COURSE))), self.zero), np.float64(COURSE - 1))
        here = [g("Mul", self.inside, g.double(g("Equal", part, np.float64(i)))) for i in range(COURSE)]
        count = [g.reduce("Sum", at, 1) for at in here]
        some = [g("Greater", n, self.zero) for n in count]
        first = g("Mul", g("Squeeze", g.cut(self.v, 1, 0, 1), g.axes(1)), self.seen)
        means = [
            g("Add", first, g("Div", g.reduce("Sum", g("Mul", self.u, at), 1), g("Max", n, self.one))) for at, n in zip(here, count)
        ]
        numbers, mean = [], first
        for seen, own in zip(reversed(some), reversed(means)):
            mean = g("Where", seen, own, mean)  # at the end, the mean of the first part that has observations
        for seen, own in zip(some, means):
            mean = g("Where", seen, own, mean)
            numbers.append(mean)
        return numbers


class Writer:
    """One member's part of the graph: its weights, and its outputs for records in the model's units."""

    def __init__(self, g: Graph, s: Settings, tensors: dict[str, np.ndarray]) -> None:
        self.g, self.s, self.w = g, s, tensors

    # ---- layers ----

    def layer(self, name: str, x: str) -> str:
        return self.g.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def layers(self, name: str, x: str, *numbers: int) -> str:
        """Linear layers with relu between them."""
        for i in numbers:
            x = self.layer(f"{name}{i}", x if i == numbers[0] else self.g("Relu", x))
        return x

    def head(self, name: str, x: str) -> str:
        if self.s.head_hidden:
            return self.layers(name + ".", x, 0, 2, 4)
        return self.layer(name, x) if name + ".weight" in self.w else self.layer(name + ".0", x)

    def gru(self, name: str, x: str, both: bool = False) -> tuple[str, str]:
        """States (B, T, N or 2 N) and the last state of the forward direction, (B, N). torch orders gates r, z, n; ONNX
        z, r, n."""

        def reordered(tensor: np.ndarray) -> np.ndarray:
            r, z, n = np.split(tensor, 3)
            return np.concatenate([z, r, n])

        ends = ("", "_reverse") if both else ("",)
        parts = [[reordered(self.w[f"{name}.{kind}_l0{end}"]) for end in ends] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        bias = np.concatenate([np.stack(parts[2]), np.stack(parts[3])], 1)
        hidden = parts[1][0].shape[1]
        y, last = self.g(
            "GRU",
            self.g("Transpose", x, perm=[1, 0, 2]),
            np.stack(parts[0]),
            np.stack(parts[1]),
            bias,
            outputs=2,
            hidden_size=hidden,
            linear_before_reset=1,
            direction="bidirectional" if both else "forward",
        )
        states = self.g.shape(self.g("Transpose", y, perm=[2, 0, 1, 3]), 0, 0, -1)  # (B, T, directions N)
        return states, self.g("Squeeze", self.g.cut(last, 0, 0, 1), self.g.axes(0))

    # ---- attention ----

    def embedding(self, part: str, time: str) -> str:
        """(B, L, 1 or H, E)"""
        g, s = self.g, self.s
        if not s.learned:
            even = np.arange(0, s.embed, 2, dtype=np.float32)
            rate = (s.scale * np.exp(even * -(math.log(s.base) / s.embed))).astype(np.float32)
            angle = g.unsqueeze(g("Mul", g.unsqueeze(time, 2), rate), 3)
            return g.unsqueeze(g.shape(g("Concat", g("Sin", angle), g("Cos", angle), axis=3), 0, 0, s.embed), 2)
        at = g.unsqueeze(time, 2)
        rising = g.unsqueeze(self.layer(part + ".linear", at), 3)
        waves = g.shape(g("Sin", self.layer(part + ".periodic", at)), 0, 0, -1, s.embed - 1)
        return g("Concat", rising, waves, axis=3)

    def scores(self, part: str, heads: int, query: str, key: str) -> str:
        """Scores (B or 1, H, Q, L) of embeddings."""
        g, E = self.g, self.s.embed

        def projected(embedded: str, layer: int, biased: bool) -> str:
            weight = self.w[f"{part}.att.linears.{layer}.weight"].reshape(heads, -1, E).swapaxes(1, 2)
            y = g("MatMul", g("Transpose", embedded, perm=[0, 2, 1, 3]), weight)
            return g("Add", y, self.w[f"{part}.att.linears.{layer}.bias"].reshape(1, heads, 1, -1)) if biased else y

        q, k = projected(query, 0, True), g("Transpose", projected(key, 1, False), perm=[0, 1, 3, 2])
        return g("Mul", g("MatMul", q, k), 1 / math.sqrt(E // heads))

    def points(self) -> np.ndarray:
        return np.linspace(0, 1, self.s.ref_points, dtype=np.float32)[None]

    def attend(self, time: str, value: str, mask: str) -> tuple[str, str]:
        """(B, K, N) after the attention's layer, and the intensities, (B, K, H D)."""
        g, s = self.g, self.s
        value, mask = (g.cut(x, 2, s.statics, s.channels) for x in (value, mask))
        if s.values != "plain":
            value, mask = self.encoded(value, mask)
        point = time if s.observed else g.constant(self.points())
        key = self.embedding("rec", time)
        score = self.scores("rec", s.enc_heads, key if s.observed else self.embedding("rec", point), key)
        features, intensity = self.statistics(g.unsqueeze(score, 3), value, mask, time, point)
        if "intensity" not in s.statistics:
            seen = g.unsqueeze(g.reduce("Max", mask, 1), 1, 2, 3)
            features = g("Concat", features, g("Mul", seen, g("Add", g("Mul", g.cut(features, 3, 0, 1), 0.0), 1.0)), axis=3)
        flat = g.shape(g("Transpose", features, perm=[0, 2, 1, 3, 4]), 0, 0, -1)
        return self.layer("rec.att.linears.2", flat), g.shape(g("Transpose", intensity, perm=[0, 2, 1, 3]), 0, 0, -1)

    def encoded(self, value: str, mask: str) -> tuple[str, str]:
        """Values and mask of the channels that attention sees."""
        g, s = self.g, self.s
        knots = self.w["rec.values.knots"].reshape(s.varying, s.bins + 1)
        low, high = knots[:, :-1], knots[:, 1:]
        x, width = g.unsqueeze(value, 3), high - low
        share = g("Clip", g("Div", g("Sub", x, low), np.where(width > 0, width, np.float32(1))), 0.0, 1.0)
        share = g("Where", width > 0, share, g.float(g("GreaterOrEqual", x, high)))
        if s.values == "quantile":
            return g.reduce("Mean", share, 3), mask
        there = g("Mul", g.unsqueeze(mask, 3), np.ones(1 + s.bins, np.float32))
        return g.shape(g("Concat", x, share, axis=3), 0, 0, s.attended), g.shape(there, 0, 0, s.attended)

    def statistics(self, score: str, value: str, mask: str, time: str, point: str) -> tuple[str, str]:
        """(B, H, K, F, D), 0 for a channel without observations; and the intensities, (B, H, K, D)."""
        g, s = self.g, self.s
        there = g.unsqueeze(g("Transpose", mask, perm=[0, 2, 1]), 1, 2)  # (B, 1, 1, D, L)
        x = g.unsqueeze(g("Transpose", value, perm=[0, 2, 1]), 1, 2)
        seen = g.reduce("Max", there, 4)
        score = g("Where", g("Greater", there, 0.0), score, _HIDDEN)
        w = g("Softmax", score, axis=4)

        def mean_of(y: str) -> str:
            return g.reduce("Sum", g("Mul", w, y), 4)

        def from_mean(y: str, mean: str) -> str:
            return g("Sub", y, g.unsqueeze(mean, 4))

        top = g.reduce("Max", score, 4, keep=1)
        total = g.reduce("Sum", g("Exp", g("Sub", score, top)), 4)
        intensity = g("Mul", g("Softplus", g("Add", g("Log", total), g("Squeeze", top, g.axes(4)))), seen)
        mean = mean_of(x)
        made = {"mean": [mean], "intensity": [intensity]}
        if "spread" in s.statistics:
            off = from_mean(x, mean)
            made["spread"] = [g("Sub", g("Sqrt", g("Add", mean_of(g("Mul", off, off)), 1 / 1024)), 1 / 32)]
        if "slope" in s.statistics:
            d = g("Mul", g("Sub", g.unsqueeze(time, 1, 2, 3), g.unsqueeze(point, 1, 3, 4)), s.rate)
            middle, rho = mean_of(d), g("Reciprocal", g("Sqrt", g("Add", mean_of(g("Mul", d, d)), 1.0)))
            position, trend = g("Mul", middle, rho), g("Mul", mean_of(g("Mul", from_mean(d, middle), from_mean(x, mean))), rho)
            made["slope"] = [position, trend, g("Neg", g("Mul", trend, position))]
        columns = [g.unsqueeze(g("Mul", f, seen), 3) for name in s.statistics for f in made[name]]
        return g("Concat", *columns, axis=3), intensity

    # ---- summaries and trees ----

    def summary(self, time: str, value: str, mask: str) -> str | None:
        """(B, width), or None."""
        g, s, M = self.g, self.s, self.s.statics
        if s.summary_width == 0:
            return None
        parts = []
        if s.summaries:
            series = Series(g, time, g.cut(value, 2, M, s.channels), g.cut(mask, 2, M, s.channels))
            parts += series.numbers(s.summaries, s.rate)
        if M:
            fixed = Series(g, time, g.cut(value, 2, 0, M), g.cut(mask, 2, 0, M)).level()
            parts += [fixed[2], fixed[0]]
        return g.float(g("Concat", *parts, axis=1))

    def trees(self, logits: str, row: str) -> str:
        """Trees that split on the summaries and the static channels' means, added to the logits."""
        g, s = self.g, self.s
        count = s.summary_width - s.statics
        split, height = self.w["rec.trees.split"].reshape(s.trees, LEAVES - 1, 4), self.w["rec.trees.height"]
        channel = np.arange(count) % s.varying
        channel[count - s.statics :] = count + np.arange(s.statics)  # whether the value is present
        leaf = g("Mul", g("Cast", g.cut(row, 1, 0, 1), to=TensorProto.INT64), np.zeros((1, s.trees), np.int64))
        for k in range(LEAVES - 1):
            by = split[:, k, 1].clip(0, count - 1).astype(np.int64)
            seen = g("Greater", g("Gather", row, channel[by].astype(np.int64), axis=1), 0.0)
            above = g("GreaterOrEqual", g("Gather", row, by, axis=1), split[:, k, 2])
            goes = g("Or", g("And", seen, above), g("And", g("Not", seen), split[:, k, 3] > 0))
            here = g("Equal", leaf, split[:, k, 0].astype(np.int64))
            leaf = g("Where", g("And", goes, here), np.int64(k + 1), leaf)
        at = g("Add", leaf, (np.arange(s.trees) * LEAVES).astype(np.int64))
        added = g.reduce("Sum", g("Gather", height.astype(np.float64).reshape(-1, s.outputs), at, axis=0), 1)
        return g("Add", g("Mul", logits, self.w["rec.trees.share"]), g.float(added))

    def classify(self, name: str, last: str, time: str, value: str, mask: str) -> str:
        row = self.summary(time, value, mask)
        logits = self.head(name, last if row is None else self.g("Concat", last, row, axis=1))
        return logits if row is None or not self.s.trees else self.trees(logits, row)

    # ---- models ----

    def enc(self, time: str, value: str, mask: str) -> str:
        out, _ = self.attend(time, value, mask)
        if self.s.observed:
            return self.head("rec.classifier", self.gru("rec.gru", out)[0])
        return self.classify("rec.classifier", self.gru("rec.enc", out)[1], time, value, mask)

    def latent(self, time: str, value: str, mask: str) -> tuple[str, str]:
        """The mean of z, (B, K, Z), and the intensities."""
        out, intensity = self.attend(time, value, mask)
        both = self.layers("rec.hiddens_to_z0.", self.gru("rec.gru_rnn", out, both=True)[0], 0, 2)
        return self.g.cut(both, 2, 0, self.s.latent), intensity

    def decoded(self, z: str, at: str) -> tuple[str, str]:
        """States of the decoder at queries, (B, Q, H 2 N), and their attention weights."""
        g, s = self.g, self.s
        query, key = self.embedding("dec", at), self.embedding("dec", g.constant(self.points()))
        weight = g("Softmax", self.scores("dec", s.dec_heads, query, key), axis=3)
        return self.at_queries(weight, self.gru("dec.gru_rnn", z, both=True)[0]), weight

    def at_queries(self, weight: str, rows: str) -> str:
        g = self.g
        return g.shape(g("Transpose", g("MatMul", weight, g.unsqueeze(rows, 1)), perm=[0, 2, 1, 3]), 0, 0, -1)

    def full(self, time: str, value: str, mask: str) -> str:
        z, _ = self.latent(time, value, mask)
        if self.s.classify == "time":
            return self.head("classifier", self.layer("dec.att.linears.2", self.decoded(z, time)[0]))
        return self.classify("classifier.classifier", self.gru("classifier.gru_rnn", z)[1], time, value, mask)

    def curves(self, time: str, value: str, mask: str, at: str) -> tuple[str, str | None]:
        """Means and, if the variance is learned, standard deviations: (B, Q, D)."""
        g, s = self.g, self.s
        z, intensity = self.latent(time, value, mask)
        states, weight = self.decoded(z, at)
        mean = self.layers("dec.z0_to_obs.", self.layer("dec.att.linears.2", states), 0, 2)
        if not s.learned_variance:
            return mean, None
        read = g("Concat", states, self.at_queries(weight, intensity), axis=2)
        return mean, g("Add", g("Softplus", self.layers("dec.z0_to_var.", read, 0, 2)), s.noise_std)


# ---- the data's units ----


class Units:
    """The library's conversion of raw observations to the model's units, and of predicted numbers back."""

    def __init__(self, model: Model) -> None:
        D = len(model.channels)
        self.offset, self.scale = self._row(model, "offset", D, 0), self._row(model, "scale", D, 1)
        self.low, self.high = self._row(model, "low", D, -np.inf), self._row(model, "high", D, np.inf)
        self.missing, self.band = self._row(model, "missing", D, np.nan), self._row(model, "band", D, 1)
        if not np.isnan(self._row(model, "fill", D, np.nan)).all():
            raise Error("to_onnx knows records as they are, and this model fills channels that a record lacks")
        self.time = np.float32(model.text("mtan.time.scale", "1 1 1").split()[2])
        self.from_first = model.counts_from_first and "mtan.time.scale" in model.metadata
        self.number = [np.array(model.text(f"mtan.number.{key}", "").split(), dtype=np.float64) for key in ("offset", "scale")]

    @staticmethod
    def _row(model: Model, key: str, D: int, otherwise: float) -> np.ndarray:
        words = model.text("mtan.prep." + key).split()
        return np.array(words, dtype=np.float32) if words else np.full(D, otherwise, dtype=np.float32)

    def records(self, g: Graph, time: str, value: str, mask: str) -> tuple[str, str, str, str]:
        """Times, values and mask in the model's units, and the origin of each record's times, (B, 1)."""
        mask = g.float(g("Greater", mask, 0.0))
        if not np.isnan(self.missing).all():
            mask = g("Mul", mask, g.float(g("Not", g("Equal", value, self.missing))))
        value = g("Where", g("Greater", mask, 0.0), value, 0.0)
        clipped = g("Max", g("Min", value, np.minimum(self.high, np.float32(3e38))), np.maximum(self.low, np.float32(-3e38)))
        value = g("Mul", g("Div", g("Sub", clipped, self.offset), self.scale), mask)
        start = g("Mul", g.reduce("Max", time, 1, keep=1), 0.0)
        if self.from_first:
            used = g("Greater", g.reduce("Max", mask, 2), 0.0)
            start = g.reduce("Min", g("Where", used, time, np.float32(3e38)), 1, keep=1)
        return self.times(g, time, start), value, mask, start

    def times(self, g: Graph, time: str, start: str) -> str:
        return g("Div", g("Sub", time, start), self.time)

    def raw(self, g: Graph, mean: str) -> str:
        return g("Add", g("Mul", mean, self.scale), self.offset)

    def raw_numbers(self, g: Graph, out: str, each: int) -> str:
        if not self.number[0].size:
            return out
        offset, scale = (np.repeat(part, each).astype(np.float32) for part in self.number)
        return g("Add", g("Mul", out, scale), offset)


def _answers(g: Graph, s: Settings, units: Units, logits: list[str]) -> str:
    """The outputs of predict, from the logits of each member."""
    quantiles = s.outputs // s.classes

    def read(x: str) -> str:
        if s.task == "number":  # separately learned quantiles may cross; sorting them never makes them worse
            return x if quantiles == 1 else g("TopK", x, g.axes(quantiles), outputs=2, axis=-1, largest=0)[0]
        return g("Softmax", x, axis=-1) if s.task == "classes" else g("Sigmoid", x)

    each = [read(x) for x in logits]
    out = each[0] if len(each) == 1 else g("Mul", g("Sum", *each), 1 / len(each))
    return out if s.task != "number" else units.raw_numbers(g, out, quantiles)


def to_onnx(model: Model) -> Any:
    """The model's graph, checked."""
    s, units, g = Settings(model, "to_onnx"), Units(model), Graph()
    tensors = model.tensors()
    members = [Writer(g, s, {n: np.split(t, s.members)[i] for n, t in tensors.items()}) for i in range(s.members)]
    time, value, mask, start = units.records(g, "time", "value", "mask")
    inputs, outputs = [("time", ["B", "L"]), ("value", ["B", "L", s.channels]), ("mask", ["B", "L", s.channels])], []
    if s.classify == "none":
        inputs.append(("at", ["B", "Q"]))
        mean, sd = members[0].curves(time, value, mask, units.times(g, "at", start))
        outputs.append(("mean", units.raw(g, mean), ["B", "Q", s.channels]))
        if sd is not None:
            outputs.append(("sd", g("Mul", sd, np.abs(units.scale) * units.band), ["B", "Q", s.channels]))
    else:
        logits = [w.full(time, value, mask) if s.full else w.enc(time, value, mask) for w in members]
        name = "number" if s.task == "number" else "probability"
        outputs.append((name, _answers(g, s, units, logits), ["B", "L"][: 1 + (s.classify == "time")] + [s.outputs]))
    return _made(g, inputs, outputs, model)


def _made(g: Graph, inputs: list[Any], outputs: list[Any], model: Model) -> Any:
    for name, source, _ in outputs:
        g.nodes.append(helper.make_node("Identity", [source], [name]))
    graph = helper.make_graph(
        g.nodes,
        "mtan",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, _, shape in outputs],
        list(g.constants.values()),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR, producer_name="mtan")
    helper.set_model_props(made, {key: model.text("mtan.names." + key) for key in ("channels", "classes")})
    onnx.checker.check_model(made)
    return made
