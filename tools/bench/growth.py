#!/usr/bin/env python3
"""Measures how the time and the memory of build/mtan grow, as Markdown: one size grows, all others stay.

    tools/bench/growth.py [--mtan build/mtan] [--only AXIS,...] [--most N] [--rounds 3]

A row is a separate process on made-up events in a CSV: seconds of CPU time (the minimum of the rounds, because machines
are shared) and the peak resident memory, everything included: start, reading, writing. Its exponent compares its
seconds with those of the row before: 1 is linear. Rows of less than a tenth of a second have no exponent, since they
measure the start. --most leaves out larger sizes.
"""
import argparse
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

MTAN = Path(__file__).resolve().parent.parent.parent / "build" / "mtan"
LEAST = 0.1  # shortest time, in seconds, for an exponent

# ---- What is measured ------------------------------------------------------------------------------------------------------

SIZES = dict(records=100, observations=1000, channels=10, points=128, threads=1, hidden=64, epochs=1)
SMALL = dict(observations=10, points=8, hidden=8)
Axis = namedtuple("Axis", "name title sizes fixed works")
AXES = (
    Axis("observations", "observations in a record", (10, 100, 1000, 10000, 100000), dict(records=10),
         ("train", "predict", "over-time", "report")),
    Axis("channels", "channels", (10, 50, 200, 500, 2000), {}, ("train", "predict")),
    Axis("points", "reference points", (16, 64, 256, 1024, 2048), {}, ("train", "predict")),
    Axis("records", "records", (100, 1000, 10000, 100000, 1000000), SMALL, ("train", "predict", "check")),
    Axis("threads", "threads", (1, 2, 4, 8), dict(records=1000, observations=50, epochs=4), ("train",)),
)
WORKS = {
    "train": "train own --model enc --preset correct --epochs {epochs} --data events.csv --labels labels.csv --out run "
             "--ref-points {points} --enc-hidden {hidden} --embed {hidden} --threads {threads} --quiet",
    "predict": "predict run/best.safetensors --data events.csv --threads {threads} --quiet",
    "over-time": "explain run/best.safetensors --over-time --data one.csv --threads {threads} --quiet",
    "report": "report run --data events.csv --labels labels.csv --bootstrap 0 --out page.html --threads {threads} --quiet",
    "check": "check events.csv --labels labels.csv",
}
Cost = namedtuple("Cost", "cpu wall megabytes")


def write_events(folder, sizes):
    """Records whose label shifts their values; one observation per time unit, of a channel drawn at random."""
    draw = random.Random(1)
    channels = ["c%d" % c for c in range(sizes["channels"])]
    with open(folder / "events.csv", "w") as events, open(folder / "labels.csv", "w") as labels, \
            open(folder / "one.csv", "w") as one:
        print("record,time,channel,value", file=events)
        print("record,time,channel,value", file=one)
        print("record,label", file=labels)
        for r in range(sizes["records"]):
            lines = ["r%d,%d,%s,%.3f\n" % (r, i, draw.choice(channels), draw.gauss(r % 2, 1))
                     for i in range(sizes["observations"])]
            events.writelines(lines)
            print("r%d,%d" % (r, r % 2), file=labels)
            if r == 0:
                one.writelines(lines)


def megabytes(used):
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def run(mtan, folder, work, sizes):
    command = [str(mtan)] + WORKS[work].format(**sizes).split()
    if work == "train":
        shutil.rmtree(folder / "run", ignore_errors=True)
    with open(folder / "stderr", "w+") as said:
        start = os.times().elapsed
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = os.times().elapsed - start
        said.seek(0)
        if process.returncode:
            sys.exit("growth: %s: %s" % (" ".join(command), said.read().strip()))
    return Cost(used.ru_utime + used.ru_stime, wall, megabytes(used))


def measure(mtan, folder, work, sizes, rounds):
    """The minimum of each over the rounds; slow runs are made once."""
    costs = [run(mtan, folder, work, sizes)]
    while len(costs) < rounds and costs[0].wall < 5:
        costs.append(run(mtan, folder, work, sizes))
    return Cost(*(min(values) for values in zip(*costs)))


# ---- Tables ----------------------------------------------------------------------------------------------------------------

def memory_cell(cost):
    """A child starts as a copy of this process, whose memory is therefore the least that the system reports."""
    least = megabytes(resource.getrusage(resource.RUSAGE_SELF))
    return "%.0f" % cost.megabytes if cost.megabytes > 1.1 * least else "< %.0f" % math.ceil(1.1 * least)


def cells(cost, before, factor):
    """Seconds, megabytes, exponent."""
    exponent = ""
    if before and before.cpu >= LEAST:
        exponent = "%.2f" % (math.log(cost.cpu / before.cpu) / math.log(factor))
    return ["%.2f" % cost.cpu, memory_cell(cost), exponent]


def thread_cells(cost, first):
    """Threads share the work, so wall clock time counts here."""
    return ["%.2f" % cost.wall, memory_cell(cost), "%.2f" % (first.wall / cost.wall)]


def heading(axis):
    last = "speed-up" if axis.name == "threads" else "exponent"
    columns = [axis.title] + [word for work in axis.works for word in (work + ", s", "MB", last)]
    return "| %s |\n|%s" % (" | ".join(columns), "---|" * len(columns))


def report(axis, arguments):
    costs = {work: [] for work in axis.works}
    sizes_run = [n for n in axis.sizes if n <= arguments.most]
    print(heading(axis), flush=True)
    for i, n in enumerate(sizes_run):
        sizes = {**SIZES, **axis.fixed, axis.name: n}
        row = [format(n, ",")]
        with tempfile.TemporaryDirectory() as folder:
            write_events(Path(folder), sizes)
            for work in axis.works:
                cost = measure(arguments.mtan, Path(folder), work, sizes, arguments.rounds)
                costs[work].append(cost)
                before = costs[work][i - 1] if i else None
                row += (thread_cells(cost, costs[work][0]) if axis.name == "threads" else
                        cells(cost, before, n / sizes_run[i - 1]))
        print("| %s |" % " | ".join(row), flush=True)
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mtan", type=Path, default=MTAN)
    parser.add_argument("--only", default=",".join(axis.name for axis in AXES))
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for axis in AXES:
        if axis.name in arguments.only.split(","):
            report(axis, arguments)


if __name__ == "__main__":
    main()
