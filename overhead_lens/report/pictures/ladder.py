"""The ladder as a picture: the compiled call as a waterfall of its layers beside the times of all rungs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overhead_lens.report.pictures.save import save
from overhead_lens.report.text.plain import literal
from overhead_lens.studies.ladder.analysis import Ladder, Layer

_WIDTH_IN = 12.0
_ROW_IN = 0.34
_BAR, _STEP = "#4c78a8", "#f58518"


def draw_ladder(ladder: Ladder, target: Path) -> None:
    """Write the picture, as ``save`` does."""
    from matplotlib.figure import Figure

    done = [rung for rung in ladder.rungs if rung.ns is not None]
    falls = ladder.layers
    rows = len(done) + (len(falls) + 1 if falls else 0)
    figure = Figure(figsize=(_WIDTH_IN, 1.6 + _ROW_IN * rows), layout="constrained")
    heights = [len(falls) + 1, len(done)] if falls else [len(done)]
    axes: Any = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    figure.suptitle(literal(f"{ladder.subject.name}:{ladder.subject.variant}, µs per call"))
    if falls:
        _waterfall(axes[0], falls)
    _bars(axes[-1], ladder)
    save(figure, target)


def _waterfall(axes: Any, falls: Sequence[Layer]) -> None:
    total_us = sum(layer.ns for layer in falls) / 1e3
    left_us = total_us
    axes.barh(0, total_us, color=_BAR)
    for at, layer in enumerate(falls, start=1):
        us = layer.ns / 1e3
        left_us -= us
        axes.barh(at, us, left=left_us, color=_STEP)
        axes.annotate(f" {us:.2f}", (left_us + us, at), va="center", fontsize=8)
    axes.annotate(f" {total_us:.2f}", (total_us, 0), va="center", fontsize=8)
    axes.set_yticks(
        range(len(falls) + 1), [literal(name) for name in ("torch.compile", *(layer.name for layer in falls))]
    )
    axes.invert_yaxis()
    axes.set_title("what the compiled call is made of", fontsize=10)
    axes.margins(x=0.08)


def _bars(axes: Any, ladder: Ladder) -> None:
    done = [rung for rung in ladder.rungs if rung.ns is not None and rung.ci95_ns is not None]
    for at, rung in enumerate(done):
        assert rung.ns is not None
        assert rung.ci95_ns is not None
        spread = [[max(0.0, rung.ns - rung.ci95_ns[0]) / 1e3], [max(0.0, rung.ci95_ns[1] - rung.ns) / 1e3]]
        axes.barh(at, rung.ns / 1e3, color=_BAR, xerr=spread, error_kw={"lw": 1, "capsize": 2})
        axes.annotate(f"   {rung.ns / 1e3:,.3g}", (rung.ci95_ns[1] / 1e3, at), va="center", fontsize=8)
    axes.set_yticks(range(len(done)), [literal(rung.kind.title) for rung in done])
    axes.invert_yaxis()
    axes.set_title("rungs", fontsize=10)
    axes.margins(x=0.08)
