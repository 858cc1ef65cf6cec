"""The order of a recording, what a watch sees of it, and how it ends early: with workers and a clock that only write down their turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from overhead_lens.errors import EndedEarly
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Stages, Turn, When
from overhead_lens.machine.request import Effort, Request
from overhead_lens.recorder import single
from overhead_lens.recorder.side import Side
from overhead_lens.target import parse_target
from overhead_lens.terminal.progress import SILENT


class Recorded:
    """What happened, in order, and the warnings of the captures that were written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.turns: list[str] = []
        self.warnings: dict[str, list[str]] = {}
        self.interrupt_at = ""
        self.cores = [4, 6]
        self.use_threads, self.device = False, "cpu"
        recorded = self

        class Timed(Clock):
            def measure(self, turn: Turn) -> None:
                recorded.turn(f"timed {turn.process}")
                self.rows.append({"process": turn.process})
                self.use_threads[turn.process] = recorded.use_threads
                turn.recording.workload = cast("Any", SimpleNamespace(device=recorded.device, compiles=False, notes=()))

        class Other:
            name = "other"

            def __init__(self, when: When) -> None:
                self.when = when

            def measure(self, turn: Turn) -> None:
                recorded.turn(f"{self.when.name.lower()} {turn.process}")

        class AtOnce(Other):
            def stages(self, turn: Turn, core: int | None) -> Stages:
                recorded.turn(f"{self.when.name.lower()} {turn.process} on {core}")
                yield
                yield
                recorded.turn(f"{self.when.name.lower()} kept")

        @contextmanager
        def warmed_up(_: Side, names: Sequence[str], __: object, meanwhile: Callable[[], None]) -> Iterator[list[Any]]:
            meanwhile()
            yield [SimpleNamespace(name=name) for name in names]
            self.turns.append(f"ended {','.join(names)}")

        def write(side: Side, _started: object, folder: Path | None = None) -> Path:
            path = folder or side.folder
            self.warnings[path.name] = list(side.all_warnings)
            (path / "written").touch()
            return path

        alone = [lambda when=when: Other(when) for when in (When.TRACED, When.CHANGED, When.LAST, When.AFTERWARDS)]
        at_once = [lambda when=when: AtOnce(when) for when in (When.SAMPLED, When.RECORDED)]
        self.instruments = (Timed, *at_once, *alone)
        monkeypatch.setattr(single, "idle_cores", lambda: self.cores)
        monkeypatch.setattr(single, "_warmed_up", warmed_up)
        monkeypatch.setattr(single, "in_batches", lambda jobs: [jobs[at : at + 3] for at in range(0, len(jobs), 3)])
        monkeypatch.setattr(Side, "write", write)

    def turn(self, text: str) -> None:
        if text == self.interrupt_at:
            raise EndedEarly
        self.turns.append(text)

    def record(self, watch: Any = None, processes: int = 3) -> Path:
        request = Request(
            target=parse_target("add1", None),
            params={},
            compile_options=None,
            output=self.folder,
            parent=self.folder,
            timeout_s=1.0,
            effort=Effort(processes=processes),
        )
        return single.record(request, SILENT, watch, self.instruments)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorded:
    return Recorded(monkeypatch, tmp_path / "capture")


class Watching:
    """A watch that has enough after some processes, and looks at the capture so far or not."""

    def __init__(self, most: int, enough: int = 99, looks: bool = False) -> None:
        self.most, self.enough, self.looks = most, enough, looks
        self.seen: list[tuple[int, list[str]]] = []

    def prepare(self) -> None:
        self.prepared = True

    def so_far(self, capture: Callable[[], Path], processes: int) -> str:
        files = sorted(path.name for path in capture().iterdir()) if self.looks else []
        self.seen.append((processes, files))
        return "enough" if processes == self.enough else ""


GROUP_0 = [*("timed 0", "timed 1"), *("sampled 0 on 4", "sampled 1 on 6"), *("sampled kept", "sampled kept")]
TRACE = ["recorded 0 on None", "recorded kept", "traced 0"]


def test_processes_are_timed_one_by_one_and_sampled_at_once(recorded: Recorded) -> None:
    recorded.record(processes=5)
    assert recorded.turns == [
        *GROUP_0,
        # The third leaves a core to the trace.
        *("timed 2", "sampled 2 on 4", "recorded 0 on 6", "sampled kept", "recorded kept"),
        *("traced 0", "changed 0", "changed 1", "changed 2", "ended clock-0,clock-1,clock-2"),
        *("timed 3", "timed 4", "sampled 3 on 4", "sampled 4 on 6", "sampled kept", "sampled kept"),
        *("changed 3", "changed 4", "last 4", "ended clock-3,clock-4", "afterwards 0"),
    ]
    assert recorded.warnings == {"capture": []}


@pytest.mark.parametrize("cores", [[], [4]])
def test_without_idle_cores_one_is_sampled_after_the_other(recorded: Recorded, cores: list[int]) -> None:
    recorded.cores = cores
    recorded.record(processes=2)
    assert recorded.turns == [
        *("timed 0", "sampled 0 on None", "sampled kept", "timed 1", "sampled 1 on None", "sampled kept"),
        *(*TRACE, "changed 0", "changed 1", "last 1", "ended clock-0,clock-1", "afterwards 0"),
    ]


@pytest.mark.parametrize(("use_threads", "device"), [(True, "cpu"), (False, "cuda:0")])
def test_calls_that_wait_for_threads_or_a_device_are_sampled_by_themselves(
    recorded: Recorded, use_threads: bool, device: str
) -> None:
    recorded.use_threads, recorded.device = use_threads, device
    recorded.record(processes=3)
    assert recorded.turns == [
        *("timed 0", "timed 1", "sampled 0 on None", "sampled kept", "sampled 1 on None", "sampled kept"),
        *("timed 2", "sampled 2 on None", "sampled kept", *TRACE[:2], "traced 0"),
        *("changed 0", "changed 1", "changed 2", "last 2", "ended clock-0,clock-1,clock-2", "afterwards 0"),
    ]


def test_a_watch_sees_every_process(recorded: Recorded) -> None:
    watch = Watching(most=3, looks=True)
    recorded.record(watch)
    assert watch.seen == [(2, ["written"]), (3, ["written"])]
    assert watch.prepared
    assert not (recorded.folder / ".so-far").exists()
    assert (recorded.folder / "written").exists()


def test_a_capture_so_far_has_what_workers_wrote(recorded: Recorded) -> None:
    recorded.folder.mkdir()
    watch = Watching(most=1, looks=True)
    so_far = watch.so_far

    def with_files(capture: Callable[[], Path], processes: int) -> str:
        (recorded.folder / "kineto.json.gz").write_bytes(b"whole")
        (recorded.folder / "clock-0.log").write_bytes(b"")
        answer = so_far(capture, processes)
        assert (recorded.folder / ".so-far" / "kineto.json.gz").read_bytes() == b"whole"
        return answer

    watch.so_far = with_files  # type: ignore[method-assign]
    recorded.record(watch)
    assert watch.seen == [(1, ["kineto.json.gz", "written"])]


def test_enough_ends_a_recording_and_says_why(recorded: Recorded) -> None:
    recorded.record(Watching(most=9, enough=2))
    assert recorded.turns == [
        *(*GROUP_0, *TRACE, "changed 0", "changed 1", "last 1", "ended clock-0,clock-1,clock-2", "afterwards 0")
    ]
    assert recorded.warnings == {"capture": ["enough"]}


def test_a_watch_may_ask_for_more_processes(recorded: Recorded) -> None:
    recorded.record(Watching(most=5), processes=3)
    assert [turn for turn in recorded.turns if turn.startswith("timed")] == [f"timed {number}" for number in range(5)]
    assert "last 4" in recorded.turns


@pytest.mark.parametrize(
    ("at", "warning"),
    [
        ("timed 1", "interrupted after 1 timed process"),
        ("timed 2", "interrupted after 2 timed processes"),
        ("sampled 1 on 6", "interrupted after 2 timed processes"),
        ("afterwards 0", "interrupted after 3 timed processes"),
    ],
)
def test_an_interruption_keeps_what_there_is(recorded: Recorded, at: str, warning: str) -> None:
    recorded.interrupt_at = at
    assert recorded.record(Watching(most=3)) == recorded.folder
    assert recorded.warnings == {"capture": [warning]}


@pytest.mark.parametrize(("at", "watch"), [("timed 0", Watching(most=3)), ("timed 2", None)])
def test_nothing_is_kept_where_there_is_nothing_or_nobody_watches(recorded: Recorded, at: str, watch: object) -> None:
    recorded.interrupt_at = at
    with pytest.raises(EndedEarly):
        recorded.record(watch)
    assert recorded.warnings == {}
