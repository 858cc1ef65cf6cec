"""An ablation ladder in words: the layers of the compiled call, the rungs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from overhead_lens.report.cells import bounds, heads, length, row, share, signed, signed_bounds, sum_row, time
from overhead_lens.report.looks import TIME
from overhead_lens.report.outline import Cell, Notes, Outline, Row, Section, Table
from overhead_lens.report.text.blocks import counted, origin
from overhead_lens.studies.ladder.analysis import Ladder, Layer, Rung


def ladder_outline(ladder: Ladder) -> Outline:
    """The outline."""
    params = " ".join(f"{name}={value}" for name, value in ladder.subject.params.items())
    done = sum(rung.ns is not None for rung in ladder.rungs)
    processes = f"medians of {counted(ladder.processes, 'process')}"
    return Outline(
        f"ladder of {ladder.subject.name}:{ladder.subject.variant}  {params}".rstrip(),
        ladder.sentence or f"{done} of {len(ladder.rungs)} rungs could be timed.",
        Section.filled(_layers(ladder.layers), _rungs(ladder)),
        about=[f"per call, {processes}; a step is the paired difference to the rung it is indented under"],
        warnings=ladder.warnings,
        ends=[f"ladder: {ladder.directory}"],
        origin=partial(origin, ladder.directory, ladder.environment),
    )


def _layers(layers: Sequence[Layer]) -> Section | None:
    """The layers of the compiled call, each from where the one above it ends, and their sum."""
    total_ns = left_ns = sum(layer.ns for layer in layers)
    rows = []
    for layer in layers:
        left_ns -= layer.ns
        bar = length(layer.ns, total_ns, layer.ci95_ns, TIME, left_ns)
        rows.append(row(layer.name, bar, time(layer.ns), share(layer.ns / total_ns), bounds(layer.ci95_ns)))
    rows.append(sum_row("sum", "", time(total_ns), "", ""))
    columns = heads("from outside in | ~3 | >time | >share ~2 | 95 % interval ~1")
    table = Table(columns, rows, "intervals are of paired differences")
    return Section("What the compiled call is made of", [table], reach="everywhere") if layers else None


def _rungs(ladder: Ladder) -> Section:
    """Every rung, indented under the rung that it is compared with; then the rungs that could not be timed, and why."""
    eager = ladder.rung("eager")
    most_ns = max((rung.ci95_ns[1] for rung in ladder.rungs if rung.ns is not None and rung.ci95_ns), default=0.0)
    columns = heads("rung | ~6 | >time | >step ~1 | 95 % interval ~2 | >x eager ~3 | >faults ~4")
    table = Table(columns, [_rung(rung, eager, most_ns) for rung in ladder.rungs])
    missing = [f"not done: {rung.kind.title}: {rung.reason}" for rung in ladder.rungs if rung.reason]
    return Section("Rungs", [table, Notes(missing, tone="dim")], reach="everywhere")


def _rung(rung: Rung, eager: Rung | None, most_ns: float) -> Row:
    if rung.ns is None:
        return row(rung.kind.title, "", "not done", *[Cell()] * 4, depth=rung.depth)
    faults = rung.minor_faults or 0.0
    return row(
        rung.kind.title,
        length(rung.ns, most_ns, rung.ci95_ns, TIME),
        *(time(rung.ns), signed(rung.step_ns), signed_bounds(rung.step_ci95_ns)),
        f"{rung.ns / eager.ns:.2f}" if eager is not None and eager.ns else "",
        f"{faults:.0f}" if faults >= 1 else "",
        depth=rung.depth,
    )
