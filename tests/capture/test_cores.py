"""Where the threads of measured processes run."""

from __future__ import annotations

import os
import sys

import pytest

from overhead_lens.capture import cores
from tests.capture.target import two_threads

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores"
)


def where(threads: tuple[int, int]) -> list[set[int]]:
    return [os.sched_getaffinity(thread) for thread in threads]


def test_main_threads_share_a_core_that_no_other_thread_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.sched_getaffinity(0)
    core = min(own)
    monkeypatch.setattr(cores, "quietest_core", lambda allowed: min(allowed))
    with two_threads() as one, two_threads() as two:
        cores.share_one_core([one[0], two[0]])
        assert where(one) == where(two) == [{core}, own - {core}]


def test_the_other_threads_leave_the_core_that_the_main_one_comes_to() -> None:
    own = os.sched_getaffinity(0)
    first, second, *_ = sorted(own)
    with two_threads() as target:
        cores.set_apart(target[0], first)
        os.sched_setaffinity(target[1], {second})
        before = cores.set_apart(target[0], second)
        assert before == dict(zip(target, [{first}, {second}], strict=True))
        assert where(target) == [{second}, own - {second}]
        cores.put_back(before)
        assert where(target) == [{first}, {second}]


def test_a_process_that_has_ended_has_no_threads() -> None:
    with two_threads() as target:
        before = cores.set_apart(target[0], min(os.sched_getaffinity(0)))
    assert len(before) == 2
    assert cores.set_apart(target[0], 0) == {}
    cores.put_back(before)
