"""The critical path in a picture and in answers to SQL."""

from __future__ import annotations

from pathlib import Path

from overhead_lens.export.perfetto.analysis import path_sections, write_analysis_perfetto
from overhead_lens.export.query import run_query
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.forms import to_html, to_text
from overhead_lens.traces.pieces import Analyzed, analyze_over_time
from tests.drawn.timelines import CLASSIFIER, call, drawn, kernel, timed, trace_of
from tests.drawn.trace_text import document
from tests.export.trace_processor import Program

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m[bold]"
ENTRIES = (
    drawn("[-----------------------------)", "train.py(1): step", "python_function"),
    call("  [-)", 1),
    kernel("     [--------------)", 1, HOSTILE),
    call("      [----------------)", 2, "cudaStreamSynchronize"),
)
ARROWS = """
    select a.name as a, b.name as b, a.ts + a.dur - min_ts as left, b.ts - min_ts as came from flow
    join slice a on slice_out = a.id join slice b on slice_in = b.id, (select min(ts) min_ts from slice)
    where a.category = 'critical path' order by a.ts
"""


def analyzed(*, critical_path: bool) -> Analyzed:
    return analyze_over_time(trace_of(ENTRIES), CLASSIFIER, critical_path=critical_path)


def test_arrows_lead_from_the_host_to_the_device_and_back(tmp_path: Path, trace_processor: Program) -> None:
    write_analysis_perfetto(tmp_path / "t.pftrace", analyzed(critical_path=True))
    trace = trace_processor.load(tmp_path / "t.pftrace")
    assert trace.losses() == []
    rows = trace.query(ARROWS)
    assert [row[2:] for row in rows] == [(4, 4), (20, 20)]
    assert rows[0][:2] == ("cudaLaunchKernel", "launch latency")
    assert rows[1][1] == "cudaStreamSynchronize"
    sql = "select sum(dur) from slice s join track t on s.track_id = t.id where category = 'critical path' and t.name like '%ritical path'"
    assert trace.query(sql) == [(30,)]


def test_what_belongs_to_no_operator_says_so_by_silence() -> None:
    entries = [drawn("[--)", "aten::add"), drawn("      [--)", "aten::mul")]
    parts = analyze_over_time(trace_of(entries), CLASSIFIER, critical_path=True).pieces.critical_path
    (section,) = path_sections(parts)
    assert [piece.arguments.get("operator") for piece in section.top.slices] == ["aten::add", None, "aten::mul"]


def test_it_is_drawn_only_where_it_was_asked_for() -> None:
    assert path_sections(analyzed(critical_path=False).pieces.critical_path) == []


def test_parts_are_rows_of_a_table() -> None:
    answer = run_query(
        "select step, start_ns, dur_ns, lane, kind, reached_by from critical_path order by start_ns",
        [analyzed(critical_path=True)],
    )
    assert answer.rows == (
        (-1, 0, 2, "thread 10", "python", "program_order"),
        (-1, 2, 2, "thread 10", "launch", "program_order"),
        (-1, 4, 1, "device 0 stream 7", "launch_latency", "launch"),
        (-1, 5, 15, "device 0 stream 7", "compute", "device_event"),
        (-1, 20, 3, "thread 10", "wait", "assumed_synchronization"),
        (-1, 23, 7, "thread 10", "python", "program_order"),
    )


def test_names_that_are_no_text_can_be_drawn_and_queried(tmp_path: Path, trace_processor: Program) -> None:
    (tmp_path / "t.json").write_text(document([timed(0, 30, "odd \ud800")]))
    over_time = analyze_over_time(read_trace(tmp_path / "t.json"), CLASSIFIER, critical_path=True)
    write_analysis_perfetto(tmp_path / "t.pftrace", over_time)
    sql = "select name, dur from slice where category = 'critical path' order by ts"
    assert trace_processor.load(tmp_path / "t.pftrace").query(sql) == [("odd \\ud800", 30)] * 2
    answer = run_query("select name, kind, dur_ns from critical_path", [over_time])
    assert answer.rows == (("odd \\ud800", "dispatcher", 30),)
    assert run_query("select count(*) from critical_path", [analyzed(critical_path=False)]).rows == ((0,),)


def test_the_report_says_what_decides_and_what_is_assumed() -> None:
    analysis = analyzed(critical_path=True).analysis
    told = to_text(analysis)
    assert "Critical path of the window: 30 ns" in told
    assert "15 ns  50.0%  compute" in told
    assert "16 ns (-46.7%)" in told
    assert "critical path: 1 calls that block are taken to wait" in told
    page = to_html(analysis)
    assert "Critical path of the window" in page
    assert "<img" not in page
    assert "\x1b" not in told + page
