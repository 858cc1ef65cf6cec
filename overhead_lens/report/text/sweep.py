"""The terminal report of a size sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, interval_text, table_of
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
    console.print(Text(title(sweep), style="bold"))
    console.print(Text(f"time per call, medians of {sweep.processes} processes, and how far the line lies above it"))
    console.print(table_of(time_cells(sweep, intervals=len(sweep.variants) < _MANY)))
    console.print()
    console.print(Text(plain(f"time = overhead + {sweep.against} / rate, least squares of relative errors")))
    console.print(table_of(line_cells(sweep), left=("variant", "")))
    for variant in sweep.variants:
        if variant.fit == DOES_NOT_FIT:
            console.print(Text(misfit(variant, sweep.against), style="yellow"))
    if sweep.crossings:
        console.print()
        console.print(table_of(crossing_cells(sweep), left=("faster below", "faster above")))
    if sentence := sweep.sentence:
        console.print()
        console.print(Text(plain(sentence), style="bold"))
    for warning in sweep.warnings:
        console.print(Text(f"warning: {plain(warning)}", style="yellow"))
    console.print(Text(f"sweep: {plain(sweep.directory)}", style="dim"), soft_wrap=True)


def title(sweep: Sweep) -> str:
    """What was swept: scenario, mode, device, parameters that stay."""
    params = " ".join(f"{name}={value}" for name, value in sweep.subject.params.items())
    mode = "compiled, " if sweep.subject.compile else ""
    return plain(f"sweep of {sweep.subject.name}, {mode}{sweep.subject.device}  {params}")


def time_cells(sweep: Sweep, *, intervals: bool) -> Cells:
    """The times of every variant by size, and how far the line lies above each."""
    rows = [
        (f"{size:,}", *(_timed(variant.points[at], interval=intervals) for variant in sweep.variants))
        for at, size in enumerate(sweep.sizes)
    ]
    return (sweep.against, *(plain(variant.name) for variant in sweep.variants)), rows


def _timed(point: SweptPoint, *, interval: bool) -> str:
    shown = f" [{interval_text(point.ci95_ns)}]" if interval else ""
    return f"{format_ns(point.ns)}{shown} {point.residual_share:>+4.0%}"


def line_cells(sweep: Sweep) -> Cells:
    """The fitted line of every variant beside the published one."""
    rate = f"{sweep.against} per ns"
    heads = ("variant", "overhead", "95 %", "published", rate, "95 %", "published", "")
    return heads, [_line(variant) for variant in sweep.variants]


def _line(variant: SweptVariant) -> Sequence[str]:
    line, (low_ns, high_ns), theirs = variant.line, variant.element_ci95_ns, variant.published
    return (
        plain(variant.name),
        format_ns(line.overhead_ns),
        interval_text(variant.overhead_ci95_ns),
        format_ns(theirs.overhead_ns) if theirs and variant.published_overhead else "",
        _rate(line.element_ns),
        f"{_rate(high_ns)} .. {_rate(low_ns)}",
        "" if theirs is None else _rate(theirs.element_ns),
        variant.fit,
    )


def misfit(variant: SweptVariant, against: str) -> str:
    """Where a variant that fits no line misses it."""
    missed = [f"{point.residual_share:+.0%} at {against} = {point.size:,}" for point in variant.points if point.misses]
    return plain(
        f"{variant.name} does not fit one line (more than {TOLERANCE_SHARE:.0%} off): the line lies {', '.join(missed)} "
        "from what was measured; caches or a second algorithm bend it"
    )


def crossing_cells(sweep: Sweep) -> Cells:
    """Where the lines of each two variants cross."""
    heads = ("faster below", "faster above", f"lines cross at {sweep.against}", "95 %", "measured between", "published")
    return heads, [_crossing(crossing) for crossing in sweep.crossings]


def _crossing(crossing: Crossing) -> Sequence[str]:
    above = plain(crossing.above)
    return (
        plain(crossing.below),
        above if crossing.size is not None else f"({above} never)",
        "none" if crossing.size is None else _size(crossing.size),
        _spread(crossing),
        "" if crossing.between is None else f"{crossing.between[0]:,} and {crossing.between[1]:,}",
        "" if crossing.published is None else _size(crossing.published),
    )


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
