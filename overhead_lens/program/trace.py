"""Records some steps of the running program with torch.profiler."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TRACE = ".kineto.json"

_TRACED_NS = 150_000_000
_LEAST_STEPS, _MOST_STEPS = 3, 50
# A step this long has too many events.
_LONGEST_STEP_NS = 3_000_000_000


class StepTrace:
    """torch.profiler over some whole steps.

    Attributes:
        steps: How many are recorded.
        reason: Why none are; empty otherwise.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._profile: Any = None
        self.steps = 0
        self.reason = ""

    def begin(self, step_ns: float) -> bool:
        """Start recording, unless torch is not there, the program profiles itself, or its steps are too long."""
        torch = sys.modules.get("torch")
        if torch is None:
            self.reason = "the program does not import torch"
        elif torch._C._autograd._profiler_enabled():
            self.reason = "the program uses torch.profiler itself"
        elif step_ns > _LONGEST_STEP_NS:
            self.reason = "a step takes too long to be recorded"
        if self.reason:
            return False
        assert torch is not None
        self.steps = int(min(_MOST_STEPS, max(_LEAST_STEPS, _TRACED_NS / max(step_ns, 1.0))))
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with self._quiet():
            self._profile = torch.profiler.profile(activities=activities)
            self._profile.__enter__()
        return True

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Record a step's window."""
        record: Any = sys.modules["torch"].profiler.record_function
        with record(f"ProfilerStep#{number}"):
            yield

    def end(self) -> None:
        """Stop recording and write the trace."""
        with self._quiet():
            self._profile.__exit__(None, None, None)
            self._profile.export_chrome_trace(str(self._folder / TRACE))
        self._profile = None

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Keep what libkineto says off the program's stderr."""
        before = os.dup(2)
        log = os.open(self._folder / "profiler.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 2)
        os.close(log)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
