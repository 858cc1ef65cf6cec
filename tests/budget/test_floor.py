from __future__ import annotations

import pytest

from overhead_lens.budget.model import Floor, Wall
from overhead_lens.budget.wall import make_floor
from overhead_lens.errors import InvariantError
from overhead_lens.instruments.peaks.record import Peaks
from overhead_lens.scenario import Work
from tests.drawn.peaks import peaks

OLD = {"copy": [{"bytes": 1_000, "bytes_per_s": 8e10}, {"bytes": 9_000, "bytes_per_s": 1e10}], "flops_per_s": 1e11}
NEW = {
    "copy": [
        {"level": "L1", "bytes": 500, "capacity_bytes": 1_000, "bytes_per_s": 2e11},
        {"level": "L2", "bytes": 5_000, "capacity_bytes": 10_000, "bytes_per_s": 1e11},
        {"level": "DRAM", "bytes": 100_000, "capacity_bytes": None, "bytes_per_s": 2e10},
    ],
    "flops_per_s": 1e11,
    "device": {"bytes_per_s": 4e12, "flops_per_s": 5e13},
}


def work(flops: int, size_bytes: int) -> Work:
    return Work(flops=flops, bytes=size_bytes)


@pytest.mark.parametrize(
    ("flops", "size_bytes", "floor"),
    [
        (100, 1_000, Floor(5.0, "memory", "L1", 2e10, 2e11)),
        (100, 1_001, Floor(10.01, "memory", "L2", 100 / 10.01 * 1e9, 1e11)),
        (0, 100_000, Floor(5_000.0, "memory", "DRAM", 0.0, 2e10)),
        (10_000, 1_000, Floor(100.0, "arithmetic", "L1", 1e11, 1e10)),
        (500, 1_000, Floor(5.0, "memory", "L1", 1e11, 2e11)),
    ],
)
def test_what_binds(flops: int, size_bytes: int, floor: Floor) -> None:
    found = make_floor(work(flops, size_bytes), peaks(NEW))
    assert found is not None
    assert (found.bound, found.level) == (floor.bound, floor.level)
    rates = (found.ns, found.flops_per_s, found.bytes_per_s)
    assert rates == pytest.approx((floor.ns, floor.flops_per_s, floor.bytes_per_s))


def test_captures_of_before_levels_were_known() -> None:
    found = make_floor(work(0, 4_000), peaks(OLD))
    assert found == Floor(400.0, "memory", "a working set of 0.008583 MiB", 0.0, 1e10)
    beyond = make_floor(work(0, 10_000), peaks(OLD))
    assert beyond is not None
    assert beyond.ns == 1_000.0


def test_a_call_on_a_device_is_held_against_the_devices_peaks() -> None:
    found = make_floor(work(0, 4 * 10**12), peaks(NEW), "cuda")
    assert found == Floor(1e9, "memory", "device memory", 0.0, 4e12)
    assert make_floor(work(0, 4 * 10**12), peaks({**NEW, "device": None}), "cuda") is None
    assert make_floor(work(0, 4 * 10**12), peaks(OLD), "cuda") is None


def test_data_in_a_devices_cache_has_no_floor_by_its_memory() -> None:
    known = peaks({**NEW, "device": {"bytes_per_s": 4e12, "flops_per_s": 5e13, "cache_bytes": 50_000_000}})
    assert make_floor(work(0, 50_000_000), known, "cuda") is None
    beyond = make_floor(work(0, 50_000_001), known, "cuda")
    assert beyond is not None
    assert (beyond.bound, beyond.ns) == ("memory", pytest.approx(50_000_001 / 4e12 * 1e9))
    bound = make_floor(work(10**8, 16_000_000), known, "cuda")
    assert bound is not None
    assert (bound.bound, bound.ns) == ("arithmetic", pytest.approx(2_000.0))
    assert bound.bytes_per_s == pytest.approx(8e12)


@pytest.mark.parametrize(("size_bytes", "known"), [(0, peaks(NEW)), (80, None)])
def test_no_floor(size_bytes: int, known: Peaks | None) -> None:
    assert make_floor(work(0, size_bytes), known) is None


def test_a_floor_that_contradicts_itself() -> None:
    with pytest.raises(InvariantError, match="given twice"):
        Wall(10, (9.0, 11.0), 1, 1, 1, 3.0, Floor(2.0, "memory", "L1", 0.0, 1.0))
    with pytest.raises(InvariantError, match="no bound 'luck'"):
        Floor(2.0, "luck", "L1", 0.0, 1.0)
    with pytest.raises(InvariantError, match="no time"):
        Floor(0.0, "memory", "L1", 0.0, 1.0)
