"""Page faults beside the operating system's own time: when it is measured, and what the measurement says."""

from __future__ import annotations

import io
import resource
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from overhead_lens.instruments.page_faults import worker as page_faults
from overhead_lens.instruments.page_faults.record import matter
from overhead_lens.worker.session import Session
from overhead_lens.worker.usage import fault_ns


@pytest.mark.parametrize(
    ("faults", "wall_ns", "they_do"), [(1, 50_000, True), (1, 50_001, False), (0, 1, False), (20, 10**6, True)]
)
def test_faults_matter_from_two_thousandths_of_the_time(faults: int, wall_ns: int, they_do: bool) -> None:
    assert matter(faults, wall_ns) is they_do


@pytest.mark.skipif(sys.platform != "linux", reason="a thread's time is accounted on Linux")
def test_warm_touches_are_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that a round moves by 1 us and a user time that a fresh round moves by 200 us, a warm one by 8 us."""
    state = {"now_ns": 0, "user_ns": 0, "readings": 0}

    def now() -> int:
        state["now_ns"] += 1_000
        return state["now_ns"]

    def usage(_who: int) -> SimpleNamespace:
        # Before and after the fresh rounds, then before and after the warm ones.
        state["user_ns"] += (0, 10 * 200_000, 0, 1 * 8_000)[state["readings"]]
        state["readings"] += 1
        return SimpleNamespace(ru_utime=state["user_ns"] / 1e9)

    monkeypatch.setattr(page_faults.time, "perf_counter_ns", now)
    monkeypatch.setattr(resource, "getrusage", usage)
    assert page_faults.measure_page_faults(Session(io.StringIO(), print), budget_ns=10_000) == {
        "faults": 10 * 480,
        "user_ns": 10 * (200_000 - 8_000),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="a thread's faults are counted on Linux")
def test_every_touch_of_a_fresh_page_is_a_fault() -> None:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    found = page_faults.measure_page_faults(Session(io.StringIO(), print), budget_ns=1_000_000)
    counted = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    assert found["faults"] % 480 == 0
    assert found["faults"] <= counted <= found["faults"] + 1_000


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted on Linux")
def test_a_fault_takes_what_the_fastest_fresh_round_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    # Fresh touches of 9 us, 480 us and 9 us, each with a warm one after it, of 7 us, 2 us and 5 us.
    readings = iter(np.cumsum([0, 9_000, 0, 7_000, 0, 480_000, 0, 2_000, 0, 9_000, 0, 5_000]).tolist())
    monkeypatch.setattr(page_faults.time, "perf_counter_ns", readings.__next__)
    assert fault_ns(rounds=3) == (9_000 - 2_000) / 480


def test_no_accounting_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_faults.sys, "platform", "darwin")
    assert page_faults.measure_page_faults(Session(io.StringIO(), print)) == {"faults": 0, "user_ns": 0}
    assert fault_ns() == 0
