"""The script that times each part of an analysis, which calls the parts as the analyzer does."""

from __future__ import annotations

from pathlib import Path

from scripts.benchmarks.large_trace import write_trace
from scripts.benchmarks.trace_parts import CLAIM, rows_of


def test_every_part_of_a_drawn_trace_is_timed(tmp_path: Path) -> None:
    trace = tmp_path / "rich.json.gz"
    count = write_trace(trace, 1_000, rich=True)
    rows = rows_of(trace, 1)
    assert [len(row) for row in rows] == [len(CLAIM.columns)] * len(rows)
    # Two entries name the threads.
    assert {row[0] for row in rows} == {count + 2}
    assert [row[2] for row in rows][:2] == ["reading", "host events, launches"]
    assert "launch figures" in [row[2] for row in rows]
