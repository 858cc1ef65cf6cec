"""Answers of queries that JSON and files must not trip over."""

from __future__ import annotations

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.export.query import Answer, run_query
from overhead_lens.export.tables import TABLES
from overhead_lens.traces.pieces import analyze_over_time
from tests.drawn.timelines import CLASSIFIER, call, kernel, timed, trace_of

ENTRY = timed(0, 10, "aten::mm")


def asked(sql: str) -> Answer:
    return run_query(sql, [analyze_over_time(trace_of([ENTRY]), CLASSIFIER)])


@pytest.mark.parametrize("sql", [";", "-- nothing but a comment"])
def test_no_statement(sql: str) -> None:
    with pytest.raises(UsageError, match="contains no statement"):
        asked(sql)


def test_columns_of_one_name_are_all_kept() -> None:
    answer = asked("select 1 as a, 2 as a, 3 as a_1, 4 as a")
    assert (answer.columns, answer.rows) == (("a", "a_2", "a_1", "a_3"), ((1, 2, 3, 4),))


def test_what_json_has_no_number_for_is_text() -> None:
    assert asked("select 'nan'::double, '-inf'::double, 0.5::double").rows == (("nan", "-inf", 0.5),)


def test_decimals_are_numbers() -> None:
    assert asked("select dur_ns * 0.5 from events").rows == ((5.0,),)


def test_the_tables_are_those_of_the_guide() -> None:
    assert {name for (name,) in asked("show tables").rows} == {*TABLES, "operators", "kernels"}


def test_nothing_is_spilled_to_disk() -> None:
    assert asked("select current_setting('temp_directory')").rows == (("",),)


def test_the_intervals_of_a_host_sum_to_its_budget() -> None:
    """Views take 10 ns, the dispatch of the operator takes 50, and it computes for the other 30."""
    entries = [timed(0, 10, "aten::view"), timed(10, 100, "aten::mm"), timed(40, 20, "aten::view")]
    analyzed = [analyze_over_time(trace_of(entries), CLASSIFIER)]
    assert run_query("select start_ns, dur_ns, category from host order by start_ns", analyzed).rows == (
        (0, 10, "dispatcher"), (10, 30, "dispatcher"), (40, 20, "dispatcher"), (60, 20, "dispatcher"), (80, 30, "kernel"),
    )  # fmt: skip


def test_a_graph_is_launched_once() -> None:
    """Two kernels of one graph on one device, the later one first in the file, and a third on another device."""
    entries = [
        call("[)     ", 1, "cudaGraphLaunch"),
        kernel("     [)", 1),
        kernel("  [)   ", 1),
        kernel("    [) ", 1, device=1),
    ]
    analyzed = analyze_over_time(trace_of(entries), CLASSIFIER)
    sql = "select device, latency_ns from launches where is_first order by device"
    assert run_query(sql, [analyzed]).rows == ((0, 2), (1, 4))
    assert [(each.launch.count, each.launch.median_ns) for each in analyzed.analysis.devices] == [(1, 2), (1, 4)]
