"""Data and models that the tests share. MTAN_COMMAND is the `mtan` command to compare with."""

from __future__ import annotations

import os
import pathlib
import subprocess

import numpy as np
import pandas as pd
import pytest

import mtan

SMALL = dict(preset="correct", embed_size=8, enc_hidden=8, ref_points=6, batch=16, lr=0.01, epochs=4, threads=1)
SMALL_WORDS = "--preset correct --embed 8 --enc-hidden 8 --ref-points 6 --batch 16 --lr 0.01 --epochs 4 --threads 1".split()
# Models that other frameworks have to rebuild, by what is special in them.
BEST = {**SMALL, "preset": "best"}
DECODER = {"mlp_hidden": 6, "dec_hidden": 6, "latent": 3}
KINDS = {
    "published": {"enc_heads": 2, **SMALL},
    "fixed": {"options": {"embedding": "fixed"}, **SMALL},
    "one layer, an embedding per head": {"head_hidden": 0, "enc_heads": 2, "options": {"embed_heads": "per_head"}, **SMALL},
    "statistics": {"options": {"statistics": "mean,spread,slope"}, **SMALL},
    "piecewise": {"options": {"values": "piecewise", "bins": 3}, **SMALL},
    "quantile": {"options": {"values": "quantile", "bins": 4, "trees": 0}, **BEST},
    "best": {"options": {"trees": 0}, **BEST},
    "trees": BEST,
    "static": {"options": {"trees": 0}, **BEST},
    "static, trees": BEST,
    "ensemble": {"ensemble": 2, **BEST},
    "full": {"model": "full", "options": DECODER, **SMALL},
    "full, best": {"model": "full", "options": DECODER, **BEST},
}
ROOT = pathlib.Path(__file__).resolve().parents[3]


class Command:
    """The `mtan` command."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *words: object) -> str:
        return subprocess.run(
            [self.path, *map(str, words)], check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture(scope="session")
def command() -> Command:
    path = os.environ.get("MTAN_COMMAND", str(ROOT / "build" / "mtan"))
    if not os.path.exists(path):
        pytest.skip("no mtan command to compare with: MTAN_COMMAND, or make mtan")
    return Command(path)


def made_frame(records: int = 80, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Two classes at two levels: events, labels, and a number that goes with them."""
    rng = np.random.default_rng(seed)
    rows, labels, numbers = [], [], []
    for r in range(records):
        level = rng.uniform(3, 8)
        for k in range(rng.integers(4, 12)):
            value = round(level + rng.uniform(0, 1), 4)
            rows.append((f"r{r}", round(rng.uniform(0, 10), 4), ["pulse", "heat", "BP"][k % 3], value))
        labels.append("up" if level > 5.5 else "down")
        numbers.append(round(10 * level, 3))
    frame = pd.DataFrame(rows, columns=["record", "time", "channel", "value"])
    return frame, np.array(labels), np.array(numbers)


def with_static(frame: pd.DataFrame) -> mtan.Events:
    """The same with an age, which some records lack."""
    names = frame["record"].drop_duplicates().to_list()
    age = [None if i % 7 == 0 else 30.0 + i for i in range(len(names))]
    return mtan.Events(frame, static=pd.DataFrame({"record": names, "age": age}))


@pytest.fixture(scope="session")
def data() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    return made_frame()


@pytest.fixture(scope="session")
def events(data) -> mtan.Events:
    return mtan.Events(data[0])


@pytest.fixture(scope="session")
def classifier(events, data) -> mtan.Classifier:
    return mtan.Classifier(seed=3, head_hidden=6, **SMALL).fit(events, data[1])


@pytest.fixture(scope="session")
def per_time(events) -> mtan.Classifier:
    """Says at each time of a record whether it is late."""
    at = [np.unique(events[i].time) for i in range(len(events))]
    y = [np.where(times > 5, "late", "early") for times in at]
    return mtan.Classifier("per-time", enc_heads=2, **SMALL).fit(events, y, times=at)


@pytest.fixture(scope="session")
def files(data, tmp_path_factory) -> pathlib.Path:
    """The same data as the command reads it: events.csv, labels.csv, numbers.csv."""
    folder = tmp_path_factory.mktemp("files")
    frame, labels, numbers = data
    names = frame["record"].drop_duplicates()
    frame.to_csv(folder / "events.csv", index=False)
    pd.DataFrame({"record": names, "label": labels}).to_csv(folder / "labels.csv", index=False)
    pd.DataFrame({"record": names, "label": numbers}).to_csv(folder / "numbers.csv", index=False)
    return folder
