"""How many calls a recording holds, and when it is exported."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from overhead_lens.instruments.trace import worker as profiler
from overhead_lens.instruments.trace.worker import calls_recorded
from overhead_lens.torch_profiler import profiling
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.workload import Workload
from tests.worker.answering import session_of
from tests.worker.warm import ended


@pytest.mark.parametrize(
    ("call_ns", "events", "calls"),
    [
        (100, 1, 2_000),
        (14_900, 1, 2_000),
        (15_100, 1, 1_986),
        (1_000_000, 5, 30),
        (7_000_000, 5, 4),
        (13_000_000, 5, 4),
        (50_000_000, 5, 2),
        (200_000_000, 5, 1),
        # 20 MB, 400 bytes an event.
        (1_000_000, 5_000, 10),
        (50_000_000, 140_000, 1),
    ],
)
def test_calls_of_a_recording(call_ns: float, events: int, calls: int) -> None:
    assert calls_recorded(call_ns, events) == calls


def test_a_call_that_the_warm_up_found_too_slow_is_timed_again(tmp_path: Path) -> None:
    class OfTenMilliseconds(Workload):
        def run(self, count: int) -> int:
            super().run(count)
            return 10_000_000 * count

    workload = OfTenMilliseconds(None, "", None, int, None, (), "cpu", make_measured_loop(0), None, None)
    # By the second that the warm-up found, one call would be recorded.
    assert profiler.record_trace(session_of(workload, 1e9), str(tmp_path), 0)["calls"] == 4


def test_a_recording_is_exported_before_the_next_one_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walls_ns = {False: iter([0, 50, 30, 40, 20]), True: iter([0, 10])}
    recorded: list[Recorded] = []

    class Recorded:
        def __init__(self, with_stack: bool) -> None:
            self.run = profiler._Run(next(walls_ns[with_stack]), 0)
            recorded.append(self)

        def export_chrome_trace(self, path: str) -> None:
            # The next one would take the times of this one's device events.
            assert recorded[-1] is self
            Path(path).write_text(str(self.run.wall_ns))

    def record(_workload: object, _calls: int, *, with_stack: bool) -> tuple[Recorded, profiler._Run]:
        made = Recorded(with_stack)
        return made, made.run._replace(events=1)

    monkeypatch.setattr(profiler, "_profile", record)
    monkeypatch.setattr(profiler, "_LEAST_REPEATS", 4)
    workload = Workload(None, "", None, int, None, (), "cpu", make_measured_loop(0), None, None)
    traced = profiler.record_trace(session_of(workload, 1e6), str(tmp_path), 0)
    assert traced["traced_wall_ns"] == 20
    kept = {path.name: gzip.decompress(path.read_bytes()) for path in tmp_path.iterdir()}
    assert kept == {"kineto.json.gz": b"20", "kineto_stack.json.gz": b"10"}


RECORDS = """
import sys
from functools import partial
from overhead_lens.correction.worker import _row, _timed
from overhead_lens.instruments.trace.worker import record_trace
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.session import Session
from overhead_lens.worker.workload import Workload

session = Session(sys.stdin, print)
session.workload = Workload(None, "", None, int, None, (), "cpu", make_measured_loop(0), None, None)
session.call_ns = 1e9
print(record_trace(session, sys.argv[1], 0)["calls"] > 0, _row(partial(_timed, make_measured_loop(0), int, 10), 10)["traced_ns"] != [])
print("torch._inductor" in sys.modules)
"""


def test_a_torch_with_its_profiler_elsewhere_records_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for elsewhere in ({}, {"torch.profiler.profiler": ModuleType("profiler")}):
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "torch.profiler.profiler")
            for name, module in elsewhere.items():
                patch.setitem(sys.modules, name, module)
            with profiling(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                torch.ones(1).neg()
        assert "aten::neg" in {event.name for event in profile.events()}


def test_recording_does_not_import_inductor(tmp_path: Path) -> None:
    assert ended("-c", RECORDS, tmp_path, cwd=tmp_path).stdout == "True True\nFalse\n"
