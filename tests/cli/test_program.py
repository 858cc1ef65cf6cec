from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overhead_lens.__main__ import application
from tests.cli.run import lens

BUILTIN = {"add1", "elementwise_sqrt", "gelu", "linear_loop", "row_col_sum", "split_stack", "sum_elements"}


def commands() -> list[str]:
    return [command.name or "" for command in application().registered_commands]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['overhead-lens', '--help']\n"
        "from overhead_lens.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('HEAVY', sorted({'torch', 'pandas', 'numba', 'pyarrow', 'numpy', 'perfetto'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("HEAVY []")
    for command in commands():
        assert command in done.stdout


ENDING = (
    "import sys; sys.argv = ['overhead-lens', *{!r}]\n"
    "from overhead_lens.__main__ import main\n"
    "{}\n"
    "try: main()\n"
    "except SystemExit: pass\n"
    "print('HEAVY', sorted({{'torch', 'pandas', 'numba', 'scipy', 'pyarrow', 'numpy', 'perfetto'}} & set(sys.modules)))"
)


@pytest.mark.parametrize(
    "words",
    [
        ["report", "gone"],
        ["diff", "gone", "gone"],
        ["export", "gone"],
        ["open", "gone"],
        ["schema"],
    ],
    ids=lambda words: words[0],
)
def test_what_needs_no_analysis_imports_none(words: list[str], tmp_path: Path) -> None:
    code = ENDING.format(words, "")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.endswith("HEAVY []\n")


def test_a_program_under_run_starts_before_the_analysis_is_imported(tmp_path: Path) -> None:
    recorded = "from overhead_lens.studies.run import record; record.record_run = lambda *_: sys.exit(0)"
    code = ENDING.format(["run", "train.py"], recorded)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "HEAVY []\n"


@pytest.mark.measures
def test_scenarios_lists_the_built_in_ones(tmp_path: Path) -> None:
    listed = json.loads(lens("scenarios", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == BUILTIN
    assert next(row for row in listed if row["name"] == "linear_loop")["variants"] == ["loop", "batched"]
    text = lens("scenarios", cwd=tmp_path).stdout
    assert BUILTIN <= set(text.split())


@pytest.mark.measures
def test_doctor_says_what_each_instrument_needs(tmp_path: Path) -> None:
    findings = json.loads(lens("doctor", "--json", cwd=tmp_path).stdout)
    assert [finding["name"] for finding in findings] == [
        "torch",
        "samples",
        "C++ compiler",
        "valgrind",
        "browser",
        "GPU",
    ]
    assert findings[0]["available"] is True
    without = json.loads(lens("doctor", "--json", cwd=tmp_path, env={"PATH": "/nonexistent", "CXX": ""}).stdout)
    compiler = next(finding for finding in without if finding["name"] == "C++ compiler")
    assert compiler["available"] is False
    assert compiler["remedy"] == "Install g++ or clang++ (apt-get install g++), or set CXX"
