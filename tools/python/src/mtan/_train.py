"""`mtan train own` on records in memory: the same C code, the same bytes."""

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
    """Shows the progress of a training, in a line of a terminal or of a notebook."""

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
    """The results of a training: the best model's bytes, the table of its epochs, and the remarks."""

    def __init__(self) -> None:
        self.contents = b""
        self.log = ""
        self.history: list[dict[str, float]] = []
        self.remarks: list[str] = []
        self.interrupted: BaseException | None = None


def _memory_folder() -> str | None:
    """A folder in memory. A run is flushed to disk after every epoch, and a run that is not kept need not wait for
    that."""
    folder, enough = "/dev/shm", 256 << 20
    if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > enough:
        return folder
    return None


def train(data: Data, words: list[str], out: str | None, progress: Progress) -> Run:
    """Runs `mtan train own` with these options. An exception during the run, such as that of Ctrl-C, ends it after the
    current step; the run then holds the exception, and the best model so far if there is one."""
    run = Run()
    with tempfile.TemporaryDirectory(prefix="mtan-", dir=_memory_folder()) as temporary:
        folder = pathlib.Path(out) if out else pathlib.Path(temporary) / "run"
        status = _call(data, ["train", "own", "--out", str(folder), *words], run, progress)
        best, log = folder / "best.safetensors", folder / "log.csv"
        if status not in (0, INTERRUPTED):
            raise Error(flat.complaint())
        run.contents = best.read_bytes() if best.exists() else b""
        run.log = log.read_text() if log.exists() else ""
        if run.log:  # a search also reports the epochs of its trials
            run.history = [{name: float(x or "nan") for name, x in row.items()} for row in csv.DictReader(io.StringIO(run.log))]
    return run


def command(data: Data | None, words: list[str]) -> list[str]:
    """Runs another command that writes files. Returns its remarks."""
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
        except BaseException as error:  # nothing may escape from a callback: it is raised after C has returned
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
    """Records Ctrl-C instead of raising it, because no exception may start inside a callback of C. Only the main thread
    gets signals."""
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
    if epoch == 0:  # after the last epoch, only to ask whether to go on
        return
    if batch > 0:
        progress.step(epoch, epochs, batch, batches, loss)
        return
    run.history.append({"epoch": epoch, "train_loss": loss, "val_loss": val_loss, "val_metric": val_metric})
    progress.epoch(val_loss, val_metric)
