"""A sweep over sizes in words: the times, the lines through them, where the lines cross."""

from __future__ import annotations

import math
from functools import partial

from overhead_lens.report.cells import bounds, names, row, text, time
from overhead_lens.report.outline import Cell, Column, Drawing, Notes, Outline, Row, Section, Table
from overhead_lens.report.outlines.origin import origin
from overhead_lens.report.page.charts.sizes import residuals_chart, times_chart
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.studies.sweep.analysis import DOES_NOT_FIT, TOLERANCE_SHARE, Crossing, Sweep, SweptVariant
from overhead_lens.units import format_ns


def sweep_outline(sweep: Sweep) -> Outline:
    """The outline."""
    params = " ".join(f"{name}={value}" for name, value in sweep.subject.params.items())
    mode = "compiled, " if sweep.subject.compile else ""
    return Outline(
        f"sweep of {sweep.subject.name}, {mode}{sweep.subject.device}  {params}".rstrip(),
        _answer(sweep),
        Section.filled(_times(sweep), _lines(sweep), _crossings(sweep)),
        about=[f"time per call, medians of {sweep.processes} processes, and how far the line lies above it"],
        warnings=sweep.warnings,
        ends=[f"sweep: {sweep.directory}"],
        origin=partial(origin, sweep.directory, {}),
    )


def _answer(sweep: Sweep) -> str:
    if sweep.sentence:
        return sweep.sentence
    (variant,) = sweep.variants
    element_ns, against = variant.line.element_ns, sweep.against
    grows = f"{element_ns:.3g} ns for each of {against}" if element_ns else f"no time that grows with {against}"
    overhead = f"{format_ns(variant.line.overhead_ns)} [{interval_text(variant.overhead_ci95_ns)}]"
    return f"{variant.name} takes {overhead} whatever the {against}, and {grows}."


def _times(sweep: Sweep) -> Section:
    """The times of every variant by size, their intervals, and how far the line lies above each."""
    columns = [Column(sweep.against)]
    for variant in sweep.variants:
        columns += [Column(variant.name), names("95 %", gives_way=2), Column("line", gives_way=1)]
    rows = []
    for at, size in enumerate(sweep.sizes):
        cells = [text(f"{size:,}")]
        for point in (variant.points[at] for variant in sweep.variants):
            cells += [time(point.ns), bounds(point.ci95_ns), text(f"{point.residual_share:+.0%}")]
        rows.append(Row(cells))
    misfits = [_misfit(variant, sweep.against) for variant in sweep.variants if variant.fit == DOES_NOT_FIT]
    drawn = Drawing(lambda _: [times_chart(sweep)])
    return Section("Time by size", [drawn, Table(columns, rows), Notes(misfits, tone="warning")], reach="everywhere")


def _misfit(variant: SweptVariant, against: str) -> str:
    """The sizes at which a variant deviates from its line."""
    missed = [f"{point.residual_share:+.0%} at {against} = {point.size:,}" for point in variant.points if point.misses]
    return (
        f"{variant.name} does not fit one line (more than {TOLERANCE_SHARE:.0%} off): the line lies {', '.join(missed)} "
        "from what was measured; caches or a second algorithm bend it"
    )


def _lines(sweep: Sweep) -> Section:
    """The fitted line of every variant."""
    columns = [names("variant"), Column("overhead"), names("95 %", gives_way=1)]
    columns += [Column(f"{sweep.against} per ns"), names("95 %", gives_way=1)]
    table = Table([*columns, names("")], [_line(variant) for variant in sweep.variants])
    model = f"time = overhead + {sweep.against} / rate, least squares of relative errors"
    drawn = Drawing(lambda _: [residuals_chart(sweep)])
    return Section("Lines", [Notes([model], tone="dim"), table, drawn], reach="everywhere")


def _line(variant: SweptVariant) -> Row:
    line, (low_ns, high_ns) = variant.line, variant.element_ci95_ns
    return row(
        variant.name,
        *(time(line.overhead_ns), bounds(variant.overhead_ci95_ns)),
        *(_rate(line.element_ns), f"{_rate(high_ns)} .. {_rate(low_ns)}"),
        variant.fit,
    )


def _crossings(sweep: Sweep) -> Section:
    """The crossings of each pair of variants' lines."""
    columns = [names("faster below"), names("faster above"), Column(f"lines cross at {sweep.against}")]
    columns += [Column("95 %", gives_way=1), Column("measured between", gives_way=2)]
    table = Table(columns, [_crossing(crossing) for crossing in sweep.crossings])
    return Section("Where one overtakes the other", [table], reach="everywhere")


def _crossing(crossing: Crossing) -> Row:
    between = crossing.between
    return row(
        crossing.below,
        crossing.above if crossing.size is not None else f"({crossing.above} never)",
        "none" if crossing.size is None else _size(crossing.size),
        _spread(crossing),
        "" if between is None else f"{between[0]:,} and {between[1]:,}",
    )


def _spread(crossing: Crossing) -> Cell:
    if crossing.ci95 is None:
        return Cell()
    low, high = crossing.ci95
    return text("not decided" if low == 0 and math.isinf(high) else f"{_size(low)} .. {_size(high)}")


def _rate(element_ns: float) -> str:
    return f"{1 / element_ns:.3g}" if element_ns > 0 else "unbounded"


def _size(size: float) -> str:
    return f"{size:,.0f}" if math.isfinite(size) else "never"
