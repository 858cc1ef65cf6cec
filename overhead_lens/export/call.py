"""The capture of a call for other viewers: its budget, its traced calls and its stacks.

A writer raises ``UsageError`` where the capture has no such evidence or is damaged, or the file cannot be written.
"""

from __future__ import annotations

from pathlib import Path

from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.files import KINETO, KINETO_STACK
from overhead_lens.errors import UsageError
from overhead_lens.export.capture import write_capture
from overhead_lens.export.chrome import write_chrome
from overhead_lens.export.lanes.budget import budget_lane
from overhead_lens.export.speedscope import write_collapsed, write_speedscope
from overhead_lens.instruments.samples.evidence import read_samples
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.stack import Stack
from overhead_lens.stored import breakdown_of
from overhead_lens.taxonomy.classifier import Classifier


def write_call_perfetto(path: Path, target: Path, classifier: Classifier) -> None:
    """Write a capture as a native Perfetto trace."""
    write_capture(path, target, breakdown_of(path, classifier), classifier)


def write_call_chrome(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the budget of a call, and the traced calls, as Chrome's JSON trace."""
    breakdown, stored = breakdown_of(path, classifier), read_capture(path)
    source = stored.existing(KINETO_STACK) or stored.existing(KINETO)
    if source is None:
        raise UsageError(f"{path} holds no trace to export")
    write_chrome(target, budget_lane(breakdown), read_trace(source).events)


def write_call_collapsed(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the stacks of a call as folded stacks."""
    write_collapsed(target, [(breakdown_of(path, classifier).subject.title, _stacks(path))])


def write_call_speedscope(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the stacks of a call for speedscope."""
    write_speedscope(target, breakdown_of(path, classifier), _stacks(path))


def _stacks(path: Path) -> list[Stack]:
    samples = read_samples(read_capture(path))
    if not samples.stacks:
        raise UsageError(f"{path} holds no samples to export ({samples.sampled.reason})")
    return list(samples.stacks)
