"""A model as a torch.nn.Module: the published code's parameter names and outputs, and mtan's extensions.

Each layer follows its definition, dense and with a mask, as in the published code; nothing is folded. The module is
also differentiable with respect to times and values. Shapes: B records, L times, K reference points, Q queries, D
channels, H heads, E embedding, Z latent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._model import Model
from ._settings import COURSE, LEAVES, Settings

# ---- attention ----


class _Attention(nn.Module):
    """multiTimeAttention: the weights of a query's and a key's embedding, and the layer after them."""

    def __init__(self, embed: int, heads: int, columns: int, out: int) -> None:
        super().__init__()
        self.heads = heads
        self.linears: Any = nn.ModuleList([nn.Linear(embed, embed), nn.Linear(embed, embed), nn.Linear(columns, out)])

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, Q, L) from embeddings (B, Q, 1 or H, E) and (B, L, 1 or H, E). The bias of the keys would shift all
        scores of a query equally, so it cancels in the softmax; the intensity is defined without it."""
        shape = (self.heads, -1, query.shape[-1])
        q = torch.einsum("bqhe,hde->bhqd", query.expand(-1, -1, self.heads, -1), self.linears[0].weight.view(shape))
        k = torch.einsum("blhe,hde->bhld", key.expand(-1, -1, self.heads, -1), self.linears[1].weight.view(shape))
        q = q + self.linears[0].bias.view(1, self.heads, 1, -1)
        return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


class _Timed(nn.Module):
    """The common part of encoder and decoder: reference points, and an embedding of times."""

    query: Tensor

    def __init__(self, s: Settings, heads: int) -> None:
        super().__init__()
        self.embeddings = heads if s.per_head else 1
        self.embed, self.learned, self.base, self.scale = s.embed, s.learned, s.base, s.scale
        self.register_buffer("query", torch.linspace(0, 1, s.ref_points), persistent=False)

    def _add_embedding(self) -> None:
        """Called last, as in the published classes, because parameters are listed in the order of their creation."""
        if self.learned:
            self.periodic = nn.Linear(1, self.embeddings * (self.embed - 1))
            self.linear = nn.Linear(1, self.embeddings)

    def embedding(self, time: Tensor) -> Tensor:
        """(B, L, 1 or H, E) of (B, L)."""
        if not self.learned:
            even = torch.arange(0, self.embed, 2, dtype=time.dtype, device=time.device)
            angle = self.scale * time.unsqueeze(-1) * torch.exp(even * -(math.log(self.base) / self.embed))
            return torch.stack([torch.sin(angle), torch.cos(angle)], -1).flatten(-2).unsqueeze(-2)
        rising = self.linear(time.unsqueeze(-1)).unsqueeze(-1)
        waves = torch.sin(self.periodic(time.unsqueeze(-1))).unflatten(-1, (self.embeddings, -1))
        return torch.cat([rising, waves], -1)


class _Encoder(_Timed):
    """Attention from reference points to the observations of each channel, and its local statistics."""

    def __init__(self, s: Settings) -> None:
        super().__init__(s, s.enc_heads)
        self.dim, self.statics, self.statistics, self.rate = s.channels, s.statics, s.statistics, s.rate
        self.observed = s.observed
        self.att = _Attention(s.embed, s.enc_heads, s.enc_heads * s.columns, s.enc_hidden)
        self.summary = _Summaries(s)

    def _add_last(self, s: Settings) -> None:
        self._add_embedding()
        self.trees = _Trees(s) if s.trees else None
        self.values = None if s.values == "plain" else _Values(s)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values, with 0 where there are none, and mask: (B, L, D) each."""
        mask = x[..., self.dim :]
        return x[..., : self.dim].masked_fill(mask == 0, 0), mask

    def attend(self, x: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """(B, K, N) after the attention's layer, and the intensities, (B, K, H D)."""
        values, mask = (part[..., self.statics :] for part in self.split(x))
        if self.values is not None:
            values, mask = self.values(values, mask)
        point = time if self.observed else self.query.to(time.dtype).unsqueeze(0)
        key = self.embedding(time)
        score = self.att.scores(key if self.observed else self.embedding(point).expand(len(x), -1, -1, -1), key)
        features, intensity = self._statistics(score.unsqueeze(-2), values, mask, time, point)
        if "intensity" not in self.statistics:
            seen = (mask.amax(1) > 0).to(features.dtype)[:, None, None, None]
            features = torch.cat([features, seen.expand(*features.shape[:3], 1, -1)], -2)
        return self.att.linears[2](features.transpose(1, 2).flatten(2)), intensity.transpose(1, 2).flatten(2)

    def _statistics(self, score: Tensor, x: Tensor, mask: Tensor, time: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H, K, F, D), 0 for a channel without observations; and the intensities, (B, H, K, D)."""
        hidden = (mask == 0).transpose(1, 2)[:, None, None]  # (B, 1, 1, D, L)
        none = hidden.all(-1)
        score = score.masked_fill(hidden, -math.inf).masked_fill(none.unsqueeze(-1), 0)
        w = torch.softmax(score, -1)
        x = x.transpose(1, 2)[:, None, None]
        mean, intensity = (w * x).sum(-1), F.softplus(torch.logsumexp(score, -1)).masked_fill(none, 0)
        made = {"mean": [mean], "intensity": [intensity]}
        if "spread" in self.statistics:
            variance = (w * (x - mean.unsqueeze(-1)) ** 2).sum(-1)
            made["spread"] = [torch.sqrt(variance + 1 / 1024) - 1 / 32]
        if "slope" in self.statistics:
            d = self.rate * (time[:, None, None, None, :] - point[:, None, :, None, None])
            middle, rho = (w * d).sum(-1), 1 / torch.sqrt(1 + (w * d * d).sum(-1))
            position = middle * rho
            trend = (w * (d - middle.unsqueeze(-1)) * (x - mean.unsqueeze(-1))).sum(-1) * rho
            made["slope"] = [position, trend, -trend * position]
        features = torch.stack([f for name in self.statistics for f in made[name]], -2)
        return features.masked_fill(none.unsqueeze(-2), 0), intensity


    def logits(self, head: Callable[[Tensor], Tensor], last: Tensor, x: Tensor, time: Tensor) -> Tensor:
        """Logits of records, from the last state of a sequence, once per sample, and the summaries next to it."""
        row = self.summary(*self.split(x), time).repeat(len(last) // len(x), 1)
        logits = head(torch.cat([last, row], -1))
        return logits if self.trees is None else self.trees(logits, row)


# ---- heads ----


def _head(s: Settings, read: int) -> nn.Module:
    if s.head_hidden == 0:
        return nn.Linear(read, s.outputs)
    layers = [nn.Linear(read, s.head_hidden), nn.ReLU(), nn.Linear(s.head_hidden, s.head_hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(s.head_hidden, s.outputs))


class _Trees(nn.Module):
    """Trees that split on the summaries and the static channels' means, and add to the logits. They are not trained
    here."""

    share: Tensor
    split: Tensor
    height: Tensor

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.varying, self.statics, self.trees, self.outputs = s.varying, s.statics, s.trees, s.outputs
        self.register_buffer("share", torch.ones(1))
        self.register_buffer("split", torch.zeros(s.trees * (LEAVES - 1) * 4))
        self.register_buffer("height", torch.zeros(s.trees * LEAVES * s.outputs))

    def forward(self, logits: Tensor, row: Tensor) -> Tensor:
        count = row.shape[-1] - self.statics
        seen = row[:, torch.arange(count) % self.varying] > 0
        if self.statics:
            seen = torch.cat([seen[:, : count - self.statics], row[:, count:] > 0], -1)
        leaf = torch.zeros(len(row), self.trees, dtype=torch.int64, device=row.device)
        for k in range(LEAVES - 1):
            of, number, threshold, side = self.split.view(self.trees, LEAVES - 1, 4)[:, k].T
            by = number.long().clamp(0, count - 1)
            goes = torch.where(seen[:, by], row.detach()[:, by] >= threshold.to(row.dtype), side > 0)
            leaf = torch.where(goes & (leaf == of), k + 1, leaf)
        height = self.height.view(self.trees, LEAVES, self.outputs)[torch.arange(self.trees, device=row.device), leaf]
        return self.share * logits + height.sum(1)


class _Values(nn.Module):
    """The encoding of a value by its channel's training values: mtan.h, mtan_values. The knots are not trained here."""

    knots: Tensor

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.mean, self.bins = s.values == "quantile", s.bins
        self.register_buffer("knots", torch.zeros(s.varying * (s.bins + 1)))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Values and mask of the channels that attention sees."""
        knots = self.knots.to(x.dtype).view(-1, self.bins + 1)
        low, high, x = knots[:, :-1], knots[:, 1:], x.unsqueeze(-1)
        width = high - low
        step = (x >= high).to(x.dtype)
        share = torch.where(width > 0, ((x - low) / width.masked_fill(width == 0, 1)).clamp(0, 1), step)
        if self.mean:
            return share.mean(-1), mask
        return torch.cat([x, share], -1).flatten(-2), mask.repeat_interleave(1 + self.bins, -1)


class _Summaries:
    """The additional inputs of a classifier of records: mtan.h, MTAN_SUMMARIES, MTAN_SHAPES and MTAN_COURSE."""

    def __init__(self, s: Settings) -> None:
        self.summaries, self.statics, self.rate = s.summaries, s.statics, s.rate

    def __call__(self, x: Tensor, mask: Tensor, time: Tensor) -> Tensor:
        """(B, width). In double, because thresholds lie close to values."""
        M = self.statics
        fixed = _Series(x[..., :M], mask[..., :M], time).level()
        parts = []
        if self.summaries:
            parts = _Series(x[..., M:], mask[..., M:], time).numbers(self.summaries, self.rate)
        return torch.cat([*parts, fixed[2], fixed[0]], -1).to(x.dtype)


class _Series:
    """Each channel's observations, (B, L, D): present ones first, in order of time. Numbers computed from them are (B, D)."""

    def __init__(self, x: Tensor, mask: Tensor, time: Tensor) -> None:
        there = mask > 0
        key = time.unsqueeze(-1).expand_as(x).masked_fill(~there, math.inf)
        t, order = torch.sort(key.double(), dim=1, stable=True)
        self.v, self.there = torch.gather(x.double(), 1, order), torch.gather(there, 1, order)
        self.t = t.masked_fill(~self.there, 0)
        self.count, self.seen = self.there.sum(1), self.there.any(1)
        self.n = self.count.clamp(min=1).double()
        self.u, self.d = (self._where(part - part[:, :1]) for part in (self.v, self.t))
        self.step, self.gap = (self._where(part[:, 1:] - part[:, :-1], 1) for part in (self.v, self.t))

    def _where(self, a: Tensor, first: int = 0, other: float = 0) -> Tensor:
        return a.masked_fill(~self.there[:, first:], other)

    def _mean(self, a: Tensor) -> Tensor:
        return a.sum(1) / self.n

    def _step_mean(self, a: Tensor) -> Tensor:
        return a.sum(1) / (self.n - 1).clamp(min=1)

    def _covariance(self, a: Tensor, b: Tensor) -> Tensor:
        return self._mean(a * b) - self._mean(a) * self._mean(b)

    def numbers(self, summaries: int, rate: float) -> list[Tensor]:
        return self.level() + (self.shape(rate) if summaries > 1 else []) + (self.course() if summaries > 2 else [])

    def level(self) -> list[Tensor]:
        u, d, v, t = self.u, self.d, self.v, self.t
        last = (self.count - 1).clamp(min=0).unsqueeze(1)
        width = _root(self._covariance(d, d))
        trend = torch.where(width > 0, self._covariance(d, u) / width.masked_fill(width == 0, 1), 0)
        numbers = [self.seen.double(), torch.log1p(self.count.double()), v[:, 0] + self._mean(u), _root(self._covariance(u, u)), v[:, 0]]
        numbers += [v.gather(1, last)[:, 0], self._where(v, 0, math.inf).amin(1), self._where(v, 0, -math.inf).amax(1)]
        numbers += [self._step_mean(self.step.abs()), trend, t.gather(1, last)[:, 0]]
        return [number.masked_fill(~self.seen, 0) for number in numbers]

    def shape(self, rate: float) -> list[Tensor]:
        u, step, size = self.u, self.step, self.step.abs()
        spread, root = _root(self._covariance(u, u)), _root(self._step_mean(step**2))
        none = ~((spread > 0) & (root > 0))
        spread, root = spread.masked_fill(none, 1), root.masked_fill(none, 1)
        z = self._where((u - self._mean(u).unsqueeze(1)) / spread.unsqueeze(1))
        weight = self._where(1 / (1 + (rate * self.gap) ** 2), 1)
        before = u[:, :-1].cumsum(1) / torch.arange(1, u.shape[1], dtype=u.dtype, device=u.device).view(1, -1, 1)
        numbers = [_drawn(self._mean(z**3)), torch.log(self._mean(z**4).clamp(min=1)), _drawn(z.amax(1)), _drawn((-z).amax(1))]
        numbers += [self._step_mean(size) / spread, (weight * size).sum(1) / weight.sum(1).masked_fill(none, 1) / spread]
        numbers += [self._step_mean(size) / root, _drawn(self._step_mean(step**3) / root**3)]
        numbers += [self._step_mean(self._where(u[:, 1:] - before, 1).abs()) / spread]
        return [_rounded(number).masked_fill(none, 0) for number in numbers]

    def course(self) -> list[Tensor]:
        part = (self.t * COURSE).floor().clamp(0, COURSE - 1)
        here = [self.there & (part == i) for i in range(COURSE)]
        means = [self.v[:, 0] + (self.u * at).sum(1) / at.sum(1).clamp(min=1) for at in here]
        numbers, mean = [], torch.zeros_like(self.n)
        for at, own in zip(reversed(here), reversed(means)):
            mean = torch.where(at.any(1), own, mean)  # at the end, the mean of the first part that has observations
        for at, own in zip(here, means):
            mean = torch.where(at.any(1), own, mean)
            numbers.append(mean)
        return numbers


def _drawn(x: Tensor) -> Tensor:
    """log(1 + x), and its point reflection below 0."""
    return torch.sign(x) * torch.log1p(x.abs())


def _rounded(x: Tensor) -> Tensor:
    """Rounds to 2^-16, with the gradient of the unrounded value."""
    return x + (torch.round(x * 65536) / 65536 - x).detach()


def _root(x: Tensor) -> Tensor:
    """The square root, with the gradient 0 at 0."""
    positive = x > 0
    return torch.where(positive, torch.sqrt(torch.where(positive, x, 1)), 0)


# ---- the models ----


class EncClassifier(_Encoder):
    """enc_mtan_classif, or enc_mtan_classif_activity if times are classified."""

    def __init__(self, s: Settings) -> None:
        super().__init__(s)
        if self.observed:
            self.gru = nn.GRU(s.enc_hidden, s.enc_hidden, batch_first=True)
        self.classifier = _head(s, s.enc_hidden + s.summary_width)
        if not self.observed:
            self.enc = nn.GRU(s.enc_hidden, s.enc_hidden)
        self._add_last(s)

    def forward(self, x: Tensor, time_steps: Tensor) -> Tensor:
        out, _ = self.attend(x, time_steps)
        if self.observed:
            return self.classifier(self.gru(out)[0])
        return self.logits(self.classifier, self.enc(out.transpose(0, 1))[1].squeeze(0), x, time_steps)


class FullEncoder(_Encoder):
    """enc_mtan_rnn."""

    def __init__(self, s: Settings) -> None:
        super().__init__(s)
        self.gru_rnn = nn.GRU(s.enc_hidden, s.enc_hidden, bidirectional=True, batch_first=True)
        layers = [nn.Linear(2 * s.enc_hidden, s.mlp_hidden), nn.ReLU(), nn.Linear(s.mlp_hidden, 2 * s.latent)]
        self.hiddens_to_z0 = nn.Sequential(*layers)
        self._add_last(s)

    def forward(self, x: Tensor, time_steps: Tensor) -> Tensor:
        return self.posterior(x, time_steps)[0]

    def posterior(self, x: Tensor, time_steps: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance side by side, (B, K, 2 Z), and the intensities."""
        out, intensity = self.attend(x, time_steps)
        return self.hiddens_to_z0(self.gru_rnn(out)[0]), intensity


class FullDecoder(_Timed):
    """dec_mtan_rnn; if times are classified, it ends after the attention."""

    def __init__(self, s: Settings) -> None:
        super().__init__(s, s.dec_heads)
        N = s.dec_hidden
        self.att = _Attention(s.embed, s.dec_heads, 2 * N * s.dec_heads, 2 * N)
        self.gru_rnn = nn.GRU(s.latent, N, bidirectional=True, batch_first=True)
        self.z0_to_obs: nn.Module = nn.Identity()
        if s.classify != "time":
            self.z0_to_obs = nn.Sequential(nn.Linear(2 * N, s.mlp_hidden), nn.ReLU(), nn.Linear(s.mlp_hidden, s.channels))
        self._add_embedding()
        if s.learned_variance:
            read = s.dec_heads * (2 * N + s.enc_heads * s.attended)
            self.z0_to_var = nn.Sequential(nn.Linear(read, s.mlp_hidden), nn.ReLU(), nn.Linear(s.mlp_hidden, s.channels))
        self.least = s.noise_std

    def forward(self, z: Tensor, time_steps: Tensor) -> Tensor:
        return self.curves(z, time_steps)[0]

    def curves(self, z: Tensor, time_steps: Tensor, intensity: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Means and, if the variance is learned, standard deviations: (B, Q, D)."""
        key = self.embedding(self.query.to(z.dtype).unsqueeze(0)).expand(len(z), -1, -1, -1)
        weight = torch.softmax(self.att.scores(self.embedding(time_steps), key), -1)
        states = (weight @ self.gru_rnn(z)[0].unsqueeze(1)).transpose(1, 2).flatten(2)
        mean = self.z0_to_obs(self.att.linears[2](states))
        if intensity is None or not hasattr(self, "z0_to_var"):
            return mean, None
        counted = (weight @ intensity.unsqueeze(1)).transpose(1, 2).flatten(2)
        return mean, self.least + F.softplus(self.z0_to_var(torch.cat([states, counted], -1)))


class FullClassifier(nn.Module):
    """create_classifier."""

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.gru_rnn = nn.GRU(s.latent, s.enc_hidden, batch_first=True)
        self.classifier = _head(s, s.enc_hidden + s.summary_width)

    def last(self, z: Tensor) -> Tensor:
        return self.gru_rnn(z)[1].squeeze(0)

    def forward(self, z: Tensor) -> Tensor:
        return self.classifier(self.last(z))


class Output(NamedTuple):
    """The output of mTAND-Full. Parts that a model does not have are None."""

    logits: Tensor | None
    mean: Tensor  # of the latent state, (B, K, Z), like its log-variance
    logvar: Tensor
    prediction: Tensor | None  # (S B, Q, D), like its standard deviations if they are learned
    sd: Tensor | None


class Enc(nn.Module):
    """mTAND-Enc: net(x, time_steps) returns logits. x (B, L, 2 D) holds values and mask, time_steps (B, L)."""

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.rec = EncClassifier(s)

    def forward(self, x: Tensor, time_steps: Tensor) -> Tensor:
        return self.rec(x, time_steps)


class Full(nn.Module):
    """mTAND-Full: net(x, time_steps, at, noise) returns an Output. `noise` (S, B, K, Z) are standard normals; without
    it the latent state is at its mean. `at` (B, Q) are the times of curves, by default time_steps."""

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.classify, self.latent = s.classify, s.latent
        self.rec, self.dec = FullEncoder(s), FullDecoder(s)
        if s.classify == "record":
            self.classifier: Any = FullClassifier(s)
        elif s.classify == "time":
            head = _head(s, 2 * s.dec_hidden)
            self.classifier = head if s.head_hidden else nn.Sequential(head)

    def forward(self, x: Tensor, time_steps: Tensor, at: Tensor | None = None, noise: Tensor | None = None) -> Output:
        out, intensity = self.rec.posterior(x, time_steps)
        mean, logvar = out[..., : self.latent], out[..., self.latent :]
        z = mean if noise is None else (noise * torch.exp(0.5 * logvar) + mean).flatten(0, 1)
        samples = len(z) // len(x)
        at = (time_steps if at is None else at).repeat(samples, 1)
        if self.classify == "time":
            return Output(self.classifier(self.dec(z, at)), mean, logvar, None, None)
        curves = self.dec.curves(z, at, intensity.repeat(samples, 1, 1))
        logits = None
        if self.classify == "record":
            logits = self.rec.logits(self.classifier.classifier, self.classifier.last(z), x, time_steps)
        return Output(logits, mean, logvar, *curves)


def _logits(out: Any) -> Any:
    return out.logits if isinstance(out, Output) else out


class Ensemble(nn.Module):
    """Its logits are the logs of the members' mean probabilities; numbers are the members' means."""

    def __init__(self, members: list[nn.Module], task: str) -> None:
        super().__init__()
        self.members, self.task = nn.ModuleList(members), task

    def forward(self, x: Tensor, time_steps: Tensor) -> Tensor:
        logits = torch.stack([_logits(member(x, time_steps)) for member in self.members])
        if self.task == "number":
            return logits.mean(0)
        if self.task == "labels":
            return torch.logit(torch.sigmoid(logits).mean(0))
        return torch.logsumexp(torch.log_softmax(logits, -1), 0) - math.log(len(logits))


def _build(s: Settings, tensors: Mapping[str, np.ndarray]) -> nn.Module:
    net = Full(s) if s.full else Enc(s)
    net.load_state_dict({name: torch.from_numpy(np.array(tensors[name])) for name in net.state_dict()})
    return net


def to_torch(model: Model) -> nn.Module:
    """The model as a module, in float32. Parameters are named as in the published code, after rec., dec. and
    classifier."""
    s, tensors = Settings(model, "to_torch"), model.tensors()
    if s.members == 1:
        return _build(s, tensors)
    parts = [{name: np.split(tensor, s.members)[i] for name, tensor in tensors.items()} for i in range(s.members)]
    return Ensemble([_build(s, part) for part in parts], s.task)
