"""Measures the machine's peak rates, for the roofline floor of a call's work. Runs in the worker.

Every figure is the fastest call in a fixed time: what else runs on the machine only ever adds time. The larger counts of all
threads and one: where another process holds a core, threads that wait for each other are slower than one.

Memory is streamed one level at a time. A call must last long beside its own overhead, so a working set of half a level is passed
over many times within one call, by strides that return to it::

    read    sum of (threads, passes, n) with strides (n, 0, 1)
    copy    the same read, written to (threads, k, k, n) with strides (slab, 16, 16, 1), passes = k * k: torch refuses a
            target with stride 0, and this one slides by 2 * k cache lines in all
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from overhead_lens.worker.runtime import cuda_device
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.usage import threads_in_use

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

_KIB, _MIB = 1 << 10, 1 << 20
_FLOAT_BYTES = 4
# A scenario may have set another default.
_ON_CPU: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}
_LINE_FLOATS = 16
_CALL_BYTES = 8 * _MIB
_MEMORY_BYTES = (128 * _MIB, 512 * _MIB)
_MEMORY_OF_LAST_CACHE = 4
_STREAM_NS = 50_000_000
_GEMM_NS = 200_000_000
_GEMM_SIZE = 768
_LEAST_CALLS = 3
_DEVICE_BYTES = 256 * _MIB
_DEVICE_GEMM_SIZE = 4_096
_LAUNCHES = 100


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of data cache.

    Attributes:
        sharers: Logical processors that share one instance.
    """

    name: str
    size_bytes: int
    sharers: int

    def instances(self, threads: int, processors: int) -> int:
        """Number of instances that ``threads`` threads reach among ``processors`` logical processors."""
        return max(1, min(threads, math.ceil(processors / self.sharers)))


@operation
def measure_peaks(session: Session) -> dict[str, Any]:
    """Memory bandwidth per level, matrix products, and a GPU's launch latency; takes about 2 s.

    Returns:
        The fields of ``record.Peaks``.
    """
    started = time.perf_counter()
    caches, levels_from = read_caches()
    threads = torch.get_num_threads()
    with torch.inference_mode():
        gemm = _gemm_rate()
        with threads_in_use(1):
            one_gemm = gemm if threads == 1 else _gemm_rate()
        copy = [_level(cache, caches, threads) for cache in (*caches, None)]
        device, reason = _device(cuda_device(session))
    return {
        "copy": copy,
        "levels_from": levels_from,
        "flops_per_s": max(gemm, one_gemm),
        "threads": threads,
        "device": device,
        "device_reason": reason,
        "seconds": round(time.perf_counter() - started, 2),
    }


def read_caches(folder: Path = CACHES) -> tuple[list[Cache], str]:
    """Data caches of the first processor, smallest first, and ``sysfs`` or ``assumed`` (usual sizes)."""
    caches = []
    for path in folder.glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            level, kind, size, shared = (
                (path / name).read_text(encoding="ascii").strip()
                for name in ("level", "type", "size", "shared_cpu_list")
            )
            if kind in ("Data", "Unified"):
                caches.append(Cache(f"L{int(level)}", _size_bytes(size), _count(shared)))
    if caches:
        return sorted(caches, key=lambda cache: cache.name), "sysfs"
    shared_by_all = os.cpu_count() or 1
    return [Cache("L1", 32 * _KIB, 1), Cache("L2", 512 * _KIB, 1), Cache("L3", 8 * _MIB, shared_by_all)], "assumed"


def _size_bytes(text: str) -> int:
    units = {"K": _KIB, "M": _MIB, "G": _KIB * _MIB}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def _count(cpu_list: str) -> int:
    """Processors in a list such as ``0-3,8``."""
    ranges = (part.partition("-") for part in cpu_list.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def _level(cache: Cache | None, caches: list[Cache], threads: int) -> dict[str, Any]:
    """Rates of one level; main memory for None."""
    together = _stream(cache, caches, threads)
    with threads_in_use(1):
        one = together if threads == 1 else _stream(cache, caches, 1)
    fastest = max(together["bytes_per_s"], one["bytes_per_s"])
    return {"level": cache.name if cache else "DRAM", **together, "bytes_per_s": fastest}


def _stream(cache: Cache | None, caches: list[Cache], threads: int) -> dict[str, Any]:
    if cache is None:
        capacity = None
        last = caches[-1].size_bytes * caches[-1].instances(threads, os.cpu_count() or 1)
        working_set = min(max(_MEMORY_BYTES[0], _MEMORY_OF_LAST_CACHE * last), _MEMORY_BYTES[1])
    else:
        capacity = cache.size_bytes * cache.instances(threads, os.cpu_count() or 1)
        working_set = capacity // 2
    read, copy = _read_rate(working_set // threads, threads), _copy_rate(working_set // threads, threads)
    return {"bytes": working_set, "capacity_bytes": capacity, "bytes_per_s": max(read, copy)}


def _read_rate(slab_bytes: int, threads: int) -> float:
    floats, passes = slab_bytes // _FLOAT_BYTES, max(1, _CALL_BYTES // slab_bytes)
    source = torch.ones(threads, 1, floats, **_ON_CPU).expand(threads, passes, floats)
    size_bytes: int = source.numel() * _FLOAT_BYTES
    return size_bytes / _fastest_ns(lambda: source.sum(dim=(1, 2)), _STREAM_NS) * 1e9


def _copy_rate(slab_bytes: int, threads: int) -> float:
    side = max(1, round(math.sqrt(_CALL_BYTES / slab_bytes)))
    slide = 2 * side * _LINE_FLOATS
    floats = max(_LINE_FLOATS, (slab_bytes // _FLOAT_BYTES - slide) // 2)
    source = torch.ones(threads, 1, 1, floats, **_ON_CPU).expand(threads, side, side, floats)
    slab = floats + slide
    target = torch.zeros(threads * slab, **_ON_CPU).as_strided(source.shape, (slab, _LINE_FLOATS, _LINE_FLOATS, 1))
    size_bytes: int = source.numel() * 2 * _FLOAT_BYTES
    return size_bytes / _fastest_ns(lambda: target.copy_(source), _STREAM_NS) * 1e9


def _gemm_rate() -> float:
    left = torch.ones(_GEMM_SIZE, _GEMM_SIZE, **_ON_CPU)
    out = torch.empty_like(left)
    return 2 * _GEMM_SIZE**3 / _fastest_ns(lambda: torch.mm(left, left, out=out), _GEMM_NS) * 1e9


def _device(gpu: torch.device) -> tuple[dict[str, float] | None, str | None]:
    """Peaks of a CUDA device if the workload uses any, or why none."""
    if not torch.cuda.is_available():
        return None, "torch sees no CUDA device"
    if not torch.cuda.is_initialized():
        return None, "the workload used no CUDA device"
    with torch.cuda.device(gpu):
        return _device_rates(), None


def _device_rates() -> dict[str, float]:
    source = torch.ones(_DEVICE_BYTES // 8, device="cuda", dtype=torch.float32)
    target = torch.empty_like(source)
    left = torch.ones(_DEVICE_GEMM_SIZE, _DEVICE_GEMM_SIZE, device="cuda", dtype=torch.float32)
    out = torch.empty_like(left)
    # The shortest kernel that torch can launch: it spins for no cycle.
    empty: Callable[[int], object] = torch.cuda._sleep  # noqa: SLF001
    return {
        "cache_bytes": getattr(torch.cuda.get_device_properties(source.device), "L2_cache_size", 0),
        "bytes_per_s": _DEVICE_BYTES / _device_ns(lambda: target.copy_(source)) * 1e9,
        "flops_per_s": 2 * _DEVICE_GEMM_SIZE**3 / _device_ns(lambda: torch.mm(left, left, out=out)) * 1e9,
        "launch_ns": _launch_ns(empty),
        "round_trip_ns": _fastest_ns(lambda: (empty(0), torch.cuda.synchronize()), _STREAM_NS),
    }


def _device_ns(call: Callable[[], object]) -> float:
    """Device time of the fastest of some calls."""
    times = []
    for _ in range(10):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(float(start.elapsed_time(end)) * 1e6)
    return min(times)


def _launch_ns(empty: Callable[[int], object]) -> float:
    """Host time per launch in the fastest burst; bursts are shorter than the device's queue."""
    best = math.inf
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(_LAUNCHES):
            empty(0)
        best = min(best, (time.perf_counter_ns() - start) / _LAUNCHES)
    torch.cuda.synchronize()
    return best


def _fastest_ns(call: Callable[[], object], budget_ns: int) -> int:
    """Time of the fastest call within ``budget_ns``, after one that does not count."""
    call()
    end = time.perf_counter_ns() + budget_ns
    best, calls = 1 << 62, 0
    while calls < _LEAST_CALLS or time.perf_counter_ns() < end:
        start = time.perf_counter_ns()
        call()
        best = min(best, time.perf_counter_ns() - start)
        calls += 1
    return max(best, 1)
