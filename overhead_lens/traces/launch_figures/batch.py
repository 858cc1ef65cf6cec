"""The batch size of a trace, as the recorded shapes of its first layer say it."""

from __future__ import annotations

from typing import Any

import numpy as np

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import OPERATORS
from overhead_lens.traces.launch_figures.model import InputBatch

_INPUT = {"aten::embedding": 1, "aten::conv1d": 0, "aten::conv2d": 0, "aten::conv3d": 0, "aten::linear": 0}
"""Which argument of the first layer holds the batch, in its first dimension."""

_SHAPES = "Input Dims"


def input_batch(trace: Trace) -> InputBatch:
    """Leading dimension of the input of the first embedding, convolution or linear layer.

    Shapes are ``Input Dims`` of ``record_shapes=True`` (torch/csrc/autograd/profiler_kineto.cpp). An input of one dimension
    is not a batch: serving engines put the tokens of all requests into one.
    """
    events = trace.events
    layers = where(events["cat"], OPERATORS.__contains__) & where(events["name"], _INPUT.__contains__)
    rows = np.flatnonzero(layers)
    if not len(rows):
        return InputBatch(None, "no embedding, convolution or linear layer in the trace")
    first = int(rows[np.argmin(events["start_ns"].to_numpy()[rows])])
    name = str(events["name"].iloc[first])
    arguments = trace.arguments([first])[0]
    if _SHAPES not in arguments:
        return InputBatch(None, "recorded without shapes (record_shapes=True)")
    shape = _shape(arguments[_SHAPES], _INPUT[name])
    if shape is None or len(shape) < 2 or shape[0] < 1:
        return InputBatch(None, f"the input of {name} has no batch dimension")
    return InputBatch(shape[0], f"{name} of {shape}")


def _shape(shapes: Any, at: int) -> list[int] | None:
    """The shape of one argument; None for what is none."""
    if not isinstance(shapes, list) or len(shapes) <= at or not isinstance(shapes[at], list):
        return None
    shape = shapes[at]
    return shape if all(type(size) is int for size in shape) else None
