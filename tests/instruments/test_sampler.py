from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.samples import sampler
from overhead_lens.instruments.samples.sampler import SamplerRun, Sampling, explain_failure
from tests.machine.two_threads import two_threads

NO_PERMISSION = (
    "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
)


def sample(pid: int, sample_count: int, folder: Path, name: str) -> SamplerRun:
    with Sampling(pid, sample_count, folder, name) as sampling:
        return sampling.finish()


@pytest.mark.parametrize(("count", "rate", "seconds"), [(600, 300, 2), (1, 1, 1), (900, 300, 3)])
def test_so_many_stacks_in_whole_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, rate: int, seconds: int
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "f (a.py:1) 7" > "$last"\necho "Samples: 7 Errors: 0"')
    sample(123, count, tmp_path, "clock-0")
    asked = (tmp_path / "asked").read_text().split()
    assert asked[asked.index("--rate") :][:4] == ["--rate", str(rate), "--duration", str(seconds)]


@pytest.mark.parametrize(
    ("chatter", "line"),
    [
        ("Permission Denied: Try running again with elevated permissions by going 'sudo env ...'", NO_PERMISSION),
        ("Error: Operation not permitted (os error 1)\n", NO_PERMISSION),
        ("This program requires root on OSX.\n", NO_PERMISSION),
        (
            "Error: No such file or directory (os error 2)\n",
            "py-spy failed: Error: No such file or directory (os error 2)",
        ),
        ("Error: Failed to open /srv/venv/bin/python", "py-spy failed: Error: Failed to open /srv/venv/bin/python"),
        ("Error: os error 13x", "py-spy failed: Error: os error 13x"),
        (
            "py-spy> Sampling\nError: Failed to find python version\n\nStack backtrace:",
            "py-spy failed: Error: Failed to find python version",
        ),
        ("", "py-spy failed: it said nothing"),
    ],
)
def test_why_it_could_not_sample(chatter: str, line: str) -> None:
    assert explain_failure(chatter) == line


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, mode: int = 0o755) -> None:
    path = folder / "py-spy"
    path.write_text(f'#!/bin/sh\nfor each; do last="$each"; done\necho "$@" > {folder}/asked\n{script}\n')
    path.chmod(mode)
    monkeypatch.setattr(sampler, "find_sampler", lambda: str(path))


def test_what_is_asked_and_what_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    stand_in(tmp_path, monkeypatch, 'echo "f (/nowhere/a.py:1) 7" > "$last"\necho "py-spy> Samples: 7 Errors: 2"')
    assert sample(123, 2_500, folder, "clock-0") == SamplerRun("f (a.py:1) 7\n", 7, 2)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[: asked.index("--output")] == [
        *("record", "--native", "--idle", "--full-filenames", "--pid", "123", "--rate", "313", "--duration", "8"),
        *("--format", "raw"),
    ]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('echo "Permission Denied" >&2; exit 1', NO_PERMISSION),
        ('echo "Error: gone"; exit 1', "py-spy failed: Error: gone"),
        ('echo partial > "$last"; echo "Error: torn"; exit 1', "py-spy failed: Error: torn"),
        ("sleep 600", "py-spy did not finish within 1 s"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, line: str
) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    stand_in(tmp_path, monkeypatch, script)
    monkeypatch.setattr(sampler, "_START_S", 1.0)
    monkeypatch.setattr(sampler, "_SLOWEST_SAMPLE_S", 0.0)
    with pytest.raises(MeasurementError) as caught:
        sample(123, 10, folder, "clock-0")
    assert str(caught.value) == line
    assert list(folder.iterdir()) == []


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


def test_no_sampler_and_one_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "", mode=0o644)
    with pytest.raises(MeasurementError, match=r"^py-spy could not run: Permission denied"):
        sample(123, 10, tmp_path, "clock-0")
    monkeypatch.setattr(sampler, "find_sampler", lambda: None)
    with pytest.raises(MeasurementError, match=r"^py-spy is not installed \(pip install py-spy\)$"):
        sample(123, 10, tmp_path, "clock-0")


def test_found_beside_the_interpreter_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert sampler.find_sampler() is None
    (tmp_path / "bin").mkdir()
    for place in (tmp_path / "bin", tmp_path):
        (place / "py-spy").touch(mode=0o755)
        assert sampler.find_sampler() == str(place / "py-spy")
