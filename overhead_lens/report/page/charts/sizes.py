"""A sweep as pictures: times over sizes with the fitted lines and their crossings, and how far the lines miss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from overhead_lens.report.page.charts.axes import INKS, SYMBOLS, linear_axis, log_axis, round_time
from overhead_lens.report.page.model import Axis, Plot, Series, Symbol, Upright
from overhead_lens.report.text.blocks import cut, interval_text
from overhead_lens.studies.sweep.analysis import DOES_NOT_FIT, TOLERANCE_SHARE, Sweep, SweptVariant
from overhead_lens.units import format_ns

_POINTS_OF_A_LINE = 60


def times_chart(sweep: Sweep) -> Plot:
    """Points with their intervals, lines, and an upright line where two of them cross; both axes logarithmic."""
    series = [each for at, variant in enumerate(sweep.variants) for each in _times(variant, sweep, at)]
    ends = [ns for variant in sweep.variants for point in variant.points for ns in (point.ns, *point.ci95_ns)]
    sizes = [crossing.size for crossing in sweep.crossings if crossing.size is not None]
    crossed = [size for size in sizes if min(sweep.sizes) <= size <= max(sweep.sizes)]
    return Plot(
        series,
        _sizes_axis(sweep),
        log_axis(ends, round_time, "per call"),
        f"Time per call by {sweep.against}, both logarithmic, for {len(sweep.variants)} variants with their fitted lines.",
        height_px=340,
        uprights=[Upright(size, f"{size:,.0f}") for size in crossed],
    )


def _times(variant: SweptVariant, sweep: Sweep, at: int) -> Iterator[Series]:
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
