#!/usr/bin/env python3
"""Times mtan and its peers on the same records, one after the other, in several rounds: medians and ratios.

    tools/bench/bench_peers.py [--data DIR] [--reference CHECKOUT] [--rounds 3] [--batches 6] [--threads 2]
                         [--only WORK,...] [--backend NAME] [--out build/bench-peers.json]

Peers: torch-tuned (tools/bench/bench_torch.py; for the baselines, gru-d-train and so on,
tools/bench/bench_baselines.py), onnxruntime (inference; the tuned model exported), published (the published code's own
classes on the CPU; needs --reference). Each counts at its best: all its variants (torch.compile, a frozen trace,
threads, session settings and so on) are timed in turns with mtan, and the ratio is to the fastest variant whose outputs
equal those of the plain one. Other arithmetic, bf16 and int8, is shown separately and only compared with mtan's int8. A
peer or a variant that cannot run is listed as missing, with the reason. From the second round on, variants that took
more than twice as long as the fastest are left out; the published code has only one round, because it is slow.

Single records run on one thread. DIR holds set-a.tar.gz; without it every program generates records with its
statistics. Every peer is a separate process that waits while another one is timed; starting, reading, padding,
compiling and exporting are not timed. The published code takes three steps (after one to warm up: single steps differ
by a factor of several), padded to the longest record of all, as in its own scripts. --only mtand selects the six rows
of mTAND. Programs compiled by torch.compile are kept in build/inductor (TORCHINDUCTOR_CACHE_DIR); --rounds 0 compiles
them and measures nothing, so the machine may be busy meanwhile.

Needs build/release/bench (make bench-peers builds it); the peers need torch, numpy, onnx and onnxruntime, torch.compile
a C++ compiler, the published code also scikit-learn. Progress goes to stderr.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
BENCH = BUILD / "release" / "bench"
WORKS = {  # mtan's row: model, kind of work
    "enc-train": ("enc", "train"),
    "full-train": ("full", "train"),
    "interp-train": ("interp", "train"),
    "enc-infer-batch": ("enc", "batch"),
    "enc-infer-single": ("enc", "single"),
    "enc-infer-single-int8": ("enc", "single"),
}
MTAND = list(WORKS)
BASELINES = ("rnn-impute", "rnn-dt", "rnn-decay", "gru-d", "phased-lstm", "ip-nets", "seft", "rnn-vae", "ode-rnn", "l-ode-rnn",
             "l-ode-ode")
WORKS.update({name + "-train": (name, "train") for name in BASELINES})
SINGLES = 60  # single records timed, as for the peers
PEERS = ("torch-tuned", "onnxruntime", "published")
BARS = {  # with AVX-512 and two threads (single records: one thread); half of each with only AVX2
    ("enc-train", "torch-tuned"): 3.5, ("full-train", "torch-tuned"): 3.5, ("interp-train", "torch-tuned"): 4,
    ("enc-infer-batch", "torch-tuned"): 4, ("enc-infer-single", "torch-tuned"): 8, ("enc-infer-single", "onnxruntime"): 3,
    ("enc-train", "published"): 250, ("full-train", "published"): 35, ("interp-train", "published"): 50,
}
EQUAL = 1  # a baseline's training step should be as fast as its PyTorch version, on any CPU
WORTH_MORE_ROUNDS = 2  # times the fastest variant's time
REST = 0.2  # seconds until a library's idle threads sleep


class Missing(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def reason_of(text, status):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "exit status %s, no message" % status


# ---- mtan: a process for each measurement --------------------------------------------------------------------------------

def mtan_row(work, threads, args):
    """(backend's name, milliseconds)"""
    command = [BENCH, "--json-row", work, "--threads", threads, "--quiet"]
    command += ["--repeat", SINGLES] if WORKS[work][1] == "single" else []
    command += ["--backend", args.backend] if args.backend else []
    command += ["--data", args.data] if args.data else []
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("mtan: %s: %s" % (work, reason_of(done.stderr, done.returncode)))
    row = json.loads(done.stdout.strip().splitlines()[-1])
    return row["backend"], row["ms_per_record"]


# ---- Peers: a process each, which waits while others are timed
# -------------------------------------------------------------

class Peer:
    """.variants: {name: {"threads", "other": arithmetic or None, "difference" or "missing"}}, as reported by its
    process."""

    def __init__(self, command):
        kept = {"TORCHINDUCTOR_CACHE_DIR": str(BUILD / "inductor"), "TORCH_LOGS": "-all"}
        self.errors = tempfile.TemporaryFile("w+")
        try:
            self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.errors, text=True, env=kept | os.environ)
        except OSError as error:
            raise Missing(str(error))
        self.variants = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Missing(reason_of(self.errors.read(), self.process.wait()))
        return json.loads(line)

    def milliseconds(self, variant):
        self.process.stdin.write(variant + "\n")
        self.process.stdin.flush()
        took = self.answer()["ms"]
        time.sleep(REST)
        return took

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def peer_command(peer, model, what, threads, args):
    """The command of a peer; None: it does not have this work."""
    if peer != "torch-tuned" and (what == "train" if peer == "onnxruntime" else model in BASELINES):
        return None
    if peer == "published" and not args.reference:
        raise Missing("no --reference given")
    if model in BASELINES:
        command = [sys.executable, HERE / "bench_baselines.py", model, "--serve"]
    elif peer == "torch-tuned":
        command = [sys.executable, HERE / "bench_torch.py", model, "--work", what, "--serve"]
    else:
        command = [sys.executable, __file__, "--worker", peer, model, what]
        command += ["--reference", args.reference] if args.reference else []
    command += ["--threads", threads, "--batches", args.batches]
    return command + (["--data", args.data] if args.data else [])


def published_worker(model, what, args):
    import torch
    import bench_torch as tuned
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    size = tuned.SIZES[model][0]
    records = tuned.get_records(args.data, max(size, 20))
    parts, loss, predict = tuned.published_model(args.reference, model)
    optimiser = torch.optim.Adam([p for part in parts.values() for p in part.parameters()], lr=1e-4)

    class Published:
        def run(self, batch):
            if what != "train":
                with torch.no_grad():
                    return predict(batch)
            value = loss(batch, torch.arange(len(batch)) % 2)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()

    def padded(some):
        return tuned.whole(*tuned.pad(some, tuned.LONGEST))

    inputs = [padded([r]) for r in records[:20]] if what == "single" else [padded(records[:size])] * 3
    tuned.serve({"as published": (args.threads, None, Published)}, inputs, 1 if what == "single" else size, True)


# ---- ONNX Runtime --------------------------------------------------------------------------------------------------------

def export(tuned, model, example, path):
    """Writes the tuned model with groups of any length as an ONNX file; its inputs are called t0, v0, t1, v1 and so
    on."""
    import warnings
    import torch
    exported, tensors = tuned.Flat(tuned.make(model)).eval(), tuned.flat(example)
    names = ["%s%d" % ("tv"[i % 2], i // 2) for i in range(len(tensors))]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported(*tensors)  # keeps the products of weights as constants
        torch.onnx.export(exported, tensors, str(path), dynamo=False, input_names=names, output_names=["logits"], opset_version=17,
                          dynamic_axes={name: {0: "B" + name, 1: "L" + name} for name in names} | {"logits": {0: "B"}})
    return exported


class Session:
    """groups: 0 for records padded to the longest of their batch. An input has both forms."""

    def __init__(self, path, groups=0, threads=1, parallel=False, pattern=True, arena=True, spin=True):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads, options.inter_op_num_threads = (1, threads) if parallel else (threads, 1)
        if parallel:
            options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        options.enable_mem_pattern, options.enable_cpu_mem_arena = pattern and not parallel, arena
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
        self.form = 1 if groups else 0
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, forms):
        return self.session.run(None, forms[self.form])[0]

    outputs = run


def onnx_forms(tuned, records):
    """The same records in the same order, padded to the longest, and in groups."""
    records = sorted(records, key=lambda r: len(r[0]))
    fed = lambda groups: {"tv"[k] + str(i): tensor.numpy() for i, pair in enumerate(groups) for k, tensor in enumerate(pair)}
    return fed([tuned.pad(records)]), fed(tuned.group(records))


def onnx_int8(path):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    smaller = path.with_suffix(".int8.onnx")
    quantize_dynamic(str(path), str(smaller), weight_type=QuantType.QInt8)
    return smaller


def onnx_variants(what, padded, grouped, threads):
    variants = {"plain": (None, lambda: Session(padded, threads=threads)),
                "no memory pattern": (None, lambda: Session(padded, threads=threads, pattern=False)),
                "no arena": (None, lambda: Session(padded, threads=threads, arena=False)),
                "int8": ("int8", lambda: Session(onnx_int8(padded), threads=threads))}
    if what == "batch":
        variants["in groups"] = (None, lambda: Session(grouped, 1, threads=threads))
    if threads > 1:
        variants["parallel"] = (None, lambda: Session(padded, threads=threads, parallel=True))
        variants["parallel in groups"] = (None, lambda: Session(grouped, 1, threads=threads, parallel=True))
        variants["no spinning"] = (None, lambda: Session(padded, threads=threads, spin=False))
        variants["1 thread"] = (None, lambda: Session(padded))
        variants["1 thread, in groups"] = (None, lambda: Session(grouped, 1))
    return {name: (1 if name.startswith("1 thread") else threads, *rest) for name, rest in variants.items()}


class Expected:
    """The exported model in PyTorch, which the sessions are compared with. Not timed here."""

    def __init__(self, model):
        self.model = model

    def outputs(self, forms):
        import torch
        with torch.no_grad():
            return self.model(*(torch.from_numpy(array) for array in forms[0].values()))


def onnx_worker(model, what, args):
    import onnx  # torch's exporter needs it
    import torch
    import bench_torch as tuned
    size = tuned.SIZES[model][0]
    records = tuned.get_records(args.data, size * args.batches)
    inputs, count = tuned.inputs_of(what, records, size, lambda some: onnx_forms(tuned, some))
    first = sorted(records[:count], key=lambda r: len(r[0]))
    paths, models = [], []
    for name, example in (("padded", [tuned.pad(first)]), ("grouped", tuned.group(first))):
        torch.manual_seed(0)
        paths.append(BUILD / ("bench-%s-%s-%s.onnx" % (model, what, name)))
        models.append(export(tuned, model, example, paths[-1]))
    variants = {"torch": (args.threads, None, lambda: Expected(models[0]))} | onnx_variants(what, *paths, args.threads)
    tuned.serve(variants, inputs, count, True)


# ---- The run ---------------------------------------------------------------------------------------------------------------

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
    """Versions of the peers' libraries, without importing them here."""
    from importlib import metadata
    found = []
    for name in ("torch", "onnxruntime"):
        try:
            found.append("%s %s" % (name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append("no " + name)
    return ", ".join(found)


def describe():
    """(the machine in a line, the fraction of the bars that applies, the instruction set that decides it)"""
    name, flags = cpu_flags()
    share, widest = (1, "AVX-512") if "avx512f" in flags else (.5, "AVX2") if "avx2" in flags else (None, platform.machine())
    return "%s, %d CPUs, %s, %s, %s" % (name, os.cpu_count(), widest, platform.system(), versions()), share, widest


class Found:
    """The timings: mtan's rows by name, the peers' variants by (model, work, peer, variant)."""

    def __init__(self):
        self.mtan, self.backends, self.variants, self.times, self.missing = {}, {}, {}, {}, []

    def miss(self, model, what, peer, variant, reason):
        self.missing.append({"model": model, "what": what, "peer": peer, "variant": variant, "reason": reason})
        say("%s %s  %s%s: missing: %s" % (model, what, peer, ", " + variant if variant else "", reason))

    def slow(self, key):
        """Is a variant far behind the fastest one of its peer with the plain variant's outputs?"""
        rivals = [statistics.median(times) for other, times in self.times.items()
                  if other[:3] == key[:3] and self.variants[other]["other"] is None]
        return key in self.times and statistics.median(self.times[key]) > WORTH_MORE_ROUNDS * min(rivals)


def start_peers(model, what, threads, args, found):
    peers = {}
    for peer in PEERS:
        try:
            command = peer_command(peer, model, what, threads, args)
            if not command:
                continue
            peers[peer] = Peer(command)
        except Missing as reason:
            found.miss(model, what, peer, None, str(reason))
            continue
        for variant, told in peers[peer].variants.items():
            if "missing" in told:
                found.miss(model, what, peer, variant, told["missing"])
            elif (peer, variant) != ("onnxruntime", "torch"):
                found.variants[model, what, peer, variant] = told
    return peers


def one_round(number, rows, peers, model, what, threads, args, found):
    for row in rows:
        found.backends[row], ms = mtan_row(row, threads, args)
        found.mtan.setdefault(row, []).append(ms)
        say("round %d  %-22s %-12s %9.3f ms" % (number, row, "mtan", ms))
    for key in [k for k in found.variants if k[:2] == (model, what)]:
        peer, variant = key[2:]
        if peer not in peers or number > 1 and (peer == "published" or found.slow(key)):
            continue
        try:
            ms = peers[peer].milliseconds(variant)
        except Missing as reason:
            found.miss(model, what, peer, variant, str(reason))
            del peers[peer]
            continue
        found.times.setdefault(key, []).append(ms)
        say("round %d  %-22s %-12s %9.3f ms  %s" % (number, rows[0], peer, ms, variant))


def run_rounds(works, args):
    found = Found()
    for model, what in dict.fromkeys(WORKS[work] for work in works):
        threads = 1 if what == "single" else args.threads
        peers = start_peers(model, what, threads, args, found)
        for number in range(1, args.rounds + 1):
            one_round(number, [w for w in works if WORKS[w] == (model, what)], peers, model, what, threads, args, found)
        for peer in peers.values():
            peer.close()
    return found


# ---- Tables ------------------------------------------------------------------------------------------------------------------

def variant_rows(found):
    rows = []
    for (model, what, peer, variant), times in found.times.items():
        told = found.variants[model, what, peer, variant]
        rows.append({"model": model, "what": what, "peer": peer, "variant": variant, "ms": round(statistics.median(times), 5),
                     "rounds": len(times), **told})
    return rows


def ratio_rows(works, found, variants, share):
    """Compares each row of mtan with the fastest variant of each peer: of the same arithmetic, or of any if the row is
    int8."""
    rows = []
    for work in works:
        mine = statistics.median(found.mtan[work])
        for peer in PEERS:
            rivals = [v for v in variants if (v["model"], v["what"], v["peer"]) == (*WORKS[work], peer)
                      and (v["other"] is None or work.endswith("int8"))]
            if not rivals:
                continue
            best = min(rivals, key=lambda v: v["ms"])
            bar = BARS.get((work, peer))
            bar = EQUAL if WORKS[work][0] in BASELINES else bar * share if bar and share else None
            rows.append({"work": work, "backend": found.backends[work], "peer": peer, "variant": best["variant"],
                         "mtan_ms": round(mine, 5), "peer_ms": best["ms"], "ratio": round(best["ms"] / mine, 3), "bar": bar})
    return rows


def print_ratios(rows):
    line = "%-22s %-8s %-12s %9s %10s %8s %6s  %-12s %s"
    print(line % ("work", "backend", "peer", "mtan", "peer", "ratio", "bar", "", "its best variant"))
    for r in rows:
        verdict = "" if r["bar"] is None else "reached" if r["ratio"] >= r["bar"] else "not reached"
        print(line % (r["work"], r["backend"], r["peer"], "%.3f" % r["mtan_ms"], "%.3f" % r["peer_ms"], "%.2f" % r["ratio"],
                      "-" if r["bar"] is None else "%g" % r["bar"], verdict, r["variant"]))


def print_variants(rows):
    line = "%-17s %-12s %-24s %7s %10s %7s %11s  %s"
    print("\nall variants; 'difference' is that of its outputs from the plain one's, relative to their norm")
    print(line % ("work", "peer", "variant", "threads", "ms", "rounds", "difference", ""))
    for r in rows:
        print(line % (r["model"] + " " + r["what"], r["peer"], r["variant"], r["threads"], "%.3f" % r["ms"], r["rounds"],
                      "%.1e" % r["difference"] if "difference" in r else "-", "apart: " + r["other"] if r["other"] else ""))


def print_missing(missing):
    for m in missing:
        print("missing: %s%s for %s %s: %s" % (m["peer"], ", " + m["variant"] if m["variant"] else "", m["model"], m["what"],
                                               m["reason"]))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with set-a.tar.gz")
    parser.add_argument("--reference", help="checkout of the published code")
    parser.add_argument("--rounds", type=int, default=3, help="0: compile what is to be compiled, and measure nothing")
    parser.add_argument("--batches", type=int, default=6, help="batches per measurement of torch-tuned and onnxruntime")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="mtand, or some of " + ",".join(WORKS))
    parser.add_argument("--backend", help="mtan's; else the best of this CPU")
    parser.add_argument("--out", default=str(BUILD / "bench-peers.json"))
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.works = MTAND if args.only == "mtand" else args.only.split(",") if args.only else list(WORKS)
    for work in args.works:
        if work not in WORKS:
            parser.error("%s: not one of %s" % (work, ", ".join(WORKS)))
    return args


def main():
    args = read_arguments()
    if args.worker:
        peer, model, what = args.worker
        return (published_worker if peer == "published" else onnx_worker)(model, what, args)
    machine, share, widest = describe()
    began = time.monotonic()
    found = run_rounds(args.works, args)
    if not args.rounds:
        return print_missing(found.missing)
    variants = variant_rows(found)
    rows = ratio_rows(args.works, found, variants, share)
    Path(args.out).write_text(json.dumps({"machine": machine, "threads": args.threads, "rounds": args.rounds, "rows": rows,
                                          "variants": variants, "missing": found.missing}, indent=1) + "\n")
    print(machine)
    print("bars: %s" % {1: "AVX-512: as they stand", .5: "AVX2 alone: half of those for AVX-512"}.get(share, "none for " + widest))
    print("milliseconds per record, medians of %d rounds, %d threads (single records: 1)\n" % (args.rounds, args.threads))
    print_ratios(rows)
    print_variants(variants)
    print_missing(found.missing)
    say("%.0f seconds" % (time.monotonic() - began))


if __name__ == "__main__":
    main()
