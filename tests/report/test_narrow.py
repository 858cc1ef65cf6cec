"""Reports on narrow terminals: columns may be missing, no figure is cut."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from overhead_lens.api import analyze
from overhead_lens.directories import load_directory
from overhead_lens.report.forms import outline_of, print_text
from overhead_lens.report.outline import Table
from overhead_lens.stored import compare_captures
from overhead_lens.taxonomy.classifier import default_classifier

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"
CLASSIFIER = default_classifier()
FIGURE = re.compile(r"(?<![\w.,])[+-]?\d[\d.,]*(?=\s(?:ns|µs|ms|s)\b)|(?<![\w.,])[+-]?\d[\d.]*(?=%)")
OUTLINED = {
    "eager": lambda: load_directory(REFERENCE / "eager", CLASSIFIER),
    "compiled": lambda: load_directory(REFERENCE / "compiled", CLASSIFIER),
    "ladder": lambda: load_directory(REFERENCE / "ladder", CLASSIFIER),
    "trace": lambda: analyze(REFERENCE / "training.json.gz", critical_path=True),
    "difference": lambda: compare_captures(REFERENCE / "eager", REFERENCE / "compiled", CLASSIFIER, 0.01, force=True),
}


@pytest.fixture(scope="module")
def made() -> Callable[[str], Any]:
    """Each result, made once."""
    return cache(lambda name: OUTLINED[name]())


def printed(result: Any, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_text(console, result)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def figures(text: str) -> Counter[str]:
    return Counter(FIGURE.findall(re.sub(r"\s+", " ", text)))


def short_figures(result: Any) -> Iterator[str]:
    """Both ends of every interval that names its unit once."""
    for section in outline_of(result).sections:
        for table in section.blocks:
            if isinstance(table, Table):
                for row in table.rows:
                    for cell in row.cells:
                        yield from cell.short.split()[::2]


@pytest.mark.parametrize("name", OUTLINED)
def test_no_figure_is_cut(made: Callable[[str], Any], name: str) -> None:
    result = made(name)
    whole = figures(printed(result, 400))
    assert sum(whole.values()) > 30
    known = {*whole, *short_figures(result)}
    for width in (40, 60, 80, 100, 120):
        shown = figures(printed(result, width))
        assert set(shown) <= known, width
        assert sum(shown.values()) > 10


def test_a_difference_is_a_table_of_14_lines_on_80_columns(made: Callable[[str], Any]) -> None:
    lines = printed(made("difference"), 80).splitlines()
    assert len(lines) == 14
    assert lines[4].split() == ["category", "base", "new", "difference", "95", "%", "interval", "verdict"]
    assert max(map(len, lines)) <= 80


def test_a_capture_with_a_space_in_its_name_can_be_pasted(made: Callable[[str], Any]) -> None:
    of_a_call = replace(made("compiled"), capture="my traces/one")
    of_a_run = replace(load_directory(REFERENCE / "run", CLASSIFIER), capture="my traces/one")
    for result in (of_a_call, of_a_run):
        assert printed(result, 80).splitlines()[-1] == "try: overhead-lens advise 'my traces/one'"


def test_a_compiled_budget_has_at_most_50_lines_on_80_columns(made: Callable[[str], Any]) -> None:
    lines = printed(made("compiled"), 80).splitlines()
    assert len(lines) == 49
    assert lines[-1] == f"try: overhead-lens advise {REFERENCE / 'compiled'}"
    assert max(map(len, lines[:-2])) <= 80


def test_columns_give_way_before_rows_are_stacked(made: Callable[[str], Any]) -> None:
    lines = printed(made("difference"), 40).splitlines()
    assert "category    difference  verdict" in lines
    assert "python       +10.04 µs  slower" in lines
