"""Strips over time as SVG: in each bucket the areas stand on one another, as high as their share of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby

from overhead_lens.report.page.model import Area, Lanes
from overhead_lens.report.printers.html import shown

_HEIGHT = 120
"""Steps of height, more than a lane has pixels."""


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
    tops = list(accumulate((area.ns for area in areas), _added, initial=(0,) * buckets))
    paths = "".join(
        f'<path fill="{area.ink}" d="{_path(below, above, block.lengths_ns)}"><title>{shown(area.tooltip)}</title></path>'
        for area, below, above in zip(areas, tops, tops[1:], strict=False)
    )
    lines = "".join(
        f'<line x1="{share * buckets:.2f}" x2="{share * buckets:.2f}" y2="{_HEIGHT}"/>' for share, _ in block.marks
    )
    return (
        f'<figcaption>{shown(name)}</figcaption>\n<svg viewBox="0 0 {buckets} {_HEIGHT}" preserveAspectRatio="none" '
        f'role="img" aria-label="{shown(name)}">{paths}{lines}</svg>\n'
    )


def _added(below: tuple[int, ...], ns: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(sum, zip(below, ns, strict=True)))


def _path(below: Sequence[int], above: Sequence[int], lengths_ns: Sequence[int]) -> str:
    """A rectangle for each run of buckets that look alike."""
    buckets = zip(below, above, lengths_ns, strict=True)
    heights = [tuple(round(_HEIGHT * ns / (most or 1)) for ns in pair) for *pair, most in buckets]
    path, at = "", 0
    for (low, high), run in groupby(heights):
        width = len(list(run))
        if high > low:
            path += f"M{at} {_HEIGHT - low}h{width}v{low - high}h-{width}z"
        at += width
    return path
