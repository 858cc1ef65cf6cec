"""From stored captures and traces to their analyses: what every command and every study begins with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from overhead_lens.budget.make import Budget, Evidence, make_budget
from overhead_lens.budget.model import Breakdown
from overhead_lens.captures.directory import Capture, damaged, read_capture
from overhead_lens.captures.files import DELTA
from overhead_lens.comparison.difference import compare_budgets, differences
from overhead_lens.comparison.model import Delta
from overhead_lens.errors import MismatchError
from overhead_lens.instruments.ablation.record import read_ablation
from overhead_lens.instruments.calibration.record import read_calibration
from overhead_lens.instruments.clock.record import read_blocks
from overhead_lens.instruments.guards.record import Guards
from overhead_lens.instruments.instructions.record import read_instructions
from overhead_lens.instruments.page_faults.record import PageFaults
from overhead_lens.instruments.peaks.record import Peaks
from overhead_lens.instruments.samples.record import read_samples
from overhead_lens.instruments.trace.record import read_trace
from overhead_lens.readers.kineto.read import read_trace as read_trace_file
from overhead_lens.recorder.paired import SIDES
from overhead_lens.taxonomy.classifier import Classifier

if TYPE_CHECKING:
    from overhead_lens.traces.structure.model import StructureDelta


def budget_of(path: Path, classifier: Classifier) -> Budget:
    """Analyze a stored capture; it raises as ``budgets_of`` does."""
    (budget,) = budgets_of([path], classifier)
    return budget


def breakdown_of(path: Path, classifier: Classifier) -> Breakdown:
    """The budget alone of a stored capture; it raises as ``budgets_of`` does."""
    return budget_of(path, classifier).breakdown


def budgets_of(paths: Sequence[Path], classifier: Classifier) -> tuple[Budget, ...]:
    """Analyze stored captures for a comparison: rules that depend on stacks are fitted to the stacks of all of them.

    Raises:
        UsageError: One is not a complete capture.
        MeasurementError: One holds no evidence of how its time divides.
    """
    all_evidence = [evidence_of(read_capture(path)) for path in paths]
    fitted = classifier.fitted(stack for evidence in all_evidence for stack in evidence.samples.stacks)
    return tuple(make_budget(evidence, fitted) for evidence in all_evidence)


def compare_captures(
    base: Path, new: Path, classifier: Classifier, margin_share: float, *, force: bool = False
) -> Delta:
    """The difference of two stored captures.

    Args:
        margin_share: Differences within this share of the base's wall time are none.
        force: Compare captures of different machines, versions or sizes.

    Raises:
        UsageError: One is not a complete capture.
        MismatchError: They differ in more than what is compared.
    """
    mismatches = differences(read_capture(base).meta, read_capture(new).meta)
    if mismatches and not force:
        raise MismatchError(f"the captures differ in {'; '.join(mismatches)}")
    before, after = budgets_of((base, new), classifier)
    return compare_budgets(before, after, margin_share)


class _Margin(msgspec.Struct, frozen=True):
    """The margin with which two captures were compared when they were recorded."""

    margin_share: float


def comparison_of(path: Path, classifier: Classifier) -> Delta:
    """The difference of two captures that were recorded in turns into a directory, by the margin of then.

    Raises:
        UsageError: It is damaged.
    """
    try:
        margin_share = msgspec.json.decode((path / DELTA).read_bytes(), type=_Margin).margin_share
    except (OSError, msgspec.DecodeError) as error:
        raise damaged("comparison", path, f"{DELTA}: {error}") from error
    return compare_captures(path / SIDES[0], path / SIDES[1], classifier, margin_share, force=True)


def compare_traces(base: Path, new: Path, classifier: Classifier) -> StructureDelta:
    """Compare two exported traces: operators, kernels and launches.

    Raises:
        UsageError: A file is not a trace.
    """
    # Captures need no analysis of traces.
    from overhead_lens.traces.analyzer import Analyzer
    from overhead_lens.traces.structure.compare import compare_structure

    return compare_structure(Analyzer(read_trace_file(base), classifier), Analyzer(read_trace_file(new), classifier))


def evidence_of(capture: Capture) -> Evidence:
    """The evidence of all instruments.

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
        guards=capture.note("guards", Guards) or Guards(),
        page_faults=capture.note("page_faults", PageFaults) or PageFaults(),
        peaks=capture.note("peaks", Peaks),
        instructions=read_instructions(capture),
    )
