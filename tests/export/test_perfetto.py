"""A written picture, read back by the official protobuf classes and by trace_processor with SQL."""

from __future__ import annotations

from collections import Counter as Counts
from pathlib import Path

import pandas as pd
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from overhead_lens.errors import UsageError
from overhead_lens.export.lanes.budget import budget_lane
from overhead_lens.export.lanes.events import event_lanes
from overhead_lens.export.lanes.model import Counter, Lane, Section, Slice
from overhead_lens.export.lanes.threads import Placed
from overhead_lens.export.perfetto.picture import EXPLAINED, Picture, write_picture
from overhead_lens.export.perfetto.stacks import Flamegraph, flamegraphs
from overhead_lens.export.perfetto.tracks import SEEDS, SHADES
from overhead_lens.export.viewer.address import duration_sql
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.taxonomy.categories import BLAME, HOST_CATEGORIES
from overhead_lens.units import format_ns
from tests.drawn.builders import breakdown
from tests.export.trace_processor import Program, TraceProcessor

Event = tuple[str, str, int, int]

COLUMNS = ["name", "cat", "start_ns", "dur_ns"]
HOSTILE = ("<img src=x onerror=alert(1)>", "\x1b[31mred", "\u202egnp", "nul\0nul", "\ud800", "x" * 100_000, "")


def events(*rows: Event, **more: list[int]) -> pd.DataFrame:
    absent = dict.fromkeys(("correlation", "sequence", "device", "stream", "external"), -1)
    frame = pd.DataFrame(list(rows), columns=COLUMNS, dtype=object).astype({"start_ns": "int64", "dur_ns": "int64"})
    frame = frame.assign(pid=["41"] * len(rows), tid=["42"] * len(rows), **{**absent, **more})
    for name in ("name", "cat", "pid", "tid"):
        codes, texts = pd.factorize(frame[name])
        # Names stay objects, as the reader yields them: a lone surrogate is no text for an Arrow column.
        frame[name] = pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))
    return frame


def of_events(frame: pd.DataFrame) -> Picture:
    lanes = event_lanes(frame)
    return Picture(
        [Section(lane) for lane in lanes if lane.thread is None], (0, 1), [lane for lane in lanes if lane.thread]
    )


@pytest.fixture
def loaded(tmp_path: Path, trace_processor: Program):
    def load(picture: Picture) -> TraceProcessor:
        write_picture(tmp_path / "t.pftrace", picture)
        processor = trace_processor.load(tmp_path / "t.pftrace")
        assert processor.losses() == []
        return processor

    return load


def unknown_fields(message: Message) -> list[int]:
    found = [field.field_number for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            children = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            for child in children:
                found += unknown_fields(child)
    return found


def test_official_classes_know_every_field(tmp_path: Path) -> None:
    stack = Stack((StackFrame("f", "a.py", 3, native=False), StackFrame("g", "lib.so", 0, native=True)), 1)
    picture = Picture(
        [Section(budget_lane(breakdown(python=10)), (Counter("c", "blocks", [(0, 1.0)], "counted"),))],
        (0, 10),
        event_lanes(events(("aten::add", "cpu_op", 0, 10), ("f", "python_function", 0, 20))),
        [Flamegraph(("1", "1"), "thread", "process", [Placed(3, "python", stack)])],
    )
    write_picture(tmp_path / "t.pftrace", picture)
    trace = Trace.FromString((tmp_path / "t.pftrace").read_bytes())
    assert len(trace.packet) > 10
    assert unknown_fields(trace) == []


def test_the_budget_is_first_and_sums_to_the_breakdown(loaded) -> None:
    budget = breakdown({"python": {"user": 300, "binding": 441}}, python=741, dispatcher=1_000, kernel=3)
    trace = loaded(Picture([Section(budget_lane(budget)), Section(Lane("A", [Slice(0, 5, "a", "a")]))], (0, 1_744)))
    sql = (
        "select s.name, s.dur from slice s join track t on s.track_id = t.id "
        "where t.name = '1. Budget of one call' and s.depth = {} order by s.ts"
    )
    assert trace.query(sql.format(0)) == [
        ("python 741 ns, 42%", 741), ("dispatcher 1.00 µs, 57%", 1_000), ("kernel 3 ns, 0%", 3),
    ]  # fmt: skip
    assert trace.query(sql.format(1)) == [
        ("user 300 ns", 300), ("binding 441 ns", 441),
        ("dispatcher_frame (file.py) 1.00 µs", 1_000), ("kernel_frame (file.py) 3 ns", 3),
    ]  # fmt: skip
    on_top = trace.query("select name from track where parent_id is null and name is not null order by name")
    assert on_top == [("1. Budget of one call",), ("2. A",)]


def test_ten_sections_keep_their_order_by_name(loaded) -> None:
    trace = loaded(Picture([Section(Lane(name, [Slice(0, 5, "a", "a")])) for name in "jihgfedcba"], (0, 5)))
    names = [name for (name,) in trace.query("select name from track where parent_id is null order by name")]
    assert names == [f"{place:02}. {name}" for place, name in enumerate("jihgfedcba", 1)]


def test_every_section_is_explained_below_it(loaded) -> None:
    lane = Lane("A", [Slice(20, 30, "a", "a")], description="what a is")
    trace = loaded(Picture([Section(lane, (Counter("c", "blocks", [(0, 1.0), (9, 2.5)]),))], (10, 50)))
    sql = "select t.name as track, s.ts, s.dur, s.name as name from slice s join track t on s.track_id = t.id order by t.name"
    assert trace.query(sql) == [("1. A", 20, 10, "a"), (EXPLAINED, 10, 40, "what a is")]
    described = "select name, extract_arg(source_arg_set_id, 'description') as text from track where parent_id is null"
    assert trace.query(described) == [("1. A", "what a is")]
    counted = """
        select c.ts, c.value, t.unit as unit, above.name as above
        from counter c join counter_track t on c.track_id = t.id
        join track own on own.id = t.id join track above on own.parent_id = above.id
        order by 1"""
    assert trace.query(counted) == [(0, 1.0, "blocks", "1. A"), (9, 2.5, "blocks", "1. A")]


def test_the_view_is_what_was_recorded(loaded) -> None:
    """The UI shows the time between these first (``computeVisibleTime`` in its load_trace.ts)."""
    trace = loaded(Picture([Section(Lane("A", [Slice(0, 99, "a", "a")]))], (7, 40)))
    sql = "select name, int_value from metadata where name in ('tracing_started_ns', 'tracing_disabled_ns') order by 1"
    assert trace.query(sql) == [("tracing_disabled_ns", 40), ("tracing_started_ns", 7)]
    assert trace.query("select start_ts, end_ts from trace_bounds") == [(0, 99)]


def test_the_text_of_a_duration_in_sql_is_the_reports(loaded) -> None:
    trace = loaded(Picture([], (0, 1)))
    borders = [10**3, 99_995, 999_500, 99_995_000, 999_500_000, 99_995_000_000, 999_950_000_000]
    for ns in (0, 1, *(border + step for border in borders for step in (-1, 0, 1)), 1_072, 710_429_536, 1_211_633_485):
        assert trace.query(f"select {duration_sql(str(ns))} as text") == [(format_ns(ns),)], ns
    assert trace.query(f"select {duration_sql('null')} as text") == [(None,)]


EVENT = st.tuples(
    st.sampled_from(["aten::add", "<b>markup</b>", "", "dots.in.name", "\ud800 surrogate"]),
    st.sampled_from(["cpu_op", "python_function", "user_annotation"]),
    st.integers(0, 60),
    st.integers(0, 30),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(EVENT, min_size=1, max_size=25), offset=st.sampled_from([0, -5_000, 1_800_000_000_000_000_000]))
def test_every_event_is_there_with_its_times(loaded, rows: list[Event], offset: int) -> None:
    """Crossing, touching, equal and empty events: none lost, none shortened, whatever the clock's zero."""
    shifted = [(name, cat, start + offset, dur) for name, cat, start, dur in rows]
    trace = loaded(of_events(events(*shifted)))
    zero = min(start for _, _, start, _ in rows)
    seen = Counts((ts, dur) for ts, dur in trace.query("select ts, dur from slice"))
    assert seen == Counts((start - zero, dur) for _, _, start, dur in rows)


def test_crossing_events_keep_their_length(loaded) -> None:
    trace = loaded(of_events(events(("A", "cpu_op", 0, 10), ("B", "cpu_op", 5, 10))))
    assert trace.query("select name, dur, depth from slice order by name") == [("A", 10, 0), ("B", 10, 0)]


def test_launch_and_kernel_are_linked(loaded) -> None:
    launched = events(
        ("cudaLaunchKernel", "cuda_runtime", 0, 5),
        ("gemm", "kernel", 10, 50),
        correlation=[7, 7],
        device=[-1, 0],
        stream=[-1, 3],
    )
    trace = loaded(of_events(launched))
    sql = "select a.name as launch, b.name as work from flow join slice a on slice_out = a.id join slice b on slice_in = b.id"
    assert trace.query(sql) == [("cudaLaunchKernel", "gemm")]


OUTER = StackFrame("train", "train.py", 10, native=False)
ADD = StackFrame("at::add", "libtorch_cpu.so", 0, native=True)


def callers(trace: TraceProcessor) -> list[tuple[int, str]]:
    """Every sample's time and stack."""
    sql = """
        with recursive stack(ts, callsite, text) as (
          select ts, callsite_id, '' from perf_sample
          union all
          select s.ts, c.parent_id, f.name || ';' || s.text
          from stack s join stack_profile_callsite c on s.callsite = c.id join stack_profile_frame f on c.frame_id = f.id
        )
        select ts, text from stack where callsite is null order by ts, text"""
    return [(ts, text) for ts, text in trace.query(sql)]


def test_the_category_is_the_outermost_frame_of_a_stack(loaded) -> None:
    samples = [
        Placed(4, "dispatcher", Stack((OUTER, ADD), 1)),
        Placed(9, "python", Stack((OUTER,), 1)),
        Placed(9, "kernel", Stack((), 1)),
    ]
    trace = loaded(Picture([], (0, 10), flamegraphs=[Flamegraph(("7", "8"), "thread", "process", samples)]))
    assert callers(trace) == [(4, "dispatcher;train;at::add;"), (9, "kernel;"), (9, "python;train;")]
    assert trace.query("select tid, pid from perf_sample join thread using (utid) join process using (upid)") == [
        (8, 7), (8, 7), (8, 7),
    ]  # fmt: skip


def test_the_main_threads_flamegraph_is_the_one_that_opens(loaded) -> None:
    """The UI takes the process of the latest sample."""
    main, other = ("7", "7"), ("7", "8")
    placed = [Placed(time, "python", Stack((OUTER,), 1)) for time in (10, 50)]
    late = [Placed(time, "wait", Stack((OUTER,), 1)) for time in (20, 99)]
    drawn = flamegraphs(main, "train.py", {other: late, main: placed}, {main: "MainThread", other: "loader"}, 100)
    trace = loaded(Picture([], (0, 100), flamegraphs=drawn))
    sql = "select ts, process.name as process, thread.name as thread, pid, tid from perf_sample join thread using (utid) join process using (upid) order by ts"
    assert trace.query(sql) == [
        (10, "train.py", "MainThread", 7, 7),
        (20, "loader of process 7", "loader", 8, 8),
        (99, "loader of process 7", "loader", 8, 8),
        (100, "train.py", "MainThread", 7, 7),
    ]


def test_hostile_names_are_text(loaded) -> None:
    lanes = [
        Lane(name, [Slice(0, 5, name, name, {"a": name})], description=name) for name in map(readable_once, HOSTILE)
    ]
    stacks = [Placed(1, "python", Stack((StackFrame(name, name, 1, native=True),), 1)) for name in HOSTILE]
    graph = Flamegraph(("1", "1"), HOSTILE[0], HOSTILE[1], stacks)
    trace = loaded(Picture([Section(lane) for lane in lanes], (0, 5), flamegraphs=[graph]))
    named = [name for (name,) in trace.query("select name from slice where category != 'text' order by id")]
    assert named == [readable_once(name) for name in HOSTILE]
    assert trace.query("select count(*) from perf_sample") == [(len(HOSTILE),)]


def readable_once(name: str) -> str:
    return name.replace("\0", "\\0").replace("\ud800", "\\ud800") or "(no name)"


def hashed(seed: str) -> int:
    """``hash`` in the UI's hash.ts; ``proceduralColorScheme`` in its colorizer.ts takes the hue from it, modulo 360."""
    value = 0x811C9DC5 & 0xFFFFFFF
    for letter in seed:
        value = int(float((value ^ ord(letter)) * 16777619)) & 0xFFFFFFFF
        value -= (value >> 31) << 32
    return abs(value)


def test_categories_have_colors_of_their_own() -> None:
    assert set(SEEDS) == {*HOST_CATEGORIES, *BLAME, "busy", "text"}
    hues = sorted((hashed(SEEDS[name]) % 360, name) for name in HOST_CATEGORIES)
    assert hues == [
        (8, "compile"), (11, "wait"), (34, "unattributed"), (60, "python"), (124, "kernel"), (184, "allocation"),
        (234, "launch"), (248, "dispatcher"), (322, "guard"),
    ]  # fmt: skip


def test_other_slices_have_shades_of_violet_that_white_text_is_read_on() -> None:
    assert [(hashed(shade) % 360, hashed(f"{shade}x") % 40 + 40) for shade in SHADES] == [
        (269, 41), (275, 41), (283, 40), (269, 47), (275, 47), (283, 48),
        (268, 52), (276, 52), (284, 52), (268, 60), (276, 60), (284, 60),
    ]  # fmt: skip


def test_a_slice_without_a_category_has_a_shade_by_its_name(loaded) -> None:
    slices = [
        Slice(0, 5, "aten::mm", "cpu_op"), Slice(5, 9, "wait 7 ns", "budget", color="wait"),
        Slice(9, 11, "step 1", "step"), Slice(11, 12, "step 22", "step"), Slice(12, 13, "\ud800", "cpu_op"),
    ]  # fmt: skip
    trace = loaded(Picture([Section(Lane("A", slices))], (0, 13)))
    ids = "select extract_arg(arg_set_id, 'correlation_id') as id from slice where category != 'text' order by ts"
    shades = [SHADES[1], SEEDS["wait"], SHADES[8], SHADES[8], SHADES[0]]
    assert trace.query(ids) == [(shade,) for shade in shades]


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError, match="cannot write"):
        write_picture(tmp_path / "file" / "t.pftrace", Picture([], (0, 1)))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
