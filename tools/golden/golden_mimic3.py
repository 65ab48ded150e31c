#!/usr/bin/env python3
"""Writes golden/mimic3-demo.safetensors: the records of both presets from the MIMIC-III demo, as counts and sums.

    golden_mimic3.py DEMO OUT     DEMO: the folder of the demo's tables (.csv.gz); OUT: the folder golden/

An independent extraction, in pandas, written from interp-net's queries and preprocessing (faithful) and from the table
in tools/data/mimic3.h (correct). interp-net's own code gives the same faithful records for the demo, value by value
(commit af2dbb8; its queries in SQLite). The demo's licence is ODbL: no observation is exported, only counts, sums and
labels. Needs numpy and pandas.
"""
import json
import os
import struct
import sys

import numpy as np
import pandas as pd

DTYPES = {"float64": "F64", "int32": "I32"}
WINDOW = pd.Timedelta(hours=48)
CHANNELS = 12
TEMP, TGCS, CRR, UO, FIO2 = 5, 6, 7, 8, 9

VITALS = [[646, 220277], [211, 220045], [615, 618, 220210, 224690], [51, 442, 455, 6701, 220050, 220179],
          [8368, 8440, 8441, 8555, 220051, 220180]]
GLUCOSE = [807, 811, 1529, 3744, 3745, 220621, 225664, 226537]
FAHRENHEIT, CELSIUS = [678, 223761], [676, 223762]
REFILL = [[3348], [115, 223951], [8377, 224308]]
WORDS = {"Brisk": 1, "Normal <3 secs": 1, "Normal <3 Seconds": 1,
         "Delayed": 2, "Abnormal >3 secs": 2, "Abnormal >3 Seconds": 2}
URINE = [40055, 40056, 40057, 40061, 40065, 40069, 40085, 40094, 40096, 40405, 40428, 40473, 40651, 40715, 41857, 41922,
         42001, 42042, 42068, 42111, 42119, 42130, 42362, 42366, 42592, 42666, 42676, 42765, 42810, 42859, 42892, 43053,
         43057, 43093, 43171, 43173, 43333, 43347, 43348, 43355, 43365, 43372, 43373, 43374, 43379, 43380, 43431, 43462,
         43519, 43522, 43537, 43576, 43583, 43589, 43633, 43638, 43647, 43654, 43811, 43812, 43856, 43897, 43931, 43966,
         43987, 44051, 44080, 44103, 44132, 44237, 44253, 44278, 44325, 44506, 44684, 44706, 44752, 44824, 44834, 44837,
         44911, 44925, 45304, 45804, 45841, 45927, 45991, 46177, 46180, 46532, 46578, 46658, 46727, 46748, 46804]
NOT_VOLUMES = {43171, 43173, 43333, 43347, 43348, 43355, 43365, 43372, 43373, 43374, 43379, 43380, 43431, 43522, 43576,
               43583, 43589, 43633, 43638, 43647, 43654, 43811, 43812, 43856, 45304, 45841}
METAVISION_URINE = [226557, 226558, 226559, 226560, 226561, 226563, 226564, 226565, 226567, 226584]
LIMITS = [(1, 100), (1, 350), (1, 300), (1, 375), (1, 375), (26, 45), (3, 15), (1, 2), (0, 2445), (20, 100), (10, 2000),
          (6.3, 8.4)]

# per channel, lists of items: later lists are appended to the first
FAITHFUL = [[v] for v in VITALS] + [[FAHRENHEIT, CELSIUS], [[198, 226755, 227013]], REFILL, [URINE],
                                    [[2981, 3420, 3422, 223835]], [GLUCOSE],
                                    [[780, 860, 1126, 1673, 3839, 4202, 4753, 220734, 223830, 228243]]]
CORRECT = VITALS + [FAHRENHEIT + CELSIUS, [198], sum(REFILL, []),
                    [i for i in URINE if i not in NOT_VOLUMES] + METAVISION_URINE,
                    [190, 2981, 3420, 3422, 223835], GLUCOSE, [780, 860, 1126, 4202, 4753, 220274, 223830]]
COMA_PARTS = [(220739, 4), (223900, 5), (223901, 6)]


def table(folder, name, times, columns):
    t = pd.read_csv(os.path.join(folder, name + ".csv.gz"), low_memory=False, encoding="latin1",
                    usecols=lambda c: c.lower() in columns)
    t.columns = [c.lower() for c in t.columns]
    for c in times:
        t[c] = pd.to_datetime(t[c])
    return t


def load(folder):
    adm = table(folder, "ADMISSIONS", ["admittime", "dischtime", "deathtime"],
                ["subject_id", "hadm_id", "admittime", "dischtime", "deathtime", "hospital_expire_flag"])
    icu = table(folder, "ICUSTAYS", ["intime"], ["hadm_id", "intime"])
    columns = ["hadm_id", "itemid", "charttime", "value", "valuenum", "error", "iserror"]
    chart = table(folder, "CHARTEVENTS", ["charttime"], columns)
    out = table(folder, "OUTPUTEVENTS", ["charttime"], columns).rename(columns={"iserror": "error"})
    out["valuenum"] = out["value"]
    refill = chart.itemid.isin(sum(REFILL, []))
    chart.loc[refill, "valuenum"] = chart.value[refill].map(WORDS)
    wanted = set(sum((sum(c, []) for c in FAITHFUL), [])) | set(sum(CORRECT, [])) | {i for i, _ in COMA_PARTS}
    chart = chart[chart.itemid.isin(wanted - set(URINE + METAVISION_URINE))]
    out = out[out.itemid.isin(URINE + METAVISION_URINE)]
    rows = pd.concat([chart, out], ignore_index=True)[["hadm_id", "itemid", "charttime", "valuenum", "error"]]
    return adm, icu, {int(k): v for k, v in rows.groupby("hadm_id")}, rows.iloc[:0]


def ordered(rows, items):
    return rows[rows.itemid.isin(items)].sort_values("charttime", kind="stable")


def faithful_record(rows):
    series = []
    for c, lists in enumerate(FAITHFUL):
        parts = [ordered(rows, items) for items in lists]
        if c == TEMP:
            parts[1] = parts[1].dropna(subset=["valuenum"])
            parts[1] = parts[1].assign(valuenum=parts[1].valuenum * 1.8 + 32)
        joined = pd.concat(parts)
        series.append(list(zip(joined.charttime, joined.valuenum)))
    times = sorted({t for s in series for t, _ in s})
    if not times:
        return []
    shown = {t: i for i, t in enumerate([t for t in times if t - times[0] <= WINDOW])}
    events = []
    for c, s in enumerate(series):
        at = 0  # the next entry of the series waits until its time comes: forever, if that time has already passed
        for t, i in shown.items():
            if at < len(s) and s[at][0] == t:
                v = s[at][1]
                at += 1
                if i < 200 and 0 < v <= 500:
                    events.append(((t - times[0]).total_seconds() / 3600.0, c, v))
    return events


def correct_record(rows, start):
    rows = rows[(rows.charttime >= start) & (rows.charttime <= start + WINDOW) & (rows.error != 1)]
    cells = {}
    for c, items in enumerate(CORRECT):
        for t, v in zip(*(lambda r: (r.charttime, r.valuenum))(ordered(rows, items))):
            if c == TEMP and 78.8 <= v <= 113:
                v = (v - 32) / 1.8
            if c == FIO2 and v <= 1:
                v = v * 100
            if LIMITS[c][0] <= v <= LIMITS[c][1]:
                cells.setdefault((t, c), []).append(v)
    parts = [ordered(rows[(rows.itemid == i) & rows.valuenum.between(1, top)], [i]).groupby("charttime").valuenum.mean()
             for i, top in COMA_PARTS]
    for t, v in pd.concat(parts, axis=1, join="inner").sum(axis=1).items():
        cells.setdefault((t, TGCS), []).append(v)
    return [((t - start).total_seconds() / 3600.0, c, sum(v) / len(v)) for (t, c), v in cells.items()]


def faithful(adm, icu, rows, none):
    for a in adm.itertuples():
        if a.dischtime - a.admittime >= WINDOW:
            yield a, faithful_record(rows.get(a.hadm_id, none))


def correct(adm, icu, rows, none):
    first = icu.groupby("hadm_id").intime.min()
    for a in adm.itertuples():
        end = a.dischtime if pd.isna(a.deathtime) else min(a.dischtime, a.deathtime)
        if a.hadm_id in first.index and end - first[a.hadm_id] >= WINDOW:
            events = correct_record(rows.get(a.hadm_id, none), first[a.hadm_id])
            if events:
                yield a, events


def fill(records, training):
    """The mean of the training records' values at time 0, for series without an observation."""
    values = [[v for i in training for _, c, v in records[i][1] if c == k] for k in range(CHANNELS)]
    means = [np.mean(v) if v else np.nan for v in values]
    for _, events in records:
        seen = {c for _, c, _ in events}
        events.extend((0.0, c, means[c]) for c in range(CHANNELS) if c not in seen and values[c])
    return np.array(means)


def describe(t, prefix, records):
    """Per record: events, distinct times, the sum of its values, and a sum weighted by time and channel. Per channel:
    events, sum of values, sum of squares."""
    flat = [(r, h, c, v) for r, (_, events) in enumerate(records) for h, c, v in events]
    r, h, c, v = (np.array(x) for x in zip(*flat))
    n = len(records)
    t[prefix + ".events"] = np.bincount(r, minlength=n).astype(np.int32)
    t[prefix + ".times"] = np.array([len({e[0] for e in events}) for _, events in records], np.int32)
    t[prefix + ".sum"] = np.bincount(r, v, n)
    t[prefix + ".weighted"] = np.bincount(r, v * (h + 1) * (c + 1), n)
    t[prefix + ".channel.events"] = np.bincount(c, minlength=CHANNELS).astype(np.int32)
    t[prefix + ".channel.sum"] = np.bincount(c, v, CHANNELS)
    t[prefix + ".channel.squares"] = np.bincount(c, v * v, CHANNELS)


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


def main(folder, out):
    data = load(folder)
    t = {}
    for name, preset in (("faithful", faithful), ("correct", correct)):
        records = list(preset(*data))
        training = range(len(records)) if preset is faithful else range(0, len(records), 2)
        t[name + ".label"] = np.array([a.hospital_expire_flag for a, _ in records], np.int32)
        # weighted by position, so that the order matters too
        t[name + ".ids"] = np.array([sum((i + 1.0) * a.hadm_id for i, (a, _) in enumerate(records)),
                                     sum((i + 1.0) * a.subject_id for i, (a, _) in enumerate(records))])
        describe(t, name, records)
        t[name + ".mean"] = fill(records, training)
        describe(t, name + ".filled", records)
        print(name, len(records), "records,", int(t[name + ".label"].sum()), "deaths,", t[name + ".channel.events"])
    write(os.path.join(out, "mimic3-demo.safetensors"), t)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
