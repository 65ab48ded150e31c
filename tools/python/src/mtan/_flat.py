"""The C interface (tools/mtan/flat/flat.h) through ctypes.

Calls release the GIL. A failed call raises `Error` with the tool's own message.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Iterable
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np


class Error(ValueError):
    """An error message of the `mtan` command."""


def _library(name: str) -> ctypes.CDLL:
    folder = pathlib.Path(__file__).parent
    for file in (folder / f"{name}.so", folder / f"{name}.dylib"):
        if file.exists():
            return ctypes.CDLL(str(file))
    raise ImportError(f"{folder}: the compiled library is missing; install the package from its wheel")


LISTENER = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
PROGRESS = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_int32, c_int32, c_double, c_double, c_double)

_p = c_void_p  # a handle or an array
_HOW = [_p, _p, c_int32, c_int32, c_uint64]  # model, data, threads, samples, seed

# Every function of flat.h: its result and its arguments. A test compares the names with the header.
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "message": (c_char_p, []),
    "listen": (None, [LISTENER, c_void_p]),
    "data_new": (_p, [c_int32, c_char_p, _p, c_int32, c_char_p, _p, _p, _p, _p]),
    "data_free": (None, [_p]),
    "data_statics": (None, [_p, c_int32]),
    "data_classes": (None, [_p, c_int32, c_char_p, _p]),
    "data_numbers": (None, [_p, _p]),
    "data_labels": (None, [_p, c_int32, c_char_p, _p]),
    "data_label_times": (None, [_p, _p, _p, _p]),
    "data_groups": (None, [_p, _p]),
    "data_parts": (None, [_p, _p]),
    "data_queries": (None, [_p, _p, _p]),
    "data_skip_unknown": (None, [_p, c_int32]),
    "model_load": (_p, [c_char_p]),
    "model_open": (_p, [c_char_p, c_size_t]),
    "model_free": (None, [_p]),
    "model_bytes": (_p, [_p, ctypes.POINTER(c_size_t)]),
    "model_save": (c_int32, [_p, c_char_p]),
    "model_text": (c_int32, [_p, c_char_p, c_char_p, c_size_t, ctypes.POINTER(c_size_t)]),
    "model_backend": (c_char_p, [_p]),
    "model_outputs": (c_int32, [_p]),
    "model_channels": (c_int32, [_p]),
    "model_channel": (c_char_p, [_p, c_int32]),
    "model_class": (c_char_p, [_p, c_int32]),
    "model_positive": (c_int32, [_p]),
    "model_unit": (c_char_p, [_p]),
    "model_has_dates": (c_int32, [_p]),
    "model_from_first": (c_int32, [_p]),
    "model_range": (c_int32, [_p, c_int32, ctypes.POINTER(c_double), ctypes.POINTER(c_double)]),
    "times": (c_int32, [_p, _p, _p, _p]),
    "predict": (c_int32, [*_HOW, _p]),
    "interpolate": (c_int32, [*_HOW, _p, _p]),
    "latent": (c_int32, [_p, _p, c_int32, _p, _p]),
    "attention": (c_int32, [_p, _p, c_int32, c_int32, c_int32, _p, _p]),
    "observations": (c_int32, [_p, _p, c_int32, ctypes.POINTER(c_int32), _p, _p, _p]),
    "importance": (c_int32, [_p, _p, c_int32, c_int32, ctypes.POINTER(c_int32), ctypes.POINTER(c_double), _p]),
    "metric": (c_char_p, [_p, c_int32]),
    "evaluate": (c_int32, [*_HOW, c_int32, _p]),
    "prepare": (c_int32, [_p, _p, _p, _p, _p, _p]),
    "parameters": (c_int32, [_p]),
    "parameter": (c_int32, [_p, c_int32, c_char_p, c_size_t, ctypes.POINTER(c_int32), ctypes.POINTER(c_int32)]),
    "gradient": (c_int32, [_p, _p, _p, c_uint64, c_double, _p, _p]),
    "stream_new": (_p, [_p, c_char_p, c_int32, c_uint64]),
    "stream_free": (None, [_p]),
    "stream_push": (c_int32, [_p, c_double, c_int64, c_char_p, c_double]),
    "stream_predict": (c_int32, [_p, c_double, c_int64, _p]),
    "stream_interpolate": (c_int32, [_p, c_double, c_int64, _p, _p]),
    "stream_reset": (c_int32, [_p]),
    "run": (c_int32, [_p, c_int32, ctypes.POINTER(c_char_p), PROGRESS, c_void_p]),
}


class Functions:
    """The functions of a library by their short names: `flat.predict` is mtan_flat_predict."""

    def __init__(self, library: ctypes.CDLL, without: str = "") -> None:
        for name, (result, arguments) in SIGNATURES.items():
            if name == without:
                continue
            function = getattr(library, "mtan_flat_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for type checkers: all are set above
        raise AttributeError(name)


    def complaint(self) -> str:
        """The message of the last call that failed."""
        return self.message().decode("utf-8", "replace") or "the call failed"

    def check(self, status: int) -> None:
        """Raises the call's message if this status is a failure."""
        if status != 0:
            raise Error(self.complaint())

    def handle(self, pointer: int | None) -> int:
        """A handle that a call has returned; raises the call's message if it is null."""
        if not pointer:
            raise Error(self.complaint())
        return pointer


flat = Functions(_library("_mtan"))


@functools.cache
def flat_double() -> Functions:
    """The same functions from a library that computes in double, for comparisons; it does not run commands."""
    return Functions(_library("_mtan_double"), without="run")


def address(array: np.ndarray | None) -> int | None:
    """The address of an array, which must be contiguous and outlive the call."""
    return None if array is None else array.ctypes.data


def names(texts: Iterable[str]) -> bytes:
    """A list of names in C's form: zero-terminated, one after the other."""
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    for text in encoded:
        if b"\0" in text:
            raise Error(f"the name {text!r} has a zero byte in it")
    return b"".join(text + b"\0" for text in encoded) or b"\0"


def words(texts: Iterable[str]) -> tuple[int, ctypes.Array[c_char_p]]:
    """Words of a command line, and their number."""
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    return len(encoded), (c_char_p * len(encoded))(*encoded)
