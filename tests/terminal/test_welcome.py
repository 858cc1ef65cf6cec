"""The first words of the program: every command that they name is one, and they fit the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import typer

from overhead_lens.__main__ import application
from overhead_lens.terminal.welcome import welcome
from tests.cli.run import lens


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_it_fits(columns: int) -> None:
    lines = welcome(columns).splitlines()
    assert max(map(len, lines)) <= max(columns, 52)
    assert sum(line.lstrip().startswith("overhead-lens ") for line in lines) == 8


def test_explanations_stand_beside_the_commands_where_there_is_room() -> None:
    assert "  overhead-lens run train.py            a program of yours, step by step" in welcome(80).splitlines()
    assert "  overhead-lens run train.py" in welcome(60).splitlines()


def test_what_it_says_to_type_can_be_typed() -> None:
    commands = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    said = [shlex.split(line) for line in welcome(60).splitlines() if line.startswith("  overhead-lens ")]
    assert {words[1] for words in said} <= set(commands)


def test_the_bare_name_says_it(tmp_path: Path) -> None:
    done = lens(cwd=tmp_path, env={"COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Where does every microsecond of a PyTorch call go?\n")
    assert "\n  overhead-lens profile add1 --compile  a built-in call, in under a minute\n" in done.stdout
    assert done.stdout.endswith("\noverhead-lens --help lists all commands.\n")
