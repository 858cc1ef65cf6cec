"""A damaged trace ends in a result or in a refusal of one line, and both ways of reading it agree.

``FUZZ_INPUTS=100000 pytest tests/readers/test_fuzz_traces.py`` tries more; ``FUZZ_SEED`` draws others.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from overhead_lens.readers.kineto.read import read_trace
from tests.drawn.timelines import trace_of
from tests.drawn.trace_text import event
from tests.readers import damaged as fuzz
from tests.readers.damaged import DAMAGES, SEEDS, BrokenPromiseError, checked, damaged

INPUTS = int(os.environ.get("FUZZ_INPUTS", "60"))
SEED = os.environ.get("FUZZ_SEED", "5")


def test_damaged_traces_break_nothing(tmp_path: Path) -> None:
    path, ends = tmp_path / "t.json", Counter[bool]()
    for number in range(INPUTS):
        random = Random(f"{SEED}:{number}")
        data, done = damaged(random)
        path.write_bytes(data)
        block_bytes = random.choice((17, 64, 300, 5_000, 2 << 20))
        try:
            ends[checked(path, block_bytes, whole_report=number % 4 == 0) is not None] += 1
        except Exception as error:
            message = f"input {number} of seed {SEED}, by {', '.join(done)}: {error!r} of {data[:2_000]!r}"
            raise AssertionError(message) from error
    assert ends[True] > ends[False] > 0


@pytest.mark.parametrize("name", SEEDS)
def test_what_is_damaged_is_a_sound_trace(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(SEEDS[name])
    analysis = checked(path, 64)
    assert analysis is not None
    assert {"truncated", "damaged_event", "bad_timestamp", "bad_duration"} & set(analysis.issues) == set()


def test_every_kind_of_event_is_damaged(tmp_path: Path) -> None:
    categories, phases = set(), set()
    for data in SEEDS.values():
        path = tmp_path / "t.json"
        path.write_bytes(data)
        categories |= set(read_trace(path).events["cat"].unique())
        entries = json.loads(data)
        phases |= {entry.get("ph") for entry in (entries if isinstance(entries, list) else entries["traceEvents"])}
    assert phases == {"X", "M", "i", "s", "f", "B", "E", "C", None}
    assert categories == {
        "", "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset",
        "cuda_sync", "gpu_user_annotation", "overhead", "mtia_runtime", "mtia_ccp_events", "cuda_profiler_range", "Trace",
        "Operator", "Runtime", "Kernel", "Memcpy",
    }  # fmt: skip


@pytest.mark.parametrize("damage", [*DAMAGES, fuzz._pack], ids=lambda each: each.__name__)
def test_damage_changes_most_traces_and_survives_any_text(damage: Any) -> None:
    seeds = [*SEEDS.values()]
    changed = [damage(Random(number), seeds[number % len(seeds)]) != seeds[number % len(seeds)] for number in range(30)]
    assert sum(changed) >= 10
    for text in (b"", b"{", b"\xff", b'"', b'{"ph"'):
        assert all(isinstance(damage(Random(number), text), bytes) for number in range(5))


def test_two_ways_that_differ_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(SEEDS["old"])
    monkeypatch.setattr(fuzz, "_scanned", lambda *_: trace_of([event("b")]))
    with pytest.raises(BrokenPromiseError, match=r"^the two ways of reading differ in column name$"):
        checked(path, 64)
    monkeypatch.setattr(fuzz, "_scanned", lambda *_: None)
    with pytest.raises(BrokenPromiseError, match=r"^one way of reading refuses what the other reads$"):
        checked(path, 64)


@pytest.mark.parametrize("value", [{"wall_ns": -1}, {"a": [{"self_ns": -1}]}, {"share": float("nan")}, {"events": -2}])
def test_a_negative_time_is_found(value: dict) -> None:
    fuzz.check_numbers({"wall_ns": 0, "delta": -1, "steps": [{"count": 3}], "memory": [{"start_ns": [-1]}]})
    with pytest.raises(BrokenPromiseError):
        fuzz.check_numbers(value)
