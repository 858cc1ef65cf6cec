"""Holds what the program makes of one trace file against what must hold of any file, damaged or not."""

from __future__ import annotations

import io
import json
import math
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console

from overhead_lens.errors import OverheadLensError
from overhead_lens.readers.kineto import contents, read, stream
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.source import opened
from overhead_lens.report.forms import to_json
from overhead_lens.report.text.analysis import print_analysis
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.ranks import Job
from overhead_lens.traces.structure.compare import compare_structure

ANALYZED, REFUSED, DEFECT = "analyzed", "refused", "defect"

_LIMIT_S = 20
_CLASSIFIER = default_classifier()


@dataclass(frozen=True, slots=True)
class Defect:
    """What must not happen.

    Attributes:
        what: Type of the error, or which promise is broken.
        where: ``file:function`` in which the error arose; empty for a broken promise.
        message: The error's own.
    """

    what: str
    where: str
    message: str

    @property
    def key(self) -> str:
        """Equal for what is probably the same defect."""
        return f"{self.what} {self.where}".strip()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        verdict: ``analyzed``, ``refused`` (by an error of the program's own family) or ``defect``.
        analysis: The analysis; None where there is none.
        defect: The defect; None where there is none.
    """

    verdict: str
    analysis: TraceAnalysis | None = None
    defect: Defect | None = None


class BrokenPromiseError(Exception):
    """A result that contradicts itself or another one."""


def check(path: Path, block_bytes: int, *, thorough: bool) -> Outcome:
    """Read the file in both ways, analyze it and write its JSON.

    Args:
        path: The trace.
        block_bytes: Size of the blocks that the scanner is given.
        thorough: Whether its text, pieces, ranks and structure are made as well.
    """
    try:
        with warnings.catch_warnings(), _at_most(_LIMIT_S):
            warnings.simplefilter("error")
            return _checked(path, block_bytes, thorough=thorough)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # MemoryError, and whatever a compiled library raises
        return Outcome(DEFECT, defect=_defect(error))


def _checked(path: Path, block_bytes: int, *, thorough: bool) -> Outcome:
    whole, scanned = _read(path), _scanned(path, block_bytes)
    is_comparable = _is_comparable(path)
    if is_comparable and isinstance(whole, str) != isinstance(scanned, str):
        raise BrokenPromiseError("one way of reading refuses what the other reads")
    if isinstance(whole, str):
        return Outcome(REFUSED)
    if is_comparable and isinstance(scanned, Trace):
        _check_equal(whole, scanned)
    try:
        analyzer = Analyzer(whole, _CLASSIFIER)
        analysis = analyzer.analysis()
    except OverheadLensError:
        return Outcome(REFUSED)
    _check_numbers(json.loads(to_json(analysis)), "")
    if thorough:
        _make_everything(analyzer, analysis)
    return Outcome(ANALYZED, analysis)


def _read(path: Path) -> Trace | str:
    try:
        return read.read_trace(path)
    except OverheadLensError as error:
        return _one_line(str(error))


def _scanned(path: Path, block_bytes: int) -> Trace | str:
    with (
        mock.patch.object(contents, "SMALL_BYTES", 1),
        mock.patch.object(contents, "UNCOMPILED_BYTES", 1),
        mock.patch.object(stream, "_BLOCK_BYTES", block_bytes),
        mock.patch.object(stream, "_ROOM_BYTES", 16),
    ):
        return _read(path)


def _is_comparable(path: Path) -> bool:
    """Whether both ways of reading must say the same.

    How much is read of damaged compressed data depends on how much is asked for at a time. Of several ``traceEvents`` the
    scanner takes the first list, and it does not know the key with an escape in it.
    """
    text = bytearray()
    block = bytearray(1 << 16)
    with opened(path) as source:
        while size := source.fill(memoryview(block)):
            text += block[:size]
        is_list = text.lstrip().startswith(b"[")
        return not source.broken and (text.count(b'"traceEvents"') == 1 or (is_list and b"traceEvents" not in text))


def _one_line(message: str) -> str:
    if "\n" in message:
        raise BrokenPromiseError("a message has more than one line")
    return message


def _check_equal(whole: Trace, scanned: Trace) -> None:
    """Both ways of reading must say the same."""
    for one, other in ((whole.events, scanned.events), (whole.memory, scanned.memory)):
        for name in one.columns:
            if one[name].to_numpy().tolist() != other[name].to_numpy().tolist():
                raise BrokenPromiseError(f"the two ways of reading differ in column {name}")
    for name in ("event_count", "raw_bytes", "origin_ns", "issues", "thread_names", "metadata"):
        one, other = getattr(whole, name), getattr(scanned, name)
        if repr(_sorted(one)) != repr(_sorted(other)):
            raise BrokenPromiseError(f"the two ways of reading differ in {name}")
    rows = range(len(whole.events))
    if repr(whole.arguments(rows)) != repr(scanned.arguments(rows)):
        raise BrokenPromiseError("the two ways of reading differ in arguments")


def _sorted(value: Any) -> Any:
    return sorted(value.items()) if isinstance(value, dict) else value


def _check_numbers(value: Any, key: str) -> None:
    """No number of a document is infinite, none or, if it is a time or a count, negative."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_numbers(inner, name)
    elif isinstance(value, list):
        for inner in value:
            _check_numbers(inner, key)
    elif isinstance(value, float) and not math.isfinite(value):
        raise BrokenPromiseError(f"{key} is {value}")
    elif isinstance(value, (int, float)) and value < 0 and (key.endswith("ns") or key in {"events", "share", "count"}):
        raise BrokenPromiseError(f"{key} is negative")


def _make_everything(analyzer: Analyzer, analysis: TraceAnalysis) -> None:
    """What else the commands make of traces."""
    analyzer.pieces()
    print_analysis(Console(file=io.StringIO(), width=100), analysis, whole=True)
    _check_numbers(json.loads(to_json(Job.of([analysis, analysis]))), "")
    delta = compare_structure(analyzer, analyzer)
    if not delta.is_same:
        raise BrokenPromiseError("a trace differs in structure from itself")
    to_json(delta)


def _defect(error: BaseException) -> Defect:
    if isinstance(error, BrokenPromiseError):
        return Defect(str(error), "", str(error))
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "overhead_lens" in Path(frame.filename).parts
    ]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    return Defect(type(error).__name__, where, str(error)[:300])


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in what takes more processor time."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"more than {limit_s} s of processor time")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def shortened(data: bytes, is_same: Callable[[bytes], bool], limit_s: float = 30) -> bytes:
    """The input without what can be left out, piece by piece, while ``is_same`` holds (delta debugging, Zeller 2002)."""
    size, until_s = max(1, len(data) // 2), time.monotonic() + limit_s
    while size:
        at = 0
        while at < len(data) and time.monotonic() < until_s:
            shorter = data[:at] + data[at + size :]
            if is_same(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data
