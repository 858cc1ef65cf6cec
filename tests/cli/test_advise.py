"""``overhead-lens advise`` in a terminal: remedies that help, fail, hang, kill and leave traces; what is stored of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.stored import breakdown_of
from overhead_lens.studies.advise import record
from tests.cli.hanging import impatient
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.recorder.effort import little_effort

CALL = """
import torch

def work(x):
    for _ in range(4):
        x = x + 1
    return x

def half(x):
    return work(x)

def inputs():
    return (torch.ones(8),)
"""

REMEDIES = """
import os, time
from dataclasses import replace
from overhead_lens.remedies.registry import built_in
from overhead_lens.remedies.remedy import NotApplicableError, Remedy
from overhead_lens.worker import remedied

# The built-in ones are many, and tested by themselves: here one that fails and one that does not.
remedied.built_in = lambda: [each for each in built_in() if each.name in ("compile", "no_grad")]

def fewer(x):
    return x + 4

def wrong(x):
    return x + 5

def dies(call):
    os._exit(3)

def hangs(call):
    open(f"asleep-{os.getpid()}", "w").close()
    time.sleep(600)

def refuses(call):
    raise NotApplicableError("it is not for this call")

def fails(call):
    raise ValueError("no luck")

def marks(call):
    os.environ["LEFT_BEHIND"] = "1"
    return call

def made(name, apply, **fields):
    fields = {"shrinks": ("python", "dispatcher", "kernel"), **fields}
    return Remedy(name=name, summary=f"it {name}", how=name, source="https://tests", apply=apply, **fields)

REMEDIES = [
    made("fewer", lambda call: replace(call, function=fewer)),
    made("wrong", lambda call: replace(call, function=wrong), group="other"),
    made("dies", dies), made("hangs", hangs), made("refuses", refuses), made("fails", fails), made("marks", marks),
    made("variable", lambda call: call, variables=lambda: {"SOME": "thing"}),
    made("far", lambda call: call, shrinks=("launch",)),
    made("dies_alone", dies, own_process=True), made("fails_alone", fails, own_process=True),
]
"""

NOT_TIMED = ("refuses", "fails", "fails_alone", "far", "compile")


@pytest.mark.measures
def test_remedies_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"clock_budget_ns": 200_000_000, "samples_per_process": 1}
    monkeypatch.setattr(record, "_CONFIRMING", replace(record._CONFIRMING, processes=5, **short))
    monkeypatch.setattr(record, "_BRIEF", replace(record._BRIEF, **short))
    monkeypatch.setattr(record, "_ROUNDS", 6)
    monkeypatch.setattr(record, "_MOST_CAPTURES", 2)
    budgets = []
    monkeypatch.setattr(record, "breakdown_of", lambda *of: budgets.append(breakdown_of(*of)) or budgets[-1])
    (tmp_path / "call.py").write_text(CALL)
    (tmp_path / "mine.py").write_text(REMEDIES)
    (tmp_path / "bin").mkdir()
    monkeypatch.delenv("CXX", raising=False)
    with little_effort(processes=3, sampled=False), impatient(tmp_path):
        done = lens(
            *("advise", "call.py:work", "--inputs", "call.py:inputs", "--remedies", "mine.py", "--quick"),
            *("--json", "--markdown", "summary.md", "--html", "page.html", "-o", "kept", "-q"),
            cwd=tmp_path,
            env={"PATH": str(tmp_path / "bin"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")},
        )
    assert (done.returncode, done.stderr) == (0, "")
    # However many processes remedies end.
    assert len(budgets) == 1
    document = validated(done.stdout)
    found = {each["remedy"]: each for each in document["remedies"]}
    faster = [each["remedy"] for each in document["remedies"] if each["verdict"] == "faster"]
    assert {*faster[:2]} == {"fewer", "wrong"}
    assert (found["fewer"]["output"], found["fewer"]["safety"]) == ("equal", "safe")
    assert found["fewer"]["wall"]["ratio"] < 0.5
    assert sum(change["delta_ns"] for change in found["fewer"]["host"]) == pytest.approx(
        found["fewer"]["wall"]["delta_ns"], abs=1
    )
    assert (found["wrong"]["output"], found["wrong"]["safety"]) == ("differs", "changes_semantics")
    states = {name: (found[name]["status"], found[name]["reason"]) for name in NOT_TIMED}
    assert states == {
        "compile": ("failed", "torch.compile found no working C++ compiler; install g++ or clang++ (or set CXX)"),
        "refuses": ("not_applicable", "it is not for this call"),
        "fails": ("failed", "ValueError: no luck"),
        "fails_alone": ("failed", "ValueError: no luck"),
        "far": ("not_applicable", "launch takes 0.0% of the call"),
    }
    assert found["dies"]["status"] == found["dies_alone"]["status"] == found["hangs"]["status"] == "failed"
    assert "ended with exit code 3 during 'prepare remedy'" in found["dies"]["reason"]
    assert "ended with exit code 3 during 'check remedy'" in found["dies_alone"]["reason"]
    assert found["hangs"]["reason"].endswith(
        "did not finish 'prepare remedy' within 120 s and was ended (raise --timeout)"
    )
    for name in ("marks", "variable", "no_grad"):
        assert (found[name]["status"], found[name]["output"]) == ("measured", "equal")
    assert document["together"]["remedies"][0] == "fewer"
    assert "wrong" not in document["together"]["remedies"]
    assert document["together"]["verdict"] == "faster"
    assert "| fewer |" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "fewer" in (tmp_path / "page.html").read_text(encoding="utf-8")
    _is_stored(tmp_path, document)


def _is_stored(folder: Path, document: dict[str, Any]) -> None:
    again = lens("report", "kept", "--json", cwd=folder)
    assert {**json.loads(again.stdout), "directory": ""} == {**document, "directory": ""}
    assert not list((folder / "kept").glob("*.pt*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing_like_it"], "no scenario"),
        (["add1", "--remedies", "none.py"], "none.py"),
        (["add1", "--mode", "default"], "--mode needs --compile"),
        (["folder"], "folder"),
        (["folder", "--compile"], "folder is a directory, whose capture defines the call: leave out the other options"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "folder").mkdir()
    done = lens("advise", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in error_line(done)


@pytest.mark.measures
def test_a_wrong_file_of_remedies_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("REMEDY = 3")
    (tmp_path / "call.py").write_text(CALL)
    done = lens("advise", "call.py:work", "--inputs", "call.py:inputs", "--remedies", "mine.py", cwd=tmp_path)
    assert (done.returncode, "an object of type int is not a Remedy" in error_line(done)) == (2, True)
