"""``profile --instructions``: the budget in instructions beside the one in time, or the reason why there is none."""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.budget.model import InstructionBudget
from overhead_lens.instruments.instructions import record
from overhead_lens.readers.callgrind import read_callgrind
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier
from tests.cli.run import TINY, error_line, lens, scenario
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.instruments.test_instructions import answering, stand_in
from tests.recorder.effort import little_effort

COUNTS = """\
events: Ir
ob=(1) libpython3.11.so.1.0
fn=(1) _PyEval_EvalFrameDefault
0 600
cob=(2) libtorch_cpu.so
cfn=(2) at::_ops::add_Tensor::call(at::Tensor const&)
calls=10 0
0 400
ob=(2)
fn=(2)
0 400
totals: 1000
"""

# What a worker takes of torch before it runs a call.
NO_TORCH = """
Tensor, Generator, manual_seed = type("Tensor", (), {}), type("Generator", (), {}), int
"""


def counted(path: Path, text: str = COUNTS, **about: Any) -> Path:
    """A drawn capture with callgrind's output of ten calls."""
    stored = draw_capture(path, instructions={"calls": 10, "reason": None, **about})
    (stored / "callgrind.out.gz").write_bytes(gzip.compress(text.encode()))
    return stored


def test_a_stored_capture_shows_its_instructions(tmp_path: Path) -> None:
    stored = counted(tmp_path / "c")
    document = validated(lens("report", stored, "--json", cwd=tmp_path).stdout)
    assert [each["category"] for each in document["instructions"]["host"]] == list(HOST_CATEGORIES)
    found = {each["category"]: each["count"] for each in document["instructions"]["host"] if each["count"]}
    assert (document["instructions"]["count"], found) == (100, {"python": 60, "dispatcher": 40})
    assert not any("instruction" in warning for warning in document["warnings"])
    text = lens("report", stored, cwd=tmp_path).stdout
    table = text[text.index("Instructions per call (callgrind, 10 calls, one thread)") :].splitlines()[1:5]
    assert [line.split()[:3] for line in table[1:]] == [
        ["python", "60", "60.0%"],
        ["dispatcher", "40", "40.0%"],
        ["sum", "100", "100"],
    ]


def test_not_asked_for_is_null_without_a_word(tmp_path: Path) -> None:
    document = validated(lens("report", draw_capture(tmp_path / "c"), "--json", cwd=tmp_path).stdout)
    assert document["instructions"] is None
    assert not any("instruction" in warning for warning in document["warnings"])


@pytest.mark.parametrize(
    ("text", "about", "reason"),
    [
        (COUNTS.partition("totals")[0], {}, "callgrind's output is cut off"),
        ("events: Ir\ntotals: 0\n", {}, "callgrind counted no instruction in the measured loop"),
        (COUNTS, {"reason": "valgrind is not installed"}, "valgrind is not installed"),
    ],
)
def test_without_counts_the_reason_is_a_warning(tmp_path: Path, text: str, about: dict[str, str], reason: str) -> None:
    done = lens("report", counted(tmp_path / "c", text, **about), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = validated(done.stdout)
    assert document["instructions"] is None
    assert f"no instruction counts: {reason}" in document["warnings"]
    assert document["wall"]["ns"] == sum(each["ns"] for each in document["host"])


def test_counts_that_are_gone_and_counts_that_do_not_add_up(tmp_path: Path) -> None:
    gone = counted(tmp_path / "gone")
    (gone / "callgrind.out.gz").unlink()
    warnings = validated(lens("report", gone, "--json", cwd=tmp_path).stdout)["warnings"]
    assert "no instruction counts: callgrind's output is not in the capture" in warnings
    odd = counted(tmp_path / "odd", COUNTS.replace("totals: 1000", "totals: 1001"))
    warnings = validated(lens("report", odd, "--json", cwd=tmp_path).stdout)["warnings"]
    assert "callgrind's output is not sound: 1 totals_differ" in warnings


def test_damaged_metadata_is_refused(tmp_path: Path) -> None:
    stored = counted(tmp_path / "c", calls=0)
    assert error_line(lens("report", stored, cwd=tmp_path)) == (
        f"the capture {stored} is damaged: meta.json: Expected `int` >= 1 - at `$.instruments.instructions.calls`"
    )


@pytest.mark.measures
def test_profile_without_valgrind_is_whole_otherwise(tmp_path: Path) -> None:
    command = ["profile", scenario(tmp_path), "--quick", "--instructions", "--json", "-o", "out"]
    with little_effort(processes=2, sampled=False):
        done = lens(*command, cwd=tmp_path, env={"PATH": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    document = validated(done.stdout)
    assert document["instructions"] is None
    assert "no instruction counts: valgrind is not installed (apt-get install valgrind)" in document["warnings"]


def test_a_difference_of_captures_shows_that_of_their_instructions(tmp_path: Path) -> None:
    more = COUNTS.replace("0 600", "0 650").replace("totals: 1000", "totals: 1050")
    base, new = counted(tmp_path / "base"), counted(tmp_path / "new", more)
    document = validated(lens("diff", base, new, "--json", cwd=tmp_path).stdout)
    delta = document["instructions"]
    assert (delta["base_count"], delta["new_count"], delta["delta_count"], delta["ratio"]) == (100, 105, 5, 1.05)
    assert (delta["verdict"], delta["blame"]) == ("more", ["python"])
    assert {each["category"]: each["delta_count"] for each in delta["host"] if each["delta_count"]} == {"python": 5}
    assert delta["host"][0]["moved"] == [{"name": "_PyEval_EvalFrameDefault (libpython3.11.so.1.0)", "delta_count": 5}]
    text = lens("diff", base, new, cwd=tmp_path).stdout
    table = text[text.index("Instructions per call (callgrind)") :].splitlines()
    assert table[1] == "+5 instructions per call (+5.00%): python +5."
    assert table[3].split()[:5] == ["python", "60", "65", "+5", "+5.00%"]
    assert table[5].split() == ["sum", "100", "105", "+5", "+5.00%"]


def test_one_side_without_counts_has_no_difference_in_them(tmp_path: Path) -> None:
    document = validated(
        lens("diff", counted(tmp_path / "base"), draw_capture(tmp_path / "new"), "--json", cwd=tmp_path).stdout
    )
    assert document["instructions"] is None


def counts_of(folder: Path, calls: int) -> InstructionBudget:
    graph = read_callgrind(folder / "callgrind.out.gz")
    assert graph.issues == {}
    return instruction_budget(graph, calls, default_classifier())


@pytest.mark.measures
def test_the_same_counts_keep_a_gate_in_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in for valgrind; no clock is read."""
    answering(tmp_path, monkeypatch, COUNTS)
    with little_effort(processes=1, sampled=False):
        done = lens("profile", scenario(tmp_path), "--quick", "--instructions", "-q", "-o", "base", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    same = lens("check", "base", "--instructions", "--json", "-q", "-o", "same", cwd=tmp_path)
    assert (same.returncode, same.stderr) == (0, "")
    document = validated(same.stdout)
    assert (document["schema"], document["regressed"]) == ("overhead-lens/counts-delta/2", False)
    assert [(limit["name"], limit["state"]) for limit in document["limits"]] == [("instructions", "kept")]
    assert sorted(each.name for each in (tmp_path / "same").iterdir()) == ["callgrind.out.gz", "meta.json"]


@pytest.mark.measures
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed (apt-get install valgrind)")
def test_a_gate_in_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred more steps of Python break the limit, Python is named, and nothing else counts more.

    Under valgrind torch takes twenty seconds to import: once is enough, since this call does not use it. So are six rounds, whose
    counts differ by 0.03 %.
    """
    monkeypatch.setattr(record, "_EFFORT", ((math.inf, 200, 6),))
    path = scenario(tmp_path, text=TINY.replace("size: int = 50", "size: int = 500"))
    with little_effort(processes=1, sampled=False):
        done = lens("profile", path.name, "--quick", "--instructions", "-q", "-o", "base", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path.write_text(path.read_text().replace("    pass\n", "    for _ in range(100): pass\n"))
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "torch.py").write_text(NO_TORCH)
    with_stub = f'#!/bin/sh\nPYTHONPATH={tmp_path}/stub exec {shutil.which("valgrind")} "$@"\n'
    stand_in(tmp_path, monkeypatch, with_stub)
    arguments = ["--max", "instructions=0.5%", "--max", "instructions.dispatcher=0", "--markdown", "more.md"]
    more = lens("check", "base", *arguments, "-q", "-o", "more", cwd=tmp_path)
    assert more.returncode == 1
    broken, kept = (line.split() for line in more.stdout.splitlines() if line.startswith("instructions"))
    assert kept == ["instructions.dispatcher", "+0", "(+0.00%)", "+0", "(+0.00%)", "exact", "kept"]
    assert broken[-1] == "broken"
    assert re.search(r"\+[\d,]+ instructions per call \(\+.*%\): python \+\d", more.stdout)
    assert (tmp_path / "more.md").read_text(encoding="utf-8").startswith("### Regression: tiny:total\n")
    # A check counts as many calls as its baseline.
    calls = json.loads((tmp_path / "base" / "meta.json").read_text())["instruments"]["instructions"]["calls"]
    first, second = (counts_of(tmp_path / name, calls) for name in ("base", "more"))
    assert first.category("python").count > 0.99 * first.count
    for category in set(HOST_CATEGORIES) - {"python"}:
        assert abs(first.category(category).count - second.category(category).count) <= 0.001 * first.count, category
