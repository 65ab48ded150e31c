#!/usr/bin/env python3
"""Writes golden/torch-*.pt, checkpoints as the published scripts save them, and beside each what is in it as safetensors.

    golden_torchfile.py REFERENCE OUT     REFERENCE: a checkout of the published code; OUT: the folder golden/

The models are the reference's own classes, made small (the hidden layers of 50 and 300 units are replaced), after a few steps of
Adam. Both forms of torch.save occur, and pickle protocols 2 to 4.

torch-NAME.safetensors
    metadata          what a converted model is: settings under the names of mtan_config, `epoch`, `step` (0: no optimiser)
    rec.*, dec.*, classifier.*                F32: the weights
    moment1.NAME, moment2.NAME                F32: exp_avg and exp_avg_sq of the parameter NAME
torch-types.safetensors holds every tensor of torch-types.pt as F64, all types and layouts that are read.

The stream form names its storages by their addresses in memory and sorts them by name. Here they are named 0, 1, ... in the
order of their first use, so that the same versions write the same bytes; nothing else is touched.
"""
import argparse
import collections
import io
import pickle
import pickletools
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn

import golden

HEAD, MLP = 5, 3


def namespace(**more):
    """The args that the scripts save; strings, None, bool, int and float occur."""
    return argparse.Namespace(**{"niters": 300, "lr": 0.001, "std": 0.01, "save": 1, "fname": None, "seed": 0,
                                 "batch_size": 50, "quantization": 0.016, "learn_emb": True, "dataset": "physionet",
                                 **more})


def small_mlp(model, name, out):
    first = getattr(model, name)[0]
    setattr(model, name, nn.Sequential(nn.Linear(first.in_features, MLP), nn.ReLU(), nn.Linear(MLP, out)))


def small_head(hidden, classes):
    return nn.Sequential(nn.Linear(hidden, HEAD), nn.ReLU(), nn.Linear(HEAD, HEAD), nn.ReLU(), nn.Linear(HEAD, classes))


def step_adam(modules, order, steps):
    """Adam on the parameters in the script's order, with gradients from a generator."""
    parameters = [p for name in order for p in modules[name].parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.001)
    for _ in range(steps):
        for p in parameters:
            p.grad = torch.randn(p.shape)
        optimizer.step()
    return optimizer


def checkpoint(modules, order, steps, epoch, args):
    optimizer = step_adam(modules, order, steps)
    saved = {"args": args, "epoch": epoch}
    saved |= {name + "_state_dict": module.state_dict() for name, module in modules.items()}
    saved |= {"optimizer_state_dict": optimizer.state_dict(), "loss": -torch.ones((), requires_grad=True)}
    names = [f"{name}.{key}" for name in order for key, _ in modules[name].named_parameters()]
    expected = {f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}
    for i, state in saved["optimizer_state_dict"]["state"].items():
        expected["moment1." + names[i]] = state["exp_avg"]
        expected["moment2." + names[i]] = state["exp_avg_sq"]
    return saved, expected


# ---- cases: the checkpoint, its tensors, and the settings of the converted model
# --------------------------------------

def interp(models):
    query = torch.linspace(0, 1., 5)
    rec = models.enc_mtan_rnn(3, query, 2, 4, 4, 2, True, "cpu")
    dec = models.dec_mtan_rnn(3, query, 2, 2, 4, 1, True, "cpu")
    small_mlp(rec, "hiddens_to_z0", 4)
    small_mlp(dec, "z0_to_obs", 3)
    args = namespace(latent_dim=2, rec_hidden=4, gen_hidden=2, k_iwae=7, enc="mtan_rnn", dec="mtan_rnn", norm=True,
                     kl=True, enc_num_heads=2, dec_num_heads=1, num_ref_points=5, sample_tp=0.5)
    saved = checkpoint({"rec": rec, "dec": dec}, ["dec", "rec"], 3, 10, args)
    return *saved, dict(kind="full", classify="none", encoder="attention", decoder="attention", embedding="learned",
                        channels=3, embed=4, enc_heads=2, dec_heads=1, enc_hidden=4, dec_hidden=2, latent=2,
                        mlp_hidden=MLP, ref_points=5, samples=7, norm=1, kl_anneal=1, noise_std=0.01, epoch=10, step=3)


def full(models):
    query = torch.linspace(0, 1., 6)
    rec = models.enc_mtan_rnn(2, query, 3, 4, 4, 1, False, "cpu")
    dec = models.dec_mtan_rnn(2, query, 3, 3, 4, 2, False, "cpu")
    classifier = models.create_classifier(3, 4, 2)
    small_mlp(rec, "hiddens_to_z0", 6)
    small_mlp(dec, "z0_to_obs", 2)
    classifier.classifier = small_head(4, 2)
    args = namespace(latent_dim=3, rec_hidden=4, gen_hidden=3, k_iwae=1, enc="mtan_rnn", dec="mtan_rnn", norm=True,
                     kl=False, alpha=5, learn_emb=False, enc_num_heads=1, dec_num_heads=2, num_ref_points=6)
    modules = {"rec": rec, "dec": dec, "classifier": classifier}
    saved = checkpoint(modules, list(modules), 0, 300, args)
    return *saved, dict(kind="full", classify="record", encoder="attention", decoder="attention", embedding="fixed",
                        channels=2, classes=2, embed=4, enc_heads=1, dec_heads=2, enc_hidden=4, dec_hidden=3, latent=3,
                        mlp_hidden=MLP, head_hidden=HEAD, ref_points=6, samples=1, norm=1, kl_anneal=0, alpha=5,
                        epoch=300, step=0)


def enc(models):
    rec = models.enc_mtan_classif(3, torch.linspace(0, 1., 128), 4, 4, 2, True, 10., "cpu")
    rec.classifier = small_head(4, 2)
    saved = checkpoint({"rec": rec}, ["rec"], 0, 200, namespace(rec_hidden=4, enc="mtan_enc", num_heads=2, freq=10.))
    return *saved, dict(kind="enc", classify="record", encoder="attention", embedding="learned", channels=3, classes=2,
                        embed=4, enc_heads=2, enc_hidden=4, head_hidden=HEAD, ref_points=128, epoch=200, step=0)


def activity(models):
    """A bare state_dict, as people pass weights around."""
    rec = models.enc_mtan_classif_activity(4, 4, 4, 1, True, 10., "cpu")
    state = rec.state_dict()
    return state, {"rec." + key: value for key, value in state.items()}, dict(
        kind="enc", classify="time", encoder="attention", embedding="learned", reference="observed", channels=4,
        classes=11, embed=4, enc_heads=1, enc_hidden=4, head_hidden=0, epoch=0, step=0)


def rnn3(models):
    query = torch.linspace(0, 1., 5)
    rec, dec = models.enc_rnn3(2, query, 2, 3, 4, False, True, "cpu"), models.dec_interp(2, query, 2, 2, "cpu")
    small_mlp(rec, "hiddens_to_z0", 4)
    small_mlp(dec, "z0_to_obs", 2)
    args = namespace(enc="enc_rnn3", dec="interp", num_ref_points=5, k_iwae=2, norm=False, kl=True)
    saved = checkpoint({"rec": rec, "dec": dec}, ["dec", "rec"], 0, 20, args)
    return *saved, dict(kind="full", classify="none", encoder="rnn3", decoder="rbf", embedding="learned", channels=2,
                        embed=4, enc_heads=1, enc_hidden=3, dec_hidden=2, latent=2, mlp_hidden=MLP, ref_points=5,
                        samples=2, norm=0, kl_anneal=1, epoch=20, step=0)


def types(_):
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) / 8
    tensors = {
        "contiguous": base, "transposed": base.transpose(0, 2), "sliced": base[:, 1:, ::2], "diagonal": base[0].diagonal(),
        "scalar": torch.tensor(-2.5), "empty": torch.zeros(0, 3), "parameter": nn.Parameter(base[1].clone()),
        "half": torch.tensor([1.5, -0.25, 6e-8, 65504.]).half(), "bfloat": torch.tensor([1.5, -3e38, 1e-39]).bfloat16(),
        "double": torch.tensor([1 / 3, -1e300], dtype=torch.float64), "long": torch.tensor([-2**53, 7]),
        "int": torch.tensor([-2**31, 2**31 - 1], dtype=torch.int32), "short": torch.tensor([-2**15], dtype=torch.int16),
        "char": torch.tensor([-128, 127], dtype=torch.int8), "byte": torch.tensor([255, 0], dtype=torch.uint8),
        "bool": torch.tensor([True, False, True])}
    plain = collections.OrderedDict(text="naïve ☃", long_int=-2**40, wide=2**31, negative=-3, real=0.1, nothing=None,
                                    flags=(True, False), nested=[[1, 2], {"a": ()}])
    return {"tensors": tensors, "plain": plain}, tensors, {}


# ---- saving -----------------------------------------------------------------------------------------------------------

def save_zip(saved, path, protocol):
    torch.save(saved, path, pickle_protocol=protocol)


def save_stream(saved, path, protocol):
    buffer = io.BytesIO()
    torch.save(saved, buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    for _ in range(3):
        pickle.load(buffer)
    head = buffer.getvalue()[:buffer.tell()]
    ops = list(pickletools.genops(buffer))  # moves the buffer past the object
    body = buffer.getvalue()[len(head):buffer.tell()]
    keys = pickle.load(buffer)
    element = {"FloatStorage": 4, "DoubleStorage": 8}
    sizes, order, kind = {}, [], 4
    for op, arg, _ in ops:
        if op.name == "GLOBAL" and arg.split()[1] in element:
            kind = element[arg.split()[1]]
        if op.name == "BINUNICODE" and arg in keys and arg not in order:
            order.append(arg)
            sizes[arg] = kind
    storages = {}
    for key in keys:
        count = buffer.read(8)
        storages[key] = count + buffer.read(int.from_bytes(count, "little") * sizes[key])
    assert not buffer.read(1) and sorted(order) == keys
    renamed = {key: str(i) for i, key in enumerate(order)}
    for key in keys:
        def word(text):
            return b"X" + len(text).to_bytes(4, "little") + text.encode()
        body = body.replace(word(key), word(renamed[key]))
    order.sort(key=renamed.get)
    tail = pickle.dumps([renamed[key] for key in order], protocol=protocol)
    path.write_bytes(head + body + tail + b"".join(storages[key] for key in order))


CASES = [("interp", interp, save_stream, 2), ("full", full, save_zip, 2), ("enc", enc, save_zip, 4),
         ("activity", activity, save_stream, 3), ("rnn3", rnn3, save_zip, 3), ("types", types, save_zip, 2)]


def main():
    reference, out = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(reference / "src"))
    warnings.filterwarnings("ignore")
    import models
    for name, make, save, protocol in CASES:
        torch.manual_seed(0)
        saved, expected, settings = make(models)
        path = out / f"torch-{name}.pt"
        save(saved, path, protocol)
        torch.load(path, weights_only=False)  # PyTorch can still read it
        file = golden.Golden(settings)
        for key, value in expected.items():
            array = value.detach().double().numpy() if name == "types" else value.detach().numpy()
            file.put(key, array, "F64" if name == "types" else "F32")
        file.write(out / f"torch-{name}.safetensors")


if __name__ == "__main__":
    main()
