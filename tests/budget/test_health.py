"""Warnings of a budget, letter by letter, each with a case in which it must be silent."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from overhead_lens.budget.model import Wall
from overhead_lens.budget.shares import shares_of_stacks, shares_of_time
from overhead_lens.budget.trace import TraceBudget
from overhead_lens.budget.wall import make_floor
from overhead_lens.budget.warnings import (
    clock_warnings,
    fault_warnings,
    peak_warnings,
    set_up_warnings,
    share_warnings,
    trace_warnings,
)
from overhead_lens.instruments.samples.record import Sampled
from overhead_lens.scenario import Work
from overhead_lens.taxonomy.rules import Attribution
from tests.drawn.peaks import peaks as drawn_peaks
from tests.drawn.stacks import CLASSIFIER, USER, stack

PEAKS: dict[str, Any] = {
    "copy": [
        {"level": "L2", "bytes": 1 << 20, "capacity_bytes": 2 << 20, "bytes_per_s": 2e11},
        {"level": "DRAM", "bytes": 1 << 27, "capacity_bytes": None, "bytes_per_s": 2.5e10},
    ],
    "flops_per_s": 1e11,
    "device": {"bytes_per_s": 4e12, "flops_per_s": 5e13, "cache_bytes": 50_000_000},
}


def warn(
    size_bytes: int, wall_ns: int, device: str = "cpu", peaks: dict[str, Any] = PEAKS, flops: int = 0, **how: bool
) -> list[str]:
    work, known = Work(flops=flops, bytes=size_bytes), drawn_peaks(peaks)
    floor = make_floor(work, known, device)
    wall = Wall(wall_ns, (wall_ns, wall_ns), 5, 100, 1_000, floor.ns if floor else 0.0, floor)
    return list(peak_warnings(work, wall, known, device, **how))


def test_faster_than_float32_arithmetic() -> None:
    """A product under autocast: no parameter names its type."""
    assert warn(400_000_000, 1_600_000, "cuda", flops=10**12) == [
        (
            "the call's arithmetic in 1.60 ms is 625 TFLOP/s, more than the 50.0 TFLOP/s measured of float32: its type is a"
            " narrower one, the clock stops before the work is done (a device that is not synchronized?), or the scenario's"
            " work() counts too much"
        )
    ]
    assert warn(400_000_000, 16_000_000, "cuda", flops=10**12) == []
    assert len(warn(0, 7_999, flops=10**6)) == 1
    assert warn(0, 8_000, flops=10**6) == []


def test_faster_than_memory() -> None:
    # The notebook's trap: a sum of 25,000 x 25,000 floats on a device, timed without synchronizing.
    assert warn(2_500_000_000, 62_500, "cuda") == [
        (
            "the call's 2.50 GB in 62.50 µs are 40.0 TB/s, more than the 4.00 TB/s measured in device memory: the clock stops"
            " before the work is done (a device that is not synchronized?), the scenario's work() counts too many bytes, or other"
            " programs held the peak down"
        )
    ]
    assert warn(100_000_000, 1_000_000) == [
        (
            "the call's 100 MB in 1.00 ms are 100 GB/s, more than the 25.0 GB/s measured in DRAM: the clock stops"
            " before the work is done (a device that is not synchronized?), the scenario's work() counts too many bytes, or other"
            " programs held the peak down"
        )
    ]


@pytest.mark.parametrize(
    ("size_bytes", "wall_ns", "device"),
    [
        (2_500_000_000, 625_000, "cuda"),
        (50_000_000, 1_000, "cuda"),
        (100_000_000, 3_200_000, "cpu"),
        (0, 1_000, "cpu"),
    ],
    ids=["device at its peak", "in the device's cache", "memory within the noise of its peak", "no bytes"],
)
def test_as_fast_as_memory(size_bytes: int, wall_ns: int, device: str) -> None:
    assert warn(size_bytes, wall_ns, device) == []


def test_a_working_set_in_cache() -> None:
    assert warn(1_000_000, 10_000) == [
        (
            "the call's 1.00 MB fit in L2 (2.10 MB): repeated calls read cache (up to 200 GB/s), not DRAM (25.0 GB/s);"
            " enlarge the inputs to measure that"
        )
    ]


def test_calls_for_which_the_caches_are_displaced_do_not_read_them() -> None:
    assert warn(1_000_000, 10_000, in_hot_loop=False) == []
    # Nor is memory faster than its peak.
    assert warn(100_000_000, 1_000_000, in_hot_loop=False) == warn(100_000_000, 1_000_000) != []


def test_bytes_in_cache_that_do_not_matter_to_the_call() -> None:
    assert warn(1_000_000, 50_000) != []
    assert warn(1_000_000, 50_001) == []


def test_old_peaks_know_no_caches() -> None:
    peaks = {"copy": [{"bytes": 1 << 20, "bytes_per_s": 2e11}], "flops_per_s": 1e11}
    assert warn(1_000_000, 10_000, peaks=peaks) == []
    assert warn(1_000_000, 10_000, "cuda", peaks=peaks) == []


def test_page_faults() -> None:
    assert list(fault_warnings(529.0, 625_000.0, 1_599_000.0)) == [
        (
            "529 page faults per call take 625.0 µs (39% of it): the call gets fresh memory every time;"
            " give it an output to write to, or keep malloc from returning its pages"
        )
    ]
    assert list(fault_warnings(529.0, 0.0, 1_599_000.0)) == [
        (
            "529 page faults per call take at least 52.90 µs (3% of it): the call gets fresh memory every time;"
            " give it an output to write to, or keep malloc from returning its pages"
        )
    ]
    (seldom,) = list(fault_warnings(0.2, 0.0, 500.0))
    assert seldom.startswith(
        "0.2 page faults per call take at least 20 ns (4% of it): the call gets fresh memory at times;"
    )
    assert list(fault_warnings(10.0, 0.0, 100_000.0)) == []
    assert list(fault_warnings(0.0, 0.0, 0.0)) == []


@pytest.mark.parametrize(
    ("references_ns", "warned"),
    [
        ([700, 700, 700, 700, 700], []),
        ([700, 900, 900, 900, 734], []),
        (
            [700, 700, 700, 700, 742],
            [
                "the machine's clock drifted: the reference loop took 6% more time beside the last process than beside the first"
            ],
        ),
        (
            [800, 700, 700, 700, 720],
            [
                "the machine's clock drifted: the reference loop took 10% less time beside the last process than beside the first"
            ],
        ),
    ],
)
def test_a_clock_that_drifts(references_ns: list[int], warned: list[str]) -> None:
    rows = [
        {"process": process, "wall_ns": 1, "reference_ns": reference_ns}
        for process, reference_ns in enumerate(references_ns)
        for _ in range(4)
    ]
    assert list(clock_warnings(pd.DataFrame(rows), len(rows), in_turns=False)) == warned


@pytest.mark.parametrize(
    ("processes", "in_turns", "warned"),
    [
        (
            1,
            False,
            [
                (
                    "only 1 clock process: what processes differ by is not in the intervals"
                    " (measure to the end, without --quick)"
                )
            ],
        ),
        (
            3,
            False,
            [
                (
                    "only 3 clock processes: the wall time has their range, no interval; those of the categories are wide"
                    " (measure to the end, without --quick)"
                )
            ],
        ),
        (
            4,
            False,
            ["only 4 clock processes: intervals are wider than they need be (measure to the end, without --quick)"],
        ),
        (
            4,
            True,
            ["only 4 clock processes: intervals are wider than they need be (raise --rounds)"],
        ),
        (5, False, []),
        (5, True, []),
    ],
    ids=["one", "three", "profile --quick", "compare --rounds 4", "profile", "compare --rounds 5"],
)
def test_few_processes_are_mended_where_they_were_asked_for(processes: int, in_turns: bool, warned: list[str]) -> None:
    clock = pd.DataFrame({"process": range(processes), "wall_ns": 1, "reference_ns": 700})
    assert list(clock_warnings(clock, processes, in_turns=in_turns)) == warned


@pytest.mark.parametrize(
    ("corrected_ns", "bare_ns", "away"),
    [
        (10_499.0, 10_000.0, None),
        (9_501.0, 10_000.0, None),
        (5.0, 0.0, None),
        (10_701.0, 10_000.0, "+7%"),
        (9_301.0, 10_000.0, "-7%"),
        (36_000.0, 14_400.0, "+150%"),
    ],
)
def test_a_corrected_trace_that_is_not_the_bare_call(corrected_ns: float, bare_ns: float, away: str | None) -> None:
    warned = list(trace_warnings(corrected_ns, bare_ns))
    assert [each.partition(" away from the bare call in its own process: ")[0] for each in warned] == (
        [f"the corrected trace is {away}"] if away else []
    )


@pytest.mark.parametrize(("lost", "warned"), [(0, False), (30, False), (31, True)])
def test_stacks_that_could_not_be_read(lost: int, warned: bool) -> None:  # noqa: FBT001
    shares = shares_of_stacks([[stack(USER, count=3_000)]], CLASSIFIER)
    found = list(share_warnings(shares, 1_000.0, Sampled(2_970, lost), None, has_stacks=True))
    assert [line.partition(":")[0] for line in found] == [f"{lost} of {2_970 + lost} stacks could not be read"] * warned


@pytest.mark.parametrize(
    ("compiled_ns", "unknown_ns", "alone", "reasons"),
    [
        (0.0, 0.0, False, []),
        (0.0, 30.0, False, ["no rule claims the frames listed under it"]),
        (500.0, 0.0, True, []),
        (
            500.0,
            500.0,
            False,
            [
                "the trace does not tell the kernels of compiled code from its Python, and they could not be called alone"
            ],
        ),
    ],
)
def test_what_a_trace_says_of_kernels_of_compiled_code(
    compiled_ns: float,
    unknown_ns: float,
    alone: bool,  # noqa: FBT001
    reasons: list[str],
) -> None:
    times = {Attribution("python", "user"): 1_000.0 - unknown_ns, Attribution("unattributed"): unknown_ns}
    traced = TraceBudget(
        times, {}, 1_000.0, 1_000.0, 0.0, {}, frozenset(), 0.0, 0.0, compiled_ns, bool(compiled_ns) and not alone
    )
    found = list(share_warnings(shares_of_time(times, {}, 0.0), 1_000.0, Sampled(), traced, has_stacks=False))
    estimated = [line for line in found if line.startswith("evidence: trace")]
    of_compiled = ", kernels of compiled code are taken to last as long as when they are called alone" if alone else ""
    assert estimated == [
        (
            f"evidence: trace, so the split of an operator into dispatcher, allocation and kernel is estimated{of_compiled},"
            " and code that records no event, such as NumPy's, counts as python"
        )
    ]
    unattributed = [line.partition(" is unattributed: ") for line in found if " is unattributed: " in line]
    assert [reason for _, _, reason in unattributed] == reasons


@pytest.mark.parametrize(
    ("frame", "own_ns", "wall_ns", "operators", "warned"),
    [
        ("at::native::foo (libtorch_cpu.so)", 3_001.0, 10_000.0, 1.0, True),
        ("at::native::foo (libtorch_cpu.so)", 3_000.0, 10_000.0, 1.0, False),
        ("at::native::foo (libtorch_cpu.so)", 3_001.0, 10_000.0, 0.0, True),
        ("at::native::foo (libtorch_cpu.so)", 30_000.0, 100_000.0, 10.0, False),
        ("at::native::foo (libtorch_cpu.so)", 30_001.0, 1_000_000.0, 10.0, True),
        ("at::native::foo (libtorch_cpu.so)", 30_000.0, 1_000_000.0, 1.0, False),
        ("at::TensorIteratorBase::build (libtorch_cpu.so)", 9_000.0, 10_000.0, 1.0, False),
    ],
)
def test_a_function_that_takes_more_than_setting_operators_up_can(
    frame: str,
    own_ns: float,
    wall_ns: float,
    operators: float,
    warned: bool,  # noqa: FBT001
) -> None:
    found = list(set_up_warnings({"at::native::bar (libtorch_cpu.so)": 1.0, frame: own_ns}, wall_ns, operators))
    assert [line.partition(" takes ")[0] for line in found] == [frame] * warned
    assert list(set_up_warnings({}, wall_ns, operators)) == []
