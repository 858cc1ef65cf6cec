"""``overhead-lens/history/2``: captures over time and where they changed; durations in ns per call."""

from __future__ import annotations

from typing import Any, Literal

from overhead_lens.captures.collection import Skipped
from overhead_lens.documents.common import Document, Interval, Row, fill
from overhead_lens.stats.change_points import ALPHA, LEAST_CAPTURES, PERMUTATIONS, Level, LevelShift
from overhead_lens.studies.history import analysis
from overhead_lens.subject import Subject


class Method(Row, frozen=True):
    """How change points are found."""

    test: str = (
        "permutations of the largest difference of weighted ranks, binary segmentation, Holm over the categories"
    )
    error_rate: float = ALPHA
    permutations: int = PERMUTATIONS
    least_captures_on_a_side: int = LEAST_CAPTURES


class Point(Row, frozen=True):
    """A capture: ns per call of the wall and each category; ``reference_ns`` is the reference loop beside it."""

    capture: str
    started: str
    git_commit: str | None
    ns: dict[str, float]
    ci95_ns: dict[str, Interval]
    reference_ns: float


class Place(Row, frozen=True):
    """A capture and its commit."""

    capture: str
    git_commit: str | None


class ChangePoint(Row, frozen=True):
    """A change between ``before`` and ``after``; ``likely`` is most likely the first capture after it."""

    position: int
    before: Place
    after: Place
    likely: Place
    found_in: str
    p_value: float
    shifts: dict[str, LevelShift]
    moved: list[str]
    reference_share: float
    sentence: str
    warning: str | None


class Segment(Row, frozen=True):
    """Captures on one machine with one torch, and the levels of each series between changes."""

    environment: dict[str, Any]
    captures: list[Point]
    levels: dict[str, list[Level]]
    change_points: list[ChangePoint]


class Series(Row, frozen=True):
    """Captures of one subject, compiled with one set of options."""

    subject: Subject
    compile_options: dict[str, Any] | None
    segments: list[Segment]


class HistoryDocument(Document, frozen=True, kw_only=True):
    """All captures below a directory, and what was skipped there."""

    schema: Literal["overhead-lens/history/2"] = "overhead-lens/history/2"
    directory: str
    per: Literal["call"] = "call"
    unit: Literal["ns"] = "ns"
    captures: int
    method: Method = Method()
    series: list[Series]
    skipped: list[Skipped]
    warnings: list[str]


def history_document(history: analysis.History) -> HistoryDocument:
    """The document of a history."""
    series = [fill(Series, each, segments=[_segment(segment) for segment in each.segments]) for each in history.series]
    return fill(HistoryDocument, history, captures=history.capture_count, series=series)


def _segment(segment: analysis.Segment) -> Segment:
    changes = [_change_point(change) for change in segment.changes]
    return fill(Segment, segment, captures=[_point(point) for point in segment.points], change_points=changes)


def _point(point: analysis.Point) -> Point:
    started = point.started.isoformat()
    return Point(point.path, started, point.commit, dict(point.ns), dict(point.ci95_ns), point.reference_ns)


def _change_point(change: analysis.HistoryChange) -> ChangePoint:
    points = {"before": change.before, "after": change.after, "likely": change.likely}
    places = {name: Place(point.path, point.commit) for name, point in points.items()}
    return fill(ChangePoint, change, **places)
