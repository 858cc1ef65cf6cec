"""The recorder of a run, with a stand-in of its sampler."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.studies.run import record
from overhead_lens.studies.run.record import Program, record_run
from overhead_lens.studies.run.stored import read_run


def test_the_time_in_which_the_sampler_ends_is_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending_ns: list[int] = []

    class Sampler(SimpleNamespace):
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            ending_ns.append(time.perf_counter_ns())

    fields = {"wait_s": 0.01, "attend": lambda: None, "sampled": [], "reason": "", "unplaced": "", "running": {}}
    monkeypatch.setattr(record, "RunSampler", lambda *_: Sampler(**fields))
    script = tmp_path / "killed.py"
    script.write_text("import os\nos._exit(3)\n", encoding="utf-8")
    path, code = record_run(Program([str(script)]), tmp_path / "run", tmp_path)
    meta = read_run(path).meta
    assert code == 3
    assert 0 < meta.begun_ns < meta.begun_ns + meta.wall_ns <= ending_ns[0]
