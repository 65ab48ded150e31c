"""mTAND-Enc with local statistics, summaries and static channels, as a PyTorch module written from their definitions:
means and covariances in two passes, softmax and logsumexp over the observed times of a channel. The published code has
no such model; golden.py exports it in addition to the published ones. Also the encoding of values, which the published
models can use as well: for them it is additional channels."""
import math

import torch
from torch import nn
from torch.nn import functional as F

FEATURES = {"mean": 1, "spread": 1, "intensity": 1, "slope": 3}
SUMMARIES, SHAPES, COURSE = 11, 9, 8


def value_parts(case):
    """The number of channels that attention sees in place of one."""
    return 1 + case.bins if case.config.get("values") == "piecewise" else 1


def encode(x, mask, knots, kind):
    """x and mask (..., D) as attention reads them, encoded by knots (D, bins + 1): mtan.h, mtan_values."""
    low, high, x = knots[:, :-1], knots[:, 1:], x.unsqueeze(-1)
    width = high - low
    share = torch.where(width > 0, (x - low) / width.where(width > 0, torch.ones_like(width)), (x >= high).to(x.dtype))
    share = share.clamp(0, 1) * mask.unsqueeze(-1)
    if kind == "quantile":
        return share.mean(-1), mask
    parts = torch.cat([x * mask.unsqueeze(-1), share], -1)
    return parts.flatten(-2), mask.repeat_interleave(parts.shape[-1], -1)


def encode_input(model, case, knots):
    """A published model on the encoded values of its input [x, mask]."""
    plain, D = model.forward, case.channels
    model.forward = lambda x, time: plain(torch.cat(encode(x[..., :D], x[..., D:], knots, case.values), -1), time)


class LocalEncoder(nn.Module):
    def __init__(self, case, knots=None):
        super().__init__()
        c = case
        self.values, self.knots = c.config.get("values"), knots
        self.heads, self.statics, self.channels = c.enc_heads, c.config.get("statics", 0), c.channels
        self.statistics = c.config.get("statistics", "mean").split(",")
        self.rate = 2 * c.config.get("fastest", 16)
        self.register_buffer("query", torch.linspace(0, 1., c.ref_points))
        varying = c.channels - self.statics
        columns = sum(FEATURES[name] for name in self.statistics) + ("intensity" not in self.statistics)
        self.numbers = (0, SUMMARIES, SUMMARIES + SHAPES, SUMMARIES + SHAPES + COURSE)[c.config.get("summaries", 0)]
        read = self.numbers * varying + 2 * self.statics
        self.att = nn.Module()
        self.att.linears = nn.ModuleList([nn.Linear(c.embed, c.embed), nn.Linear(c.embed, c.embed),
                                          nn.Linear(columns * varying * value_parts(c) * self.heads, c.enc_hidden)])
        self.enc = nn.GRU(c.enc_hidden, c.enc_hidden)
        hidden = c.head_hidden
        self.classifier = nn.Sequential(nn.Linear(c.enc_hidden + read, hidden), nn.ReLU(), nn.Linear(hidden, hidden),
                                        nn.ReLU(), nn.Linear(hidden, c.classes))
        self.periodic, self.linear = nn.Linear(1, c.embed - 1), nn.Linear(1, 1)

    def learn_time_embedding(self, time):
        time = time.unsqueeze(-1)
        return torch.cat([self.linear(time), torch.sin(self.periodic(time))], -1)

    def scores(self, time):
        """(B, H, K, L). The bias of the keys would shift all scores of a point equally, so the model leaves it out."""
        query, key = self.att.linears[0], self.att.linears[1]
        q = query(self.learn_time_embedding(self.query)).unflatten(-1, (self.heads, -1))
        k = (F.linear(self.learn_time_embedding(time), key.weight) + 0 * key.bias).unflatten(-1, (self.heads, -1))
        return torch.einsum("khe,blhe->bhkl", q, k) / math.sqrt(q.shape[-1])

    def features(self, x, mask, time):
        """(B, H, K, F, D) of the channels that are not static."""
        hidden = (mask == 0).transpose(1, 2)[:, None, None]                                    # (B, 1, 1, D, L)
        score = self.scores(time).unsqueeze(-2)
        none = hidden.all(-1)
        score = score.masked_fill(hidden, -math.inf).masked_fill(none.unsqueeze(-1), 0)
        w = torch.softmax(score, -1).masked_fill(none.unsqueeze(-1), 0)                          # (B, H, K, D, L)
        x = x.transpose(1, 2)[:, None, None]
        d = self.rate * (time[:, None, None, None, :] - self.query[None, None, :, None, None])
        mean, middle, far = (w * x).sum(-1), (w * d).sum(-1), (w * d * d).sum(-1)
        from_mean = (x - mean.unsqueeze(-1)).masked_fill(hidden, 0)
        variance = (w * from_mean ** 2).sum(-1)
        rho = 1 / torch.sqrt(1 + far)
        position, trend = middle * rho, (w * (d - middle.unsqueeze(-1)) * from_mean).sum(-1) * rho
        made = {"mean": [mean], "spread": [torch.sqrt(variance + 1 / 1024) - 1 / 32],
                "intensity": [F.softplus(torch.logsumexp(score, -1))],
                "slope": [position, trend, -trend * position]}
        return torch.stack([f for name in self.statistics for f in made[name]], -2).masked_fill(none.unsqueeze(-2), 0)

    def forward(self, x, time):
        D, M = self.channels, self.statics
        x, mask = x[..., :D], x[..., D:]
        read, there = x[..., M:], mask[..., M:]
        if self.values:
            read, there = encode(read, there, self.knots, self.values)
        y = self.features(read, there, time)
        if "intensity" not in self.statistics:
            seen = (there.amax(1) > 0).to(y.dtype)[:, None, None, None].expand(*y.shape[:3], 1, there.shape[-1])
            y = torch.cat([y, seen], -2)
        steps = self.att.linears[2](y.transpose(1, 2).flatten(2))                               # (B, K, N)
        _, last = self.enc(steps.transpose(0, 1))
        return self.classifier(torch.cat([last.squeeze(0), self.summary(x, mask, time)], -1))

    def summary(self, x, mask, time):
        rows = []
        for b in range(x.shape[0]):
            series = [(time[b][mask[b, :, d] > 0], x[b, :, d][mask[b, :, d] > 0]) for d in range(self.channels)]
            numbers = [summarise(t, v) + shape(t, v, self.rate) + course(t, v) for t, v in series[self.statics:]]
            row = [n[i] for i in range(self.numbers) for n in numbers]
            row += [v.mean() if len(v) else v.new_zeros(()) for t, v in series[:self.statics]]
            row += [v.new_tensor(float(len(v) > 0)) for t, v in series[:self.statics]]
            rows.append(torch.stack(row) if row else x.new_zeros(0))
        return torch.stack(rows)


def summarise(t, v):
    """The numbers of one channel: mtan.h, MTAN_SUMMARIES."""
    if len(v) == 0:
        return [v.new_zeros(())] * SUMMARIES
    n, width = len(v), ((t - t.mean()) ** 2).mean().sqrt()
    trend = ((t - t.mean()) * (v - v.mean())).mean() / width if n > 1 and width > 0 else v.new_zeros(())
    step = (v[1:] - v[:-1]).abs().mean() if n > 1 else v.new_zeros(())
    return [v.new_ones(()), torch.log1p(v.new_tensor(float(n))), v.mean(), ((v - v.mean()) ** 2).mean().sqrt(), v[0],
            v[-1], v.min(), v.max(), step, trend, t[-1]]


def course(t, v):
    """The means of one channel in each part of time: mtan.h, MTAN_COURSE."""
    parts = [v[torch.clamp((t * COURSE).floor(), 0, COURSE - 1) == i] for i in range(COURSE)]
    means = [part.mean() for part in parts if len(part)] or [v.new_zeros(())]
    before = [sum(len(part) > 0 for part in parts[:i + 1]) for i in range(COURSE)]  # non-empty parts so far
    return [means[max(n - 1, 0)] for n in before]


def drawn(x):
    return torch.sign(x) * torch.log1p(torch.abs(x))


def shape(t, v, rate):
    """The numbers of one channel's shape: mtan.h, MTAN_SHAPES."""
    if len(v) == 0 or not (v != v[0]).any():
        return [v.new_zeros(())] * SHAPES
    from_mean, step = v - v.mean(), v[1:] - v[:-1]
    spread, root = (from_mean ** 2).mean().sqrt(), (step ** 2).mean().sqrt()
    weight = 1 / (1 + (rate * (t[1:] - t[:-1])) ** 2)
    before = v[:-1].cumsum(0) / torch.arange(1, len(v), dtype=v.dtype)
    made = [drawn((from_mean ** 3).mean() / spread ** 3), torch.log((from_mean ** 4).mean() / spread ** 4),
            torch.log1p(from_mean.max() / spread), torch.log1p(-from_mean.min() / spread), step.abs().mean() / spread,
            (weight * step.abs()).sum() / weight.sum() / spread, step.abs().mean() / root,
            drawn((step ** 3).mean() / root ** 3), (v[1:] - before).abs().mean() / spread]
    return [torch.round(x * 65536) / 65536 for x in made]
