"""The main job on a tiny scenario: measured once, then looked at from all sides."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from overhead_lens.captures.files import STACKS
from overhead_lens.cli.profile import profile
from overhead_lens.errors import EndedEarly, Interrupted, MeasurementError
from overhead_lens.export.viewer.address import SUMS
from overhead_lens.recorder import single as record
from overhead_lens.samplers import py_spy
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.cli.hanging import (
    IMPATIENT,
    SLEEP,
    SLEEP_AFTER_LOADING,
    Started,
    asleep,
    hang,
    start,
    start_standing_in,
    wait_until_all_sleep,
    wait_until_gone,
)
from tests.cli.run import error_line, lens, scenario
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.export.trace_processor import Program
from tests.recorder.effort import little_effort
from tests.shared import made_once


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """One quick profile of a scenario that also prints, which must not reach stdout."""
    return made_once("profiled", profiled, tmp_path_factory)


def profiled(folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    path = scenario(folder, body="print('chatter') if len(values) < 0 else None")
    path.write_text("print('loading')\n" + path.read_text())
    command = ["profile", path, "--quick", "--json", "-q", "-o", folder / "out", "-p", "size=60"]
    with little_effort(processes=3, calibrated=False):
        return folder / "out", lens(*command, cwd=folder)


@pytest.fixture(scope="session")
def document(measured: tuple[Path, subprocess.CompletedProcess[str]]) -> dict[str, Any]:
    _, done = measured
    assert done.returncode == 0, done.stderr
    return validated(done.stdout)


@pytest.mark.measures
def test_json_is_the_contract_and_closes(document: dict[str, Any], measured: tuple[Path, Any]) -> None:
    assert [each["category"] for each in document["host"]] == list(HOST_CATEGORIES)
    assert sum(each["ns"] for each in document["host"]) == document["wall"]["ns"] == document["closure"]["sum_ns"]
    for each in document["host"]:
        assert not each["parts"] or sum(part["ns"] for part in each["parts"]) == each["ns"]
    assert document["subject"] == {
        "kind": "scenario", "name": "tiny", "variant": "total", "params": {"size": 60}, "compile": False, "device": "cpu",
    }  # fmt: skip
    assert document["wall"]["processes"] == 3
    assert document["capture"] == str(measured[0])
    assert measured[1].stderr == ""


@pytest.mark.measures
def test_a_python_sum_is_python(document: dict[str, Any]) -> None:
    if document["host"][0]["evidence"] != "samples":
        pytest.skip("py-spy may not attach here (see `overhead-lens doctor`)")
    assert document["host"][0]["share"] > 0.9
    assert document["host"][-1]["share"] <= 0.02


@pytest.mark.measures
def test_the_capture_holds_everything_raw(
    measured: tuple[Path, Any], document: dict[str, Any], trace_processor: Program
) -> None:
    path = measured[0]
    meta = json.loads((path / "meta.json").read_text())
    assert meta["environment"]["cores"] == os.cpu_count()
    assert meta["environment"]["torch"]
    assert "profile" in meta["command"]
    clock = pd.read_parquet(path / "clock.parquet")
    assert set(clock["process"]) == {0, 1, 2}
    assert document["wall"]["calls"] <= int(clock["calls"].sum())
    events = json.loads(gzip.decompress((path / "kineto.json.gz").read_bytes()))["traceEvents"]
    assert [event["name"] for event in events if event.get("name") == "measured_loop"] == ["measured_loop"]
    picture = trace_processor.load(path / "trace.pftrace")
    sums = {(track, category): ns for track, category, *_, ns in picture.query(SUMS)}
    assert sums == {("1. Budget of one call", row["category"]): row["ns"] for row in document["host"] if row["ns"]}


@pytest.mark.measures
def test_report_says_the_same_again(measured: tuple[Path, Any], document: dict[str, Any]) -> None:
    assert validated(lens("report", measured[0], "--json", cwd=measured[0]).stdout) == document
    text = " ".join(lens("report", measured[0], cwd=measured[0]).stdout.split())  # lines break where the numbers end
    assert "tiny:total, eager, cpu" in text
    assert "python dominates" in text
    assert "per unit of work (60 units)" in text


@pytest.mark.measures
def test_export_writes_once(measured: tuple[Path, Any], document: dict[str, Any]) -> None:
    path = measured[0]
    for target in ("chrome", "perfetto"):
        done = lens("export", path, "--format", target, cwd=path)
        assert done.returncode == 0, done.stderr
        again = lens("export", path, "--format", target, cwd=path)
        assert error_line(again).endswith(" exists: name another --output, or overwrite it with --force")
    if document["host"][0]["evidence"] == "samples":
        assert lens("export", path, "--format", "speedscope", cwd=path).returncode == 0
        (profile,) = json.loads((path / "speedscope.json").read_text())["profiles"]
        assert sum(profile["weights"]) == document["wall"]["ns"]


def timed(path: Path, target: Path, call_ns: int) -> Path:
    """A copy of a capture whose every block took ``call_ns`` per call and waited for no core."""
    shutil.copytree(path, target)
    clock = pd.read_parquet(target / "clock.parquet")
    clock["wall_ns"] = clock["calls"] * call_ns
    clock[["delayed_ns", "contended_ns"]] = 0
    clock.to_parquet(target / "clock.parquet", index=False)
    return target


@pytest.mark.measures
def test_diff_of_the_same_and_of_a_slower_one(measured: tuple[Path, Any], tmp_path: Path) -> None:
    base, slow = timed(measured[0], tmp_path / "base", 1_000), timed(measured[0], tmp_path / "slow", 2_000)
    same = lens("diff", base, base, "--json", cwd=tmp_path)
    delta = validated(same.stdout)
    assert delta["wall"]["delta_ns"] == 0
    assert (delta["verdict"], same.returncode) == ("same", 0)
    twice = lens("diff", base, slow, "--json", cwd=tmp_path)
    delta = validated(twice.stdout)
    assert sum(change["delta_ns"] for change in delta["host"]) == delta["wall"]["delta_ns"]
    assert (delta["wall"]["delta_ns"], delta["wall"]["ratio"]) == (1_000, 2.0)
    assert (delta["verdict"], twice.returncode) == ("slower", 1)
    assert delta["blame"][0] == "python"


@pytest.mark.measures
def test_without_permission_to_sample_the_trace_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A py-spy that is refused, found where a plain PATH install would be."""
    fake = tmp_path / "py-spy"
    fake.write_text('#!/bin/sh\necho "Permission Denied: Try running again with elevated permissions" >&2\nexit 1\n')
    fake.chmod(fake.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setattr(py_spy, "find_sampler", lambda: str(fake))
    with little_effort(processes=2):
        done = lens("profile", scenario(tmp_path), "--quick", "--json", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = validated(done.stdout)
    assert {each["evidence"] for each in document["host"]} == {"trace", "none"}
    assert any(warning.startswith("no samples (no permission to attach py-spy") for warning in document["warnings"])


@pytest.mark.measures
def test_killed_during_warm_up_leaves_no_process_and_no_capture(tmp_path: Path) -> None:
    process = start(tmp_path, "profile", hang(2), "-o", "out")
    wait_until_all_sleep(tmp_path, process.pid, 2)
    # Each notices by itself that nobody is left to end it.
    _is_ended(tmp_path, process, signal.SIGKILL, -9)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_ended_while_loading_leaves_no_process_and_no_capture(tmp_path: Path, number: int, code: int) -> None:
    process = start_standing_in(tmp_path, "profile", SLEEP, "-o", "out")
    wait_until_all_sleep(tmp_path, process.pid, 2)
    _is_ended(tmp_path, process, number, code)


def _is_ended(folder: Path, process: Started, number: int, code: int) -> None:
    """A signal to the whole group, as a terminal's, ends a command that writes to ``out``."""
    os.killpg(process.pid, number)
    assert process.ended() == (code, "", "" if number == signal.SIGKILL else "overhead-lens: interrupted\n")
    wait_until_gone(process.pid)
    if number != signal.SIGKILL:
        assert not (folder / "out").exists()
        return
    assert error_line(lens("report", "out", cwd=folder)) == (
        "out is not a complete capture: it has no meta.json (was it interrupted?)"
    )


def test_a_worker_that_hangs_is_ended(tmp_path: Path) -> None:
    process = start_standing_in(tmp_path, "profile", SLEEP, "--timeout", "2", "-o", "out")
    _failed(tmp_path, process, "did not finish 'load' within 2 s and was ended (raise --timeout)")


def test_a_worker_that_hangs_in_its_warm_up_is_ended(tmp_path: Path) -> None:
    arguments = ("profile", SLEEP_AFTER_LOADING, "--timeout", "600", "-o", "out")
    process = start_standing_in(tmp_path, *arguments, program=IMPATIENT)
    _failed(tmp_path, process, "did not finish 'warm up' within 600 s and was ended (raise --timeout)")


def _failed(folder: Path, process: Started, reason: str) -> None:
    """A command that writes to ``out`` fails by what its first worker did."""
    assert process.ended() == (3, "", f"overhead-lens: clock-0 {reason}\n")
    wait_until_gone(process.pid)
    assert not (folder / "out" / "meta.json").exists()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_dies_is_named(tmp_path: Path, number: signal.Signals) -> None:
    process = start_standing_in(tmp_path, "profile", f"os.kill(os.getpid(), {number})", "-o", "out")
    _failed(tmp_path, process, f"was killed by signal {number.name} during 'load'")


def test_a_worker_killed_from_outside_is_named(tmp_path: Path) -> None:
    process = start_standing_in(tmp_path, "profile", SLEEP_AFTER_LOADING, "-o", "out")
    for pid in asleep(tmp_path, 2):
        os.kill(pid, signal.SIGKILL)
    _failed(tmp_path, process, "was killed by signal SIGKILL during 'warm up'")


def test_runs_that_start_together_do_not_meet(tmp_path: Path) -> None:
    both = [start_standing_in(tmp_path, "profile", SLEEP) for _ in range(2)]
    asleep(tmp_path, 4)
    places = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert len(places) == 2
    for name in places:
        assert name.startswith("tiny-")
        assert error_line(lens("report", f"traces/{name}", cwd=tmp_path)).startswith(f"traces/{name} is not a complete")
    for process in both:
        process.send_signal(signal.SIGINT)
    assert [process.ended() for process in both] == [(130, "", "overhead-lens: interrupted\n")] * 2
    assert not list(tmp_path.glob("traces/*"))


@pytest.mark.parametrize(("interrupted", "raised"), [(True, Interrupted), (False, MeasurementError)])
def test_interrupted_before_anything_says_how_time_divides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool, raised: type[BaseException]
) -> None:
    stored = draw_capture(tmp_path / "c")
    (stored / STACKS).unlink()

    def end(*_: object) -> Path:
        # As where something has been timed, which is kept.
        with suppress(EndedEarly):
            if interrupted:
                signal.raise_signal(signal.SIGINT)
        return stored

    monkeypatch.setattr(record, "record", end)
    with pytest.raises(raised):
        profile(target="add1", quiet=True)


def test_a_picture_that_cannot_be_drawn_does_not_hide_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = draw_capture(tmp_path / "c")
    (stored / "trace.pftrace").mkdir()
    monkeypatch.setattr(record, "record", lambda *_: stored)
    with pytest.raises(MeasurementError, match="the capture is complete but for this picture$"):
        profile(target="add1", json_=True, quiet=True)
    assert validated(capsys.readouterr().out)["wall"]["ns"] == 1_000
