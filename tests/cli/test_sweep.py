"""``overhead-lens sweep``: bad input, and one small sweep for real (no test looks at how long anything took)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.recorder.effort import little_effort

TINY = """
from dataclasses import dataclass
from overhead_lens.scenario import Scenario, Work

@dataclass(frozen=True)
class Params:
    size: int = 50
    width: int = 1
    dtype: str = "float32"
    exact: bool = True
    share: float = 0.5

def inputs(params):
    return (list(range(params.size * params.width)),)

def total(values):
    return sum(values)

def by_hand(values):
    found = 0
    for value in values:
        found += value
    return found

SCENARIO = Scenario(name="$[b]tiny", summary="a sum", source="the tests", params=Params, inputs=inputs,
                    variants={"total": total, "by$_hand": by_hand}, WORK)
"""
WORK = "work=lambda params: Work(bytes=8 * params.size * params.width),"


def write(folder: Path, work: str = WORK) -> str:
    (folder / "tiny.py").write_text(TINY.replace("WORK", work) if work else TINY.replace(" WORK", ""))
    return "tiny.py"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add1"], "nothing to sweep: give at least two values of an integer parameter, -p n=100,1000,10000"),
        (
            ["add1", "-p", "size=10"],
            "nothing to sweep: give at least two values of an integer parameter, -p n=100,1000,10000",
        ),
        (["add1", "-p", "size=10,ten"], "the values of size must be integers with commas between them, not '10,ten'"),
        (["add1", "-p", "size=10,"], "the values of size must be integers with commas between them, not '10,'"),
        (["add1", "-p", "size=10,1.5"], "the values of size must be integers with commas between them, not '10,1.5'"),
        (["add1", "-p", "size=10,20,10"], "the values of size must be distinct, not '10,20,10'"),
        (["add1", "-p", "size=1,2", "-p", "size=3,4"], "parameter size is given twice"),
        (["ad1", "-p", "size=1,2"], "no scenario 'ad1'; did you mean 'add1'? (`overhead-lens scenarios` lists them)"),
        (["add1", "gelu", "-p", "size=1,2"], "a sweep takes one scenario, not add1 and gelu"),
        (
            ["add1:add1", "--all-variants", "-p", "size=1,2"],
            "--all-variants and add1:add1 disagree: leave the variant out, or the option",
        ),
        (["add1", "-p", "size=1,2", "--mode", "default"], "--mode needs --compile"),
        (["-p", "size=1,2"], "Missing argument 'TARGET'."),
    ],
)
def test_seen_before_anything_starts(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = lens("sweep", *arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny.py", "-p", "sizee=1,2"], "scenario $[b]tiny has no parameter 'sizee'; did you mean 'size'?"),
        (["tiny.py:sum", "-p", "size=1,2"], "scenario $[b]tiny has no variant 'sum' (it has: total, by$_hand)"),
        (["tiny.py", "-p", "share=1,2"], "parameter share cannot be swept: it is not an integer"),
        (["tiny.py", "-p", "dtype=1,2"], "parameter dtype cannot be swept: it is not an integer"),
        (["tiny.py", "-p", "exact=0,1"], "parameter exact cannot be swept: it is not an integer"),
        (
            ["tiny.py", "-p", "size=1,2", "-p", "width=1,2"],
            "scenario $[b]tiny does not define the work of size and width together: sweep one parameter at a time",
        ),
    ],
)
def test_seen_by_the_worker(tmp_path: Path, arguments: list[str], message: str) -> None:
    write(tmp_path, work="")
    done = lens("sweep", *arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, 2)
    assert not (tmp_path / "traces").exists()


@pytest.mark.measures
def test_a_sweep_is_measured_stored_and_read_again(tmp_path: Path) -> None:
    arguments = (
        "sweep",
        write(tmp_path),
        "--all-variants",
        "-p",
        "size=100,1,10",
        "--quick",
        "--json",
        "-q",
        "-o",
        "out",
    )
    with little_effort(processes=2):
        done = lens(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    document = validated(done.stdout)
    assert (document["against"], document["sizes"], document["processes"]) == ("size", [1, 10, 100], 2)
    assert [variant["name"] for variant in document["variants"]] == ["total", "by$_hand"]
    assert document["subject"]["params"] == {"width": 1, "dtype": "float32", "exact": True, "share": 0.5}
    total = document["variants"][0]
    assert all(point["ci95_ns"][0] <= point["ns"] <= point["ci95_ns"][1] for point in total["points"])
    assert validated(lens("report", "out", "--json", cwd=tmp_path).stdout) == document
    text = lens("report", "out", cwd=tmp_path).stdout
    assert "sweep of $[b]tiny, cpu  width=1 dtype=float32" in text
    assert "time = overhead + size / rate, least squares of relative errors" in text
    again = lens(*arguments, cwd=tmp_path)
    assert error_line(again) == "out is not empty; nothing is overwritten, name another --output"
    (tmp_path / "out" / "clock.parquet").write_text("nothing")
    assert error_line(lens("report", "out", cwd=tmp_path)).startswith("the sweep out is damaged: ")
    meta = tmp_path / "out" / "meta.json"
    meta.write_text(json.dumps({"schema": json.loads(meta.read_text())["schema"]}))
    assert error_line(lens("report", "out", cwd=tmp_path)).startswith("the sweep out is damaged: ")


@pytest.mark.measures
def test_several_parameters_are_fitted_against_their_work(tmp_path: Path) -> None:
    target = f"{write(tmp_path)}:total"
    with little_effort(processes=2):
        done = lens("sweep", target, "-p", "size=1,100", "-p", "width=1,3", "--json", "-o", "out", cwd=tmp_path)
    document = validated(done.stdout)
    assert (document["against"], document["sizes"]) == ("bytes", [8, 24, 800, 2400])
    assert [point["params"] for point in document["variants"][0]["points"]] == [
        {"size": size, "width": width} for size in (1, 100) for width in (1, 3)
    ]
