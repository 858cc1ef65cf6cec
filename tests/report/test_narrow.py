"""Reports on narrow terminals: every figure of the wide one is there, whole."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from overhead_lens.directories import load_directory
from overhead_lens.report.forms import print_text
from overhead_lens.stored import compare_captures
from overhead_lens.taxonomy.classifier import default_classifier

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"
CLASSIFIER = default_classifier()
FIGURE = re.compile(r"(?<![\w.,])[+-]?\d[\d.,]*(?=\s(?:ns|µs|ms|s)\b)|(?<![\w.,])[+-]?\d[\d.]*(?=%)")
RESULTS = {
    "eager": lambda: load_directory(REFERENCE / "eager", CLASSIFIER),
    "compiled": lambda: load_directory(REFERENCE / "compiled", CLASSIFIER),
    "ladder": lambda: load_directory(REFERENCE / "ladder", CLASSIFIER),
    "difference": lambda: compare_captures(REFERENCE / "eager", REFERENCE / "compiled", CLASSIFIER, 0.01, force=True),
}


def figures(result: Any, width: int) -> Counter[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_text(console, result)
    text = re.sub(r"\s+", " ", console.file.getvalue())  # type: ignore[attr-defined]
    return Counter(FIGURE.findall(text))


@pytest.mark.parametrize("name", RESULTS)
def test_no_figure_is_cut(name: str) -> None:
    result = RESULTS[name]()
    whole = figures(result, 400)
    assert sum(whole.values()) > 30
    for width in (40, 60, 80, 100, 120):
        assert whole - figures(result, width) == Counter(), width
