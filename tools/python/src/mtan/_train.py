"""`mtan train own` on records in memory: the same C, the same bytes."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from . import _flat
from ._flat import Error, flat
from ._model import Data

INTERRUPTED = 130


class Progress:
    """Shows how a training goes on, in a line of a terminal or of a notebook."""

    def __init__(self, show: bool, metric: str) -> None:
        self.show, self.metric, self.last = show, metric, ""
        self.display: Any = None

    def step(self, epoch: int, epochs: int, batch: int, batches: int, loss: float) -> None:
        if not self.show:
            return
        done = (epoch - 1 + batch / batches) / epochs
        bar = "█" * round(20 * done) + "░" * (20 - round(20 * done))
        self._put(f"{bar} epoch {epoch}/{epochs}  batch {batch}/{batches}  loss {loss:.4f}{self.last}")

    def epoch(self, val_loss: float, val_metric: float) -> None:
        self.last = "" if math.isnan(val_loss) else f"  val_loss {val_loss:.4f}  {self.metric} {val_metric:.4f}"

    def _put(self, text: str) -> None:
        if _in_notebook():
            from IPython.display import HTML, display

            html = HTML(f"<pre>{text}</pre>")
            if self.display is None:
                self.display = display(html, display_id=True)
            else:
                self.display.update(html)
        elif sys.stderr.isatty():
            print("\r\033[K" + text, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.show and not _in_notebook() and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell else None
    return kernel is not None and kernel.__class__.__name__ == "ZMQInteractiveShell"


class Run:
    """What a training leaves: the best model's bytes, the table of its epochs, what was remarked."""

    def __init__(self) -> None:
        self.contents = b""
        self.log = ""
        self.history: list[dict[str, float]] = []
        self.remarks: list[str] = []
        self.interrupted: BaseException | None = None


def _memory_folder() -> str | None:
    """Where files need no disk: a run is flushed to it after every epoch, which a run that nobody keeps need not wait for."""
    folder, enough = "/dev/shm", 256 << 20
    if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > enough:
        return folder
    return None


def train(data: Data, words: list[str], out: str | None, progress: Progress) -> Run:
    """Runs `mtan train own` with these options. An exception while it runs, such as that of Ctrl-C, ends it after the step; the run then
    has it, and the best model so far if there is one."""
    run = Run()
    with tempfile.TemporaryDirectory(prefix="mtan-", dir=_memory_folder()) as temporary:
        folder = pathlib.Path(out) if out else pathlib.Path(temporary) / "run"
        status = _call(data, ["train", "own", "--out", str(folder), *words], run, progress)
        best, log = folder / "best.safetensors", folder / "log.csv"
        if status not in (0, INTERRUPTED):
            raise Error(flat.complaint())
        run.contents = best.read_bytes() if best.exists() else b""
        run.log = log.read_text() if log.exists() else ""
        if run.log:  # a search has told of its trials' epochs too
            run.history = [{name: float(x or "nan") for name, x in row.items()} for row in csv.DictReader(io.StringIO(run.log))]
    return run


def command(data: Data | None, words: list[str]) -> list[str]:
    """Another command that writes files. Returns what was remarked."""
    run = Run()
    if _call(data, words, run, Progress(False, "")) != 0:
        raise Error(flat.complaint())
    return run.remarks


def _call(data: Data | None, words: list[str], run: Run, progress: Progress) -> int:
    def hear(_context: Any, _wrong: int, text: bytes) -> None:
        run.remarks.append(text.decode("utf-8", "replace"))

    def go_on(_context: Any, epoch: int, epochs: int, batch: int, batches: int, loss: float, *validation: float) -> int:
        try:
            _told(run, progress, epoch, epochs, batch, batches, loss, *validation)
        except BaseException as error:  # nothing may leave a callback: it is raised when C has come to an end
            run.interrupted = run.interrupted or error
        return run.interrupted is None

    listener, asked = _flat.LISTENER(hear), _flat.PROGRESS(go_on)
    flat.listen(listener, None)
    try:
        n, list_of_words = _flat.words(words)
        with _interrupts(run):
            return flat.run(data.handle if data else None, n, list_of_words, asked, None)
    finally:
        flat.listen(_flat.LISTENER(), None)
        progress.end()


@contextlib.contextmanager
def _interrupts(run: Run) -> Iterator[None]:
    """Ctrl-C is noted and not raised, as no exception may begin inside a callback of C. Threads but the main one get no signals."""
    usual = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual:
        yield
        return

    def note(_number: int, _frame: Any) -> None:
        run.interrupted = run.interrupted or KeyboardInterrupt()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _told(
    run: Run,
    progress: Progress,
    epoch: int,
    epochs: int,
    batch: int,
    batches: int,
    loss: float,
    val_loss: float,
    val_metric: float,
) -> None:
    if batch > 0:
        progress.step(epoch, epochs, batch, batches, loss)
        return
    run.history.append({"epoch": epoch, "train_loss": loss, "val_loss": val_loss, "val_metric": val_metric})
    progress.epoch(val_loss, val_metric)
