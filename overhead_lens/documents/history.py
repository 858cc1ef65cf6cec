"""``overhead-lens/history/2``: captures over time and where they changed; durations in ns per call."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

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

    path: str = field(name="capture")
    started: str
    commit: str | None = field(name="git_commit")
    ns: dict[str, float]
    ci95_ns: dict[str, Interval]
    reference_ns: float


class Place(Row, frozen=True):
    """A capture and its commit."""

    path: str = field(name="capture")
    commit: str | None = field(name="git_commit")


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
    points: list[Point] = field(name="captures")
    levels: dict[str, list[Level]]
    changes: list[ChangePoint] = field(name="change_points")


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
    capture_count: int = field(name="captures")
    method: Method = Method()
    series: list[Series]
    skipped: list[Skipped]
    warnings: list[str]


def history_document(history: analysis.History) -> HistoryDocument:
    """The document of a history."""
    series = [fill(Series, each, segments=[_segment(segment) for segment in each.segments]) for each in history.series]
    return fill(HistoryDocument, history, series=series)


def _segment(segment: analysis.Segment) -> Segment:
    return fill(
        Segment, segment, points=[fill(Point, each, started=each.started.isoformat()) for each in segment.points]
    )
