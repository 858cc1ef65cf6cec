"""The reader: what real files have held, damage, and that both ways of reading say the same."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overhead_lens.errors import UsageError
from overhead_lens.readers import recording
from overhead_lens.readers.kineto import contents as kineto
from overhead_lens.readers.kineto import memory, stream, work
from overhead_lens.readers.kineto.event import COMPLETE, parse_row
from overhead_lens.readers.kineto.model import EVENT_COLUMNS, Trace, frame_of
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.readers.kineto.source import opened
from tests.drawn.trace_text import Number, as_json, document, event, pretty, written
from tests.public_traces import public_traces, reference

NUMBERS = ["start_ns", "dur_ns", "correlation", "sequence", "device", "stream", "external"]


def scan_all(patch: pytest.MonkeyPatch) -> None:
    """Scan files of any size, whether or not the scanner was compiled before."""
    patch.setattr(kineto, "SMALL_BYTES", 1)
    patch.setattr(kineto, "UNCOMPILED_BYTES", 1)


@pytest.fixture(params=["whole", "scanned"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read small files as such, or as if they were large."""
    if request.param == "scanned":
        scan_all(monkeypatch)
    return request.param


def scanned(path: Path, block_bytes: int = 64) -> Trace:
    """The trace as the scanner reads it, cut into small blocks."""
    with pytest.MonkeyPatch.context() as patch:
        scan_all(patch)
        patch.setattr(stream, "_BLOCK_BYTES", block_bytes)
        patch.setattr(stream, "_ROOM_BYTES", 16)
        return read_trace(path)


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]


def test_a_whole_event(tmp_path: Path, way: str) -> None:
    launch = event(
        "launch", "cuda_runtime", Number("1782345678901234.567"), 2, pid=7, tid=8, correlation=5, External__id=9
    )
    kernel = event(
        "k", "kernel", Number("1782345678901235.568"), Number("0.003"), pid=0, tid=7, device=1, stream=20, correlation=5
    )
    labels = {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "main"}}
    text = document([launch, kernel, labels], distributedInfo={"rank": 3, "world_size": 4})
    trace = read_trace(written(tmp_path, text))
    assert tuple(trace.events.columns) == EVENT_COLUMNS
    assert rows(trace.events) == [
        {"name": "launch", "cat": "cuda_runtime", "pid": "7", "tid": "8", "start_ns": 0, "dur_ns": 2_000, "correlation": 5,
         "sequence": -1, "device": -1, "stream": -1, "external": 9},
        {"name": "k", "cat": "kernel", "pid": "0", "tid": "7", "start_ns": 1_001, "dur_ns": 3, "correlation": 5,
         "sequence": -1, "device": 1, "stream": 20, "external": -1},
    ]  # fmt: skip
    assert (trace.event_count, trace.raw_bytes, trace.issues) == (3, len(text), {})
    assert trace.thread_names == {("7", "8"): "main"}
    assert (trace.rank, trace.world_size, trace.metadata["traceName"]) == (3, 4, "t.json")
    assert trace.arguments([1, 0]) == [
        {"device": 1, "stream": 20, "correlation": 5},
        {"correlation": 5, "External id": 9},
    ]


@pytest.mark.parametrize(
    ("ts", "ns"),
    [
        (5, 5_000),
        (Number("5.5"), 5_500),
        ("5.25", 5_250),
        (Number("1.7e3"), 1_700_000),
        (Number("1700000000000000.123456"), 1_700_000_000_000_000_123),
        (Number("9223372036854774.999"), 9_223_372_036_854_774_999),
        (Number("-2.5"), -2_500),
    ],
)
def test_timestamps(tmp_path: Path, way: str, ts: Any, ns: int) -> None:
    trace = read_trace(written(tmp_path, document([event(ts=1, dur=0), event(ts=ts, dur=0)])))
    first, second = trace.events["start_ns"].tolist()
    assert (second - first, trace.issues) == (ns - 1_000, {})


@pytest.mark.parametrize(
    "ts",
    [None, True, Number("NaN"), "x", Number("1e30"), Number("1e9999999"), Number("9223372036854775.9"), [], ""],
)
def test_an_event_without_a_readable_timestamp_is_left_out(tmp_path: Path, way: str, ts: Any) -> None:
    trace = read_trace(written(tmp_path, document([event("bad", ts=ts), event("good", ts=3)])))
    assert trace.events["name"].tolist() == ["good"]
    assert trace.issues == {"bad_timestamp": 1}
    assert trace.event_count == 2


@pytest.mark.parametrize(
    ("dur", "issue"),
    [
        (-3, "negative_duration"),
        ("-0.5", "negative_duration"),
        (Number("NaN"), "bad_duration"),
        (None, "bad_duration"),
        (Number("1e9999999"), "bad_duration"),
        ("-1e9999999", "bad_duration"),
    ],
)
def test_a_duration_is_repaired(tmp_path: Path, way: str, dur: Any, issue: str) -> None:
    trace = read_trace(written(tmp_path, document([event(dur=dur)])))
    assert trace.events["dur_ns"].tolist() == [0]
    assert trace.issues == {issue: 1}


def test_a_missing_duration_is_zero(tmp_path: Path, way: str) -> None:
    trace = read_trace(written(tmp_path, document([{"ph": "X", "name": "a", "ts": 1}, event("b", ts=2)])))
    assert trace.events[["name", "dur_ns"]].to_numpy().tolist() == [["a", 0], ["b", 1_000]]
    assert trace.issues == {"missing_duration": 1}


@pytest.mark.parametrize(
    "damage",
    [
        {"pid": 2**63, "device": None},
        {"pid": str(2**64), "device": None},
        {"pid": "a", "device": None},
        {"pid": -3, "device": "x"},
        {"device": 2**63},
        {"device": "0x8000000000000000"},
        {"device": -2},
        {"tid": 2**63, "stream": None},
        {"tid": "-9223372036854775809", "stream": None},
        {"stream": 2**64},
    ],
)
@pytest.mark.parametrize("category", ["kernel", "gpu_memcpy"])
def test_device_work_that_no_device_holds_is_left_out(
    tmp_path: Path, way: str, damage: dict[str, Any], category: str
) -> None:
    place = {"pid": 0, "tid": 7, "device": 0, "stream": 7, **damage}
    entries = [event("lost", category, ts=5, **place), event("k", "kernel", ts=6, device=0, stream=7)]
    trace = read_trace(written(tmp_path, document(entries)))
    assert trace.events["name"].tolist() == ["k"]
    assert (trace.issues, trace.event_count) == ({"damaged_event": 1}, 2)
    assert trace.events["start_ns"].tolist() == [0]
    assert trace.arguments([0]) == [{"device": 0, "stream": 7}]


@pytest.mark.parametrize("number", [2**63, str(2**64), "a", -(2**70)])
def test_host_events_are_on_no_device_whatever_they_name(tmp_path: Path, way: str, number: Any) -> None:
    entry = event("op", "cpu_op", pid=number, tid=number, device=number, stream=number, correlation=number)
    trace = read_trace(written(tmp_path, document([entry])))
    (row,) = rows(trace.events)
    assert (row["device"], row["stream"], row["correlation"]) == (-1, -1, -1)
    assert (row["pid"], row["tid"], trace.issues) == (str(number), str(number), {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Number("1E3"), "1000.0"),
        (Number("0.900"), "0.9"),
        (Number("-0"), "0"),
        (Number("4711.0"), "4711.0"),
        (2**64, "18446744073709551616"),
        (True, "true"),
        ({"a": [Number("1e1")]}, '{"a": [10.0]}'),
    ],
)
@pytest.mark.parametrize("field", ["name", "cat", "pid", "tid"])
def test_a_value_where_text_belongs_is_its_json(tmp_path: Path, way: str, field: str, value: Any, text: str) -> None:
    trace = read_trace(written(tmp_path, document([{**event(), field: value}])))
    assert (trace.events[field].tolist(), trace.issues) == ([text], {})


@pytest.mark.parametrize(("label", "text"), [({"a": []}, '{"a": []}'), (5, "5"), (None, ""), (Number("1e1"), "10.0")])
def test_a_thread_name_that_is_no_text(tmp_path: Path, way: str, label: Any, text: str) -> None:
    entry = {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": label}}
    assert read_trace(written(tmp_path, document([event(), entry]))).thread_names == {("7", "8"): text}


@pytest.mark.parametrize(("last", "sequence"), [("{}", -1), ("0", -1), ('{"Sequence number": 3}', 3)])
def test_of_two_arguments_the_last_counts(tmp_path: Path, way: str, last: str, sequence: int) -> None:
    text = document([event(Sequence__number=5, mark=0)])
    text, times = re.subn(r'("mark": *0\s*})', rf'\1, "args": {last}', text)
    assert times == 1
    assert read_trace(written(tmp_path, text)).events["sequence"].tolist() == [sequence]


def test_an_entry_that_names_a_thread_may_be_escaped(tmp_path: Path, way: str) -> None:
    entry = {"ph": "M", "name": "t@read_name", "pid": 7, "tid": 8, "args": {"name": "main"}}
    text = document([event(), entry]).replace("@", "\\u0068")
    assert read_trace(written(tmp_path, text)).thread_names == {("7", "8"): "main"}


def test_a_quoted_time_may_hold_escapes(tmp_path: Path, way: str) -> None:
    trace = read_trace(written(tmp_path, document([event(dur="@")]).replace("@", "\\u0035")))
    assert (trace.events["dur_ns"].tolist(), trace.issues) == ([5_000], {})


@pytest.mark.parametrize(("new", "old", "external"), [(7, 0, 7), (None, 3, 3), (-1, 3, -1), ("x", 3, -1)])
def test_the_new_name_of_the_external_id_goes_before_the_old(
    tmp_path: Path, way: str, new: Any, old: int, external: int
) -> None:
    one, other = event(External__id=new, external__id=old), event(external__id=old, External__id=new)
    frame = read_trace(written(tmp_path, document([one, other]))).events
    assert frame["external"].tolist() == [external, external]


@pytest.mark.parametrize("operator", ["Operator", "cpu_op"])
def test_what_old_versions_and_torch_npu_annotate_as_operators_are_annotations(
    tmp_path: Path, way: str, operator: str
) -> None:
    names = [
        "aten::mm",
        "ProfilerStep#16",
        "Optimizer.step#SGD.step",
        "enumerate(DataLoader)#_Iter.__next__",
        "MmBackward",
    ]
    text = document([event(name, operator) for name in names])
    frame = read_trace(written(tmp_path, text)).events
    assert frame["cat"].tolist() == [operator, *["user_annotation"] * 3, operator]
    assert frame["name"].tolist() == names


def test_an_integer_of_any_length(tmp_path: Path, way: str) -> None:
    long = Number("9" * 5_000)
    entries = [event("a", ts=long), event("b", dur=long), event("c", x=long, correlation=long), event("d", pid=long)]
    trace = read_trace(written(tmp_path, document(entries, world=long)))
    assert trace.events["name"].tolist() == ["b", "c", "d"]
    assert trace.events[["dur_ns", "correlation"]].to_numpy().tolist() == [[0, -1], [1_000, -1], [1_000, -1]]
    assert trace.issues == {"bad_timestamp": 1, "bad_duration": 1}
    assert trace.arguments([1]) == [{"x": float("inf"), "correlation": float("inf")}]
    assert trace.metadata["world"] == float("inf")


def test_a_damaged_device_is_counted_with_other_damage(tmp_path: Path) -> None:
    text = document(["null", event("lost", "kernel", device=2**63), event("op", ts=2)])
    trace = read_trace(written(tmp_path, text))
    assert (trace.events["name"].tolist(), trace.issues) == (["op"], {"damaged_event": 2})


@pytest.mark.parametrize(("first_us", "left_out"), [(2_000_000, 2), (999_999, 0)])
def test_events_without_a_time_are_left_out(tmp_path: Path, first_us: int, left_out: int) -> None:
    untimed = [event("kernel", "kernel", ts=0, dur=0), event("launch", "cuda_runtime", ts=0, dur=0)]
    others = [event("op", ts=first_us), event("at once", ts=first_us + 1, dur=0)]
    trace = read_trace(written(tmp_path, document([*untimed, *others])))
    assert trace.events["name"].tolist() == ["kernel", "launch", "op", "at once"][left_out:]
    assert trace.issues == ({"untimed_event": 2} if left_out else {})
    assert trace.events["start_ns"].tolist()[-2:] == ([0, 1_000] if left_out else [999_999_000, 1_000_000_000])


def test_other_phases_are_counted(tmp_path: Path, way: str) -> None:
    others = [{"ph": phase, "name": "n", "ts": 1, "pid": 1, "tid": 1} for phase in "isfMBE"]
    trace = read_trace(written(tmp_path, document([*others, {"name": "no phase", "ts": 1}, event()])))
    assert (trace.event_count, len(trace.events)) == (8, 1)
    assert trace.issues == {"begin_end_event": 2, "missing_phase": 1}


def test_values_that_traces_have_held(tmp_path: Path, way: str) -> None:
    entries = [
        event("amd", "Kernel", pid="2", tid="0", stream="0x1f", device="0x2", correlation=Number("4294967295")),
        event("old", "Runtime", external__id=0, pid="Spans", tid="PyTorch Profiler (0)"),
        event("python", "python_function", Python__parent__id=None, Python__id=3),
        event("nccl", "kernel", pid=3, tid=17, Comms__Id=Number("10159970886766084423"), Collective__name="all_reduce"),
        event("triton", "cpu_op", stream=7, device=0),
        event("sync", "cuda_sync", pid=0, tid=7, stream=7, device=0),
        event("memory", "gpu_memcpy", pid=1, tid=9, bytes=4, Bytes=4, device=None, stream=None),
        event("seq", Sequence__number=77, correlation=None),
    ]
    trace = read_trace(written(tmp_path, document(entries)))
    assert trace.issues == {}
    found = {row["name"]: row for row in rows(trace.events)}
    assert [(found["amd"][key]) for key in ("device", "stream", "correlation", "pid")] == [2, 31, 4_294_967_295, "2"]
    assert (found["old"]["external"], found["old"]["pid"], found["old"]["tid"]) == (0, "Spans", "PyTorch Profiler (0)")
    assert (found["nccl"]["device"], found["nccl"]["stream"]) == (3, 17)
    assert (found["triton"]["device"], found["triton"]["stream"], found["sync"]["device"]) == (-1, -1, -1)
    assert (found["memory"]["device"], found["memory"]["stream"]) == (1, 9)
    assert (found["seq"]["sequence"], found["seq"]["correlation"]) == (77, -1)
    assert trace.arguments([3])[0]["Comms Id"] == 10_159_970_886_766_084_423


@pytest.mark.parametrize("missing", ["cat", "args", "pid", "tid", "name"])
def test_a_missing_field_is_empty(tmp_path: Path, way: str, missing: str) -> None:
    entry = {key: value for key, value in event("a", correlation=1).items() if key != missing}
    (row,) = rows(read_trace(written(tmp_path, document([entry]))).events)
    empty = {"cat": "", "pid": "", "tid": "", "name": "", "args": ("correlation", -1)}[missing]
    assert row[empty[0]] == empty[1] if missing == "args" else row[missing] == empty


@pytest.mark.parametrize(
    "name", ['a"b\\c/', "tab\tline\n", "\u00e9\u6f22\U0001f600", "<b>[red]", "\ud800", "nul\0", "x" * 100_000]
)
def test_names(tmp_path: Path, way: str, name: str) -> None:
    trace = read_trace(written(tmp_path, document([event(name, tid=name), event("after", ts=2)])))
    assert trace.events["name"].tolist() == [name, "after"]
    assert trace.events["tid"].tolist() == [name, "1"]
    assert trace.issues == {}


def test_equal_names_are_one_category(tmp_path: Path, way: str) -> None:
    text = document([event("ab"), event("x").__class__(event("ab", ts=2))]).replace(
        '"name": "ab"', '"name": "\\u0061b"', 1
    )
    frame = read_trace(written(tmp_path, text)).events
    assert frame["name"].tolist() == ["ab", "ab"]
    assert list(frame["name"].cat.categories) == ["ab"]


@pytest.mark.parametrize("phase", ["\\u0058", "X"])
def test_an_escape_in_a_key_or_a_value_means_the_same(tmp_path: Path, way: str, phase: str) -> None:
    text = (
        '{"traceEvents": [{"p\\u0068": "%s", "na\\u006de": "a", "ts": 1, "dur": 1, "args": {"corr\\u0065lation": 3}}]}'
    )
    (row,) = rows(read_trace(written(tmp_path, text % phase)).events)
    assert (row["name"], row["correlation"]) == ("a", 3)


ARGUMENTS = (
    "correlation",
    "Sequence number",
    "device",
    "stream",
    "External id",
    "external id",
    *work.WHOLE,
    *work.DECIMAL,
)


def test_a_key_that_differs_in_one_letter_is_another(tmp_path: Path, way: str) -> None:
    near = [name[:at] + "~" + name[at + 1 :] for name in ARGUMENTS for at in range(len(name))]
    exact = {
        "ph": "X",
        "cat": "kernel",
        "name": "exact",
        "pid": 1,
        "tid": 2,
        "ts": 0,
        "dur": 1,
        "args": dict.fromkeys(ARGUMENTS, 3),
    }
    other = [{**exact, "name": name, "args": {name: 3}} for name in near]
    no_field = [
        {
            **{key: value for key, value in {**exact, "name": "none", "cat": "cpu_op"}.items() if key != field},
            "args": {},
            field[:at] + "~" + field[at + 1 :]: 5,
        }
        for field in ("ph", "ts", "dur", "cat", "name", "pid", "tid", "args")
        for at in range(len(field))
    ]
    sizes = [{"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": 8, **{name[:at] + "~" + name[at + 1 :]: 3}}}
             for name in memory.ARGUMENTS for at in range(len(name))]  # fmt: skip
    trace = read_trace(written(tmp_path, document([exact, *other, *no_field, *sizes])))
    read = trace.events.set_index("name")[NUMBERS[2:]]
    assert read.loc["exact"].tolist() == [3, 3, 3, 3, 3]
    assert (read.loc[near] == [-1, -1, 1, 2, -1]).all(axis=None)  # device and stream of pid and tid
    assert frame_of(trace.work).drop(columns="row").to_numpy().tolist() == [[3, 3, 3, 3_000_000, 3_000_000, 3_000_000]]
    allocated = frame_of(trace.memory)
    assert allocated[["address", "allocated_bytes", "reserved_bytes", "device_type", "device"]].eq(-1).all(axis=None)
    assert len(allocated) == len(sizes)
    counts = trace.events.astype({"name": str, "cat": str, "pid": str, "tid": str}).eq("").sum()
    assert counts[["name", "cat", "pid", "tid"]].tolist() == [4, 3, 3, 3]
    assert trace.issues == {"missing_phase": 2, "bad_timestamp": 2, "missing_duration": 3}


def test_the_last_of_two_equal_keys_counts(tmp_path: Path, way: str) -> None:
    entry = '{"ph": "X", "name": "a", "name": "b", "ts": 1, "ts": 2, "dur": 1, "args": {"correlation": 1, "correlation": 2}}'
    (row,) = rows(read_trace(written(tmp_path, document([entry, event(ts=0)]))).events[:1])
    assert (row["name"], row["start_ns"], row["correlation"]) == ("b", 2_000, 2)


ENTRIES = [event(f"e{number}", ts=number, dur=1, correlation=number) for number in range(5)]
NAMES = [entry["name"] for entry in ENTRIES]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.json", document(ENTRIES).encode()),
        ("gzip.json", gzip.compress(document(ENTRIES).encode())),
        ("plain.json.gz", document(ENTRIES).encode()),
        ("list.json", b" \n[" + document(ENTRIES, compact=True).split("[", 1)[1].rsplit("]", 1)[0].encode() + b"]"),
        ("bom.json", b"\xef\xbb\xbf" + document(ENTRIES).encode()),
        ("members.gz", b"".join(gzip.compress(part) for part in (document(ENTRIES)[:99].encode(), document(ENTRIES)[99:].encode()))),
        ("zeros.gz", gzip.compress(document(ENTRIES).encode()) + bytes(512)),
        ("garbage.gz", gzip.compress(document(ENTRIES).encode()) + b"garbage"),
    ],
)  # fmt: skip
def test_containers(tmp_path: Path, way: str, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    trace = read_trace(tmp_path / name)
    assert trace.events["name"].tolist() == NAMES
    assert {reason for reason in trace.issues if reason != "truncated"} == set()


@pytest.mark.parametrize("compact", [True, False])
def test_every_cut_keeps_the_whole_events_before_it(tmp_path: Path, compact: bool) -> None:
    text = document(ENTRIES, compact=compact)
    ends = [text.index(f'"{name}"') for name in NAMES]
    ends = [text.index("}", text.index("}", at) + 1) + 1 for at in ends]
    start = text.index("[") + 1
    for cut in range(start, len(text) - 1, 7):
        trace = read_trace(written(tmp_path, text[:cut]))
        assert trace.events["name"].tolist() == [name for name, end in zip(NAMES, ends, strict=True) if end <= cut]
        assert trace.issues.get("truncated", 0) == (cut <= text.index('"traceName"') - 3)


def test_a_cut_gzip_file_keeps_what_came_before(tmp_path: Path) -> None:
    many = [event(f"e{number}", ts=number, x=zlib.crc32(bytes(number))) for number in range(2_000)]
    packed = gzip.compress(document(many).encode())
    path = written(tmp_path, packed[: len(packed) // 2])
    trace = read_trace(path)
    names = trace.events["name"].tolist()
    assert trace.issues["truncated"] == 1
    assert 200 < len(names) < 2_000
    assert names == [entry["name"] for entry in many[: len(names)]]


DAMAGE = {
    "no closing brace": lambda text: text.replace('"correlation": 2\n    }\n  }', '"correlation": 2\n    }\n  ', 1),
    "no brace of args": lambda text: text.replace('"correlation": 2\n    }', '"correlation": 2\n    ', 1),
    "no quote": lambda text: text.replace('"name": "e2"', '"name": "e2', 1),
    "no opening quote": lambda text: text.replace('"name": "e2"', 'name": "e2"', 1),
    "no colon": lambda text: text.replace('"name": "e2"', '"name" "e2"', 1),
    "no comma inside": lambda text: text.replace('"name": "e2", ', '"name": "e2" ', 1),
    "a word too much": lambda text: text.replace('"name": "e2"', '"name": "e2" oops', 1),
    "a bracket left open": lambda text: text.replace('"correlation": 2', '"dims": [[1, 2], "correlation": 2', 1),
    "an empty value": lambda text: text.replace('"ts": 2', '"ts": ', 1),
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_a_damaged_event_costs_only_itself(tmp_path: Path, kind: str, block_bytes: int) -> None:
    text = DAMAGE[kind](document(ENTRIES))
    assert text != document(ENTRIES)
    trace = scanned(written(tmp_path, text), block_bytes)
    assert trace.events["name"].tolist() == ["e0", "e1", "e3", "e4"]
    assert trace.issues == {"damaged_event": 1}
    assert trace.event_count == 5
    assert trace.metadata["traceName"] == "t.json"


@pytest.mark.parametrize("compact", [True, False])
def test_lost_bytes_cost_only_what_they_touch(tmp_path: Path, compact: bool) -> None:
    text = document(ENTRIES, compact=compact)
    begins = [text.index((as_json if compact else pretty)(entry)) for entry in ENTRIES]
    for start in range(begins[1], begins[3], 5):
        for size in (1, 9, 40):
            broken = text[:start] + text[start + size :]
            names = set(read_trace(written(tmp_path, broken)).events["name"])
            assert {"e0", "e4"} <= names


def test_stray_commas_are_passed_over(tmp_path: Path) -> None:
    text = document(["", *ENTRIES[:2], "", *ENTRIES[2:], ""])
    trace = read_trace(written(tmp_path, text))
    assert trace.events["name"].tolist() == NAMES
    assert trace.issues == {"stray_comma": 3}


def test_entries_that_are_no_objects(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, document(["null", ENTRIES[0], "3", '"text"', "[1, {}]", ENTRIES[1]])))
    assert trace.events["name"].tolist() == ["e0", "e1"]
    assert (trace.issues, trace.event_count) == ({"damaged_event": 4}, 6)


def test_an_entry_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_MOST_ENTRY_BYTES", 300)
    endless = '{"name": "' + "a" * 1_000
    text = (
        document([*ENTRIES[:2], endless], compact=True).removesuffix('], "traceName": "t.json"}')
        + '", '
        + document(ENTRIES[2:], compact=True)[36:]
    )
    trace = scanned(written(tmp_path, text), 64)
    assert trace.events["name"].tolist()[:2] == ["e0", "e1"]
    assert trace.events["name"].tolist()[-2:] == ["e3", "e4"]
    assert trace.issues["damaged_event"] >= 1


def test_bad_utf8_is_kept(tmp_path: Path) -> None:
    data = document([event("a@b"), event("c", ts=2)]).encode().replace(b"@", b"\xff\xfe")
    assert read_trace(written(tmp_path, data)).events["name"].tolist() == ["a\udcff\udcfeb", "c"]


def test_bad_utf8_in_arguments_is_replaced(tmp_path: Path, way: str) -> None:
    data = document([event(kind="a@b")]).encode().replace(b"@", b"\xf2")
    assert read_trace(written(tmp_path, data)).arguments([0]) == [{"kind": "a\ufffdb"}]


@pytest.mark.parametrize("blanks", [0, 1, 30, 300])
def test_what_is_inside_a_damaged_entry_is_no_entry_wherever_a_block_ends(tmp_path: Path, blanks: int) -> None:
    damaged = f'{{"ph": "X", "name"2 "a", "args":{" " * blanks}{{"x": 1}}, "b":{{"ph": "X"}}}}'
    text = document([ENTRIES[0], damaged, ENTRIES[1]], compact=True)
    path = written(tmp_path, text)
    for block_bytes in range(1, 120):
        trace = scanned(path, block_bytes)
        assert trace.events["name"].tolist() == ["e0", "e1"]
        assert (trace.issues, trace.event_count) == ({"damaged_event": 1}, 3)


@pytest.mark.parametrize("block_bytes", [1, 40, 5_000])
def test_a_document_may_lack_its_brace(tmp_path: Path, block_bytes: int) -> None:
    text = document(ENTRIES[:2]).removeprefix("{")
    assert scanned(written(tmp_path, text), block_bytes).events["name"].tolist() == NAMES[:2]


def test_what_is_surely_no_document_is_not_searched_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_CERTAIN_BYTES", 100)
    path = written(tmp_path, "x" * 1_000 + document(ENTRIES))
    with pytest.raises(UsageError, match="has no traceEvents"):
        scanned(path, 64)


def test_deep_nesting_is_skipped(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    text = document(ENTRIES[:1]).replace('"correlation": 0', f'"correlation": 0, "deep": {deep}')
    trace = read_trace(written(tmp_path, text))
    assert (trace.events["name"].tolist(), trace.issues) == (["e0"], {})


def test_a_deep_document_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_trace(written(tmp_path, '{"a":' * 200_000))


@pytest.mark.parametrize(
    "content", [b"", b"not json", b"{}", b'{"traceEvents": 3}', b"\x7fELF" + bytes(99), b'{"a": [1]}', gzip.compress(b"", mtime=0), b"\x1f\x8b\x08"]
)  # fmt: skip
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        read_trace(written(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert "t.json" in str(caught.value)


def test_a_missing_file_a_directory_and_no_permission(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_trace(tmp_path / "none.json")
    with pytest.raises(UsageError, match="Is a directory"):
        read_trace(tmp_path)
    closed = written(tmp_path, document(ENTRIES))
    closed.chmod(0)
    if os.access(closed, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(UsageError, match="Permission denied"):
        read_trace(closed)


@pytest.mark.parametrize(("ts", "dur"), [(Number("-9000000000000000"), 1), (1, Number("9223372036854775.8"))])
def test_times_that_int64_cannot_hold_together_are_refused(tmp_path: Path, way: str, ts: Any, dur: Any) -> None:
    with pytest.raises(UsageError, match="spans more than 292 years"):
        read_trace(written(tmp_path, document([event(ts=ts, dur=dur), event(ts=Number("9000000000000000"))])))


@pytest.mark.parametrize(
    ("dur", "count"), [("4611686018427387.9", 2), ("4611686018427387.9", 5), ("9223372036854770", 2)]
)
def test_durations_that_int64_cannot_sum_are_refused(tmp_path: Path, way: str, dur: str, count: int) -> None:
    entries = [event(ts=number, dur=Number(dur) if number < count else 1) for number in range(6)]
    with pytest.raises(UsageError, match="last more than 292 years together"):
        read_trace(written(tmp_path, document(entries)))


def test_durations_that_int64_can_just_sum_are_read(tmp_path: Path, way: str) -> None:
    frame = read_trace(
        written(tmp_path, document([event(ts=0, dur=Number("4611686018427387")) for _ in range(2)]))
    ).events
    assert frame["dur_ns"].tolist() == [4_611_686_018_427_387_000] * 2


TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=6)
TIMES = st.one_of(
    st.integers(-(10**6), 10**15),
    st.decimals(0, 10**15, places=3).map(lambda value: Number(str(value))),
    st.integers(0, 10**9).map(str),
    st.sampled_from([None, Number("1e3"), Number("NaN"), "x", True]),
)
INTEGERS = st.one_of(
    st.none(),
    st.integers(-3, 2**40),
    st.sampled_from(
        ["0x0", "0xff", "12", "007", "-4", "", "x", Number("18446744073709551615"), Number("1.5"), [], True]
    ),
)
DECIMALS = st.one_of(
    INTEGERS,
    st.decimals(0, 10**6, places=9).map(lambda value: Number(f"{value:f}")),
    st.sampled_from(["1.5", "-1.5", "1.", ".5", "1e2", "inf", "", *map(Number, ("1e-5", "1.25E+2", "1e400", "-0.5"))]),
    st.sampled_from(
        [Number("NaN"), Number("1234567890123.5"), Number("0.00000099999999999999999999"), "999999999999.5"]
    ),
)
VALUES = st.recursive(st.none() | st.integers(-5, 5) | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6)  # fmt: skip
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from(["X", "X", "X", "X", "M", "s", "B", "i", "C", None])},
    optional={
        "cat": st.sampled_from(["cpu_op", "kernel", "Memcpy", "cuda_runtime"]) | TEXTS,
        "name": TEXTS | st.sampled_from(["thread_name", "[memory]"]),
        "pid": st.integers(-5, 10**9) | TEXTS,
        "tid": st.integers(-5, 10**9) | TEXTS,
        "ts": TIMES,
        "dur": TIMES,
        "args": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "correlation": INTEGERS,
                "Sequence number": INTEGERS,
                "device": INTEGERS,
                "stream": INTEGERS,
                "External id": INTEGERS,
                "name": TEXTS,
                "Input Dims": VALUES,
                "Bytes": INTEGERS,
                "Addr": INTEGERS,
                "Total Allocated": INTEGERS,
                "Total Reserved": INTEGERS,
                "Device Id": INTEGERS,
                "Device Type": INTEGERS,
                "bytes": INTEGERS,
                "graph id": INTEGERS,
                "graph node id": INTEGERS | DECIMALS,
                "est. achieved occupancy %": DECIMALS,
                "blocks per SM": DECIMALS | VALUES,
                "warps per SM": DECIMALS,
            },
        ),
    },
)


SOUND = '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"stream": 1, "correlation": 5}}'


@pytest.mark.parametrize(
    "entry",
    [
        '{, "name": "a", "ph": "X", "ts": 1, "dur": 1}',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {, "correlation": 5}}',
        '{"ph": "X"\n"ph": "X", "name": "a", "ts": 1, "dur": 1}',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"stream": 1\n"stream": 1}}',
        '{"ph": "X", "name": "a", "ts": 1, "dur": 1, }',
    ],
)
def test_a_comma_is_missed_where_it_was_before_and_stray_where_none_was(tmp_path: Path, entry: str) -> None:
    indented = SOUND.replace("{", "{\n")
    text = f"{SOUND},{indented},{SOUND},{entry},{SOUND},{indented}"
    trace = scanned(written(tmp_path, f'{{"traceEvents": [{text}]}}'), 1 << 16)
    assert (list(trace.events["correlation"]), trace.issues) == ([5] * 5, {"damaged_event": 1})


@pytest.mark.parametrize("damage", ["{{, {}}}", '{{"k7": 7 {}}}', "{{{}, }}"])
def test_of_many_keys_none_hides_a_stray_or_missing_comma(tmp_path: Path, damage: str) -> None:
    keys = [f'"k{number}": {number}' for number in range(100)]
    sound = [f'{{"ph": "X", "ts": 1, "dur": 1, "args": {{{key}, {", ".join(keys)}}}}}' for key in keys]
    damaged = [damage.format(f'{key}, "ph": "X", "ts": 1, "dur": 1') for key in keys]
    damaged_arguments = [f'{{"ph": "X", "ts": 1, "dur": 1, "args": {damage.format(key)}}}' for key in keys]
    entries = zip(sound, damaged_arguments, sound, damaged, sound, strict=True)
    text = ",".join(entry for group in entries for entry in group)
    trace = scanned(written(tmp_path, f'{{"traceEvents": [{text}]}}'), 1 << 20)
    assert (len(trace.events), trace.issues) == (300, {"damaged_event": 200})


def test_keys_mean_the_same_wherever_they_are_and_whatever_follows_them(tmp_path: Path) -> None:
    entries = [
        '{"ph": "X", "name": "a", "ts": 1, "correlation": 9, "args": {"correlation": 5, "name": "b", "ts": 7}}',
        '{"ph": "X", "name": "a", "ts":   1, "correlation": 9, "args": {"correlation": \n\t 5, "name": "b", "ts": 7}}',
        '{"ph": "X", "name": "a", "ts": 1, "correlation": 9, "args": {"ts": 7, "name": "b", "correlation": 5}}',
        '{"args": {"correlation": 5}, "correlation": 9, "ts": 1, "name": "a", "ph": "X"}',
    ]
    for block_bytes in (40, 1 << 16):
        trace = scanned(written(tmp_path, f'{{"traceEvents": [{", ".join(entries * 3)}]}}'), block_bytes)
        found = set(zip(trace.events["name"], trace.events["start_ns"], trace.events["correlation"], strict=True))
        assert (found, len(trace.events), trace.issues["missing_duration"]) == ({("a", 0, 5)}, 12, 12)


@pytest.mark.parametrize("end", [",", " ,", "\n"])
def test_numbers_of_every_length(tmp_path: Path, end: str) -> None:
    digits = "1234567890123456789"
    wholes = [sign + digits[:count] for count in range(1, 20) for sign in ("", "-")]
    times = [whole + places for whole in wholes for places in ("", *(f".{digits[:count]}" for count in range(1, 11)))]
    others = [*("0", "-0", "0.5", "-0.0", "1e3", "12345678e1", "1.e2", "true", "null"), *("1234567x", "1.", "-", "--1")]
    entries = [
        f'{{"dur":{time}{end}{"" if "," in end else ","}"args":{{"correlation":{whole}{end.strip(",")}}},"ts":{time},"ph":"X"}}'
        for time, whole in zip([*times, *others], [*(wholes * 11), *others], strict=True)
    ]
    path = written(tmp_path, "[" + ",".join(entries) + "]")
    with opened(path) as source:
        read = stream.scan(source, [], path)
    expected = [parse_row(entry.encode()) for entry in entries]
    kept = [row for row in expected if row.kind == COMPLETE]
    for name in ("start_ns", "dur_ns", "correlation"):
        assert read.columns.values[name].tolist() == [getattr(row, name) for row in kept]
    assert read.issues == Counter(row.issue for row in expected if row.issue is not None)


@pytest.mark.parametrize("block_bytes", [50, 1 << 16])
def test_names_of_every_length_that_differ_in_one_letter(tmp_path: Path, block_bytes: int) -> None:
    names = [
        text
        for size in range(28)
        for text in ("a" * size, *("a" * at + "b" + "a" * (size - at - 1) for at in range(size)))
    ]
    assert len(set(names)) == 406
    trace = scanned(written(tmp_path, document([event(name) for name in names * 2])), block_bytes)
    assert list(trace.events["name"]) == names * 2


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=st.lists(EVENTS, max_size=8),
    times=st.integers(1, 3),
    compact=st.booleans(),
    block_bytes=st.integers(17, 300) | st.integers(301, 3_000),
)
def test_both_ways_read_the_same(
    tmp_path: Path, entries: list[dict], times: int, compact: bool, block_bytes: int
) -> None:
    path = written(tmp_path, document(entries * times, compact=compact, with_stack=1))
    whole, parts = read_trace(path), scanned(path, block_bytes)
    assert rows(whole.events) == rows(parts.events)
    assert rows(frame_of(whole.memory)) == rows(frame_of(parts.memory))
    assert rows(frame_of(whole.counters)) == rows(frame_of(parts.counters))
    assert rows(frame_of(whole.work)) == rows(frame_of(parts.work))
    assert [dict(whole.issues), whole.event_count, whole.raw_bytes] == [
        dict(parts.issues), parts.event_count, parts.raw_bytes,
    ]  # fmt: skip
    assert (whole.thread_names, whole.metadata) == (parts.thread_names, parts.metadata)
    everything = list(range(len(whole.events)))
    assert whole.arguments(everything) == parts.arguments(everything)


SIZES = INTEGERS | st.integers(-2, 2) | st.integers(2**50 - 1, 2**50 + 1) | st.integers(-(2**50) - 1, 1 - 2**50)
ALLOCATIONS = st.fixed_dictionaries(
    {"Bytes": SIZES},
    optional=dict.fromkeys(("Addr", "Total Allocated", "Total Reserved", "Device Type", "Device Id", "bytes"), SIZES),
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(ALLOCATIONS, max_size=6), block_bytes=st.integers(17, 300))
def test_both_ways_read_the_same_allocations(tmp_path: Path, drawn: list[dict], block_bytes: int) -> None:
    instant = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 2, "ts": 7}
    path = written(tmp_path, document([event("op", ts=5), *({**instant, "args": each} for each in drawn)]))
    whole, parts = read_trace(path), scanned(path, block_bytes)
    assert rows(frame_of(whole.memory)) == rows(frame_of(parts.memory))
    assert whole.issues == parts.issues


def test_allocations_are_read_and_those_without_a_size_counted(tmp_path: Path, way: str) -> None:
    arguments = {"Total Reserved": 0, "Total Allocated": 64, "Bytes": 16, "Device Id": -1, "Device Type": 0, "Addr": 5}
    instant = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": 7}
    other = {**instant, "name": "[OutOfMemory]", "args": arguments}
    entries = [
        event("op", ts=5),
        {**instant, "args": arguments},
        {**instant, "args": {"Bytes": "x"}},
        {**instant, "ts": 8, "args": {"Bytes": -(2**40), "Device Type": 1, "Device Id": 3}},
        {**instant, "ts": None, "args": arguments},
        other,
    ]
    trace = read_trace(written(tmp_path, document(entries)))
    shared = {"pid": "1", "tid": "2"}
    assert rows(frame_of(trace.memory)) == [
        {**shared, "start_ns": 2000, "address": 5, "bytes": 16, "allocated_bytes": 64, "reserved_bytes": 0,
         "device_type": 0, "device": -1},
        {**shared, "start_ns": 3000, "address": -1, "bytes": -(2**40), "allocated_bytes": -1, "reserved_bytes": -1,
         "device_type": 1, "device": 3},
    ]  # fmt: skip
    assert (dict(trace.issues), trace.event_count) == ({"bad_memory_event": 1, "bad_timestamp": 1}, 6)
    assert trace.events["name"].tolist() == ["op"]


def test_counters_are_read_and_those_without_a_number_counted(tmp_path: Path, way: str) -> None:
    named = {
        "ph": "C",
        "cat": "hardware_counters",
        "name": "dram__bytes.sum",
        "pid": "GPU 0 Counters",
        "tid": 0,
        "ts": 7,
    }
    entries = [
        event("op", ts=5),
        {**named, "args": {"": 2.5}},
        {**named, "name": "XPU", "pid": 3, "ts": 8, "args": {"a": 1, "b": -2}},
        *({**named, "args": arguments} for arguments in ({"": "x"}, {"a": 1, "b": None}, {"": True}, {}, None)),
        {**named, "args": {"": Number("1e999")}},
        {**named, "ts": None, "args": {"": 1}},
    ]
    trace = read_trace(written(tmp_path, document(entries)))
    metric = {"name": "dram__bytes.sum", "cat": "hardware_counters", "pid": "GPU 0 Counters", "tid": "0"}
    several = {**metric, "name": "XPU", "pid": "3", "start_ns": 3000}
    assert rows(frame_of(trace.counters)) == [
        {**metric, "series": "", "start_ns": 2000, "value": 2.5},
        {**several, "series": "a", "value": 1.0},
        {**several, "series": "b", "value": -2.0},
    ]
    assert (dict(trace.issues), trace.event_count) == ({"bad_counter_event": 6, "bad_timestamp": 1}, 10)
    assert trace.events["name"].tolist() == ["op"]


def test_device_work_says_its_size_its_node_and_its_occupancy(tmp_path: Path, way: str) -> None:
    numbers = {"bytes": 12, "graph id": 5, "graph node id": 2**40, "est. achieved occupancy %": 75}
    entries = [
        event("a kernel", "kernel", ts=1, **numbers),
        event("an operator", "cpu_op", ts=2, bytes=4),
        event("nothing", "kernel", ts=3, grid=[1, 1, 1]),
        event("decimals", "Kernel", ts=4, **{"blocks per SM": Number("0.0185185191"), "warps per SM": "12"}),
        event("exponent", "kernel", ts=5, **{"blocks per SM": Number("9.5e-05"), "warps per SM": Number("1e30")}),
        event(
            "unreadable", "gpu_memcpy", ts=6, bytes=-4, **{"graph id": None, "blocks per SM": "inf", "warps per SM": []}
        ),
        event("null", "kernel", ts=6, bytes=None),
        event("bare", "kernel", ts=7, bytes=3, **{"blocks per SM": Number("inf")}),
    ]
    trace = read_trace(written(tmp_path, document(entries)))
    assert rows(frame_of(trace.work)) == [
        dict(zip(trace.work, numbers, strict=True))
        for numbers in (
            (0, 12, 5, 2**40, 75_000_000, -1, -1), (3, -1, -1, -1, -1, 18_518, 12_000_000), (4, -1, -1, -1, -1, 95, -1),
            (7, 3, -1, -1, -1, -1, -1),
        )
    ]  # fmt: skip
    assert dict(trace.issues) == {}


def test_products_keep_their_arguments_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overhead_lens.readers.kineto.stream.MOST_PRODUCTS", 2)
    path = written(tmp_path, document([event("aten::mm", ts=ts, x=ts) for ts in range(3)]))
    trace = scanned(path)
    path.unlink()
    assert trace.arguments([0, 1]) == [{"x": 0}, {"x": 1}]
    with pytest.raises(UsageError, match="No such file"):
        trace.arguments([2])


@pytest.mark.parametrize(
    "name",
    ["ncclDevKernel", "msccl_kernel", "allreduce_oneshot", "all_reduce_two_shot", "multimem_all_reduce", "c10d::send"],
)
def test_arguments_of_collectives_need_no_second_pass(tmp_path: Path, name: str) -> None:
    entries = [event(each, "kernel", ts=ts, x=ts, device=0) for ts, each in enumerate(["gemm", name, name])]
    path = written(tmp_path, document(entries))
    trace = scanned(path)
    path.unlink()
    assert trace.arguments([2, 1]) == [{"x": 2, "device": 0}, {"x": 1, "device": 0}]
    with pytest.raises(UsageError, match="No such file"):
        trace.arguments([0])


def test_every_cut_between_blocks_reads_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, document(ENTRIES))
    whole = rows(read_trace(path).events)
    for block_bytes in range(1, 200, 3):
        assert rows(scanned(path, block_bytes).events) == whole


@pytest.mark.parametrize("path", public_traces())
def test_public_traces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = reference(path)
    trace = read_trace(path)
    assert (trace.event_count, len(trace.events)) == (expected["n_events"], expected["n_X"])
    assert (trace.events["device"] >= 0).sum() == (expected.get("gpu_n") or 0)
    assert "truncated" not in trace.issues
    scan_all(monkeypatch)
    again = read_trace(path)
    for column in EVENT_COLUMNS:
        assert (trace.events[column].to_numpy() == again.events[column].to_numpy()).all()
    assert frame_of(trace.work).equals(frame_of(again.work))
    chosen = list(range(0, len(trace.events), max(1, len(trace.events) // 50)))
    assert trace.arguments(chosen) == again.arguments(chosen)
    assert json.dumps(trace.metadata, sort_keys=True) == json.dumps(again.metadata, sort_keys=True)


@given(parts=st.lists(st.integers(1, 400_000), min_size=1, max_size=6))
def test_the_share_of_a_file_is_what_was_delivered_of_it(parts: list[int]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(bytes(sum(parts)))
        with opened(path) as source:
            for at, part in enumerate(parts, 1):
                assert source.fill(memoryview(bytearray(part))) == part
                assert source.share == sum(parts[:at]) / sum(parts)


@pytest.mark.parametrize("size", [0, 99, 100, 5_000])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_whether_the_scanner_is_compiled_first(
    size: int,
    compressed: bool,  # noqa: FBT001
    compiled: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kineto, "UNCOMPILED_BYTES", 100)
    monkeypatch.setattr(kineto, "is_scanner_compiled", lambda: compiled)
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(size * b" ", mtime=0) if compressed else size * b" ")
    assert kineto.compiles_scanner(path) is (size >= 100 and not compiled)
    assert not kineto.compiles_scanner(tmp_path / "gone")
    path.write_bytes(b"\x1f\x8bxx")
    assert not kineto.compiles_scanner(path)


def test_a_snapshot_compiles_no_scanner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto, "UNCOMPILED_BYTES", 1)
    monkeypatch.setattr(kineto, "is_scanner_compiled", lambda: False)
    path = tmp_path / "file"
    for content, compiles in ((b"\x80\x04.", False), (b"{}", True)):
        path.write_bytes(content)
        assert recording.compiles_first(path) is compiles
