from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.instrument import Recording, Turn
from overhead_lens.instruments.peaks import worker as peaks
from overhead_lens.instruments.peaks.record import MeasurePeaks
from overhead_lens.instruments.peaks.worker import Cache, measure_peaks, read_caches
from overhead_lens.machine.operations import Operation
from overhead_lens.machine.request import Request
from overhead_lens.target import Target
from overhead_lens.worker.session import Session


def draw_cache(folder: Path, index: int, **files: str) -> None:
    place = folder / f"index{index}"
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(f"{text}\n")


def test_caches_are_what_the_system_says(tmp_path: Path) -> None:
    draw_cache(tmp_path, 3, level="3", type="Unified", size="32M", shared_cpu_list="0-3,8")
    draw_cache(tmp_path, 0, level="1", type="Data", size="32K", shared_cpu_list="0")
    draw_cache(tmp_path, 1, level="1", type="Instruction", size="64K", shared_cpu_list="0")
    draw_cache(tmp_path, 2, level="2", type="Unified", size="1048576", shared_cpu_list="0,4")
    assert read_caches(tmp_path) == (
        [Cache("L1", 32 << 10, 1), Cache("L2", 1 << 20, 2), Cache("L3", 32 << 20, 5)],
        "sysfs",
    )


def test_caches_that_nobody_describes_are_assumed(tmp_path: Path) -> None:
    draw_cache(tmp_path, 0, level="1", type="Data", size="unknown", shared_cpu_list="0")
    draw_cache(tmp_path, 1, level="2", type="Unified")
    found, source = read_caches(tmp_path)
    assert ([cache.name for cache in found], source) == (["L1", "L2", "L3"], "assumed")


@pytest.mark.parametrize(
    ("sharers", "threads", "instances"), [(1, 1, 1), (1, 4, 4), (2, 8, 4), (8, 4, 1), (8, 1, 1), (16, 4, 1)]
)
def test_instances_that_threads_reach_on_eight_processors(sharers: int, threads: int, instances: int) -> None:
    assert Cache("L2", 1 << 20, sharers).instances(threads, 8) == instances


def test_every_level_has_rates_and_the_thread_count_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_STREAM_NS", "_GEMM_NS"):
        monkeypatch.setattr(peaks, name, 1)
    monkeypatch.setattr(peaks, "_MEMORY_BYTES", (1 << 20, 1 << 20))
    monkeypatch.setattr(peaks, "read_caches", lambda: ([Cache("L1", 32 << 10, 1), Cache("L2", 256 << 10, 1)], "sysfs"))
    before = torch.get_num_threads()
    found = json.loads(json.dumps(measure_peaks(Session(io.StringIO(), print))))
    assert torch.get_num_threads() == before
    assert [level["level"] for level in found["copy"]] == ["L1", "L2", "DRAM"]
    assert all(level["bytes_per_s"] > 0 for level in found["copy"])
    instances = min(before, os.cpu_count() or 1)
    assert [level["capacity_bytes"] for level in found["copy"]] == [instances << 15, instances << 18, None]
    assert found["flops_per_s"] > 0
    assert (found["device"] is None) == isinstance(found["device_reason"], str)


class Refusing:
    """A worker that cannot measure peaks."""

    def ask(self, operation: Operation[Any]) -> Any:
        raise MeasurementError(f"{operation.title} failed: RuntimeError: no memory")


def test_a_capture_without_peaks_is_still_one(tmp_path: Path) -> None:
    request = Request(
        target=Target("s.py", tmp_path / "s.py"),
        params={},
        compile_options=None,
        output=None,
        parent=tmp_path,
        timeout_s=1.0,
    )
    measured = MeasurePeaks()
    recording = Recording(request, tmp_path, cast("Any", None), [Calibrate(), measured])
    measured.measure(Turn(recording, 0, cast("Any", Refusing())))
    assert measured.write(tmp_path) is None
    assert recording.warnings == ["no roofline floor: measure peaks failed: RuntimeError: no memory"]


def test_peaks_are_those_of_float32_whatever_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[torch.dtype] = []

    def multiply(left: torch.Tensor, *_: torch.Tensor, out: torch.Tensor) -> None:
        used.extend((left.dtype, out.dtype))

    monkeypatch.setattr(torch, "mm", multiply)
    monkeypatch.setattr(peaks, "_fastest_ns", lambda call, _: call() or 1)
    torch.set_default_dtype(torch.float64)
    try:
        peaks._gemm_rate()
    finally:
        torch.set_default_dtype(torch.float32)
    assert used == [torch.float32] * 2
