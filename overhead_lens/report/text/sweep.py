"""The terminal report of a size sweep."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import figures, interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.sweep.analysis import (
    DOES_NOT_FIT,
    TOLERANCE_SHARE,
    Crossing,
    Sweep,
    SweptPoint,
    SweptVariant,
)
from overhead_lens.units import format_ns

# With fewer variants there is room for the intervals of the times; --json has them always.
_MANY = 3


def print_sweep(console: Console, sweep: Sweep) -> None:
    """Print the times, the lines with their residuals, where they cross and who is the fastest."""
    params = " ".join(f"{name}={value}" for name, value in sweep.subject.params.items())
    mode = "compiled, " if sweep.subject.compile else ""
    console.print(Text(plain(f"sweep of {sweep.subject.name}, {mode}{sweep.subject.device}  {params}"), style="bold"))
    console.print(Text(f"time per call, medians of {sweep.processes} processes, and how far the line lies above it"))
    console.print(_times(sweep))
    console.print()
    console.print(Text(plain(f"time = overhead + {sweep.against} / rate, least squares of relative errors")))
    console.print(_lines(sweep))
    for variant in sweep.variants:
        if variant.fit == DOES_NOT_FIT:
            console.print(Text(_misfit(variant, sweep.against), style="yellow"))
    if sweep.crossings:
        console.print()
        console.print(_crossings(sweep))
    if sentence := sweep.sentence:
        console.print()
        console.print(Text(plain(sentence), style="bold"))
    for warning in sweep.warnings:
        console.print(Text(f"warning: {plain(warning)}", style="yellow"))
    console.print(Text(f"sweep: {plain(sweep.directory)}", style="dim"), soft_wrap=True)


def _times(sweep: Sweep) -> Table:
    table = figures(sweep.against, *(variant.name for variant in sweep.variants))
    few = len(sweep.variants) < _MANY
    for at, size in enumerate(sweep.sizes):
        points = [variant.points[at] for variant in sweep.variants]
        table.add_row(f"{size:,}", *(_timed(point, interval=few) for point in points))
    return table


def _timed(point: SweptPoint, *, interval: bool) -> str:
    shown = f"  {interval_text(point.ci95_ns)}" if interval else ""
    return f"{format_ns(point.ns)}{shown} {point.residual_share:>+4.0%}"


def _lines(sweep: Sweep) -> Table:
    rate = f"{sweep.against} per ns"
    table = figures("variant", "overhead", "95 %", "published", rate, "95 %", "published", "", left=["variant", ""])
    for variant in sweep.variants:
        line, (low_ns, high_ns) = variant.line, variant.element_ci95_ns
        theirs = variant.published
        table.add_row(
            plain(variant.name),
            format_ns(line.overhead_ns),
            interval_text(variant.overhead_ci95_ns),
            format_ns(theirs.overhead_ns) if theirs and variant.published_overhead else "",
            _rate(line.element_ns),
            f"{_rate(high_ns)} .. {_rate(low_ns)}",
            "" if theirs is None else _rate(theirs.element_ns),
            variant.fit,
        )
    return table


def _misfit(variant: SweptVariant, against: str) -> str:
    missed = [f"{point.residual_share:+.0%} at {against} = {point.size:,}" for point in variant.points if point.misses]
    return plain(
        f"{variant.name} does not fit one line (more than {TOLERANCE_SHARE:.0%} off): the line lies {', '.join(missed)} "
        "from what was measured; caches or a second algorithm bend it"
    )


def _crossings(sweep: Sweep) -> Table:
    sides = ("faster below", "faster above")
    table = figures(*sides, f"lines cross at {sweep.against}", "95 %", "measured between", "published", left=sides)
    for crossing in sweep.crossings:
        table.add_row(
            plain(crossing.below),
            plain(crossing.above)
            if crossing.size is not None
            else Text(f"({plain(crossing.above)} never)", style="dim"),
            "none" if crossing.size is None else _size(crossing.size),
            _spread(crossing),
            "" if crossing.between is None else f"{crossing.between[0]:,} and {crossing.between[1]:,}",
            "" if crossing.published is None else _size(crossing.published),
        )
    return table


def _spread(crossing: Crossing) -> str:
    if crossing.ci95 is None:
        return ""
    low, high = crossing.ci95
    if low == 0 and math.isinf(high):
        return "not decided"
    return f"{_size(low)} .. {_size(high)}"


def _rate(element_ns: float) -> str:
    return f"{1 / element_ns:.3g}" if element_ns > 0 else "unbounded"


def _size(size: float) -> str:
    return f"{size:,.0f}" if math.isfinite(size) else "never"
