#!/usr/bin/env python3
"""Writes golden/losses-latent-ode.safetensors: the first training losses of latent_ode's own models.

    golden_losses_latent.py CHECKOUT OUT

CHECKOUT is YuliaRubanova/latent_ode at commit c0682d4. Its classes, their forward passes, losses (compute_all_losses),
gradients, optimiser and schedule in float64; a batch is a mean over records, each of which goes through alone, with one
sample of the latent state. Weights, records and noise follow the rule of golden/README.md (below). Needs torch,
torchdiffeq; two minutes on one core.

    l-ode-ode, l-ode-rnn    F64 (STEPS): curves, without classes
    l-ode-ode.class, l-ode-rnn.class, ode-rnn.class    F64 (STEPS): the same with 100 times the cross-entropy; ODE-RNN
                                                       tells the next row besides

Records: ROWS rows at (5 j + floor(2.5 (1 + u("losses.time", i)))) / 60; channel c of record r is left out of row j where
j + c + r is a multiple of 3, but for curves, which have one channel and all rows; its value is
u("losses.level", rD + c) + 2 t u("losses.slope", rD + c); the class is 1 where channel 0 rises. Step k takes records
(k BATCH + b) mod RECORDS; noise 2 u("losses.noise", (k BATCH + b) Z + z). Two things of the published models are put
otherwise: its single logit is the difference of two, as this project's softmax has it, and its first input of the
GRU, the gap, comes last. The field of the backward encoder has the other sign, as time is mirrored here.
"""
import os
import sys
import types

import numpy as np
import torch
from torch import nn
from torch.distributions.normal import Normal

import golden
import golden_baselines_check
import golden_rng

ROWS, RECORDS, BATCH, STEPS, LATENT, CHANNELS = 12, 12, 4, 100, 10, 3
SIZES = types.SimpleNamespace(latents=LATENT, rec_dims=20, units=30, gru_units=25, rec_layers=1, gen_layers=1,
                              poisson=False, linear_classif=False)
KL = 0.5


class Difference(nn.Module):
    def forward(self, x):
        return x[..., 1:] - x[..., :1]


def made_record(r, D):
    j = np.arange(ROWS)
    t = np.float32((5 * j + np.floor(2.5 * (1 + golden.rule("losses.time", RECORDS * ROWS)[r * ROWS + j]))) / 60)
    level, slope = (golden.rule(name, RECORDS * D)[r * D:r * D + D] for name in ("losses.level", "losses.slope"))
    mask = np.ones((ROWS, 1)) if D == 1 else ((j[:, None] + np.arange(D) + r) % 3 != 0).astype(float)
    x = np.float32(level + 2 * t.astype(float)[:, None] * slope) * mask
    t, x, mask = golden.real(t), golden.real(x)[None], golden.real(mask)[None]
    return {"tp_to_predict": t, "observed_tp": t, "observed_data": x, "data_to_predict": x, "observed_mask": mask,
            "mask_predicted_data": mask, "labels": golden.real([[float(slope[0] > 0)]]), "mode": "interp"}


def fill(prefix, module, rename=lambda name: name):
    """By the rule, under this project's names."""
    for name, parameter in module.named_parameters():
        owner = module.get_submodule(name.rpartition(".")[0])
        fan = getattr(owner, "in_features", None) or owner.hidden_size
        parameter.data = golden.by_rule(f"{prefix}.{rename(name)}", *parameter.shape, scale=golden.power_below(fan))


def fill_field(prefix, solver, sign):
    fill(prefix, solver.ode_func.gradient_net)
    for parameter in solver.ode_func.gradient_net[-1].parameters():
        parameter.data *= sign


def fill_latent(model, odernn):
    if odernn:
        fill("rec.gru", model.encoder_z0.GRU_update)
        fill_field("rec.ode", model.encoder_z0.z0_diffeq_solver, -1)
        fill("rec.z0", model.encoder_z0.transform_z0)
    else:
        fill("rec.rnn", model.encoder_z0.gru_rnn)
        weight = model.encoder_z0.gru_rnn.weight_ih_l0
        weight.data = weight.data.roll(1, 1)
        fill("rec.z0", model.encoder_z0.hiddens_to_z0)
    fill_field("dec.ode", model.diffeq_solver, 1)
    fill("dec.out", model.decoder.decoder, lambda name: name[2:])


def with_two_logits(model):
    model.classifier[-1] = nn.Linear(model.classifier[-1].in_features, 2)
    fill("classifier", model.classifier)
    model.classifier.append(Difference())


def latent_model(theirs, encoder, D, classify):
    args = types.SimpleNamespace(**vars(SIZES), z0_encoder=encoder, classif=classify, dataset="physionet")
    prior = Normal(torch.zeros(1), torch.ones(1))
    model = theirs.create_latent_ode_model.create_LatentODE_model(args, D, prior, 0.01, "cpu")
    fill_latent(model, encoder == "odernn")
    if classify:
        with_two_logits(model)
    return model


def ode_rnn_model(theirs, D):
    N = SIZES.rec_dims
    net = theirs.utils.create_net(N, N, SIZES.rec_layers, SIZES.units)
    solver = theirs.diffeq_solver.DiffeqSolver(D, theirs.ode_func.ODEFunc(D, N, net), "euler", N)
    model = theirs.ode_rnn.ODE_RNN(D, N, z0_diffeq_solver=solver, n_gru_units=SIZES.gru_units, concat_mask=True,
                                   obsrv_std=0.01, use_binary_classif=True, train_classif_w_reconstr=True)
    fill("rec.gru", model.ode_gru.GRU_update)
    fill_field("rec.ode", solver, 1)
    fill("dec", model.decoder)
    with_two_logits(model)
    return model


def losses(theirs, model, D):
    records = [made_record(r, D) for r in range(RECORDS)]
    noise = 2 * golden.by_rule("losses.noise", STEPS * BATCH, LATENT)
    optimizer = torch.optim.Adamax((p for p in model.parameters() if p.requires_grad), lr=1e-2)
    found = []
    for step in range(STEPS):
        optimizer.zero_grad()
        theirs.utils.update_learning_rate(optimizer, decay_rate=0.999, lowest=1e-3)
        total = 0
        for b in range(BATCH):
            drawn = noise[step * BATCH + b]
            theirs.utils.sample_standard_gaussian = lambda mean, std: mean + drawn * std
            loss = model.compute_all_losses(records[(step * BATCH + b) % RECORDS], n_traj_samples=1, kl_coef=KL)["loss"]
            (loss / BATCH).backward()
            total += loss.item() / BATCH
        optimizer.step()
        found.append(total)
    return np.array(found)


def run(theirs):
    makers = {"l-ode-ode": (1, lambda: latent_model(theirs, "odernn", 1, False)),
              "l-ode-rnn": (1, lambda: latent_model(theirs, "rnn", 1, False)),
              "l-ode-ode.class": (CHANNELS, lambda: latent_model(theirs, "odernn", CHANNELS, True)),
              "l-ode-rnn.class": (CHANNELS, lambda: latent_model(theirs, "rnn", CHANNELS, True)),
              "ode-rnn.class": (CHANNELS, lambda: ode_rnn_model(theirs, CHANNELS))}
    tensors = {}
    for name, (D, make) in makers.items():
        tensors[name] = losses(theirs, make(), D)
        print(name, tensors[name][[0, -1]], file=sys.stderr, flush=True)
    return tensors


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.set_default_dtype(torch.float64)
    theirs = golden_baselines_check.load(sys.argv[1])
    golden_rng.write(os.path.join(sys.argv[2], "losses-latent-ode.safetensors"), run(theirs))


if __name__ == "__main__":
    main()
