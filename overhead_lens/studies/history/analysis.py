"""Groups captures over time and looks for the change points of every category.

Captures of the same scenario, variant, compile options, device and parameters are a series. Those of one machine, one torch
and one state of the caches, divided by the same evidence, are a segment of it. Segments are not compared with each other.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

import msgspec
import numpy as np

from overhead_lens.budget.make import Budget
from overhead_lens.captures.collection import Skipped
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.stats.bootstrap import Estimate
from overhead_lens.stats.change_points import Cut, Level, LevelShift, find_cuts, levels_between, shifts_at
from overhead_lens.stats.values import Floats
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_signed_ns

WALL = "wall"
SERIES = (WALL, *HOST_CATEGORIES)

# A change of one of these begins a new segment.
ENVIRONMENT = ("host", "cpu", "threads", "torch", "python", "gpu", "caches", "evidence")

_COMMIT_LENGTH = 10
# Standard errors in the width of a 95 % interval.
_PER_INTERVAL = 3.92
# Smaller changes of the reference loop are its usual scatter.
REFERENCE_SHARE = 0.02


class NotDatedError(ValueError):
    """A capture without a time, which a history cannot place."""


@dataclass(frozen=True, slots=True)
class Point:
    """One capture of a history.

    Attributes:
        about: Subject and compile options, as JSON text.
        environment: Values of ``ENVIRONMENT``, as JSON text.
        commit: The commit of the scenario's folder; None outside git.
        ns, ci95_ns: ns per call of each of ``SERIES``, and the intervals.
        reference_ns: Median time of the reference loop.
        reference: Name of the reference loop; None if the capture does not say.
    """

    path: str
    about: str
    environment: str
    started: datetime
    commit: str | None
    ns: Mapping[str, int | float]
    ci95_ns: Mapping[str, tuple[int | float, int | float]]
    reference_ns: float
    reference: Any

    @property
    def name(self) -> str:
        """The shortened commit, or the time of the recording."""
        if self.commit is None:
            return f"{self.started:%Y-%m-%d %H:%M:%S}"
        commit, dash, dirty = self.commit.partition("-")
        return commit[:_COMMIT_LENGTH] + dash + dirty[:_COMMIT_LENGTH]


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A change point of a segment.

    Attributes:
        position: Position in the segment of the first capture after it.
        before, after: The captures between which it lies, with 95 % confidence.
        likely: The most likely first capture after it.
        found_in: The series that shows it, with its ``p_value`` after Holm.
        shifts: Shift of each series, in ns per call.
        reference_share: Relative slowdown of the reference loop; 0 for different loops.
    """

    position: int
    before: Point
    after: Point
    likely: Point
    found_in: str
    p_value: float
    shifts: Mapping[str, LevelShift]
    reference_share: float

    @property
    def moved(self) -> list[str]:
        """The categories that changed significantly, the largest first."""
        names = [name for name in HOST_CATEGORIES if name in self.shifts and self.shifts[name].moved]
        return sorted(names, key=lambda name: -abs(self.shifts[name].delta))

    @property
    def sentence(self) -> str:
        """The changed categories, and the commits between which they changed."""
        names = self.moved or [self.found_in]
        changed = ", ".join(f"{name} {format_signed_ns(self.shifts[name].delta)}" for name in names)
        if names != [WALL]:
            changed += f" (wall {format_signed_ns(self.shifts[WALL].delta)})"
        if self.before.name == self.after.name:
            return f"{changed} within {self.before.name}: no commit lies between the captures"
        likely = "" if self.likely is self.after else f", most likely from {self.likely.name} on"
        return f"{changed} between {self.before.name} and {self.after.name}{likely}"

    @property
    def warning(self) -> str | None:
        """A warning where the reference loop changed as well."""
        if abs(self.reference_share) < REFERENCE_SHARE:
            return None
        return f"the reference loop took {self.reference_share:+.1%} time as well: the machine may have changed"


@dataclass(frozen=True, slots=True)
class Segment:
    """Captures of one series on one machine with one torch, by time.

    Attributes:
        environment: Values of ``ENVIRONMENT``.
        levels: Levels of each series between the changes; without series that are always 0.
    """

    environment: Mapping[str, Any]
    points: tuple[Point, ...]
    changes: tuple[HistoryChange, ...]
    levels: Mapping[str, Sequence[Level]]

    @property
    def between_changes(self) -> list[Sequence[Point]]:
        """The captures between the changes."""
        bounds = [0, *(change.position for change in self.changes), len(self.points)]
        return [self.points[start:end] for start, end in itertools.pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class Series:
    """Captures of one call, eager where ``compile_options`` is None; segments by the time of their first capture."""

    subject: Subject
    compile_options: Mapping[str, Any] | None
    segments: tuple[Segment, ...]

    @property
    def title(self) -> str:
        """Scenario, variant, mode, device and parameters."""
        subject, options = self.subject, self.compile_options
        mode = "eager" if options is None else f"compiled {_listed(options)}".rstrip()
        return f"{subject.name}:{subject.variant}, {mode}, {subject.device}  {_listed(subject.params)}"

    @property
    def differing(self) -> list[str]:
        """Names of the environment's values in which the segments differ."""
        values = {name: {json.dumps(segment.environment[name]) for segment in self.segments} for name in ENVIRONMENT}
        return [name for name in ENVIRONMENT if len(values[name]) > 1]


@dataclass(frozen=True, slots=True)
class History:
    """All series below a directory, and the skipped directories."""

    directory: str
    series: tuple[Series, ...]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]

    @property
    def capture_count(self) -> int:
        """Captures in all segments."""
        return sum(len(segment.points) for series in self.series for segment in series.segments)


def text_of(meta: CaptureMeta, budget: Budget, reference_ns: float) -> str:
    """The point of an analyzed capture, as JSON text for ``point_of_text``.

    Raises:
        NotDatedError: ``meta`` has no time.
    """
    environment = meta.environment
    commit = environment.get("git_commit")
    values = {**environment, "gpu": meta.gpu, "caches": meta.caches, "evidence": budget.breakdown.evidence}
    wall, host = budget.breakdown.wall, budget.breakdown.host
    # Of few processes a budget gives the range, which says nothing of errors.
    wall_ci95_ns = Estimate(wall.ns, budget.wall).interval()
    point = Point(
        "",
        canonical({"subject": asdict(meta.subject), "compile_options": meta.compile_options}),
        canonical({name: values.get(name) for name in ENVIRONMENT}),
        _time(meta.started),
        commit if isinstance(commit, str) and commit else None,
        {WALL: wall.ns, **{category.category: category.ns for category in host}},
        {WALL: wall_ci95_ns, **{category.category: category.ci95_ns for category in host}},
        reference_ns,
        environment.get("reference"),
    )
    return json.dumps(msgspec.to_builtins(point), sort_keys=True)


def point_of_text(text: str, path: str) -> Point:
    """The point of the capture at ``path``."""
    return msgspec.convert({**json.loads(text), "path": path}, Point)


def canonical(value: Any) -> str:
    """JSON text with sorted keys; infinities and NaN as text."""
    return json.dumps(_finite(value), sort_keys=True, default=str)


def make_history(
    directory: str, points: Iterable[Point], skipped: Sequence[Skipped], warnings: Sequence[str]
) -> History:
    """Group captures into series and segments, and look for changes."""
    groups: dict[str, dict[str, list[Point]]] = {}
    for point in sorted(points, key=lambda point: (point.started, point.path)):
        groups.setdefault(point.about, {}).setdefault(point.environment, []).append(point)
    series = []
    for text, by_environment in sorted(groups.items()):
        about = json.loads(text)
        segments = tuple(_segment(json.loads(environment), rows) for environment, rows in by_environment.items())
        series.append(Series(Subject(**about["subject"]), about["compile_options"], segments))
    return History(directory, tuple(series), tuple(skipped), tuple(warnings))


def _segment(environment: Mapping[str, Any], points: Sequence[Point]) -> Segment:
    names = [name for name in SERIES if any(point.ns[name] for point in points)] or [WALL]
    values = np.array([[point.ns[name] for point in points] for name in names])
    intervals = np.array([[point.ci95_ns[name] for point in points] for name in names])
    errors = (intervals[..., 1] - intervals[..., 0]) / _PER_INTERVAL
    cuts = find_cuts(values, errors)
    positions = [cut.position for cut in cuts]
    reference = np.array([point.reference_ns for point in points])
    bounds = [0, *positions, len(points)]
    changes = [
        _change(cut, points, dict(zip(names, shifts, strict=True)), names, reference, bounds[at : at + 3])
        for at, (cut, shifts) in enumerate(zip(cuts, shifts_at(values, errors, positions), strict=True))
    ]
    levels = dict(zip(names, levels_between(values, errors, positions), strict=True))
    return Segment(environment, tuple(points), tuple(changes), levels)


def _change(
    cut: Cut,
    points: Sequence[Point],
    shifts: Mapping[str, LevelShift],
    names: Sequence[str],
    reference_ns: Floats,
    bounds: Sequence[int],
) -> HistoryChange:
    start, at, end = bounds
    one_loop = len({point.reference for point in points[start:end]}) == 1
    share = float(np.median(reference_ns[at:end]) / np.median(reference_ns[start:at])) - 1 if one_loop else 0.0
    return HistoryChange(
        at, points[cut.first - 1], points[cut.last], points[at], names[cut.series], cut.p_value, shifts, share
    )


def _time(text: Any) -> datetime:
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (AttributeError, ValueError, OverflowError):
        raise NotDatedError(f"meta.json: started is not a time: {text!r}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _listed(values: Any) -> str:
    if not isinstance(values, Mapping):
        return str(values)
    return " ".join(f"{name}={value}" for name, value in values.items())
