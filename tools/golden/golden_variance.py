#!/usr/bin/env python3
"""Writes golden/variance.safetensors: mTAND-Full with a learned variance, by a PyTorch module written for it.

    golden_variance.py OUT     OUT: the folder golden/

The published code has no such model. Attention, GRUs and losses are torch's own; the intensity is its logsumexp. Means, standard
deviations, the bound and its gradient in float64. Needs torch and numpy. The same versions give the same bytes.
"""
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden, rule

D, E, K, N, M, Z, P, S = 3, 8, 5, 6, 4, 3, 7, 3  # channels, embedding, points, GRUs, latent, hidden layers, samples
NOISE_STD, KL_WEIGHT = 0.1, 0.7


def unit(name, *shape):
    return torch.tensor(rule(name, math.prod(shape)).reshape(shape))


def shapes(enc_heads, dec_heads):
    """Parameters in the library's order."""
    def linear(name, out, into):
        return [(name + ".weight", (out, into)), (name + ".bias", (out,))]

    def gru(name, into, hidden):
        return [(f"{name}.{kind}_l0{way}", shape) for way in ("", "_reverse")
                for kind, shape in (("weight_ih", (3 * hidden, into)), ("weight_hh", (3 * hidden, hidden)),
                                    ("bias_ih", (3 * hidden,)), ("bias_hh", (3 * hidden,)))]

    def side(prefix, heads, into, width, gru_into, hidden, mlp, out):
        return (linear(prefix + "att.linears.0", E, E) + linear(prefix + "att.linears.1", E, E)
                + linear(prefix + "att.linears.2", width, into * heads) + gru(prefix + "gru_rnn", gru_into, hidden)
                + linear(prefix + mlp + ".0", P, 2 * hidden) + linear(prefix + mlp + ".2", out, P)
                + linear(prefix + "periodic", E - 1, 1) + linear(prefix + "linear", 1, 1))

    return (side("rec.", enc_heads, 2 * D, N, N, N, "hiddens_to_z0", 2 * Z)
            + side("dec.", dec_heads, 2 * M, 2 * M, Z, M, "z0_to_obs", D)
            + linear("dec.z0_to_var.0", P, dec_heads * (2 * M + enc_heads * D)) + linear("dec.z0_to_var.2", D, P))


class Model:
    def __init__(self, case, enc_heads, dec_heads, gain):
        self.heads = {"rec.": enc_heads, "dec.": dec_heads}
        self.w = {}
        for name, shape in shapes(enc_heads, dec_heads):
            scale = gain if "linears.0" in name or "linears.1" in name else 3.0 if "periodic" in name else 0.6
            self.w[name] = (scale * unit(f"{case}.{name}", *shape)).requires_grad_()

    def linear(self, name, x):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def scores(self, side, query, key):
        """(H, queries, keys). The model has no bias of the keys, which would shift a whole row of scores."""
        def phi(t):
            t = t[:, None]
            return torch.cat([self.linear(side + "linear", t), torch.sin(self.linear(side + "periodic", t))], 1)
        heads, dk = self.heads[side], E // self.heads[side]
        q = self.linear(side + "att.linears.0", phi(query)).view(-1, heads, dk).transpose(0, 1)
        k = F.linear(phi(key), self.w[side + "att.linears.1.weight"]).view(-1, heads, dk).transpose(0, 1)
        return q @ k.transpose(1, 2) / math.sqrt(dk)

    def gru(self, name, x):
        layer = torch.nn.GRU(x.shape[-1], self.w[name + ".weight_hh_l0"].shape[1], bidirectional=True,
                             batch_first=True).double()
        weights = {key: self.w[f"{name}.{key}"] for key, _ in layer.named_parameters()}
        return torch.func.functional_call(layer, weights, (x,))[0]

    def encode(self, time, channel, value):
        """The posterior (K, 2 Z) and the intensity (K, He D)."""
        points = torch.linspace(0, 1, K, dtype=torch.float64)
        values, counts = [], []
        for score in self.scores("rec.", points, time):  # (K, events)
            of_head, mask, count = [], [], []
            for d in range(D):
                own = score[:, channel == d]
                seen = own.shape[1] > 0
                of_head.append(torch.softmax(own, 1) @ value[channel == d] if seen else torch.zeros(K).double())
                mask.append(torch.full((K,), float(seen), dtype=torch.float64))
                none = torch.zeros(K, 1, dtype=torch.float64)  # exp(0) = 1
                count.append(torch.logsumexp(torch.cat([none, own], 1), 1))
            values += of_head + mask
            counts += count
        x = self.linear("rec.att.linears.2", torch.stack(values, 1))
        hidden = self.gru("rec.gru_rnn", x[None])[0]
        return (self.linear("rec.hiddens_to_z0.2", torch.relu(self.linear("rec.hiddens_to_z0.0", hidden))),
                torch.stack(counts, 1))

    def decode(self, z, intensity, query):
        """Means and standard deviations, both (S, Q, D)."""
        points = torch.linspace(0, 1, K, dtype=torch.float64)
        states = self.gru("dec.gru_rnn", z)  # (S, K, 2 M)
        weights = torch.softmax(self.scores("dec.", query, points), 2)
        attended = torch.cat([w @ states for w in weights], 2)
        dense = torch.cat([w @ intensity for w in weights], 1).expand(S, -1, -1)
        x = torch.relu(self.linear("dec.z0_to_obs.0", self.linear("dec.att.linears.2", attended)))
        v = torch.relu(self.linear("dec.z0_to_var.0", torch.cat([attended, dense], 2)))
        return self.linear("dec.z0_to_obs.2", x), NOISE_STD + F.softplus(self.linear("dec.z0_to_var.2", v))


def record_of(case, b):
    """Events by time; channel 2 is never observed in record 0. Targets are a few cells at its own times."""
    def events(kind, n):
        time = torch.sort((unit(f"{case}.{kind}.time.{b}", n) + 1) / 2)[0].float().double()
        channel = torch.tensor([(3 * i + b) % (2 if b == 0 and kind == "shown" else D) for i in range(n)])
        return time, channel, unit(f"{case}.{kind}.value.{b}", n)
    return events("shown", 7 + b), events("target", 4 + b), unit(f"{case}.noise.{b}", S, K, Z) * 2


def run(golden, case, enc_heads, dec_heads, gain):
    model = Model(case, enc_heads, dec_heads, gain)
    losses, records = [], [record_of(case, b) for b in range(3)]
    for b, (shown, (time, channel, value), noise) in enumerate(records):
        posterior, intensity = model.encode(*shown)
        mean, logvar = posterior[:, :Z], posterior[:, Z:]
        y, sd = model.decode(mean + noise * torch.exp(logvar / 2), intensity, time)
        cell = torch.arange(len(time))
        logp = torch.distributions.Normal(y[:, cell, channel], sd[:, cell, channel]).log_prob(value).sum(1)
        kl = torch.distributions.kl_divergence(
            torch.distributions.Normal(mean, torch.exp(logvar / 2)),
            torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))).sum()
        losses.append(-((logp - KL_WEIGHT * kl) / len(time)).mean())
        total = y.var(0, unbiased=False) + (sd**2).mean(0)
        for kind, (t, c, v) in (("shown", shown), ("target", (time, channel, value))):
            golden.put(f"{case}/{b}/{kind}.time", t.numpy())
            golden.put(f"{case}/{b}/{kind}.channel", c.numpy(), "I32")
            golden.put(f"{case}/{b}/{kind}.value", v.numpy())
        golden.put(f"{case}/{b}/noise", noise.numpy())
        golden.put(f"{case}/{b}/mean", y.mean(0).detach().numpy())
        golden.put(f"{case}/{b}/std", torch.sqrt(total).detach().numpy())
    loss = torch.stack(losses).mean()
    loss.backward()
    golden.put(f"{case}/loss", loss.item())
    for name, w in model.w.items():
        golden.put(f"{case}/weight/{name}", w.detach().numpy())
        dead = w.grad is None  # the bias of the keys
        golden.put(f"{case}/gradient/{name}", np.zeros(w.shape) if dead else w.grad.numpy())


golden = Golden({"golden.variance": "plain heads far"})
run(golden, "plain", 1, 1, 0.6)
run(golden, "heads", 2, 2, 1.0)
run(golden, "far", 1, 1, 8.0)
golden.write(Path(sys.argv[1]) / "variance.safetensors")
