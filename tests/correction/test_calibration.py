"""Calibration calls have the events they are meant to have, and what was measured is kept per machine."""

from __future__ import annotations

import json
import os
from copy import copy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import ANY

import pytest
import torch

from overhead_lens.captures.directory import read_capture
from overhead_lens.correction import store as calibration_store
from overhead_lens.correction import worker as calibration
from overhead_lens.correction.store import MeasuredCosts
from overhead_lens.errors import UsageError
from overhead_lens.instruments.calibration.record import Calibrate, read_calibration
from overhead_lens.instruments.instrument import Recording, Turn
from overhead_lens.instruments.trace.record import RecordTrace, Traced
from overhead_lens.worker.loop import make_measured_loop
from tests.drawn.captures import draw_capture

MACHINE = {"host": "a", "cpu": "b", "cores_allowed": 2, "governor": None, "load_average": [1.0]}
RUNTIME = {"python": "3.12", "torch": "2.9", "torch_git": "c", "threads": 2}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "overhead-lens"


def rows(*kinds: str, flags: str = "plain") -> list[dict[str, Any]]:
    return [{"flags": flags, "kind": kind} for kind in kinds]


def test_events_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_CALLS", 20)
    monkeypatch.setattr(calibration, "_ROUNDS", 2)
    monkeypatch.setattr(calibration, "_CALLS_OF", {"backward": 10, "varied": 3})
    found = calibration.costs_here(["plain", "memory", "stack"], compiled=False)
    assert found["reasons"] == {}
    by_name = {(row["flags"], row["name"]): row for row in found["rows"] if "bytes" not in row}
    one = by_name["plain", "resolve_conj"]
    assert (one["outer"], one["nested"], one["others"], set(one["span_ns"])) == (1, 0, 0, {"aten::resolve_conj"})
    in_a_row = [by_name["plain", f"neg {count}"] for count in (1, 2, 4, 8)]
    assert [(row["kind"], row["outer"], row["nested"]) for row in in_a_row] == [
        ("operator", count, 0) for count in (1, 2, 4, 8)
    ]
    assert one["kind"] == "short_operator"
    ones = by_name["plain", "ones"]
    assert (ones["outer"], ones["nested"], set(ones["span_ns"])) == (1, 2, {"aten::ones", "aten::empty", "aten::fill_"})
    assert by_name["plain", "_RecordFunctionFast"]["others"] == by_name["plain", "record_function"]["others"] == 1
    assert by_name["memory", "neg 1"]["others"] == 2  # one allocation, one release
    # A torch whose events() leave out those of Python has none of either call.
    seen = by_name["stack", "functions"]["others"] > 0
    assert (by_name["stack", "builtin"]["others"] >= 2) == seen
    assert ("plain", "builtin") not in by_name
    assert {flags for flags, name in by_name if name in ("chain of 4", "50 operators")} == {"plain"}
    chain = by_name["plain", "chain of 4"]
    # Four nodes and the leaf are evaluated; each node is an event, too, around its operator.
    assert (chain["kind"], chain["outer"] + chain["nested"], chain["evaluated"], chain["others"]) == (
        "backward",
        4,
        5,
        9,
    )
    # Of several outputs the graph has a root of its own.
    leaves = by_name["plain", "4 leaves"]
    assert (leaves["outer"] + leaves["nested"], leaves["evaluated"], leaves["others"]) == (8, 9, 18)
    distances = [by_name["plain", f"{count} operators"]["rms_reuse_distance"] for count in (5, 10, 20, 30, 40, 50)]
    assert distances == sorted(distances) and 3 < distances[0] < distances[-1] / 3
    assert one["rms_reuse_distance"] == 1
    lists = ("bare_ns", "traced_ns", "bare_faults", "traced_faults")
    assert {len(row[name]) for row in by_name.values() for name in lists} == {2}
    assert len({row["fault_ns"] for row in by_name.values()}) == 1


def test_calls_of_a_device_are_timed_bare_and_recorded_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    took: list[str] = []

    def event(name: str, duration_ns: int, device: object) -> SimpleNamespace:
        values = {"name": name, "duration_ns": duration_ns, "device_type": device, "start_ns": 0}
        return SimpleNamespace(**{key: partial(copy, value) for key, value in values.items()})

    class Recorded:
        """Events as of two calls, each with a kernel."""

        def __init__(self, activities: list[object]) -> None:
            assert activities == [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
            self.profiler, self.kineto_results = self, self

        def __enter__(self) -> Recorded:
            took.append("recorded")
            return self

        def __exit__(self, *_: object) -> None:
            took.append("bare")

        def events(self) -> list[SimpleNamespace]:
            host, device = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA
            return [event("launch", 30, host), event("kernel", 90, device), event("launch", 50, host)]

    monkeypatch.setattr(calibration, "_DEVICE_CALLS", 2)
    monkeypatch.setattr(calibration, "_ROUNDS", 2)
    monkeypatch.setattr(torch.profiler, "profile", Recorded)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: took.append("waited"))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "stream")
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: took.append(f"launched {cycles}"))
    monkeypatch.setattr(torch._C, "_CudaStreamBase", SimpleNamespace(query=took.append))
    asked, launched = calibration._device_rows()
    for call in ("stream", "launched 0"):
        run = [call, call, "waited"]
        turns = [*run, "recorded", *run, "bare"]
        assert took[: 3 + 2 * len(turns)] == [*run, *turns, *turns]
        del took[: 3 + 2 * len(turns)]
    assert took == []
    assert (asked["kind"], launched["kind"]) == ("device_call", "device_launch")
    assert [len(row[side]) for row in (asked, launched) for side in ("bare_ns", "traced_ns")] == [2, 2, 2, 2]
    assert (launched["outer"], launched["others"], launched["span_ns"]) == (0, 1, {"launch": 40})


def test_without_calls_of_a_device_the_rest_is_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = None
    monkeypatch.setattr(calibration, "costs_here", lambda _, compiled: {"rows": [{"kind": compiled}], "reasons": {}})
    monkeypatch.setattr(torch._C, "_CudaStreamBase", None, raising=False)
    only = calibration.measure_costs(session, ["plain"], compiled=True)
    assert only == {"rows": [{"kind": True}], "reasons": {}}
    asked = calibration.measure_costs(session, ["plain"], compiled=True, device=True)
    reason = "AttributeError: 'NoneType' object has no attribute 'query'"
    assert asked == {"rows": [{"kind": True}], "reasons": {"device_launch": reason}}


@pytest.mark.parametrize(
    ("device", "kinds", "reasons", "asks"),
    [
        ("cpu", ("operator",), {}, []),
        ("cuda", ("operator",), {}, [True]),
        ("cuda", ("operator",), {"device_launch": "there is none"}, []),
        ("cuda", ("operator", "device_launch"), {}, []),
        ("cpu", (), {}, [False]),
        ("cuda", (), {"device_launch": "there is none"}, [True]),
    ],
)
def test_a_device_is_calibrated_where_it_was_not(
    monkeypatch: pytest.MonkeyPatch, device: str, kinds: tuple[str, ...], reasons: dict[str, str], asks: list[bool]
) -> None:
    kept = None
    for _ in range(calibration_store.PROCESSES):
        kept = calibration_store.joined(kept, MeasuredCosts(rows(*kinds), reasons))
    monkeypatch.setattr(calibration_store, "load", lambda _: kept)
    monkeypatch.setattr(calibration_store, "save", lambda *_: None)
    asked: list[bool] = []

    def ask(operation: object, *, device: bool, **_: object) -> MeasuredCosts:
        assert operation is calibration_store.MEASURE_COSTS
        asked.append(device)
        return MeasuredCosts([], {})

    traced, calibrate = RecordTrace(), Calibrate()
    traced.note = Traced(calls=1)
    recording = Recording(ANY, Path(), ANY, [traced, calibrate])
    recording.workload = cast("Any", SimpleNamespace(device=device, compiles=False))
    calibrate.measure(Turn(recording, 0, cast("Any", SimpleNamespace(ask=ask))))
    assert asked == asks


def test_a_calibration_starts_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(calibration, "_calls", lambda **_: seen.append(torch.get_num_threads()) or ([], {}))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert calibration.costs_here(["plain"], compiled=False) == {"rows": [], "reasons": {}}
        assert (seen, torch.get_num_threads()) == ([1], 3)
    finally:
        torch.set_num_threads(before)


def test_calls_after_what_displaces_them_from_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_CALLS", 5)
    monkeypatch.setattr(calibration, "_ROUNDS", 2)
    monkeypatch.setattr(calibration, "_DISPLACED_CALLS", 5)
    found = calibration.costs_here(["memory", "plain"], compiled=False)["rows"]
    after = [row for row in found if "bytes" in row]
    sizes = [0, 1 << 19, 1 << 20, 1 << 21, 1 << 23]
    assert [(row["flags"], row["kind"], row["name"], row["bytes"]) for row in after] == [
        ("plain", "displaced_operator", name, count) for name in ("neg 1", "mm", "stack") for count in sizes
    ]
    assert {len(row[name]) for row in after for name in ("bare_ns", "traced_ns")} == {2}
    # Sixteen times as many bytes are not copied in as little time.
    assert all(after[at]["copy_ns"] > after[at - 3]["copy_ns"] > 0 for at in (4, 9, 14))
    assert not [row for row in calibration.costs_here(["memory"], compiled=False)["rows"] if "bytes" in row]


def test_the_middle_call_after_a_displacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_DISPLACED_CALLS", 3)
    moments = [0, 50, 60, 100, 180, 1_180, 2_000, 2_070, 2_082]
    monkeypatch.setattr(calibration.time, "perf_counter_ns", iter(moments).__next__)
    order: list[str] = []
    assert calibration._timed_apart(lambda: order.append("copy"), lambda: order.append("call")) == (12, 70)
    assert order == ["copy", "call"] * 3


def test_what_else_runs_on_the_machine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_CALLS", 10)
    monkeypatch.setattr(calibration.time, "thread_time_ns", iter([1_000, 1_700]).__next__)
    monkeypatch.setattr(calibration.time, "perf_counter_ns", iter([1_000, 9_000_000]).__next__)
    monkeypatch.setattr(calibration, "usage_of_thread", iter([(100, 0), (103, 0)]).__next__)
    calls = []
    assert calibration._timed(make_measured_loop(0), lambda: calls.append(1), 10) == (70, 0.3)
    assert len(calls) == 10


def test_kept_and_found_again(cache: Path) -> None:
    key = calibration_store.key(MACHINE, RUNTIME)
    assert calibration_store.load(key) is None
    assert calibration_store.save(key, {"rows": rows("operator")}) is None
    assert calibration_store.load(key) == {"schema": calibration_store.SCHEMA, "rows": rows("operator")}
    assert [each.name for each in cache.iterdir()] == [f"calibration-{key}.json"]


def test_another_machine_or_torch_is_another_calibration() -> None:
    key = calibration_store.key(MACHINE, RUNTIME)
    assert calibration_store.key({**MACHINE, "load_average": [9.0]}, RUNTIME) == key
    others = {
        calibration_store.key({**MACHINE, "cpu": "z"}, RUNTIME),
        calibration_store.key(MACHINE, {**RUNTIME, "torch": "2.8"}),
    }
    assert len(others | {key}) == 3


def test_another_gpu_or_precision_is_another_calibration() -> None:
    runtimes = [
        {**RUNTIME, "gpu": gpu, "float32_matmul": precision}
        for gpu in (None, "NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 4090")
        for precision in ("highest", "high")
    ]
    assert len({calibration_store.key(MACHINE, runtime) for runtime in runtimes}) == 6


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "other/1", "rows": []}', "[" * 100_000])
def test_what_cannot_be_read_is_measured_again(cache: Path, text: str) -> None:
    cache.mkdir(parents=True)
    calibration_store.place("k").write_text(text)
    assert calibration_store.load("k") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_refuses(cache: Path) -> None:
    cache.parent.mkdir()
    cache.parent.chmod(0o500)
    assert calibration_store.save("k", {"rows": []}) == f"the calibration cannot be kept in {cache}: Permission denied"


def test_a_file_where_the_folder_should_be(cache: Path) -> None:
    cache.parent.write_text("")
    assert "cannot be kept in" in (calibration_store.save("k", {"rows": []}) or "")


def test_one_process_after_the_other_joins_a_calibration() -> None:
    eager = MeasuredCosts(rows("operator", "annotation"), {"compiled": "no compiler"})
    compiled = MeasuredCosts([*rows("operator", "compiled"), *rows("operator", flags="stack")], {})
    kept = calibration_store.joined(None, eager)
    kept = calibration_store.joined({**kept, "peaks": {"a": 1}}, compiled)
    kept = calibration_store.joined(kept, eager)
    assert [(row["process"], row["kind"]) for row in kept["rows"]] == [
        (0, "operator"),
        (0, "annotation"),
        (1, "operator"),
        (1, "compiled"),
        (1, "operator"),
        (2, "operator"),
        (2, "annotation"),
    ]
    assert (kept["peaks"], kept["reasons"]) == ({"a": 1}, {"compiled": "no compiler"})
    assert calibration_store.processes(kept, "plain", compiled=False) == 3
    assert calibration_store.processes(kept, "plain", compiled=True) == 1
    assert calibration_store.processes(kept, "stack", compiled=False) == 1
    assert calibration_store.processes(kept, "memory", compiled=False) == 0
    assert calibration_store.processes(None, "plain", compiled=False) == 0
    assert calibration_store.processes(kept, "plain", compiled=False, device=True) == 0
    kept = calibration_store.joined(kept, MeasuredCosts(rows("operator", "device_launch"), {}))
    assert calibration_store.processes(kept, "plain", compiled=False, device=True) == 1
    assert calibration_store.processes(kept, "plain", compiled=True, device=True) == 1


OF_ALL = ("flags", "kind", "name", "bare_ns", "traced_ns")
OF_CALLS, OF_DISPLACED = (*OF_ALL, "outer", "nested", "others", "span_ns"), (*OF_ALL, "bytes", "copy_ns")


@pytest.mark.parametrize(
    "text",
    [
        *("{}", '{"rows": []}', '{"rows": [{"flags": "plain"}]}', "7", "{"),
        *(json.dumps({"rows": [dict.fromkeys(keys[:-1])]}) for keys in (OF_CALLS, OF_DISPLACED)),
        json.dumps({"rows": [dict.fromkeys(OF_CALLS) | {"kind": "backward"}]}),
    ],
)
def test_a_capture_with_a_damaged_calibration_is_refused(tmp_path: Path, text: str) -> None:
    path = draw_capture(tmp_path / "capture")
    assert read_calibration(read_capture(path)) is None
    backward = dict.fromkeys((*OF_CALLS, "evaluated")) | {"kind": "backward"}
    calibrate = Calibrate()
    calibrate.calibration = {"rows": [dict.fromkeys(OF_CALLS), dict.fromkeys(OF_DISPLACED), backward]}
    calibrate.write(path)
    assert read_calibration(read_capture(path)) == calibrate.calibration
    (path / "calibration.json").write_text(text)
    with pytest.raises(UsageError, match="is damaged"):
        read_calibration(read_capture(path))


def test_costs_are_measured_with_grad_mode_on(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = None
    modes: list[tuple[bool, bool]] = []

    def costs(_: object, compiled: bool) -> dict:
        modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        return {"rows": [], "reasons": {}}

    monkeypatch.setattr(calibration, "costs_here", costs)
    with torch.inference_mode():
        calibration.measure_costs(session, ["plain"], compiled=False)
    assert modes == [(True, False)]
