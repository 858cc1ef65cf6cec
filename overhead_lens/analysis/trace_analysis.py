"""The analysis of one trace: budgets of its threads, devices and steps, its costliest names, what is wrong with it."""

from __future__ import annotations

from overhead_lens.analysis.trace_model import TraceAnalysis
from overhead_lens.categories import Classifier
from overhead_lens.trace.model import Trace


def analyze_trace(trace: Trace, classifier: Classifier) -> TraceAnalysis:
    """Everything ``overhead-lens analyze`` says of one trace."""
    raise NotImplementedError
