"""The history as a picture: for each segment, the categories over its captures, with intervals and change points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from overhead_lens.report.pictures.save import save
from overhead_lens.report.text.plain import literal
from overhead_lens.studies.history.analysis import WALL, History, Segment
from overhead_lens.taxonomy.categories import INKS

_WIDTH_IN, _ROW_IN = 11.0, 3.4
_MOST_ROWS, _MOST_TICKS, _LONGEST = 40, 20, 100
_COLORS = {WALL: "#222222", **INKS}


def draw_history(history: History, target: Path) -> None:
    """Write the picture of the first ``_MOST_ROWS`` segments, as ``save`` does."""
    from matplotlib.figure import Figure

    rows = [(series.title, segment) for series in history.series for segment in series.segments][:_MOST_ROWS]
    figure = Figure(figsize=(_WIDTH_IN, _ROW_IN * len(rows)), layout="constrained")
    axes: Any = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for plot, (title, segment) in zip(axes, rows, strict=True):
        _draw(plot, segment)
        where = f"{segment.environment['host']}, torch {segment.environment['torch']}"
        plot.set_title(literal(f"{title[:_LONGEST]}  ({where[:_LONGEST]})"), fontsize=9)
    save(figure, target)


def _draw(axes: Any, segment: Segment) -> None:
    points = segment.points
    along = np.arange(len(points))
    for name in segment.levels:
        us = np.array([point.ns[name] for point in points]) / 1e3
        ends_us = np.array([point.ci95_ns[name] for point in points]) / 1e3
        axes.errorbar(
            along,
            us,
            yerr=np.maximum(np.abs(ends_us - us[:, None]).T, 0.0),
            color=_COLORS[name],
            marker=".",
            linewidth=1,
            elinewidth=0.6,
            label=name,
        )
    for change in segment.changes:
        axes.axvline(change.position - 0.5, color="#e45756", linestyle="--", linewidth=1)
        axes.annotate(
            literal(change.sentence[:_LONGEST]),
            (change.position - 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -10),
            textcoords="offset points",
            fontsize=7,
            color="#e45756",
        )
    ticks = along[:: -(-len(points) // _MOST_TICKS)]
    axes.set_xticks(ticks, [literal(points[at].name[:24]) for at in ticks], rotation=30, fontsize=7, ha="right")
    axes.set_ylabel("µs per call")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
