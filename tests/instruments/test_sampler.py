from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.instruments.samples import sampler
from overhead_lens.instruments.samples.sampler import Sampling
from tests.machine.two_threads import two_threads
from tests.samplers.test_py_spy import stand_in


@pytest.mark.skipif(sys.platform != "linux", reason="threads are kept on cores on Linux only")
@pytest.mark.parametrize("threads", [False, True])
def test_the_target_and_the_sampler_share_a_core_that_no_other_thread_runs_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: bool,  # noqa: FBT001
) -> None:
    stand_in(tmp_path, monkeypatch, f"taskset -p $$ > {tmp_path}/mask; kill -STOP $$")
    own = os.sched_getaffinity(0)
    core = min(own)
    with two_threads() as (main, other):

        def state() -> list[Any]:
            return [os.sched_getaffinity(main), os.sched_getaffinity(other), os.sched_getscheduler(main)]

        assert state() == [own, own, os.SCHED_OTHER]
        with Sampling(main, 300, tmp_path, "clock-0", core, threads=threads):
            while not (tmp_path / "mask").exists() or not (mask := (tmp_path / "mask").read_text()):
                time.sleep(0.01)
            assert int(mask.split()[-1], 16) == 1 << core
            assert os.sched_getaffinity(0) == own
            # With a single core there is no other one.
            assert state() == [{core}, own - {core} or own, os.SCHED_BATCH if threads else os.SCHED_OTHER]
            assert os.sched_getscheduler(other) == os.SCHED_OTHER
        assert state() == [own, own, os.SCHED_OTHER]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are kept on cores on Linux only")
def test_the_core_is_the_quietest_one_if_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "kill -STOP $$")
    monkeypatch.setattr(sampler, "quietest_core", min)
    with two_threads() as (main, _), Sampling(main, 300, tmp_path, "clock-0"):
        assert os.sched_getaffinity(main) == {min(os.sched_getaffinity(0))}
