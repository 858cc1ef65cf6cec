from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.samples import sampler
from overhead_lens.instruments.samples.sampler import Sampling
from overhead_lens.samplers import py_spy
from overhead_lens.samplers.py_spy import PySpy, explain_failure
from overhead_lens.samplers.sampler import SamplerRun, Watch

NO_PERMISSION = (
    "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
)


def sample(pid: int, sample_count: int, folder: Path, name: str) -> SamplerRun:
    with Sampling(pid, sample_count, folder, name) as sampling:
        return sampling.finish()


UNTIL_STOPPED = """trap 'printf "f (a.py:1) 7" > "$last"; echo "Samples: 7 Errors: 1"; exit' INT
echo "py-spy> Sampling process 300 times a second"
while :; do sleep 0.01; done"""


@pytest.mark.parametrize(("count", "seconds"), [(540, 2.0), (135, 0.5), (0, 0.0)])
def test_it_is_stopped_when_there_are_stacks_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, seconds: float
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(sampler.time, "sleep", waited.append)
    monkeypatch.setattr(sampler.time, "monotonic_ns", lambda: 5_000_000_000)
    stand_in(tmp_path, monkeypatch, UNTIL_STOPPED)
    with Sampling(123, count, tmp_path, "clock-0") as sampling:
        sampling.wait_until_begun()
        # It keeps pace since a tenth of a second.
        sampling.end(since_ns=4_900_000_000)
        assert sampling.finish() == SamplerRun("f (a.py:1) 7", 7, 1)
    assert waited == [pytest.approx(max(0.0, seconds - 0.1))]
    asked = (tmp_path / "asked").read_text().split()
    assert asked[asked.index("--rate") + 1] == "300"
    assert "--duration" not in asked


def test_what_it_does_after_its_stacks_are_written_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "f (a.py:1) 7" > "$last"\necho "Samples: 7 Errors: 0"\nkill -STOP $$')
    assert sample(123, 1, tmp_path, "clock-0").sample_count == 7


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
    monkeypatch.setattr(py_spy, "find_sampler", lambda: str(path))


def test_what_is_asked_and_what_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    stand_in(tmp_path, monkeypatch, 'echo "f (a.py:1) 7" > "$last"\necho "py-spy> Samples: 7 Errors: 2"')
    assert sample(123, 25, folder, "clock-0") == SamplerRun("f (a.py:1) 7\n", 7, 2)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[: asked.index("--output")] == [
        *("record", "--native", "--idle", "--full-filenames", "--pid", "123", "--rate", "300", "--format", "raw"),
    ]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('echo "Permission Denied" >&2; exit 1', NO_PERMISSION),
        ('echo "Error: gone"; exit 1', "py-spy failed: Error: gone"),
        ('echo partial > "$last"; echo "Error: torn"; exit 1', "py-spy failed: Error: torn"),
        ('echo "Samples: 0 Errors: 3"; : > "$last"', "py-spy took no stack"),
        ("sleep 600", "py-spy did not finish within 1 s"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, line: str
) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    stand_in(tmp_path, monkeypatch, script)
    monkeypatch.setattr(py_spy, "_START_S", 1.0)
    monkeypatch.setattr(py_spy, "_SLOWEST_SAMPLE_S", 0.0)
    with pytest.raises(MeasurementError) as caught:
        sample(123, 10, folder, "clock-0")
    assert str(caught.value) == line
    assert list(folder.iterdir()) == []


def begun(folder: Path, watch: Watch) -> SamplerRun:
    with PySpy().start(watch) as running:
        running.wait_until_begun()
        running.stop()
        return running.finish()


def test_stopped_it_writes_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        'trap \'echo "f (a.py:1) 3" > "$last"; echo "Samples: 3 Errors: 0"; exit\' INT\n'
        'echo "py-spy> Sampling process 50 times a second"\nwhile :; do sleep 0.01; done'
    )
    stand_in(tmp_path, monkeypatch, script)
    watch = Watch(123, 50, None, tmp_path / "raw", subprocesses=True, native=False)
    assert begun(tmp_path, watch) == SamplerRun("f (a.py:1) 3\n", 3, 0)
    asked = (tmp_path / "asked").read_text().split()
    options = ["--threads", "--subprocesses", "--idle", "--full-filenames", "--pid", "123", "--rate", "50"]
    options += ["--format", "raw", "--output"]
    assert asked == ["record", *options, str(tmp_path / "raw")]
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('echo "Error: Permission denied (os error 13)"; exit 1', NO_PERMISSION),
        ("exec sleep 600", "py-spy did not begin within 1 s"),
    ],
)
def test_what_does_not_begin_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, line: str) -> None:
    stand_in(tmp_path, monkeypatch, script)
    monkeypatch.setattr(py_spy, "_START_S", 1.0)
    with pytest.raises(MeasurementError) as caught:
        begun(tmp_path, Watch(123, 50, 9, tmp_path / "raw"))
    assert str(caught.value) == line


def test_no_sampler_and_one_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "", mode=0o644)
    with pytest.raises(MeasurementError, match=r"^py-spy could not run: Permission denied"):
        sample(123, 10, tmp_path, "clock-0")
    monkeypatch.setattr(py_spy, "find_sampler", lambda: None)
    with pytest.raises(MeasurementError, match=r"^py-spy is not installed \(pip install py-spy\)$"):
        sample(123, 10, tmp_path, "clock-0")


def test_found_beside_the_interpreter_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(py_spy.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert py_spy.find_sampler() is None
    (tmp_path / "bin").mkdir()
    for place in (tmp_path / "bin", tmp_path):
        (place / "py-spy").touch(mode=0o755)
        assert py_spy.find_sampler() == str(place / "py-spy")
