"""What this machine can do at best, for the roofline floor of a call's work. Runs in the worker."""

from __future__ import annotations

import statistics
import time

import torch

# Half of the second, half of the last cache level of common CPUs, and beyond any cache.
_COPY_BYTES = (256 << 10, 4 << 20, 128 << 20)
_MATMUL_SIZE = 768


def measure_peaks() -> dict[str, object]:
    """Copy bandwidth at three working sets and the float32 matrix-multiply rate, with the current thread count.

    Returns:
        ``copy``: ``[{"bytes": working set, "bytes_per_s": read + written}]``; ``flops_per_s``.
    """
    return {"copy": [_copy_rate(size) for size in _COPY_BYTES], "flops_per_s": _matmul_rate()}


def _copy_rate(size: int) -> dict[str, float]:
    source = torch.ones(size // 8, dtype=torch.float32)
    target = torch.empty_like(source)
    repeats = max(1, (32 << 20) // size)
    best_ns = min(_time(lambda: target.copy_(source), repeats) for _ in range(7))
    return {"bytes": size, "bytes_per_s": size / best_ns * 1e9}


def _matmul_rate() -> float:
    left = torch.ones(_MATMUL_SIZE, _MATMUL_SIZE)
    out = torch.empty_like(left)
    times = [_time(lambda: torch.mm(left, left, out=out), 1) for _ in range(8)]
    return 2 * _MATMUL_SIZE**3 / statistics.quantiles(times[1:], n=4)[0] * 1e9


def _time(function: object, repeats: int) -> float:
    assert callable(function)
    start = time.perf_counter_ns()
    for _ in range(repeats):
        function()
    return (time.perf_counter_ns() - start) / repeats
