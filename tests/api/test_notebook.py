"""The magics of IPython, in a session without a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from overhead_lens import api
from overhead_lens.budget.model import Breakdown
from tests.drawn.builders import breakdown
from tests.recorder.effort import little_effort

DRAWN = breakdown({}, python=600, kernel=400)


class Profile:
    """Stands for ``api.profile``: keeps what it was asked, and calls the function once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.returned: list[Any] = []

    def __call__(self, function: Any, **options: Any) -> Breakdown:
        self.asked.append((function.__qualname__, options))
        self.returned.append(function())
        return DRAWN


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch) -> Profile:
    made = Profile()
    monkeypatch.setattr(api, "profile", made)
    return made


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    session = InteractiveShell()
    session.run_line_magic("load_ext", "overhead_lens")
    yield session
    session.history_manager.end_session()  # type: ignore[union-attr]


def test_an_expression_is_called_as_it_stands(shell: InteractiveShell, profile: Profile) -> None:
    shell.run_cell("def f(text, n): return text * n\nn = 2")
    found = shell.run_cell("""%overhead f('a  {n} $n', n)""")
    assert found.result is DRAWN
    assert profile.asked == [("f('a  {n} $n', n)", {"compile": False, "quick": True})]
    assert profile.returned == ["a  {n} $na  {n} $n"]


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("-c n", {"compile": True, "quick": True}),
        ("-q n", {"compile": False, "quick": True}),
        ("--no-quick --compile n", {"compile": True, "quick": False}),
        ("-n", {"compile": False, "quick": True}),
    ],
)
def test_options_come_before_the_expression(
    shell: InteractiveShell, profile: Profile, line: str, options: dict[str, bool]
) -> None:
    shell.user_ns["n"] = 1
    if line == "-n":
        line = "(-n)"
    shell.run_cell(f"%overhead {line}")
    assert profile.asked == [(line.split()[-1], options)]


def test_a_cell_is_measured_and_its_names_are_its_own(shell: InteractiveShell, profile: Profile) -> None:
    shell.run_cell("x = 3")
    found = shell.run_cell("%%overhead --no-quick\ny = x + 1\nseen.append(y)")
    assert found.result is None  # it failed: no name `seen`
    shell.user_ns["seen"] = []
    assert shell.run_cell("%%overhead --no-quick\ny = x + 1\nseen.append(y)").result is DRAWN
    assert (shell.user_ns["seen"], {"y", "cell"} & {*shell.user_ns}) == ([4], set())
    assert profile.asked[-1] == ("cell", {"compile": False, "quick": False})


def test_lines_of_ipython_are_understood(shell: InteractiveShell, profile: Profile) -> None:
    shell.user_ns["seen"] = []
    shell.run_cell("%%overhead\nfound = %who_ls int\nseen.append(found)")
    assert shell.user_ns["seen"] == [[]]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%overhead", "%overhead takes an expression: %overhead f(x)"),
        ("%overhead f(", "SyntaxError: '(' was never closed (line 1)"),
        ("%overhead x = 1", "SyntaxError: invalid syntax (line 1)"),
        ("%overhead -z f(x)", "unrecognized arguments: -z"),
        ("%%overhead f(x)\n1", "%%overhead takes options in its line and code in the lines below"),
        ("%%overhead\n# nothing\n", "%%overhead takes options in its line and code in the lines below"),
        ("%%overhead\n1\nawait x", "SyntaxError: 'await' outside async function (line 2)"),
    ],
)
def test_wrong_input_is_a_line(
    shell: InteractiveShell, profile: Profile, cell: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(cell)
    assert capsys.readouterr().err == f"UsageError: {message}\n"
    assert profile.asked == []


@pytest.mark.measures
def test_a_call_is_measured_in_this_process(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shell.run_cell("import os\npids = set()\ndef f(n): pids.add(os.getpid()); return sum(range(n))")
    with little_effort(processes=2, sampled=False):
        budget = shell.run_cell("%overhead f(100)").result
    assert shell.user_ns["pids"] == {__import__("os").getpid()}
    assert (budget.subject.kind, budget.subject.title, budget.wall.processes) == ("callable", "f(100)", 1)
    assert sum(each.ns for each in budget.host) == budget.wall.ns > 0
    # What a terminal shows of the result.
    assert "f(100), eager, cpu " in capsys.readouterr().out
    shell.run_cell("%overhead 1 / 0")
    assert capsys.readouterr().err == "UsageError: 1 / 0 failed: ZeroDivisionError: division by zero\n"
