from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.samples import sampler
from overhead_lens.instruments.samples.sampler import Sampling
from overhead_lens.machine.other_process import thread_states
from overhead_lens.samplers import py_spy
from overhead_lens.samplers.py_spy import PySpy, explain_failure, start_py_spy
from overhead_lens.samplers.sampler import NoStackError, NotPermittedError, SamplerRun, Watch, folded
from tests.drawn.speedscope import speedscope

NO_PERMISSION = (
    "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
)


STACKS = ("f (a.py:1)", "f (a.py:1);add (libtorch_cpu.so)", "f (a.py:1)")
WRITES = 'cp "$stacks" "$last"\n'


def sample(pid: int, sample_count: int, folder: Path, name: str) -> SamplerRun:
    with Sampling(pid, sample_count, folder, name) as sampling:
        return sampling.finish()


UNTIL_STOPPED = """trap 'cp "$stacks" "$last"; echo "Samples: 7 Errors: 1"; exit' INT
echo "py-spy> Sampling process 300 times a second"
while :; do sleep 0.01; done"""


@pytest.mark.parametrize(
    ("count", "threads", "seconds", "rate"),
    [(540, False, 2.0, "300"), (135, False, 0.5, "300"), (0, False, 0.0, "300"), (540, True, 3.0, "100")],
)
def test_it_is_stopped_when_there_are_stacks_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    threads: bool,
    seconds: float,
    rate: str,  # noqa: FBT001
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(sampler.time, "sleep", waited.append)
    monkeypatch.setattr(sampler.time, "monotonic_ns", lambda: 5_000_000_000)
    stand_in(tmp_path, monkeypatch, UNTIL_STOPPED)
    with Sampling(123, count, tmp_path, "clock-0", threads=threads) as sampling:
        sampling.wait_until_begun()
        # It keeps pace since a tenth of a second.
        sampling.end(since_ns=4_900_000_000)
        assert sampling.finish() == SamplerRun((STACKS, ("g (b.py:2)",)), 7, 1)
    assert waited == [pytest.approx(max(0.0, seconds - 0.1))]
    asked = (tmp_path / "asked").read_text().split()
    assert asked[asked.index("--rate") + 1] == rate
    assert "--duration" not in asked


def test_what_it_does_after_its_stacks_are_written_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, WRITES + 'echo "Samples: 7 Errors: 0"\nkill -STOP $$')
    assert sample(123, 1, tmp_path, "clock-0").sample_count == 7


@pytest.mark.parametrize(
    ("chatter", "line"),
    [
        ("Permission Denied: Try running again with elevated permissions by going 'sudo env ...'", NO_PERMISSION),
        ("Error: Operation not permitted (os error 1)\n", NO_PERMISSION),
        ("This program requires root on OSX.\n", NO_PERMISSION),
        (
            "Collecting stack traces from native extensions (`--native`) is not supported on your platform.\n",
            "py-spy has no native frames on this system",
        ),
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
    """A program in py-spy's place, which may copy ``$stacks`` or ``$nothing`` to the file that is asked for, ``$last``."""
    path, files = folder / "py-spy", {"stacks": speedscope(STACKS, ["g (b.py:2)"]), "nothing": speedscope()}
    for name, content in files.items():
        (folder / name).write_text(content)
    names = "".join(f"{name}={folder}/{name}\n" for name in files)
    path.write_text(f'#!/bin/sh\nfor each; do last="$each"; done\n{names}echo "$@" > {folder}/asked\n{script}\n')
    path.chmod(mode)
    monkeypatch.setattr(py_spy, "find_sampler", lambda: str(path))


def test_what_is_asked_and_what_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    stand_in(tmp_path, monkeypatch, WRITES + 'echo "py-spy> Samples: 7 Errors: 2"')
    taken = sample(123, 25, folder, "clock-0")
    assert taken == SamplerRun((STACKS, ("g (b.py:2)",)), 7, 2)
    assert folded(taken.sequences) == "f (a.py:1) 2\nf (a.py:1);add (libtorch_cpu.so) 1\ng (b.py:2) 1\n"
    asked = (tmp_path / "asked").read_text().split()
    assert asked[: asked.index("--output")] == [
        *("record", "--native", "--idle", "--full-filenames", "--pid", "123", "--rate", "300"),
        *("--format", "speedscope"),
    ]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('echo "Permission Denied" >&2; exit 1', NO_PERMISSION),
        ('echo "Error: gone"; exit 1', "py-spy failed: Error: gone"),
        ('echo partial > "$last"; echo "Error: torn"; exit 1', "py-spy failed: Error: torn"),
        ('cp "$nothing" "$last"; echo "Samples: 0 Errors: 3"', "py-spy took no samples"),
        (
            ': > "$last"; echo "Samples: 3 Errors: 0"',
            "py-spy's stacks could not be read: not a speedscope file: Input data was truncated",
        ),
        ("sleep 600", "py-spy did not finish within 1 s"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, line: str
) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    stand_in(tmp_path, monkeypatch, script)
    monkeypatch.setattr(py_spy, "_START_S", 1.0 if script == "sleep 600" else 60.0)
    monkeypatch.setattr(py_spy, "_SLOWEST_SAMPLE_S", 0.0)
    with pytest.raises(MeasurementError) as caught:
        sample(123, 10, folder, "clock-0")
    assert (str(caught.value), isinstance(caught.value, NoStackError)) == (line, line == "py-spy took no samples")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("asked", [True, False])
def test_one_that_is_stopped_before_it_can_answer_took_no_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    # Not ``sleep``: the shell would wait for it first.
    stand_in(tmp_path, monkeypatch, 'echo "py-spy> Sampling process"; while :; do :; done')
    with start_py_spy(Watch(123, 100, None, tmp_path / "stacks")) as running:
        running.wait_until_begun()
        if asked:
            running.stop()
        else:
            os.kill(running.pid, signal.SIGINT)
        with pytest.raises(MeasurementError) as caught:
            running.finish()
    found = (str(caught.value), isinstance(caught.value, NoStackError))
    assert found == (("py-spy took no samples", True) if asked else ("py-spy was ended by SIGINT", False))


def begun(folder: Path, watch: Watch) -> SamplerRun:
    with start_py_spy(watch) as running:
        running.wait_until_begun()
        running.stop()
        return running.finish()


def test_stopped_it_writes_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, UNTIL_STOPPED)
    watch = Watch(123, 50, None, tmp_path / "raw", subprocesses=True)
    assert begun(tmp_path, watch) == SamplerRun((STACKS, ("g (b.py:2)",)), 7, 1)
    asked = (tmp_path / "asked").read_text().split()
    options = ["--native", "--threads", "--subprocesses", "--idle", "--full-filenames", "--pid", "123", "--rate", "50"]
    options += ["--format", "speedscope", "--output"]
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


# ---------------------------------------------------------------- resting


def is_stopped(running: PySpy) -> bool:
    return {thread.state for thread in thread_states(running.pid)} == {"T"}


@pytest.fixture
def looping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PySpy]:
    """A sampler that has begun."""
    stand_in(tmp_path, monkeypatch, UNTIL_STOPPED)
    with start_py_spy(Watch(123, 50, None, tmp_path / "raw")) as running:
        running.wait_until_begun()
        yield running


@pytest.mark.skipif(sys.platform != "linux", reason="proc(5) is Linux's")
def test_it_rests_and_goes_on(looping: PySpy, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([True, True, False])
    monkeypatch.setattr(py_spy, "_is_held", lambda pid: next(looks))
    assert not is_stopped(looping)
    looping.pause()
    # Twice it was stopped while it held its target, and went on.
    assert (next(looks, None), is_stopped(looping), looping.over) == (None, True, False)
    looping.resume()
    assert not is_stopped(looping)
    monkeypatch.setattr(py_spy, "_is_held", lambda pid: False)
    looping.pause()
    looping.stop()
    assert looping.finish().sample_count == 7
    while not looping.over:
        time.sleep(0.001)
    looping.pause()
    looping.resume()
    looping.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="proc(5) is Linux's")
def test_one_that_never_lets_go_is_an_error_and_goes_on(looping: PySpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(py_spy, "_is_held", lambda pid: True)
    monkeypatch.setattr(py_spy, "_PAUSE_S", 0.0)
    with pytest.raises(MeasurementError, match=r"^py-spy does not release its target$"):
        looping.pause()
    assert not is_stopped(looping)


ROOMS = """
import os, sys
def stay(name):
    while not os.path.exists(name):
        pass
def bare():
    stay("second")
print(flush=True)
stay("first")
bare()
print(flush=True)
stay("third")
"""


@contextmanager
def rooms(folder: Path) -> Iterator[tuple[int, Callable[[str], None]]]:
    """A process that goes on when a file is there: ``enter`` creates it and returns when the process has gone on."""
    command = [sys.executable, "-c", ROOMS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder) as process:
        assert process.stdout is not None
        process.stdout.readline()

        def enter(name: str) -> None:
            (folder / name).touch()
            if name == "second":
                process.stdout.readline()  # type: ignore[union-attr]
            time.sleep(0.1)

        yield process.pid, enter
        process.kill()


@pytest.mark.measures
def test_the_real_one_takes_no_stack_while_it_rests(tmp_path: Path) -> None:
    folder = tmp_path / "rooms"
    folder.mkdir()
    with rooms(folder) as (pid, enter), start_py_spy(Watch(pid, 100, None, tmp_path / "raw", bound=True)) as running:
        try:
            running.wait_until_begun()
        except NotPermittedError as refused:
            pytest.skip(f"processes cannot be watched here: {refused}")
        time.sleep(1.0)
        running.pause()
        assert {thread.tracer for thread in thread_states(pid)} == {0}
        enter("first")
        time.sleep(1.0)
        enter("second")
        running.resume()
        time.sleep(1.0)
        running.pause()
        running.stop()
        run = running.finish()
    (stacks,) = run.sequences
    assert {stack for stack in stacks if "bare" in stack} == set()
    rooms_seen = [stack.rpartition("<module>")[2].partition(")")[0] for stack in stacks if "stay" in stack]
    assert list(dict.fromkeys(rooms_seen)) == [" (<string>:9", " (<string>:12"]


@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="this system does not tell what a process waits in")
@pytest.mark.parametrize(
    ("does", "children", "is_due"),
    [
        ("os.execvp('sleep', ['sleep', '600'])", False, False),
        ("exec('while True: pass')", False, True),
        ("sys.stdin.read()", False, True),
        # One thread looks for new children.
        ("sleep(600)", True, True),
        ("threading.Thread(target=sleep, args=(600,)).start(); sleep(600)", True, False),
    ],
)
def test_it_has_caught_up_when_it_sleeps(tmp_path: Path, does: str, children: bool, is_due: bool) -> None:
    # Python's own sleep is select(2) before 3.11.
    imports = "import ctypes, os, sys, threading; sleep = ctypes.CDLL(None).sleep"
    command = [sys.executable, "-c", f"{imports}; print(flush=True); {does}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            running = py_spy.PySpy(process, Watch(1, 100, None, tmp_path / "output", children))
            for _ in range(100 if is_due else 10_000):
                if running.caught_up:
                    break
                time.sleep(0.001)
            assert running.caught_up is not is_due
        finally:
            process.kill()
