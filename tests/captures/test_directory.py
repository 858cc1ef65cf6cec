from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest

from overhead_lens.captures.directory import (
    CAPTURE,
    claim_directory,
    new_directory,
    read_capture,
    recording_directory,
    write_meta,
)
from overhead_lens.captures.files import DELTA
from overhead_lens.captures.files import META as META_FILE
from overhead_lens.captures.tables import write_table
from overhead_lens.errors import EndedEarly, Interrupted, MeasurementError, UsageError
from overhead_lens.instruments.clock.record import read_blocks
from overhead_lens.instruments.trace.record import read_trace
from overhead_lens.stored import evidence_of
from tests.drawn.captures import META, ROW, draw_capture, store_meta, typed
from tests.drawn.captures import complete as fill

NOW = datetime(2026, 1, 2, 3, 4, 5)


def test_runs_that_start_together_get_directories_of_their_own(tmp_path: Path) -> None:
    names = [new_directory(tmp_path / "traces", "add1: x/y", NOW).name for _ in range(3)]
    assert names == ["add1-x-y-20260102-030405", "add1-x-y-20260102-030405-2", "add1-x-y-20260102-030405-3"]


def test_a_named_directory_must_be_empty_and_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UsageError, match="is not empty; nothing is overwritten"):
        claim_directory(tmp_path / "full")
    assert claim_directory(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    with pytest.raises(UsageError):
        claim_directory(tmp_path / "a" / "b")


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MeasurementError, match="choose another place with --output$"):
        new_directory(tmp_path / "file", "add1", NOW)
    with pytest.raises(UsageError, match="is taken; nothing is overwritten"):
        claim_directory(tmp_path / "file")


@pytest.mark.parametrize("before", ["", "traces", "traces/out", "traces/other"])
@pytest.mark.parametrize("named", [True, False])
def test_a_recording_whose_input_is_refused_leaves_what_was_there_before(
    tmp_path: Path, before: str, named: bool
) -> None:
    (tmp_path / before).mkdir(parents=True, exist_ok=True)
    there = sorted(tmp_path.rglob("*"))
    parent = tmp_path / "traces"
    with (
        pytest.raises(UsageError, match=r"^no such variant$"),
        recording_directory(parent / "out" if named else None, parent, "add1") as folder,
    ):
        assert (folder.name == "out") == named
        (folder / "inner").mkdir()
        (folder / "inner" / "file").touch()
        (folder / "tracer.log").touch()
        (folder / "link").symlink_to(tmp_path)
        raise UsageError("no such variant")
    assert sorted(tmp_path.rglob("*")) == there


def test_a_recording_that_fails_or_succeeds_keeps_its_directory(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError), recording_directory(tmp_path / "a" / "b", tmp_path, "add1") as failed:
        (failed / "tracer.log").touch()
        raise MeasurementError("no device")
    assert (failed / "tracer.log").is_file()
    with recording_directory(None, tmp_path / "traces", "add1") as folder:
        pass
    assert folder.parent == tmp_path / "traces"
    assert folder.name.startswith("add1-")
    assert folder.is_dir()


@pytest.mark.parametrize("holds", [None, META_FILE, f"hot/{META_FILE}"])
@pytest.mark.parametrize("error", [Interrupted, EndedEarly, KeyboardInterrupt])
def test_an_interrupted_recording_leaves_captures_and_nothing_else(
    tmp_path: Path, error: type[BaseException], holds: str | None
) -> None:
    with pytest.raises(error), recording_directory(None, tmp_path / "traces", "add1") as folder:
        (folder / "hot").mkdir()
        (folder / "hot" / "clock-0.log").touch()
        if holds is not None:
            (folder / holds).touch()
        raise error
    assert folder.is_dir() == (tmp_path / "traces").is_dir() == (holds is not None)


def complete(path: Path) -> Path:
    path.mkdir()
    (path / "quiet.log").touch()
    (path / "loud.log").write_text("said")
    return fill(path, [ROW], ["a (a.py:1) 3\nb (b.py:2) 4", "c (c.py:3) 5"])


def test_written_and_read_back(tmp_path: Path) -> None:
    capture = read_capture(complete(tmp_path / "c"))
    assert capture.meta == typed(META)
    assert read_blocks(capture).to_dict("records") == [ROW]
    with gzip.open(tmp_path / "c" / "stacks.txt.gz", "rt") as stacks:
        assert stacks.read().splitlines() == [
            "sampler 0 (py-spy:1);a (a.py:1) 3",
            "sampler 0 (py-spy:1);b (b.py:2) 4",
            "sampler 1 (py-spy:1);c (c.py:3) 5",
        ]
    assert read_trace(capture) is None


def test_logs_that_say_nothing_go_when_the_metadata_are_written(tmp_path: Path) -> None:
    path = complete(tmp_path / "c")
    write_meta(path, CAPTURE, typed(META))
    assert sorted(log.name for log in path.glob("*.log")) == ["loud.log"]
    assert read_capture(path).meta == typed(META)


def test_a_capture_of_the_first_schema_is_still_read(tmp_path: Path) -> None:
    path = complete(tmp_path / "c")
    (path / "meta.json").write_text(json.dumps({"schema": "overhead-lens/capture/1", **META}))
    assert read_capture(path).meta == typed(META)


def damage_meta(path: Path) -> None:
    (path / "meta.json").write_text('{"schema"')


def newer(path: Path) -> None:
    (path / "meta.json").write_text(json.dumps({"schema": "overhead-lens/capture/9"}))


def cut_clock(path: Path) -> None:
    raw = (path / "clock.parquet").read_bytes()
    (path / "clock.parquet").write_bytes(raw[: len(raw) // 2])


def torn_stacks(path: Path) -> None:
    raw = bytearray((path / "stacks.txt.gz").read_bytes())
    raw[25:40] = bytes(15)
    (path / "stacks.txt.gz").write_bytes(raw)


def deep_meta(path: Path) -> None:
    (path / "meta.json").write_text("[" * 100_000)


def cut_stacks(path: Path) -> None:
    raw = (path / "stacks.txt.gz").read_bytes()
    (path / "stacks.txt.gz").write_bytes(raw[:-9])


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (
            lambda path: (path / "meta.json").unlink(),
            r"is not a complete capture: it has no meta\.json \(was it interrupted\?\)$",
        ),
        (damage_meta, "is damaged: meta.json: "),
        (newer, "has schema 'overhead-lens/capture/9'; this version reads 'overhead-lens/capture/2'$"),
        (cut_clock, "is damaged: "),
        (cut_stacks, "is damaged: "),
        (torn_stacks, "is damaged: "),
        (deep_meta, "is damaged: meta.json: "),
        (lambda path: (path / "clock.parquet").unlink(), "is damaged: "),
    ],
)
def test_an_incomplete_capture_is_refused_by_name(tmp_path: Path, harm, message: str) -> None:
    path = complete(tmp_path / "c")
    harm(path)
    with pytest.raises(UsageError, match=message) as caught:
        evidence_of(read_capture(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_directory_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no capture .*gone$"):
        read_capture(tmp_path / "gone")


@pytest.mark.parametrize(
    ("meta", "fault"),
    [
        ({"scenario": None}, "Expected `str`, got `null` - at `$.subject.name`"),
        ({"params": [1]}, "Expected `object`, got `array` - at `$.subject.params`"),
        (
            {"work": {"units": 0, "flops": 0, "bytes": 0}, "work_known": True},
            "work needs units >= 1, flops >= 0 and bytes >= 0, not Work(units=0, flops=0, bytes=0)",
        ),
        ({"trace": 7}, "Expected `object`, got `int` - at `$.instruments.trace`"),
        ({"guards": [1]}, "Expected `object`, got `array` - at `$.instruments.guards`"),
        ({"warnings": None}, "Expected `array`, got `null` - at `$.warnings`"),
        ({"peaks": {"copy": []}}, "Expected `array` of length >= 1 - at `$.instruments.peaks.copy`"),
        ({"page_faults": {"a": 1}}, "Expected `array`, got `object` - at `$.instruments.page_faults.processes`"),
        (
            {"page_faults": [{"faults": 3, "user_ns": -1}]},
            "Expected `int` >= 0 - at `$.instruments.page_faults.processes[0].user_ns`",
        ),
        ({"page_faults": [7]}, "Expected `object`, got `int` - at `$.instruments.page_faults.processes[0]`"),
        (
            {"peaks": {"copy": [{"bytes": 1, "bytes_per_s": 0}], "flops_per_s": 1}},
            "Expected `float` > 0.0 - at `$.instruments.peaks.copy[0].bytes_per_s`",
        ),
    ],
)
def test_metadata_that_no_analysis_could_use(tmp_path: Path, meta: dict[str, object], fault: str) -> None:
    path = complete(tmp_path / "c")
    store_meta(path, {**META, **meta})
    with pytest.raises(UsageError) as caught:
        evidence_of(read_capture(path))
    assert str(caught.value) == f"the capture {path} is damaged: meta.json: {fault}"


@pytest.mark.parametrize(
    ("gap", "fault"),
    [
        (("subject",), "`subject`"),
        (("subject", "kind"), "`kind` - at `$.subject`"),
        (("subject", "name"), "`name` - at `$.subject`"),
        (("subject", "variant"), "`variant` - at `$.subject`"),
    ],
)
def test_metadata_with_a_gap(tmp_path: Path, gap: tuple[str, ...], fault: str) -> None:
    path = complete(tmp_path / "c")
    meta = json.loads((path / "meta.json").read_text())
    *outer, last = gap
    del functools.reduce(dict.__getitem__, outer, meta)[last]
    (path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(UsageError) as caught:
        read_capture(path)
    assert str(caught.value) == f"the capture {path} is damaged: meta.json: Object missing required field {fault}"


@pytest.mark.parametrize(
    ("column", "least"),
    [("process", 0), ("calls", 1), ("wall_ns", 0), ("steady_ns", 0), ("reference_ns", 1), ("minor_faults", 0)]
    + [("delayed_ns", 0), ("contended_ns", 0)],
)
def test_a_clock_that_cannot_be(tmp_path: Path, column: str, least: int) -> None:
    path = complete(tmp_path / "c")
    message = f"is damaged: clock.parquet: {column} must hold integers of at least {least}$"
    sound = {"steady_ns": 1, "delayed_ns": 0, "contended_ns": 0, **ROW}
    write_table(path / "clock.parquet", [sound, {**sound, column: least - 1}])
    capture = read_capture(path)
    with pytest.raises(UsageError, match=message):
        read_blocks(capture)
    for value in ("x", 1.5, None):
        pd.DataFrame([sound, {**sound, column: value}], dtype=None).astype(
            {column: "str" if value == "x" else "float"}
        ).to_parquet(path / "clock.parquet")
        with pytest.raises(UsageError, match=message):
            read_blocks(capture)


@pytest.mark.parametrize(
    ("study", "name"),
    [("advice", "advice"), ("ladder", "a ladder"), ("run", "a run"), ("process", "a watched process")],
)
def test_another_result_is_named(tmp_path: Path, study: str, name: str) -> None:
    (tmp_path / META_FILE).write_text(json.dumps({"schema": f"overhead-lens/{study}-capture/1"}))
    with pytest.raises(UsageError) as refused:
        read_capture(tmp_path)
    assert str(refused.value) == f"{tmp_path} is {name}, not the capture of a call; `overhead-lens report` shows it"


@pytest.mark.parametrize(
    ("inside", "beside", "said"),
    [
        (("base", "new"), DELTA, "holds the captures of a comparison: name one of them, {}/base"),
        (("rank-1", "rank-0"), ".printing", "holds the ranks of a job: name one of them, {}/rank-0"),
        (("base", "new"), "clock-0.log", "is not a complete capture: it has no meta.json (was it interrupted?)"),
    ],
)
def test_what_holds_complete_results_was_not_interrupted(
    tmp_path: Path, inside: Sequence[str], beside: str, said: str
) -> None:
    for name in inside:
        draw_capture(tmp_path / name)
    (tmp_path / beside).touch()
    with pytest.raises(UsageError) as refused:
        read_capture(tmp_path)
    assert str(refused.value) == f"{tmp_path} {said.format(tmp_path)}"


def test_a_name_too_long_is_no_capture() -> None:
    with pytest.raises(UsageError, match="^no capture x+$"):
        read_capture(Path("x" * 300))
