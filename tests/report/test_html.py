"""Results in a notebook: what they say, and that no style sheet, script or name of the page's gets a word in."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import overhead_lens as ol
from overhead_lens.taxonomy.categories import CATEGORIES
from overhead_lens.taxonomy.host import Frame
from tests.drawn.builders import breakdown
from tests.drawn.captures import draw_capture
from tests.drawn.ladders import draw_stored

EVIL = "<script>alert('x')</script> & \"q\"\x1b[31m"
BUDGET = breakdown({"python": {"user": 500, "binding": 100}}, python=600, kernel=400)


class Page(HTMLParser):
    """Elements with their attributes, whether they are closed in order, and the text by line."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())

    def styles(self, tag: str) -> list[str]:
        return [attributes.get("style") or "" for name, attributes in self.elements if name == tag]


def test_a_budget_in_a_notebook() -> None:
    page = Page(replace(BUDGET, warnings=("one", "two"))._repr_html_())
    assert [text for text in page.texts if text] == [
        *("drawn, eager, cpu", "1.00 µs per call [900 ns .. 1.10 µs]"),
        "size=10 · 5 processes, 100 blocks, 1,000 calls, unprofiled",
        "python dominates: 60% of the call, most of it user (500 ns); then kernel with 40%.",
        "python 600 ns (60.0%) [540 ns .. 660 ns]; user 500 ns; binding 100 ns",
        "kernel 400 ns (40.0%) [360 ns .. 440 ns]",
        *("where", "share", "per call", "95 % interval"),
        *("python", "60.0%", "600 ns", "540 ns .. 660 ns"),
        *("user", "50.0%", "500 ns"),
        *("binding", "10.0%", "100 ns"),
        *("kernel", "40.0%", "400 ns", "360 ns .. 440 ns"),
        *("unattributed", "0.0%", "0 ns", "0 ns .. 0 ns"),
        *("sum = wall", "100 %", "1.00 µs", "900 ns .. 1.10 µs"),
        *("[1] one", "[2] two"),
    ]


def test_the_bar_is_the_budget() -> None:
    page = Page(BUDGET._repr_html_())
    inks = {category.name: category.ink for category in CATEGORIES}
    stripes = [(each["x"], each["width"], each["style"]) for name, each in page.elements if name == "rect"]
    assert stripes[:2] == [
        ("0.0", "600.0", f"fill:{inks['python']}"),
        ("600.0", "400.0", f"fill:{inks['kernel']}"),
    ]
    # Then a bar a row: python with its two parts, kernel, unattributed.
    assert [each["width"] for name, each in page.elements if name == "rect"][2:] == [
        *("600.0", "500.0", "100.0", "400.0", "0.0"),
    ]


def test_the_bars_of_a_difference_are_of_one_scale(tmp_path: Path) -> None:
    base, new = (draw_capture(tmp_path / name, call_ns=ns) for name, ns in (("base", 1_000), ("new", 4_000)))
    page = Page(ol.compare(base, new)._repr_html_())
    assert [each["width"] for name, each in page.elements if name == "rect"] == ["250.0", "1000.0"]
    texts = [text for text in page.texts if text]
    assert texts[:3] == [
        "drawn, eager, cpu",
        "1.00 µs → 4.00 µs per call (4.000x): slower",
        "3.00 µs slower: python +3.00 µs in drawn (drawn.py).",
    ]
    row = ["python", "1.00 µs", "4.00 µs", "+3.00 µs", "+2.98 µs .. +3.02 µs", "slower"]
    assert texts[texts.index("moved most") + 1 :][:6] == row


@pytest.fixture(params=["budget", "difference"])
def html(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """With names and warnings that are markup."""
    if request.param == "budget":
        kernel = replace(BUDGET.category("kernel"), top=(Frame(EVIL, 400),))
        host = tuple(kernel if each.category == "kernel" else each for each in BUDGET.host)
        subject = replace(BUDGET.subject, name=EVIL, variant=EVIL)
        return replace(BUDGET, host=host, subject=subject, warnings=(EVIL,))._repr_html_()
    base, new = (draw_capture(tmp_path / name, call_ns=ns) for name, ns in (("base", 1_000), ("new", 4_000)))
    found = ol.compare(base, new)
    return replace(found, sentence=EVIL, warnings=(EVIL,))._repr_html_()


def test_names_are_text(html: str) -> None:
    page = Page(html)
    assert {name for name, _ in page.elements} <= {
        "div",
        "span",
        "b",
        "table",
        "tr",
        "td",
        "th",
        "svg",
        "rect",
        "path",
        "title",
    }
    assert "\x1b" not in html
    assert any("<script>alert('x')</script> & \"q\"\\x1b[31m" in text for text in page.texts)
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on") or key == "href"]


def test_no_style_sheet_of_the_page_has_a_say(html: str) -> None:
    page = Page(html)
    (root, style), *others = [(name, each.get("style") or "") for name, each in page.elements]
    assert root == "div"
    assert style.startswith("all:initial;")
    assert "color:inherit" in style
    for name, inner in others:
        assert inner.startswith("all:unset;display:") or name in ("rect", "path", "title")
    assert re.findall(r"\bclass=|<style|@media", html) == []


def test_a_terminal_shows_the_report() -> None:
    shown: list[str] = []

    class Printer:
        text = staticmethod(shown.append)

    BUDGET._repr_pretty_(Printer(), False)
    assert shown[0].splitlines()[0] == "drawn, eager, cpu   1.00 µs per call [900 ns .. 1.10 µs]"
    assert "\x1b" not in shown[0]


def test_other_results_show_their_report(tmp_path: Path) -> None:
    ladder = ol.load(draw_stored(tmp_path / "ladder", {"eager": [100.0] * 5, "compiled": [300.0] * 5}))
    html = ladder._repr_html_()
    texts = [text for text in Page(html).texts if text]
    assert texts[0].startswith("ladder of drawn")
    assert texts[texts.index("eager") : texts.index("eager") + 3] == ["eager", "100 ns", "1.00"]
    assert "300 ns" in html
