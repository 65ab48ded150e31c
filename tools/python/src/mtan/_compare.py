"""Compares a model with the published code, number by number and in double: outputs, losses, gradients."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ._flat import Error, flat_double
from ._model import Data, Model
from .events import Events

# Settings that the published code does not have, and the values under which a model equals it.
_PUBLISHED = {
    "task": "classes",
    "embed_heads": "shared",
    "statistics": "mean",
    "values": "plain",
    "summaries": "0",
    "statics": "0",
    "trees": "0",
    "variance": "fixed",
    "members": "1",
    "embed_scale": "48",
}
_SAMPLES = 2
_SHARE, _FLOOR = 1e-10, 1e-14  # of a tensor's norm, and of the largest gradient's: golden/README.md, limits


class Row(NamedTuple):
    """One compared quantity: two norms, or two numbers, the norm of the difference, and its limit."""

    what: str
    mtan: float
    reference: float
    difference: float
    limit: float

    @property
    def ok(self) -> bool:
        return self.difference <= self.limit  # false for NaN

    def __str__(self) -> str:
        numbers = f"{self.mtan:22.15g} {self.reference:22.15g}   {self.difference:9.2e}   {self.limit:9.2e}"
        return f"{self.what:44} {numbers}{'' if self.ok else '   DIFFERS'}"


class Batch(NamedTuple):
    """Records in the model's units, for both sides."""

    events: Events
    x: torch.Tensor  # (B, L, 2 D)
    time: torch.Tensor  # (B), or one per time of each record
    label: np.ndarray  # (B), or one to each time of each record
    noise: np.ndarray  # (S, B, K, Z)


# ---- the published code ----


@contextlib.contextmanager
def _double() -> Iterator[None]:
    """Computes everything in double, although the published code calls .float() on its constants."""
    kind, narrow = torch.get_default_dtype(), torch.Tensor.float
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = lambda self: self.double()  # type: ignore[method-assign,assignment,misc]
    try:
        yield
    finally:
        torch.set_default_dtype(kind)
        torch.Tensor.float = narrow  # type: ignore[method-assign]


def _published(checkout: Any) -> tuple[Any, Any]:
    """The published models and utils. torchvision is only needed for downloads, so an empty module replaces it; nothing
    of it stays imported."""
    source = pathlib.Path(checkout) / "src"
    if not (source / "models.py").exists():
        raise Error(f"{os.fspath(checkout)}: no checkout of the published code, which has src/models.py")
    before, path, quiet = dict(sys.modules), list(sys.path), sys.dont_write_bytecode
    for name in ("models", "utils", "physionet", "person_activity"):
        sys.modules.pop(name, None)
    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.utils"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torchvision.datasets.utils"].download_url = None  # type: ignore[attr-defined]
    sys.path.insert(0, str(source))
    sys.dont_write_bytecode = True
    try:
        import models  # type: ignore[import-not-found]
        import utils  # type: ignore[import-not-found]
    finally:
        for name in ("models", "utils", "physionet", "person_activity", "torchvision", "torchvision.datasets"):
            sys.modules.pop(name, None)
        sys.modules.pop("torchvision.datasets.utils", None)
        sys.modules.update(before)
        sys.path[:], sys.dont_write_bytecode = path, quiet
    return models, utils


class _Reference:
    """The published classes with a model's weights."""

    def __init__(self, checkout: Any, model: Model) -> None:
        self.models, self.utils = _published(checkout)
        self.model = model
        self.full, self.classify = model.text("kind") == "full", model.text("classify")
        self.rec = self._weighted(self._encoder(), "rec.")
        self.dec = self._weighted(self._decoder(), "dec.") if self.full else None
        self.head = self._weighted(self._classifier(), "classifier.") if self.full and self.classify != "none" else None

    def _sizes(self, *keys: str) -> list[int]:
        return [int(self.model.number(key)) for key in keys]

    def _encoder(self) -> nn.Module:
        D, N, E, H, Z, K = self._sizes("channels", "enc_hidden", "embed", "enc_heads", "latent", "ref_points")
        kind, learned, query = self.model.text("encoder"), self.model.text("embedding") == "learned", torch.linspace(0, 1, K)
        if kind == "rbf":
            return self.models.enc_interp(D, query, Z, N, device="cpu")
        if kind == "rnn3":
            return self.models.enc_rnn3(D, query, Z, N, E, use_classif=not self.full, learn_emb=learned, device="cpu")
        if self.full:
            return self.models.enc_mtan_rnn(D, query, Z, N, E, H, learned, "cpu")
        base = self.model.number("embed_base")
        if self.classify == "time":
            return self.models.enc_mtan_classif_activity(D, N, E, H, learned, base, "cpu")
        return self.models.enc_mtan_classif(D, query, N, E, H, learned, base, "cpu")

    def _decoder(self) -> nn.Module:
        D, N, E, H, Z, K = self._sizes("channels", "dec_hidden", "embed", "dec_heads", "latent", "ref_points")
        kind, learned, query = self.model.text("decoder"), self.model.text("embedding") == "learned", torch.linspace(0, 1, K)
        if kind == "rbf":
            return self.models.dec_interp(D, query, Z, N, device="cpu")
        made = self.models.dec_rnn3(D, query, Z, N, E, learned, "cpu") if kind == "rnn3" else None
        made = made or self.models.dec_mtan_rnn(D, query, Z, N, E, H, learned, "cpu")
        if self.classify == "time":  # the head reads the decoder's embedding
            made.z0_to_obs = nn.Identity()
        return made

    def _classifier(self) -> nn.Module:
        Z, N, C = self._sizes("latent", "enc_hidden", "classes")
        if self.classify == "record":
            return self.models.create_classifier(Z, N, C)
        hidden = [nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1), nn.ReLU()] if self.model.number("head_hidden") else []
        return nn.Sequential(*hidden, nn.Linear(1, 1))

    def _weighted(self, module: nn.Module, prefix: str) -> nn.Module:
        """The published code fixes the width of some layers, so the model's weights replace the layers' own."""
        tensors = {name[len(prefix) :]: w for name, w in self.model.tensors().items() if name.startswith(prefix)}
        if "classifier.weight" in tensors:
            module.classifier = nn.Linear(1, 1)
        if set(tensors) != {name for name, _ in module.named_parameters()}:
            raise Error(f"{type(module).__name__} of the published code has other parameters than this model's {prefix}*")
        for name, tensor in tensors.items():
            owner, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(owner), leaf, nn.Parameter(torch.from_numpy(np.array(tensor)).double()))
        for part in module.modules():
            if isinstance(part, nn.GRU):
                part.flatten_parameters()
        return module

    def parameters(self) -> dict[str, nn.Parameter]:
        parts = {"rec": self.rec, "dec": self.dec, "classifier": self.head}
        return {f"{p}.{name}": w for p, module in parts.items() if module for name, w in module.named_parameters()}

    def outputs(self, b: Batch) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The outputs that predictions are compared with, with the latent state at its mean; and the losses of the
        published scripts."""
        label, used = torch.from_numpy(b.label.astype(np.int64)), b.x[..., b.x.shape[-1] // 2 :].amax(-1) > 0
        if not self.full:
            logits = self.rec(b.x, b.time)
            logits = logits[used] if self.classify == "time" else logits
            ce = F.cross_entropy(logits, label)
            return {"probabilities": torch.softmax(logits, -1)}, {"loss": ce, "cross-entropy": ce}
        out = self.rec(b.x, b.time)
        mean, logvar = out.chunk(2, -1)
        shown = {"latent mean": mean, "latent log-variance": logvar}
        z = (torch.from_numpy(b.noise) * torch.exp(0.5 * logvar) + mean).flatten(0, 1)
        decoded, plain = self.dec(z, b.time.repeat(_SAMPLES, 1)), self.dec(mean, b.time)  # type: ignore[misc]
        if self.classify == "time":
            shown["probabilities"] = torch.softmax(self.head(plain[used]), -1)  # type: ignore[misc]
            ce = F.cross_entropy(self.head(decoded[used.repeat(_SAMPLES, 1)]), label.repeat(_SAMPLES))  # type: ignore[misc]
            return shown, {"loss": ce, "cross-entropy": ce}
        shown["curves"] = plain[used]
        losses = self._bound(b, mean, logvar, decoded.unflatten(0, (_SAMPLES, -1)))
        if self.head is not None:
            shown["probabilities"] = torch.softmax(self.head(mean), -1)
            losses["cross-entropy"] = F.cross_entropy(self.head(z), label.repeat(_SAMPLES))
            losses["loss"] = losses["loss"] + self.model.number("alpha") * losses["cross-entropy"]
        return shown, losses

    def _bound(self, b: Batch, mean: torch.Tensor, logvar: torch.Tensor, predicted: torch.Tensor) -> dict[str, torch.Tensor]:
        args = types.SimpleNamespace(std=self.model.number("noise_std"), norm=bool(self.model.number("norm")))
        logpx, kl = self.utils.compute_losses(b.x.shape[-1] // 2, b.x, mean, logvar, predicted, args, "cpu")
        bound = torch.logsumexp(logpx - kl, 0).mean(0) - np.log(_SAMPLES)
        return {"loss": -bound, "minus the bound": -bound, "KL": kl.mean()}


# ---- both sides ----


def _comparable(model: Model) -> None:
    for key, value in _PUBLISHED.items():
        if model.text(key) != value:
            raise Error(f"the published code has no {key} = {model.text(key)}: to_torch has it, and compares with predict")
    if model.text("mtan.architecture", "mtand-enc") not in ("mtand-enc", "mtand-full"):
        raise Error(f"the published code has no {model.text('mtan.architecture')}")
    if model.text("reference") != ("observed" if model.text("kind") == "enc" and model.text("classify") == "time" else "even"):
        raise Error("the published code's reference points lie evenly")


def _random_events(model: Model, records: int, rng: np.random.Generator) -> Events:
    """In the model's units."""
    D = len(model.channels)
    n = rng.integers(D + 2, 4 * D + 20, records)
    record = np.repeat(np.arange(records), n)
    return _as_events(model, record, rng.uniform(0, 1, len(record)), rng.integers(0, D, len(record)), rng.normal(size=len(record)))


def _as_events(model: Model, record: np.ndarray, time: np.ndarray, channel: np.ndarray, value: np.ndarray) -> Events:
    names = [f"r{i}" for i in range(record.max() + 1)]
    return Events._make(names, record, model.channels, channel, value, time, None)


def _given_events(model: Model, data: Data) -> tuple[Events, np.ndarray]:
    """The records that have observations, in the model's units, and their indices."""
    offset, time, channel, value = model.prepared(data)
    kept = np.flatnonzero(np.diff(offset))
    record = np.repeat(np.arange(len(kept)), np.diff(offset)[kept])
    return _as_events(model, record, time, channel, value), kept


def _mtan_outputs(model: Model, data: Data, b: Batch) -> dict[str, np.ndarray]:
    used = b.x[..., b.x.shape[-1] // 2 :].amax(-1).numpy() > 0
    shown = {}
    if model.text("kind") == "full":
        shown["latent mean"], shown["latent log-variance"] = model.latent(data, 1)
    if model.text("classify") != "none":
        rows = int(used.sum()) if model.is_per_time else len(used)
        shown["probabilities"] = model.predict(data, rows, 1, 0, 0)
    if model.text("kind") == "full" and not model.is_per_time:
        data.queries(np.concatenate([[0], np.cumsum(used.sum(1))]), b.time.numpy()[used])
        shown["curves"] = model.interpolate(data, int(used.sum()), 1, 0, 0)[0]
    return shown


def _row(what: str, ours: np.ndarray, theirs: np.ndarray, floor: float) -> Row:
    norm = np.linalg.norm
    shown = (float(ours), float(theirs)) if np.ndim(theirs) == 0 else (float(norm(ours)), float(norm(theirs)))
    difference = float(norm(np.ravel(ours) - np.ravel(theirs)))
    return Row(what, *shown, difference, float(_SHARE * norm(theirs) + floor))


def compare(model: Model, checkout: Any, data: Data | None, label: np.ndarray | None, records: int, seed: int) -> list[Row]:
    """Rows of outputs, losses and gradients."""
    _comparable(model)
    rng = np.random.default_rng(seed)
    bare = Model(model.bare(bound="faithful", samples=str(_SAMPLES), kl_anneal="0", skip_empty="0"), flat_double())
    events, kept = (_random_events(model, records, rng), None) if data is None else _given_events(model, data)
    with _double():
        both = Data(events, flat_double())
        x, time = (torch.from_numpy(a) for a in bare.dense(both, np.float64))
        rows = int((x[..., x.shape[-1] // 2 :].amax(-1) > 0).sum()) if bare.is_per_time else len(x)
        if label is None or bare.is_per_time:
            label, kept = rng.integers(0, max(bare.outputs, 1), rows), None
        label = label if kept is None else label[kept]
        K, Z = int(bare.number("ref_points")), int(bare.number("latent"))
        batch = Batch(events, x, time, label, rng.normal(size=(_SAMPLES, len(x), K, Z)))
        return _rows(bare, both, batch, _Reference(checkout, bare))


def _rows(model: Model, data: Data, b: Batch, reference: _Reference) -> list[Row]:
    theirs, losses = reference.outputs(b)
    parameters = reference.parameters()
    slopes = torch.autograd.grad(losses["loss"], list(parameters.values()), allow_unused=True)
    if model.text("classify") != "none":
        _put_labels(data, model, b)
    noise = b.noise.swapaxes(0, 1) if model.text("kind") == "full" else None
    loss, gradient = model.gradient(data, noise, 1.0)
    ours = _mtan_outputs(model, data, b)
    measured = dict(zip(("loss", "minus the bound", "cross-entropy", "KL"), loss))
    found = {name: np.zeros(gradient[name].size) if g is None else g.numpy().ravel() for name, g in zip(parameters, slopes)}
    floor = _FLOOR * max(float(np.linalg.norm(g)) for g in found.values())
    rows = [_row(name, ours[name], value.detach().numpy(), _FLOOR) for name, value in theirs.items()]
    rows += [_row(name, measured[name], value.detach().numpy(), _FLOOR) for name, value in losses.items()]
    return rows + [_row("gradient of " + name, gradient[name], value, floor) for name, value in found.items()]


def _put_labels(data: Data, model: Model, b: Batch) -> None:
    names = model.classes or [str(i) for i in range(model.outputs)]
    if model.is_per_time:
        used = b.x[..., b.x.shape[-1] // 2 :].amax(-1).numpy() > 0
        data.label_times(np.concatenate([[0], np.cumsum(used.sum(1))]), b.time.numpy()[used])
    data.classes(names, b.label)


def table(rows: list[Row]) -> str:
    title = f"{'':44} {'mtan':>22} {'reference':>22}   difference   limit"
    return "\n".join([title, *map(str, rows)])
