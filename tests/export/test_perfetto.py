"""A written trace, read back by the official protobuf classes and by trace_processor with SQL."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from overhead_lens.errors import UsageError
from overhead_lens.export.lanes.drawn import Drawn
from overhead_lens.export.perfetto.trace import write_perfetto
from overhead_lens.stack import Stack, StackFrame
from tests.drawn.builders import breakdown
from tests.export.trace_processor import Program

Event = tuple[str, str, int, int]

COLUMNS = ["name", "cat", "start_ns", "dur_ns"]


def events(*rows: Event, **more: list[int]) -> pd.DataFrame:
    # Names stay objects, as the reader yields them: a lone surrogate is no text for an Arrow column.
    frame = pd.DataFrame(list(rows), columns=COLUMNS, dtype=object)
    return frame.astype({"start_ns": "int64", "dur_ns": "int64"}).assign(pid=41, tid=42, **more)


def unknown_fields(message: Message) -> list[int]:
    found = [field.field_number for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            children = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            for child in children:
                found += unknown_fields(child)
    return found


def test_budget_track_sums_to_the_breakdown(tmp_path: Path, trace_processor: Program) -> None:
    budget = breakdown({"python": {"user": 300, "binding": 441}}, python=741, dispatcher=1_000, kernel=3)
    write_perfetto(tmp_path / "t.pftrace", budget)
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    assert loaded.losses() == []
    sql = (
        "select s.name, sum(s.dur) from slice s join track t on s.track_id = t.id "
        "where t.name = 'Budget of one call' and s.depth = {} group by 1 order by 1"
    )
    assert trace_processor_rows(loaded, sql.format(0)) == [("dispatcher", 1_000), ("kernel", 3), ("python", 741)]
    assert trace_processor_rows(loaded, sql.format(1)) == [("binding", 441), ("user", 300)]


def trace_processor_rows(loaded, sql: str):
    return [tuple(row) for row in loaded.query(sql)]


def test_official_classes_know_every_field(tmp_path: Path) -> None:
    drawn = Drawn(
        events=events(("aten::add", "cpu_op", 0, 10), ("f", "python_function", 0, 20)),
        clock=pd.DataFrame(
            [{"process": 0, "block": 0, "calls": 2, "wall_ns": 10, "reference_ns": 5, "minor_faults": 4}]
        ),
        stacks=[Stack((StackFrame("f", "a.py", 3, native=False), StackFrame("g", "lib.so", 0, native=True)), 3)],
    )
    write_perfetto(tmp_path / "t.pftrace", breakdown(python=10), drawn)
    trace = Trace.FromString((tmp_path / "t.pftrace").read_bytes())
    assert len(trace.packet) > 10
    assert unknown_fields(trace) == []


EVENT = st.tuples(
    st.sampled_from(["aten::add", "<b>markup</b>", "", "dots.in.name", "\ud800 surrogate"]),
    st.sampled_from(["cpu_op", "python_function", "user_annotation"]),
    st.integers(0, 60),
    st.integers(0, 30),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(EVENT, min_size=1, max_size=25), offset=st.sampled_from([0, -5_000, 1_800_000_000_000_000_000]))
def test_every_event_is_there_with_its_times(
    tmp_path: Path, trace_processor: Program, rows: list[Event], offset: int
) -> None:
    """Crossing, touching, equal and empty events: none lost, none shortened, whatever the clock's zero."""
    shifted = [(name, cat, start + offset, dur) for name, cat, start, dur in rows]
    write_perfetto(tmp_path / "t.pftrace", None, Drawn(events=events(*shifted)))
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    assert loaded.losses() == []
    zero = min(start for _, _, start, _ in rows)
    (first,) = [ts for (ts,) in loaded.query("select min(ts) from slice")]
    seen = Counter((ts - first, dur) for ts, dur in loaded.query("select ts, dur from slice"))
    assert seen == Counter((start - zero, dur) for _, _, start, dur in rows)


def test_crossing_events_keep_their_length(tmp_path: Path, trace_processor: Program) -> None:
    crossing = events(("A", "cpu_op", 0, 10), ("B", "cpu_op", 5, 10))
    write_perfetto(tmp_path / "t.pftrace", None, Drawn(events=crossing))
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    assert trace_processor_rows(loaded, "select name, dur, depth from slice order by name") == [
        ("A", 10, 0),
        ("B", 10, 0),
    ]


def test_launch_and_kernel_are_linked(tmp_path: Path, trace_processor: Program) -> None:
    launched = events(
        ("cudaLaunchKernel", "cuda_runtime", 0, 5),
        ("gemm", "kernel", 10, 50),
        correlation=[7, 7],
        device=[-1, 0],
        stream=[-1, 3],
    )
    write_perfetto(tmp_path / "t.pftrace", None, Drawn(events=launched))
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    sql = "select a.name as launch, b.name as work from flow join slice a on slice_out = a.id join slice b on slice_in = b.id"
    assert trace_processor_rows(loaded, sql) == [("cudaLaunchKernel", "gemm")]


def test_counters_are_exact(tmp_path: Path, trace_processor: Program) -> None:
    clock = pd.DataFrame(
        [
            {"process": 0, "block": 0, "calls": 4, "wall_ns": 4_000, "reference_ns": 100, "minor_faults": 2},
            {"process": 0, "block": 1, "calls": 4, "wall_ns": 6_000, "reference_ns": 100, "minor_faults": 0},
        ]
    )
    write_perfetto(tmp_path / "t.pftrace", None, Drawn(clock=clock))
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    assert loaded.losses() == []
    sql = (
        "select c.value from counter c join counter_track t on c.track_id = t.id where t.name like '%{}%' order by c.ts"
    )
    assert [value for (value,) in loaded.query(sql.format("wall time"))][:2] == [1_000.0, 1_500.0]
    assert [value for (value,) in loaded.query(sql.format("minor faults"))][:2] == [0.5, 0.0]


def test_samples_make_a_flamegraph(tmp_path: Path, trace_processor: Program) -> None:
    outer = StackFrame("train", "train.py", 10, native=False)
    stacks = [
        Stack((outer, StackFrame("at::add", "libtorch_cpu.so", 0, native=True)), 3),
        Stack((outer,), 2),
    ]
    write_perfetto(tmp_path / "t.pftrace", None, Drawn(stacks=stacks))
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    assert loaded.losses() == []
    sql = (
        "select f.name, count(*) from perf_sample p join stack_profile_callsite c on p.callsite_id = c.id "
        "join stack_profile_frame f on c.frame_id = f.id group by 1 order by 1"
    )
    assert trace_processor_rows(loaded, sql) == [("at::add", 3), ("train", 2)]


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError, match="cannot write"):
        write_perfetto(tmp_path / "file" / "t.pftrace", breakdown(python=1))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
