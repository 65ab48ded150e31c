#!/usr/bin/env python3
"""Writes golden/data-physionet.safetensors and golden/data-activity.safetensors: what the reference's own loaders read.

    golden_data.py REFERENCE DATA OUT [WORK]

REFERENCE: a checkout of the published code. DATA: a folder that holds physionet2012/ (set-a.tar.gz, set-b.tar.gz,
Outcomes-a.txt) and activity/ (ConfLongDemo_JSI.txt.gz), as published. OUT: the folder golden/. WORK: where the
reference keeps what it has parsed (four minutes for PhysioNet); a temporary folder unless given.

Needs torch, numpy, scikit-learn. Three things are put in the reference's way, and nothing of its code is changed: its
download copies from DATA, a folder is listed in order (Q33), and the parts of a split are noted as they are drawn.

Events are (time F32, channel I32, value F32), ascending in time, then in channel, then in the row that the reference
had them in. A hash is the low half of mtan_bytes_hash (FNV-1a 64, then splitmix64's finaliser) over a record's events,
12 bytes each, little-endian; for Activity with (time F32, class I32) of its 50 rows, ascending in time, behind them.

data-physionet
    crafted.text, .offset, .id, .outcomes   the records that CRAFTED below lists, as bytes, and their outcomes
    crafted.first, .time, .channel, .value, .label   what the reference makes of them: first event of each record
                                      (and the end), events, labels (-1: none)
    hash.a, normalised.a              U32 (4000): the records of set-a as parsed, and as the training script sees them
    hash.b                            U32 (1): of the 4000 hashes of set-b
    label.a                           U8 (4000)
    minimum.a, maximum.a              F32 (41): over all of set-a
    minimum.ab, maximum.ab            F32 (41): over both sets, as the interpolation script has them
    PART.count, .ends, .time, .deaths PART is train, valid or test (seeds 42, 11): its size, its first and last 8
                                      positions, the largest time (the divisor, Q37), its deaths
    PART.sum                          F64 (2): of the normalised times (one per event) and values
    few.position, .part, .first, .time, .channel, .value, .normalised.time, .normalised.value
                                      five records whole: the first of each part, the first with a single time,
                                      the last of all; .part is 0 train, 1 valid, 2 test
data-activity
    crafted.text                      a small file, as bytes, and what the reference makes of it:
    crafted.first, .time, .channel, .value, .label.time, .label    windows of 50 rows
    hash                              U32 (6554)
    people                            I32 (5): windows of each person
    classes                           I32 (11): rows of each class over all windows
    PART.count, .ends, .time          as above
    few.*                             the first and the last window whole: as crafted
"""
import contextlib
import gzip
import io
import os
import shutil
import sys
import tarfile
import tempfile
import types
import unittest.mock

import numpy as np
import torch

import golden_rng

HEADER = "Time,Parameter,Value\n"
EVENT = np.dtype([("time", "<f4"), ("channel", "<i4"), ("value", "<f4")])
ROW = np.dtype([("time", "<f4"), ("label", "<i4")])
QUANTUM = 0.016

REPEATED = ("HR", "K", "pH", "Temp", "Na", "Mg", "WBC", "HCT", "BUN", "GCS")
# 00:12, 00:36 and 02:12 are 12.5, 37.5 and 137.5 quanta: half to even.
CRAFTED = {
    # repeats
    "2": "00:00,RecordID,2\n00:00,Age,54\n00:00,Gender,0\n00:00,Height,-1\n00:00,ICUType,4\n00:00,Weight,-1\n"
         "00:07,HR,73.1\n00:07,HR,80.7\n00:07,pH,7.33\n00:07,HR,91.9\n00:07,pH,7.45\n00:07,HR,66.6\n00:07,HR,1e-3\n"
         "00:12,HR,70\n00:36,WBC,11.2\n00:36,WBC,-0.3\n00:37,WBC,3.3\n02:12,Temp,36.6\n47:59,Urine,120\n48:00,Urine,60\n",
    # a time that comes back: the reference begins a new row, and averages nothing over the gap
    "10": "00:00,RecordID,10\n00:00,Age,90\n03:00,K,4.1\n03:00,K,4.4\n01:00,K,3.9\n03:00,K,5.5\n03:00,Na,139\n"
          "01:00,HR,77\n00:00,Age,91\n",
    # only the id at the start; minutes within a quantum of each other (0.96 min) sometimes coincide
    "300": "00:00,RecordID,300\n"
           + "".join(f"{m // 60:02d}:{m % 60:02d},HR,{60 + (m * 37 % 101) / 7:.6g}\n" for m in range(600, 660))
           # running means of many repeats: the order and the rounding of every step matter
           + "".join(f"12:00,{parameter},{(i * 7919 + k * 104729) % 100003 / 997:.5f}\n"
                     for i in range(5) for k, parameter in enumerate(REPEATED)),
    "4000": "00:00,RecordID,4000\n",
}
OUTCOMES = ("RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"
            "2,6,1,5,-1,0\n10,16,8,8,4,1\n300,-1,-1,1,-1,0\n")


def crafted_activity(tags):
    """Two sequences: ticks shared by tags and repeated within one, labels that change within a tick, a clock that goes
    back, and the label that the published table spells differently."""
    labels = ["walking", "falling", "lying down", "lying", "sitting down", "sitting", "standing up from lying",
              "on all fours", "sitting on the ground", "standing up from sitting",
              "standing up from sitting on the ground"]
    random, lines = np.random.RandomState(7), []
    for sequence, n in (("A01", 130), ("D03", 95)):
        clock = 633790226051280329
        for i in range(n):
            clock += int(random.choice([20000, 49000, 180000, 270293, 5400586], p=[.2, .2, .1, .4, .1]))
            if i == n // 3:
                clock -= 900000
            x, y, z = random.normal(2, 1, 3)
            label = labels[i // 9 % 11] if i % 13 else labels[(i // 9 + 5) % 11]
            lines.append(f"{sequence},{tags[i // 4 * 3 % 4]},{clock},27.05.2009,{x:.7g},{y:.7g},{z:.7g},{label}\n")
    return "".join(lines)


def hashes(blobs):
    """mtan_bytes_hash of every blob, the low half. Processes all blobs a byte at a time, the longest first, so that the
    unfinished ones are in front."""
    order = np.argsort([-len(b) for b in blobs], kind="stable")
    lengths = np.array([len(blobs[i]) for i in order])
    byte = np.zeros((lengths.max(), len(blobs)), np.uint8)
    for column, i in enumerate(order):
        byte[:len(blobs[i]), column] = np.frombuffer(blobs[i], np.uint8)
    h = np.full(len(blobs), 0xcbf29ce484222325, np.uint64)
    for at in range(len(byte)):
        running = np.searchsorted(-lengths, -at)
        h[:running] = (h[:running] ^ byte[at, :running]) * np.uint64(0x100000001b3)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    out = np.zeros(len(blobs), np.uint32)
    out[order] = ((h ^ (h >> np.uint64(31))) & np.uint64(0xffffffff)).astype(np.uint32)
    return out


def events(tt, vals, mask):
    row, channel = np.nonzero(mask.numpy())
    e = np.zeros(len(row), EVENT)
    e["time"], e["channel"], e["value"] = tt.numpy()[row], channel, vals.numpy()[row, channel]
    return e[np.lexsort((row, e["channel"], e["time"]))]


def rows(tt, labels):
    r = np.zeros(len(tt), ROW)
    r["time"], r["label"] = tt.numpy(), labels.max(-1)[1].numpy()  # as the scripts convert them to class numbers
    return r[np.argsort(r["time"], kind="stable")]


def put_events(t, name, lists):
    t[name + ".first"] = np.cumsum([0] + [len(e) for e in lists]).astype(np.int32)
    for field in EVENT.names:
        t[f"{name}.{field}"] = np.concatenate([e[field] for e in lists])


def put_bytes(t, name, text):
    t[name] = np.frombuffer(text.encode(), np.uint8)


@contextlib.contextmanager
def standing_in(folder, source):
    """Runs with `folder` as working directory, and with source(name, path) instead of a download."""
    def download_url(url, root, filename, md5):
        source(filename.split("?")[0], os.path.join(root, filename))

    listdir, load, cwd = os.listdir, torch.load, os.getcwd()
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    try:
        with unittest.mock.patch("physionet.download_url", download_url), \
                unittest.mock.patch("person_activity.download_url", download_url), \
                unittest.mock.patch("os.listdir", lambda path: sorted(listdir(path))), \
                unittest.mock.patch("torch.load", lambda *a, **k: load(*a, weights_only=False, **k)), \
                contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        os.chdir(cwd)


@contextlib.contextmanager
def noted_splits(utils):
    """Records the lists that train_test_split returns, in the order of the calls."""
    real, seen = utils.model_selection.train_test_split, []

    def split(*a, **k):
        seen.append(real(*a, **k))
        return seen[-1]

    with unittest.mock.patch.object(utils.model_selection, "train_test_split", split):
        yield seen


def parts_of(seen, data, loaders):
    """name -> (positions in data, tensor of the training script)"""
    position = {id(record[1]): i for i, record in enumerate(data)}
    lists = {"train": seen[1][0], "valid": seen[1][1], "test": seen[0][1]}
    for part, loader in zip(lists, ("train_dataloader", "val_dataloader", "test_dataloader")):
        yield part, [position[id(r[1])] for r in lists[part]], loaders[loader].dataset.tensors


def put_part(t, part, at, data):
    t[part + ".count"] = np.array([len(at)], np.int32)
    t[part + ".ends"] = np.array(at[:8] + at[-8:], np.int32)
    t[part + ".time"] = np.array([max(float(data[i][1].max()) for i in at)], np.float32)


def physionet_copy(data):
    def source(name, path):
        shutil.copyfile(os.path.join(data, "physionet2012", name), path)
    return source


def physionet_crafted(name, path):
    if name == "Outcomes-a.txt":
        with open(path, "w") as f:
            f.write(OUTCOMES)
        return
    with tarfile.open(path, "w:gz") as tar:
        for record in sorted(CRAFTED):
            member = tarfile.TarInfo(f"{name.split('.')[0]}/{record}.txt")
            member.size = len(HEADER + CRAFTED[record])
            tar.addfile(member, io.BytesIO((HEADER + CRAFTED[record]).encode()))


def crafted_records(t, physionet, scratch):
    with standing_in(os.path.join(scratch, "crafted"), physionet_crafted):
        parsed = {r[0]: r for r in physionet.PhysioNet("p", quantization=QUANTUM, download=True)}
    texts = [HEADER + CRAFTED[name] for name in CRAFTED]
    put_bytes(t, "crafted.text", "".join(texts))
    t["crafted.offset"] = np.cumsum([0] + [len(x) for x in texts]).astype(np.int32)
    t["crafted.id"] = np.array([int(name) for name in CRAFTED], np.int32)
    put_events(t, "crafted", [events(*parsed[name][1:4]) for name in CRAFTED])
    put_bytes(t, "crafted.outcomes", OUTCOMES)
    t["crafted.label"] = np.array([-1 if parsed[n][4] is None else int(parsed[n][4]) for n in CRAFTED], np.int32)


def export_physionet(t, physionet, utils, data, work, scratch):
    crafted_records(t, physionet, scratch)
    args = types.SimpleNamespace(n=8000, classif=True, batch_size=50)
    real = utils.PhysioNet
    held = {}

    def keep(*a, **k):
        held[k["train"]] = real(*a, **k)
        return held[k["train"]]

    with standing_in(work, physionet_copy(data)), noted_splits(utils) as seen, \
            unittest.mock.patch.object(utils, "PhysioNet", keep):
        loaders = utils.get_physionet_data(args, "cpu", QUANTUM)
    a, b = held[True].data, held[False].data
    raw = [events(*r[1:4]) for r in a]
    t["hash.a"] = hashes([e.tobytes() for e in raw])
    t["hash.b"] = hashes([hashes([events(*r[1:4]).tobytes() for r in b]).tobytes()])
    t["label.a"] = np.array([int(r[4]) for r in a], np.uint8)
    for name, records in (("a", a), ("ab", a + b)):
        low, high = utils.get_data_min_max(records, "cpu")
        t["minimum." + name], t["maximum." + name] = low.numpy(), high.numpy()
    normalised, part_of = {}, {}
    for number, (part, at, (x, label)) in enumerate(parts_of(seen, a, loaders)):
        put_part(t, part, at, a)
        t[part + ".deaths"] = np.array([int(label.sum())], np.int32)
        for i, record in zip(at, x):
            normalised[i], part_of[i] = events(record[:, -1], record[:, :41], record[:, 41:82]), number
        t[part + ".sum"] = np.array([sum(normalised[i][field].astype(np.float64).sum() for i in at)
                                     for field in ("time", "value")])
    t["normalised.a"] = hashes([normalised[i].tobytes() for i in range(len(a))])
    few = [int(t[part + ".ends"][0]) for part in ("train", "valid", "test")]
    few += [next(i for i, e in enumerate(raw) if len(set(e["time"])) == 1), len(a) - 1]
    t["few.position"] = np.array(few, np.int32)
    t["few.part"] = np.array([part_of[i] for i in few], np.int32)
    put_events(t, "few", [raw[i] for i in few])
    for field in ("time", "value"):
        t["few.normalised." + field] = np.concatenate([normalised[i][field] for i in few])


def put_windows(t, name, windows):
    put_events(t, name, [events(*w[1:4]) for w in windows])
    r = np.stack([rows(w[1], w[4]) for w in windows])
    t[name + ".label.time"], t[name + ".label"] = np.ascontiguousarray(r["time"]), np.ascontiguousarray(r["label"])


def export_activity(t, person_activity, utils, data, work, scratch):
    text = crafted_activity(person_activity.PersonActivity.tag_ids)

    def crafted(name, path):
        with open(path, "w") as f:
            f.write(text)

    def unpack(name, path):
        with gzip.open(os.path.join(data, "activity", name + ".gz"), "rb") as f, open(path, "wb") as out:
            shutil.copyfileobj(f, out)

    with standing_in(os.path.join(scratch, "crafted-activity"), crafted):
        windows = person_activity.PersonActivity("p", download=True).data
    put_bytes(t, "crafted.text", text)
    put_windows(t, "crafted", windows)
    args = types.SimpleNamespace(n=10000, classif=True, batch_size=256)
    real = utils.PersonActivity
    held = []
    with standing_in(work, unpack), noted_splits(utils) as seen, \
            unittest.mock.patch.object(utils, "PersonActivity", lambda *a, **k: held.append(real(*a, **k)) or held[-1]):
        loaders = utils.get_activity_data(args, torch.device("cpu"))
    windows = held[0].data
    labelled = [rows(w[1], w[4]) for w in windows]
    t["hash"] = hashes([events(*w[1:4]).tobytes() + r.tobytes() for w, r in zip(windows, labelled)])
    t["people"] = np.bincount([person_activity.get_person_id(w[0]) for w in windows]).astype(np.int32)
    t["classes"] = np.bincount(np.concatenate([r["label"] for r in labelled]), minlength=11).astype(np.int32)
    for part, at, _ in parts_of(seen, windows, loaders):
        put_part(t, part, at, windows)
    put_windows(t, "few", [windows[0], windows[-1]])
    unordered = sum(bool((w[1][1:] < w[1][:-1]).any()) for w in windows)
    print(f"{len(windows)} windows, {unordered} of them with a time that goes back", file=sys.stderr)


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    reference, data, out = (os.path.abspath(p) for p in sys.argv[1:4])
    torch.set_num_threads(1)
    sys.path.insert(0, os.path.join(reference, "src"))
    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.utils"):  # only for its download
        sys.modules[name] = unittest.mock.MagicMock()
    import utils  # first: the loaders import it too
    import person_activity
    import physionet

    golden_rng.DTYPES.update(uint8="U8")
    with tempfile.TemporaryDirectory() as scratch:
        work = os.path.abspath(sys.argv[4]) if len(sys.argv) == 5 else os.path.join(scratch, "work")
        for name, export, module in (("activity", export_activity, person_activity),
                                     ("physionet", export_physionet, physionet)):
            t = {}
            export(t, module, utils, data, work, scratch)
            golden_rng.write(os.path.join(out, f"data-{name}.safetensors"), t)


if __name__ == "__main__":
    main()
