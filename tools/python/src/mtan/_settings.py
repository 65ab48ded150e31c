"""The settings that other frameworks need to rebuild a model."""

from __future__ import annotations

import numpy as np

from ._flat import Error
from ._model import Model

_FEATURES = {"mean": 1, "spread": 1, "intensity": 1, "slope": 3}
LEAVES = 12  # of a tree
COURSE = 8  # parts of time whose means a classifier can read
_NUMBERS = (0, 11, 20, 20 + COURSE)  # per channel that a classifier reads, by the setting `summaries`
_FASTEST = 16.0  # cycles per unit of time, if a model does not say


class Settings:
    """The settings that define the layers. Refuses settings that the layers do not support."""

    def __init__(self, model: Model, who: str) -> None:
        def whole(key: str) -> int:
            return int(model.number(key))

        if model.text("mtan.architecture", "mtand-enc") not in ("mtand-enc", "mtand-full"):
            raise Error(f"{who} knows mTAND-Enc and mTAND-Full, and this is a {model.text('mtan.architecture')}")
        self.full = model.text("kind") == "full"
        for part in ("encoder", "decoder") if self.full else ("encoder",):
            if model.text(part) != "attention":
                raise Error(f"{who} knows attention, and this model's {part} is {model.text(part)}")
        if model.text("reference") == "given":
            raise Error(f"{who} knows reference points that lie evenly, and this model's are given")
        if self.full and model.text("reference") == "observed":
            raise Error(f"{who} knows mTAND-Full with reference points of its own, and this model's are the observed times")
        if any(tensor.dtype == np.int8 for tensor in model.tensors().values()):
            raise Error(f"{who} knows models in float, and this one is quantized")
        self.classify, self.task, self.rule = model.text("classify"), model.text("task"), model.text("rule")
        self.channels, self.classes, self.outputs = whole("channels"), whole("classes"), model.outputs
        self.members = max(1, whole("members"))
        if self.members > 1 and self.classify == "none":
            raise Error(f"{who} knows ensembles that classify, and this one interpolates")
        self.statics, self.summaries, self.trees = whole("statics"), whole("summaries"), whole("trees")
        self.statistics = model.text("statistics").split(",")
        self.values, self.bins = model.text("values"), whole("bins")
        self.rate = float(np.float32(2 * (model.number("fastest") or _FASTEST)))  # as in the library
        self.embed, self.learned = whole("embed"), model.text("embedding") == "learned"
        self.per_head = model.text("embed_heads") == "per_head"
        self.base, self.scale = model.number("embed_base"), model.number("embed_scale")
        self.enc_heads, self.dec_heads = whole("enc_heads"), whole("dec_heads")
        self.enc_hidden, self.dec_hidden, self.mlp_hidden = whole("enc_hidden"), whole("dec_hidden"), whole("mlp_hidden")
        self.head_hidden, self.latent, self.ref_points = whole("head_hidden"), whole("latent"), whole("ref_points")
        self.noise_std, self.learned_variance = model.number("noise_std"), model.text("variance") == "learned"

    @property
    def observed(self) -> bool:
        """Are the reference points the observed times?"""
        return self.classify == "time" and not self.full

    @property
    def varying(self) -> int:
        return self.channels - self.statics

    @property
    def attended(self) -> int:
        """Channels that attention sees: those that are not static, with their bins."""
        return self.varying * (1 + self.bins if self.values == "piecewise" else 1)

    @property
    def columns(self) -> int:
        """Columns of a head: the statistics of each channel and, unless the intensity is among them, the mask."""
        masks = 0 if "intensity" in self.statistics else 1
        return (sum(_FEATURES[name] for name in self.statistics) + masks) * self.attended

    @property
    def summary_width(self) -> int:
        return _NUMBERS[self.summaries] * self.varying + 2 * self.statics
