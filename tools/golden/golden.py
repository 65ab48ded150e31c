#!/usr/bin/env python3
"""Write golden/: the results of the published code, for the C tests to compare with.

    tools/golden/golden.py --reference CHECKOUT [--physionet set-a.tar.gz] [--out golden] [--only CASE] [--runs 6]

CHECKOUT is reml-lab/mTAN at commit 7a3d536. Its own classes run in float64 (the truth) and in float32 (whose error is
the yardstick of the float build). Weights and inputs are not stored: they follow a rule, `rule` below, that C computes
as well. The tarball is only needed to renew the (time, channel) pattern of eight records; without it the pattern comes
from OUT/records.safetensors. golden/README.md describes every file and every tensor.

Needs torch, numpy, scikit-learn. The same versions on the same machine give the same bytes.
"""
import argparse
import json
import math
import sys
import tarfile
import types
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_local import LocalEncoder, encode_input, value_parts

FULL_UP_TO = 1024  # a tensor of at most so many entries is stored whole
SAMPLES = 256      # of a larger one are stored: so many entries, the sum and the norm
LEARNING_RATE = 1e-3


# ---- The rule: numbers that Python and C agree on ----------------------------------------------------------------

def fnv1a(text):
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def rule(name, n):
    """u(name, 0..n-1): splitmix64 started at the name's hash, in [-1, 1), multiples of 2^-23."""
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a(name)) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(40)).astype(np.float64) - 2.0**23) * 2.0**-23


def real(array):
    """A tensor of the default dtype; every value of the rule is exact in float32."""
    return torch.tensor(np.asarray(array), dtype=torch.get_default_dtype())


def by_rule(name, *shape, scale=1.0):
    return real(nudged(name, scale * rule(name, math.prod(shape)).reshape(shape)))


class Runs:
    """The number of measurements of the float32 error, and the current one (see `both`)."""
    count = 1
    current = 0


def nudged(name, array):
    """The array in the first run; in run r each number is moved by about one float32 step, up or down by the rule."""
    if Runs.current == 0:
        return array
    step = np.sign(rule(f"nudge.{Runs.current}.{name}", array.size)).reshape(array.shape) * 2.0**-23
    return np.float32(array * (1 + step)).astype(np.float64)


def power_below(fan):
    """The largest power of two s with s * s * fan <= 1."""
    s = 1.0
    while s * s * fan > 1:
        s /= 2
    return s


def set_weights(prefix, module, freq=8.0, gain=1.0):
    """Fill a module by the rule and return its parameters under their prefixed names."""
    named = {}
    for path, owner in module.named_modules():
        fan = getattr(owner, "in_features", None) or getattr(owner, "hidden_size", None)
        for leaf, parameter in owner.named_parameters(recurse=False):
            name = ".".join(part for part in (prefix, path, leaf) if part)
            scale = power_below(fan)
            if name.endswith("periodic.weight"):
                scale *= freq
            if name.endswith(("linears.0.weight", "linears.1.weight")):
                scale *= gain
            parameter.data = by_rule(name, *parameter.shape, scale=scale)
            named[name] = parameter
    return named


# ---- safetensors -------------------------------------------------------------------------------------------------

DTYPES = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "I32": np.dtype("<i4")}


def summary(array):
    """The stored part of a large tensor: evenly spaced entries, the sum and the norm."""
    flat = array.reshape(-1)
    return flat[np.arange(SAMPLES) * flat.size // SAMPLES], flat.sum(), np.linalg.norm(flat)


class Golden:
    """A file being filled: results with their float32 error, or plain arrays."""

    def __init__(self, metadata):
        self.metadata = {key: str(value) for key, value in metadata.items()}
        self.tensors = {}

    def put(self, name, array, dtype="F64"):
        assert name not in self.tensors, name
        self.tensors[name] = (dtype, np.atleast_1d(np.asarray(array)).astype(DTYPES[dtype]))

    def put_result(self, name, runs):
        """runs: (float64, float32) of one result. Stores the first truth, whole or sampled, and the largest float32
        error over the same entries."""
        assert np.isfinite(runs).all(), name
        truth = runs[0][0]
        if truth.size <= FULL_UP_TO:
            self.put(name, truth)
            self.put(name + ".err32", max(np.linalg.norm(single - other) for other, single in runs))
            return
        parts = [[summary(array) for array in run] for run in runs]
        self.put(name + ".shape", truth.shape, "I32")
        for key, value in zip(("sample", "sum", "norm"), parts[0][0]):
            self.put(f"{name}.{key}", value)
        self.put(name + ".err32", np.max([[np.linalg.norm(b - a) for a, b in zip(*run)] for run in parts], 0))

    def put_results(self, runs, prefix=""):
        """runs: (results in float64, results in float32), by name."""
        for name in runs[0][0]:
            self.put_result(prefix + name, [(truth[name], single[name]) for truth, single in runs])

    def write(self, path):
        header, data = {"__metadata__": self.metadata}, b""
        # Widest dtype first, so that every tensor is aligned to its own size.
        for name, (dtype, array) in sorted(self.tensors.items(), key=lambda item: -DTYPES[item[1][0]].itemsize):
            start = len(data)
            data += array.tobytes()
            header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [start, len(data)]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path):
    blob = path.read_bytes()
    start = 8 + int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:start])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(blob[start + e["data_offsets"][0]:start + e["data_offsets"][1]],
                                DTYPES[e["dtype"]]).reshape(e["shape"]) for name, e in header.items()}


# ---- Records: event lists, and the dense tensors of the reference ----------------------------------------------------

@dataclass
class Records:
    channels: int
    offset: np.ndarray   # (B + 1)
    time: np.ndarray     # (n) float32
    channel: np.ndarray  # (n)
    value: np.ndarray    # (n) float32
    label: np.ndarray    # (B), or one per distinct time of each record

    @property
    def size(self):
        return len(self.offset) - 1


def make_records(name, channels, events, labels, classes=2):
    """events: a list of (time, channel) for each record; values and labels by the rule."""
    flat = [event for record in events for event in record]
    values = rule("value." + name, len(flat))
    label = np.floor((rule("label." + name, labels) + 1) / 2 * classes)
    return Records(channels, np.cumsum([0] + [len(record) for record in events]).astype(np.int32),
                   np.array([t for t, _ in flat], np.float32), np.array([c for _, c in flat], np.int32),
                   values.astype(np.float32), label.astype(np.int32))


def scattered(name, record, length, channels, share):
    """Events at `length` irregular times; each channel is observed with probability `share`, at least one per time."""
    times = np.sort((rule(f"time.{name}.{record}", length) + 1) / 2).astype(np.float32)
    seen = (rule(f"seen.{name}.{record}", length * channels) + 1) / 2 < share
    return [(t, c) for l, t in enumerate(times) for c in range(channels)
            if seen[l * channels + c] or c == l % channels]


def activity_events(record, length):
    """Four tags of three coordinates; one tag reports at a time."""
    times = np.sort((rule(f"time.activity.{record}", length) + 1) / 2).astype(np.float32)
    tags = np.floor((rule(f"tag.activity.{record}", length) + 1) * 2).astype(int)
    return [(t, 3 * tag + axis) for t, tag in zip(times, tags) for axis in range(3)]


def toy_events(record):
    """20 points of a grid of 101, drawn with replacement."""
    return [(np.float32(i / 100), 0)
            for i in np.sort(np.floor((rule(f"time.toy.{record}", 20) + 1) / 2 * 101).astype(int))]


def unsorted_events(record):
    """Times of a grid of 9, so that (time, channel) pairs repeat, in random order."""
    times = np.floor((rule(f"time.unsorted.{record}", 14) + 1) / 2 * 9) / 8
    channels = np.floor((rule(f"channel.unsorted.{record}", 14) + 1) / 2 * 3).astype(int)
    return list(zip(times.astype(np.float32), channels))


def far_events(record):
    """Channels 0 and 1 over the whole range, channel 2 at only one time (check_far verifies the purpose)."""
    return [(np.float32((2 * l + record) / 32), c) for l in range(16) for c in (0, 1, 2) if c < 2 or l == 7 + record]


PHYSIONET = """Age Gender Height ICUType Weight Albumin ALP ALT AST Bilirubin BUN Cholesterol Creatinine DiasABP FiO2
GCS Glucose HCO3 HCT HR K Lactate Mg MAP MechVent Na NIDiasABP NIMAP NISysABP PaCO2 PaO2 pH Platelets RespRate SaO2
SysABP Temp TroponinI TroponinT Urine WBC""".split()


def physionet_pattern(tarball, records=8, longest=120):
    """The observed times and channels of the first records by id; no person's values."""
    patterns = []
    with tarfile.open(tarball) as archive:
        names = sorted(m.name for m in archive.getmembers() if m.name.endswith(".txt"))[:records]
        for name in names:
            seen = set()
            for line in archive.extractfile(name).read().decode().split()[1:]:
                clock, parameter, _ = line.split(",")
                if parameter in PHYSIONET:
                    hours = int(clock[:2]) + int(clock[3:]) / 60
                    seen.add((round(hours / 0.016), PHYSIONET.index(parameter)))
            kept = sorted({tick for tick, _ in seen})[:longest]
            patterns.append([(np.float32(tick * 0.016 / 48), c) for tick, c in sorted(seen) if tick <= kept[-1]])
    return patterns


def stored_pattern(path):
    if not path.exists():
        sys.exit(f"golden: {path} is missing: give --physionet once")
    stored = read_safetensors(path)
    offset, time, channel = (stored["physionet/" + key] for key in ("offset", "time", "channel"))
    return [list(zip(time[a:b], channel[a:b])) for a, b in zip(offset, offset[1:])]


def subset_of(records, dropped):
    """The same records without some of their times (numbered from 0)."""
    keep = np.zeros(len(records.time), bool)
    for a, b in zip(records.offset, records.offset[1:]):
        number = np.unique(records.time[a:b], return_inverse=True)[1]
        keep[a:b] = ~dropped(number)
    offset = np.concatenate(([0], np.cumsum(keep)))[records.offset].astype(np.int32)
    return Records(records.channels, offset, records.time[keep], records.channel[keep], records.value[keep],
                   records.label)


def all_records(pattern):
    sets = {
        "physionet": make_records("physionet", 41, pattern, len(pattern)),
        "mimic": make_records("mimic", 12, [scattered("mimic", b, 36 + 3 * b, 12, 0.2) for b in range(4)], 4),
        "activity": make_records("activity", 12, [activity_events(b, n) for b, n in enumerate((50, 30, 41, 36))],
                                 50 + 30 + 41 + 36, classes=11),
        "toy": make_records("toy", 1, [toy_events(b) for b in range(8)], 8),
        "small": make_records("small", 3, [scattered("small", b, 8 + b, 3, 0.4) for b in range(4)], 4),
        "one": make_records("one", 3, [[(np.float32(0.625), 1)]], 1),
        "unsorted": make_records("unsorted", 3, [unsorted_events(b) for b in range(3)], 3),
        # Channel 2 nowhere, channel 0 not in the first record.
        "unseen": make_records("unseen", 3, [[(t, c) for t, c in scattered("unseen", b, 7 + b, 2, 0.6)
                                              if b or c] for b in range(3)], 3),
        "empty": make_records("empty", 3, [scattered("empty", 0, 6, 3, 0.4), [], scattered("empty", 2, 4, 3, 0.4)], 3),
        "far": make_records("far", 3, [far_events(b) for b in range(2)], 2),
    }
    sets["small-subset"] = subset_of(sets["small"], lambda number: number % 3 == 1)
    return sets


def write_records(path, sets):
    out = Golden({"golden.records": " ".join(sets)})
    for name, records in sets.items():
        for key, dtype in (("offset", "I32"), ("time", "F32"), ("channel", "I32"), ("value", "F32"), ("label", "I32")):
            out.put(f"{name}/{key}", getattr(records, key), dtype)
    out.write(path)


@dataclass
class Batch:
    """The reference's padded tensors, with mask 0 and time 0 in the padding rows."""
    x: torch.Tensor      # (B, L, D)
    mask: torch.Tensor   # (B, L, D)
    time: torch.Tensor   # (B, L)
    row: torch.Tensor    # (B, L) true unless the row is padding
    cells: tuple         # three arrays (n): record, row, channel of the events sorted stably by (record, time)
    label: torch.Tensor


def dense(records):
    """One row per distinct time; equal (time, channel) pairs go to further rows of the same time."""
    B = records.size
    record = np.repeat(np.arange(B), np.diff(records.offset))
    order = np.lexsort((records.time, record))
    record, time, channel = record[order], records.time[order], records.channel[order]
    repeat, seen = np.zeros(len(order), int), {}
    for j, key in enumerate(zip(record, time, channel)):
        repeat[j] = seen.get(key, 0)
        seen[key] = repeat[j] + 1
    rows = [sorted(set(zip(time[record == b], repeat[record == b]))) for b in range(B)]
    row = np.array([rows[b].index((t, r)) for b, t, r in zip(record, time, repeat)])
    L = max(len(r) for r in rows)
    x, mask = np.zeros((B, L, records.channels)), np.zeros((B, L, records.channels))
    x[record, row, channel], mask[record, row, channel] = records.value[order], 1
    padded = np.zeros((B, L))
    for b, r in enumerate(rows):
        padded[b, :len(r)] = [t for t, _ in r]
    used = np.arange(L) < np.array([[len(r)] for r in rows])
    return Batch(real(x), real(mask), real(padded), torch.tensor(used), (record, row, channel),
                 torch.tensor(records.label.astype(np.int64)))


def conditioning(batch, records, subset):
    """x and mask of the batch, with the rows that are missing in `subset` set to zero, as subsample_timepoints does."""
    keep = torch.zeros_like(batch.time)
    for b in range(records.size):
        known = subset.time[subset.offset[b]:subset.offset[b + 1]].astype(np.float64)
        keep[b] = real(np.isin(batch.time[b].double().numpy(), known))
    return batch.x * keep[:, :, None], batch.mask * keep[:, :, None]


# ---- The reference ---------------------------------------------------------------------------------------------------

def load_reference(checkout):
    """Its models and utils. It needs torchvision only for downloads, so an empty module replaces it."""
    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.utils"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["torchvision.datasets.utils"].download_url = None
    sys.path.insert(0, str(Path(checkout) / "src"))
    sys.dont_write_bytecode = True
    import models
    import utils
    # log(2 pi) passes through .float() there (Q16); in a float64 run it must stay float64.
    torch.Tensor.float = lambda self: self.to(torch.get_default_dtype())
    return models, utils


def in_dtype(dtype, compute):
    torch.set_default_dtype(dtype)
    results = compute()
    for name, value in results.items():
        assert value.dtype == dtype, f"{name} is {value.dtype}"
    return {name: value.detach().double().numpy() for name, value in results.items()}


def both(compute):
    """Runs of a computation in float64 and float32: the default dtype is set before anything is built.

    One run measures the float32 error at one point, and for a tensor of one entry that can be small by luck. Further
    runs measure it again with all weights nudged, equally in both types."""
    runs = []
    for Runs.current in range(Runs.count):
        runs.append((in_dtype(torch.float64, compute), in_dtype(torch.float32, compute)))
    Runs.current = 0
    return runs


def gradients(loss, parameters):
    found = torch.autograd.grad(loss, list(parameters.values()))
    return {"grad." + name: gradient for name, gradient in zip(parameters, found)}


# ---- Models ----------------------------------------------------------------------------------------------------------

@dataclass
class Case:
    """A model file: its configuration (metadata keys mtan.*), its records and the scale of its weights."""
    name: str
    records: str
    config: dict
    freq: int = 8          # periodic.weight is multiplied by this
    gain: int = 1          # linears.0.weight and linears.1.weight are multiplied by this
    kl_coef: float = 0.5
    targets: str = ""      # the loss is over these records if they are not the conditioning ones
    steps: int = 0         # training steps; 0: one evaluation with gradients

    def __getattr__(self, key):
        try:
            return self.__dict__["config"][key]
        except KeyError:
            raise AttributeError(key) from None

    def metadata(self):
        values = {"mtan." + key: value for key, value in self.config.items()}
        values |= {"golden.records": self.records, "golden.freq": self.freq, "golden.kl_coef": self.kl_coef}
        if self.gain != 1:
            values["golden.gain"] = self.gain
        if self.targets:
            values["golden.targets"] = self.targets
        if self.steps:
            values |= {"golden.steps": self.steps, "golden.lr": LEARNING_RATE}
        return values


def per_head(model, heads, E):
    """Q3, the paper's form: one embedding per head. Slice h of the projections acts on embedding h."""
    model.periodic, model.linear = nn.Linear(1, heads * (E - 1)), nn.Linear(1, heads)
    att = model.att

    def embedding(t):
        t = t.unsqueeze(-1)
        periodic = torch.sin(model.periodic(t)).unflatten(-1, (heads, E - 1))
        return torch.cat([model.linear(t).unsqueeze(-1), periodic], -1)  # (B, L, H, E)

    def project(linear, embedded):
        weight, bias = linear.weight.view(heads, -1, E), linear.bias.view(heads, 1, -1)
        return torch.einsum("blhe,hke->bhlk", embedded, weight) + bias

    def forward(query, key, value, mask=None):
        mask = None if mask is None else mask.unsqueeze(1)
        out, _ = att.attention(project(att.linears[0], query), project(att.linears[1], key), value.unsqueeze(1), mask)
        return att.linears[-1](out.transpose(1, 2).flatten(2))

    model.learn_time_embedding, att.forward = embedding, forward


def knots_by_rule(case):
    """(D, bins + 1) of the channels that are not static: numbers of the rule, rounded down to quarters so that some
    bins have no width, ascending. They are not weights: nothing is learned about them."""
    varying = case.channels - case.config.get("statics", 0)
    u = rule("rec.values.knots", varying * (case.bins + 1)).reshape(varying, -1)
    return torch.tensor(np.sort(np.floor(4 * u) / 4), dtype=torch.get_default_dtype())


def build_encoder(models, case):
    knots = knots_by_rule(case) if "values" in case.config else None
    if any(key in case.config for key in ("statistics", "summaries", "statics")):
        return LocalEncoder(case, knots)
    model = published_encoder(models, case, case.channels * value_parts(case))
    if knots is not None:
        encode_input(model, case, knots)
    return model


def published_encoder(models, case, channels):
    c, learned, encoder_only = case, case.embedding == "learned", case.kind == "enc"
    query = torch.linspace(0, 1., c.config.get("ref_points", 1))
    if c.encoder == "rbf":
        return models.enc_interp(channels, query, c.latent, c.enc_hidden, device="cpu")
    if c.encoder == "rnn3":
        return models.enc_rnn3(channels, query, c.config.get("latent", 2), c.enc_hidden, c.embed,
                               use_classif=encoder_only, learn_emb=learned, device="cpu")
    if not encoder_only:
        model = models.enc_mtan_rnn(channels, query, c.latent, c.enc_hidden, c.embed, c.enc_heads, learned, "cpu")
    elif c.classify == "time":
        model = models.enc_mtan_classif_activity(channels, c.enc_hidden, c.embed, c.enc_heads, learned, device="cpu")
    else:
        model = models.enc_mtan_classif(channels, query, c.enc_hidden, c.embed, c.enc_heads, learned,
                                        freq=10., device="cpu")
    if c.embed_heads == "per_head":
        per_head(model, c.enc_heads, c.embed)
    return model


def build_decoder(models, case):
    c, learned, query = case, case.embedding == "learned", torch.linspace(0, 1., case.ref_points)
    if c.decoder == "rbf":
        return models.dec_interp(c.channels, query, c.latent, c.dec_hidden, device="cpu")
    if c.decoder == "rnn3":
        return models.dec_rnn3(c.channels, query, c.latent, c.dec_hidden, c.embed, learned, "cpu")
    model = models.dec_mtan_rnn(c.channels, query, c.latent, c.dec_hidden, c.embed, c.dec_heads, learned, "cpu")
    if c.embed_heads == "per_head":
        per_head(model, c.dec_heads, c.embed)
    if c.classify == "time":  # Q40: the head reads the decoder's embedding
        model.z0_to_obs = nn.Identity()
    return model


def build_classifier(models, case):
    if case.classify == "record":
        return models.create_classifier(case.latent, case.enc_hidden, case.classes)
    head = case.head_hidden
    return nn.Sequential(nn.Linear(2 * case.dec_hidden, head), nn.ReLU(), nn.Linear(head, head), nn.ReLU(),
                         nn.Linear(head, case.classes))


def build(models, case):
    """The modules of a case and all their parameters by name."""
    modules = {"rec": build_encoder(models, case)}
    if case.kind == "full":
        modules["dec"] = build_decoder(models, case)
        if case.classify != "none":
            modules["classifier"] = build_classifier(models, case)
    parameters = {}
    for prefix, module in modules.items():
        parameters |= set_weights(prefix, module, case.freq, case.gain)
    return modules, parameters


def bound(utils, case, batch, mean, logvar, z, pred):
    """Returns recon, kl. `faithful` is the scripts' own (Q17); the other two are the named alternatives."""
    args = types.SimpleNamespace(std=case.noise_std, norm=case.norm)
    logpx, kl = utils.compute_losses(case.channels, torch.cat((batch.x, batch.mask), 2), mean, logvar, pred, args,
                                     "cpu")
    S = pred.shape[0]
    if case.bound == "faithful":
        value = torch.logsumexp(logpx - case.kl_coef * kl, dim=0).mean(0) - np.log(S)
    elif case.bound == "elbo":
        value = (logpx - case.kl_coef * kl).mean(0).mean(0)
    else:
        zero, one = torch.zeros_like(mean), torch.ones_like(mean)
        ratio = (utils.log_normal_pdf(z, zero, zero, one) - utils.log_normal_pdf(z, mean, logvar, one)).sum((-1, -2))
        if case.norm:
            ratio = ratio / batch.mask.sum((-1, -2))
        value = torch.logsumexp(logpx + case.kl_coef * ratio, dim=0).mean(0) - np.log(S)
    return -value, kl.mean()


def evaluate_enc(case, modules, batch, seen):
    """tanenc_classification.py; per-time cross-entropy over the real rows."""
    logits = modules["rec"](seen, batch.time)
    if case.classify == "time":
        logits = logits[batch.row]
    ce = F.cross_entropy(logits, batch.label)
    return {"loss": ce, "ce": ce, "logits": logits}


def evaluate_full(utils, case, modules, batch, seen):
    """tan_interpolation.py, tan_classification.py, and activity-full (Q40: only cross-entropy)."""
    S, Z, B = case.samples, case.latent, batch.time.shape[0]
    out = modules["rec"](seen, batch.time)
    mean, logvar = out[:, :, :Z], out[:, :, Z:]
    z = by_rule("noise", S, *mean.shape, scale=2.0) * torch.exp(.5 * logvar) + mean
    flat = z.view(-1, *mean.shape[1:])
    decoded = modules["dec"](flat, batch.time[None].repeat(S, 1, 1).view(-1, batch.time.shape[1]))
    result = {"mean": mean, "logvar": logvar}
    if case.classify == "time":
        result["logits"] = modules["classifier"](decoded[batch.row])
        result["loss"] = result["ce"] = F.cross_entropy(result["logits"], batch.label)
        return result
    pred = decoded.view(S, B, *decoded.shape[1:])
    result["pred"] = torch.stack([sample[batch.cells] for sample in pred])
    result["recon"], result["kl"] = bound(utils, case, batch, mean, logvar, z, pred)
    result["loss"] = result["recon"]
    if case.classify == "record":
        result["logits"] = modules["classifier"](flat)
        result["ce"] = F.cross_entropy(result["logits"], batch.label.repeat(S))
        result["loss"] = result["recon"] + case.alpha * result["ce"]
    return result


def check_far(case, modules, batch, seen):
    """Checks that in some query row, the best score of some channel is so far below the row's best that exp is zero."""
    rec = modules["rec"]
    embed = [rec.learn_time_embedding(t) for t in (rec.query.unsqueeze(0), batch.time)]
    query, key = (linear(e) for linear, e in zip(rec.att.linears, embed))
    score = query @ key.transpose(-2, -1) / math.sqrt(case.embed)                        # (B, K, L)
    best = score.unsqueeze(-1).masked_fill(seen[:, None, :, case.channels:] == 0, -1e9).amax(-2)  # (B, K, D)
    gap = (best - best.amax(-1, keepdim=True)).min().item()
    assert -1e6 < gap < -110, f"{case.name}: exp({gap:.1f}) does not underflow float32"


def prepare(reference, case, sets):
    """Modules, parameters, and a function that evaluates the case with their current values."""
    models, utils = reference
    modules, parameters = build(models, case)
    records = sets[case.targets or case.records]
    batch = dense(records)
    seen = torch.cat(conditioning(batch, records, sets[case.records]) if case.targets else (batch.x, batch.mask), 2)
    if case.records == "far":
        check_far(case, modules, batch, seen)
    if case.kind == "enc":
        return parameters, lambda: evaluate_enc(case, modules, batch, seen)
    return parameters, lambda: evaluate_full(utils, case, modules, batch, seen)


def run_model(reference, case, sets):
    parameters, evaluate = prepare(reference, case, sets)
    result = evaluate()
    return result | gradients(result["loss"], parameters)


def run_training(reference, case, sets):
    """The loss before each of the steps of Adam, on one batch with the same noise."""
    parameters, evaluate = prepare(reference, case, sets)
    optimizer = torch.optim.Adam(parameters.values(), lr=LEARNING_RATE)
    losses = []
    for _ in range(case.steps):
        loss = evaluate()["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}


def export_case(reference, case, sets, folder):
    out = Golden(case.metadata())
    run = run_training if case.steps else run_model
    out.put_results(both(lambda: run(reference, case, sets)))
    out.write(folder / f"{case.name}.safetensors")


def enc_config(channels, hidden, K, embed=128, **more):
    return dict(kind="enc", classify="record", encoder="attention", channels=channels, classes=2, embed=embed,
                enc_heads=1, enc_hidden=hidden, ref_points=K, reference="even", embedding="learned",
                embed_heads="shared", head_hidden=300) | more


def full_config(channels, hidden, latent, K, embed=128, **more):
    return dict(kind="full", classify="record", encoder="attention", decoder="attention", channels=channels, classes=2,
                embed=embed, enc_heads=1, dec_heads=1, enc_hidden=hidden, dec_hidden=50, latent=latent, ref_points=K,
                reference="even", embedding="learned", embed_heads="shared", mlp_hidden=50, head_hidden=300,
                noise_std=0.01, samples=1, bound="faithful", norm=1, alpha=1, skip_empty=0) | more


def observed_config(hidden):
    """activity-enc: queries are the observed times, the head a single Linear."""
    config = enc_config(12, hidden, 0, classify="time", classes=11, reference="observed", head_hidden=0)
    del config["ref_points"]
    return config


def interp_config(*sizes, **more):
    config = full_config(*sizes, classify="none", **more)
    for key in ("classes", "head_hidden", "alpha"):
        del config[key]
    return config


def published_cases():
    """The seven commands of the reference and activity-full."""
    return [
        Case("physionet-enc", "physionet", enc_config(41, 128, 128)),
        Case("toy-interp", "toy", interp_config(1, 32, 1, 20, samples=5)),
        Case("physionet-interp", "physionet", interp_config(41, 64, 16, 64, samples=5)),
        Case("physionet-full", "physionet", full_config(41, 256, 20, 128, alpha=100)),
        Case("mimic3-full", "mimic", full_config(12, 256, 128, 128, alpha=5), kl_coef=1.0),
        Case("mimic3-enc", "mimic", enc_config(12, 256, 128)),
        Case("activity-enc", "activity", observed_config(512)),
        Case("activity-full", "activity", full_config(12, 64, 20, 50, classify="time", classes=11)),
    ]


def tiny_enc(**more):
    return enc_config(3, 7, 8, **(dict(embed=16) | more))


# A noise of 0.25 makes reconstruction, KL, cross-entropy and every sample count in the tiny gradients.
TINY_DECODER = dict(dec_hidden=5, embed=16, noise_std=0.25)


def tiny_full(**more):
    return full_config(3, 7, 4, 8, **(TINY_DECODER | dict(alpha=2) | more))


def tiny_interp(**more):
    return interp_config(3, 7, 4, 8, **(TINY_DECODER | more))


def tiny_cases():
    cases = []
    for name in ("small", "one", "unsorted", "unseen", "empty", "far"):
        gain = 32 if name == "far" else 1
        full = tiny_full(norm=0) if name == "empty" else tiny_full()
        cases += [Case("enc-" + name, name, tiny_enc(), gain=gain), Case("full-" + name, name, full, gain=gain)]
    small = {
        "enc-k1": tiny_enc(ref_points=1), "full-k1": tiny_full(ref_points=1),
        "enc-h2": tiny_enc(enc_heads=2), "enc-h4": tiny_enc(enc_heads=4),
        "full-h2": tiny_full(enc_heads=2, dec_heads=4), "full-h4": tiny_full(enc_heads=4, dec_heads=2),
        "enc-fixed": tiny_enc(embedding="fixed", embed_base=10, embed_scale=48),
        "full-fixed": tiny_full(embedding="fixed", embed_base=10, embed_scale=48),
        "enc-perhead": tiny_enc(enc_heads=2, embed_heads="per_head"),
        "full-perhead": tiny_full(enc_heads=2, dec_heads=4, embed_heads="per_head"),
        "rbf-interp": tiny_interp(encoder="rbf", decoder="rbf"), "rbf-full": tiny_full(encoder="rbf", decoder="rbf"),
        "rnn3-enc": tiny_enc(encoder="rnn3"), "rnn3-full": tiny_full(encoder="rnn3", decoder="rnn3"),
        "full-samples": tiny_full(samples=3), "full-elbo": tiny_full(samples=3, bound="elbo"),
        "full-iwae": tiny_full(samples=3, bound="iwae"),
    }
    cases += [Case(name, "small", config) for name, config in small.items()]
    everything = tiny_enc(statistics="mean,spread,intensity,slope", fastest=3, summaries=1, statics=1)
    cases += [Case("enc-statistics", "small", tiny_enc(statistics="mean,spread,slope", fastest=3, enc_heads=2)),
              Case("enc-summaries", "unsorted", tiny_enc(summaries=1)),
              Case("enc-shapes", "unsorted", tiny_enc(summaries=2)),
              Case("enc-shapes-unseen", "unseen", everything | dict(summaries=2)),
              Case("enc-course", "unsorted", tiny_enc(summaries=3)),
              Case("enc-course-unseen", "unseen", everything | dict(summaries=3)),
              Case("enc-local", "small", everything), Case("enc-local-unseen", "unseen", everything),
              Case("enc-local-far", "far", everything, gain=32),
              Case("enc-piecewise", "small", tiny_enc(values="piecewise", bins=4, enc_heads=2)),
              Case("enc-quantile", "unsorted", tiny_enc(values="quantile", bins=3)),
              Case("enc-local-piecewise", "small", everything | dict(values="piecewise", bins=3)),
              Case("full-piecewise", "small", tiny_full(values="piecewise", bins=2))]
    return cases + [Case("full-subset", "small-subset", tiny_interp(), targets="small")]


def training_cases():
    return [
        Case("train-enc", "small", tiny_enc(enc_hidden=16), steps=10),
        Case("train-full", "small", tiny_full(enc_hidden=16, dec_hidden=10), steps=10),
        Case("train-interp", "small", tiny_interp(enc_hidden=16, dec_hidden=10, samples=3), steps=10),
    ]


# ---- Ops and blocks --------------------------------------------------------------------------------------------------

@dataclass
class Input:
    """An input of a piece: u("PIECE.INPUT", i) mapped by `value`; without `grad` it is a constant."""
    shape: tuple
    value: object = lambda u: u
    grad: bool = True


def scaled(scale, *shape):
    return Input(shape, lambda u: scale * u)


def mask(*shape, unseen=None):
    """1 where u >= -0.5; channel `unseen` never."""
    def value(u):
        seen = (u >= -0.5).reshape(shape).astype(float)
        if unseen is not None:
            seen[..., unseen] = 0
        return seen
    return Input(shape, value, grad=False)


def fixed(values):
    """Values independent of the rule: times, labels."""
    values = np.asarray(values, float)
    return Input(values.shape, lambda u: values, grad=False)


def plain(*shape):
    return Input(shape)


@dataclass
class Piece:
    """An op or a block: forward(values by name, modules by prefix) -> outputs by name."""
    name: str
    text: str
    inputs: dict
    forward: object
    modules: object = dict                        # builds the modules, weights by the rule
    no_cotangent: tuple = field(default=())       # outputs without a gradient


def run_piece(piece):
    """Outputs, and the gradients of sum(out * cot) of every input and parameter."""
    values, parameters = {}, {}
    for key, spec in piece.inputs.items():
        u = rule(f"{piece.name}.{key}", math.prod(spec.shape))
        array = np.reshape(spec.value(u), spec.shape)
        values[key] = real(nudged(key, array) if spec.grad else array).requires_grad_(spec.grad)
        if spec.grad:
            parameters[key] = values[key]
    modules = piece.modules()
    for prefix, module in modules.items():
        parameters |= set_weights(prefix, module)
    outputs = piece.forward(types.SimpleNamespace(**values), modules)
    if not parameters:
        return outputs
    loss = sum((out * by_rule(f"cot.{piece.name}.{key}", *out.shape)).sum()
               for key, out in outputs.items() if key not in piece.no_cotangent)
    return outputs | gradients(loss, parameters)


def export_pieces(pieces, path):
    out = Golden({piece.name: piece.text for piece in pieces})
    for piece in pieces:
        out.put_results(both(lambda: run_piece(piece)), prefix=piece.name + "/")
    out.write(path)


def embedder(models, E, learned):
    return models.enc_mtan_rnn(1, torch.zeros(1), embed_time=E, learn_emb=learned, device="cpu")


def learned_embedding(models, v):
    """The reference's function on given parameters."""
    owner = types.SimpleNamespace(device="cpu", periodic=lambda t: F.linear(t, v.periodic_weight, v.periodic_bias),
                                  linear=lambda t: F.linear(t, v.linear_weight, v.linear_bias))
    return {"out": models.enc_mtan_rnn.learn_time_embedding(owner, v.time)}


def gru(v, reverse):
    cell = nn.GRU(v.x.shape[-1], v.weight_hh.shape[-1], batch_first=True)
    named = {name + "_l0": getattr(v, name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    x = v.x.flip(1) if reverse else v.x
    out, _ = torch.func.functional_call(cell, named, (x,))
    return {"out": out.flip(1) if reverse else out}


def twice(x):
    """Q1: values are [x, mask] and the mask serves both halves."""
    return torch.cat((x, x), -1)


def observed(v):
    """Values in the form of the reference's batches: 0 where nothing was observed, which only matters in a channel that
    is never observed (Q4)."""
    return torch.cat((v.x * v.mask, v.mask), -1)


def attention(models, v, masked):
    """One head, no projections. Only the weights of the value half: those of the mask half are the same."""
    value = observed(v) if masked else v.x
    out, weights = models.multiTimeAttention.attention(None, v.q, v.k, value, twice(v.mask) if masked else None)
    D = v.x.shape[-1]
    return {"out": out, "weights": weights[..., :D] if masked else weights[..., 0]}


def rbf(models, v, masked):
    """enc_interp.attention with the given bandwidths."""
    value = observed(v) if masked else v.x
    owner = types.SimpleNamespace(device="cpu", bandwidth=lambda one: one * v.bandwidth)
    out, _ = models.enc_interp.attention(owner, v.q[None], v.k[None], value[None],
                                         twice(v.mask)[None] if masked else None)
    return {"out": out[0]}


def ops(reference):
    models, utils = reference
    eighths, squares, quarters = fixed(np.arange(9) / 8), fixed(np.arange(7)**2 / 64), fixed(np.arange(5) / 4)
    cell = dict(x=plain(3, 6, 5), weight_ih=plain(21, 5), weight_hh=plain(21, 7), bias_ih=plain(21), bias_hh=plain(21))
    latent = dict(mean=plain(2, 4, 3), logvar=plain(2, 4, 3))
    events = dict(x=plain(7, 4), mask=mask(7, 4, unseen=3))
    rows = dict(q=scaled(4, 5, 16), k=plain(7, 16))

    def loglik(v, m):
        logvar = 2 * torch.log(torch.full_like(v.mean, 0.25))
        return {"out": utils.log_normal_pdf(v.x, v.mean, logvar, v.mask).sum((1, 2))}

    def kl(v, m):
        zero = torch.zeros_like(v.mean)
        return {"out": utils.normal_kl(v.mean, v.logvar, zero, zero).sum((1, 2))}

    return [
        Piece("embed-learned", "learned time embedding, E=16, 9 times",
              dict(time=eighths, periodic_weight=scaled(8, 15, 1), periodic_bias=plain(15), linear_weight=plain(1, 1),
                   linear_bias=plain(1)), lambda v, m: learned_embedding(models, v)),
        Piece("embed-fixed", "positional embedding, E=16, base 10, scale 48, 9 times", dict(time=eighths),
              lambda v, m: {"out": embedder(models, 16, False).fixed_time_embedding(v.time[None])[0]}),
        Piece("linear", "x W^T + b", dict(x=plain(7, 5), weight=plain(9, 5), bias=plain(9)),
              lambda v, m: {"out": F.linear(v.x, v.weight, v.bias)}),
        Piece("relu", "max(x, 0)", dict(x=plain(4, 9)), lambda v, m: {"out": F.relu(v.x)}),
        Piece("tanh", "tanh(x), x = 4u", dict(x=scaled(4, 4, 9)), lambda v, m: {"out": torch.tanh(v.x)}),
        Piece("gru", "GRU forward in time, B=3 T=6 in=5 N=7, h0 = 0", cell, lambda v, m: gru(v, False)),
        Piece("gru-reverse", "the same backward in time; out[t] belongs to x[t]", cell, lambda v, m: gru(v, True)),
        Piece("softmax-ce", "mean cross-entropy over B=5 rows, C=4, logits = 4u, label = (3b+1) mod 4",
              dict(logits=scaled(4, 5, 4), label=fixed((3 * np.arange(5) + 1) % 4)),
              lambda v, m: {"out": F.cross_entropy(v.logits, v.label.long())}),
        Piece("weighted-ce", "the same with classes of weights 0.5, 2, 0, 1: CrossEntropyLoss(weight)",
              dict(logits=scaled(4, 5, 4), label=fixed((3 * np.arange(5) + 1) % 4)),
              lambda v, m: {"out": F.cross_entropy(v.logits, v.label.long(), weight=v.logits.new_tensor([.5, 2, 0, 1]))}),
        Piece("gauss-loglik", "sum over observed cells of log N(x; mean, 0.25^2), per record",
              dict(x=plain(2, 5, 3), mean=plain(2, 5, 3), mask=mask(2, 5, 3)), loglik),
        Piece("kl", "sum over K=4, Z=3 of KL(N(mean, exp logvar) | N(0, 1)), per record", latent, kl),
        Piece("logmeanexp", "log mean exp over S=4 samples, B=3", dict(x=scaled(8, 4, 3)),
              lambda v, m: {"out": torch.logsumexp(v.x, 0) - np.log(4)}),
        Piece("reparam", "z = noise exp(logvar / 2) + mean, S=2", latent | dict(noise=scaled(2, 2, 2, 4, 3)),
              lambda v, m: {"out": v.noise * torch.exp(.5 * v.logvar) + v.mean}),
        Piece("attention-masked", "one head on values [x, mask], no projections; channel 3 never observed",
              rows | events, lambda v, m: attention(models, v, True), no_cotangent=("weights",)),
        Piece("attention", "one head, unmasked, no projections", rows | dict(x=plain(7, 6)),
              lambda v, m: attention(models, v, False), no_cotangent=("weights",)),
        Piece("rbf-masked", "kernel attention on [x, mask], a bandwidth per channel; channel 3 never observed",
              dict(q=quarters, k=squares, bandwidth=scaled(4, 8)) | events, lambda v, m: rbf(models, v, True)),
        Piece("rbf", "kernel attention, unmasked", dict(q=quarters, k=squares, bandwidth=scaled(4, 6), x=plain(7, 6)),
              lambda v, m: rbf(models, v, False)),
    ]


def blocks(reference, sets):
    models, _ = reference
    K, Z, N, E, D = 6, 2, 5, 8, 3

    def masked_attention(v, m):
        return {"out": m["rec.att"](v.query, v.key, observed(v), twice(v.mask))}

    def encoder(v, m):
        batch = dense(sets["small"])
        out = m["rec"](torch.cat((batch.x, batch.mask), 2), batch.time)
        return {"mean": out[:, :, :Z], "logvar": out[:, :, Z:]}

    def decoder(v, m):
        batch = dense(sets["small"])
        return {"pred": m["dec"](v.z, batch.time)[batch.cells]}

    pieces = []
    for H in (1, 2):
        pieces += [
            Piece(f"att-masked-h{H}", f"multiTimeAttention(2 * 4, 5, 8, {H}) on [x, mask]; channel 3 never observed",
                  dict(query=plain(1, K, E), key=plain(2, 7, E), x=plain(2, 7, 4), mask=mask(2, 7, 4, unseen=3)),
                  masked_attention, lambda H=H: {"rec.att": models.multiTimeAttention(8, N, E, H)}),
            Piece(f"att-h{H}", f"multiTimeAttention(10, 10, 8, {H}), unmasked",
                  dict(query=plain(2, 7, E), key=plain(1, K, E), value=plain(2, K, 2 * N)),
                  lambda v, m: {"out": m["dec.att"](v.query, v.key, v.value)},
                  lambda H=H: {"dec.att": models.multiTimeAttention(2 * N, 2 * N, E, H)}),
        ]
    return pieces + [
        Piece("bigru", "GRU in both directions, B=2 T=6 in=2 N=5", dict(x=plain(2, K, Z)),
              lambda v, m: {"out": m["dec.gru_rnn"](v.x)[0]},
              lambda: {"dec.gru_rnn": nn.GRU(Z, N, bidirectional=True, batch_first=True)}),
        Piece("encoder", "enc_mtan_rnn, D=3 K=6 Z=2 N=5 E=8 H=1 learned, on the records `small`", {}, encoder,
              lambda: {"rec": models.enc_mtan_rnn(D, torch.linspace(0, 1., K), Z, N, E, 1, True, "cpu")}),
        Piece("decoder", "dec_mtan_rnn, D=3 K=6 Z=2 N=5 E=8 H=1 learned, at the observed cells of `small`",
              dict(z=plain(4, K, Z)), decoder,
              lambda: {"dec": models.dec_mtan_rnn(D, torch.linspace(0, 1., K), Z, N, E, 1, True, "cpu")}),
        Piece("classifier", "create_classifier(2, 5, 2): GRU, then 300, 300, 2", dict(z=plain(3, K, Z)),
              lambda v, m: {"logits": m["classifier"](v.z)},
              lambda: {"classifier": models.create_classifier(Z, N, 2)}),
    ]


# ---- Main ------------------------------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reference", required=True, help="checkout of the published code")
    parser.add_argument("--physionet", help="set-a.tar.gz, to renew the pattern of the records")
    parser.add_argument("--out", default="golden", type=Path)
    parser.add_argument("--only", help="one file, by its name without .safetensors")
    parser.add_argument("--runs", default=6, type=int, help="measurements of the float32 error; the largest counts")
    args = parser.parse_args()
    Runs.count = args.runs
    torch.set_num_threads(1)
    reference = load_reference(args.reference)
    args.out.mkdir(exist_ok=True)
    records_path = args.out / "records.safetensors"
    sets = all_records(physionet_pattern(args.physionet) if args.physionet else stored_pattern(records_path))
    jobs = {"records": lambda: write_records(records_path, sets)}
    for case in tiny_cases() + published_cases() + training_cases():
        jobs[case.name] = lambda case=case: export_case(reference, case, sets, args.out)
    jobs["ops"] = lambda: export_pieces(ops(reference), args.out / "ops.safetensors")
    jobs["blocks"] = lambda: export_pieces(blocks(reference, sets), args.out / "blocks.safetensors")
    if args.only and args.only not in jobs:
        sys.exit("golden: no such file; there are: " + " ".join(jobs))
    for name in [args.only] if args.only else jobs:
        jobs[name]()
        print(name, flush=True)


if __name__ == "__main__":
    main()
