"""Many captures over time: grouped by what makes them comparable, with the change points of every category.

Captures of one scenario, variant, compile options, device and parameters are a series. Those of one machine and one torch are
a segment of it: segments stand beside each other and are never compared.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from overhead_lens.budget.make import Budget
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.stats.change_points import Cut, Level, LevelShift, find_cuts, levels_between, shifts_at
from overhead_lens.stats.values import Floats, Interval
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_signed_ns

WALL = "wall"
SERIES = (WALL, *HOST_CATEGORIES)

# A change of any of these begins a segment of its own.
ENVIRONMENT = ("host", "cpu", "threads", "torch", "python")

_COMMIT_LENGTH = 10
# Standard errors in the width of a 95 % interval.
_PER_INTERVAL = 3.92
# A change of the reference loop by less is its usual scatter.
REFERENCE_SHARE = 0.02


class NotDatedError(ValueError):
    """A capture whose metadata has no time: it has no place in a history."""


@dataclass(frozen=True, slots=True)
class Point:
    """One capture as a history needs it.

    Attributes:
        path: Its directory.
        about: What makes captures comparable, as JSON text.
        environment: Machine, torch and Python, as JSON text.
        started: When it was recorded.
        commit: What its scenario's folder had checked out; None outside git.
        ns: ns per call of each of ``SERIES``.
        ci95_ns: Their intervals.
        reference_ns: Median time of the reference loop beside its blocks.
        reference: Which reference loop that was; None where the capture does not say.
    """

    path: str
    about: str
    environment: str
    started: datetime
    commit: str | None
    ns: Mapping[str, float]
    ci95_ns: Mapping[str, Interval]
    reference_ns: float
    reference: str | None

    @property
    def name(self) -> str:
        """The commit, shortened, or the time it was recorded."""
        if self.commit is None:
            return f"{self.started:%Y-%m-%d %H:%M:%S}"
        commit, dash, dirty = self.commit.partition("-")
        return commit[:_COMMIT_LENGTH] + dash + dirty[:_COMMIT_LENGTH]


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A change point of a segment.

    Attributes:
        position: Of the first capture after it, in the segment.
        before, after: The captures between which it lies, in 95 % of histories.
        likely: The first capture after it, if it is where it most likely is.
        found_in: The series that showed it, with its ``p_value`` after Holm.
        shifts: How each series moved, in ns per call.
        reference_share: How much slower the reference loop became; 0 where it is another one since.
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
        """The categories that moved, the largest first."""
        names = [name for name in HOST_CATEGORIES if name in self.shifts and self.shifts[name].moved]
        return sorted(names, key=lambda name: -abs(self.shifts[name].delta))

    @property
    def sentence(self) -> str:
        """What moved, and between which commits."""
        names = self.moved or [self.found_in]
        what = ", ".join(f"{name} {format_signed_ns(self.shifts[name].delta)}" for name in names)
        whole = "" if names == [WALL] else f" (wall {format_signed_ns(self.shifts[WALL].delta)})"
        if self.before.name == self.after.name:
            return f"{what}{whole} within {self.before.name}: no commit lies between the captures"
        where = "" if self.likely is self.after else f", most likely from {self.likely.name} on"
        return f"{what}{whole} between {self.before.name} and {self.after.name}{where}"

    @property
    def warning(self) -> str | None:
        """A word of caution where the reference loop moved as well."""
        if abs(self.reference_share) < REFERENCE_SHARE:
            return None
        return f"the reference loop took {self.reference_share:+.1%} time as well: the machine may have changed"


@dataclass(frozen=True, slots=True)
class Segment:
    """Captures of one series on one machine with one torch, by time.

    Attributes:
        environment: Their ``ENVIRONMENT``.
        levels: Level of each series in each stretch between changes; series that are always 0 are left out.
    """

    environment: Mapping[str, Any]
    points: tuple[Point, ...]
    changes: tuple[HistoryChange, ...]
    levels: Mapping[str, Sequence[Level]]

    @property
    def stretches(self) -> list[Sequence[Point]]:
        """The captures between the changes."""
        bounds = [0, *(change.position for change in self.changes), len(self.points)]
        return [self.points[start:end] for start, end in itertools.pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class Series:
    """Captures that differ in time, machine and torch alone; segments by the time of their first capture.

    Attributes:
        subject: What all of them measured.
        compile_options: Keyword arguments of torch.compile; None for eager calls.
    """

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
        """What of the environment the segments differ in."""
        return [name for name in ENVIRONMENT if len({json.dumps(each.environment[name]) for each in self.segments}) > 1]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A directory that is no part of the history; ``kind`` is ``incomplete``, ``damaged`` or ``foreign``."""

    path: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    """All series below a directory, and what was skipped there."""

    directory: str
    series: tuple[Series, ...]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]

    @property
    def capture_count(self) -> int:
        """Captures in all segments."""
        return sum(len(segment.points) for series in self.series for segment in series.segments)


def text_of(meta: CaptureMeta, budget: Budget, reference_ns: float) -> str:
    """What a history needs of an analyzed capture, as JSON text, which ``point_of_text`` reads.

    Raises:
        NotDatedError: ``meta`` has no time.
    """
    environment, subject = meta.environment, meta.subject
    about = {"subject": asdict(subject), "compile_options": meta.compile_options}
    commit = environment.get("git_commit")
    wall, host = budget.breakdown.wall, budget.breakdown.host
    return canonical(
        {
            "about": about,
            "environment": {name: environment.get(name) for name in ENVIRONMENT},
            "started": _time(meta.started).isoformat(),
            "commit": commit if isinstance(commit, str) and commit else None,
            "ns": {WALL: wall.ns, **{each.category: each.ns for each in host}},
            "ci95_ns": {WALL: wall.ci95_ns, **{each.category: each.ci95_ns for each in host}},
            "reference_ns": reference_ns,
            "reference": environment.get("reference"),
        }
    )


def point_of_text(text: str, path: str) -> Point:
    """The capture at ``path``."""
    found = json.loads(text)
    return Point(
        path,
        canonical(found["about"]),
        canonical(found["environment"]),
        datetime.fromisoformat(found["started"]),
        found["commit"],
        found["ns"],
        {name: (low, high) for name, (low, high) in found["ci95_ns"].items()},
        found["reference_ns"],
        found["reference"],
    )


def canonical(value: Any) -> str:
    """JSON text, the same for the same value; infinities and NaN as text."""
    return json.dumps(_finite(value), sort_keys=True, default=str)


def make_history(
    directory: str, points: Iterable[Point], skipped: Sequence[Skipped], warnings: Sequence[str]
) -> History:
    """Group captures and look for changes."""
    groups: dict[str, dict[str, list[Point]]] = {}
    for point in sorted(points, key=lambda each: (each.started, each.path)):
        groups.setdefault(point.about, {}).setdefault(point.environment, []).append(point)
    series = [
        _series(json.loads(about), [_segment(json.loads(environment), of) for environment, of in segments.items()])
        for about, segments in sorted(groups.items())
    ]
    return History(directory, tuple(series), tuple(skipped), tuple(warnings))


def _series(about: Mapping[str, Any], segments: Sequence[Segment]) -> Series:
    return Series(Subject(**about["subject"]), about["compile_options"], tuple(segments))


def _segment(environment: Mapping[str, Any], points: Sequence[Point]) -> Segment:
    names = [name for name in SERIES if any(point.ns[name] for point in points)] or [WALL]
    values = np.array([[point.ns[name] for point in points] for name in names])
    errors = np.array([[_error(point.ci95_ns[name]) for point in points] for name in names])
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


def _error(interval: Interval) -> float:
    return (interval[1] - interval[0]) / _PER_INTERVAL


def _time(text: Any) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (AttributeError, ValueError, OverflowError):
        raise NotDatedError(f"meta.json: started is no time: {text!r}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _listed(values: Any) -> str:
    if not isinstance(values, Mapping):
        return str(values)
    return " ".join(f"{name}={value}" for name, value in values.items())
