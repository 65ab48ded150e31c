#!/usr/bin/env python3
"""Writes golden/rng.safetensors and golden/synthetic.safetensors: random draws of NumPy, scikit-learn, PyTorch and the
reference.

    golden_rng.py REFERENCE OUT     REFERENCE: a checkout of the published code; OUT: the folder golden/

Needs numpy, scikit-learn and torch, on a CPU with fused multiply-add: without it PyTorch's uniform_ rounds twice.
"""
import contextlib
import io
import json
import os
import struct
import sys
import types
import unittest.mock

import numpy as np
import torch
from sklearn.model_selection import train_test_split

DTYPES = {"float32": "F32", "float64": "F64", "int32": "I32", "uint32": "U32"}


def write(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}: {len(tensors)} tensors, {8 + len(text) + len(data)} bytes")


def split(n, seed):
    train, test = train_test_split(np.arange(n, dtype=np.int32), train_size=0.8, random_state=seed, shuffle=True)
    return train, test


def mersenne(t):
    """The raw words for some seeds, across two refills of the state. PyTorch shows them in pairs, the high word first."""
    seeds = [0, 1, 42, 123456789, 2**32 - 1]
    at = np.array([0, 1, 2, 623, 624, 625, 1247, 1248, 1300], np.int32)
    words, torch_words = [], []
    for seed in seeds:
        words.append(np.random.RandomState(seed).randint(0, 2**32, size=1301, dtype=np.uint64)[at])
        torch.manual_seed(seed)
        pairs = torch.empty(651, dtype=torch.int64).random_(-2**63, None).numpy().view(np.uint64)
        torch_words.append(np.stack((pairs >> np.uint64(32), pairs & np.uint64(2**32 - 1)), 1).reshape(-1)[at])
    t["mt.seed"] = np.array(seeds, np.uint32)
    t["mt.at"] = at
    t["mt.word"] = np.array(words).astype(np.uint32)
    t["mt.torch"] = np.array(torch_words).astype(np.uint32)


def numpy_legacy(t):
    """One stream each: integers below many bounds, uniforms, permutations of several lengths."""
    rng = np.random.RandomState(7)
    bounds = [0, 1, 2, 3, 4, 100, 127, 128, 1000, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1] * 8
    t["interval.max"] = np.array(bounds, np.uint32)
    t["interval"] = np.array([rng.randint(0, m + 1, dtype=np.uint64) for m in bounds], np.uint32)
    np.random.seed(8)
    t["uniform"] = np.random.random_sample(100)
    rng = np.random.RandomState(9)
    lengths = [1, 2, 3, 10, 64, 65, 700]
    t["permutation.n"] = np.array(lengths, np.int32)
    t["permutation"] = np.concatenate([rng.permutation(n) for n in lengths]).astype(np.int32)


def splits(t):
    """Sizes for every small n; for the lengths in the experiments, the ends of both parts."""
    t["split.tests"] = np.array([len(split(n, 0)[1]) for n in range(2, 200)], np.int32)
    cases = [(4000, 42), (3200, 11), (8000, 42), (6554, 42), (5243, 11), (101, 2**32 - 1)]
    ends = []
    for n, seed in cases:
        train, test = split(n, seed)
        ends.append(np.concatenate((test[:10], test[-10:], train[:10], train[-10:])))
    t["split.n"] = np.array([n for n, _ in cases], np.int32)
    t["split.seed"] = np.array([seed for _, seed in cases], np.uint32)
    t["split.ends"] = np.array(ends)


def pytorch(t):
    """Consecutive fills from one generator, so that each also checks the state after the one before."""
    ranges = [(0, 1), (-1, 1), (-0.1, 0.1), (-(1 / 41) ** 0.5, (1 / 41) ** 0.5), (0.3, 0.7), (-1e-3, 2), (5, 6)]
    lengths = [1, 2, 15, 16, 17, 33, 100, 301]
    torch.manual_seed(3)
    fills = [torch.empty(n).uniform_(low, high) for low, high in ranges for n in lengths]
    t["torch.uniform.range"] = np.array(ranges, np.float32)
    t["torch.uniform.n"] = np.array(lengths, np.int32)
    t["torch.uniform"] = torch.cat(fills).numpy()
    lengths = [*range(1, 41), 100, 1000, 4097, 1, 100, 1, 1, 15, 16, 1]
    torch.manual_seed(4)
    t["torch.normal.n"] = np.array(lengths, np.int32)
    t["torch.normal"] = torch.cat([torch.randn(n) for n in lengths]).numpy()
    t["torch.normal.next"] = torch.rand(4).numpy()
    rare_normals(t)


def rare_normals(t):
    """Extreme scalar pairs: u below 2^-25, where 1 - u is 1 in float32; u just above it; and a u near 1."""
    cases = [(20, np.argmin), (23, np.argmin), (5, np.argmax)]
    at, pairs = [], []
    for seed, extreme in cases:
        words = np.random.RandomState(seed).randint(0, 2**32, size=(2**18, 4), dtype=np.uint64)
        u = (words[:, 2] << np.uint64(32) | words[:, 3]) & np.uint64(2**53 - 1)
        at.append(int(extreme(u)))
        torch.manual_seed(seed)
        torch.empty(4 * at[-1]).uniform_()  # a pair takes four words
        pairs.append(torch.randn(2).numpy())
    t["torch.rare.seed"] = np.array([seed for seed, _ in cases], np.uint32)
    t["torch.rare.at"] = np.array(at, np.int32)
    t["torch.rare"] = np.array(pairs)


MASK64 = 2**64 - 1


def mix64(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def fnv_mix(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & MASK64
    return mix64(h)


def philox(counter, key):
    a, b, c, d = counter
    for i in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        k, m = (key + i * 0x9E3779B9) % 2**32, ((key >> 32) + i * 0xBB67AE85) % 2**32
        a, b, c, d = q >> 32 ^ b ^ k, q % 2**32, p >> 32 ^ d ^ m, p % 2**32
    return a, b, c, d


def counter_generator(t):
    """The library's own generator, written a second time: hashes as pairs of words, and normals in float64."""
    ids = [b"", b"a", b"132539", bytes(range(256))]
    t["hash"] = np.array([[fnv_mix(s) & 0xFFFFFFFF, fnv_mix(s) >> 32] for s in ids], np.uint32)
    seed, epoch, record, sample = 5, 2**32 + 6, fnv_mix(b"132539"), 2
    key = mix64(mix64(seed) ^ record)
    words = [w for i in range(28) for w in philox((i, sample, epoch % 2**32, epoch >> 32), key)]
    u = (np.array(words) >> 8).reshape(-1, 2, 8) / 2**24
    radius, angle = np.sqrt(-2 * np.log1p(-u[:, 0])), 2 * np.pi * u[:, 1]
    t["noise"] = np.stack((radius * np.cos(angle), radius * np.sin(angle)), 1).reshape(-1)[:100]


def few(array, k):
    """The first and the last k series."""
    return np.concatenate((array[:k], array[-k:])).astype(np.float64)


def synthetic(utils, t):
    """The reference's three generators; a spy records the key values, which the kernel smoother draws but does not
    return."""
    args = types.SimpleNamespace(n=1000, length=20, batch_size=1000)
    keys, randn = [], np.random.randn
    np.random.randn = lambda *shape: keys.append(randn(*shape)) or keys[-1]
    smooth = utils.kernel_smoother_data_gen(args, seed=0)
    np.random.randn = randn
    sine = utils.sine_wave_data_gen(args, seed=1)
    for name, data in (("smooth", smooth), ("sine", sine)):
        t[name + ".times"] = few(data["dataset_obj"][:, :, 2], 3)
        t[name + ".values"] = few(data["dataset_obj"][:, :, 0], 3)
        t[name + ".truth"] = few(data["ground_truth"], 3)
    t["smooth.keys"] = few(np.array(keys), 3)
    values, truth, times = map(np.array, utils.irregularly_sampled_data_gen(n=50, length=20, seed=2))
    t["irregular.times"], t["irregular.values"], t["irregular.truth"] = few(times, 2), few(values, 2), few(truth, 2)

    t["smooth.train"], t["smooth.test"] = split(1000, 42)
    for part in ("train", "test"):  # the reference splits the same series in this way
        (batch,) = smooth[part + "_dataloader"]
        expected = torch.from_numpy(smooth["dataset_obj"][t["smooth." + part]]).float()
        assert torch.equal(batch, expected)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reference, out = sys.argv[1:]
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        sys.exit("this CPU, or ATEN_CPU_CAPABILITY, gives PyTorch no fused multiply-add")
    torch.set_num_threads(1)
    sys.path.insert(0, os.path.join(reference, "src"))
    for name in ("physionet", "person_activity"):  # utils imports these loaders, which need torchvision; no data set is read
        sys.modules[name] = unittest.mock.MagicMock()
    import utils

    t = {}
    for part in (mersenne, numpy_legacy, splits, pytorch, counter_generator):
        part(t)
    write(os.path.join(out, "rng.safetensors"), t)
    t = {}
    with contextlib.redirect_stdout(io.StringIO()):  # the generators print
        synthetic(utils, t)
    write(os.path.join(out, "synthetic.safetensors"), t)


if __name__ == "__main__":
    main()
