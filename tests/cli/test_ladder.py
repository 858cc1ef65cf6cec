"""``ladder`` as a user meets it: one real run, bad input, damaged ladders, ended workers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.cli.ladder import ladder
from overhead_lens.errors import UsageError
from overhead_lens.machine import request
from overhead_lens.studies.ladder import analysis as ladders
from overhead_lens.studies.ladder.analysis import RUNGS, ladder_of
from overhead_lens.studies.ladder.stored import read_ladder
from overhead_lens.terminal.output import Format, show
from tests.cli.hanging import SLEEP, Started, asleep, start_standing_in, wait_until_gone
from tests.cli.run import error_line, lens, scenario
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.drawn.ladders import draw_rows, draw_stored

FEW = {
    "eager": None,
    "direct_bytecode": "Dynamo compiled nothing: the call runs as it is",
    "generated_code": "the compiled call runs no module that Inductor generated",
    "eager_inference_mode": None,
    "eager_requires_grad": "no argument is a floating-point tensor",
    "eager_warm_heap": None,
}
TWO = {"eager": [10.0, 11.0], "compiled": [30.0, 33.0]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "gone.py"}, "no file gone.py"),
        ({"target": "add1", "param": ["size"]}, "-p takes NAME=VALUE, not 'size'"),
        (
            {"target": "add1", "param": ["device=cuda"], "device": "cpu"},
            "--device cpu and -p device=cuda disagree",
        ),
    ],
)
def test_seen_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        ladder(**arguments)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_scenario(tmp_path: Path) -> None:
    done = lens("ladder", "ad1", cwd=tmp_path)
    assert (error_line(done), done.returncode) == (
        "no scenario 'ad1'; did you mean 'add1'? (`overhead-lens scenarios` lists them)",
        2,
    )


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = lens("ladder", "add1", "-o", "out", cwd=tmp_path)
    assert (error_line(done), done.returncode) == (
        "out is not empty; nothing is overwritten, name another --output",
        2,
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add1:add2"], "scenario add1 has no variant 'add2'; did you mean 'add1'?"),
        (["add1", "-p", "sizee=3"], "scenario add1 has no parameter 'sizee'; did you mean 'size'?"),
        (["add1", "-p", "size=ten"], "parameter size must be of type int, not 'ten'"),
    ],
)
def test_an_input_that_the_worker_refuses_leaves_nothing_behind(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = lens("ladder", *arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, 2)
    assert list(tmp_path.iterdir()) == []


def test_report_shows_a_stored_ladder(tmp_path: Path) -> None:
    path = draw_stored(tmp_path / "l", TWO)
    text = lens("report", path, cwd=tmp_path)
    assert (text.returncode, text.stdout.splitlines()[0]) == (0, "ladder of drawn:call  size=10")
    document = validated(lens("report", path, "--json", cwd=tmp_path).stdout)
    assert [(rung["name"], rung["ns"], rung["step_ns"]) for rung in document["rungs"]] == [
        ("eager", 10.5, None),
        ("compiled", 31.5, 21.0),
    ]


@pytest.mark.parametrize("arguments", [["diff", "l", "l"], ["export", "l", "--format", "chrome"]])
def test_a_ladder_is_no_capture(tmp_path: Path, arguments: list[str]) -> None:
    draw_stored(tmp_path / "l", TWO)
    done = lens(*arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (
        "l is a ladder, not the capture of a call; `overhead-lens report` shows it",
        2,
    )


def test_a_capture_is_no_ladder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has schema 'overhead-lens/capture/2'; this version reads "):
        read_ladder(draw_capture(tmp_path / "c"))


def damage_meta(**changes: Any) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        meta = json.loads((path / "meta.json").read_text())
        meta.update(changes)
        (path / "meta.json").write_text(json.dumps({key: value for key, value in meta.items() if value != "gone"}))

    return damage


def damage_rows(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        import pandas as pd

        change(pd.DataFrame(draw_rows(TWO))).to_parquet(path / "ablation.parquet", index=False)

    return damage


def cut_off(path: Path) -> None:
    data = (path / "ablation.parquet").read_bytes()
    (path / "ablation.parquet").write_bytes(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_off, ""),
        (lambda path: (path / "ablation.parquet").unlink(), ""),
        (lambda path: (path / "meta.json").write_text("{"), ""),
        (damage_meta(names="gone"), "meta.json: Object missing required field `names`"),
        (damage_meta(subject=7), "meta.json: Expected `object`, got `int` - at `$.subject`"),
        (damage_meta(environment=3), "meta.json: Expected `object`, got `int` - at `$.environment`"),
        (damage_meta(reasons={"eager": 7}), "meta.json: Expected `str | null`, got `int` - at `$.reasons[...]`"),
        (damage_rows(lambda rows: rows.drop(columns="minor_faults")), "ablation.parquet has no minor_faults"),
        (damage_rows(lambda rows: rows[:0]), "ablation.parquet has no rows"),
        (damage_rows(lambda rows: rows.assign(rung="manager by hand")), "ablation.parquet has no rows of a rung"),
        (damage_rows(lambda rows: rows.assign(calls=0)), "ablation.parquet: calls must hold integers of at least 1"),
        (
            damage_rows(lambda rows: rows.assign(wall_ns=0.5)),
            "ablation.parquet: wall_ns must hold integers of at least 0",
        ),
        (
            damage_rows(lambda rows: rows.assign(minor_faults="x")),
            "ablation.parquet: minor_faults must hold numbers of at least 0",
        ),
    ],
)
def test_damaged_ladders_are_refused(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    path = draw_stored(tmp_path / "l", TWO)
    read_ladder(path)
    damage(path)
    with pytest.raises(UsageError) as caught:
        read_ladder(path)
    assert " is damaged: " in str(caught.value)
    assert str(caught.value).endswith(message)
    assert "\n" not in str(caught.value)


def test_a_damaged_or_interrupted_ladder_is_one_line(tmp_path: Path) -> None:
    path = draw_stored(tmp_path / "l", TWO)
    cut_off(path)
    done = lens("report", path, cwd=tmp_path)
    assert error_line(done).startswith(f"the ladder {path} is damaged: ")
    assert done.returncode == 2
    (path / "meta.json").unlink()
    done = lens("report", path, cwd=tmp_path)
    assert error_line(done) == f"{path} is not a complete capture: it has no meta.json (was it interrupted?)"
    assert done.returncode == 2


def test_ended_in_the_middle_leaves_no_process_and_no_ladder(tmp_path: Path) -> None:
    process = start_standing_in(tmp_path, "ladder", SLEEP, "-o", "out")
    asleep(tmp_path, 2)
    os.killpg(process.pid, signal.SIGINT)
    _ends(tmp_path, process, "interrupted", 130)
    assert not (tmp_path / "out").exists()


def test_a_killed_worker_leaves_no_process_and_no_ladder(tmp_path: Path) -> None:
    process = start_standing_in(tmp_path, "ladder", SLEEP, "-o", "out")
    for pid in asleep(tmp_path, 2):
        os.kill(pid, signal.SIGKILL)
    _ends(tmp_path, process, "ladder-0 was killed by signal SIGKILL during 'load'", 3)


def _ends(folder: Path, process: Started, message: str, code: int) -> None:
    assert process.ended() == (code, "", f"overhead-lens: {message}\n")
    wait_until_gone(process.pid)
    assert not (folder / "out" / "meta.json").exists()


@pytest.mark.measures
def test_a_whole_ladder_of_a_call_without_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing to compile: what can be done is timed, all else says why not."""
    monkeypatch.setattr(request, "QUICK", replace(request.QUICK, processes=2, blocks=2))
    monkeypatch.setattr(ladders, "RUNGS", {name: kind for name, kind in RUNGS.items() if name in FEW})
    path = tmp_path / "out"
    ladder(str(scenario(tmp_path)), quick=True, json_=True, quiet=True, output=path)
    document = validated(capsys.readouterr().out)
    rungs = {rung["name"]: rung for rung in document["rungs"]}
    assert {name: rung["reason"] for name, rung in rungs.items()} == FEW
    assert all((rung["ns"] is None) == (rung["reason"] is not None) for rung in rungs.values())
    assert rungs["eager"]["ns"] > 0
    assert (document["layers"], document["processes"]) == ([], 2)
    show(ladder_of(path), Format(json=True))
    assert validated(capsys.readouterr().out) == document
    meta, rows = read_ladder(path)
    assert (meta.names, meta.reasons) == (list(FEW), {name: FEW[name] for name in meta.reasons})
    assert set(rows["rung"]) == {name for name, reason in FEW.items() if reason is None}
