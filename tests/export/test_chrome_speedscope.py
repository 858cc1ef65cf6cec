from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.export.chrome import write_chrome
from overhead_lens.export.lanes.budget import budget_lane
from overhead_lens.export.speedscope import Profile, write_profiles
from overhead_lens.stack import Stack, StackFrame
from tests.drawn.builders import breakdown
from tests.export.trace_processor import Program

ROWS = [("A", "cpu_op", "41", "42", 1_000, 10_001), ("B", "cpu_op", "41", "42", 5_000, 10_003)]
EVENTS = pd.DataFrame(ROWS, columns=["name", "cat", "pid", "tid", "start_ns", "dur_ns"])
EVENTS = EVENTS.astype(dict.fromkeys(("name", "cat", "pid", "tid"), "category"))
EVENTS = EVENTS.assign(correlation=-1, sequence=-1, device=-1, stream=-1, external=-1)


def test_chrome_keeps_crossing_events_and_nanoseconds(tmp_path: Path, trace_processor: Program) -> None:
    write_chrome(tmp_path / "t.json.gz", budget_lane(breakdown(python=700, kernel=41)), EVENTS)
    loaded = trace_processor.load(tmp_path / "t.json.gz")
    assert loaded.losses() == []
    named = loaded.query("select name, dur from slice where name in ('A', 'B') or category = 'budget' order by name")
    assert [tuple(row) for row in named] == [
        ("A", 10_001), ("B", 10_003), ("kernel 41 ns, 6%", 41), ("python 700 ns, 94%", 700),
    ]  # fmt: skip


def test_chrome_is_compressed_by_its_name(tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz"):
        write_chrome(tmp_path / name, budget_lane(breakdown(python=5)), EVENTS[:0])
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    assert [event["name"] for event in json.loads(plain)["traceEvents"] if event["ph"] == "X"] == [
        "python 5 ns, 100%", "python_frame (file.py) 5 ns",
    ]  # fmt: skip


COUNTS = st.lists(st.integers(1, 10_000), min_size=1, max_size=30)


@given(counts=COUNTS, wall_ns=st.integers(0, 10**9))
def test_speedscope_weights_sum_to_the_wall(tmp_path_factory, counts: list[int], wall_ns: int) -> None:
    stacks = [Stack((StackFrame(f"f{i}", "a.py", i, native=False),), count) for i, count in enumerate(counts)]
    target = tmp_path_factory.mktemp("speedscope") / "s.json"
    write_profiles(target, "call", [Profile("call", wall_ns, stacks)])
    (profile,) = json.loads(target.read_text())["profiles"]
    assert sum(profile["weights"]) == wall_ns == profile["endValue"]
    assert len(profile["weights"]) == len(profile["samples"]) == len(counts)


def test_speedscope_shares_frames(tmp_path: Path) -> None:
    root = StackFrame("loop", "a.py", 1, native=False)
    leaf = StackFrame("", "libc.so.6", 0, native=True)
    write_profiles(tmp_path / "s.json", "call", [Profile("call", 100, [Stack((root,), 1), Stack((root, leaf), 3)])])
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["shared"]["frames"] == [
        {"name": "loop", "file": "a.py", "line": 1},
        {"name": "[unresolved]", "file": "libc.so.6"},
    ]
    assert document["profiles"][0]["samples"] == [[0], [0, 1]]
    assert document["profiles"][0]["weights"] == [25, 75]
