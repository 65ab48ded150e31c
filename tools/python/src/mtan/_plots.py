"""Curves as inline SVG, for notebooks: no scripts, nothing loaded from elsewhere, text in the page's own colour."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import numpy as np

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 320, 210, 46, 24, 10, 34
_COLOURS = ("#3b6fb6", "#c2542d", "#5a8f3c")


class Curve(NamedTuple):
    name: str
    x: Any
    y: Any
    low: Any = None  # a band around it
    high: Any = None
    dots: bool = False


class _Axes:
    """Converts the data's numbers to positions in a figure."""

    def __init__(self, curves: list[Curve]) -> None:
        self.x = self._range(np.concatenate([np.ravel(c.x) for c in curves]))
        parts = [part for c in curves for part in (c.y, c.low, c.high) if part is not None]
        self.y = self._range(np.concatenate([np.ravel(part) for part in parts]))

    @staticmethod
    def _range(numbers: np.ndarray) -> tuple[float, float]:
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    def place(self, x: Any, y: Any) -> list[tuple[float, float]]:
        """Positions of the points that are not NaN."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        known = np.isfinite(x) & np.isfinite(y)
        across = (x[known] - self.x[0]) / (self.x[1] - self.x[0]) * (_WIDTH - _LEFT - _RIGHT) + _LEFT
        down = (self.y[1] - y[known]) / (self.y[1] - self.y[0]) * (_HEIGHT - _TOP - _BOTTOM) + _TOP
        return list(zip(across.round(1).tolist(), down.round(1).tolist()))


def _path(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _drawn(axes: _Axes, curve: Curve, colour: str) -> str:
    points, out = axes.place(curve.x, curve.y), ""
    if curve.low is not None:
        around = axes.place(curve.x, curve.low) + axes.place(curve.x, curve.high)[::-1]
        out += f'<polygon points="{_path(around)}" fill="{colour}" fill-opacity="0.2"/>'
    if curve.dots:
        return out + "".join(f'<circle cx="{x:g}" cy="{y:g}" r="2.2" fill="{colour}"/>' for x, y in points)
    return out + f'<polyline points="{_path(points)}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _frame(axes: _Axes, xlabel: str, ylabel: str) -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    text = f'<path d="M{_LEFT},{_TOP}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>'
    for value, x, anchor in ((axes.x[0], _LEFT, "start"), (axes.x[1], right, "end")):
        text += f'<text x="{x}" y="{bottom + 13}" text-anchor="{anchor}">{value:.4g}</text>'
    for value, y in ((axes.y[0], bottom), (axes.y[1], _TOP + 8)):
        text += f'<text x="{_LEFT - 4}" y="{y}" text-anchor="end">{value:.3g}</text>'
    text += f'<text x="{(_LEFT + right) // 2}" y="{_HEIGHT - 6}" text-anchor="middle">{html.escape(xlabel)}</text>'
    middle = (_TOP + bottom) // 2
    return text + f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{html.escape(ylabel)}</text>'


def figure(title: str, xlabel: str, ylabel: str, curves: list[Curve]) -> str:
    """A figure of curves with a legend, each curve in its own colour."""
    axes = _Axes(curves)
    names = "".join(
        f'<tspan fill="{_COLOURS[i % len(_COLOURS)]}" dx="8">{html.escape(c.name)}</tspan>' for i, c in enumerate(curves) if c.name
    )
    drawn = "".join(_drawn(axes, c, _COLOURS[i % len(_COLOURS)]) for i, c in enumerate(curves))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="10" fill="currentColor"><title>{html.escape(title)}</title>'
        f'<text x="{_LEFT}" y="14" font-weight="bold">{html.escape(title)}{names}</text>'
        f"{_frame(axes, xlabel, ylabel)}{drawn}</svg>"
    )


def training(history: list[dict[str, float]], same_loss: bool) -> str:
    """The curves of a training. A model with a decoder is trained by a bound but validated by another measure; then
    only that measure is shown."""
    kinds = {"training": "train_loss", "validation": "val_loss"} if same_loss else {"validation": "val_loss"}
    epoch = [row["epoch"] for row in history]
    curves = [Curve(name, epoch, [row.get(key, np.nan) for row in history]) for name, key in kinds.items()]
    return figure("Loss", "epoch", "loss", curves)


def roc(score: np.ndarray, positive: np.ndarray, records: str) -> str:
    """The ROC curve from the scores of records and whether they are of the class."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.diff(score[order]) != 0, True)  # records with equal scores are passed together
    hit = np.append(0, np.cumsum(positive[order])[ends]) / max(int(positive.sum()), 1)
    miss = np.append(0, np.cumsum(~positive[order])[ends]) / max(int((~positive).sum()), 1)
    area = float(np.sum(np.diff(miss) * (hit[1:] + hit[:-1]) / 2))
    return figure(f"ROC, {records}: AUC {area:.3f}", "false positives", "true positives", [Curve("", miss, hit)])
