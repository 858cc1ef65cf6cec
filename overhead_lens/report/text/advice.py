"""The terminal report of advice: what helps, how it is done, what does not help, what was not tried."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, call_title, cut, print_footnotes, signed_interval_text, table_of
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.advise.analysis import Advice, Together, TriedRemedy
from overhead_lens.units import format_ns, format_signed_ns

_MOVED = 3
_LEAST_MOVED = 0.1
_SAFETY = {"safe": "safe", "changes_semantics": "changes semantics", "unsafe": "unsafe"}


def print_advice(console: Console, advice: Advice) -> None:
    """Print the answer, the remedies that were measured, how those are done that help, and why others were not tried."""
    console.print(Text(f"{title(advice)}   {format_ns(advice.base.wall.ns)} per call", style="bold"))
    console.print(Text(plain(advice.sentence), style="bold"))
    if any(each.wall for each in advice.remedies):
        console.print()
        console.print(table_of(_brief(remedy_cells(advice.remedies)), _LEFT, ("remedy",)))
    for line in how_lines(advice):
        console.print(Text(line))
    if advice.together is not None:
        console.print()
        console.print(Text(together_line(advice.together), style="bold"))
    if reasons := not_measured(advice.remedies):
        console.print()
        for reason in reasons:
            console.print(Text(reason, style="dim"))
    print_footnotes(console, advice.warnings)
    console.print(Text(f"advice: {plain(advice.directory)}", style="dim"), soft_wrap=True)


_LEFT = ("remedy", "95 % interval", "verdict")
_BRIEF = 5


def title(advice: Advice) -> str:
    """What the advice is for."""
    return f"advice for {call_title(advice.base)}"


def remedy_cells(remedies: Sequence[TriedRemedy]) -> Cells:
    """A row for each measured remedy."""
    heads = ("remedy", "saves", "of the call", "95 % interval", "verdict", "output", "safety", "where")
    return heads, [_cells(each) for each in remedies if each.wall is not None]


def _brief(cells: Cells) -> Cells:
    """The columns that a terminal has room for; the others are told of those that help."""
    heads, rows = cells
    return heads[:_BRIEF], [row[:_BRIEF] for row in rows]


def _cells(each: TriedRemedy) -> Sequence[str]:
    wall = each.wall
    assert wall is not None
    low, high = wall.ci95_ns
    return (
        cut(plain(each.remedy)),
        format_signed_ns(-wall.delta_ns),
        f"{1 - wall.ratio:+.1%}",
        signed_interval_text((-high, -low)),
        str(each.verdict),
        each.output,
        _SAFETY[each.safety],
        _where(each),
    )


def _where(each: TriedRemedy) -> str:
    """The categories that changed most."""
    size_ns = sum(abs(delta_ns) for _, delta_ns in each.host)
    largest = sorted(each.host, key=lambda change: -abs(change[1]))[:_MOVED]
    return ", ".join(
        f"{category} {format_signed_ns(delta_ns)}"
        for category, delta_ns in largest
        if abs(delta_ns) > _LEAST_MOVED * size_ns
    )


def how_lines(advice: Advice) -> Iterator[str]:
    """How the remedies are done that help, and what each does."""
    helping = [each for each in advice.remedies if each.helps]
    if helping:
        yield ""
        yield "how:"
    for each in helping:
        yield f"  {plain(each.remedy)}: {plain(each.how)}"
        told = f"{each.summary} ({_SAFETY[each.safety]}; output {each.output}{'; ' * bool(each.host)}{_where(each)})"
        yield from textwrap.wrap(plain(told), 110, initial_indent="      ", subsequent_indent="      ")


def together_line(together: Together) -> str:
    """What the best of them save together."""
    wall = together.wall
    low, high = wall.ci95_ns
    names = " + ".join(map(plain, together.remedies))
    saved = (
        f"{format_signed_ns(-wall.delta_ns)} ({1 - wall.ratio:+.1%}), interval {signed_interval_text((-high, -low))}"
    )
    what = "confirmed" if len(together.remedies) == 1 else "together"
    return f"{what}, in turns with the call as it is: {names}: {saved}: {together.delta.verdict}"


def not_measured(remedies: Sequence[TriedRemedy]) -> list[str]:
    """Remedies that were not measured, by why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in remedies:
        if each.wall is None:
            reasons.setdefault((each.status, plain(each.reason or "")), []).append(plain(each.remedy))
    words = {"not_applicable": "not tried", "failed": "failed"}
    return [f"{words[status]}: {', '.join(names)}: {reason}" for (status, reason), names in reasons.items()]
