"""What printers make of a drawn outline: each shows every column, harmless, in its own form."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from overhead_lens.report import looks
from overhead_lens.report.cells import bounds, heads, length, share, signed_bounds, text, time
from overhead_lens.report.outline import Card, Cell, Column, Notes, Outline, Row, Section, Table
from overhead_lens.report.printers.markdown import to_markdown
from overhead_lens.report.printers.notebook import notebook_html
from overhead_lens.report.printers.page import page_of
from overhead_lens.report.printers.terminal import bar, cut_middle, print_outline
from overhead_lens.taxonomy.categories import BLAME, HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier

CLASSIFIER = default_classifier()


def drawn(*columns: Column, brief: int | None = None) -> Outline:
    """An outline of one table of two rows and a sum, and a second section that only reports have."""
    all_columns = (*heads("where | >per call | 95 % interval"), *columns)
    more = [text(f"{column.name} of it") for column in columns]
    rows = [
        Row([text("python", "python"), time(2_000), bounds((1_500, 2_500)), *more]),
        Row([text("kernel", "kernel"), time(1_000), bounds((500, 1_500)), *more]),
        Row([text("sum"), time(3_000), Cell(), *([Cell()] * len(more))], tone="bold", is_sum=True),
    ]
    first = Section("Where it goes", [Table(all_columns, rows, brief=brief)], reach="everywhere")
    second = Section("Further", [Notes(["told in reports"])])
    third = Section("Details", [Notes(["told on pages"])], reach="page")
    return Outline(
        "the call", "python dominates.", [first, second, third], "3.00 µs", ["size=1"], ["drifts"], ["end: x"]
    )


def terminal(outline: Outline, width: int = 80, *, whole: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_outline(console, outline, whole=whole)
    shown: str = console.file.getvalue()  # type: ignore[attr-defined]
    return shown


def page(outline: Outline) -> str:
    return page_of(outline, CLASSIFIER)


PRINTERS: dict[str, Callable[[Outline], str]] = {
    "terminal": terminal,
    "page": page,
    "markdown": to_markdown,
    "notebook": notebook_html,
}


@pytest.mark.parametrize("name", PRINTERS)
def test_a_column_is_one_place(name: str) -> None:
    before, after = PRINTERS[name](drawn()), PRINTERS[name](drawn(*heads("evidence")))
    assert "evidence" not in before
    assert after.count("evidence of it") == 2
    assert after.count("evidence") == 3


def test_on_a_terminal() -> None:
    assert terminal(drawn()).splitlines() == [
        "the call   3.00 µs",
        "size=1",
        "python dominates.",
        "where   per call  95 % interval",
        "python   2.00 µs  1.50 µs .. 2.50 µs",
        "kernel   1.00 µs  500 ns .. 1.50 µs",
        "sum      3.00 µs",
        "",
        "Further",
        "told in reports",
        "",
        "[1] drifts",
        "end: x",
    ]


def test_in_markdown() -> None:
    assert to_markdown(drawn()).splitlines() == [
        "### the call",
        "",
        *("python dominates.", "", "3.00 µs", "", "size=1", ""),
        "| where | per call | 95 % interval |",
        "|---|---:|---|",
        "| python | 2.00 µs | 1.50 µs .. 2.50 µs |",
        "| kernel | 1.00 µs | 500 ns .. 1.50 µs |",
        "| sum | 3.00 µs |  |",
        "",
        "- drifts",
    ]


def test_each_reaches_so_far() -> None:
    assert "told on pages" in page(drawn())
    assert "told on pages" in terminal(drawn(), whole=True)
    for name, shown in (("terminal", terminal(drawn())), ("notebook", notebook_html(drawn()))):
        assert "told on pages" not in shown, name
    assert "told in reports" not in notebook_html(drawn())


def test_rows_that_are_left_out_are_counted_and_sums_stay() -> None:
    lines = terminal(drawn(brief=1)).splitlines()[4:7]
    assert lines == ["python   2.00 µs  1.50 µs .. 2.50 µs", "1 more", "sum      3.00 µs"]
    assert "kernel" in page(drawn(brief=1))


def test_a_table_gives_way_column_by_column() -> None:
    outline = drawn(*heads("needed by ~2 | place ~1"))
    shown = [terminal(outline, width).splitlines()[3].split() for width in (80, 58, 44, 33)]
    assert shown[0] == ["where", "per", "call", "95", "%", "interval", "needed", "by", "place"]
    assert shown[1] == ["where", "per", "call", "95", "%", "interval", "place"]
    assert shown[2] == shown[3] == ["where", "per", "call", "95", "%", "interval"]
    # No room for both units: the larger one, once.
    assert "python   2.00 µs  1.50 .. 2.50 µs" in terminal(outline, 33)
    assert "kernel   1.00 µs  0.50 .. 1.50 µs" in terminal(outline, 33)
    # No room for the figures beside each other: a line each.
    assert terminal(outline, 24).splitlines()[4:7] == [
        "  per call 2.00 µs",
        "  95 % interval 1.50 µs",
        "  .. 2.50 µs",
    ]


def test_names_are_cut_in_the_middle() -> None:
    assert cut_middle("abcdefghij", 10) == "abcdefghij"
    assert cut_middle("abcdefghij", 7) == "abc…hij"
    assert cut_middle("abcdefghij", 6) == "ab…hij"


def test_a_figure_at_an_end_of_a_name_is_not_cut() -> None:
    assert cut_middle("873.2 µs measured_loop", 14) == "873.2 µs…_loop"
    assert cut_middle("-12.5% measured_loop", 10) == "-12.5%…oop"
    assert cut_middle("dispatcher 616.2 µs", 14) == "dispa…616.2 µs"
    assert cut_middle("kernel<128, 4>", 9) == "kern…, 4>"
    assert cut_middle("1,234,567 at::native::add_kernel", 14) == "1,234,567…rnel"
    # Each of these letters takes two cells.
    assert cut_middle("日本語の関数名", 9) == "日本…数名"
    assert cut_middle("日本語の関数名", 4) == "日…"


def test_a_figure_within_a_name_is_whole_or_not_there() -> None:
    assert cut_middle("1024 x 9375 x 512", 16) == "1024 x … x 512"
    assert cut_middle("busy 40%, idle due to python (30%)", 14) == "busy …n (30%)"
    assert cut_middle("works (safe; guard -1.25 µs, python -7 ns) on", 28) == "works (safe; …thon -7 ns) on"
    assert cut_middle("works (safe; guard -1.25 µs, python -17 ns)", 40) == "works (safe; guard …, python -17 ns)"
    assert cut_middle("140234234234234", 12) == "14023423423…"


def test_names_with_their_figures_are_left_out_from_the_end() -> None:
    columns = heads("operator | self time")
    own = "dispatcher 616 ns, python 103 ns"
    block = Table(columns, [Row([Cell("aten::add.Tensor"), Cell(own, look="dispatcher")])])
    outline = Outline("title", "", [Section("self", [block])])
    assert terminal(outline, 50).splitlines()[-1] == f"aten::add.Tensor  {own}"
    assert terminal(outline, 48).splitlines()[-1] == "aten::add.Tensor  dispatcher 616 ns"


@pytest.mark.parametrize(
    ("interval", "full", "short"),
    [
        ((-1_250.0, -908.0), "-1.25 µs .. -908 ns", "-1.25 .. -0.91 µs"),
        ((-40.0, 7.0), "-40 ns .. +7 ns", "-40 .. +7 ns"),
        ((2e6, 1.5e9), "+2.00 ms .. +1.50 s", "+0.00 .. +1.50 s"),
        ((-9.9996e5, 9.9996e5), "-1.00 ms .. +1.00 ms", "-1.00 .. +1.00 ms"),
    ],
)
def test_intervals(interval: tuple[float, float], full: str, short: str) -> None:
    cell = signed_bounds(interval)
    assert (cell.text, cell.short) == (full, short)


def test_bars() -> None:
    shown = [bar(length(value, 1_000).length) for value in (0, 0.1, 500, 1_000)]  # type: ignore[arg-type]
    assert shown == ["", "▏", "█" * 12, "█" * 24]
    cells = [length(500, 1_000, (250, 750), "python"), share(0.5)]
    outline = replace(drawn(), sections=[Section("", [Table(heads(" | >"), [Row(cells)])], "everywhere")])
    ink = looks.ink("python")
    for shown_as in (page(outline), notebook_html(outline)):
        assert (
            f'<rect x="0.0" y="0" width="500.0" height="14" style="fill:{ink}"></rect><path d="M250.0 7.0H750.0"'
            in shown_as
        )


def luminance(ink: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(ink[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    "look", [*HOST_CATEGORIES, *BLAME, "compute", "communication", "copy", "both at once", looks.LONGER, looks.SHORTER]
)
def test_colors_are_seen_on_white_and_on_black(look: str) -> None:
    own = luminance(looks.ink(look)) + 0.05
    assert 1.05 / own >= 3
    assert own / 0.05 >= 3


def test_a_first_section_that_is_not_the_answer_has_its_heading_everywhere() -> None:
    for show in (terminal, to_markdown, notebook_html):
        assert "Where it goes" not in show(drawn())
        assert "Where it goes" in show(replace(drawn(), has_answer=False))


def test_all_prints_what_pages_show_and_every_other_outline() -> None:
    outline = replace(drawn(), hint="with --all also: details", others=lambda: [replace(drawn(), title="another call")])
    brief, whole = terminal(outline), terminal(outline, whole=True)
    assert brief.splitlines()[-3:] == ["", "with --all also: details", "end: x"]
    assert "told on pages" not in brief and "another call" not in brief
    assert whole.count("told on pages") == 2
    assert "--all" not in whole
    assert whole.index("another call") > whole.index("told on pages")


def test_what_to_try_is_indented_and_its_evidence_is_for_all() -> None:
    card = Section("Try", [Card("A copy waits.", ["12x copy", ""], "copy on a stream of its own")])
    assert terminal(replace(drawn(), sections=[card]), 22).splitlines()[3:-2] == [
        *("A copy waits.", "   try: copy on a", "   stream of its own", ""),
    ]
    assert "   12x copy\n   try" in terminal(replace(drawn(), sections=[card]), whole=True)
