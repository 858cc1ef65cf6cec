"""Traces of one model at several batch sizes: from which size on the device decides how long a step takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from overhead_lens.traces.launch_figures.model import Bound
from overhead_lens.traces.model import TraceAnalysis

_SAME_MODEL = 1.5


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """One trace; the device with the most kernels.

    Attributes:
        batch: Its batch size; None if unknown.
        told_by: The source of the batch size: ``given``, or the layer and shape, or the reason why it is unknown.
        device: Number of the device as text; empty for a trace without device work, whose figures are then 0.
        per: The unit of the medians: ``step``, or ``trace`` without steps.
        kernels, tklqt_ns, queued_ns: As in ``LaunchFigures``.
        bound: The verdict of more than half of the steps that have one, else ``neither``; None if none has.
    """

    path: str
    batch: int | None
    told_by: str
    device: str
    per: str
    kernels: float
    tklqt_ns: float
    queued_ns: float
    bound: Bound | None

    @property
    def queues(self) -> bool:
        """Whether most of the time from call to kernel is spent behind a busy device."""
        return 2 * self.queued_ns > self.tklqt_ns


@dataclass(frozen=True, slots=True)
class Batches:
    """Traces of one model by batch size; ``device_bound_from`` is null if the largest is not bound by the device."""

    points: tuple[BatchPoint, ...]  # Those without a size last.
    device_bound_from: int | None
    # Smallest from which on most of TKLQT is queuing behind a busy device: where it leaves its plateau, by which Vellaisamy et
    # al. (arXiv 2504.11750) tell a GPU-bound batch size. None if the largest does not queue.
    queued_from: int | None
    notes: tuple[str, ...]


def compare_batches(analyses: Sequence[TraceAnalysis], sizes: Sequence[int] | None = None) -> Batches:
    """Compare traces of one model.

    Args:
        sizes: The batch size of each; None takes what the shapes in the traces say.
    """
    given = list(sizes) if sizes is not None else [None] * len(analyses)
    points = sorted(
        (_point(analysis, size) for analysis, size in zip(analyses, given, strict=True)),
        key=lambda point: (point.batch is None, point.batch or 0, point.path),
    )
    sized = [point for point in points if point.batch is not None and point.device]
    return Batches(
        tuple(points),
        _from([(point.batch or 0, point.bound == "device") for point in sized]),
        _from([(point.batch or 0, point.queues) for point in sized]),
        tuple(_notes(points)),
    )


def _point(analysis: TraceAnalysis, given: int | None) -> BatchPoint:
    batch = analysis.batch
    size, told_by = (given, "given") if given is not None else (batch.size, batch.told_by) if batch else (None, "")
    if not analysis.launch_figures:
        return BatchPoint(analysis.path, size, told_by, "", "trace", 0.0, 0.0, 0.0, None)
    device = max(analysis.launch_figures, key=lambda one: one.whole.kernels)
    figures = [step.figures for step in device.steps] or [device.whole]
    return BatchPoint(
        analysis.path,
        size,
        told_by,
        device.device,
        "step" if device.steps else "trace",
        float(median(one.kernels for one in figures)),
        float(median(one.tklqt_ns for one in figures)),
        float(median(one.queued_ns for one in figures)),
        _verdict([one.bound for one in figures if one.bound is not None]),
    )


def _verdict(bounds: Sequence[Bound]) -> Bound | None:
    if not bounds:
        return None
    most, count = Counter(bounds).most_common(1)[0]
    return most if 2 * count > len(bounds) else "neither"


def _from(conditions: Sequence[tuple[int, bool]]) -> int | None:
    """The smallest size from which on the condition is true for all sizes."""
    no = [size for size, holds in conditions if not holds]
    return min((size for size, _ in conditions if not no or size > max(no)), default=None)


def _notes(points: Sequence[BatchPoint]) -> list[str]:
    notes = [
        f"the batch size of {point.path} is unknown: {point.told_by}; --batch-sizes N,N,... gives it"
        for point in points
        if point.batch is None
    ]
    kernels = [point.kernels for point in points if point.kernels]
    if kernels and max(kernels) > _SAME_MODEL * min(kernels):
        units = " or ".join(sorted({point.per for point in points if point.kernels}))
        notes.append(
            f"the traces have {min(kernels):,.0f} to {max(kernels):,.0f} kernels per {units}: "
            "are they of one model and one phase?"
        )
    if not all(point.device for point in points):
        notes.append("traces without device work tell nothing of what bounds")
    return notes
