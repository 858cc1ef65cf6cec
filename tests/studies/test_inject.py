"""A trace that a process makes of itself, asked for from outside: what it holds, what it leaves, and when there is none."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.other_process import OtherProcess
from overhead_lens.program import injected
from overhead_lens.studies.attach import inject as injecting
from overhead_lens.studies.attach.analysis import process_of
from overhead_lens.studies.attach.inject import Bounds, inject, require_injection
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.processes import draw_process, thread
from tests.drawn.stacks import CLASSIFIER
from tests.worker.warm import piped

PROGRAM = Path(__file__).with_name("injected.py")
UNTIL_IT_IS_STOPPED = Bounds(seconds=60, steps=10**9)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="remote debugging is tested on Linux")


class Target:
    """The program, and the way to have its main thread run a file."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._file, self._stderr = folder / "file", folder / "stderr"
        with self._stderr.open("wb") as stderr:
            self.process = piped([str(PROGRAM), str(self._file), *arguments], os.environ, stderr)
        self.itself = OtherProcess(self.process.pid, "a program", "3.14.0", "2.15.0")
        self.before = self.ask("state")

    def remote_exec(self, pid: int, path: str) -> None:
        assert pid == self.process.pid
        self._file.with_suffix(".py").write_text(Path(path).read_text())
        os.kill(pid, signal.SIGUSR1)

    def ask(self, *words: str) -> Any:
        self.tell(*words)
        return [self.answer() for _ in words][-1]

    def tell(self, *words: str) -> None:
        self.process.stdin.write("".join(f"{word}\n" for word in words))
        self.process.stdin.flush()

    def answer(self) -> Any:
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        self.process.stdin.close()
        try:
            code = self.process.wait(120)
        finally:
            self.process.kill()
        return code, self._stderr.read_text()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """It is injected into again and again, prints nothing but its answers, and ends by itself."""
    target = Target(tmp_path_factory.mktemp("program"))
    yield target
    assert target.end() == (0, "")


@pytest.fixture
def target(program: Target, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr(sys, "remote_exec", program.remote_exec, raising=False)
    return program


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders are shared with a process, in place of its /tmp."""
    folder = tmp_path / "root" / "tmp"
    folder.mkdir(parents=True)
    monkeypatch.setattr(injecting, "_root", lambda _: folder.parent)
    monkeypatch.setattr(injecting, "_seen_there", lambda folder, _: str(folder))
    return folder


def traced(target: Target, folder: Path, bounds: Bounds) -> list[str]:
    """Names of the events of a trace."""
    inject(target.itself, bounds, folder / "trace.json", threading.Event())
    return [event.get("name", "") for event in json.loads((folder / "trace.json").read_text())["traceEvents"]]


def gone(folder: Path) -> bool:
    end = time.monotonic() + 60
    while list(folder.iterdir()) and time.monotonic() < end:
        time.sleep(0.01)
    return not list(folder.iterdir())


def test_some_steps_are_recorded_and_nothing_stays(target: Target, tmp_path: Path, shared: Path) -> None:
    undisturbed = target.ask("train")
    for steps in (3, 7):
        target.tell("train")
        names = traced(target, tmp_path, Bounds(seconds=60, steps=steps))
        assert [name for name in names if name.startswith("ProfilerStep")] == [
            f"ProfilerStep#{each}" for each in range(steps)
        ]
        assert names.count("Optimizer.step#SGD.step") >= steps
        assert target.answer() == undisturbed
    assert gone(shared)
    assert target.ask("state") == target.before


@pytest.mark.parametrize(
    "bounds", [Bounds(seconds=0.05, steps=10**9), Bounds(seconds=60, steps=10**9, grown_bytes=1 << 22)]
)
def test_time_and_memory_end_it_too(target: Target, tmp_path: Path, bounds: Bounds) -> None:
    target.tell("train")
    assert "aten::addmm" in traced(target, tmp_path, bounds)
    target.answer()
    assert target.ask("state") == target.before


def test_it_ends_when_nobody_waits_for_it(target: Target, tmp_path: Path, shared: Path) -> None:
    undisturbed = target.ask("train")
    target.tell("train")
    interrupted = threading.Event()
    threading.Timer(0.2, interrupted.set).start()
    with pytest.raises(MeasurementError, match="no trace: interrupted; recording ends by itself"):
        inject(target.itself, UNTIL_IT_IS_STOPPED, tmp_path / "trace.json", interrupted)
    assert gone(shared)
    assert target.answer() == undisturbed
    assert target.ask("state") == target.before
    assert not (tmp_path / "trace.json").exists()


def test_the_programs_own_profiler_goes_first(target: Target, tmp_path: Path) -> None:
    target.tell("profile_meanwhile")
    traced(target, tmp_path, UNTIL_IT_IS_STOPPED)
    assert target.answer()
    for profiling in ("profile_for_long", "profile_by_schedule"):
        target.tell(profiling)
        time.sleep(0.5)
        with pytest.raises(MeasurementError, match="cannot be traced: it uses torch.profiler itself"):
            inject(target.itself, UNTIL_IT_IS_STOPPED, tmp_path / "trace.json", threading.Event())
        target.answer()
    assert target.ask("state") == target.before


def test_a_profiler_that_is_not_enabled_does_not_matter(target: Target, tmp_path: Path) -> None:
    target.tell("train_with_disabled_profiler")
    assert "Optimizer.step#SGD.step" in traced(target, tmp_path, Bounds(seconds=60, steps=3))
    target.answer()
    assert target.ask("state") == target.before


def test_regions_that_outlive_the_trace(target: Target, tmp_path: Path) -> None:
    target.tell("stay_in_regions", "train")
    names = traced(target, tmp_path, Bounds(seconds=0.1, steps=10**9))
    assert {"outer", "inner"} <= set(names)
    assert target.answer()
    target.answer()
    assert target.ask("state") == target.before


def test_it_begins_and_ends_between_backward_passes(target: Target, tmp_path: Path) -> None:
    for _ in range(3):
        target.tell("go_backward")
        assert "SlowBackward" in traced(target, tmp_path, Bounds(seconds=0.1, steps=10**9))
        assert target.answer()
    assert target.ask("state") == target.before


def test_a_child_records_nothing(target: Target, tmp_path: Path) -> None:
    target.tell("fork")
    traced(target, tmp_path, Bounds(seconds=0.1, steps=10**9))
    assert target.answer() == [False, 16.0, "record_function.__exit__"]


def test_a_thread_that_waits_is_left_alone(
    target: Target, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injecting, "_ANSWER_S", 0.2)
    target.tell("wait_in_c")
    time.sleep(0.3)
    later = "what was asked of it removes itself when the thread runs again"
    with pytest.raises(MeasurementError, match=f"its main thread did not answer within 0.2 s; {later}"):
        inject(target.itself, UNTIL_IT_IS_STOPPED, tmp_path / "trace.json", threading.Event())
    assert len(list(shared.iterdir())) == 1
    target.answer()
    assert gone(shared)
    assert target.ask("state") == target.before


def test_inductor_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(tmp_path)
    monkeypatch.setattr(sys, "remote_exec", target.remote_exec, raising=False)
    target.tell("stay_in_regions")
    traced(target, tmp_path, Bounds(seconds=0.1, steps=10**9))
    assert target.answer()
    assert not target.ask("has_inductor")
    assert target.end() == (0, "")


def test_a_program_that_ends_writes_its_trace_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(tmp_path, "500")
    monkeypatch.setattr(sys, "remote_exec", target.remote_exec, raising=False)
    target.process.stdin.close()
    names = traced(target, tmp_path, UNTIL_IT_IS_STOPPED)
    assert "ProfilerStep#0" in names
    # The window that the end cuts is no step.
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = [each["ts"] for each in events if each.get("name") == "Optimizer.step#SGD.step"]
    steps = [each for each in events if each.get("name", "").startswith("ProfilerStep#")]
    assert {sum(each["ts"] < at < each["ts"] + each["dur"] for at in calls) for each in steps} == {1}
    assert names.count(f"cut-off step {len(steps)}") == 1
    assert target.end() == (0, "")


def test_a_process_that_refuses_or_is_gone(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("Remote debugging is not enabled in the remote process")

    monkeypatch.setattr(sys, "remote_exec", refuse, raising=False)
    with subprocess.Popen(["sleep", "60"]) as process:
        itself = OtherProcess(process.pid, "sleep 60", "3.14.0", None)
        with pytest.raises(MeasurementError, match="cannot be traced: Remote debugging is not enabled in the remote"):
            inject(itself, Bounds(), tmp_path / "trace.json", threading.Event())
        monkeypatch.setattr(sys, "remote_exec", lambda *_: process.kill())
        with pytest.raises(MeasurementError, match=f"process {process.pid} cannot be traced: it has ended"):
            inject(itself, Bounds(), tmp_path / "trace.json", threading.Event())
    assert not list(shared.iterdir())


@pytest.mark.parametrize(
    ("python", "theirs"), [("3.13.2", "Python 3.13.2"), (None, "an unknown one"), ("3.140.1", "Python 3.140.1")]
)
def test_the_same_python_is_needed(python: str | None, theirs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", _Version())
    monkeypatch.setattr(sys, "remote_exec", lambda *_: None, raising=False)
    require_injection(OtherProcess(7, "x", "3.14.0", None))
    with pytest.raises(UsageError) as refused:
        require_injection(OtherProcess(7, "x", python, None))
    assert str(refused.value) == (
        f"--trace needs the same Python in both processes: this one runs Python 3.14, process 7 {theirs}"
    )


class _Version:
    major, minor = 3, 14


def test_an_older_python_cannot_inject(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "remote_exec", raising=False)
    with pytest.raises(
        UsageError, match="--trace needs Python 3.14 or newer in both processes; this one runs Python 3"
    ):
        require_injection(OtherProcess(7, "x", "3.14.0", None))


# ---------------------------------------------------------------- beside the watch
def with_trace(folder: Path, pid: int) -> Path:
    """A watch of 70 % Python and 30 % waiting, and a trace of 100 us of which an operator takes 40."""
    stored = draw_process(folder, *thread(pid, "MainThread", 700, 300), pid=pid)
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": pid, "tid": pid, "ts": 0, "dur": 100}
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": pid, "tid": pid, "ts": 10, "dur": 40}
    with gzip.open(stored / "kineto.json.gz", "wt") as file:
        json.dump({"traceEvents": [step, operator]}, file)
    return stored


def test_both_stand_side_by_side(tmp_path: Path) -> None:
    stored = with_trace(tmp_path / "p", 10)
    process = process_of(stored, CLASSIFIER)
    assert process.traced is not None
    assert (process.traced.file, process.traced.wall_ns, process.traced.steps) == ("kineto.json.gz", 100_000, 1)
    assert {each.category: each.ns for each in process.traced.host if each.ns} == {
        "python": 60_000,
        "dispatcher": 40_000,
    }
    document = validated(process.to_json())
    assert {each["category"]: each["share"] for each in document["trace"]["host"] if each["ns"]} == {
        "python": 0.6,
        "dispatcher": 0.4,
    }
    text = lens("report", stored, cwd=tmp_path).stdout
    lines = text[text.index("MainThread sampled, and traced for 100.0 µs (1 step)") :].splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["python", "70.0%", *lines[2].split()[2:5], "60.0%", "differs"],
        ["dispatcher", "0.0%", *lines[3].split()[2:5], "40.0%", "differs"],
        ["wait", "30.0%", *lines[4].split()[2:5], "0.0%", "differs"],
    ]


def test_a_trace_of_another_thread_is_none_of_it(tmp_path: Path) -> None:
    stored = with_trace(tmp_path / "p", 10)
    other = gzip.decompress((stored / "kineto.json.gz").read_bytes()).replace(b'"tid": 10', b'"tid": 11')
    (stored / "kineto.json.gz").write_bytes(gzip.compress(other))
    process = process_of(stored, CLASSIFIER)
    assert process.traced is None
    assert "trace" not in validated(process.to_json())


def test_top_stores_nothing_so_it_traces_nothing(tmp_path: Path) -> None:
    done = lens("attach", "1", "--top", "--trace", cwd=tmp_path)
    assert error_line(done) == "--trace has no effect with --top, which stores nothing"


@pytest.mark.parametrize("before", range(8))
def test_a_cut_step_is_renamed_wherever_the_file_is_read_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(injected, "_CHUNK_BYTES", 20)
    recording = object.__new__(injected._Recording)
    recording._steps = 12
    path = tmp_path / "trace.json"
    text = f'{" " * before}["ProfilerStep#10", "ProfilerStep#11", "ProfilerStep#111", "ProfilerStep#11", "ProfilerStep#11"]'
    path.write_text(text)
    recording._rename_cut_step(path)
    assert path.read_text() == text.replace('"ProfilerStep#11"', '"cut-off step 11"')
