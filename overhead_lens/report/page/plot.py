"""Plots and strips over time as SVG. A plot's places are percentages: points and texts keep their size at any width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from overhead_lens.report.page.model import Area, Axis, Lanes, Note, Plot, Series, Symbol, Upright
from overhead_lens.report.printers.html import pattern_fill, shown
from overhead_lens.stats.values import Interval

_SYMBOLS: dict[Symbol, str] = {
    "circle": "M-3 0a3 3 0 1 0 6 0 3 3 0 1 0-6 0",
    "ring": "M-5 0a5 5 0 1 0 10 0 5 5 0 1 0-10 0",
    "square": "M-3-3h6v6h-6z",
    "diamond": "M0-4L4 0 0 4-4 0z",
    "triangle": "M0-4L4 3H-4z",
    "cross": "M-1-4h2v3h3v2h-3v3h-2v-3h-3v-2h3z",
    "x": "M-3-3L3 3M3-3L-3 3",
}
_LETTER_PX = 7
_LONG = 7
_BAR = 0.85
_LANE = 120
"""Steps of a lane's height, more than it has pixels."""
_LINE = 1_000
"""Steps of a line's path in each direction."""


def plot_svg(plot: Plot) -> str:
    """The element of a plot with its legend and its axes."""
    described = shown(plot.alternative)
    left_px = 12 + _LETTER_PX * max((len(text) for _, text in plot.y.ticks), default=0)
    slanted = any(len(text) > _LONG for _, text in plot.x.ticks)
    drawn = "".join((*_axes(plot, slanted=slanted), *_behind(plot), *(_series(each, plot) for each in plot.series)))
    texts = "".join(_note(note, plot) for note in plot.notes)
    legend = "".join(f"<li>{_key(each)}{shown(each.name)}</li>" for each in plot.series if each.name)
    keys = f'<ul class="keys">{legend}</ul>\n' if legend.count("<li>") > 1 else ""
    title = f'<div class="axis">{shown(plot.y.title)}</div>\n' if plot.y.title else ""
    below = f'<div class="axis below">{shown(plot.x.title)}</div>\n' if plot.x.title else ""
    style = f"height:{plot.height_px}px;margin-left:{left_px}px;width:calc(100% - {left_px + 12}px)"
    classes = "plot slanted" if slanted else "plot"
    return (
        f'<figure class="{classes}">\n{keys}{title}'
        f'<svg style="{style}" role="img" aria-label="{described}">{drawn}{texts}</svg>\n{below}</figure>\n'
    )


def _axes(plot: Plot, *, slanted: bool) -> Iterator[str]:
    for value, text in _within(plot.y):
        at = _y(plot, value)
        yield f'<line class="grid" x2="100%" y1="{at}" y2="{at}"/><text class="left" x="-6" y="{at}">{shown(text)}</text>'
    yield '<g class="ticks">'
    for value, text in _within(plot.x):
        turned = ' transform="rotate(-30)" text-anchor="end"' if slanted else ""
        yield f'<svg x="{_x(plot, value)}" y="100%"><path d="M0 0v4"/><text y="18"{turned}>{shown(text)}</text></svg>'
    yield "</g>"


def _within(axis: Axis) -> list[tuple[float, str]]:
    return [(value, text) for value, text in axis.ticks if axis.low <= value <= axis.high]


def _behind(plot: Plot) -> Iterator[str]:
    if plot.band is not None:
        yield _rect((0, 1), _part(plot.y, plot.band), 'class="band"')
    for at, upright in enumerate(plot.uprights):
        yield _upright(upright, plot, at)


def _upright(upright: Upright, plot: Plot, at: int) -> str:
    """Texts stand one above the other, where they would lie on one another."""
    interval = upright.interval
    band = "" if interval is None else _rect(_part(plot.x, interval), (0, 1), 'class="reach"')
    x = _x(plot, upright.x)
    line = f'<line class="upright" x1="{x}" x2="{x}" y2="100%"/>'
    return f'{band}{line}<text class="beside" x="{x}" y="{12 + 14 * (at % 3)}" dx="4">{shown(upright.text)}</text>'


def _series(series: Series, plot: Plot) -> str:
    draw: dict[str, Callable[[Series, Plot], Iterator[str]]] = {"points": _points, "bars": _bars}
    drawn = "".join(draw.get(series.form, _line)(series, plot))
    dashed = " dashed" if series.is_dashed else ""
    return f'<g class="{series.form}{dashed}" style="color:{series.ink}">{drawn}</g>'


def _points(series: Series, plot: Plot) -> Iterator[str]:
    """Whiskers, then symbols above them; the transparent circle is what a pointer can hit."""
    for x, (low, high) in zip(series.x, series.ends, strict=False):
        place = _x(plot, x)
        yield f'<line x1="{place}" x2="{place}" y1="{_y(plot, low)}" y2="{_y(plot, high)}"/>'
    symbol = _symbol(series.symbol)
    for at, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if y is not None:
            tooltip = f'<circle r="7"/><title>{shown(series.tooltips[at])}</title>' if series.tooltips else ""
            yield f'<svg x="{_x(plot, x)}" y="{_y(plot, y)}">{tooltip}{symbol}</svg>'


def _symbol(symbol: Symbol) -> str:
    is_open = ' class="open"' if symbol in ("ring", "x") else ""
    return f'<path{is_open} d="{_SYMBOLS[symbol]}"/>'


def _bars(series: Series, plot: Plot) -> Iterator[str]:
    fill = pattern_fill(series.hatch)
    for x, (low, high), tooltip in zip(series.x, series.ends, series.tooltips, strict=True):
        if high > low:
            places = _part(plot.x, (x - _BAR / 2, x + _BAR / 2)), _part(plot.y, (low, high))
            yield _rect(*places, "", f"<title>{shown(tooltip)}</title>")
            if fill:
                yield _rect(*places, f'style="fill:{fill};pointer-events:none"')


def _line(series: Series, plot: Plot) -> Iterator[str]:
    """A path for each interval without a gap."""
    path = ""
    is_down = False
    points = list(zip(series.x, series.y, strict=True))
    for (x, y), (following, _) in pairwise([*points, (plot.x.high, None)]):
        if y is not None:
            place = f"{_LINE * plot.x.share(x):.1f} {_LINE * (1 - plot.y.share(y)):.1f}"
            path += f"{'L' if is_down else 'M'}{place}"
            if series.form == "steps":
                path += f"H{_LINE * plot.x.share(following):.1f}"
        is_down = y is not None
    box = f'viewBox="0 0 {_LINE} {_LINE}" preserveAspectRatio="none"'
    yield f'<svg {box}><path d="{path}"/></svg>'


def _note(note: Note, plot: Plot) -> str:
    """Above its bar, or beside its point, on the side with room."""
    if any(series.form == "bars" for series in plot.series):
        place = 'dy="-6" text-anchor="middle"'
    elif plot.x.share(note.x) > 0.5:
        place = 'dy="4" dx="-9" text-anchor="end"'
    else:
        place = 'dy="4" dx="9"'
    return f'<text class="beside" x="{_x(plot, note.x)}" y="{_y(plot, note.y)}" {place}>{shown(note.text)}</text>'


def _key(series: Series) -> str:
    if series.form == "bars":
        return f'<i style="background:{series.ink}"></i>'
    mark = _symbol(series.symbol) if series.form == "points" else '<path class="open" d="M-5 0h4m2 0h4"/>'
    return f'<svg viewBox="-5.5 -5.5 11 11" style="color:{series.ink}">{mark}</svg>'


def _x(plot: Plot, value: float) -> str:
    return f"{plot.x.share(value):.2%}"


def _y(plot: Plot, value: float) -> str:
    return f"{1 - plot.y.share(value):.2%}"


def _part(axis: Axis, interval: Interval) -> Interval:
    return axis.share(interval[0]), axis.share(interval[1])


def _rect(x: Interval, y: Interval, attributes: str, inside: str = "") -> str:
    """A rectangle over shares of both axes."""
    place = f'x="{x[0]:.3%}" width="{x[1] - x[0]:.3%}" y="{1 - y[1]:.2%}" height="{y[1] - y[0]:.2%}"'
    return f"<rect {place} {attributes}>{inside}</rect>"


def lanes_svg(block: Lanes) -> str:
    """The lanes as an SVG element."""
    lanes = "".join(_lane(name, areas, block) for name, areas in block.lanes)
    marks = "".join(f'<span style="left:{share:.3%}">{shown(name)}</span>' for share, name in block.marks if name)
    ticks = "".join(f"<span>{shown(tick)}</span>" for tick in block.ticks)
    keys = {area.name: area.ink for _, areas in block.lanes for area in areas}
    legend = "".join(f'<li><i style="background:{ink}"></i>{shown(name)}</li>' for name, ink in keys.items())
    return (
        f'<figure class="lanes" role="group" aria-label="{shown(block.alternative)}">\n'
        f'<div class="marks">{marks}</div>\n{lanes}<div class="ticks">{ticks}</div>\n<ul class="keys">{legend}</ul>\n</figure>\n'
    )


def _lane(name: str, areas: Sequence[Area], block: Lanes) -> str:
    buckets = len(block.lengths_ns)
    # What stands below each area is a sum as well, so that neighbours meet.
    tops = np.cumsum([[0] * buckets, *(area.ns for area in areas)], axis=0).tolist()
    paths = "".join(
        f'<path fill="{area.ink}" d="{_path(below, above, block.lengths_ns)}"><title>{shown(area.tooltip)}</title></path>'
        for area, below, above in zip(areas, tops, tops[1:], strict=False)
    )
    lines = "".join(
        f'<line x1="{share * buckets:.2f}" x2="{share * buckets:.2f}" y2="{_LANE}"/>' for share, _ in block.marks
    )
    return (
        f'<figcaption>{shown(name)}</figcaption>\n<svg viewBox="0 0 {buckets} {_LANE}" preserveAspectRatio="none" '
        f'role="img" aria-label="{shown(name)}">{paths}{lines}</svg>\n'
    )


def _path(below: Sequence[int], above: Sequence[int], lengths_ns: Sequence[int]) -> str:
    """A rectangle for each run of buckets that look alike."""
    buckets = zip(below, above, lengths_ns, strict=True)
    heights = [tuple(round(_LANE * ns / (most or 1)) for ns in pair) for *pair, most in buckets]
    path, at = "", 0
    for (low, high), run in groupby(heights):
        width = len(list(run))
        if high > low:
            path += f"M{at} {_LANE - low}h{width}v{low - high}h-{width}z"
        at += width
    return path
