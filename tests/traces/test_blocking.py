"""Copies from and to memory that is not pinned: a launch for as long as others take, then a wait for the device."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drawn.timelines import MAIN, analyzer_of, call, drawn, host, kernel, timed

PAGEABLE = "Memcpy DtoH (Device -> Pageable)"


def budget(*entries: dict) -> dict[str, int]:
    """Categories that took time; nothing tells what is between events."""
    found = host(analyzer_of(*entries).analysis().host)
    found.pop("unattributed", None)
    return found


@pytest.mark.parametrize("copied", [PAGEABLE, "Memcpy HtoD (Pageable -> Device)"])
def test_it_waits_beyond_the_usual_launch(copied: str) -> None:
    entries = (
        call("[---------)", 1, "cudaMemcpyAsync"),
        call("           [-)", 2),
        kernel("   [-----)", 1, copied, "gpu_memcpy"),
        kernel("             [-)", 2),
    )
    # The other launch takes two.
    assert budget(*entries) == {"launch": 2 + 2, "wait": 8}
    first, *_ = analyzer_of(*entries).analysis().findings
    assert (first.id, first.category) == ("blocking_copies" if copied == PAGEABLE else "copies_to_device", "wait")


@pytest.mark.parametrize(
    ("called", "copied"),
    [
        ("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)"),
        ("cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"),
        ("cudaLaunchKernel", PAGEABLE),
    ],
)
def test_other_calls_are_launches(called: str, copied: str) -> None:
    entries = (
        call("[---------)", 1, called),
        call("           [-)", 2),
        kernel("   [-----)", 1, copied, "gpu_memcpy"),
        kernel("             [-)", 2),
    )
    assert budget(*entries) == {"launch": 10 + 2}


@settings(max_examples=50)
@given(launches=st.lists(st.integers(1, 30), min_size=1, max_size=6), copies=st.lists(st.integers(1, 90), max_size=4))
def test_what_it_waits_is_what_it_takes_longer_than_the_median_launch(launches: list[int], copies: list[int]) -> None:
    entries, now = [drawn("[)", "aten::add")], 1
    calls = [
        *(("cudaLaunchKernel", "gemm", ns) for ns in launches),
        *(("cudaMemcpyAsync", PAGEABLE, ns) for ns in copies),
    ]
    for number, (called, work, ns) in enumerate(calls, 1):
        entries.append(timed(now, ns, called, "cuda_runtime", MAIN, correlation=number))
        cat = "kernel" if work == "gemm" else "gpu_memcpy"
        entries.append(timed(now, 1, work, cat, (0, 7), device=0, stream=7, correlation=number))
        now += ns
    usual = sorted(launches)[(len(launches) - 1) // 2]
    found = budget(*entries)
    assert found.get("wait", 0) == sum(max(0, ns - usual) for ns in copies)
    assert found["launch"] == sum(launches) + sum(min(ns, usual) for ns in copies)
