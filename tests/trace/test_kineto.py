from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.trace.kineto import read_events

ABSOLUTE = "1782345678901234.567"


def test_absolute_timestamps_keep_their_nanoseconds(tmp_path: Path) -> None:
    text = (
        '{"traceEvents": ['
        + ",".join(
            f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 2, "ts": {ts}, "dur": {dur}}}'
            for name, ts, dur in (("late", "1782345678901235.568", "0.003"), ("early", ABSOLUTE, "2"))
        )
        + "]}"
    )
    (tmp_path / "t.json").write_bytes(gzip.compress(text.encode()))
    frame = read_events(tmp_path / "t.json")
    assert frame["name"].tolist() == ["late", "early"]
    assert frame["start_ns"].tolist() == [1_001, 0]
    assert frame["dur_ns"].tolist() == [3, 2_000]


def test_links_and_absent_fields(tmp_path: Path) -> None:
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "k",
            "ts": 1,
            "dur": 1,
            "args": {"correlation": 7, "device": 0, "stream": "0x3"},
        },
        {"ph": "X", "name": "op", "ts": 2, "dur": 1, "args": {"Sequence number": 5, "stream": 9}},
        {"ph": "M", "name": "process_name"},
        {"ph": "X", "name": "no duration", "ts": 3},
    ]
    (tmp_path / "t.json").write_text(json.dumps(events))
    frame = read_events(tmp_path / "t.json")
    columns = ["correlation", "sequence", "device", "stream"]
    assert frame[columns].to_numpy().tolist() == [[7, -1, 0, 3], [-1, 5, -1, -1]]


@pytest.mark.parametrize("content", [b"", b"not json", b"{}", b'{"traceEvents": 3}', gzip.compress(b"[]")[:12]])
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_events(tmp_path / "t.json")
    assert "\n" not in str(caught.value)


def test_surrogates_in_names_survive(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"ph": "X", "name": "\\ud800", "ts": 1, "dur": 1}]')
    assert read_events(tmp_path / "t.json")["name"].tolist() == ["\ud800"]
