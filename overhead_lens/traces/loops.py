"""Loops over events that are written once and run in one of two ways.

A loop is a plain function of sequences, integers and output sequences. It runs as it stands for few events, for which loading
the compiler would take longer, and compiled by numba for many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

COMPILED_FROM = 250_000
"""Events from which on compiled code repays loading numba (about 0.5 s with its cache, against 1 us per event and loop)."""

COMPILED_FROM_LOADED = 10_000
"""The same where numba is loaded already, as it is for a trace that was scanned."""

Array = npt.NDArray[Any]


def run(loop: Callable[..., int], inputs: Sequence[Array | int], outputs: Sequence[Array], event_count: int) -> int:
    """Call ``loop(*inputs, *outputs)``; it fills the outputs and returns how much of them it filled."""
    if event_count >= (COMPILED_FROM_LOADED if "numba" in sys.modules else COMPILED_FROM):
        return int(_compiled(loop)(*inputs, *outputs))
    plain_outputs = [output.tolist() for output in outputs]
    plain_inputs = [value.tolist() if isinstance(value, np.ndarray) else value for value in inputs]
    filled = loop(*plain_inputs, *plain_outputs)
    for output, plain in zip(outputs, plain_outputs, strict=True):
        output[:] = plain
    return filled


@cache
def _compiled(loop: Callable[..., int]) -> Callable[..., int]:
    from numba import njit

    try:
        compiled: Callable[..., int] = njit(cache=True, nogil=True)(loop)
    except RuntimeError:  # no place to keep the cache: compile in every process
        compiled = njit(nogil=True)(loop)
    return compiled
