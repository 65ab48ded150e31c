#!/usr/bin/env python3
"""Write golden/baseline-*.safetensors and golden/ode-solvers.safetensors: the paper's baselines, for the C tests.

    tools/golden/golden_baselines.py [--out golden] [--only NAME] [--runs 6]

The models are in golden_baselines_models.py, the solvers in golden_baselines_ode.py: float64 (the truth) and float32
(whose error is the yardstick of the float build), one record at a time. Float32 errors, large tensors and the rule for
made-up numbers are those of golden.py. Unlike golden.py's cases, a file contains its weights, F32 under their names: it
is also a model file. golden/README.md describes every file and every tensor; golden_baselines_check.py compares the
models with independent code.

Needs torch, numpy, torchdiffeq. The same versions on the same machine give the same bytes.
"""
import argparse
import math
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

import golden
from golden import by_rule, power_below, real
from golden_baselines_models import Cells, Rows, build, spread
from golden_baselines_ode import Field, export_solvers

CHANNELS = 4
RECORDS_FILE = "baseline-records"


# ---- Records ---------------------------------------------------------------------------------------------------------

def mixed_events():
    """Channel 2 nowhere. Record 0 is scattered, 1 unsorted with repeated pairs, 2 empty, 3 a single observation, 4 on a
    grid of tenths, where the gaps are whole multiples of a fiftieth of the span."""
    scattered = [(t, c) for t, c in golden.scattered("mixed", 0, 7, CHANNELS, 0.4) if c != 2]
    times = np.floor((golden.rule("time.mixed.1", 11) + 1) / 2 * 6) / 8 + 0.125
    channels = np.array([1, 3])[np.floor(golden.rule("channel.mixed.1", 11) + 1).astype(int)]
    grid = [(np.float32(i / 10), (0, 1, 3)[i % 3]) for i in (0, 1, 2, 4, 7, 8, 10)] + [(np.float32(0.4), 3)]
    return [scattered, list(zip(times.astype(np.float32), channels)), [], [(np.float32(0.625), 1)], grid]


def cell_numbers(records, b):
    """The number of each event's cell among the cells of record b, ordered by time and channel."""
    mine = slice(records.offset[b], records.offset[b + 1])
    pairs = np.stack((records.time[mine].astype(float), records.channel[mine]), 1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def held_out(records):
    """Cells 1, 5, 9, ... of each record, except records with a single cell."""
    keep = np.zeros(len(records.time), bool)
    for b in range(records.size):
        number = cell_numbers(records, b)
        keep[records.offset[b]:records.offset[b + 1]] = (number % 4 == 1) & (len(set(number)) > 1)
    offset = np.concatenate(([0], np.cumsum(keep)))[records.offset].astype(np.int32)
    return golden.Records(records.channels, offset, records.time[keep], records.channel[keep], records.value[keep],
                          records.label)


def timed_queries(records):
    """Record 0: its times and others before, between and after them; 2, empty: two; the rest: their own times."""
    own = [np.unique(records.time[a:b]) for a, b in zip(records.offset, records.offset[1:])]
    more = np.float32([0.0, 0.34375, 0.9921875])
    return [np.union1d(own[0], more), own[1], np.float32([0.25, 0.75]), own[3], own[4]]


def all_records():
    sets = {"mixed": golden.make_records("mixed", CHANNELS, mixed_events(), 5)}
    sets["mixed-shown"] = golden.subset_of(sets["mixed"], lambda number: number % 3 == 0)
    sets["mixed-held"] = held_out(sets["mixed"])
    queries = timed_queries(sets["mixed"])
    timed = golden.make_records("mixed", CHANNELS, mixed_events(), sum(map(len, queries)), classes=3)
    timed.label[4] = -1
    timed.queries = queries
    sets["mixed-time"] = timed
    return sets


def write_records(path, sets):
    out = golden.Golden({"golden.records": " ".join(sets)})
    for name, records in sets.items():
        for key, dtype in (("offset", "I32"), ("time", "F32"), ("channel", "I32"), ("value", "F32"), ("label", "I32")):
            out.put(f"{name}/{key}", getattr(records, key), dtype)
        if hasattr(records, "queries"):
            out.put(f"{name}/query_offset", np.cumsum([0] + [len(q) for q in records.queries]), "I32")
            out.put(f"{name}/query", np.concatenate(records.queries), "F32")
    out.write(path)


def sorted_events(records, b):
    """(time, channel, value) of record b in a stable order of time."""
    mine = slice(records.offset[b], records.offset[b + 1])
    order = np.argsort(records.time[mine], kind="stable")
    return records.time[mine][order], records.channel[mine][order], records.value[mine][order]


def cells_of(events):
    """Repeats of a (time, channel) pair averaged; ordered by time, then channel."""
    found = {}
    for time, channel, value in zip(*events):
        found.setdefault((time, channel), []).append(float(value))
    pairs = sorted(found)
    return Cells(real([t for t, _ in pairs]), torch.tensor([int(c) for _, c in pairs], dtype=torch.long),
                 real([sum(found[pair]) / len(found[pair]) for pair in pairs]))


def rows_of(cells, channels, queries=()):
    t = torch.unique(torch.cat((cells.time, real(queries))))
    x, m = torch.zeros(len(t), channels), torch.zeros(len(t), channels)
    at = torch.searchsorted(t, cells.time)
    x[at, cells.channel], m[at, cells.channel] = cells.value, 1
    return Rows(t, x, m)


def without(cells, others):
    """(time, channel, value) of record b, stably sorted by time."""
    pairs, gone = (list(zip(each.time.tolist(), each.channel.tolist())) for each in (cells, others))
    keep = torch.tensor([pair not in gone for pair in pairs], dtype=torch.bool)
    return Cells(cells.time[keep], cells.channel[keep], cells.value[keep])


def make_record(case, sets, b):
    """The model's view of record b, and its targets."""
    s, records = case.settings, sets[case.records]
    r = types.SimpleNamespace(cells=cells_of(sorted_events(records, b)))
    r.queries = real(records.queries[b]) if s.classify == "time" else real([])
    as_rows = s.classify == "time" and not s.variational  # a decoder, not the encoder, runs at the queries
    r.rows = rows_of(r.cells, s.channels, r.queries.tolist() if as_rows else ())
    r.query_rows = torch.searchsorted(r.rows.t, r.queries)
    r.targets = sorted_events(sets[case.targets or case.records], b)
    if s.architecture == "ip-nets" and case.targets:
        r.held = cells_of(r.targets)
        r.kept = without(r.cells, r.held)
    return r


# ---- Cases -----------------------------------------------------------------------------------------------------------

@dataclass
class Case:
    name: str
    records: str
    settings: types.SimpleNamespace
    targets: str = ""
    kl_coef: float = 0.5

    def metadata(self):
        hidden = ("variational",)
        values = {"mtan." + key: value for key, value in vars(self.settings).items() if key not in hidden}
        values |= {"golden.records": self.records, "golden.file": RECORDS_FILE}
        if self.targets:
            values["golden.targets"] = self.targets
        if self.settings.variational:
            values["golden.kl_coef"] = self.kl_coef
        return values


GRU = ("rnn-dt", "rnn-impute", "rnn-decay", "gru-d")
VARIATIONAL = ("rnn-vae", "l-ode-rnn", "l-ode-ode")
ODE = dict(ode_steps=50, rtol=1e-3, atol=1e-4)
OWN = {  # settings that only some models have
    "phased-lstm": dict(embed_scale=8),
    "ip-nets": dict(embed_scale=8, ref_points=5, alpha=2),
    "seft": dict(embed=4, embed_base=100, embed_scale=8, enc_heads=2, latent=3, units=5, psi_units=6),
    "rnn-vae": dict(units=5),
    "ode-rnn": dict(units=5, gru_units=6, rec_layers=1, rec_solver="euler", ode_steps=50),
    "l-ode-rnn": dict(units=5, gen_layers=1, dec_solver="dopri5") | ODE,
    "l-ode-ode": dict(units=5, gru_units=6, rec_layers=2, gen_layers=1, rec_solver="euler", dec_solver="dopri5") | ODE,
}
# A noise of 0.25 makes reconstruction, KL, cross-entropy and every sample count in the gradients.
BOUND = dict(latent=3, mlp_hidden=7, samples=2, noise_std=0.25, norm=1, skip_empty=1)


def make_settings(name, preset, classify, more):
    values = dict(architecture=name, preset=preset, classify=classify, channels=CHANNELS, enc_hidden=6)
    if name == "seft":
        del values["enc_hidden"]
    if classify != "none":
        values |= dict(classes=3 if classify == "time" else 2, head_hidden=0 if classify == "time" else 7)
    if name in VARIATIONAL:
        values |= BOUND | dict(bound="elbo" if preset == "correct" else "faithful")
        if classify == "record":
            values |= dict(alpha=2)
    elif name != "seft":
        values |= dict(bidirectional=int(classify == "time"))
    values |= OWN.get(name, {}) | more
    return types.SimpleNamespace(**values, variational=name in VARIATIONAL)


def case(name, kind="record", preset="correct", suffix="", **more):
    """kind: record, time (a class per time) or interp."""
    settings = make_settings(name, preset, "none" if kind == "interp" else kind, more)
    parts = ["baseline", name, "" if kind == "record" else kind, "" if preset == "correct" else preset, suffix]
    records = {"record": "mixed", "time": "mixed-time", "interp": "mixed-shown"}[kind]
    targets = "mixed" if kind == "interp" else "mixed-held" if name == "ip-nets" and kind == "record" else ""
    return Case("-".join(part for part in parts if part), records, settings, targets)


def all_cases():
    names = GRU + ("phased-lstm", "ip-nets", "seft") + VARIATIONAL + ("ode-rnn",)
    cases = [case(name, kind) for name in names for kind in ("record", "time")]
    cases += [case(name, preset="faithful") for name in names if name not in ("phased-lstm", "seft")]
    cases += [case(name, "interp") for name in VARIATIONAL]
    return cases + [
        case("gru-d", "time", "faithful"), case("ode-rnn", "time", "faithful"),
        case("ode-rnn", suffix="next", next=1, noise_std=0.25, alpha=2),
        case("ode-rnn", suffix="rk4", rec_solver="rk4", ode_steps=10),
        case("l-ode-rnn", "interp", suffix="rk4", dec_solver="rk4", ode_steps=10),
        case("l-ode-rnn", "interp", suffix="euler", dec_solver="euler", ode_steps=20),
        case("l-ode-ode", "interp", "faithful"),
    ]


# ---- Weights ---------------------------------------------------------------------------------------------------------

SPECIAL = {  # by the end of the name: replaces the scale of the rule, as a function of u
    "input_decay.weight": lambda u: 2 * u,
    "input_decay.bias": lambda u: u / 2,
    "rec.mean": lambda u: u / 2,
    "log_tau": lambda u: u,
    "shift": lambda u: u,
    "open": lambda u: 0.5 + u / 4,
    "kernel": lambda u: u,
    "query": lambda u: 4 * u,
}


def scale_of(owner):
    fan = getattr(owner, "in_features", None) or getattr(owner, "hidden_size", None)
    return power_below(fan)


def weight_of(name, owner, shape):
    u = golden.rule(name, math.prod(shape)).reshape(shape)
    for end, special in SPECIAL.items():
        if name.endswith(end):
            return special(u)
    if name.endswith("cross.weight"):
        return np.eye(shape[0]) + u / 4
    # Fields are steeper: if a step's error were far below the tolerance, rounding alone would decide the size of the
    # next step.
    return u * scale_of(owner) * (4 if ".ode." in name and name.endswith("weight") else 1)


def set_weights(model):
    named = {}
    for path, owner in model.named_modules():
        for leaf, parameter in owner.named_parameters(recurse=False):
            name = f"{path}.{leaf}"
            if any(parameter is other for other in named.values()):
                continue
            values = np.float32(weight_of(name, owner, tuple(parameter.shape))).astype(np.float64)
            parameter.data = real(golden.nudged(name, values))
            named[name] = parameter
    assert all(len(name) <= 47 for name in named) and len(named) <= 64
    return named


# ---- Losses ----------------------------------------------------------------------------------------------------------

def cross_entropy(logits, labels, samples=1):
    return F.cross_entropy(logits, torch.tensor(np.tile(labels, samples).astype(np.int64)), ignore_index=-1)


def classified(case, model, records, labels):
    result = {"logits": torch.cat([model.logits(record) for record in records])}
    result["loss"] = result["ce"] = cross_entropy(result["logits"], labels)
    if case.targets or getattr(case.settings, "next", 0):  # IP-Nets: held-out cells; otherwise the next row
        result["recon"] = torch.stack([model.reconstruction(record) for record in records]).mean()
        result["loss"] = result["recon"] + case.settings.alpha * result["ce"]
    return result


def log_likelihood(case, states, model, record, queries):
    """(S) log p of the targets, and the prediction for each of them (S, n)."""
    time, channel, value = record.targets
    out = model.dec.out(states)                                             # (S, Q, D)
    found = out[:, torch.searchsorted(queries, real(time)), torch.tensor(channel.astype(np.int64))]
    return torch.distributions.Normal(found, case.settings.noise_std).log_prob(real(value)).sum(1), found


def bound(case, logp, divergence, cells):
    value = (logp - case.kl_coef * divergence) / (cells if case.settings.norm else 1)
    if case.settings.bound == "elbo":
        return value.mean()
    return torch.logsumexp(value, 0) - math.log(len(value))


def divergence_of(mean, raw):
    normal = torch.distributions.Normal
    return torch.distributions.kl_divergence(normal(mean, spread(raw)), normal(0.0, 1.0)).sum()


def variational(case, model, records, labels):
    s = case.settings
    posteriors = [model.posterior(record) for record in records]
    noise = by_rule("noise", s.samples, len(records), s.latent, scale=2.0)
    z = [mean + noise[:, b] * spread(raw) for b, (mean, raw) in enumerate(posteriors)]
    mean, raw = (torch.stack(part) for part in zip(*posteriors))
    result = {"mean": mean, "raw": raw, "logvar": 2 * torch.log(spread(raw))}
    if s.classify == "time":
        logits = [model.classifier(model.decode(z[b], record, record.queries)) for b, record in enumerate(records)]
        result["logits"] = torch.cat(logits, 1).flatten(0, 1)
        result["loss"] = result["ce"] = cross_entropy(result["logits"], labels, s.samples)
        return result
    bounds, divergences, predictions = [], [], []
    for b, record in enumerate(records):
        cells = len(record.targets[0])
        queries = torch.unique(real(record.targets[0]))
        logp, found = log_likelihood(case, model.decode(z[b], record, queries), model, record, queries)
        predictions.append(found)
        if cells:  # skip_empty
            divergence = divergence_of(*posteriors[b])
            bounds.append(bound(case, logp, divergence, cells))
            divergences.append(divergence / cells)
    result |= {"pred": torch.cat(predictions, 1), "kl": torch.stack(divergences).mean()}
    result["loss"] = result["recon"] = -torch.stack(bounds).mean()
    if s.classify == "record":
        result["logits"] = model.classifier(torch.stack(z, 1).flatten(0, 1))
        result["ce"] = cross_entropy(result["logits"], labels, s.samples)
        result["loss"] = result["recon"] + s.alpha * result["ce"]
    return result


def run(case, sets, tried):
    Field.all_tried = 0
    records = [make_record(case, sets, b) for b in range(sets[case.records].size)]
    model = build(case.settings)
    parameters = set_weights(model)
    compute = variational if case.settings.variational else classified
    result = compute(case, model, records, sets[case.records].label)
    moving = {name: parameter for name, parameter in parameters.items() if parameter.requires_grad}
    found = golden.gradients(result["loss"], moving)
    for name, parameter in parameters.items():  # gradients of frozen weights are zero
        result["grad." + name] = found.get("grad." + name, torch.zeros_like(parameter))
    tried.append(Field.all_tried)
    return result


def export_case(case, sets, folder):
    torch.set_default_dtype(torch.float64)
    out = golden.Golden(case.metadata())
    for name, parameter in set_weights(build(case.settings)).items():
        out.put(name, parameter.detach().numpy(), "F32")
    if case.settings.variational:
        shape = case.settings.samples, sets[case.records].size, case.settings.latent
        out.put("noise", 2 * golden.rule("noise", math.prod(shape)).reshape(shape), "F32")
    tried = []
    out.put_results(golden.both(lambda: run(case, sets, tried)))
    assert tried[0::2] == tried[1::2], f"{case.name}: float32 takes other steps"
    out.write(folder / f"{case.name}.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="golden", type=Path)
    parser.add_argument("--only", help="one file, by its name without .safetensors")
    parser.add_argument("--runs", default=6, type=int, help="measurements of the float32 error; the largest counts")
    args = parser.parse_args()
    golden.Runs.count = args.runs
    torch.set_num_threads(1)
    sets = all_records()
    jobs = {RECORDS_FILE: lambda: write_records(args.out / f"{RECORDS_FILE}.safetensors", sets),
            "ode-solvers": lambda: export_solvers(args.out / "ode-solvers.safetensors")}
    for made in all_cases():
        jobs[made.name] = lambda made=made: export_case(made, sets, args.out)
    if args.only and args.only not in jobs:
        sys.exit("golden_baselines: no such file; there are: " + " ".join(jobs))
    for name in [args.only] if args.only else jobs:
        jobs[name]()
        print(name, flush=True)


if __name__ == "__main__":
    main()
