"""The recorder of a run, with a stand-in of its sampler."""

import errno
import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.errors import MeasurementError
from overhead_lens.program.area import FILE, Area, Phase, StepRecord
from overhead_lens.studies.run import record
from overhead_lens.studies.run.record import NotStoredError, Program, record_run
from overhead_lens.studies.run.stored import Place, read_run


@pytest.fixture
def ending_ns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """When each stand-in of a sampler ended; it takes no stacks."""
    ending_ns: list[int] = []

    class Sampler(SimpleNamespace):
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            ending_ns.append(time.perf_counter_ns())

    fields = {
        "wait_s": 0.01,
        "attend": lambda: None,
        "sampled": [],
        "reason": "",
        "unplaced": "",
        "rested": SimpleNamespace(running={}, in_system={}),
    }
    monkeypatch.setattr(record, "RunSampler", lambda *_: Sampler(**fields))
    return ending_ns


def test_the_time_in_which_the_sampler_ends_is_not_the_programs(tmp_path: Path, ending_ns: list[int]) -> None:
    script = tmp_path / "killed.py"
    script.write_text("import os\nos._exit(3)\n", encoding="utf-8")
    path, code = record_run(Program([str(script)]), tmp_path / "run", tmp_path)
    meta = read_run(path).meta
    assert code == 3
    assert 0 < meta.begun_ns < meta.begun_ns + meta.wall_ns <= ending_ns[0]


@pytest.mark.usefixtures("ending_ns")
def test_a_signal_that_follows_the_programs_end_leaves_the_run_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, seen = record._write, []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("a second one"))
    monkeypatch.setattr(record, "_write", lambda *given: (signal.raise_signal(signal.SIGUSR1), write(*given)))
    (tmp_path / "ends.py").touch()
    try:
        path, _ = record_run(Program([str(tmp_path / "ends.py")]), tmp_path / "run", tmp_path)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (read_run(path).meta.exit_code, seen) == (0, [])


@pytest.mark.usefixtures("ending_ns")
def test_the_program_goes_on_when_the_recorder_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", None)
    (tmp_path / "ends.py").write_text("import time\ntime.sleep(0.5)\nraise SystemExit(3)\n", encoding="utf-8")
    with pytest.raises(NotStoredError, match="internal error") as failure:
        record_run(Program([str(tmp_path / "ends.py")]), tmp_path / "run", tmp_path)
    assert failure.value.code == 3


def test_a_disk_without_room_for_the_steps_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fallocate(file: int, *_: int) -> None:
        os.write(file, b"what there was room for")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", fallocate, raising=False)
    script = tmp_path / "ends.py"
    script.touch()
    with pytest.raises(MeasurementError, match="cannot write to .*: No space left on device"):
        record_run(Program([str(script)]), tmp_path / "new" / "run", tmp_path)
    assert [*tmp_path.iterdir()] == [script]


@pytest.mark.usefixtures("ending_ns")
def test_the_room_of_the_steps_is_free_when_the_run_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def notes(folder: Path) -> None:
        assert not (folder / FILE).exists()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(record, "_notes", notes)
    (tmp_path / "ends.py").touch()
    with pytest.raises(NotStoredError, match="cannot write to .*: No space left on device"):
        record_run(Program([str(tmp_path / "ends.py")]), tmp_path / "run", tmp_path)


BURN = "import time\nwhile time.process_time() < {:.1f}:\n    pass\n"
COMPUTED = re.compile(
    r"child processes computed for (?P<children>\d\.\d+) s, the program itself for (?P<own>\d.*): steps are looked for in the"
    r" program only"
)


@pytest.mark.usefixtures("ending_ns")
@pytest.mark.parametrize(("own_s", "child_s", "said"), [(0.0, 1.5, True), (1.5, 0.1, False)])
def test_work_in_child_processes_is_said(own_s: float, child_s: float, said: bool, tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN.format(child_s)!r}])\n"
    script.write_text(child + BURN.format(own_s), encoding="utf-8")
    path, _ = record_run(Program([str(script)]), tmp_path / "run", tmp_path)
    warnings = [COMPUTED.fullmatch(warning) for warning in read_run(path).meta.warnings if "child" in warning]
    assert len(warnings) == said
    assert all(match is not None and float(match["children"]) >= child_s for match in warnings)


@pytest.mark.parametrize(("others", "advice"), [("optimizer", "; --step names a line that all pass"), ("thread", "")])
@pytest.mark.parametrize(
    ("others_ns", "last_ns", "said"),
    [(0, 0, []), (21_000_000, 0, []), (33_000_000, 0, ["12.00 ms"]), (33_000_000, 32_000_000, [])],
)
def test_another_optimizer_or_thread_that_goes_on_after_the_steps_is_said(
    others_ns: int, last_ns: int, said: list[str], others: str, advice: str
) -> None:
    rows = [StepRecord(begin_ns, begin_ns + 10_000_000, Phase.BARE, *(7 * [0])) for begin_ns in (1_000_000, 11_000_000)]
    notes = {"others_ns": others_ns, "others": others}
    assert [*record._other_steps(rows, last_ns, notes)] == [
        f"another {others} went on for {time} after the last step: what it did is not in the budget{advice}"
        for time in said
    ]
    assert [*record._other_steps([], last_ns, notes)] == []


def test_launches_that_an_earlier_recording_slows_are_said(tmp_path: Path) -> None:
    area = Area.create(tmp_path)
    warning = "devices were recorded during earlier steps, which slows the launches of these"
    said = [warning in record._warnings(Program(["train.py"]), area, {"slowed": slowed}, 0) for slowed in (True, False)]
    assert said == [True, False]


@pytest.mark.parametrize(
    ("notes", "warning"),
    [
        ({}, "the program ended without shutting Python down (os._exit, os.exec): what came after is not seen"),
        ({"defect": "KeyError: 1"}, "watching ended early because of an internal error: KeyError: 1"),
        (
            {"interrupted": "TimeoutError: late"},
            "watching ended early: a signal handler raised an error between two steps, TimeoutError: late",
        ),
    ],
)
def test_why_the_programs_end_is_not_seen(tmp_path: Path, notes: dict[str, str], warning: str) -> None:
    found = record._warnings(Program(["train.py"]), Area.create(tmp_path), notes, 0)
    assert [each for each in found if "CPUs" not in each] == [warning]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_to_the_recorder_is_passed_on(number: signal.Signals) -> None:
    sent: list[int] = []
    child: Any = SimpleNamespace(send_signal=sent.append)
    before = signal.signal(number, lambda *_: sent.append(0))
    try:
        with record._left_to(child):
            signal.raise_signal(number)
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert sent == [number, 0]


CONTEXT_MANAGERS = """\
@contextmanager
def timed():
    with ol.region("load"):
        load()
    with ol.region("step"):
        yield

with timed():
    step()
"""


@pytest.mark.parametrize(("line", "function", "last_line"), [(3, "timed", 4), (5, "<module>", 9)])
def test_a_region_that_a_context_manager_leaves_open_lies_in_its_caller(
    line: int, function: str, last_line: int, tmp_path: Path
) -> None:
    file = str(tmp_path / "train.py")
    Path(file).write_text(CONTEXT_MANAGERS, encoding="utf-8")
    enter, caller = (str(tmp_path / "contextlib.py"), "__enter__", 137), (file, "<module>", 8)
    first_line = line if function == "timed" else 8
    assert record._region_place(file, "timed", line, enter, caller) == Place(file, function, first_line, last_line)
