#!/usr/bin/env python3
"""Writes golden/losses-physionet-enc.safetensors: the first training losses of the published mTAND-Enc script on PhysioNet.

    golden_losses.py REFERENCE DATA OUT [WORK]

Arguments as in golden_data.py. Two epochs of tanenc_classification.py with its documented command (seed 0, batch 128, lr 1e-4, hidden
128), float32 on the CPU: its loader, its model class, its loop. Needs torch, numpy, scikit-learn; ten minutes on two cores.

    loss      F32 (40): of every batch      valid     F32 (2, 2): loss and AUC on the validation records after each epoch
"""
import os
import sys
import tempfile
import types
import unittest.mock

import numpy as np
import torch

import golden_data
import golden_rng

EPOCHS = 2


def run(utils, models, data, work):
    args = types.SimpleNamespace(n=8000, classif=True, batch_size=128, classify_pertp=False)
    torch.manual_seed(0)
    np.random.seed(0)
    with golden_data.standing_in(work, golden_data.physionet_copy(data)):
        loaders = utils.get_physionet_data(args, "cpu", golden_data.QUANTUM)
    dim = loaders["input_dim"]
    model = models.enc_mtan_classif(dim, torch.linspace(0, 1., 128), 128, 128, 1, True, 10., device="cpu")
    optimizer = torch.optim.Adam(list(model.parameters()), lr=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    losses, valid = [], []
    for _ in range(EPOCHS):
        for batch, label in loaders["train_dataloader"]:
            out = model(batch[:, :, :2 * dim], batch[:, :, -1])
            loss = criterion(out, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            print(len(losses), losses[-1], file=sys.stderr)
        loss, _, auc = utils.evaluate_classifier(model, loaders["val_dataloader"], args=args, dim=dim, device="cpu")
        valid.append((loss, auc))
    return {"loss": np.array(losses, np.float32), "valid": np.array(valid, np.float32)}


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    reference, data, out = (os.path.abspath(p) for p in sys.argv[1:4])
    sys.path.insert(0, os.path.join(reference, "src"))
    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.utils"):  # only for its download
        sys.modules[name] = unittest.mock.MagicMock()
    import utils
    import models
    with tempfile.TemporaryDirectory() as scratch:
        work = os.path.abspath(sys.argv[4]) if len(sys.argv) == 5 else os.path.join(scratch, "work")
        golden_rng.write(os.path.join(out, "losses-physionet-enc.safetensors"), run(utils, models, data, work))


if __name__ == "__main__":
    main()
