"""The measuring worker as a process."""

from __future__ import annotations

import multiprocessing
import os
import sys

import pytest

from overhead_lens.worker.serve import free_children


def keep_on_a_core_and_fork(answers: multiprocessing.Queue[set[int]], *, freed: bool) -> None:
    if freed:
        free_children()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    child = multiprocessing.get_context("fork").Process(target=lambda: answers.put(os.sched_getaffinity(0)))
    child.start()
    child.join()


@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores")
@pytest.mark.parametrize("freed", [True, False])
def test_what_a_call_forks_runs_on_all_cores(freed: bool) -> None:
    everywhere = os.sched_getaffinity(0)
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    process = fork.Process(target=keep_on_a_core_and_fork, args=(answers,), kwargs={"freed": freed})
    process.start()
    process.join()
    assert answers.get(timeout=60) == (everywhere if freed else {min(everywhere)})
