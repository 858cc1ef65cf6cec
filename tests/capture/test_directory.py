from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest

from overhead_lens.captures.directory import (
    claim_directory,
    new_directory,
    read_capture,
    recording_directory,
    write_clock,
    write_meta,
)
from overhead_lens.errors import MeasurementError, UsageError
from tests.captures import META, ROW
from tests.captures import complete as fill

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


def complete(path: Path) -> Path:
    path.mkdir()
    (path / "quiet.log").touch()
    (path / "loud.log").write_text("said")
    return fill(path, [ROW], ["a (a.py:1) 3\nb (b.py:2) 4", "c (c.py:3) 5"])


def test_written_and_read_back(tmp_path: Path) -> None:
    capture = read_capture(complete(tmp_path / "c"))
    assert capture.meta == {"schema": "overhead-lens/capture/1", **META}
    assert capture.clock.to_dict("records") == [ROW]
    assert [line.strip() for line in capture.folded] == [
        "sampler 0 (py-spy:1);a (a.py:1) 3",
        "sampler 0 (py-spy:1);b (b.py:2) 4",
        "sampler 1 (py-spy:1);c (c.py:3) 5",
    ]
    assert capture.kineto is None
    assert sorted(path.name for path in (tmp_path / "c").glob("*.log")) == ["loud.log"]


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
        (newer, "has schema 'overhead-lens/capture/9'; this version reads 'overhead-lens/capture/1'$"),
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
        read_capture(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_directory_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no capture .*gone$"):
        read_capture(tmp_path / "gone")


@pytest.mark.parametrize(
    ("meta", "fault"),
    [
        ({"scenario": None}, "scenario is not of type str"),
        ({"params": [1]}, "params is not of type dict"),
        ({"work": {}}, "work is {}"),
        ({"work": {"units": 0, "flops": 0, "bytes": 0}}, "work is {'units': 0, 'flops': 0, 'bytes': 0}"),
        ({"trace": None}, "trace is not of type dict"),
        ({"guards": [1]}, "guards is not of type dict"),
        ({"warnings": None}, "warnings is not of type list"),
        ({"peaks": {"copy": []}}, "peaks are {'copy': []}"),
        ({"page_faults": {}}, "page_faults is not of type list"),
        ({"page_faults": [{"faults": 3, "user_ns": -1}]}, "page_faults hold {'faults': 3, 'user_ns': -1}"),
        ({"page_faults": [7]}, "page_faults hold 7"),
        (
            {"peaks": {"copy": [{"bytes": 1, "bytes_per_s": 0}], "flops_per_s": 1}},
            "peaks are {'copy': [{'bytes': 1, 'bytes_per_s': 0}], 'flops_per_s': 1}",
        ),
    ],
)
def test_metadata_that_no_analysis_could_use(tmp_path: Path, meta: dict[str, object], fault: str) -> None:
    path = complete(tmp_path / "c")
    write_meta(path, {**META, **meta})
    with pytest.raises(UsageError) as caught:
        read_capture(path)
    assert str(caught.value) == f"the capture {path} is damaged: meta.json: {fault}"


@pytest.mark.parametrize("name", ["scenario", "variant", "compile", "device", "params", "work", "trace", "samples"])
def test_metadata_with_a_gap(tmp_path: Path, name: str) -> None:
    path = complete(tmp_path / "c")
    write_meta(path, {key: value for key, value in META.items() if key != name})
    with pytest.raises(UsageError, match=f"is damaged: meta.json: {name} is missing$"):
        read_capture(path)


@pytest.mark.parametrize(
    ("column", "least"),
    [("process", 0), ("calls", 1), ("wall_ns", 0), ("steady_ns", 0), ("reference_ns", 1), ("minor_faults", 0)],
)
def test_a_clock_that_cannot_be(tmp_path: Path, column: str, least: int) -> None:
    path = complete(tmp_path / "c")
    message = f"is damaged: clock.parquet: {column} must hold integers of at least {least}$"
    sound = {"steady_ns": 1, **ROW}
    write_clock(path, [sound, {**sound, column: least - 1}])
    with pytest.raises(UsageError, match=message):
        read_capture(path)
    for value in ("x", 1.5, None):
        pd.DataFrame([sound, {**sound, column: value}], dtype=None).astype(
            {column: "str" if value == "x" else "float"}
        ).to_parquet(path / "clock.parquet")
        with pytest.raises(UsageError, match=message):
            read_capture(path)


def test_a_name_too_long_is_no_capture() -> None:
    with pytest.raises(UsageError, match="^no capture x+$"):
        read_capture(Path("x" * 300))
