"""Results as one Markdown table, for the summary of a CI job or a comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.comparison.model import Delta
from overhead_lens.report.text import advice as told
from overhead_lens.report.text.blocks import side_titles, signed_interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.advise.analysis import Advice
from overhead_lens.units import format_ns, format_signed_ns


def delta_markdown(delta: Delta) -> str:
    """A difference: a headline, the categories, warnings."""
    sides = " → ".join(dict.fromkeys(map(cell, side_titles(delta.base, delta.new))))
    return "\n".join([f"### {delta.verdict.capitalize()}: {sides}", "", *delta_lines(delta)]).rstrip() + "\n"


def delta_lines(delta: Delta, between: Sequence[str] = ()) -> Iterator[str]:
    """The sentence, the walls, lines ``between``, a row for each category, the warnings."""
    ratio = "" if delta.ratio is None else f" ({delta.ratio:.3f}x)"
    walls = f"Wall {format_ns(delta.base.wall.ns)} → {format_ns(delta.new.wall.ns)}{ratio}"
    yield from (
        f"{cell(delta.sentence)}.",
        "",
        f"{walls}, verdict **{delta.verdict}**.",
        "",
        *between,
        *delta_table(delta),
    )
    yield from ("", *(f"- {cell(warning)}" for warning in delta.warnings))


def delta_table(delta: Delta) -> Iterator[str]:
    """The categories that either side has."""
    yield "| category | base | new | difference | 95 % interval | verdict | moved most |"
    yield "|---|---|---|---|---|---|---|"
    for old, recent, change in zip(delta.base.host, delta.new.host, delta.host, strict=True):
        if old.ns == recent.ns == 0:
            continue
        largest = next(iter(change.contributors), None)
        moved = f"{format_signed_ns(largest.delta_ns)} {cell(largest.name)}" if largest else ""
        yield (
            f"| {change.category} | {format_ns(old.ns)} | {format_ns(recent.ns)} | {format_signed_ns(change.delta_ns)} "
            f"| {signed_interval_text(change.ci95_ns)} | {change.verdict} | {moved} |"
        )


def advice_markdown(advice: Advice) -> str:
    """Advice: the answer, a row for each remedy that was measured, how those that help are done."""
    measured = [each for each in advice.remedies if each.wall is not None]
    heads, rows = told.remedy_cells(measured)
    hows = [_code(each.how) if each.helps else "" for each in measured]
    lines = [f"### {cell(told.title(advice))}", "", cell(advice.sentence), ""]
    lines += [f"| {' | '.join((*heads, 'how'))} |", f"|{'---|' * (len(heads) + 1)}"]
    lines += [f"| {' | '.join((*map(cell, row), how))} |" for row, how in zip(rows, hows, strict=True)]
    if advice.together is not None:
        lines += ["", f"**{cell(told.together_line(advice.together))}**"]
    lines += ["", *(f"- {cell(warning)}" for warning in advice.warnings)]
    return "\n".join(lines).rstrip() + "\n"


def _code(text: str) -> str:
    """A line of code in a cell; a pipe would end the cell even in code."""
    return f"`{plain(text).replace('`', chr(39)).replace('|', chr(92) + '|')}`" if text else ""


def cell(text: str) -> str:
    """Text that ends no cell and starts no markup."""
    shown = plain(text)
    for mark in ("\\", "|", "<", "*", "_", "`", "["):
        shown = shown.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return shown
