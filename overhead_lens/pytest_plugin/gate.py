"""The fixture's callable: measures a call, compares it with its baseline, and describes what grew."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from overhead_lens import api
from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.difference import MACHINE, differences
from overhead_lens.comparison.instructions import InstructionDelta, mismatches, signed_count, signed_share
from overhead_lens.comparison.model import Delta
from overhead_lens.errors import OverheadLensError, UsageError
from overhead_lens.machine.request import QUICK
from overhead_lens.pytest_plugin.baselines import keep, place_of
from overhead_lens.pytest_plugin.summary import SummaryRow, report
from overhead_lens.report.text.blocks import cut, signed_interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.scenario import Arguments
from overhead_lens.stored import budget_of
from overhead_lens.studies.check.gate import by_counts, by_time, confirmed, count_mismatches, need_counts, stored_counts
from overhead_lens.studies.check.limits import (
    BROKEN,
    DOUBTFUL,
    INSTRUCTIONS,
    KEPT,
    TOTAL,
    CountOutcome,
    Finding,
    Limit,
    Limits,
    Outcome,
    TimeOutcome,
    parse_limit,
)
from overhead_lens.studies.check.stored import read_counts
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.terminal.progress import progress
from overhead_lens.units import format_ns, format_signed_ns

# A host's name does not identify a machine: names of containers differ from run to run.
_MACHINE = tuple(name for name in MACHINE if name != "host")

# With the three lines around them, the eight lines of a failure.
_MOST_FINDINGS = 2
_MOST_CATEGORIES = 3
_MOST_FRAMES = 3
_FRAME_LETTERS = 60

_ANEW = "--overhead-update records a new baseline"


def limits_of(marker: pytest.Mark | None) -> Limits:
    """The limits of a marker: ``@pytest.mark.overhead(total="+3%", guard="+100ns", instructions="+0.5%")``."""
    if marker is None:
        return Limits()
    if marker.args:
        raise UsageError(f"@pytest.mark.overhead takes limits by name, not {marker.args[0]!r}; {_hint()}")
    return Limits.of(_limit(name, value) for name, value in marker.kwargs.items())


def _limit(name: str, value: object) -> Limit:
    try:
        return parse_limit(f"{name}={str(value).removeprefix('+')}")
    except UsageError:
        raise UsageError(f"@pytest.mark.overhead({name}={value!r}) is not a limit; {_hint()}") from None


def _hint() -> str:
    names = ", ".join((TOTAL, *HOST_CATEGORIES, INSTRUCTIONS))
    return f'one is total="+3%", guard="+100ns" (ns, us, ms) or instructions="+0.5%"; names: {names}'


class Overhead:
    """Measures the calls of one test.

    Args:
        folders: Makes the folders of new captures.
    """

    def __init__(self, node: pytest.Item, limits: Limits, update: bool, folders: pytest.TempPathFactory) -> None:
        self._node = node
        self._limits = limits
        self._update = update
        self._folders = folders
        self._calls = 0

    def __call__(self, function: Callable[..., Any], /, *args: Any, compile: bool = False, **kwargs: Any) -> None:
        """Measure ``function(*args, **kwargs)`` and compare it with its baseline."""
        __tracebackhide__ = True
        self._calls += 1
        try:
            failure = self._measure(function, Arguments(args, kwargs), compile)
        except OverheadLensError as error:
            failure = str(error)
        if failure:
            pytest.fail(failure, pytrace=False)

    def _measure(self, function: Callable[..., Any], arguments: Arguments, compile: bool) -> str:
        """Measure, and describe what grew; empty if nothing did."""
        _, _, test = self._node.nodeid.partition("::")
        place = place_of(self._node.path, test, self._calls, counts=self._limits.only_counts)
        exists = place.exists()
        compares = exists and not self._update
        calls = _readable(place, self._limits) if compares else None
        folder = self._folders.mktemp("overhead")

        def record(name: str) -> Path:
            with pytest.MonkeyPatch.context() as patch:
                # With --import-mode=importlib a test's module is named from here on, where nothing else would look for it;
                # first, since packages of others have a `tests` as well.
                if self._node.config.getoption("importmode") == "importlib":
                    patch.setattr(sys, "path", [str(self._node.config.rootpath), *sys.path])
                return record_call(function, arguments, compile, self._limits, calls, folder / name)

        new = record("capture")
        if compares:
            return self._compare(place, new, record)
        keep(new, place)
        state, figure = "updated" if exists else "recorded", _figure(new, self._limits)
        report(self._node, SummaryRow(self._title, state, figure, place=_short(place)))
        return ""

    def _compare(self, place: Path, new: Path, record: Callable[[str], Path]) -> str:
        outcome: Outcome
        if self._limits.only_counts:
            outcome = _counted_against(place, new, self._limits)
        else:
            first = _timed_against(place, new, self._limits)
            outcome = confirmed(first, lambda: _timed_against(place, record("capture.2"), self._limits))
        delta = outcome.delta
        limits = ", ".join(f"{finding.limit.name} {finding.text(finding.allowed)}" for finding in outcome.findings)
        if isinstance(delta, Delta):
            figures = (format_ns(delta.new.wall.ns), format_ns(delta.base.wall.ns))
            more, interval = format_signed_ns(delta.wall_delta_ns), signed_interval_text(delta.wall_ci95_ns)
        else:
            figures = (_count_text(delta.new_count), f"{delta.base_count:,}")
            more = f"{signed_count(delta.delta_count)} ({signed_share(delta.delta_count, delta.base_count)})"
            interval = ""
        report(self._node, SummaryRow(self._title, _state(outcome), *figures, more, interval, limits))
        return "\n".join(_failure(outcome, self._title, place)) if outcome.regressed else ""

    @property
    def _title(self) -> str:
        return self._node.nodeid if self._calls == 1 else f"{self._node.nodeid} ({self._calls})"


def record_call(
    function: Callable[..., Any], arguments: Arguments, compile: bool, limits: Limits, calls: int | None, output: Path
) -> Path:
    """Record a capture of a call, or its instructions where nothing else is limited; returns its directory.

    Args:
        calls: Whose instructions the baseline counted; None without one.
    """
    with progress(quiet=True) as silent:
        if limits.only_counts:
            return api.count_call(function, arguments, calls, silent, compile=compile, output=output)
        counts = bool(limits.counts)
        return api.record_call(
            function, arguments, QUICK, silent, compile=compile, instructions=counts, counted_calls=calls, output=output
        )


def _readable(place: Path, limits: Limits) -> int | None:
    """Check that a baseline can be compared with, before anything is measured; returns the calls that it counted."""
    try:
        if limits.only_counts:
            return stored_counts(place, default_classifier()).budget.calls
        capture, budget = read_capture(place), budget_of(place, default_classifier())
        return need_counts(capture.meta, budget).budget.calls if limits.counts else None
    except OverheadLensError as error:
        raise UsageError(f"{error}: {_ANEW}") from error


def _timed_against(place: Path, new: Path, limits: Limits) -> TimeOutcome:
    """The outcome of a comparison with the baseline."""
    base, recorded = read_capture(place).meta, read_capture(new).meta
    _same_call(place, [*differences(base, recorded, _MACHINE), *mismatches(_call(base), _call(recorded))])
    return by_time(base, place, new, limits, default_classifier(), force=True)


def _call(meta: CaptureMeta) -> dict[str, object]:
    """What a baseline shares with its call beyond what ``differences`` compares."""
    return {meta.subject.kind: meta.subject.variant, "compile_options": meta.compile_options}


def _counted_against(place: Path, new: Path, limits: Limits) -> CountOutcome:
    """The outcome of a comparison in instructions."""
    base = stored_counts(place, default_classifier())
    _same_call(place, count_mismatches(base.meta, read_counts(new)[0]))
    return by_counts(base, new, limits.counts, default_classifier(), force=True)


def _same_call(place: Path, differing: Sequence[str]) -> None:
    if differing:
        raise UsageError(f"the baseline {_short(place)} differs in {'; '.join(differing)}: {_ANEW}")


def _figure(capture: Path, limits: Limits) -> str:
    if limits.only_counts:
        return _count_text(stored_counts(capture, default_classifier()).budget.count)
    return format_ns(budget_of(capture, default_classifier()).breakdown.wall.ns)


def _count_text(count: int) -> str:
    return f"{count:,} instructions"


def _state(outcome: Outcome) -> str:
    if not outcome.findings:
        assert isinstance(outcome, TimeOutcome)
        return outcome.delta.verdict
    states = {finding.state for finding in outcome.findings}
    return next(state for state in (BROKEN, DOUBTFUL, KEPT) if state in states)


def _failure(outcome: Outcome, title: str, place: Path) -> list[str]:
    """At most eight lines: the difference, limits that are broken, categories that grew with their frames, what to do."""
    broken = [finding for finding in outcome.findings if finding.state == BROKEN]
    delta = _decisive(outcome, broken)
    names = {finding.limit.name.rpartition(".")[2] for finding in broken} | {*delta.blame}
    changes = sorted(_changes(delta), key=lambda change: -change[0])
    grown = [line for size, category, line in changes if category in names and size > 0]
    return [
        f"{title}: {plain(delta.sentence)}",
        *(f"  {finding}" for finding in broken[:_MOST_FINDINGS]),
        *(grown[:_MOST_CATEGORIES] or [changes[0][2]]),
        f"  the whole difference: overhead-lens diff {shlex.join((_short(place), outcome.delta.new.capture))}"
        if isinstance(outcome, TimeOutcome)
        else f"  the baseline: {_short(place)}",
        f"  if this is intended: {_ANEW}",
    ]


def _decisive(outcome: Outcome, broken: Sequence[Finding]) -> Delta | InstructionDelta:
    """The difference that broke the limits."""
    delta = outcome.delta
    in_counts = bool(broken) and all(finding.limit.counts for finding in broken)
    return delta.instructions if in_counts and isinstance(delta, Delta) and delta.instructions else delta


def _changes(delta: Delta | InstructionDelta) -> Iterator[tuple[int, str, str]]:
    """Size, category and line of each change: ``guard +120 ns: +110 ns check (guards.cpp)``."""
    if isinstance(delta, Delta):
        for change in delta.host:
            frames = [(frame.delta_ns, frame.name) for frame in change.contributors if frame.kind != "operator"]
            yield change.size_ns, change.category, _line(change.category, change.size_ns, frames, format_signed_ns)
        return
    for counted in delta.host:
        size, functions = counted.delta_count, [(each.delta_count, each.name) for each in counted.moved]
        yield size, counted.category, _line(counted.category, size, functions, signed_count)


def _line(category: str, size: int, moved: Sequence[tuple[int, str]], signed: Callable[[float], str]) -> str:
    grown = [f"{signed(more)} {cut(plain(name), _FRAME_LETTERS)}" for more, name in moved if more > 0]
    return f"  {category} {signed(size)}: {', '.join(grown[:_MOST_FRAMES]) or 'no single frame grew'}"


def _short(path: Path) -> str:
    """The path as a shell in the working directory takes it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
