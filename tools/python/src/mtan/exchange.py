"""Models to and from the published PyTorch code."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._flat import Error
from ._model import Data, Model
from ._train import command
from .estimators import _Estimator, _estimator_of, _option_text, _text

_PARTS = ("rec", "dec", "classifier")


def _need(package: str, what: str) -> Any:
    try:
        return __import__(package)
    except ImportError:
        raise ImportError(f"{what} needs {package}: pip install mtan[{package}]") from None


def from_torch(rec: Mapping[str, Any], dec: Any = None, classifier: Any = None, *, like: Any = None, **settings: Any) -> Any:
    """The estimator from state dicts: those of the published classes, or one of `to_torch`, whose names begin with
    rec., dec. and classifier.

        mtan.from_torch(rec.state_dict(), dec.state_dict(), classifier.state_dict(), ref_points=128, enc_heads=2)
        mtan.from_torch(net.state_dict(), like=m)      # m with other weights: its settings and its preprocessing

    Settings are needed where shapes leave them open, as in `mtan convert`. Without `like` the model has no
    preprocessing: values and times are used unchanged.
    """
    states = _by_part(rec) if dec is None and classifier is None else {"rec": rec, "dec": dec, "classifier": classifier}
    if like is not None:
        if settings:
            raise Error("from_torch takes settings or a model to be like, not both")
        model = like._model() if isinstance(like, _Estimator) else like
        return _estimator_of(model.with_weights({f"{p}.{n}": _array(w) for p, s in states.items() if s for n, w in s.items()}))
    return _estimator_of(_converted({part: state for part, state in states.items() if state}, settings))


def _by_part(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Splits a state dict of to_torch by its prefixes; any other is mTAND-Enc's."""
    if not all(name.split(".")[0] in _PARTS for name in state):
        return {"rec": dict(state)}
    parts: dict[str, dict[str, Any]] = {}
    for name, tensor in state.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = tensor
    return parts


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor)


def _converted(states: Mapping[str, Mapping[str, Any]], settings: dict[str, Any]) -> Model:
    """Runs `mtan convert`, which derives the settings from the shapes. It reads a checkpoint without executing it; the
    checkpoint is deleted afterwards."""
    torch = _need("torch", "from_torch")
    words = [word for key, value in settings.items() for word in ("--" + key.replace("_", "-"), _option_text(value))]
    checkpoint = {
        f"{part}_state_dict": {name: torch.as_tensor(_array(tensor)) for name, tensor in state.items()}
        for part, state in states.items()
    }
    with tempfile.TemporaryDirectory(prefix="mtan-") as folder:
        source, target = pathlib.Path(folder) / "state dict", pathlib.Path(folder) / "model.safetensors"
        torch.save({"epoch": 0, **checkpoint}, source)
        try:
            command(None, ["convert", str(source), str(target), *words])
        except Error as error:
            raise Error(str(error).replace(f"{folder}{os.sep}", "")) from None
        return Model(target.read_bytes())


def compare_with_reference(m: Any, checkout: Any, X: Any = None, y: Any = None, *, records: int = 8, seed: int = 0) -> list[Any]:
    """Runs the model and the published code (a folder of it) on the same records, both in double, and prints outputs,
    losses and the gradient of the loss for every parameter, with the norm of each difference next to its limit.

    Without X the records are random, as many as `records`; without y the labels are random too, and the noise of the
    latent state always is. Returns the rows: all(row.ok for row in rows) tells whether the two agree.
    """
    _need("torch", "compare_with_reference")
    _need("sklearn", "the published code")
    from ._compare import compare, table

    model = m._model()
    data = None if X is None else Data(m._events(X))
    if data is not None:
        data.skip_unknown(bool(m.skip_unknown))
    label = None if y is None else np.array([model.classes.index(_text(c)) for c in np.asarray(y)])
    rows = compare(model, checkout, data, label, records, seed)
    print(table(rows))
    worst = sum(not row.ok for row in rows)
    print(f"{len(rows)} compared, {worst} beyond the limit" if worst else f"{len(rows)} compared, all within the limits")
    return rows
