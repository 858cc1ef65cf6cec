"""Sequences of a recorded trace that repeat, on its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Section, Table, Text
from overhead_lens.report.text.recorded import sequences as told
from overhead_lens.traces.sequences.model import RepeatedSequence


def sequence_sections(sequences: Sequence[RepeatedSequence]) -> Iterator[Section]:
    """One section; none if nothing repeats."""
    if sequences:
        heads, rows = told.cells(sequences)
        explained = (
            "Device events of one stream, and operators of one thread, that follow one another in the same order several times. "
            "Joined into one, or captured as a graph, a sequence saves at most its launching calls but for the shortest of each "
            "repetition, and the gaps inside it. Both are bounds, overlap, and are not to be added up."
        )
        yield Section("What repeats", [Text([explained]), Table(heads, rows, frozenset({0, 1, 2, 4}))])
