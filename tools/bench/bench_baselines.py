#!/usr/bin/env python3
"""The paper's baselines in PyTorch, batched and tuned: the peers of mtan's baselines.

    tools/bench/bench_baselines.py MODEL [--threads 2] [--batches 6] [--data DIR] [--serve]
    tools/bench/bench_baselines.py MODEL --check [--data DIR]

One training step of the correct preset with a class per record, at the sizes of the recipes for PhysioNet. --check
instead runs a few records through the equations of golden_baselines_models.py in float64, and prints the differences of
loss and gradients, relative to their norms. The techniques that make it fast:
- records are sorted by length, with rows in the order of steps: a loop shrinks as records end (torch's GRU is faster
  padded);
- everything independent of the state (inputs, decays, phases, the observation's part of gates) is one product before
  the loop;
- ODE-RNN: a record goes through its Euler steps and updates at its own pace, so a batch takes as many ticks as its
  longest record, not the sum over rows of the longest gap; the two gates share their products;
- dopri5: every row has its own step, and all rows run at once; outputs are read from the quartics in one gather;
- IP-Nets, SeFT: only observed cells; IP-Nets' sharp kernel is the tenth power of the smooth one; SeFT leaves out what
  cancels in its softmax, and multiplies its queries into its keys. Work that depends only on the data is prepared with
  the batch and not timed. Like tools/bench/bench_torch.py, it prints the variants (one thread and several) and
  milliseconds per record of a training step, the median over the batches, on the same records. Needs torch, numpy and
  torchdiffeq.
"""
import argparse
import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import bench_torch

sys.path.append(str(Path(__file__).resolve().parent.parent / "golden"))
import golden_baselines_models as plain

D = bench_torch.D
FAMILY = dict(channels=D, classes=2, classify="record", preset="correct", head_hidden=300, bidirectional=0)
BOUND = dict(latent=20, samples=3, noise_std=0.1, alpha=100)
ODE = dict(ode_steps=50, rtol=1e-3, atol=1e-4, dec_solver="dopri5", rec_solver="euler")
RECIPES = {
    "rnn-impute": dict(enc_hidden=40), "rnn-dt": dict(enc_hidden=40), "rnn-decay": dict(enc_hidden=40),
    "gru-d": dict(enc_hidden=40),
    "phased-lstm": dict(enc_hidden=128, embed_scale=48, batch=128),
    "ip-nets": dict(enc_hidden=100, ref_points=192, embed_scale=48, alpha=1, batch=128),
    "seft": dict(embed=4, embed_base=100, embed_scale=48, psi_units=64, latent=128, units=32, enc_heads=4,
                 head_hidden=0, batch=128),
    "rnn-vae": dict(enc_hidden=40, units=50, mlp_hidden=50) | BOUND,
    "ode-rnn": dict(enc_hidden=40, units=50, gru_units=50, rec_layers=3) | ODE,
    "l-ode-rnn": dict(enc_hidden=40, units=50, gen_layers=3, mlp_hidden=50) | BOUND | ODE,
    "l-ode-ode": dict(enc_hidden=40, units=50, gru_units=50, rec_layers=3, gen_layers=3, mlp_hidden=100) | BOUND | ODE,
}
VARIATIONAL = ("rnn-vae", "l-ode-rnn", "l-ode-ode")
KL_WEIGHT = 1.0
CHUNK = 8


def settings_of(name):
    values = FAMILY | dict(architecture=name, variational=name in VARIATIONAL, batch=50) | RECIPES[name]
    return types.SimpleNamespace(**values)


# ---- Batches ---------------------------------------------------------------------------------------------------------

def rows_of(record):
    """The rows of a record of bench_torch.py; times without any observation are left out."""
    t, both = record
    seen = both[:, D:].any(1)
    to = lambda a: torch.tensor(a[seen], dtype=torch.get_default_dtype())
    return plain.Rows(to(t), to(both[:, :D]), to(both[:, D:]))


def packed(parts, sizes):
    """Rows of the records, longest first, in the order of the steps."""
    return torch.cat([torch.stack([part[i] for part in parts[:n]]) for i, n in enumerate(sizes)])


def active(lengths):
    """The number of records that have a row at each step."""
    return [sum(n > i for n in lengths) for i in range(lengths[0])]


def derived(rows):
    """The inputs of recurrent models."""
    zero = torch.zeros(D)
    has = plain.last_before(plain.Rows(rows.t, torch.ones_like(rows.x), rows.m), zero)
    return dict(t=rows.t[:, None], x=rows.x, m=rows.m, gap=plain.since_last(rows.t)[:, None],
                missing=plain.missing_for(rows), last=plain.last_before(rows, zero), has=has,
                filled=plain.filled_forward(rows))


class Batch:
    """Records sorted by length, longest first."""

    def __init__(self, settings, records):
        self.rows = sorted((rows_of(record) for record in records), key=len, reverse=True)
        self.sizes = active([len(rows) for rows in self.rows])
        name = settings.architecture
        if name in ("ip-nets", "seft"):
            (interpolation_batch if name == "ip-nets" else set_batch)(self, settings)
        elif name in ("ode-rnn", "l-ode-ode"):
            self.ticks = Ticks(settings, [rows if name == "ode-rnn" else rows.mirrored() for rows in self.rows])
        else:
            mirrored = name in VARIATIONAL
            each = [derived(rows.mirrored() if mirrored else rows) for rows in self.rows]
            self.fed = types.SimpleNamespace(**{key: packed([one[key] for one in each], self.sizes) for key in each[0]})
        if name in VARIATIONAL:
            self.targets(settings)
        self.labels = torch.arange(len(self.rows)) % 2

    def targets(self, settings):
        """Targets and query offsets: packed for a recurrent decoder, padded for an ODE."""
        S, shape = settings.samples, (len(self.rows), len(self.sizes))
        self.count = torch.stack([rows.m.sum() for rows in self.rows])
        if settings.architecture == "rnn-vae":
            each = [derived(rows) for rows in self.rows]
            x, m, gap = (packed([one[key] for one in each], self.sizes) for key in ("x", "m", "gap"))
            self.x, self.m, self.gaps = x, m, gap.repeat_interleave(S, 0).split([n * S for n in self.sizes])
            self.owner = torch.cat([torch.arange(n) for n in self.sizes])
            return
        self.tau = torch.zeros(shape, dtype=torch.get_default_dtype())
        self.x, self.m = torch.zeros(*shape, D), torch.zeros(*shape, D)
        for b, rows in enumerate(self.rows):
            self.tau[b, :len(rows)] = rows.t - rows.t[0]
            self.x[b, :len(rows)], self.m[b, :len(rows)] = rows.x, rows.m


# ---- Recurrent classifiers -------------------------------------------------------------------------------------------

def run_padded(rnn, data, sizes):
    """The last state of every record. Padded, because torch's GRU is slower on packed rows."""
    padded = data.new_zeros(len(sizes), sizes[0], data.shape[1])
    record = torch.cat([torch.arange(n) for n in sizes])
    step = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    padded[step, record] = data
    return rnn(padded)[0][torch.bincount(record) - 1, torch.arange(sizes[0])]


def imputed(rec, fed):
    g = plain.decayed(rec.input_decay(fed.missing))
    last = torch.addcmul(rec.mean, fed.has, fed.last - rec.mean)
    return torch.lerp(torch.lerp(rec.mean.expand_as(g), last, g), fed.x, fed.m)


def shrinking(state, n, done):
    """The states of the first n records, which continue; the other records are appended to `done`."""
    if n < len(state):
        done.append(state[n:])
        state = state[:n]
    return state


def collected(state, done):
    return torch.cat([state] + done[::-1])


def gates_to_state(gx, gh, h):
    """torch's GRU, from the input's and the state's part of its gates."""
    N = h.shape[1]
    r, z = torch.sigmoid(gx[:, :2 * N] + gh[:, :2 * N]).chunk(2, 1)
    return torch.lerp(torch.tanh(torch.addcmul(gx[:, 2 * N:], r, gh[:, 2 * N:])), h, z)


def decaying_gru(rec, data, missing, sizes):
    rnn, done = rec.rnn, []
    inputs = F.linear(data, rnn.weight_ih_l0, rnn.bias_ih_l0).split(sizes)
    decays = plain.decayed(rec.decay(missing)).split(sizes)
    h = data.new_zeros(sizes[0], rnn.hidden_size)
    recurrent = rnn.weight_hh_l0.t()
    for n, gx, decay in zip(sizes, inputs, decays):
        h = shrinking(h, n, done) * decay
        h = gates_to_state(gx, torch.addmm(rnn.bias_hh_l0, h, recurrent), h)
    return collected(h, done)


def gru_states(rec, batch):
    fed = batch.fed
    x = imputed(rec, fed) if rec.imputes else fed.x
    if rec.decays:
        return decaying_gru(rec, torch.cat((x, fed.m), 1), fed.missing, batch.sizes)
    return run_padded(rec.rnn, torch.cat((x, fed.m, fed.gap), 1), batch.sizes)


def phased_states(rec, batch):
    rnn, done, sizes, N = rec.rnn, [], batch.sizes, rec.rnn.hidden_size
    data = torch.cat((batch.fed.filled, batch.fed.m), 1)
    inputs = F.linear(data, rnn.weight_ih_l0, rnn.bias_ih_l0 + rnn.bias_hh_l0).split(sizes)
    opens = rec.gate(batch.fed.t).split(sizes)
    both = data.new_zeros(sizes[0], 2 * N)  # h, c
    recurrent = rnn.weight_hh_l0.t()
    for n, gx, k in zip(sizes, inputs, opens):
        both = shrinking(both, n, done)
        h, c = both.split(N, 1)
        gates = torch.addmm(gx, h, recurrent)
        i, f, o = torch.sigmoid(gates[:, :N]), torch.sigmoid(gates[:, N:2 * N]), torch.sigmoid(gates[:, 3 * N:])
        proposed = torch.addcmul(f * c, i, torch.tanh(gates[:, 2 * N:3 * N]))
        both = torch.cat((torch.lerp(h, o * torch.tanh(proposed), k), torch.lerp(c, proposed, k)), 1)
    return collected(both, done)[:, :N]


# ---- ODE-RNN ---------------------------------------------------------------------------------------------------------

class Ticks:
    """Every record's Euler steps and updates: each tick is a step (0 before the first row), and then possibly an
    update."""

    def __init__(self, settings, rows):
        helper = plain.OdeRnn(settings, None)
        plans = []
        for record in rows:
            plan = []
            for i, (gap, steps) in enumerate(helper.intervals(record.t)):
                step = gap / max(1, steps)
                plan += [(step, -1)] * (steps - 1) + [(step, i)]
            plans.append(plan)
        order = sorted(range(len(rows)), key=lambda b: -len(plans[b]))
        self.back = torch.tensor(np.argsort(order))
        plans, rows = [plans[b] for b in order], [rows[b] for b in order]
        self.sizes = active([len(plan) for plan in plans])
        cells = [(b, plans[b][k]) for k, n in enumerate(self.sizes) for b in range(n)]
        self.step = torch.tensor([[h] for _, (h, _) in cells], dtype=torch.get_default_dtype()).split(self.sizes)
        self.updates = torch.tensor([[i >= 0] for _, (_, i) in cells]).split(self.sizes)
        nothing = torch.zeros(2 * D)
        self.seen = torch.stack([torch.cat((rows[b].x[i], rows[b].m[i])) if i >= 0 else nothing for b, (_, i) in cells])


def ode_rnn_states(rec, batch):
    """(B, 2N): y and s of every record after its last row."""
    ticks, done, N = batch.ticks, [], rec.settings.enc_hidden
    nets = rec.gru.update_gate, rec.gru.reset_gate, rec.gru.new_state_net
    shares = [F.linear(ticks.seen, part[0].weight[:, 2 * N:], part[0].bias) for part in nets]
    gate_share, new_share = torch.cat(shares[:2], 1).split(ticks.sizes), shares[2].split(ticks.sizes)
    first = torch.cat([part[0].weight[:, :2 * N] for part in nets[:2]]).t()
    candidate = nets[2][0].weight[:, :2 * N].t()
    # Second layers of both gates side by side, with zeros where one would read the other's units.
    second = torch.block_diag(nets[0][2].weight, nets[1][2].weight).t()
    bias = torch.cat((nets[0][2].bias, nets[1][2].bias))
    both = ticks.seen.new_zeros(ticks.sizes[0], 2 * N)
    for n, h, updates, gx, nx in zip(ticks.sizes, ticks.step, ticks.updates, gate_share, new_share):
        both = shrinking(both, n, done)
        y, s = both.split(N, 1)
        both = torch.cat((torch.addcmul(y, rec.ode(y), h), s), 1)
        gates = torch.sigmoid(torch.addmm(bias, torch.tanh(torch.addmm(gx, both, first)), second))
        u, r = gates.split(N, 1)
        new = nets[2][2](torch.tanh(torch.addmm(nx, both * r.repeat(1, 2), candidate)))
        new = torch.cat((new[:, :N], new[:, N:].abs()), 1)
        both = torch.where(updates, torch.lerp(new, both, u.repeat(1, 2)), both)
    return collected(both, done)[ticks.back]


# ---- IP-Nets ---------------------------------------------------------------------------------------------------------

def flat_cells(rows):
    """record, row, channel, time, value of all observed cells, sorted by record and channel."""
    found = []
    for b, record in enumerate(rows):
        channel, row = record.m.t().nonzero(as_tuple=True)
        found.append((torch.full_like(row, b), row, channel, record.t[row], record.x[row, channel]))
    return [torch.cat(part) for part in zip(*found)]


def interpolation_batch(batch, settings):
    record, row, channel, time, value = flat_cells(batch.rows)
    batch.group, batch.channel, batch.time, batch.value = record * D + channel, channel, time, value
    batch.held = held_out(batch.group)
    kept = ~batch.held
    batch.kept = [part[kept] for part in (batch.group, channel, time, value)]
    batch.at = (record * len(batch.sizes) + row)[batch.held], channel[batch.held]
    count = torch.bincount(batch.group[batch.held], minlength=len(batch.rows) * D)
    batch.share = (1 / count[batch.group[batch.held]]).to(value) / D / len(batch.rows)
    batch.points = torch.zeros(len(batch.rows), len(batch.sizes))
    for b, rows in enumerate(batch.rows):
        batch.points[b, :len(rows)] = rows.t
    batch.alive = torch.tensor([[i < len(rows) for i in range(len(batch.sizes))] for rows in batch.rows])


def held_out(group):
    """A fifth of the cells of a record's channel, if that is two or more."""
    held = torch.zeros(len(group), dtype=torch.bool)
    for g in group.unique():
        mine = (group == g).nonzero().flatten()
        count = len(mine) // 5
        if count >= 2:
            held[mine[torch.linspace(0, len(mine) - 1, count).long()]] = True
    return held


def kernels(rec, cells, points, B, lengths=None):
    """Kernel averages (B, K, D), log lambda and, without lengths, the sharp averages. points is (K), not yet scaled, or
    (B, K) with `lengths` points per record, longest first. It takes a few records at a time, so that they fit in the
    cache."""
    parts = []
    for first in range(0, B, CHUNK):
        count = min(CHUNK, B - first)
        a, b = torch.searchsorted(cells[0], torch.tensor([first * D, (first + count) * D])).tolist()
        group, channel, time, value = (part[a:b] for part in cells)
        some = points if lengths is None else points[first:first + count, :lengths[first]]
        found = kernels_of_some(rec, (group - first * D, channel, time, value), some, count, lengths is None)
        parts.append([F.pad(each, (0, 0, 0, points.shape[-1] - each.shape[1])) for each in found])
    return [torch.cat(part) for part in zip(*parts)]


def kernels_of_some(rec, cells, points, B, with_sharp):
    group, channel, time, value = cells
    rate = F.softplus(rec.kernel)[channel][:, None]
    where = points if points.dim() == 1 else points[group // D]
    score = -rate * (rec.scale * (where - time[:, None])).square()                      # (n, K)
    shape = B * D, points.shape[-1]
    best = score.new_full(shape, -math.inf)
    best = best.scatter_reduce(0, group[:, None].expand_as(score), score.detach(), "amax")
    weight = torch.exp(score - best[group])

    def average(w):
        """The sum of the kernel and its average; both (B, K, D)."""
        total = score.new_zeros(shape).index_add(0, group, w)
        weighted = score.new_zeros(shape).index_add(0, group, w * value[:, None])
        return total, (weighted / (total + (total == 0))).view(B, D, -1).transpose(1, 2)
    total, y = average(weight)
    loglam = torch.where(total > 0, torch.log(total.clamp_min(1e-30)) + best, -math.inf).view(B, D, -1).transpose(1, 2)
    if not with_sharp:
        return y, loglam
    second = weight * weight
    return y, loglam, average((second * second).square() * second)[1]


def crossed(rec, y, loglam, alive=None):
    mean = y.mean(1, keepdim=True) if alive is None else (y * alive).sum(1, keepdim=True) / alive.sum(1, keepdim=True)
    return rec.cross(torch.softmax(loglam, 2) * (y - mean)) + mean


def interpolation_loss(model, batch):
    rec, s, B = model.rec, model.settings, len(batch.rows)
    cells = batch.group, batch.channel, batch.time, batch.value
    y, loglam, sharp = kernels(rec, cells, torch.linspace(0, 1, s.ref_points), B)
    chi = crossed(rec, y, loglam)
    features = torch.cat((chi, torch.exp(loglam), sharp - chi), 2)
    logits = model.classifier(bench_torch.run_gru(features, rec.rnn._flat_weights)[1][0])
    y, loglam = kernels(rec, batch.kept, batch.points, B, [len(rows) for rows in batch.rows])
    chi = crossed(rec, y, loglam, batch.alive[:, :, None]).flatten(0, 1)
    error = ((batch.value[batch.held] - chi[batch.at]).square() * batch.share).sum()
    return error + s.alpha * F.cross_entropy(logits, batch.labels)


# ---- SeFT ------------------------------------------------------------------------------------------------------------

def set_batch(batch, settings, groups=4):
    """Cells padded to the largest set within a group of records of similar size."""
    record, _, channel, time, value = flat_cells(batch.rows)
    sizes = torch.bincount(record, minlength=len(batch.rows))
    order = sizes.argsort()
    batch.order, batch.groups = order, []
    for mine in order.chunk(groups):
        most = int(sizes[mine].max())
        time_, value_ = torch.zeros(len(mine), most), torch.zeros(len(mine), most)
        channel_, alive = torch.zeros(len(mine), most, dtype=torch.long), torch.zeros(len(mine), most, dtype=torch.bool)
        for i, b in enumerate(mine):
            n, of = int(sizes[b]), record == b
            time_[i, :n], value_[i, :n], channel_[i, :n], alive[i, :n] = time[of], value[of], channel[of], True
        batch.groups.append((time_, value_, channel_, alive))


def split_linear(weight, encoded, value, channel, n):
    """weight times [encoded time, value, one-hot channel]."""
    return torch.addcmul(F.linear(encoded, weight[:, :n]), value[..., None], weight[:, n]) + F.embedding(
        channel, weight[:, n + 1:n + 1 + D].t())


def set_loss(model, batch):
    rec, s = model.rec, model.settings
    V, H, n = s.latent, s.enc_heads, s.embed
    keys = torch.einsum("hv,hvf->hf", rec.query, rec.key.weight.view(H, V, -1)) / math.sqrt(V)
    pooled = []
    for time, value, channel, alive in batch.groups:
        encoded = rec.encoding(time.flatten()).view(*time.shape, n)
        scores = split_linear(keys, encoded, value, channel, n).masked_fill(~alive[..., None], -math.inf)
        first = rec.phi[0]
        phi = rec.phi[1:](split_linear(first.weight, encoded, value, channel, n) + first.bias)
        pooled.append((torch.softmax(scores, 1).transpose(1, 2) @ phi).flatten(1))
    logits = model.classifier(rec.rho(torch.cat(pooled)))
    return F.cross_entropy(logits, batch.labels[batch.order])


# ---- Variational models ----------------------------------------------------------------------------------------------

TABLEAU = [[1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
           [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
           [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
           [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]
ERROR = [35 / 384 - 1951 / 21600, 0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720, -2187 / 6784 + 12231 / 42400,
         11 / 84 - 649 / 6300, -1 / 60]
MIDDLE = [6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
          187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2]


def norm(v):
    return v.square().mean(1, keepdim=True).sqrt()


@torch.no_grad()
def first_step(f, y, f0, rtol, atol):
    scale = atol + rtol * y.abs()
    d0, d1 = norm(y / scale), norm(f0 / scale)
    h0 = torch.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    d2 = norm((f(y + h0 * f0) - f0) / scale) / h0
    return torch.minimum(100 * h0, (0.01 / torch.maximum(d1, d2)) ** 0.2)


def combined(ks, weights):
    return sum(w * k for w, k in zip(weights, ks) if w)


def dopri5(f, y, tau, rtol, atol):
    """y (R, Z) at tau (R, Q) >= 0, ascending, with 0 after the last: (R, Q, Z). Every row takes its own steps."""
    end, t = tau.amax(1, keepdim=True), torch.zeros(len(y), 1, dtype=tau.dtype)
    fy = f(y)
    h = first_step(f, y, fy, rtol, atol)
    starts, ends, quartics = [t], [t], [torch.stack([y] + [torch.zeros_like(y)] * 4)]
    while (t < end).any():
        ks = [fy]
        for row in TABLEAU:
            ks.append(f(torch.addcmul(y, h, combined(ks, row))))
        after = torch.addcmul(y, h, combined(ks, TABLEAU[-1]))
        with torch.no_grad():
            ratio = norm(h * combined(ks, ERROR) / (atol + rtol * torch.maximum(y.abs(), after.abs())))
            accepted = (ratio <= 1) & (t < end)
            factor = torch.where(ratio < 1, 1.0, 0.2).maximum(0.9 * ratio ** -0.2).clamp_max(10)
        middle = torch.addcmul(y, h, combined(ks, MIDDLE))
        d0, d1 = h * ks[0], h * ks[-1]
        quartics.append(torch.stack((y, d0, d1 - 4 * d0 - 11 * y - 5 * after + 16 * middle,
                                     5 * d0 - 3 * d1 + 18 * y + 14 * after - 32 * middle,
                                     2 * (d1 - d0) - 8 * (after + y) + 16 * middle)))
        starts.append(t), ends.append(torch.where(accepted, t + h, -1.0))
        t = torch.where(accepted, t + h, t)
        y, fy, h = torch.where(accepted, after, y), torch.where(accepted, ks[-1], fy), h * factor
    starts, ends = torch.cat(starts, 1), torch.cat(ends, 1)                              # (R, steps)
    step = (tau[:, :, None] <= ends[:, None]).to(torch.uint8).argmax(2)                  # the first step that reaches tau
    row = torch.arange(len(y))[:, None]
    x = (tau - starts[row, step]) / (ends - starts).clamp_min(1e-12)[row, step]
    powers = torch.stack([x ** i for i in range(5)], 2).unsqueeze(2)                     # (R, Q, 1, 5)
    return (powers.to(y) @ torch.stack(quartics)[step, :, row]).squeeze(2)


def recurrent_error(model, batch, z):
    """RNN-VAE: squared errors (S, B)."""
    dec, S = model.dec, z.shape[0]
    h, found = z.transpose(0, 1).flatten(0, 1), []
    recurrent, weight = dec.rnn.weight_hh_l0.t(), dec.rnn.weight_ih_l0.t()
    x = None
    for n, gap in zip(batch.sizes, batch.gaps):
        h = h[:n * S]
        if x is not None:
            gx = torch.addmm(dec.rnn.bias_ih_l0, torch.cat((x[:n * S], gap), 1), weight)
            h = gates_to_state(gx, torch.addmm(dec.rnn.bias_hh_l0, h, recurrent), h)
        x = dec.out(h)
        found.append(x)
    found = torch.cat(found).view(-1, S, D)
    error = (found - batch.x[:, None]).square().mul(batch.m[:, None]).sum(2)             # (T, S)
    return error.new_zeros(len(batch.rows), S).index_add(0, batch.owner, error).t()


def ode_error(model, batch, z):
    """Latent ODE: squared errors (S, B)."""
    S, B, s = z.shape[0], z.shape[1], model.settings
    states = dopri5(model.dec.ode, z.flatten(0, 1), batch.tau.repeat(S, 1), s.rtol, s.atol)
    found = model.dec.out(states).view(S, B, -1, D)
    return (found - batch.x).square().mul(batch.m).sum((2, 3))


def variational_loss(model, batch, noise):
    s, rec = model.settings, model.rec
    if s.architecture == "l-ode-ode":
        state = ode_rnn_states(rec, batch)
    else:
        state = run_padded(rec.rnn, torch.cat((batch.fed.x, batch.fed.m, batch.fed.gap), 1), batch.sizes)
    mean, raw = rec.z0(state).chunk(2, 1)
    std = plain.spread(raw)
    z = torch.addcmul(mean, noise, std)
    error = (recurrent_error if s.architecture == "rnn-vae" else ode_error)(model, batch, z)
    likelihood = -.5 * (math.log(2 * math.pi * s.noise_std ** 2) * batch.count + error / s.noise_std ** 2)
    divergence = (.5 * (mean.square() + std.square() - 1) - std.log()).sum(1)
    bound = ((likelihood - KL_WEIGHT * divergence) / batch.count).mean()
    return s.alpha * F.cross_entropy(model.classifier(z.flatten(0, 1)), batch.labels.repeat(s.samples)) - bound


# ---- All of them -----------------------------------------------------------------------------------------------------

def batch_loss(model, batch, noise):
    name = model.settings.architecture
    if name in VARIATIONAL:
        return variational_loss(model, batch, noise)
    if name == "ip-nets":
        return interpolation_loss(model, batch)
    if name == "seft":
        return set_loss(model, batch)
    states = {"phased-lstm": phased_states, "ode-rnn": ode_rnn_states}.get(name, gru_states)(model.rec, batch)
    return F.cross_entropy(model.classifier(states[:, :model.settings.enc_hidden]), batch.labels)


def make(settings):
    """The plain model's initial parameters, without zeros that would hide errors from the check."""
    model = plain.build(settings)
    with torch.no_grad():
        if settings.architecture not in ("phased-lstm", "ip-nets", "seft"):
            for layer in model.modules():
                if isinstance(layer, nn.Linear):
                    layer.weight.normal_(0, 0.1), layer.bias.normal_(0, 0.01)
        for name, parameter in model.named_parameters():
            if name.endswith(("decay.weight", "decay.bias", "mean", "kernel", "query")):
                parameter.normal_(0, 0.1)
        if settings.architecture == "phased-lstm":
            model.rec.log_tau.uniform_(math.log(0.5), math.log(1000))
            model.rec.shift.uniform_().mul_(model.rec.log_tau.exp())
            model.rec.open.fill_(0.1)
        if settings.architecture == "ip-nets":
            model.rec.cross.weight.copy_(torch.eye(D))
    return model


def noise_for(settings, batch):
    return torch.randn(settings.samples, len(batch.rows), settings.latent) if settings.variational else None


class Training:
    """A variant of bench_torch.py: .run(batch) is a step, .outputs(batch) a loss and its gradients."""

    def __init__(self, settings):
        torch.manual_seed(0)
        self.settings, self.model = settings, make(settings)
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = (torch.optim.Adamax(self.trained, lr=1e-2, foreach=True) if settings.batch == 50
                          else torch.optim.Adam(self.trained, fused=True))

    def backward(self, batch):
        self.optimiser.zero_grad()
        loss = batch_loss(self.model, batch, noise_for(self.settings, batch))
        loss.backward()
        return loss

    def run(self, batch):
        self.backward(batch)
        self.optimiser.step()

    def outputs(self, batch):
        torch.manual_seed(1)
        loss = self.backward(batch).detach().reshape(1)
        return torch.cat([loss] + [p.grad.flatten() for p in self.trained if p.grad is not None])


def variants_of(settings, threads):
    """torch.compile could fuse the steps of a loop that shrinks as records end, but there every step has another
    shape."""
    counts = {"plain": threads} | ({"plain, 1 thread": 1} if threads > 1 else {})
    return {name: (count, None, lambda: Training(settings)) for name, count in counts.items()}


# ---- The check -------------------------------------------------------------------------------------------------------

def plain_record(rows, held=None):
    channel, row = rows.m.t().nonzero(as_tuple=True)
    cells = plain.Cells(rows.t[row], channel, rows.x[row, channel])
    record = types.SimpleNamespace(rows=rows, cells=cells)
    if held is not None:
        record.held, record.kept = (plain.Cells(cells.time[part], channel[part], cells.value[part])
                                    for part in (held, ~held))
    return record


def plain_loss(model, batch, noise):
    s = model.settings
    held = [None] * len(batch.rows)
    if s.architecture == "ip-nets":
        owner = batch.group // D
        held = [batch.held[owner == b] for b in range(len(batch.rows))]
    records = [plain_record(rows, part) for rows, part in zip(batch.rows, held)]
    if not s.variational:
        ce = F.cross_entropy(torch.cat([model.logits(record) for record in records]), batch.labels)
        if s.architecture != "ip-nets":
            return ce
        return torch.stack([model.reconstruction(record) for record in records]).mean() + s.alpha * ce
    bounds, zs = [], []
    for b, record in enumerate(records):
        mean, raw = model.posterior(record)
        z, normal = mean + noise[:, b] * plain.spread(raw), torch.distributions.Normal
        found = model.dec.out(model.decode(z, record, record.rows.t))
        cells = normal(found, s.noise_std).log_prob(record.rows.x) * record.rows.m
        divergence = torch.distributions.kl_divergence(normal(mean, plain.spread(raw)), normal(0.0, 1.0)).sum()
        bounds.append((cells.sum((1, 2)).mean() - KL_WEIGHT * divergence) / record.rows.m.sum())
        zs.append(z)
    logits = model.classifier(torch.stack(zs, 1).flatten(0, 1))
    return s.alpha * F.cross_entropy(logits, batch.labels.repeat(s.samples)) - torch.stack(bounds).mean()


def check(settings, records):
    """Largest differences, relative to the norm; gradients to the largest of them."""
    torch.set_default_dtype(torch.float64)
    model = make(settings)
    batch = Batch(settings, records)
    noise, found = noise_for(settings, batch), []
    for loss_of in (batch_loss, plain_loss):
        model.zero_grad(set_to_none=True)
        loss = loss_of(model, batch, noise)
        loss.backward()
        found.append((loss.item(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (ours, mine), (theirs, reference) = found
    largest = max(g.norm() for g in reference.values())
    worst = max(((mine.get(n, torch.zeros_like(g)) - g).norm() / largest).item() for n, g in reference.items())
    result = {"model": settings.architecture, "loss": abs(ours - theirs) / abs(theirs), "gradient": worst}
    return result | {"ok": result["loss"] < 1e-9 and worst < 1e-9}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=list(RECIPES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--data", help="folder with set-a.tar.gz")
    parser.add_argument("--serve", action="store_true", help="time what standard input asks for")
    parser.add_argument("--check", action="store_true", help="compare with the plain equations instead")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    settings = settings_of(args.model)
    records = bench_torch.get_records(args.data, 6 if args.check else settings.batch * args.batches)
    if args.check:
        result = check(settings, records)
        print(json.dumps(result))
        raise SystemExit(0 if result["ok"] else 1)
    inputs, count = bench_torch.inputs_of("train", records, settings.batch, lambda some: Batch(settings, some))
    bench_torch.serve(variants_of(settings, args.threads), inputs, count, args.serve)


if __name__ == "__main__":
    main()
