"""A sweep over sizes, in words and pictures: the times, the lines through them, where the lines cross."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from overhead_lens.report.cells import bounds, heads, row, text, time
from overhead_lens.report.outline import Column, Drawing, Notes, Outline, Row, Section, Table
from overhead_lens.report.page.charts.axes import INKS, SYMBOLS, linear_axis, log_axis, round_time
from overhead_lens.report.page.model import Axis, Plot, Series, Symbol, Upright
from overhead_lens.report.text.blocks import counted, cut, interval_text, origin, three_digits
from overhead_lens.studies.sweep.analysis import DOES_NOT_FIT, TOLERANCE_SHARE, Crossing, Sweep, SweptVariant
from overhead_lens.units import NS_PER_US, format_ns

_POINTS_OF_A_LINE = 60


def sweep_outline(sweep: Sweep) -> Outline:
    """The outline."""
    params = " ".join(f"{name}={value}" for name, value in sweep.subject.params.items())
    mode = "compiled, " if sweep.subject.compile else ""
    return Outline(
        f"sweep of {sweep.subject.name}, {mode}{sweep.subject.device}  {params}".rstrip(),
        _answer(sweep),
        Section.filled(_times(sweep), _lines(sweep), _crossings(sweep)),
        about=[f"time per call, medians of {counted(sweep.processes, 'process')}, and how far the line lies above it"],
        warnings=sweep.warnings,
        ends=[f"sweep: {sweep.directory}"],
        origin=partial(origin, sweep.directory, {}),
    )


def _answer(sweep: Sweep) -> str:
    if sweep.sentence:
        return sweep.sentence
    (variant,) = sweep.variants
    element_ns, against = variant.line.element_ns, sweep.against
    each = format_ns(element_ns) if element_ns >= NS_PER_US else f"{three_digits(element_ns)} ns"
    grows = f"{each} for each of {against}" if element_ns else f"no time that grows with {against}"
    overhead = f"{format_ns(variant.line.overhead_ns)} [{interval_text(variant.overhead_ci95_ns)}]"
    return f"{variant.name} takes {overhead} whatever the {against}, and {grows}."


def _times(sweep: Sweep) -> Section:
    """The times of every variant by size, their intervals, and how far the line lies above each."""
    columns = heads(f">{sweep.against}")
    for variant in sweep.variants:
        columns += [Column(variant.name), *heads("95 % ~2 | >line ~1")]
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
    missed = [f"{point.residual_share:+.0%} at {against} = {point.size:,}" for point in variant.points if point.misses]
    return (
        f"{variant.name} does not fit one line (more than {TOLERANCE_SHARE:.0%} off): the line lies {', '.join(missed)} "
        "from what was measured; caches or a second algorithm bend it"
    )


def _lines(sweep: Sweep) -> Section:
    columns = heads(f"variant | >overhead | 95 % ~1 | >{sweep.against} per ns | 95 % ~1 | ")
    table = Table(columns, [_line(variant) for variant in sweep.variants])
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
    columns = heads(f"faster below | faster above | >lines cross at {sweep.against} | >95 % ~1 | >measured between ~2")
    table = Table(columns, [_crossing(crossing) for crossing in sweep.crossings])
    return Section("Where one overtakes the other", [table], reach="everywhere")


def _crossing(crossing: Crossing) -> Row:
    between, ends = crossing.between, crossing.ci95
    return row(
        crossing.below,
        crossing.above if crossing.size is not None else f"({crossing.above} never)",
        "none" if crossing.size is None else _size(crossing.size),
        "not decided" if ends == (0, math.inf) else f"{_size(ends[0])} .. {_size(ends[1])}" if ends else "",
        "" if between is None else f"{between[0]:,} and {between[1]:,}",
    )


def _rate(element_ns: float) -> str:
    return three_digits(1 / element_ns) if element_ns > 0 else "unbounded"


def _size(size: float) -> str:
    return f"{size:,.0f}" if math.isfinite(size) else "never"


def times_chart(sweep: Sweep) -> Plot:
    """Points with their intervals, lines, and an upright line where two of them cross; both axes logarithmic."""
    series = [each for at, variant in enumerate(sweep.variants) for each in _drawn(variant, sweep, at)]
    ends = [ns for variant in sweep.variants for point in variant.points for ns in (point.ns, *point.ci95_ns)]
    sizes = [crossing.size for crossing in sweep.crossings if crossing.size is not None]
    crossed = [size for size in sizes if min(sweep.sizes) <= size <= max(sweep.sizes)]
    return Plot(
        series,
        _sizes_axis(sweep),
        log_axis(ends, round_time, "per call"),
        f"Time per call by {sweep.against}, both logarithmic, of {counted(len(sweep.variants), 'variant')}, with fitted lines.",
        height_px=340,
        uprights=[Upright(size, f"{size:,.0f}") for size in crossed],
    )


def _drawn(variant: SweptVariant, sweep: Sweep, at: int) -> Iterator[Series]:
    """The line of a variant, and its points above it."""
    along = np.geomspace(max(min(sweep.sizes), 1), max(*sweep.sizes, 1), _POINTS_OF_A_LINE).tolist()
    line = [variant.line.overhead_ns + size * variant.line.element_ns for size in along]
    fits = variant.fit != DOES_NOT_FIT
    yield Series("", _ink(at), along, line, "line", is_dashed=not fits)
    points = variant.points
    yield Series(
        cut(variant.name) + ("" if fits else " (no line fits)"),
        _ink(at),
        [max(point.size, 1) for point in points],
        [point.ns for point in points],
        tooltips=[
            f"{point.size:,}: {format_ns(point.ns)} [{interval_text(point.ci95_ns)}], line {point.residual_share:+.0%}"
            for point in points
        ],
        ends=[point.ci95_ns for point in points],
        symbol=_symbol(at),
    )


def residuals_chart(sweep: Sweep) -> Plot:
    """The deviation of each line from the measurements, with the band that counts as a fit."""
    series = [each for at, variant in enumerate(sweep.variants) for each in _residuals(variant, at)]
    ends = [end for each in series for interval in each.ends for end in interval]
    percent = 100 * TOLERANCE_SHARE
    most = 1.1 * max(percent, *map(abs, ends))
    return Plot(
        series,
        _sizes_axis(sweep),
        linear_axis(-most, most, "{:+.4g} %".format, "line above measured"),
        f"How far each line lies above the measured times; a line fits within {percent:.0f} % (shaded).",
        band=(-percent, percent),
    )


def _residuals(variant: SweptVariant, at: int) -> Iterator[Series]:
    sizes = [max(point.size, 1) for point in variant.points]
    percents = [100 * point.residual_share for point in variant.points]
    yield Series("", _ink(at), sizes, percents, "line")
    tooltips = [f"{point.size:,}: {percent:+.1f} %" for point, percent in zip(variant.points, percents, strict=True)]
    ends = [(100 * point.residual_ci95[0], 100 * point.residual_ci95[1]) for point in variant.points]
    yield Series(cut(variant.name), _ink(at), sizes, percents, tooltips=tooltips, ends=ends, symbol=_symbol(at))


def _sizes_axis(sweep: Sweep) -> Axis:
    return log_axis([max(size, 1) for size in sweep.sizes], "{:,.12g}".format, cut(sweep.against))


def _ink(at: int) -> str:
    return INKS[at % len(INKS)]


def _symbol(at: int) -> Symbol:
    return SYMBOLS[(at + at // len(INKS)) % len(SYMBOLS)]
