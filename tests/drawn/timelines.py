"""Traces drawn as text: one line per event, one column is one nanosecond, ``[`` its start and ``)`` its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.readers.kineto import read as kineto
from overhead_lens.readers.kineto.document import decoded
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from tests.drawn.trace_text import Number, document, event

CLASSIFIER = default_classifier()

MAIN, AUTOGRAD, WORKER = (1, 10), (1, 11), (1, 12)


def drawn(drawing: str, name: str, cat: str = "cpu_op", thread: tuple[Any, Any] = MAIN, **args: Any) -> dict:
    """An event of a host thread."""
    start, end = drawing.index("["), drawing.index(")")
    return timed(start, end - start, name, cat, thread, **args)


def timed(start: int, dur: int, name: str, cat: str = "cpu_op", thread: tuple[Any, Any] = MAIN, **args: Any) -> dict:
    """The same by numbers, in ns."""
    return event(name, cat, Number(_us(start)), Number(_us(dur)), thread[0], thread[1], **args)


def call(drawing: str, correlation: int, name: str = "cudaLaunchKernel", thread: tuple[Any, Any] = MAIN) -> dict:
    """A runtime call."""
    return drawn(drawing, name, "cuda_runtime", thread, correlation=correlation)


def kernel(
    drawing: str, correlation: int, name: str = "gemm", cat: str = "kernel", device: int = 0, stream: int = 7
) -> dict:
    """Work on a device."""
    return drawn(drawing, name, cat, (device, stream), device=device, stream=stream, correlation=correlation)


def trace_of(entries: Sequence[dict], metadata: Mapping[str, Any] | None = None) -> Trace:
    """A trace of these events; an event at 0 keeps the drawing's columns as they are."""
    text = document(entries, **(metadata or {})).encode()
    found = decoded(Path("t.json"), memoryview(text))
    assert found is not None
    return kineto.trace_of(found)


def events(*rows: tuple[str, str, int, int]) -> pd.DataFrame:
    """Events of one thread as a frame: name, category, start and duration in ns."""
    frame = pd.DataFrame(list(rows), columns=["name", "cat", "start_ns", "dur_ns"], dtype=object)
    return frame.astype({"start_ns": "int64", "dur_ns": "int64"}).assign(pid=1, tid=1, correlation=-1)


def analyzer_of(*entries: dict, **metadata: Any) -> Analyzer:
    return Analyzer(trace_of(entries, metadata), CLASSIFIER)


def host(budget: Sequence[Any]) -> dict[str, int]:
    """Categories that took time."""
    return {each.category: each.ns for each in budget if each.ns}


def blame(device: Any) -> dict[str, int]:
    return {name: ns for name, ns in device.idle_blame.items() if ns}


def _us(ns: int) -> str:
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
