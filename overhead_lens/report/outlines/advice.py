"""Advice in words: what each remedy saves, how those that help are done, what they save together, what was not measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from overhead_lens.report.cells import heads, length, row, signed, signed_bounds, text, verdict
from overhead_lens.report.looks import SHORTER, TIME
from overhead_lens.report.outline import Bars, Block, Cell, Notes, Outline, Section, Table
from overhead_lens.report.outlines.host import wall_bar
from overhead_lens.report.text.blocks import call_title, origin, signed_interval_text
from overhead_lens.stats.values import Interval
from overhead_lens.studies.advise.analysis import Advice, Saving, Together, TriedRemedy
from overhead_lens.units import format_ns, format_signed_ns

_MOVED = 3
_LEAST_MOVED = 0.1
_REASONS = {"not_applicable": "not tried", "failed": "failed"}


def advice_outline(advice: Advice) -> Outline:
    """The outline."""
    return Outline(
        f"advice for {call_title(advice.base)}",
        advice.sentence,
        Section.filled(
            Section("Remedies", list(_remedies(advice)), reach="everywhere"),
            _how(advice.remedies),
            Section("Not measured", [Notes(_not_measured(advice.remedies), tone="dim")], is_open=False),
        ),
        figure=f"{format_ns(advice.base.wall.ns)} per call",
        warnings=advice.warnings,
        ends=[f"advice: {advice.directory}"],
        origin=partial(origin, advice.directory, advice.base.environment, [("measured", call_title(advice.base))]),
    )


def _remedies(advice: Advice) -> Iterator[Block]:
    base, together = advice.base, advice.together
    sides = [("as it is", base)]
    if together is not None:
        sides = [("as it is", together.delta.base), ("with them", together.delta.new)]
    full_ns = max(side.wall.ns for _, side in sides)
    bars = [wall_bar(name, side.host, side.wall, full_ns) for name, side in sides]
    yield Bars(bars, "The budget of the call, to one scale.")
    measured = [each for each in advice.remedies if each.wall is not None]
    if measured:
        yield _table(measured)
    if together is not None:
        yield Notes([_together(together)], tone="bold")


def _table(remedies: Sequence[TriedRemedy]) -> Table:
    """The saving of each remedy with its interval; to the left if it costs time."""
    saved = [_saved(each.wall) for each in remedies]
    ends = [0.0, *(end for ns, _, interval in saved for end in (ns, *interval))]
    least, whole = min(ends), max(ends) - min(ends)
    columns = heads("remedy | ~3 | >saves | >of the call ~2 | 95 % interval ~1")
    columns += heads("verdict | output ~4 | safety ~5 | where ~6 | how ~7")
    rows = [
        row(
            each.remedy,
            length(ns, whole, interval, SHORTER if each.helps else TIME, -least),
            *(signed(ns), of_the_call, signed_bounds(interval)),
            *(verdict(str(each.verdict)), each.output, _safety(each), _where(each)),
            text(each.how if each.helps else "", tone="code"),
        )
        for each, (ns, of_the_call, interval) in zip(remedies, saved, strict=True)
    ]
    return Table(columns, rows)


def _saved(wall: Saving | None) -> tuple[float, str, Interval]:
    """The saving of what was measured, in ns and of the call, and its interval."""
    assert wall is not None
    low, high = wall.ci95_ns
    return -wall.delta_ns, f"{1 - wall.ratio:+.1%}", (-high, -low)


def _safety(each: TriedRemedy) -> str:
    return each.safety.replace("_", " ")


def _where(each: TriedRemedy) -> str:
    size_ns = sum(abs(delta_ns) for _, delta_ns in each.host)
    largest = sorted(each.host, key=lambda change: -abs(change[1]))[:_MOVED]
    return ", ".join(
        f"{category} {format_signed_ns(delta_ns)}"
        for category, delta_ns in largest
        if abs(delta_ns) > _LEAST_MOVED * size_ns
    )


def _how(remedies: Sequence[TriedRemedy]) -> Section:
    """How to apply the helpful remedies, and what each does."""
    helping = [each for each in remedies if each.helps]
    rows = [row(each.remedy, text(each.how, tone="code"), _does(each), each.source) for each in helping]
    return Section("How it is done", [Table(heads("remedy | how! | what it does | source ~1"), rows)])


def _does(each: TriedRemedy) -> Cell:
    where = _where(each)
    return text(f"{each.summary} ({_safety(each)}; output {each.output}{f'; {where}' if where else ''})")


def _together(together: Together) -> str:
    ns, of_the_call, interval = _saved(together.wall)
    saved = f"{format_signed_ns(ns)} ({of_the_call}), interval {signed_interval_text(interval)}"
    alone = "confirmed" if together.delta.verdict == "faster" else "not confirmed"
    what = f"{alone if len(together.remedies) == 1 else 'together'}, in turns with the call as it is"
    return f"{what}: {' + '.join(together.remedies)}: {saved}: {together.delta.verdict}"


def _not_measured(remedies: Sequence[TriedRemedy]) -> list[str]:
    """Remedies that were not measured, by why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in remedies:
        if each.wall is None:
            reasons.setdefault((each.status, each.reason or ""), []).append(each.remedy)
    return [f"{_REASONS[status]}: {', '.join(unmeasured)}: {why}" for (status, why), unmeasured in reasons.items()]
