"""Counters on the page and in the picture for Perfetto."""

from __future__ import annotations

from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from overhead_lens.export.perfetto.analysis import write_analysis_perfetto
from overhead_lens.report.outlines.recorded.counters import figure
from overhead_lens.report.outlines.trace import trace_outline
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.pieces import analyze_over_time
from tests.drawn.collectives import collective
from tests.drawn.counters import counter, work
from tests.drawn.timelines import analyzer_of, timed, trace_of
from tests.report.page.seen import EVIL, plots, rows, words

SAMPLES = [
    counter(at, "dram__bytes.sum", _=value)
    for at, value in ((100, 4), (110, 5), (120, 6), (150, 7), (160, 8), (170, 9))
]


def test_a_value_beyond_all_measure_takes_no_line_of_its_own() -> None:
    assert [figure(value) for value in (1e99, -1e99, 123_456.7, 12.345, 3.0, None)] == [
        "1e+99", "-1e+99", "123,457", "12.35", "3", "-",
    ]  # fmt: skip


def test_counters_are_tracks_with_units_and_gaps_are_told(tmp_path: Path) -> None:
    trace = trace_of([timed(0, 200, "op"), *SAMPLES, counter(-50, "RSS", 1, "", _=1), counter(40, "RSS", 1, "", _=2)])
    write_analysis_perfetto(tmp_path / "t.pftrace", analyze_over_time(trace, default_classifier()))
    packets = Trace.FromString((tmp_path / "t.pftrace").read_bytes()).packet
    named = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in packets
        if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("counter")
    }
    units = {descriptor.name.partition(". ")[2]: descriptor.counter.unit_name for descriptor in named.values()}
    assert units == {"dram__bytes.sum (device 0)": "B", "RSS (1)": ""}
    values = [
        (
            named[packet.track_event.track_uuid].name.partition(". ")[2],
            packet.timestamp,
            packet.track_event.double_counter_value,
        )
        for packet in packets
        if packet.track_event.track_uuid in named
    ]
    assert [value for value in values if value[0].startswith("RSS")] == [("RSS (1)", 0, 1.0), ("RSS (1)", 40, 2.0)]
    assert [value[1:] for value in values if value[0].startswith("dram")] == [
        (100, 4.0), (110, 5.0), (120, 6.0), (150, 7.0), (160, 8.0), (170, 9.0),
    ]  # fmt: skip


def test_the_page_draws_counters_with_their_gaps_and_lists_the_rest() -> None:
    entries = [
        timed(0, 200, "op"),
        *SAMPLES,
        work(102, 16, EVIL, **{"est. achieved occupancy %": 25, "blocks per SM": 2}),
    ]
    page = trace_outline(analyzer_of(*entries, collective(180, 10, group=EVIL)).analysis())
    heading = "Counters and rates of device work"
    (drawn,) = plots(page, heading)
    # Six stretches from 100 on, of 13 and 14 ns; 130 to 150 is a gap, so that only 6 ns of the third and 3 of the fourth count.
    assert drawn.series[0].y == pytest.approx(
        [(10 * 4 + 3 * 5) / 13, (7 * 5 + 6 * 6) / 13, 6, 7, (7 * 7 + 6 * 8) / 13, (4 * 8 + 10 * 9) / 14]
    )
    assert "nothing is known for 20 ns in 1 gap" in " ".join(words(page, heading))
    shown = [row for table in rows(page, heading) for row in table]
    assert any(row[1:] == ["16 ns", "100%", "4.5 B"] for row in shown)
    assert any("25 %" in row for row in shown)
    (listed,) = rows(page, "Collectives, the most exposed first; 0 ns of 10 ns hidden behind compute")
    assert listed[1][0] == "10 ns"
