"""The JSON of a history, ``overhead-lens/history/1``; durations are ns per call."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from overhead_lens.compare.change_points import ALPHA, LEAST_CAPTURES, PERMUTATIONS
from overhead_lens.compare.history import Change, History, Point, Segment

SCHEMA = "overhead-lens/history/1"


def history_document(history: History) -> dict[str, Any]:
    """The document."""
    return {
        "schema": SCHEMA,
        "directory": history.directory,
        "per": "call",
        "unit": "ns",
        "captures": history.capture_count,
        "method": {
            "test": "permutations of the largest difference of weighted ranks, binary segmentation, Holm over the categories",
            "error_rate": ALPHA,
            "permutations": PERMUTATIONS,
            "least_captures_on_a_side": LEAST_CAPTURES,
        },
        "series": [
            {**each.about, "segments": [_segment(segment) for segment in each.segments]} for each in history.series
        ],
        "skipped": [asdict(each) for each in history.skipped],
        "warnings": list(history.warnings),
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "environment": dict(segment.environment),
        "captures": [_point(point) for point in segment.points],
        "levels": {name: [asdict(level) for level in levels] for name, levels in segment.levels.items()},
        "change_points": [_change(change) for change in segment.changes],
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "capture": point.path,
        "started": point.started.isoformat(),
        "git_commit": point.commit,
        "ns": dict(point.ns),
        "ci95_ns": {name: list(interval) for name, interval in point.ci95_ns.items()},
        "reference_ns": point.reference_ns,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "position": change.position,
        "before": {"capture": change.before.path, "git_commit": change.before.commit},
        "after": {"capture": change.after.path, "git_commit": change.after.commit},
        "likely": {"capture": change.likely.path, "git_commit": change.likely.commit},
        "found_in": change.found_in,
        "p_value": change.p_value,
        "shifts": {name: asdict(shift) for name, shift in change.shifts.items()},
        "moved": change.moved,
        "reference_share": change.reference_share,
        "sentence": change.sentence,
        "warning": change.warning,
    }
