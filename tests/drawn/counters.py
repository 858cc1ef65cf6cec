"""Counters, ranges and device work with arguments, drawn for tests."""

from __future__ import annotations

from typing import Any

from tests.drawn.timelines import timed
from tests.drawn.trace_text import Number

PM_PROCESS = "GPU 0 Counters"


def counter(
    at_ns: int, name: str, pid: Any = PM_PROCESS, cat: str = "hardware_counters", tid: Any = 0, **values: Any
) -> dict:
    """Values of a counter; without any named ones the single one is ``_``, the metric that Kineto's CUDA sampler writes."""
    series = {"" if key == "_" else key: value for key, value in values.items()}
    time = Number(f"{at_ns // 1000}.{at_ns % 1000:03d}")
    return {"ph": "C", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": time, "args": series}


def work(start: int, dur: int, name: str = "gemm", cat: str = "kernel", stream: int = 7, **args: Any) -> dict:
    """Work on device 0 that says something of itself."""
    event = timed(start, dur, name, cat, (0, stream))
    return {**event, "args": {"device": 0, "stream": stream, **args}}


def ranged(place: int, name: str, dur: int = 50, **metrics: Any) -> dict:
    """A range of CUPTI's profiler, which Kineto puts anywhere."""
    event = timed(place * dur, dur, name, "cuda_profiler_range", (0, 0))
    return {**event, "args": {key.replace("__dot__", "."): value for key, value in metrics.items()}}
