"""From stored captures and traces to their analyses: what every command and every study begins with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overhead_lens.budget.evidence import Evidence
from overhead_lens.budget.make import Budget, make_budget
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.instruments.ablation.evidence import read_ablation
from overhead_lens.instruments.calibration.evidence import read_calibration
from overhead_lens.instruments.clock.evidence import read_blocks
from overhead_lens.instruments.guards.evidence import read_guards
from overhead_lens.instruments.instructions.evidence import read_instructions
from overhead_lens.instruments.page_faults.evidence import read_page_faults
from overhead_lens.instruments.peaks.evidence import read_peaks
from overhead_lens.instruments.samples.evidence import read_samples
from overhead_lens.instruments.trace.evidence import read_trace
from overhead_lens.readers.kineto.read import read_trace as read_trace_file
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.structure.compare import compare_structure
from overhead_lens.traces.structure.model import StructureDelta


def budget_of(path: Path, classifier: Classifier) -> Budget:
    """Analyze a stored capture.

    Raises:
        UsageError: It is not a complete capture.
        MeasurementError: It holds no evidence of how its time divides.
    """
    (budget,) = budgets_of([path], classifier)
    return budget


def budgets_of(paths: Sequence[Path], classifier: Classifier) -> tuple[Budget, ...]:
    """Analyze stored captures that are compared: what the stacks of all of them say of a function holds for each.

    Raises:
        UsageError: One is not a complete capture.
        MeasurementError: One holds no evidence of how its time divides.
    """
    found = [evidence_of(read_capture(path)) for path in paths]
    fitted = classifier.fitted(stack for evidence in found for stack in evidence.stacks)
    return tuple(make_budget(evidence, fitted) for evidence in found)


def compare_traces(base: Path, new: Path, classifier: Classifier) -> StructureDelta:
    """What changed from one exported trace to another: operators, kernels and launches.

    Raises:
        UsageError: A file is no trace.
    """
    return compare_structure(Analyzer(read_trace_file(base), classifier), Analyzer(read_trace_file(new), classifier))


def evidence_of(capture: Capture) -> Evidence:
    """What every instrument left.

    Raises:
        UsageError: A file is missing or damaged.
    """
    return Evidence(
        name=str(capture.path),
        meta=capture.meta,
        clock=read_blocks(capture),
        samples=read_samples(capture),
        trace=read_trace(capture),
        calibration=read_calibration(capture),
        ablation=read_ablation(capture),
        guards=read_guards(capture),
        page_faults=read_page_faults(capture),
        peaks=read_peaks(capture),
        instructions=read_instructions(capture),
    )
