"""Loops over events that are written once and run in one of two ways.

A loop is a plain function of sequences, integers and output sequences. It runs uncompiled for few events, for which loading
machine code would take longer, and as machine code for many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from overhead_lens.machine_code import MachineCode

LOADED_FROM, COMPILED_FROM = 20_000, 250_000
"""Events from which on machine code repays loading it (0.1 s at most, against 1 us per event and loop, of which there are
several), and from which on it repays compiling it, once per machine."""

Array = npt.NDArray[Any]


def run(loop: Callable[..., int], inputs: Sequence[Array | int], outputs: Sequence[Array], event_count: int) -> int:
    """Call ``loop(*inputs, *outputs)``; it fills the outputs and returns how much of them it filled."""
    if event_count >= LOADED_FROM:
        contiguous = (np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value for value in inputs)
        passed = (*contiguous, *outputs)
        code = _machine_code(loop)
        # If the scanner had to be compiled, the compiler is loaded already.
        if event_count >= COMPILED_FROM or "numba" in sys.modules or code.is_stored(*passed):
            return code(*passed)[0]
    plain_outputs = [output.tolist() for output in outputs]
    plain_inputs = [value.tolist() if isinstance(value, np.ndarray) else value for value in inputs]
    filled = loop(*plain_inputs, *plain_outputs)
    for output, plain in zip(outputs, plain_outputs, strict=True):
        output[:] = plain
    return filled


@cache
def _machine_code(loop: Callable[..., int]) -> MachineCode:
    return MachineCode(f"{loop.__module__}:{loop.__qualname__}")
