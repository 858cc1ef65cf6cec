"""Sequences of a recorded trace that repeat, in the terminal: what joining or capturing them would save at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, cut_front, section
from overhead_lens.report.text.figures import plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.sequences.model import LAUNCHES, RepeatedSequence
from overhead_lens.units import format_ns

_TOP = 3
_LEAST_SHARE = 0.005
_SHOWN_NAMES, _MOST_NAMES = 2, 6
_MOST_NAME, _MOST_PLACE = 34, 44


def sequence_blocks(sequences: Sequence[RepeatedSequence], window_ns: int) -> Iterator[RenderableType]:
    """The printed blocks: the first few sequences, a line for the names and one for the place."""
    shown = [one for one in sequences if one.saved_ns >= _LEAST_SHARE * window_ns][:_TOP]
    if not shown:
        return
    table = plain_figures()
    table.add_column("", justify="right")
    table.add_column("", justify="right")
    table.add_column("")
    for one in shown:
        told = Text.assemble(extent(one), (f"\n{names(one, _SHOWN_NAMES)}{_at(one)}", "dim"))
        launching = f"{format_ns(one.launch_ns)} launching" if one.launch_ns else ""
        table.add_row(Text(launching), Text(f"{format_ns(one.idle_ns)} in gaps"), told)
    yield section("what repeats: joined, or captured as a graph, each saves at most (not to be added up)", table)


def cells(sequences: Sequence[RepeatedSequence]) -> Cells:
    """A row for each."""
    heads = ("launching", "gaps", "of them idle", "what repeats", "events of graphs", "names", "module", "line")
    return heads, [
        (
            format_ns(one.launch_ns),
            format_ns(one.gap_ns),
            format_ns(one.idle_ns),
            extent(one),
            f"{one.in_graph:,}" if one.in_graph else "",
            names(one, _MOST_NAMES),
            plain(one.module),
            plain(one.line),
        )
        for one in sequences
    ]


def extent(sequence: RepeatedSequence) -> str:
    """The length, count, place and graph-launched share of a sequence."""
    what = "device events" if sequence.kind == LAUNCHES else "operators"
    text = f"{sequence.length:,} {what}, {sequence.count:,} times, on {plain(sequence.lane)}"
    if sequence.lanes > 1:
        text += f" and {sequence.lanes - 1} more"
    if not sequence.in_graph:
        return text
    events = sequence.length * sequence.count
    return text + (", launched by graphs" if sequence.in_graph == events else ", partly launched by graphs")


def names(sequence: RepeatedSequence, most: int) -> str:
    """The first of its names."""
    runs = [(name, len(list(run))) for name, run in groupby(sequence.names)][:most]
    shown = [cut(plain(kernel_name(name)), _MOST_NAME) + (f" ×{count}" if count > 1 else "") for name, count in runs]
    return " → ".join([*shown, "…"] if sequence.length > sum(count for _, count in runs) else shown)


def _at(sequence: RepeatedSequence) -> str:
    place = cut_front(plain(sequence.line), _MOST_PLACE)
    where = ", ".join(part for part in (cut(plain(sequence.module)), place) if part)
    return f"; first at {where}" if where else ""
