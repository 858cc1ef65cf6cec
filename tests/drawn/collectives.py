"""Communication kernels and the calls around their launches, drawn for tests."""

from __future__ import annotations

from typing import Any

from tests.drawn.timelines import timed


def collective(
    start: int, dur: int, kind: str = "allreduce", elements: int = 8, group: str = "0", size: int = 2, **more: Any
) -> dict:
    """A kernel with the arguments that Kineto repeats from ``record_param_comms``; others replace or add to them."""
    arguments = {
        "device": 0,
        "stream": 9,
        "Collective name": kind,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": size,
        "dtype": "Float",
        "Process Group Name": group,
    }
    spelled = {key.replace("__", " "): value for key, value in more.items()}
    return {**timed(start, dur, "ncclDevKernel_Generic", "kernel", (0, 9)), "args": {**arguments, **spelled}}


def shaped(start: int, dur: int, name: str, cat: str, *dims: list[int], dtype: str = "float") -> dict:
    """A call with the shapes of its tensors."""
    event = timed(start, dur, name, cat)
    return {**event, "args": {"Input Dims": list(dims), "Input type": [dtype if one else "" for one in dims]}}
