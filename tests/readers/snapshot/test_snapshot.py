"""Memory snapshots: what is read of them, hostile and damaged pickles, and that they are analyzed as traces are."""

from __future__ import annotations

import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.model import Events
from overhead_lens.readers.recording import read_recording
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.memory.model import DeviceMemory, MemoryHolder
from tests.drawn.snapshots import TRAIN, entry, pickled, segment, snapshot

NUMBERS = ["start_ns", "address", "bytes", "allocated_bytes", "reserved_bytes", "device", "stack"]


def numbers(columns: Events) -> list[tuple[int, ...]]:
    return list(zip(*(columns[name].tolist() for name in NUMBERS), strict=True))


def analyzed(path: Path) -> tuple[DeviceMemory, ...]:
    return Analyzer(read_recording(path), default_classifier()).analysis().memory


EVENTS = [
    entry("segment_alloc", 0, 4096, 1),
    entry("alloc", 5, 100, 2, [TRAIN]),
    entry("alloc", 6, 50, 3),
    entry("free_requested", 5, 100, 4),
    entry("free_completed", 5, 100, 9),
    entry("snapshot", 0, 0, 10),
]
SEGMENTS = [segment(4096, 0, (50, "active_allocated"), (30, "active_allocated"), (9, "inactive"))]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_events_are_counted_backwards_from_what_was_held_at_the_end(tmp_path: Path, protocol: int) -> None:
    trace = read_recording(pickled(tmp_path, snapshot(EVENTS, segments=SEGMENTS), protocol))
    assert numbers(trace.memory) == [
        (0, 0, 0, 30, 4096, 0, -1),
        (1000, 5, 100, 130, 4096, 0, 0),
        (2000, 6, 50, 180, 4096, 0, -1),
        (3000, 5, -100, 80, 4096, 0, -1),
    ]
    assert trace.stacks == ((("train.py", 7, "main"),),)
    assert (trace.event_count, len(trace.events), dict(trace.issues)) == (6, 0, {})


def test_sizes_that_no_device_has_are_unknown(tmp_path: Path) -> None:
    held = [segment(2**62, 0, (2**62, "active_allocated"), (2**62, "active_allocated"))]
    trace = read_recording(pickled(tmp_path, snapshot([entry("alloc", 5, 100)], segments=held)))
    assert numbers(trace.memory) == [(0, 5, 100, -1, -1, 0, -1)]


def test_devices_are_places_in_the_list_also_after_an_empty_one(tmp_path: Path) -> None:
    path = pickled(tmp_path, snapshot([], [entry("alloc", 1, 7)], [entry("alloc", 2, 8)]))
    assert [(each.device, each.end_bytes) for each in analyzed(path)] == [("cuda:1", 7), ("cuda:2", 8)]


def test_an_old_snapshot_without_times_and_requests(tmp_path: Path) -> None:
    old = [
        {"action": "alloc", "addr": 1, "size": 7, "stream": 0},
        {"action": "free_completed", "addr": 1, "size": 7, "stream": 0},
    ]
    trace = read_recording(pickled(tmp_path, {"device_traces": [old]}))
    assert numbers(trace.memory) == [(0, 1, 7, -1, -1, 0, -1), (1000, 1, -7, -1, -1, 0, -1)]


def frame(file: str, function: str) -> dict:
    return {"filename": file, "line": 3, "name": function}


def test_stacks_tell_place_and_kind(tmp_path: Path) -> None:
    site = "/usr/lib/python3/site-packages/torch"
    at = [
        [frame(f"{site}/nn/modules/linear.py", "__init__"), TRAIN],
        [frame(f"{site}/optim/adam.py", "_init_group"), TRAIN],
        [frame("??", "at::_ops::empty::call(int)"), frame("x.cpp", "at::_ops::mm::redispatch(int)"),
         frame("engine.cpp", "torch::autograd::Engine::evaluate_function(int)")],
        [frame(f"{site}/nn/functional.py", "linear"), TRAIN],
    ]  # fmt: skip
    events = [entry("alloc", number, 10 * number, number + 1, frames) for number, frames in enumerate(at, 1)]
    (found,) = analyzed(pickled(tmp_path, snapshot(events)))
    place = "train.py(7): main"
    assert found.holders == (
        MemoryHolder("linear", "", place, "unknown", 1, 40),
        MemoryHolder("aten::mm", "", "", "gradient", 1, 30),
        MemoryHolder("_init_group", "", place, "optimizer_state", 1, 20),
        MemoryHolder("__init__", "", place, "parameter", 1, 10),
    )


def test_overloads_are_one_operator(tmp_path: Path) -> None:
    events = [
        entry("alloc", number, 10, number, [frame("x.cpp", f"at::_ops::{name}::call(int)"), TRAIN])
        for number, name in enumerate(("add_Tensor", "add_Scalar"), 1)
    ]
    (found,) = analyzed(pickled(tmp_path, snapshot(events)))
    assert found.holders == (MemoryHolder("aten::add", "", "train.py(7): main", "unknown", 2, 20),)


@pytest.mark.parametrize("library", ["site-packages/transformers/activations.py", "functools.py"])
def test_an_environment_called_torch_is_not_torch(tmp_path: Path, library: str) -> None:
    lib = "/opt/conda/envs/torch/lib/python3.11"
    frames = [
        frame(f"{lib}/site-packages/torch/nn/functional.py", "linear"),
        frame(f"{lib}/{library}", "forward"),
        TRAIN,
    ]
    (found,) = analyzed(pickled(tmp_path, snapshot([entry("alloc", 1, 10, 1, frames)])))
    assert found.holders == (MemoryHolder("linear", "", f"{lib}/{library}(3): forward", "unknown", 1, 10),)


class Hostile:
    def __reduce__(self) -> Any:
        return os.mkdir, ("was-here",)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("value", [Hostile(), {"device_traces": [[Hostile()]]}, OrderedDict(a=1), Path("x"), 3 + 4j])
def test_a_pickle_that_wants_more_than_plain_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any, protocol: int
) -> None:
    path = pickled(tmp_path, value, protocol)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"snapshot.pickle is refused: its pickle imports or calls code"):
        read_recording(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "value", [{}, [], 5, None, {"segments": []}, {"device_traces": 4}, {"a": {1: (2, 3), "b": {4}}}]
)
def test_other_pickles_are_no_snapshots(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UsageError, match="it has no device_traces"):
        read_recording(pickled(tmp_path, value))


def test_a_snapshot_that_is_cut_off_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    data = pickle.dumps(snapshot(EVENTS, segments=SEGMENTS), protocol=4)
    path = tmp_path / "cut.pickle"
    for size in range(2, len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(UsageError, match="damaged or cut off"):
            read_recording(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.binary(max_size=60))
def test_any_opcodes_are_read_or_refused(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "any.pickle"
    path.write_bytes(b"\x80\x04" + tail)
    try:
        read_recording(path)
    except UsageError as error:
        assert "\n" not in str(error)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    | st.tuples(inner) | st.tuples(inner, inner, inner, inner),
    max_leaves=12,
)  # fmt: skip
ACTIONS = st.sampled_from(
    ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "other"]
)
DRAWN = st.lists(st.tuples(ACTIONS, st.integers(0, 3), st.integers(0, 2**40), st.integers(1, 9)), max_size=12)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=DRAWN, beside=PLAIN, protocol=st.integers(3, 5), held=st.integers(0, 2**40))
def test_plain_data_beside_the_events_changes_nothing(
    tmp_path: Path, events: list[tuple[Any, ...]], beside: Any, protocol: int, held: int
) -> None:
    drawn = snapshot([entry(*each) for each in events], segments=[segment(1, 0, (held, "active_allocated"))])
    bare = read_recording(pickled(tmp_path, drawn, protocol))
    noisy = {"x": beside, **drawn, "y": [beside, {"z": beside}]}
    noisy["device_traces"] = [[{**each, "stream": beside} for each in drawn["device_traces"][0]]]
    trace = read_recording(pickled(tmp_path, noisy, protocol))
    assert numbers(trace.memory) == numbers(bare.memory)
    change = {"alloc": 1, "free_requested": -1}
    if not any(action == "free_requested" for action, *_ in events):
        change = {"alloc": 1, "free_completed": -1}
    wanted = [change.get(action, 0) * size for action, _, size, _ in events if size]
    assert [size for size in bare.memory["bytes"].tolist() if size] == [size for size in wanted if size]
    for found in Analyzer(trace, default_classifier()).analysis().memory:
        assert min(found.start_bytes, found.end_bytes) >= 0


def test_a_stack_that_holds_something_else_is_none(tmp_path: Path) -> None:
    events = [entry("alloc", 1, 7, 1, [TRAIN, 5]), entry("alloc", 2, 7, 1, [5, TRAIN])]  # type: ignore[list-item]
    trace = read_recording(pickled(tmp_path, snapshot(events)))
    assert (trace.memory["stack"].tolist(), trace.stacks) == ([-1, -1], ())


def test_equal_stacks_have_one_number(tmp_path: Path) -> None:
    events = [entry("alloc", at, 1, at, [frame(f"f{at // 2}.py", "g"), TRAIN]) for at in range(1, 7)]
    trace = read_recording(pickled(tmp_path, snapshot(events)))
    assert trace.memory["stack"].tolist() == [0, 1, 1, 2, 2, 3]
    assert [stack[0].file for stack in trace.stacks or ()] == ["f0.py", "f1.py", "f2.py", "f3.py"]


def test_entries_that_are_no_events_are_counted(tmp_path: Path) -> None:
    trace = read_recording(pickled(tmp_path, {"device_traces": [[entry("alloc", 1, 7), 5, {"action": "alloc"}], None]}))
    assert (trace.event_count, dict(trace.issues)) == (1, {"damaged_event": 3})


def test_an_empty_file_and_sizes_that_no_memory_has(tmp_path: Path) -> None:
    (tmp_path / "empty.pickle").write_bytes(b"")
    with pytest.raises(UsageError, match="empty"):
        read_recording(tmp_path / "empty.pickle")
    path = tmp_path / "long.pickle"
    path.write_bytes(b"\x80\x04\x8d" + struct.pack("<Q", 2**63) + b"x" * 20)
    with pytest.raises(UsageError, match="damaged or cut off"):
        read_recording(path)
    huge = pickled(tmp_path, snapshot([entry("alloc", 1, 2**62), entry("alloc", 2, 8)]))
    assert [each.end_bytes for each in analyzed(huge)] == [8]


def test_the_window_of_a_snapshot_without_stacks_reaches_to_its_last_event(tmp_path: Path) -> None:
    path = pickled(tmp_path, snapshot([entry("alloc", 64, 8, time_us=5), entry("alloc", 128, 8, time_us=12)]))
    window = Analyzer(read_recording(path), default_classifier()).analysis().window
    assert (window.start_ns, window.wall_ns) == (0, 7_000)
