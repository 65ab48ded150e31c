#!/usr/bin/env python3
"""Writes golden/init.safetensors and golden/optim.safetensors: the published models' initial weights, PyTorch's optimisers.

    golden_init.py REFERENCE OUT     REFERENCE: a checkout of the published code; OUT: the folder golden/

Needs torch and numpy, on a CPU with fused multiply-add: without it PyTorch's uniform_ rounds twice.

init: for every case the modules are built in the scripts' order after torch.manual_seed(0), and no weight is touched.
    metadata mtan.CASE   the tensors' names, in the order of the state_dicts, a space between
    CASE/shape           I32 (n, 3): rank, rows, columns (1 for a vector)
    CASE/ends            F32 (n, 8): the first 4 and the last 4 values; a tensor of fewer than 4 repeats from its start
    CASE/hash            I32 (n, 2): FNV-1a 64 of the tensor's little-endian float32 bytes, low half first
optim: 20 steps on 67 weights u("optim.weight", i) with gradients u("optim.gradient", 67 step + i), those of odd steps (from 0)
    divided by 64, so that clipping at 0.5 leaves every second one alone. lr 1e-3, everything else PyTorch's default.
    adam, adamax, clipped (Adam behind clip_grad_norm_ 0.5), adamw (AdamW, weight_decay 0.5, the rate divided by the step), averaged
    (the mean that AveragedModel keeps of adam's weights, decay 0.9): F64 (20, 67), the weights after each step in a float64 run;
    NAME.err32: F64 (20), the norm of what a float32 run is off, the largest of six runs (golden/README.md, Limits).
"""
import functools
import sys
from pathlib import Path

import numpy as np
import torch

import golden

WEIGHTS, STEPS, RUNS = 67, 20, 6


def fnv1a(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def cases():
    tiny = {case.name: case for case in golden.tiny_cases()}
    published = [case for case in golden.published_cases() if case.name != "activity-full"]  # Q40: no script creates it
    return published + [tiny[name] for name in ("rbf-interp", "rbf-full", "rnn3-enc", "rnn3-full")]


def initial_weights(models, case):
    """rec, dec, classifier: the order in which the scripts create them."""
    torch.manual_seed(0)
    modules = {"rec": golden.build_encoder(models, case)}
    if case.kind == "full":
        modules["dec"] = golden.build_decoder(models, case)
        if case.classify != "none":
            modules["classifier"] = golden.build_classifier(models, case)
    return {f"{prefix}.{name}": value.numpy() for prefix, module in modules.items()
            for name, value in module.state_dict().items()}


def export_init(models, path):
    torch.set_default_dtype(torch.float32)
    file = golden.Golden({})
    for case in cases():
        weights = initial_weights(models, case)
        shapes, ends, hashes = [], [], []
        for value in weights.values():
            flat = value.astype("<f4").reshape(-1)
            shapes.append((value.ndim, value.shape[0], value.shape[1] if value.ndim == 2 else 1))
            ends.append(np.concatenate((np.resize(flat, 4) if flat.size < 4 else flat[:4],
                                        np.resize(flat, 4) if flat.size < 4 else flat[-4:])))
            h = fnv1a(flat.tobytes())
            hashes.append((h & 0xffffffff, h >> 32))
        file.metadata["mtan." + case.name] = " ".join(weights)
        file.put(case.name + "/shape", shapes, "I32")
        file.put(case.name + "/ends", ends, "F32")
        file.put(case.name + "/hash", np.array(hashes, np.uint32).view(np.int32), "I32")
    file.write(path)


class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(golden.by_rule("optim.weight", WEIGHTS))


def run_optimizer(make, clip=0, falling=False, average=None):
    model = Weights()
    gradients = golden.by_rule("optim.gradient", STEPS, WEIGHTS)
    optimizer = make(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)) if falling else None
    mean = average and torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(average))
    after = []
    for step in range(STEPS):
        model.w.grad = gradients[step] / (64 if step % 2 else 1)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if falling:
            schedule.step()
        if average:
            mean.update_parameters(model)
        after.append((mean.module if average else model).w.detach().clone())
    return {"after": torch.stack(after)}


def export_optim(path):
    file = golden.Golden({})
    golden.Runs.count = RUNS
    decayed = functools.partial(torch.optim.AdamW, weight_decay=0.5)
    for name, make, more in (("adam", torch.optim.Adam, {}), ("adamax", torch.optim.Adamax, {}),
                             ("clipped", torch.optim.Adam, {"clip": 0.5}), ("adamw", decayed, {"falling": True}),
                             ("averaged", torch.optim.Adam, {"average": 0.9})):
        runs = [(truth["after"], single["after"]) for truth, single in golden.both(lambda: run_optimizer(make, **more))]
        file.put(name, runs[0][0])
        file.put(name + ".err32", np.max([np.linalg.norm(single - truth, axis=1) for truth, single in runs], 0))
    file.write(path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    models, _ = golden.load_reference(sys.argv[1])
    out = Path(sys.argv[2])
    export_init(models, out / "init.safetensors")
    export_optim(out / "optim.safetensors")


if __name__ == "__main__":
    main()
