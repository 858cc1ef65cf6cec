"""A difference in words: what changed by category, what moved inside, factors, instructions; of two runs; under limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from overhead_lens.comparison.contributors import guard_kinds_in_words
from overhead_lens.comparison.factors import Factor, Factors
from overhead_lens.comparison.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.comparison.model import CategoryChange, Delta
from overhead_lens.report.cells import heads, row, signed, signed_bounds, sum_row, text, time, verdict
from overhead_lens.report.looks import LONGER, SHORTER
from overhead_lens.report.outline import Bars, Block, Cell, Drawing, Notes, Outline, Picture, Piece, Row, Section, Table
from overhead_lens.report.outlines.host import wall_bar
from overhead_lens.report.outlines.run import title as run_title
from overhead_lens.report.page.charts.calls import stacks_of
from overhead_lens.report.page.charts.icicle import corrected, difference_icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.text.blocks import origin, side_titles
from overhead_lens.studies.check.limits import BROKEN, Outcome, TimeOutcome
from overhead_lens.studies.run.delta import RunDelta
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns, format_signed_ns


def delta_outline(delta: Delta) -> Outline:
    """Two budgets."""
    titles = side_titles(delta.base, delta.new)
    guards = guard_kinds_in_words(delta.base, delta.new)
    further = [*_factors(delta.factors), *instruction_sections(delta.instructions)]
    stacks = Section("Stacks of both sides", [Drawing(partial(_stacks, delta))], reach="page")
    return _outline(delta, titles, "call", [f"guards: {guards}"] if guards else [], [*further, stacks])


def run_delta_outline(delta: RunDelta) -> Outline:
    """Two runs of a program."""
    return _outline(delta, (run_title(delta.base), run_title(delta.new)), delta.per)


def _outline(
    delta: Delta | RunDelta,
    titles: tuple[str, str],
    per: str,
    notes: Sequence[str] = (),
    further: Sequence[Section] = (),
) -> Outline:
    ratio = "" if delta.ratio is None else f" ({delta.ratio:.3f}x)"
    return Outline(
        " → ".join(dict.fromkeys(titles)),
        _sentence(delta.sentence),
        Section.filled(_changed(delta, titles, notes), *further, _moved(delta)),
        figure=f"{format_ns(delta.base.wall.ns)} → {format_ns(delta.new.wall.ns)} per {per}{ratio}: {delta.verdict}",
        warnings=delta.warnings,
        origin=partial(_origin, delta),
    )


def _sentence(words: str) -> str:
    return words if words.endswith(".") else f"{words}."


def _changed(delta: Delta | RunDelta, titles: tuple[str, str], notes: Sequence[str]) -> Section:
    """The categories of both sides as bars to one scale, the changes between them, and a table."""
    base, new = delta.base, delta.new
    changes, full_ns = _waterfall(delta)
    sides = zip(("base", "new"), titles, (base, new), strict=True)
    bars = [wall_bar(f"{name}: {title}", side.host, side.wall, full_ns) for name, title, side in sides]
    blocks: list[Block] = [
        Bars(bars, "Both budgets to one scale."),
        Drawing(lambda _: [changes] if changes.rows else []),
        _table(delta),
        Notes([*notes, *_by_frames(delta.host)], tone="dim"),
    ]
    return Section("What changed", blocks, reach="everywhere")


def _waterfall(delta: Delta | RunDelta) -> tuple[Table, float]:
    """A bar for each change, from where the one before it ends, and the scale: the largest time on the way."""
    at_ns = full_ns = float(delta.base.wall.ns)
    places = []
    for change in delta.host:
        if change.delta_ns:
            start_ns, at_ns = at_ns, at_ns + change.delta_ns
            full_ns = max(full_ns, at_ns)
            places.append((change, max(0.0, min(start_ns, at_ns))))
    full_ns = max(full_ns, delta.new.wall.ns)
    rows = [_change(change, left_ns, full_ns) for change, left_ns in places]
    return Table(heads(" | | >"), rows, "from the base to the new side"), full_ns


def _change(change: CategoryChange, left_ns: float, full_ns: float) -> Row:
    size_ns, look = abs(change.delta_ns), LONGER if change.delta_ns > 0 else SHORTER
    label = f"{change.category} {format_signed_ns(change.delta_ns)}"
    bar = (Piece("", left_ns, ""), Piece(look, size_ns, label), Piece("", full_ns - left_ns - size_ns, ""))
    return row(text(change.category, change.category), Cell(pieces=bar), signed(change.delta_ns))


def _table(delta: Delta | RunDelta) -> Table:
    """A row for each category that either side has, with what moved most in it, and the sum."""
    columns = heads("category | >base ~2 | >new ~2 | >difference | 95 % interval ~1 | verdict | moved most ~3")
    rows = []
    for change, old, recent in zip(delta.host, delta.base.host, delta.new.host, strict=True):
        if old.ns or recent.ns:
            times = (time(old.ns), time(recent.ns), signed(change.delta_ns), signed_bounds(change.ci95_ns))
            judged = verdict(change.verdict, "*" if change.only_in_frames else "")
            most = _first(f"{format_signed_ns(part.delta_ns)} {part.name}" for part in change.contributors)
            rows.append(row(text(change.category, change.category), *times, judged, most))
    walls = (time(delta.base.wall.ns), time(delta.new.wall.ns), signed(delta.wall_delta_ns))
    total = sum_row("sum = wall", *walls, signed_bounds(delta.wall_ci95_ns), verdict(delta.verdict), "")
    return Table(columns, [*rows, total])


def _first(changes: Iterable[str]) -> Cell:
    return text(next(iter(changes), ""), tone="dim")


def _by_frames(host: Sequence[CategoryChange]) -> list[str]:
    """The footnote for the mark beside a verdict."""
    known = [
        f"{change.category} {format_signed_ns(change.in_frames_ns)}"
        for change in host
        if change.only_in_frames and change.in_frames_ns is not None
    ]
    why = "* not by its own interval, but by frames that are known to have moved"
    return [f"{why}: {', '.join(known)}"] if known else []


def _moved(delta: Delta | RunDelta) -> Section:
    rows = [
        row(text(change.category, change.category), part.kind, signed(part.delta_ns), part.verdict, part.name)
        for change in delta.host
        for part in change.contributors
    ]
    columns = heads("category | kind | >difference | verdict | name")
    caption = "in each category, what is known to have moved comes first"
    return Section.folded("What moved inside the categories", Table(columns, rows, caption))


def _stacks(delta: Delta, classifier: Classifier) -> Iterable[Picture]:
    sides = [stacks_of(side) for side in (delta.base, delta.new)]
    if missing := list(dict.fromkeys(reason for _, reason in sides if reason)):
        return [Notes(missing)]
    fitted = classifier.fitted(stack for stacks, _ in sides for stack in stacks)
    base, new = (tree_of(stacks, fitted, "the call") for stacks, _ in sides)
    notes = [
        f"{name}: {line}"
        for name, side, tree in (("base", delta.base, base), ("new", delta.new, new))
        for line in corrected(tree, side.wall.ns, side.host)
    ]
    return [*difference_icicle(base, new, (delta.base.wall.ns, delta.new.wall.ns), "call"), Notes(notes)]


def _origin(delta: Delta | RunDelta) -> list[tuple[str, str]]:
    base, new = delta.base, delta.new
    sides = ((base.capture, base.environment, "base"), (new.capture, new.environment, "new"))
    return [pair for directory, environment, side in sides for pair in origin(directory, environment, side=side)]


def instruction_sections(delta: InstructionDelta | None) -> list[Section]:
    """A difference in instructions per call: categories, the function that moved most, a sentence."""
    if delta is None:
        return []
    columns = heads("category | >base ~1 | >new ~1 | >difference | >of the base | moved most ~2")
    rows = []
    for change in delta.host:
        if change.base_count or change.new_count:
            most = _first(f"{signed_count(each.delta_count)} {each.name}" for each in change.moved)
            counts = _counts(change.base_count, change.new_count, delta)
            rows.append(row(text(change.category, change.category), *counts, most))
    total = sum_row("sum", *_counts(delta.base_count, delta.new_count, delta), "")
    blocks: list[Block] = [Notes([_sentence(delta.sentence)], tone="bold"), Table(columns, [*rows, total])]
    return [Section("Instructions per call (callgrind)", blocks, reach="everywhere")]


def _counts(base: int, new: int, delta: InstructionDelta) -> list[Cell | int]:
    grown = new - base
    return [base, new, text(signed_count(grown)), text(signed_share(grown, delta.base_count))]


def _factors(factors: Factors | None) -> list[Section]:
    """The factors of the ratio of two variants, per unit of work."""
    if factors is None:
        return []
    columns = heads("factor | >base ~2 | >new ~2 | >difference | >share | >ratio without it ~3")
    rows = [_factor(part, factors) for part in factors.parts if part.base_ns or part.new_ns]
    walls = (factors.base_ns / factors.units, factors.new_ns / factors.units)
    ratio = f"{max(walls) / min(walls):.1f}x" if min(walls) else ""
    total = sum_row("sum = wall", *map(time, walls), signed(walls[1] - walls[0]), "100%", ratio)
    heading = f"Factors of the ratio, per unit of work ({factors.units:,} units)"
    return [Section(heading, [Table(columns, [*rows, total])])]


def _factor(part: Factor, factors: Factors) -> Row:
    per_unit = (time(part.base_ns / factors.units), time(part.new_ns / factors.units))
    return row(
        text(part.name, part.name),
        *per_unit,
        signed(part.per_unit_ns),
        f"{part.share:.0%}",
        "" if part.ratio_without is None else f"{part.ratio_without:.1f}x",
    )


def outcome_outline(outcome: Outcome) -> Outline:
    """The outline of its difference below its limits."""
    title = f"{'Regression' if outcome.regressed else 'No regression'}: {outcome.name}"
    if isinstance(outcome, TimeOutcome):
        outline = delta_outline(outcome.delta)
        return replace(outline, title=title, about=[outline.title], sections=[*_limits(outcome), *outline.sections])
    return Outline(title, "", [*_limits(outcome), *instruction_sections(outcome.delta)])


def _limits(outcome: Outcome) -> list[Section]:
    columns = heads("limit | >allowed | >measured | 95 % interval | ")
    rows = [
        row(
            finding.limit.name,
            finding.text(finding.allowed),
            finding.text(finding.delta),
            text("exact") if finding.ci95_ns is None else signed_bounds(finding.ci95_ns),
            text(finding.state, LONGER if finding.state == BROKEN else ""),
        )
        for finding in outcome.findings
    ]
    return [Section("Limits", [Table(columns, rows)], reach="everywhere")] if rows else []
