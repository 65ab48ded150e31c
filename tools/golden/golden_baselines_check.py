#!/usr/bin/env python3
"""Compares the models behind golden/baseline-* with independent code; prints the largest differences, fails above
1e-12.

    tools/golden/golden_baselines_check.py CHECKOUT

CHECKOUT is YuliaRubanova/latent_ode at commit c0682d4. In float64, on every record of two rows or more, alone in its
batch: the faithful GRU models against its run_rnn; the faithful ODE-RNN against its run_odernn (except on the record
whose gaps lie on the edge of its step count), and the likelihood of the next row that it trains with; both encoders of
its latent ODE; RNN-VAE's faithful encoder against its run_rnn on what its reversal does to one record. In addition:
Phased-LSTM with an open gate against torch.nn.LSTM, and its gate; IP-Nets against the dense formulas of its
publication; SeFT's pooling against torch's attention.
"""
import importlib
import math
import sys
import types

import torch
from torch import nn

import golden
import golden_baselines as baselines
import golden_baselines_models as models

LIMIT = 1e-12


def load(checkout):
    """Its modules. Its other dependencies besides torch are only for plots and metrics."""
    for name in ("pandas", "sklearn", "matplotlib"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.path.insert(0, checkout)
    sys.dont_write_bytecode = True
    names = "rnn_baselines", "encoder_decoder", "diffeq_solver", "ode_func", "ode_rnn", "utils", "create_latent_ode_model"
    return types.SimpleNamespace(**{name: importlib.import_module("lib." + name) for name in names})


def made(case, sets):
    """A case's model with its weights, and its records of two rows or more."""
    model = models.build(case.settings)
    baselines.set_weights(model)
    records = [baselines.make_record(case, sets, b) for b in range(sets[case.records].size)]
    return model, [record for record in records if len(record.rows) > 1]


def copied(cell, rnn):
    """A cell with the weights of an nn.GRU."""
    for leaf in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, leaf).data = getattr(rnn, leaf + "_l0").data
    return cell


def distance(a, b):
    return (a - b).abs().max().item()


def gru_models(theirs, sets):
    """Its run_rnn: states at every row."""
    found = {}
    for name in baselines.GRU:
        model, records = made(baselines.case(name, preset="faithful"), sets)
        rec, N = model.rec, model.settings.enc_hidden
        D = model.settings.channels
        if rec.decays:
            cell = copied(theirs.rnn_baselines.GRUCellExpDecay(2 * D, D, N, "cpu"), rec.rnn)
            cell.decay[0].weight.data, cell.decay[0].bias.data = rec.decay.weight.data, rec.decay.bias.data
        else:
            cell = copied(nn.GRUCell(2 * D + 1, N), rec.rnn)
        decay = (rec.input_decay.weight[None], rec.input_decay.bias[None]) if rec.imputes else None
        worst = 0
        for record in records:
            gaps = models.until_next(record.rows.t)[None, :, None]
            _, states = theirs.rnn_baselines.run_rnn(record.rows.x[None], gaps, cell, mask=record.rows.m[None],
                                                     input_decay_params=decay)
            worst = max(worst, distance(states[0, 0], rec(record.rows)))
        found[name] = worst
    return found


def copied_unit(theirs, rec, solver):
    settings = rec.settings
    encoder = theirs.encoder_decoder.Encoder_z0_ODE_RNN(settings.enc_hidden, 2 * settings.channels, solver,
                                                        z0_dim=settings.channels, n_gru_units=settings.gru_units)
    encoder.GRU_update.load_state_dict(rec.gru.state_dict())
    return encoder


def solver_of(theirs, rec, method):
    settings = rec.settings
    net = theirs.utils.create_net(settings.enc_hidden, settings.enc_hidden, settings.rec_layers, settings.units)
    field = theirs.ode_func.ODEFunc(settings.channels, settings.enc_hidden, net)
    net.load_state_dict(rec.ode.state_dict())
    return theirs.diffeq_solver.DiffeqSolver(settings.channels, field, method, settings.enc_hidden)


def ode_rnn(theirs, sets):
    """Its run_odernn, forward."""
    model, records = made(baselines.case("ode-rnn", preset="faithful"), sets)
    encoder = copied_unit(theirs, model.rec, solver_of(theirs, model.rec, "euler"))
    worst = 0
    for record in records[:-1]:  # the last one's gaps are whole multiples of a fiftieth of its span
        seen = torch.cat((record.rows.x, record.rows.m), 1)[None]
        states = encoder.run_odernn(seen, record.rows.t, run_backwards=False)[2]
        worst = max(worst, distance(states[0, :, 0], model.rec(record.rows)))
    return {"ode-rnn": worst}


def next_row(theirs, sets):
    """The likelihood that its ODE_RNN is trained with in addition to the classes, without the constant of the
    density."""
    model, records = made(baselines.case("ode-rnn", preset="faithful", next=1, noise_std=0.25, alpha=2), sets)
    s, worst = model.settings, 0
    solver = solver_of(theirs, model.rec, "euler")
    other = theirs.ode_rnn.ODE_RNN(s.channels, s.enc_hidden, z0_diffeq_solver=solver, n_gru_units=s.gru_units,
                                   concat_mask=True, obsrv_std=s.noise_std)
    other.ode_gru, other.decoder = copied_unit(theirs, model.rec, solver), model.dec
    for record in records[:-1]:
        t, x, m = record.rows.t, record.rows.x[None], record.rows.m[None]
        told, _ = other.get_reconstruction(t, x, t, mask=m)
        constant = (math.log(s.noise_std) + math.log(2 * math.pi) / 2) * (m.sum(1) > 0).sum() / s.channels
        loss = -other.get_gaussian_likelihood(x, told, mask=m).mean()
        worst = max(worst, distance(loss - constant, model.reconstruction(record)))
    return {"ode-rnn, the next row": worst}


def ode_encoder(theirs, sets):
    """Its backward run, which goes in negative time. Ours goes in mirrored time, so the field's sign changes."""
    model, records = made(baselines.case("l-ode-ode", preset="faithful"), sets)
    rec, worst = model.rec, 0
    encoder = copied_unit(theirs, rec, solver_of(theirs, rec, "euler"))
    for parameter in encoder.z0_diffeq_solver.ode_func.gradient_net[-1].parameters():
        parameter.data.neg_()
    for record in records[:-1]:
        seen = torch.cat((record.rows.x, record.rows.m), 1)[None]
        y, s = encoder.run_odernn(seen, record.rows.t, run_backwards=True)[:2]
        worst = max(worst, distance(torch.cat((y, s), -1).flatten(), rec.run(record.rows.mirrored())[1]))
    return {"l-ode-ode encoder": worst}


def rnn_encoder(theirs, sets):
    """Encoder_z0_RNN, whose input starts with the gap."""
    model, records = made(baselines.case("l-ode-rnn", preset="faithful"), sets)
    s, rec, worst = model.settings, model.rec, 0
    encoder = theirs.encoder_decoder.Encoder_z0_RNN(s.latent, 2 * s.channels, lstm_output_size=s.enc_hidden)
    weights = rec.rnn.state_dict()
    weights["weight_ih_l0"] = weights["weight_ih_l0"].roll(1, 1)
    encoder.gru_rnn.load_state_dict(weights)
    encoder.hiddens_to_z0 = rec.z0
    for record in records:
        mean, std = encoder(torch.cat((record.rows.x, record.rows.m), 1)[None], record.rows.t)
        ours = rec(record.rows).chunk(2)
        worst = max(worst, distance(mean.flatten(), ours[0]), distance(std.flatten(), ours[1].abs()))
    return {"l-ode-rnn encoder": worst}


def vae_encoder(theirs, sets):
    """RNN_VAE.get_reconstruction up to z0: `reverse` leaves a batch of one record unchanged and reverses the gaps."""
    model, records = made(baselines.case("rnn-vae", preset="faithful"), sets)
    rec, reverse, worst = model.rec, theirs.utils.reverse, 0
    cell = copied(nn.GRUCell(2 * model.settings.channels + 1, model.settings.enc_hidden), rec.rnn)
    for record in records:
        gaps = torch.cat((reverse(record.rows.t[1:] - record.rows.t[:-1]), torch.zeros(1)))[None, :, None]
        state, _ = theirs.rnn_baselines.run_rnn(reverse(record.rows.x[None]), gaps, cell,
                                                mask=reverse(record.rows.m[None]))
        worst = max(worst, distance(rec.z0(state[0]), rec(record.rows)))
    return {"rnn-vae encoder": worst}


def phased_lstm(sets):
    """With the gate open it equals a plain LSTM; and the gate itself."""
    model, records = made(baselines.case("phased-lstm"), sets)
    rec, worst = model.rec, 0
    with torch.no_grad():
        rec.gate = lambda t: torch.ones(rec.rnn.hidden_size)
        for record in records:
            fed = torch.cat((models.filled_forward(record.rows), record.rows.m), 1)
            worst = max(worst, distance(rec.rnn(fed)[0], rec(record.rows)))
        del rec.gate
        # The gate itself, from the definition of the phase with a modulo.
        t = torch.linspace(-1, 1, 401)
        tau, scaled = torch.exp(rec.log_tau), rec.scale * t[:, None] - rec.shift
        phase = torch.remainder(scaled, tau) / tau
        r = rec.open.expand_as(phase)
        k = models.LEAK * phase
        k[phase < r] = (2 - 2 * phase / r)[phase < r]
        k[phase < r / 2] = (2 * phase / r)[phase < r / 2]
        worst = max(worst, distance(k, torch.stack([rec.gate(each) for each in t])))
    return {"phased-lstm": worst}


def ip_nets(sets):
    """Dense tensors and log masks, as in the publication's code, on records whose channels have all been observed."""
    model, _ = made(baselines.case("ip-nets", preset="faithful"), sets)
    rec, D, n = model.rec, model.settings.channels, 9
    time = torch.linspace(0, 1, n)
    x, m = golden.by_rule("check.x", n, D), torch.ones(n, D)
    m[golden.by_rule("check.m", n, D) < 0.2] = 0
    m[0] = 1
    row, channel = m.nonzero(as_tuple=True)
    cells = models.Cells(time[row], channel, x[row, channel])
    points = rec.scale * torch.linspace(0, 1, 6)
    rate = torch.log(1 + torch.exp(rec.kernel))
    score = -rate[:, None, None] * (rec.scale * time[None, :, None] - points) ** 2  # (D, n, K)
    logmask = torch.log(m.T)[:, :, None]
    w = torch.logsumexp(score + logmask, 1)
    y = torch.einsum("dnk,dn->dk", torch.exp(score + logmask - w[:, None]), x.T)
    sharp = torch.exp(10 * score + logmask - torch.logsumexp(10 * score + logmask, 1)[:, None])
    y_sharp = torch.einsum("dnk,dn->dk", sharp, x.T)
    y, w = y.T, w.T
    mean = y.mean(0)
    chi = (torch.exp(w - torch.logsumexp(w, 1)[:, None]) * (y - mean)) @ rec.cross.weight.T + mean
    dense = torch.cat((chi, torch.exp(w), y_sharp.T - chi), 1)
    return {"ip-nets": distance(dense, rec.features(cells, torch.linspace(0, 1, 6)))}


def seft(sets):
    """Its attention against torch's own, on the keys and values of one record."""
    model, records = made(baselines.case("seft"), sets)
    rec, s, cells = model.rec, model.settings, records[0].cells
    caught = {}
    rec.key.register_forward_hook(lambda module, fed, out: caught.update(key=out))
    rec.phi.register_forward_hook(lambda module, fed, out: caught.update(value=out))
    rec.rho.register_forward_pre_hook(lambda module, fed: caught.update(pooled=fed[0]))
    rec(cells)
    key = caught["key"].view(-1, s.enc_heads, s.latent).transpose(0, 1)
    value = caught["value"].expand(s.enc_heads, -1, -1)
    pooled = nn.functional.scaled_dot_product_attention(rec.query[:, None], key, value)
    return {"seft pooling": distance(pooled.flatten(), caught["pooled"].flatten())}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_default_dtype(torch.float64)
    theirs, sets = load(sys.argv[1]), baselines.all_records()
    found = {}
    for check in (gru_models, ode_rnn, next_row, ode_encoder, rnn_encoder, vae_encoder):
        found |= check(theirs, sets)
    for check in (phased_lstm, ip_nets, seft):
        found |= check(sets)
    for name, worst in found.items():
        print(f"{name:20} {worst:.1e}")
    if not all(worst <= LIMIT for worst in found.values()):
        sys.exit("golden_baselines_check: differences above the limit")


if __name__ == "__main__":
    main()
