"""What a page shows of an output: lines of it, in a block ``text`` below ``<!-- excerpt: NAME -->``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_EXCERPT = re.compile(r"^<!-- excerpt: (?P<name>[^\n]+) -->\n```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def excerpts(page: Path) -> list[tuple[str, list[str]]]:
    """Name and lines of each excerpt on a page."""
    return [
        (found["name"], found["text"].splitlines()) for found in _EXCERPT.finditer(page.read_text(encoding="utf-8"))
    ]


def excerpt(page: str, name: str) -> list[str]:
    """Lines of one excerpt, which a page shows once."""
    (lines,) = [lines for found, lines in excerpts(ROOT / page) if found == name]
    return lines


def assert_shows(output: str, lines: Iterable[str]) -> None:
    """Every line is one of the output, and they come in the same order."""
    printed = iter([line.rstrip() for line in output.splitlines()])
    for line in lines:
        assert line in printed, f"{line!r} is not there, or not in this order, in:\n{output}"
