"""What ``import overhead_lens`` offers."""

from __future__ import annotations

import doctest
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import overhead_lens as ol
from overhead_lens import api
from overhead_lens.captures.directory import read_capture
from overhead_lens.errors import UsageError
from overhead_lens.machine.process import IN_WORKER
from overhead_lens.machine.request import QUICK
from overhead_lens.scenario import Arguments
from overhead_lens.stored import compare_captures
from overhead_lens.target import Target
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier
from tests.api import plain
from tests.cli.run import lens
from tests.documents import validated
from tests.drawn.builders import breakdown
from tests.drawn.captures import draw_capture
from tests.recorder.effort import little_effort

MARKS = ("region", "step")
# One needs a process that runs, the other takes minutes: `advise` is tested by itself.
WITHOUT_EXAMPLE = ("advise", "attach")
REFERENCE = Path(__file__).parents[2] / "traces" / "reference"


def test_importing_it_loads_neither_torch_nor_pandas() -> None:
    heavy = "[name for name in ('torch', 'pandas', 'numpy', 'numba', 'rich', 'typer') if name in sys.modules]"
    code = (
        f"import sys, overhead_lens as ol; print(sorted(ol.__all__), ol.step(), type(ol.region('x')).__name__, {heavy})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ["advise", "analyze", "attach", "compare", "load", "profile", "region", "step"]
    assert done.stdout == f"{names} None Region []\n"


def test_every_name_is_there_and_no_other() -> None:
    functions = ("advise", "analyze", "attach", "compare", "load", "profile")
    assert {name: getattr(ol, name).__module__ for name in ol.__all__} == {
        **dict.fromkeys(functions, "overhead_lens.api"),
        **dict.fromkeys(MARKS, "overhead_lens.marks"),
    }
    # A mark in a program's loop is found without asking the module again.
    assert {name for name in ol.__all__ if name in vars(ol)} >= set(MARKS)
    assert set(ol.__all__) <= set(dir(ol))
    with pytest.raises(AttributeError, match="module 'overhead_lens' has no attribute 'profil'"):
        _ = ol.profil


@pytest.mark.measures
@pytest.mark.parametrize("name", [name for name in ol.__all__ if name not in WITHOUT_EXAMPLE])
def test_the_example_of_a_docstring_holds(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "reference").symlink_to(REFERENCE)
    monkeypatch.chdir(tmp_path)
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(ol, name), name, globs={})
    with little_effort(processes=1, sampled=False):
        assert doctest.DocTestRunner().run(found) == (0, len(found.examples))
    assert found.examples


def test_a_result_has_all_its_forms(capsys: pytest.CaptureFixture[str]) -> None:
    result = breakdown({}, python=600, kernel=400)
    assert validated(result.to_json())["wall"]["ns"] == 1000.0
    table = result.to_pandas()
    assert list(table.index) == list(HOST_CATEGORIES)
    assert table.loc["python"].to_dict() == {
        "ns": 600,
        "low_ns": 540.0,
        "high_ns": pytest.approx(660.0),
        "share": 0.6,
        "evidence": "samples",
    }
    result.print()
    assert "drawn, eager, cpu   1.00 µs per call" in capsys.readouterr().out
    assert "1.00 µs per call" in result._repr_html_()


def test_captures_are_loaded_and_compared(tmp_path: Path) -> None:
    base, new = (draw_capture(tmp_path / name, call_ns=ns) for name, ns in (("base", 1_000), ("new", 3_000)))
    loaded = ol.load(base)
    assert isinstance(loaded, ol.api.Breakdown)
    assert (loaded.wall.ns, loaded.subject.name) == (1_000, "drawn")
    for one, other in ((base, new), (str(base), str(new)), (ol.load(base), ol.load(new))):
        delta = ol.compare(one, other)
        assert (delta.verdict, delta.wall_delta_ns, delta.blame) == ("slower", 2_000, ("python",))
    table = delta.to_pandas()
    assert (int(table["delta_ns"].sum()), table.loc["python", "verdict"]) == (2_000, "slower")
    assert validated(delta.to_json())["verdict"] == "slower"


def test_captures_that_differ_are_refused_without_an_option_of_the_command_line(tmp_path: Path) -> None:
    base, new = (draw_capture(tmp_path / name, params={"size": size}) for name, size in (("base", 1), ("new", 2)))
    with pytest.raises(UsageError) as refused:
        ol.compare(base, new)
    assert str(refused.value) == "the captures differ in params: {'size': 1} against {'size': 2}"


def test_the_directory_of_a_comparison_is_its_difference(tmp_path: Path) -> None:
    for name, ns in (("base", 1_000), ("new", 3_000)):
        draw_capture(tmp_path / name, call_ns=ns)
    (tmp_path / "delta.json").write_text('{"margin_share": 0.07}')
    found = ol.load(tmp_path)
    assert isinstance(found, api.Delta)
    assert found.wall_delta_ns == 2_000


@pytest.mark.parametrize(("margin_share", "verdict"), [(0.01, "slower"), (0.05, "same")])
def test_a_stored_comparison_keeps_its_margin_and_its_verdict(
    tmp_path: Path, margin_share: float, verdict: str
) -> None:
    for name, ns in (("base", 1_000), ("new", 1_030)):
        draw_capture(tmp_path / name, call_ns=ns)
    compared = compare_captures(tmp_path / "base", tmp_path / "new", default_classifier(), margin_share)
    assert compared.verdict == verdict
    (tmp_path / "delta.json").write_text(compared.to_json())
    document = validated(lens("report", ".", "--json", cwd=tmp_path).stdout)
    assert (document["margin_share"], document["verdict"]) == (margin_share, verdict)


@pytest.mark.parametrize("text", ["{}", "[", '{"margin_share": "5"}'])
def test_a_comparison_without_its_margin_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "delta.json").write_text(text)
    with pytest.raises(UsageError, match="is damaged: delta.json: "):
        ol.load(tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ol.profile(lambda: 1, fresh=True), "fresh=True: a lambda has no name that can be imported"),
        (
            lambda: ol.compare(lambda: 1, lambda: 2),
            "functions are compared in fresh processes: a lambda has no name that can be imported",
        ),
        (lambda: ol.compare(plain.total, "x"), "a function compares with a function, a capture with a capture"),
        (lambda: ol.compare(1, 2), "an object of type int is not a function, result or capture"),  # type: ignore[arg-type]
        (
            lambda: ol.profile("add1"),  # type: ignore[arg-type]
            "an object of type str is not a function; `overhead-lens profile NAME` measures scenarios",
        ),
        (lambda: ol.compare("a", "b", 1), "captures are compared as they are: leave out the other arguments"),
        (lambda: ol.load("gone"), "no capture gone"),
        (
            lambda: ol.load(__file__),
            f"{__file__} is a file, not a capture directory; `analyze` reads traces",
        ),
        (lambda: ol.analyze("gone.json"), "cannot read gone.json: No such file or directory"),
    ],
)
def test_wrong_input_is_a_line(call: Any, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        call()
    assert str(refused.value) == message
    assert list(tmp_path.iterdir()) == []


def test_a_worker_measures_nothing_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IN_WORKER, "1")
    with pytest.raises(UsageError, match="profile is called while a measuring process loads the file"):
        ol.profile(len, [1])


@pytest.mark.measures
def test_a_callable_is_measured_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    grad = set()

    def call(x: torch.Tensor, *, alpha: int) -> torch.Tensor:
        grad.add(torch.is_grad_enabled())
        return x.add(x, alpha=alpha)

    with torch.no_grad(), little_effort(processes=2):
        budget = ol.profile(call, torch.ones(10), alpha=2, quick=True)
    assert (budget.subject.kind, budget.wall.processes, grad) == ("callable", 1, {False})
    assert sum(each.ns for each in budget.host) == budget.wall.ns > 0
    document = validated(budget.to_json())
    assert any(warning.startswith("measured in one process") for warning in document["warnings"])
    assert ol.load(budget.capture) == budget


def test_fresh_processes_search_where_this_one_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    usual = sys.path
    # An import ignores what is not a text.
    monkeypatch.setattr(sys, "path", ["", *usual, tmp_path])
    request = api._request(Target("m:f", module="m", name="f"), Arguments(), False, QUICK, "profile")
    here = str(tmp_path)
    assert request.variables["PYTHONPATH"].split(os.pathsep) == [here, *usual, here]


@pytest.mark.measures
def test_functions_are_measured_in_fresh_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with little_effort(processes=3, sampled=False):
        budget = ol.profile(plain.total, list(range(100)), factor=2, quick=True)
        delta = ol.compare(plain.total, plain.larger, list(range(100)), factor=2)
    subject = budget.subject
    assert (subject.kind, subject.title, budget.wall.processes) == ("function", "tests.api.plain:total", 3)
    assert read_capture(Path(budget.capture)).meta.has_arguments
    assert sum(each.ns for each in budget.host) == budget.wall.ns
    assert (delta.verdict, delta.blame) == ("slower", ("python",))
    assert isinstance(delta.to_pandas(), pd.DataFrame)


@pytest.mark.usefixtures("answered_here")
def test_arguments_that_do_not_fit_are_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        ol.profile(plain.total)
    assert str(refused.value) == ("tests.api.plain:total takes (values, factor): missing a required argument: 'values'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.measures
def test_a_script_without_a_guard_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import overhead_lens as ol\ndef f(): return 1\nol.profile(f, fresh=True, quick=True)\n")
    monkeypatch.chdir(tmp_path)
    with little_effort(processes=1), pytest.raises(UsageError, match='it belongs below `if __name__ == "__main__":`'):
        runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("seconds", [0, -1.0, 0.49, 86_401, float("nan")])
def test_a_watch_has_a_length(seconds: float) -> None:
    with pytest.raises(UsageError) as refused:
        ol.attach(1, seconds)
    assert str(refused.value) == f"attach watches for 0.5 to 86,400 seconds, not {seconds}"
