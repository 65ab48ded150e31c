"""The paper's eleven baselines in PyTorch, one record at a time, written directly from their equations: for
golden_baselines.py.

A module's parameters have the names used in model files. `settings` holds the metadata mtan.*. Cells are the
observations of a record, with repeats of a (time, channel) pair averaged; rows are its distinct times. Recurrent cells
and solvers are PyTorch's and torchdiffeq's own.
"""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from golden_baselines_ode import net, fixed_steps, solve, step_count

LEAK = 0.001   # Phased-LSTM: how much a closed gate lets through
LEAST = 1e-6   # of a posterior's standard deviation


@dataclass
class Rows:
    """x is 0 where the mask m is 0."""
    t: torch.Tensor  # (L)
    x: torch.Tensor  # (L, D)
    m: torch.Tensor  # (L, D)

    def __len__(self):
        return len(self.t)

    def mirrored(self):
        return Rows(-self.t.flip(0), self.x.flip(0), self.m.flip(0))


@dataclass
class Cells:
    time: torch.Tensor     # (n)
    channel: torch.Tensor  # (n) whole numbers
    value: torch.Tensor    # (n)

    def of(self, channel):
        mine = self.channel == channel
        return self.time[mine], self.value[mine]


def head(settings, inputs):
    """Two hidden layers, or none."""
    W, C = settings.head_hidden, settings.classes
    if W == 0:
        return nn.Sequential(nn.Linear(inputs, C))
    return nn.Sequential(nn.Linear(inputs, W), nn.ReLU(), nn.Linear(W, W), nn.ReLU(), nn.Linear(W, C))


# ---- Inputs of recurrent models
# ---------------------------------------------------------------------------------------

def since_last(t):
    """(L): time since the row before, 0 for the first."""
    return torch.cat((t.new_zeros(min(1, len(t))), t[1:] - t[:-1]))


def until_next(t):
    """(L): time to the next row, 0 for the last."""
    return torch.cat((t[1:] - t[:-1], t.new_zeros(min(1, len(t)))))


def missing_for(rows):
    """(L, D): how long a channel has not been observed."""
    delta = [torch.zeros_like(rows.x[0])]
    for i, gap in enumerate(since_last(rows.t)[1:], 1):
        delta.append(gap + (1 - rows.m[i - 1]) * delta[-1])
    return torch.stack(delta)


def missing_for_published(rows):
    """As in latent_ode: gaps to the next time, the first row never accumulated, scaled by the largest."""
    gaps, delta = until_next(rows.t), []
    for i, gap in enumerate(gaps):
        carried = (1 - rows.m[i - 1]) * delta[i - 1] if i >= 2 else torch.zeros_like(rows.x[0])
        delta.append(gap + carried)
    delta = torch.stack(delta)
    return delta / delta.max() if delta.max() > 0 else delta


def last_before(rows, otherwise):
    """(L, D): the last value observed in an earlier row, or `otherwise` (D)."""
    last = [otherwise]
    for x, m in zip(rows.x[:-1], rows.m[:-1]):
        last.append(m * x + (1 - m) * last[-1])
    return torch.stack(last)


def filled_forward(rows):
    return torch.where(rows.m > 0, rows.x, last_before(rows, torch.zeros_like(rows.x[0])))


class Scale(nn.Module):
    """w x + b, channel by channel."""

    def __init__(self, channels):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return self.weight * x + self.bias


def frozen(values):
    return nn.Parameter(values, requires_grad=False)


def decayed(amount):
    return torch.exp(-F.relu(amount))


# ---- RNN-Dt, RNN-Impute, RNN-Decay, GRU-D ----------------------------------------------------------------------------

class Gru(nn.Module):
    """One direction of a GRU classifier: states (L, N)."""

    def __init__(self, settings):
        super().__init__()
        D, N, name = settings.channels, settings.enc_hidden, settings.architecture
        self.faithful = settings.preset == "faithful"
        self.imputes, self.decays = name in ("rnn-impute", "gru-d"), name in ("rnn-decay", "gru-d")
        if self.imputes:
            if not self.faithful:
                self.mean = frozen(torch.zeros(D))
            self.input_decay = Scale(D).requires_grad_(not self.faithful)
        if self.decays:
            self.decay = nn.Linear(D, 1 if self.faithful else N)
        self.rnn = nn.GRU(2 * D + (not self.decays), N)

    def imputed(self, rows, delta):
        none = torch.zeros_like(rows.x[0])
        mean, first = (rows.x.mean(0), none) if self.faithful else (self.mean, self.mean)
        g = decayed(self.input_decay(delta))
        guess = g * last_before(rows, first) + (1 - g) * mean
        return rows.m * rows.x + (1 - rows.m) * guess

    def forward(self, rows):
        if len(rows) == 0:
            return torch.zeros(0, self.rnn.hidden_size)
        delta = missing_for_published(rows) if self.faithful else missing_for(rows)
        x = self.imputed(rows, delta) if self.imputes else rows.x
        if not self.decays:
            gaps = until_next(rows.t) if self.faithful else since_last(rows.t)
            return self.rnn(torch.cat((x, rows.m, gaps[:, None]), 1))[0]
        h, states, fed = torch.zeros(1, self.rnn.hidden_size), [], torch.cat((x, rows.m), 1)
        for i in range(len(rows)):
            h = torch.gru_cell(fed[i:i + 1], h * decayed(self.decay(delta[i])), *self.rnn._flat_weights)
            states.append(h[0])
        return torch.stack(states)


# ---- Phased-LSTM -----------------------------------------------------------------------------------------------------

class PhasedLstm(nn.Module):
    def __init__(self, settings):
        super().__init__()
        N = settings.enc_hidden
        self.scale = settings.embed_scale
        self.rnn = nn.LSTM(2 * settings.channels, N)
        self.log_tau, self.shift, self.open = (nn.Parameter(torch.zeros(N)) for _ in range(3))

    def gate(self, t):
        """(N): how far the gate is open."""
        u = (self.scale * t - self.shift) / torch.exp(self.log_tau)
        phase = u - torch.floor(u.detach())
        rising, falling = 2 * phase / self.open, 2 - 2 * phase / self.open
        return torch.where(phase < self.open / 2, rising, torch.where(phase < self.open, falling, LEAK * phase))

    def forward(self, rows):
        h = c = torch.zeros(1, self.rnn.hidden_size)
        states = [h[:0]]
        fed = torch.cat((filled_forward(rows), rows.m), 1) if len(rows) else rows.x
        for i in range(len(rows)):
            proposed_h, proposed_c = torch.lstm_cell(fed[i:i + 1], (h, c), *self.rnn._flat_weights)
            k = self.gate(rows.t[i])
            h, c = k * proposed_h + (1 - k) * h, k * proposed_c + (1 - k) * c
            states.append(h)
        return torch.cat(states)


# ---- ODE-RNN ---------------------------------------------------------------------------------------------------------

class GruUnit(nn.Module):
    """The update of ODE-RNN: state (y, s), N each."""

    def __init__(self, N, D, units):
        super().__init__()
        inputs = 2 * N + 2 * D
        self.update_gate = nn.Sequential(nn.Linear(inputs, units), nn.Tanh(), nn.Linear(units, N), nn.Sigmoid())
        self.reset_gate = nn.Sequential(nn.Linear(inputs, units), nn.Tanh(), nn.Linear(units, N), nn.Sigmoid())
        self.new_state_net = nn.Sequential(nn.Linear(inputs, units), nn.Tanh(), nn.Linear(units, 2 * N))

    def forward(self, y, s, seen):
        old = torch.cat((y, s, seen))
        u, r = self.update_gate(old), self.reset_gate(old)
        new_y, new_s = self.new_state_net(torch.cat((r * y, r * s, seen))).chunk(2)
        return (1 - u) * new_y + u * y, (1 - u) * new_s.abs() + u * s


class OdeRnn(nn.Module):
    """states (L, N) of y; `both` gives (y, s) after the last row."""

    def __init__(self, settings, published):
        """published: the kind of published intervals, None, "lagging" or "early"."""
        super().__init__()
        D, N = settings.channels, settings.enc_hidden
        self.settings, self.published = settings, published
        self.gru = GruUnit(N, D, settings.gru_units)
        self.ode = net(N, settings.units, N, settings.rec_layers)

    def intervals(self, t):
        """(interval, steps) before every row, in double."""
        t = t.double()
        if len(t) < 2:
            return [(0.0, 0)] * len(t)
        span, steps = (t[-1] - t[0]).item(), self.settings.ode_steps
        gaps = (t[1:] - t[:-1]).tolist()
        if self.published is None:
            return [(0.0, 0)] + [(gap, step_count(gap / span, steps)) for gap in gaps]
        # latent_ode counts points instead of steps.
        points = lambda gap: max(1, math.floor(steps * gap / span + 0.007) - 1)
        if self.published == "early":  # the encoder of its latent ODE, in mirrored time, starts 0.01 before its first row
            return [(gap, points(gap)) for gap in [0.01] + gaps]
        # Its ODE-RNN: -0.01, the whole span in one step, then minus the gap before.
        return [(-0.01, points(0.01)), (span, 1)] + [(-gap, points(gap)) for gap in gaps[:-1]]

    def run(self, rows):
        y = s = torch.zeros(self.settings.enc_hidden)
        states = [y[None, :0].reshape(0, len(y))]
        for (gap, steps), x, m in zip(self.intervals(rows.t), rows.x, rows.m):
            if steps:
                y = fixed_steps(self.settings.rec_solver, self.ode, y, gap, steps)
            y, s = self.gru(y, s, torch.cat((x, m)))
            states.append(y[None])
        return torch.cat(states), torch.cat((y, s))

    def forward(self, rows):
        return self.run(rows)[0]


# ---- Classifiers on rows ---------------------------------------------------------------------------------------------

def direction(settings):
    if settings.architecture == "phased-lstm":
        return PhasedLstm(settings)
    if settings.architecture == "ode-rnn":
        return OdeRnn(settings, "lagging" if settings.preset == "faithful" else None)
    return Gru(settings)


class RowClassifier(nn.Module):
    """Feeds the last state, or with bidirectional every row's state, to a head."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.rec = direction(settings)
        if settings.bidirectional:
            self.rec.reverse = direction(settings)
            if hasattr(self.rec, "mean"):
                del self.rec.reverse.mean
                self.rec.reverse.mean = self.rec.mean
        self.classifier = head(settings, settings.enc_hidden * (1 + settings.bidirectional))
        if getattr(settings, "next", 0):
            self.dec = nn.Sequential(nn.Linear(settings.enc_hidden, 100), nn.Tanh(), nn.Linear(100, settings.channels))

    def reconstruction(self, record):
        """latent_ode's second task: each state predicts the next row. The first row counts as predicted without
        error."""
        x, m, s = record.rows.x, record.rows.m, self.settings
        told = torch.cat((x[:1], self.dec(self.rec(record.rows))[:-1]))
        seen = m.sum(0) > 0
        errors = ((told - x) ** 2 * m).sum(0)[seen] / m.sum(0)[seen]
        return errors.sum() / (2 * s.noise_std ** 2 * s.channels)

    def logits(self, record):
        states = self.rec(record.rows)
        if self.settings.classify == "record":
            return self.classifier(states[-1:] if len(states) else torch.zeros(1, self.settings.enc_hidden))
        if self.settings.bidirectional:
            states = torch.cat((states, self.rec.reverse(record.rows.mirrored()).flip(0)), 1)
        return self.classifier(states[record.query_rows])


# ---- IP-Nets ---------------------------------------------------------------------------------------------------------

def smooth(points, times, values, rate):
    """(K) kernel average at the points, and the logarithm of the kernel's sum there."""
    score = -rate * (points[:, None] - times) ** 2
    return torch.softmax(score, 1) @ values, torch.logsumexp(score, 1)


class Interpolation(nn.Module):
    """The semi-parametric interpolation, and the GRU on it."""

    def __init__(self, settings):
        super().__init__()
        D = settings.channels
        self.channels, self.scale = D, settings.embed_scale
        if settings.preset == "faithful":
            self.mean = frozen(torch.zeros(D))
        self.kernel, self.cross = nn.Parameter(torch.zeros(D)), nn.Linear(D, D, bias=False)
        self.rnn = nn.GRU(3 * D, settings.enc_hidden)
        if settings.bidirectional:
            self.reverse = nn.Module()
            self.reverse.rnn = nn.GRU(3 * D, settings.enc_hidden)

    def completed(self, cells):
        """faithful: a channel that was never observed gets the training mean at time 0."""
        if not hasattr(self, "mean"):
            return cells
        unseen = torch.tensor([d for d in range(self.channels) if d not in cells.channel], dtype=torch.long)
        return Cells(torch.cat((cells.time, torch.zeros(len(unseen)))), torch.cat((cells.channel, unseen)),
                     torch.cat((cells.value, self.mean[unseen])))

    def single(self, cells, points):
        """y, y' (K, D) and log lambda (K, D), -inf for a channel without a cell."""
        rate = F.softplus(self.kernel)
        y, sharp, loglam = [], [], []
        for d in range(self.channels):
            time, value = cells.of(d)
            if len(time) == 0:
                y.append(torch.zeros_like(points)), sharp.append(torch.zeros_like(points))
                loglam.append(torch.full_like(points, -math.inf))
                continue
            smoothed, total = smooth(points, self.scale * time, value, rate[d])
            y.append(smoothed), loglam.append(total)
            sharp.append(smooth(points, self.scale * time, value, 10 * rate[d])[0])
        return torch.stack(y, 1), torch.stack(sharp, 1), torch.stack(loglam, 1)

    def crossed(self, y, loglam):
        """chi (K, D)."""
        mean = y.mean(0)
        seen = torch.isfinite(loglam[0])
        share = torch.zeros_like(y)
        if seen.any():
            share[:, seen] = torch.softmax(loglam[:, seen], 1)
        return self.cross(share * (y - mean)) + mean

    def features(self, cells, points):
        """(K, 3D); points are times, not yet scaled."""
        y, sharp, loglam = self.single(self.completed(cells), self.scale * points)
        chi = self.crossed(y, loglam)
        return torch.cat((chi, torch.exp(loglam), sharp - chi), 1)

    def reconstruction(self, kept, held, rows):
        """Mean over all channels of the mean squared error over a channel's held-out cells."""
        y, _, loglam = self.single(self.completed(kept), self.scale * rows.t)
        chi, total = self.crossed(y, loglam), 0.0
        for d in range(self.channels):
            time, value = held.of(d)
            if len(time):
                at = torch.searchsorted(rows.t, time)
                total = total + ((value - chi[at, d]) ** 2).mean()
        return total / self.channels


class IpNets(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.rec = Interpolation(settings)
        self.classifier = head(settings, settings.enc_hidden * (1 + settings.bidirectional))

    def logits(self, record):
        if self.settings.classify == "record":
            points = torch.linspace(0, 1, self.settings.ref_points)
            return self.classifier(self.rec.rnn(self.rec.features(record.cells, points))[0][-1:])
        if len(record.queries) == 0:
            return torch.zeros(0, self.settings.classes)
        features = self.rec.features(record.cells, record.queries)
        states = self.rec.rnn(features)[0]
        if self.settings.bidirectional:
            states = torch.cat((states, self.rec.reverse.rnn(features.flip(0))[0].flip(0)), 1)
        return self.classifier(states)

    def reconstruction(self, record):
        if len(record.held.time) == 0:
            return torch.zeros(())
        return self.rec.reconstruction(record.kept, record.held, record.rows)


# ---- SeFT ------------------------------------------------------------------------------------------------------------

def relus(*sizes):
    """Linear, ReLU, Linear, ReLU ..."""
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class SetEncoder(nn.Module):
    def __init__(self, settings):
        super().__init__()
        s, V, H = settings, settings.latent, settings.enc_heads
        self.settings, inputs = s, s.embed + 1 + s.channels
        self.psi, self.agg = relus(inputs, s.psi_units, s.psi_units, V), nn.Linear(V, V)
        self.key, self.query = nn.Linear(inputs + V, H * V, bias=False), nn.Parameter(torch.zeros(H, V))
        if s.classify == "time":
            self.query_time = nn.Linear(s.embed, H * V, bias=False)
        self.phi, self.rho = relus(inputs, s.units, s.units, s.units, V), relus(H * V, s.units, s.units, s.units)

    def encoding(self, t):
        half = self.settings.embed // 2
        tau = self.settings.embed_base ** (torch.arange(half).to(t) / max(1, half - 1))
        angle = self.settings.embed_scale * t[:, None] / tau
        return torch.cat((torch.sin(angle), torch.cos(angle)), 1)

    def forward(self, cells, queries=None):
        """(1 or Q, units)"""
        V, H = self.settings.latent, self.settings.enc_heads
        query = self.query[None]
        if queries is not None:
            query = query + self.query_time(self.encoding(queries)).view(-1, H, V)
        if len(cells.time) == 0:
            return self.rho(torch.zeros(len(query), H * V))
        channel = F.one_hot(cells.channel, self.settings.channels).to(cells.value)
        element = torch.cat((self.encoding(cells.time), cells.value[:, None], channel), 1)
        whole = F.relu(self.agg(self.psi(element).mean(0)))
        key = self.key(torch.cat((element, whole.expand(len(element), V)), 1)).view(-1, H, V)
        weight = torch.softmax(torch.einsum("qhv,jhv->qhj", query, key) / math.sqrt(V), -1)
        return self.rho(torch.einsum("qhj,jv->qhv", weight, self.phi(element)).flatten(1))


class Seft(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings, self.rec, self.classifier = settings, SetEncoder(settings), head(settings, settings.units)

    def logits(self, record):
        return self.classifier(self.rec(record.cells, record.queries if self.settings.classify == "time" else None))


# ---- RNN-VAE, L-ODE-RNN, L-ODE-ODE -----------------------------------------------------------------------------------

def to_posterior(inputs, hidden, latent):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))


class RnnEncoder(nn.Module):
    """A GRU from the last row to the first; (2Z): mean, raw standard deviation."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.rnn = nn.GRU(2 * settings.channels + 1, settings.enc_hidden)
        self.z0 = to_posterior(settings.enc_hidden, settings.mlp_hidden, settings.latent)

    def fed(self, rows):
        if self.settings.preset == "correct":
            rows = rows.mirrored()
            return rows, since_last(rows.t)
        if self.settings.architecture == "l-ode-rnn":
            rows = rows.mirrored()
            return rows, until_next(rows.t)
        return rows, until_next(rows.mirrored().t)  # RNN-VAE's published code reverses the gaps, not the rows

    def forward(self, rows):
        if len(rows) == 0:
            return self.z0(torch.zeros(self.settings.enc_hidden))
        rows, gaps = self.fed(rows)
        return self.z0(self.rnn(torch.cat((rows.x, rows.m, gaps[:, None]), 1))[0][-1])


class OdeEncoder(OdeRnn):
    """ODE-RNN from the last row to the first."""

    def __init__(self, settings):
        super().__init__(settings, "early" if settings.preset == "faithful" else None)
        self.z0 = to_posterior(2 * settings.enc_hidden, settings.mlp_hidden, settings.latent)

    def forward(self, rows):
        return self.z0(self.run(rows.mirrored())[1])


class RnnDecoder(nn.Module):
    """A GRU of latent size that reads its own output."""

    def __init__(self, settings):
        super().__init__()
        D, Z = settings.channels, settings.latent
        self.rnn = nn.GRU(D + 1, Z)
        self.out = nn.Sequential(nn.Linear(Z, settings.units), nn.Tanh(), nn.Linear(settings.units, D))

    def forward(self, z, start, queries):
        """States (S, Q, Z)."""
        h, states = z, [z]
        for gap in queries[1:] - queries[:-1]:
            fed = torch.cat((self.out(h), gap.expand(len(z), 1)), 1)
            h = torch.gru_cell(fed, h, *self.rnn._flat_weights)
            states.append(h)
        return torch.stack(states[:len(queries)], 1) if len(queries) else z[:, None][:, :0]


class OdeDecoder(nn.Module):
    """z at the queries from z at the start, forward and backward in time."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.ode = net(settings.latent, settings.units, settings.latent, settings.gen_layers)
        if settings.classify != "time":
            self.out = nn.Linear(settings.latent, settings.channels)

    def trajectory(self, z, offsets):
        """z (.., Z) at offsets from its time, ascending."""
        before = solve(self.settings, self.ode, z, -offsets[offsets < 0][::-1], -1).flip(0)
        return torch.cat((before, solve(self.settings, self.ode, z, offsets[offsets >= 0])))

    def forward(self, z, start, queries):
        """States (S, Q, Z)."""
        offsets = queries.double().numpy() - start
        if self.settings.preset == "faithful":  # the samples of a record share their steps
            return self.trajectory(z, offsets).transpose(0, 1)
        return torch.stack([self.trajectory(sample, offsets) for sample in z])


class Variational(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.rec = OdeEncoder(settings) if settings.architecture == "l-ode-ode" else RnnEncoder(settings)
        self.dec = RnnDecoder(settings) if settings.architecture == "rnn-vae" else OdeDecoder(settings)
        if settings.classify != "none":
            self.classifier = head(settings, settings.latent)

    def posterior(self, record):
        return self.rec(record.rows).chunk(2)

    def decode(self, z, record, queries):
        start = record.rows.t[0].double().item() if len(record.rows) else 0.0
        return self.dec(z, start, queries)


def spread(raw):
    return raw.abs().clamp_min(LEAST)


def build(settings):
    if settings.variational:
        return Variational(settings)
    return {"ip-nets": IpNets, "seft": Seft}.get(settings.architecture, RowClassifier)(settings)
