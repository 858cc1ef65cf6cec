"""The evidence for the budget of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from overhead_lens.captures.model import CaptureMeta
from overhead_lens.instruments.guards.record import Guards
from overhead_lens.instruments.instructions.record import Instructions
from overhead_lens.instruments.page_faults.record import PageFaults
from overhead_lens.instruments.peaks.record import Peaks
from overhead_lens.instruments.samples.record import Samples
from overhead_lens.instruments.trace.record import TraceNote


@dataclass(frozen=True, slots=True)
class Evidence:
    """The recordings of one call by all instruments; None for an instrument that did not run.

    Attributes:
        samples: Sampled stacks; without any the trace decides.
        ablation: Timed blocks of the rungs that the cross-checks need.
        page_faults: The thread's own time per page fault.
    """

    name: str
    meta: CaptureMeta
    clock: pd.DataFrame
    samples: Samples = field(default_factory=Samples)
    trace: TraceNote | None = None
    calibration: Mapping[str, Any] | None = None
    ablation: pd.DataFrame | None = None
    guards: Guards = field(default_factory=Guards)
    page_faults: PageFaults = field(default_factory=PageFaults)
    peaks: Peaks | None = None
    instructions: Instructions | None = None
