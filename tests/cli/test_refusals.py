"""Wrong input that no other test meets: one line, its exit code, and nothing that was there changed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import overhead_lens as ol
from overhead_lens.errors import EXIT_MEASUREMENT, EXIT_USAGE, MeasurementError, UsageError
from overhead_lens.machine.operations import WARM_UP
from overhead_lens.machine.process import Worker
from overhead_lens.recorder import single
from overhead_lens.report.forms import to_html
from tests.api import plain
from tests.cli.run import TINY, error_line, lens, scenario
from tests.drawn.builders import breakdown
from tests.drawn.captures import draw_capture
from tests.drawn.timelines import document, drawn

HOST = "python, guard, dispatcher, allocation, kernel, launch, wait, compile, unattributed"
SQL = "select name, sum(dur_ns) from kernels group by 1 order by 2 desc"


def folder_with_everything(folder: Path) -> None:
    """What the commands below name, sound and damaged."""
    scenario(folder)
    draw_capture(folder / "base")
    draw_capture(folder / "other")
    draw_capture(folder / "other.new")
    (folder / "empty").mkdir()
    (folder / "sound.json").write_text(document([drawn("[---)", "aten::add")]))
    for name in ("one", "two"):
        (folder / f"{name}.json").write_text('{"schemaVersion": 1}')
    (folder / "cut.pickle").write_bytes(b"\x80\x04}(X")
    (folder / "nothing.pickle").touch()
    (folder / "old").write_text("#!/bin/sh\necho False True\n")
    (folder / "old").chmod(0o755)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["analyze", "empty"], "empty holds no traces (*.json, *.json.gz)"),
        (["analyze", "one.json"], "one.json is not a torch.profiler trace: it has no traceEvents"),
        (["analyze", "--query", " ", "sound.json"], f"--query needs SQL, for example: {SQL}"),
        (["analyze", "--query", ";", "sound.json"], "the query failed: it contains no statement"),
        (["analyze", "cut.pickle"], "cut.pickle is not a readable memory snapshot: its pickle is damaged or cut off (UnpicklingError)"),
        (["analyze", "nothing.pickle"], "nothing.pickle is empty"),
        (["baseline", "update", "other", "tiny.py"], "{}/other.new is in the way: another update runs, or one was ended; move it away"),
        (["check", "base", "--max", "instructions.guards=3%"], f"--max 'instructions.guards=3%' names no category of instructions; names: {HOST}"),
        (["export", "base", "--format", "chrome"], "base holds no trace to export"),
        (["export", "base", "--format", "speedscope", "-o", "-"], "cannot write to stdout: name a file"),
        (["report", "base", "--html", "-"], "cannot write to stdout: name a file"),
        (["schema", "breakdwn"], "no document 'breakdwn'; did you mean 'breakdown'? (`overhead-lens schema` lists them)"),
        (["check", "base", "--markdown", "gone/summary.md"], "cannot write gone/summary.md: there is no directory gone"),
        (["compare", "add1", "add1", "--markdown", "empty"], "cannot write empty: it is a directory"),
        (["run", "--json-file", "sound.json"], "name a script, or a module with -m"),
        (["schema", "xyz"], "no document 'xyz' (`overhead-lens schema` lists them)"),
        (["compare", "add1", "add1", "--python", "new=./old"], "./old is older than Python 3.10"),
        (["profile", "add1", "--until", "200%"], "--until takes a percentage from 0.1% to 99.9%, not '200%'"),
        (["profile", "add1", "--until", "much"], "--until takes a percentage from 0.1% to 99.9%, not 'much'"),
        (["profile", "add1", "--until", "3%%"], "--until takes a percentage from 0.1% to 99.9%, not '3%%'"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_changes_nothing(tmp_path: Path, words: list[str], message: str) -> None:
    folder_with_everything(tmp_path)
    before = contents(tmp_path)
    done = lens(*words, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message.format(tmp_path), EXIT_USAGE)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_trace_of_several_could_be_read(tmp_path: Path) -> None:
    folder_with_everything(tmp_path)
    done = lens("analyze", "one.json", "two.json", cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("overhead-lens: none of the 2 traces could be read\n", EXIT_USAGE)
    assert done.stdout.count("it has no traceEvents") == 2


DEVICE = TINY.replace("size: int = 50", 'size: int = 50\n    device: str = "cpu"')


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("device", "message", "code"),
    [
        ("toaster", "this torch knows no device 'toaster'", EXIT_USAGE),
        (
            "xpu",
            f"no xpu device can be used here (torch {torch.__version__}); run with --device cpu",
            EXIT_MEASUREMENT,
        ),
    ],
)
def test_a_device_that_is_not_there(tmp_path: Path, device: str, message: str, code: int) -> None:
    scenario(tmp_path, text=DEVICE)
    done = lens("profile", "tiny.py", "--device", device, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, code)


def test_git_that_is_not_there(tmp_path: Path) -> None:
    scenario(tmp_path)
    done = lens("compare", "tiny.py", "tiny.py", "--rev", "base=HEAD", cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert (error_line(done), done.returncode) == ("git cannot be run: No such file or directory", EXIT_USAGE)


def test_a_worker_that_replies_something_else() -> None:
    worker = SimpleNamespace(name="clock-0", next_reply=lambda _: '{"ok": {"settled": "perhaps"}}')
    with pytest.raises(MeasurementError) as caught:
        Worker.receive(worker, WARM_UP)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "clock-0 replied to 'warm up' with something else: Expected `bool`, got `str` - at `$.settled`"
    )


# ---------------------------------------------------------------- a baseline is never lost
@pytest.mark.parametrize("fault", ["taken", "gone"])
def test_a_baseline_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def record(*_: object) -> Path:
        """Leave something where the old one would go, or nothing to put in its place."""
        if fault == "taken":
            draw_capture(tmp_path / "base.new")
            (tmp_path / "base.1").mkdir()
            (tmp_path / "base.1" / "mine").touch()
        return tmp_path / "base.new"

    scenario(tmp_path)
    draw_capture(tmp_path / "base")
    before = contents(tmp_path / "base")
    monkeypatch.setattr(single, "record", record)
    done = lens("baseline", "update", "base", "tiny.py", "-q", cwd=tmp_path)
    why = {"taken": "Directory not empty", "gone": "No such file or directory"}[fault]
    assert (error_line(done), done.returncode) == (
        f"cannot put {tmp_path}/base.new in the place of {tmp_path}/base: {why}",
        EXIT_MEASUREMENT,
    )
    assert contents(tmp_path / "base") == before
    assert (tmp_path / "base.1").exists() == (fault == "taken")


# ---------------------------------------------------------------- Dask
def test_dask_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with_everything(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = lens("analyze", "sound.json", "--dask", "local", cwd=tmp_path)
    assert error_line(done) == "--dask needs dask.distributed: pip install distributed"
    assert done.returncode == EXIT_USAGE


def test_a_dask_scheduler_without_workers(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    folder_with_everything(tmp_path)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1", silence_logs=60) as none:
        done = lens("analyze", "sound.json", "--dask", none.scheduler_address, cwd=tmp_path)
    assert error_line(done) == f"the Dask scheduler at {none.scheduler_address} has no workers"
    assert done.returncode == EXIT_USAGE


# ---------------------------------------------------------------- what the API says
def test_a_function_that_no_fresh_process_can_call() -> None:
    with pytest.raises(UsageError) as refused:
        ol.advise(lambda: 1)
    assert str(refused.value) == "remedies are tried in fresh processes: a lambda has no name that can be imported"


@pytest.mark.parametrize(
    ("mode", "name"),
    [("inference_mode", "inference mode is on"), ("no_grad", "grad mode is off"), ("autocast", "autocast is on")],
)
def test_a_mode_that_a_fresh_process_would_not_know(mode: str, name: str) -> None:
    context = torch.autocast("cpu") if mode == "autocast" else getattr(torch, mode)()
    with context, pytest.raises(UsageError) as refused:
        ol.profile(plain.total, [1], fresh=True)
    assert str(refused.value) == f"fresh=True: {name} here, which a fresh process would not know"


def test_a_result_without_stacks() -> None:
    assert "No stacks to draw: the budget was not stored" in to_html(breakdown(python=1))
