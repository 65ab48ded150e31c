#!/usr/bin/env python3
"""mTAND in PyTorch, tuned: the peer that `make bench-peers` compares mtan with.

    tools/bench/bench_torch.py enc|full|interp --work train|batch|single [--threads 2] [--batches 12] [--data DIR] [--serve]
    tools/bench/bench_torch.py enc|full|interp --reference CHECKOUT [--data DIR]

The models of the recipes physionet-enc, -full and -interp, with the parameters of the published code, and its numbers:
--reference checks that and prints the largest differences instead of times. The techniques that make it fast:
- attention weights once per (query, time), numerator and denominator in one product;
- adjacent products of weights are multiplied first: query and key projections, the encoder's output projection with the
  GRU's input weights, the decoder's with the first layer after it;
- the decoder projects before it attends, and all samples of a record are columns of one product;
- the records of a batch are sorted by length and attended to in a few groups, each padded to its own longest record;
- in inference those products of weights are computed once, not per call; fused Adam; no denormals. Tried and left out,
  without a gain: a GRU with its own backward pass.

Further features of PyTorch are variants, each timed separately: one thread, torch.compile, torch.compile with the GRU's
steps unrolled, a frozen trace, oneDNN's recurrent layer; and separately, because they compute something else, bf16
autocast and int8. A variant counts if its outputs (in training: loss and gradients) equal those of the plain model to
LIMITS; a variant that fails reports the reason.

Prints a JSON line that lists the variants, then one line per variant: training and batched inference in milliseconds
per record, inference of one record in milliseconds (the median over the inputs). With --serve it times a variant for
each line of standard input that names one, so that other programs can take turns. Making and padding batches and
compiling are not timed. Records come from DIR/set-a.tar.gz, or are generated with its statistics. Needs torch and
numpy; --reference also needs scikit-learn.
"""
import argparse
import json
import math
import statistics
import sys
import tarfile
import time
import types
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CHANNELS = ("Age Gender Height ICUType Weight Albumin ALP ALT AST Bilirubin BUN Cholesterol Creatinine DiasABP FiO2 GCS "
            "Glucose HCO3 HCT HR K Lactate Mg MAP MechVent Na NIDiasABP NIMAP NISysABP PaCO2 PaO2 pH Platelets RespRate "
            "SaO2 SysABP Temp TroponinI TroponinT Urine WBC").split()
D = len(CHANNELS)
E = 128     # time embedding
STD = 0.01  # of the observation noise
SIZES = {   # batch, hidden, latent, reference points, samples, fraction of the time points that condition
    "enc": (128, 128, 0, 128, 1, 1.0),
    "full": (50, 256, 20, 128, 1, 1.0),
    "interp": (32, 64, 16, 64, 5, 0.9),
}
SINGLES = 240  # as in `bench`
LONGEST = 203  # time stamps of set-a's longest record
GROUPS = 4


# ---- Records: (times (L), values and mask side by side (L, 2D)) ------------------------------------------------------

def parse(text):
    """One file of the challenge: times on a grid of 0.016 h, as a fraction of 48 h; repeated values averaged."""
    cells = {(0.0, None): []}
    column = {name: i for i, name in enumerate(CHANNELS)}
    for line in text.splitlines()[1:]:
        clock, name, value = line.split(",")
        if name in column:
            hours, minutes = clock.split(":")
            at = round((int(hours) + int(minutes) / 60) / 0.016) * 0.016
            cells.setdefault((at, column[name]), []).append(float(value))
    times = sorted({at for at, _ in cells})
    row = {at: i for i, at in enumerate(times)}
    both = np.zeros((len(times), 2 * D), np.float32)
    for (at, c), values in cells.items():
        if values:
            both[row[at], c], both[row[at], D + c] = sum(values) / len(values), 1
    return np.array(times, np.float32) / 48, both


def read_records(folder, limit=None):
    """The first records of set-a by id, scaled as in the published code: (x - min) / max."""
    with tarfile.open(Path(folder) / "set-a.tar.gz") as archive:
        files = {Path(m.name).stem: archive.extractfile(m).read() for m in archive if m.name.endswith(".txt")}
    records = [parse(files[name].decode()) for name in sorted(files)[:limit]]
    x, m = np.split(np.concatenate([both for _, both in records]), 2, 1)
    low = np.where(m.any(0), np.where(m == 1, x, np.inf).min(0), 0)
    high = np.where(m.any(0), np.where(m == 1, x, -np.inf).max(0), 1)
    high[high == 0] = 1
    for _, both in records:
        both[:, :D] = (both[:, :D] - low) / high * both[:, D:]
    return records


def generate_records(n):
    """Records with set-a's averages: 74.8 time stamps, at most 203; 437 cells; 31 of 41 channels seen."""
    draw = np.random.default_rng(0)
    records = []
    for _ in range(n):
        length = int(np.clip(np.rint(draw.normal(74.8, 23)), 1, LONGEST))
        seen = draw.permutation(D)[:31]
        rate = draw.exponential(1, 31)  # channels differ widely in how often they are measured
        p = np.clip(rate / rate.sum() * 437 / 74.8, 0, 0.93)
        mask = np.zeros((length, D), np.float32)
        mask[:, seen] = draw.random((length, 31)) < p
        mask[0, seen] = 1
        times = np.sort(draw.choice(3000, length, replace=False)).astype(np.float32) / 3000
        records.append((times, np.concatenate([draw.random((length, D), np.float32) * mask, mask], 1)))
    return records


def get_records(folder, n=None):
    records = read_records(folder, n) if folder else generate_records(n or 4000)
    print("%d %s records: %.1f time stamps, %.0f cells, %.1f channels seen" % (
        len(records), "real" if folder else "generated", np.mean([len(t) for t, _ in records]),
        np.mean([b[:, D:].sum() for _, b in records]), np.mean([b[:, D:].any(0).sum() for _, b in records])), file=sys.stderr)
    return records


def pad(records, length=0):
    """times (B, L), values and mask (B, L, 2D); padded time stamps are 0 and have no mask."""
    length = max(length, max(len(t) for t, _ in records))
    times, both = torch.zeros(len(records), length), torch.zeros(len(records), length, 2 * D)
    for i, (t, b) in enumerate(records):
        times[i, :len(t)], both[i, :len(t)] = torch.from_numpy(t), torch.from_numpy(b)
    return times, both


def group(records, groups=GROUPS):
    """A batch: the records sorted by length, in groups of similar size, each padded to its own longest record."""
    records = sorted(records, key=lambda r: len(r[0]))
    edges = [len(records) * i // groups for i in range(groups + 1)]
    return [pad(records[a:b]) for a, b in zip(edges, edges[1:]) if b > a]


def inputs_of(work, records, size, form):
    """(batches, or single records if that is the work, each in the given form; number of records in an input)"""
    if work == "single":
        return [form([r]) for r in records[:SINGLES]], 1
    return [form(records[i:i + size]) for i in range(0, len(records) - size + 1, size)], size


# ---- The models ------------------------------------------------------------------------------------------------------

class TimeAttention(nn.Module):
    """att.linears.{0,1,2} are query, key and output; one head. The key's bias has no effect: it cancels in the
    softmax."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(E, E), nn.Linear(E, E), nn.Linear(inputs, outputs)])


def of_weights(method):
    """A method that depends only on weights: without gradients, its value is cached until training begins or ends."""
    def value(self):
        if torch.is_grad_enabled():
            return method(self)
        if method.__name__ not in self.kept:
            self.kept[method.__name__] = method(self)
        return self.kept[method.__name__]
    return value


class Timed(nn.Module):
    """A module with a learned time embedding, attention and K reference points."""

    def __init__(self, inputs, outputs, points):
        super().__init__()
        self.att, self.periodic, self.linear = TimeAttention(inputs, outputs), nn.Linear(1, E - 1), nn.Linear(1, 1)
        self.register_buffer("points", torch.linspace(0, 1, points), persistent=False)
        self.kept = {}

    def train(self, mode=True):
        if mode != self.training:
            self.kept.clear()
        return super().train(mode)

    def embed(self, t):
        t = t.unsqueeze(-1)
        return torch.cat([torch.addcmul(self.linear.bias, t, self.linear.weight[0]),
                          torch.sin(torch.addcmul(self.periodic.bias, t, self.periodic.weight[:, 0]))], -1)

    @of_weights
    def keys_side(self):
        """(K, E): score[q, i] = row q . embed(t_i) for the reference points as queries."""
        query, key, _ = self.att.linears
        return query(self.embed(self.points)) @ key.weight / math.sqrt(E)

    @of_weights
    def queries_side(self):
        """(K, E) and (K): score[i, k] = row k . embed(t_i) + offset k for the reference points as keys."""
        query, key, _ = self.att.linears
        keys = F.linear(self.embed(self.points), key.weight) / math.sqrt(E)
        return keys @ query.weight, keys @ query.bias


def interpolate(rows, embedded, both):
    """(B, K, 2D): channels interpolated at the reference points, and which channels were observed at all."""
    scores = rows @ embedded.transpose(1, 2)
    mask = both[..., D:]
    live = mask.amax(-1).unsqueeze(1)
    scores = scores.masked_fill(live == 0, -1e9)
    weights = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
    num, den = (weights @ both).split(D, -1)
    seen = mask.amax(1, keepdim=True)
    return torch.cat([num / (den + (1 - seen)), seen.expand_as(num)], -1)


def run_gru(x, weights):
    """(states, last state) of nn.GRU with these flat weights over x (B, T, I); with eight weights, in both
    directions."""
    both_ways = len(weights) == 8
    start = x.new_zeros(2 if both_ways else 1, x.size(0), weights[1].size(1))
    return torch._VF.gru(x, start, weights, True, 1, 0.0, False, both_ways, True)


class Encoder(Timed):
    def one_group(self, rows, t, both):
        return interpolate(rows, self.embed(t), both)

    def interpolated(self, batch):
        rows = self.keys_side()
        return torch.cat([self.one_group(rows, t, both) for t, both in batch])

    @of_weights
    def gru_weights(self):
        """The weights of self.gru_rnn, with the output projection before it multiplied into the input weights."""
        out, weights = self.att.linears[2], list(self.gru_rnn._flat_weights)
        for i in range(0, len(weights), 4):  # input, recurrent, and their biases, per direction
            weights[i], weights[i + 2] = weights[i] @ out.weight, torch.addmv(weights[i + 2], weights[i], out.bias)
        return weights


def classifier_layers(hidden):
    return nn.Sequential(nn.Linear(hidden, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 2))


class Enc(Encoder):
    run_gru = staticmethod(run_gru)  # a variant replaces it

    def __init__(self, hidden, latent, points, samples, keep):
        super().__init__(2 * D, hidden, points)
        self.gru_rnn, self.classifier = nn.GRU(hidden, hidden), classifier_layers(hidden)

    def forward(self, batch):
        return self.classifier(self.run_gru(self.interpolated(batch), self.gru_weights())[1][0])

    def draw(self, batch):
        return None

    def loss(self, batch, labels, drawn):
        return F.cross_entropy(self(batch), labels)


class Recogniser(Encoder):
    def __init__(self, hidden, latent, points):
        super().__init__(2 * D, hidden, points)
        self.gru_rnn = nn.GRU(hidden, hidden, bidirectional=True)
        self.hiddens_to_z0 = nn.Sequential(nn.Linear(2 * hidden, 50), nn.ReLU(), nn.Linear(50, 2 * latent))

    def forward(self, batch):
        return self.hiddens_to_z0(run_gru(self.interpolated(batch), self.gru_weights())[0]).chunk(2, -1)


class Generator(Timed):
    def __init__(self, latent, points, hidden=50):
        super().__init__(2 * hidden, 2 * hidden, points)
        self.gru_rnn = nn.GRU(latent, hidden, bidirectional=True)
        self.z0_to_obs = nn.Sequential(nn.Linear(2 * hidden, 50), nn.ReLU(), nn.Linear(50, D))

    @of_weights
    def first_layer(self):
        out, first = self.att.linears[2], self.z0_to_obs[0]
        return first.weight @ out.weight, torch.addmv(first.bias, first.weight, out.bias)

    def one_group(self, rows, offset, bias, t, part):
        """(S, b, L, D) at times t (b, L), from the projections of the reference points, part (b, K, S * units)."""
        weights = torch.softmax(F.linear(self.embed(t), rows, offset), -1)
        hidden = (weights @ part).view(*t.shape, -1, len(bias))
        return self.z0_to_obs[2](F.relu(hidden + bias)).permute(2, 0, 1, 3)

    def forward(self, z, batch):
        """z (S, B, K, Z): one tensor (S, b, L, D) per group of the batch."""
        samples, records, points, _ = z.shape
        first, bias = self.first_layer()
        h = F.linear(run_gru(z.flatten(0, 1), self.gru_rnn._flat_weights)[0], first)
        h = h.view(samples, records, points, -1).permute(1, 2, 0, 3).reshape(records, points, -1)
        rows, offset = self.queries_side()
        return [self.one_group(rows, offset, bias, t, part)
                for (t, _), part in zip(batch, h.split([len(t) for t, _ in batch]))]


class Classifier(nn.Module):
    def __init__(self, latent, hidden):
        super().__init__()
        self.gru_rnn, self.classifier = nn.GRU(latent, hidden), classifier_layers(hidden)

    def forward(self, z):
        return self.classifier(run_gru(z, self.gru_rnn._flat_weights)[1][0])


class Full(nn.Module):
    def __init__(self, hidden, latent, points, samples, keep):
        super().__init__()
        self.samples, self.keep, self.shape = samples, keep, (points, latent)
        self.rec, self.dec = Recogniser(hidden, latent, points), Generator(latent, points)
        self.classifier = Classifier(latent, hidden) if keep == 1 else None

    def forward(self, batch):
        mean, _ = self.rec(batch)
        return self.classifier(mean) if self.classifier else torch.cat([x[0].flatten(0, 1) for x in self.dec(mean[None], batch)])

    def draw(self, batch):
        """The random part of the loss: noise (S, B, K, Z), and the time points that condition."""
        shown = [torch.rand(*t.shape, 1) < self.keep for t, _ in batch] if self.keep < 1 else None
        return torch.randn(self.samples, sum(len(t) for t, _ in batch), *self.shape), shown

    def loss(self, batch, labels, drawn):
        noise, shown = drawn
        mean, logvar = self.rec([(t, both * part) for (t, both), part in zip(batch, shown)] if shown else batch)
        spread = torch.exp(.5 * logvar)
        z = torch.addcmul(mean, noise, spread)
        error, count = [], []
        for (_, both), found in zip(batch, self.dec(z, batch)):
            x, mask = both.split(D, -1)
            error.append((torch.addcmul(x, found, mask, value=-1)).square().sum((-1, -2)))  # x is 0 where the mask is
            count.append(mask.sum((-1, -2)))
        count = torch.cat(count)
        likelihood = -.5 * (math.log(2 * math.pi * STD ** 2) * count + torch.cat(error, 1) / STD ** 2)
        divergence = .5 * (spread.square() + mean.square() - 1 - logvar).sum((-1, -2))
        bound = torch.logsumexp((likelihood - divergence) / count, 0).mean() - math.log(self.samples)
        if not self.classifier:
            return -bound
        return 100 * F.cross_entropy(self.classifier(z.flatten(0, 1)), labels.repeat(self.samples)) - bound


def make(name):
    return (Enc if name == "enc" else Full)(*SIZES[name][1:])


# ---- The published code ----------------------------------------------------------------------------------------------

def published(checkout):
    """The modules `models` and `utils` of a checkout, which import torchvision for a download that is not made here."""
    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.utils"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["torchvision.datasets.utils"].download_url = None
    sys.path.insert(0, str(Path(checkout) / "src"))
    import models
    import utils
    return models, utils


def published_model(checkout, name):
    """(its modules under our names, its loss of (x, mask, times in one tensor; labels; noise), its prediction for a
    batch)"""
    models, utils = published(checkout)
    _, hidden, latent, points, samples, keep = SIZES[name]
    query = torch.linspace(0, 1, points)
    if name == "enc":
        model = models.enc_mtan_classif(D, query, hidden, E, 1, True, device="cpu")
        predict = lambda b: model(b[:, :, :2 * D], b[:, :, -1])
        return {"": model}, lambda b, labels, noise=None: F.cross_entropy(predict(b), labels), predict
    parts = {"rec.": models.enc_mtan_rnn(D, query, latent, hidden, embed_time=E, learn_emb=True, device="cpu"),
             "dec.": models.dec_mtan_rnn(D, query, latent, 50, embed_time=E, learn_emb=True, device="cpu")}
    if name == "full":
        parts["classifier."] = models.create_classifier(latent, hidden)
    rec, dec, classifier = parts["rec."], parts["dec."], parts.get("classifier.")
    options = types.SimpleNamespace(std=STD, norm=True)

    def predict(b):
        mean = rec(b[:, :, :2 * D], b[:, :, -1])[:, :, :latent]
        return classifier(mean) if classifier else dec(mean, b[:, :, -1])

    def loss(b, labels, noise=None):
        x, mask, t = b[:, :, :D], b[:, :, D:2 * D], b[:, :, -1]
        if keep < 1 and noise is None:
            x, t, mask = utils.subsample_timepoints(x.clone(), t.clone(), mask.clone(), keep)
        out = rec(torch.cat((x, mask), 2), t)
        mean, logvar = out[:, :, :latent], out[:, :, latent:]
        noise = torch.randn(samples, *mean.shape) if noise is None else noise
        z = (noise * torch.exp(.5 * logvar) + mean).view(-1, *mean.shape[1:])
        found = dec(z, t[None].repeat(samples, 1, 1).view(-1, t.shape[1])).view(samples, len(b), -1, D)
        likelihood, divergence = utils.compute_losses(D, b, mean, logvar, found, options, "cpu")
        bound = torch.logsumexp(likelihood - divergence, 0).mean(0) - np.log(samples)
        return 100 * F.cross_entropy(classifier(z), labels.repeat(samples)) - bound if classifier else -bound

    return parts, loss, predict


def whole(times, both):
    """A batch in the published code's form: values, mask and times in one tensor."""
    return torch.cat([both, times.unsqueeze(-1)], -1)


def our_name(name):
    """mTAND-Enc calls its GRU `enc`, the others `gru_rnn`."""
    return "gru_rnn" + name[3:] if name.startswith("enc.") else name


def check(checkout, name, records):
    """Largest relative differences from the published model with the same weights, as float64: prediction, loss, gradients."""
    torch.set_default_dtype(torch.float64)
    parts, loss, predict = published_model(checkout, name)
    ours = make(name)
    ours.keep = 1.0
    ours.load_state_dict({our_name(k + n): v for k, part in parts.items() for n, v in part.state_dict().items()})
    records = sorted(records[:8], key=lambda r: len(r[0]))
    batch = [(t.double(), b.double()) for t, b in group(records)]
    theirs = whole(*(a.double() for a in pad(records)))
    labels = torch.arange(8) % 2
    _, _, latent, points, samples, _ = SIZES[name]
    noise = torch.randn(samples, 8, points, latent) if latent else None
    here, there = ours(batch).detach(), predict(theirs).detach()
    if name == "interp":  # the published code also predicts at padded times
        there = torch.cat([row[:len(r[0])] for row, r in zip(there, records)])
        here = torch.cat([x[0, i, :len(records[k][0])] for x, i, k in enumerate_rows(ours, batch)])
    result = {"model": name, "prediction": apart(here, there)}
    a, b = ours.loss(batch, labels, (noise, None)), loss(theirs, labels, noise)
    result["loss"] = apart(a.detach(), b.detach())
    a.backward()
    b.backward()
    mine = dict(ours.named_parameters())
    result["gradients"] = max(apart(mine[our_name(k + n)].grad, p.grad) for k, part in parts.items()
                              for n, p in part.named_parameters() if n != "att.linears.1.bias")
    result["ok"] = all(v <= 1e-6 for k, v in result.items() if k != "model")
    return result


def enumerate_rows(model, batch):
    """(prediction of a group, row in it, row in the batch) for every record of a batch in order."""
    k = 0
    for found in model.dec(model.rec(batch)[0][None], batch):
        for i in range(found.size(1)):
            yield found.detach(), i, k
            k += 1


# ---- Time ------------------------------------------------------------------------------------------------------------

def milliseconds(call, inputs):
    """Median over the inputs; the first input is also run once before."""
    call(inputs[0])
    times = []
    for one in inputs:
        start = time.perf_counter()
        call(one)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def apart(found, expected):
    return ((found - expected).norm() / expected.norm()).item()


# ---- Variants --------------------------------------------------------------------------------------------------------
# Each has .run(input), which is timed, and .outputs(input), which is compared with the plain one's.

CHECKED = 20  # single records whose outputs are compared; for batches, one
LIMITS = {False: 1e-4, True: 0.1}  # relative difference from the plain model: with the same arithmetic, with another
BF16, INT8, UNROLLED = "bf16", "int8", 16


def allow_shapes():
    """Compiles one program for all lengths of a batch's groups, instead of one for each."""
    torch._dynamo.config.recompile_limit = 64
    torch.fx.experimental._config.use_duck_shape = False


class Training:
    def __init__(self, name, change=None, other=None):
        torch.manual_seed(0)  # all variants start from the same weights
        self.other, self.model = other, change(make(name)) if change else make(name)
        self.compiles = change is not None
        self.labels = torch.arange(SIZES[name][0]) % 2
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)

    def backward(self, batch, drawn):
        self.optimiser.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.other == BF16):
            loss = self.model.loss(batch, self.labels, drawn)
        loss.backward()
        return loss

    def run(self, batch):
        self.backward(batch, self.model.draw(batch))
        self.optimiser.step()

    def outputs(self, batch):
        torch.manual_seed(1)
        loss = self.backward(batch, self.model.draw(batch)).detach().reshape(1)
        return torch.cat([loss] + [p.grad.flatten() for p in self.model.parameters() if p.grad is not None])


class Inference:
    """change: a function that takes the model and returns the callable used for batches instead of it."""

    def __init__(self, name, change=None, other=None):
        torch.manual_seed(0)
        self.other = other
        with torch.inference_mode():
            model = make(name).eval()
            self.call = change(model) if change else model
        self.compiles = change is not None

    def run(self, batch):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.other == BF16):
            return self.call(batch)

    outputs = run


def compiled(model):
    """Compiles the work on each group of a batch, for all lengths. (The whole loss would take minutes to compile, again
    for every number of groups; the GRU cannot be compiled, as it would be unrolled.)"""
    for part in model.modules():
        if isinstance(part, Timed):
            part.one_group = torch.compile(part.one_group, dynamic=True)
    return model


def some_steps(h, inputs, across, bias):
    """A GRU's state after the steps of inputs (B, T, 3N), in the form that torch unrolls when it compiles."""
    n = h.size(1)
    for at in inputs.unbind(1):
        now = torch.addmm(bias, h, across)
        reset, keep = torch.sigmoid(at[:, :2 * n] + now[:, :2 * n]).chunk(2, 1)
        new = torch.tanh(torch.addcmul(at[:, 2 * n:], reset, now[:, 2 * n:]))
        h = torch.lerp(new, h, keep)
    return h


def unrolled(model):
    steps = torch.compile(some_steps)

    def run(x, weights):
        w_input, w_state, b_input, b_state = weights
        h = x.new_zeros(x.size(0), w_state.size(1))
        for part in F.linear(x, w_input, b_input).split(UNROLLED, 1):
            h = steps(h, part, w_state.t(), b_state)
        return None, h[None]

    model.run_gru = run
    return compiled(model)


class Flat(nn.Module):
    """A model of groups as a model of tensors: times and values of the first group, of the second."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *tensors):
        return self.model(list(zip(tensors[::2], tensors[1::2])))


def flat(batch):
    return tuple(tensor for pair in batch for tensor in pair)


def frozen_on(example):
    def frozen(model):
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model(example)  # keeps the products of weights as constants
            traced = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(Flat(model).eval(), flat(example))))
        return lambda batch: traced(*flat(batch))
    return frozen


def onednn(model):
    def run(x, weights):
        h = x.new_zeros(x.size(0), weights[1].size(1))
        out = torch.mkldnn_rnn_layer(x.transpose(0, 1).contiguous(), *weights, h, h, False, [], 3, h.size(1), 1, True, False,
                                     False, False)
        return out[0], out[1].view(1, *h.shape)
    model.run_gru = run
    return model


def quantized(model):
    """Dynamic int8 of the GRU, with the projection before it multiplied in, and of the layers after it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.ao.quantization import quantize_dynamic
        weights = model.gru_weights()
        gru = nn.GRU(weights[0].size(1), weights[1].size(1), batch_first=True)
        for own, folded in zip(gru._flat_weights, weights):
            own.data.copy_(folded)
        parts = quantize_dynamic(nn.ModuleDict({"gru": gru, "head": model.classifier}).eval(), {nn.GRU, nn.Linear}, torch.qint8)
    return lambda batch: parts["head"](parts["gru"](model.interpolated(batch))[1][0])


def variants_of(name, work, example, threads):
    """{name: (threads, other arithmetic or None, function that makes it)}, the plain one first."""
    if work == "train":
        found = {"plain": (threads, None, lambda: Training(name)),
                 "compile": (threads, None, lambda: Training(name, compiled)),
                 "bf16": (threads, BF16, lambda: Training(name, other=BF16))}
    else:
        found = {"plain": (threads, None, lambda: Inference(name)),
                 "compile": (threads, None, lambda: Inference(name, compiled)),
                 "compile, GRU unrolled": (threads, None, lambda: Inference(name, unrolled)),
                 "jit, frozen": (threads, None, lambda: Inference(name, frozen_on(example))),
                 "oneDNN GRU": (threads, None, lambda: Inference(name, onednn)),
                 "bf16": (threads, BF16, lambda: Inference(name, other=BF16)),
                 "int8": (threads, INT8, lambda: Inference(name, quantized, INT8))}
    if threads > 1:
        found["plain, 1 thread"] = (1,) + found["plain"][1:]
    return found


def check_variant(told, found, expected):
    """Fills in a variant's difference from the plain one; too large a difference is an error."""
    told["difference"] = float("%.2g" % apart(found, expected))
    if not told["difference"] <= LIMITS[told["other"] is not None]:
        raise ValueError("its outputs differ by %g of their norm" % told["difference"])


def prepared(variants, inputs, checked):
    """{name: object with .run}, {name: description}: made, compared with the first variant on some inputs, and compiled
    for all."""
    ready, told, expected = {}, {}, None
    for name, (threads, other, build) in variants.items():
        torch.set_num_threads(threads)
        told[name] = {"threads": threads, "other": other}
        try:
            made = build()
            if len(variants) > 1:  # otherwise there is nothing to compare, and a run may take long
                found = torch.cat([torch.as_tensor(made.outputs(one)).float().flatten() for one in inputs[:checked]])
                expected = found if expected is None else expected
                check_variant(told[name], found, expected)
            for one in inputs if getattr(made, "compiles", False) else []:
                made.run(one)  # every length
            ready[name] = made
        except Exception as error:  # libraries report unsupported features in any way
            told[name]["missing"] = (str(error).strip() or repr(error)).splitlines()[0][:200]
    return ready, told


def serve(variants, inputs, records, on_request):
    """Times variants: all of them, or those named on standard input, one per line. records: per input."""
    ready, told = prepared(variants, inputs, CHECKED if records == 1 else 1)
    print(json.dumps(told), flush=True)
    for line in sys.stdin if on_request else ready:
        name = line.strip()
        torch.set_num_threads(told[name]["threads"])
        print(json.dumps({"variant": name, "ms": round(milliseconds(ready[name].run, inputs) / records, 6)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(SIZES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--work", default="train", choices=["train", "batch", "single"], help="what to measure")
    parser.add_argument("--serve", action="store_true", help="time what standard input asks for")
    parser.add_argument("--data", help="folder with set-a.tar.gz")
    parser.add_argument("--reference", help="checkout of the published code: compare with it")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    size = SIZES[args.model][0]
    records = get_records(args.data, size * args.batches)
    if args.reference:
        result = check(args.reference, args.model, records)
        print(json.dumps(result))
        sys.exit(0 if result["ok"] else 1)
    allow_shapes()
    inputs, count = inputs_of(args.work, records, size, group)
    serve(variants_of(args.model, args.work, inputs[0], args.threads), inputs, count, args.serve)


if __name__ == "__main__":
    main()
