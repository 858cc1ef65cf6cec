"""Sequences of a recorded trace that repeat, in words: what joining or capturing them would save at most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from overhead_lens.report.cells import heads, row, time
from overhead_lens.report.outline import Notes, Section, Table
from overhead_lens.report.text.blocks import cut
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.sequences.model import LAUNCHES, RepeatedSequence

_MOST_NAME, _MOST_NAMES = 34, 6
_EXPLAINED = (
    "Device events of one stream, and operators of one thread, that follow one another in the same order several times. "
    "Joined into one, or captured as a graph, a sequence saves at most its launching calls but for the shortest of each "
    "repetition, and the gaps inside it. Both are bounds, overlap, and are not to be added up."
)


def sequence_section(sequences: Sequence[RepeatedSequence]) -> Section:
    """A row for each; nothing where nothing repeats."""
    columns = heads(">launching | >in gaps ~4 | >idle in gaps | what repeats!")
    columns += heads(">events of graphs ~5 | names ~1 | module ~3 | line ~2")
    rows = []
    for one in sequences:
        times = map(time, (one.launch_ns, one.gap_ns, one.idle_ns))
        rows.append(row(*times, _extent(one), one.in_graph or "", _names(one), one.module, one.line))
    return Section.folded("What repeats", Notes([_EXPLAINED] if rows else []), Table(columns, rows))


def _extent(sequence: RepeatedSequence) -> str:
    """How long it is, how often it is there, where, and how much of it graphs launch."""
    what = "device events" if sequence.kind == LAUNCHES else "operators"
    text = f"{sequence.length:,} {what}, {sequence.count:,} times, on {cut(sequence.lane)}"
    if sequence.lanes > 1:
        text += f" and {sequence.lanes - 1} more"
    if not sequence.in_graph:
        return text
    events = sequence.length * sequence.count
    return text + (", launched by graphs" if sequence.in_graph == events else ", partly launched by graphs")


def _names(sequence: RepeatedSequence) -> str:
    runs = [(name, len(list(run))) for name, run in groupby(sequence.names)][:_MOST_NAMES]
    shown = [cut(kernel_name(name), _MOST_NAME) + (f" ×{count}" if count > 1 else "") for name, count in runs]
    return " → ".join([*shown, "…"] if sequence.length > sum(count for _, count in runs) else shown)
