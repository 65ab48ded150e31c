#!/usr/bin/env python3
"""mtan and its peers on the same records, one after the other, several rounds: medians and ratios.

    tools/bench/bench_peers.py [--data DIR] [--reference CHECKOUT] [--rounds 3] [--batches 12] [--threads 2]
                         [--only WORK,...] [--backend NAME] [--out build/bench-peers.json]

Peers: torch-tuned (tools/bench/bench_torch.py; for the baselines, gru-d-train and so on, tools/bench/bench_baselines.py), published (the published code's own classes on the CPU; needs --reference),
onnxruntime (inference; the tuned model exported). One that cannot run is named as missing, with the reason.
Single records run on one thread. DIR holds set-a.tar.gz; without it every program generates records with its statistics.
Every measurement is a process of its own, so that no library's threads wait in another's way; starting, reading, padding
and exporting are not timed. The published code takes three steps per round (after one to warm up: single steps
differ several times over), padded to the longest record of all, as it does.

Needs build/release/bench (make bench-peers builds it); the peers need torch, numpy, onnx and onnxruntime, the published code
scikit-learn as well. Progress goes to stderr.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
BENCH = BUILD / "release" / "bench"
TRAIN, BATCH, SINGLE = "train_ms_per_record", "infer_batch_ms_per_record", "infer_single_ms"
WORKS = {  # model, what is measured, its name in the answers
    "enc-train": ("enc", "train", TRAIN),
    "full-train": ("full", "train", TRAIN),
    "interp-train": ("interp", "train", TRAIN),
    "enc-infer-batch": ("enc", "batch", BATCH),
    "enc-infer-single": ("enc", "single", SINGLE),
}
BASELINES = ("rnn-impute", "rnn-dt", "rnn-decay", "gru-d", "phased-lstm", "ip-nets", "seft", "rnn-vae", "ode-rnn", "l-ode-rnn",
             "l-ode-ode")
WORKS.update({name + "-train": (name, "train", TRAIN) for name in BASELINES})
SINGLES = 60  # single records timed, as the peers do
PEERS = ("torch-tuned", "onnxruntime", "published")
BARS = {  # with AVX-512 and two threads (singles: one); half of each with AVX2 alone
    ("enc-train", "torch-tuned"): 3.5, ("full-train", "torch-tuned"): 3.5, ("interp-train", "torch-tuned"): 4,
    ("enc-infer-batch", "torch-tuned"): 4, ("enc-infer-single", "torch-tuned"): 8, ("enc-infer-single", "onnxruntime"): 3,
    ("enc-train", "published"): 250, ("full-train", "published"): 35, ("interp-train", "published"): 50,
}
EQUAL = 1  # a baseline's training step is to be as fast as its PyTorch form, on any CPU


class Missing(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def answer(command):
    """The JSON object on the last line that a command prints."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    except OSError as error:
        raise Missing(str(error))
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        reasons = done.stderr.strip().splitlines()
        raise Missing(reasons[-1] if reasons else "exit status %d, no message" % done.returncode)
    return json.loads(lines[-1])


# ---- One measurement each ----------------------------------------------------------------------------------------------

def mtan_row(work, backend, threads, data):
    """(backend's name, milliseconds)"""
    command = [BENCH, "--json-row", work, "--threads", threads, "--quiet"]
    command += ["--repeat", SINGLES] if WORKS[work][1] == "single" else []
    command += ["--backend", backend] if backend else []
    command += ["--data", data] if data else []
    row = answer(command)
    return row["backend"], row["ms_per_record"]


def peer_row(peer, work, threads, args):
    model, what, key = WORKS[work]
    if peer != "torch-tuned" and (what == "train" if peer == "onnxruntime" else model in BASELINES):
        return None
    if peer == "published" and not args.reference:
        raise Missing("no --reference given")
    if model in BASELINES:
        command = [sys.executable, HERE / "bench_baselines.py", model]
    elif peer == "torch-tuned":
        command = [sys.executable, HERE / "bench_torch.py", model, "--work", what]
    else:
        command = [sys.executable, __file__, "--worker", peer, model, what]
        command += ["--reference", args.reference] if args.reference else []
    command += ["--threads", threads, "--batches", args.batches]
    command += ["--data", args.data] if args.data else []
    return answer(command)[key]


# ---- Peers that run here, in a process of their own ----------------------------------------------------------------------

def published_worker(model, what, args):
    import torch
    import bench_torch as tuned
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    size = tuned.SIZES[model][0]
    records = tuned.get_records(args.data)
    longest = max(len(t) for t, _ in records)
    parts, loss, predict = tuned.published_model(args.reference, model)
    optimiser = torch.optim.Adam([p for part in parts.values() for p in part.parameters()], lr=1e-4)

    def step(batch):
        value = loss(batch, torch.arange(len(batch)) % 2)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()

    def padded(some):
        return tuned.whole(*tuned.pad(some, longest))

    if what == "train":
        return {TRAIN: tuned.milliseconds(step, [padded(records[:size])] * 3) / size}
    with torch.no_grad():
        if what == "batch":
            return {BATCH: tuned.milliseconds(predict, [padded(records[:size])] * 3) / size}
        return {SINGLE: tuned.milliseconds(predict, [padded([r]) for r in records[:20]])}


def onnx_worker(model, what, args):
    import warnings
    import onnx  # torch's exporter needs it
    import onnxruntime
    import torch
    import bench_torch as tuned
    warnings.simplefilter("ignore")
    size = tuned.SIZES[model][0]
    records = tuned.get_records(args.data, size * args.batches)

    class Exported(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = tuned.make(model)

        def forward(self, times, both):
            return self.model([(times, both)])

    exported, example = Exported().eval(), tuned.pad(records[:2])
    path = BUILD / ("bench-%s.onnx" % model)
    with torch.no_grad():
        expected = exported(*example)  # also leaves the products of weights as constants
        axes = {"times": {0: "B", 1: "L"}, "both": {0: "B", 1: "L"}, "logits": {0: "B"}}
        torch.onnx.export(exported, example, str(path), dynamo=False, input_names=["times", "both"],
                          output_names=["logits"], dynamic_axes=axes, opset_version=17)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(batch):
        return session.run(None, {"times": batch[0].numpy(), "both": batch[1].numpy()})[0]

    apart = abs(run(example) - expected.numpy()).max()
    if not apart <= 1e-5:
        raise SystemExit("the exported model's logits differ by %g" % apart)
    if what == "batch":
        batches = [tuned.pad(records[i:i + size]) for i in range(0, len(records), size)]
        return {BATCH: tuned.milliseconds(run, batches) / size}
    return {SINGLE: tuned.milliseconds(run, [tuned.pad([r]) for r in records[:tuned.SINGLES]])}


# ---- The run and its table -----------------------------------------------------------------------------------------------

def cpu_flags():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine(), set()
    found = {}
    for line in lines:
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found.get("model name", platform.machine()), set(found.get("flags", found.get("Features", "")).split())


def versions():
    """What the peers' libraries call themselves, without importing them here."""
    from importlib import metadata
    found = []
    for name in ("torch", "onnxruntime"):
        try:
            found.append("%s %s" % (name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append("no " + name)
    return ", ".join(found)


def describe():
    """(the machine in a line, share of the bars that applies, the instruction set that decides it)"""
    name, flags = cpu_flags()
    share, widest = (1, "AVX-512") if "avx512f" in flags else (.5, "AVX2") if "avx2" in flags else (None, platform.machine())
    return "%s, %d CPUs, %s, %s, %s" % (name, os.cpu_count(), widest, platform.system(), versions()), share, widest


def run_rounds(works, args):
    """({(work, peer or "mtan"): [ms, ...]}, {(work): backend}, {(peer, work): reason})"""
    times, backends, missing = {}, {}, {}
    for number in range(args.rounds):
        for work in works:
            threads = 1 if work == "enc-infer-single" else args.threads
            for who in ("mtan",) + PEERS:
                if (who, work) in missing:
                    continue
                try:
                    if who == "mtan":
                        backends[work], ms = mtan_row(work, args.backend, threads, args.data)
                    else:
                        ms = peer_row(who, work, threads, args)
                except Missing as reason:
                    if who == "mtan":
                        raise SystemExit("mtan: %s: %s" % (work, reason))
                    missing[who, work] = str(reason)
                    say("%s  %s: missing: %s" % (work, who, reason))
                    continue
                if ms is not None:
                    times.setdefault((work, who), []).append(ms)
                    say("round %d  %-17s %-12s %9.3f ms" % (number + 1, work, who, ms))
    return times, backends, missing


def ratios(times, backends, args, machine, share):
    rows = []
    for (work, peer), values in times.items():
        if peer == "mtan":
            continue
        mine, theirs = statistics.median(times[work, "mtan"]), statistics.median(values)
        bar = BARS.get((work, peer))
        bar = EQUAL if WORKS[work][0] in BASELINES else bar * share if bar and share else None
        rows.append({"work": work, "backend": backends[work], "threads": 1 if work == "enc-infer-single" else args.threads,
                     "peer": peer, "mtan_ms": round(mine, 5), "peer_ms": round(theirs, 5), "ratio": round(theirs / mine, 3),
                     "bar": bar, "machine": machine})
    return sorted(rows, key=lambda r: (list(WORKS).index(r["work"]), PEERS.index(r["peer"])))


def print_table(rows, missing, machine, share, widest, rounds):
    print(machine)
    print("bars: %s" % {1: "AVX-512: as they stand", .5: "AVX2 alone: half of those for AVX-512"}.get(share, "none for " + widest))
    print("milliseconds per record, medians of %d rounds\n" % rounds)
    line = "%-17s %-12s %7s  %-12s %9s %10s %8s %6s  %s"
    print(line % ("work", "backend", "threads", "peer", "mtan", "peer", "ratio", "bar", ""))
    for r in rows:
        verdict = "" if r["bar"] is None else "reached" if r["ratio"] >= r["bar"] else "not reached"
        print(line % (r["work"], r["backend"], r["threads"], r["peer"], "%.3f" % r["mtan_ms"], "%.3f" % r["peer_ms"],
                      "%.2f" % r["ratio"], "-" if r["bar"] is None else "%g" % r["bar"], verdict))
    for (peer, work), reason in sorted(missing.items()):
        print("missing: %s for %s: %s" % (peer, work, reason))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with set-a.tar.gz")
    parser.add_argument("--reference", help="checkout of the published code")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=12, help="batches per measurement of torch-tuned and onnxruntime")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="some of " + ",".join(WORKS))
    parser.add_argument("--backend", help="mtan's; else the best of this CPU")
    parser.add_argument("--out", default=str(BUILD / "bench-peers.json"))
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        peer, model, what = args.worker
        print(json.dumps((published_worker if peer == "published" else onnx_worker)(model, what, args)))
        return
    works = args.only.split(",") if args.only else list(WORKS)
    for work in works:
        if work not in WORKS:
            parser.error("%s: not one of %s" % (work, ", ".join(WORKS)))
    machine, share, widest = describe()
    times, backends, missing = run_rounds(works, args)
    rows = ratios(times, backends, args, machine, share)
    Path(args.out).write_text(json.dumps(rows, indent=1) + "\n")
    print_table(rows, missing, machine, share, widest, args.rounds)


if __name__ == "__main__":
    main()
