"""The terminal report of a drawn budget, letter by letter; a mismatch leaves a `.got` beside the golden file."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from overhead_lens.analysis.model import CrossCheck, Frame, Guard, Operator
from overhead_lens.report.text import bar, print_breakdown
from tests.builders import breakdown

GOLDEN = Path(__file__).with_name("golden")


def printed(made) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False, color_system=None)
    print_breakdown(console, made)
    text: str = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def expect(name: str, text: str) -> None:
    golden = GOLDEN / name
    if not golden.exists() or golden.read_text(encoding="utf-8") != text:
        golden.with_suffix(".got").write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text


def test_report() -> None:
    made = breakdown({"python": {"user": 3_000, "binding": 4_000}}, python=7_000, guard=2_000, kernel=1_000)
    tree = Operator(
        "add1:add1",
        10_000,
        9_000,
        {"python": 7_000, "guard": 2_000},
        (Operator("aten::add", 1_000, 1_000, {"kernel": 1_000}),),
    )
    made = replace(
        made,
        compile=True,
        operators=tree,
        units=100,
        guards=(Guard("TENSOR_MATCH L['x']", 1_500.0), Guard("GLOBAL_STATE", 500.0)),
        cross_checks=(CrossCheck("guard", 2_000.0, 1_900.0, None, agree=True),),
        warnings=("only 3 clock processes",),
        published=({"label": "compiled", "ns": 14_000.0, "source": "an issue"},),
        capture="traces/drawn",
    )
    expect("report.txt", printed(made))


def test_names_are_never_markup() -> None:
    made = breakdown(python=100, scenario="[bold red]x[/]")
    hostile = replace(made.host[0], top=(Frame("[link=http://evil]f[/link] (a.py)", 100),))
    text = printed(replace(made, host=(hostile, *made.host[1:])))
    assert "[bold red]x[/]" in text
    assert "[link=http://evil]f[/link] (a.py)" in text


def test_bars() -> None:
    assert bar(0.0) == ""
    assert bar(0.0001) == "▏"
    assert bar(0.5) == "█" * 12
    assert bar(1.0) == "█" * 24
