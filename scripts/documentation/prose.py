"""Finds habits of prose that make a reader search, in pages, strings and comments, and prints what to write instead."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HABITS = {
    r"\b(?:is|are|be|was|were) told\b": "reported; unknown",
    r"\b(?:is|are) said\b": "reported",
    r"\btells? of\b": "describe, record",
    r"\b(?:its|the|their|each) begin\b": "the beginning",
    r"(?<!there )(?<!There )\b(?:is|are) no (?!longer|more\b)": "is not a",
    r"\bsome percent\b": "a few percent",
    r"\bwhat of (?:it|them)\b|\bof those that\b": "name it",
    r"\bthe ones? (?:that|which|with|of)\b": "repeat the noun",
    r"\b(?:held|hold|holds|holding) (?:\w+ ){0,4}against\b": "compare with",
    r"\b(?:spares?|spared|sparing)\b": "save",
    r"\bstands? (?:there|for|beside)\b": "is, appears, represents",
    r"\b(?:holds?|held|holding) (?:\w+ )?up\b": "block; straggler",
    r"\bpassed on\b": "propagated",
    r"\bpage to look at\b": "HTML report",
    r"\banew\b": "again",
    r"\b(?:is|are|be) asked for\b|\b(?:is|are) wanted\b": "requested",
    r"\bstretch(?:es)? of\b|\beach stretch\b": "interval",
    r"\bone behind the other\b": "one after the other",
    r"\bso many (?!times)\b": "this number of",
    r"\bmost telling\b": "most reliable",
    r"\bshows? itself\b": "appears",
    r"\bof one's own\b": "your own",
    r"^Of (?:these|those|what|which|how)\b": "subject first",
}


def texts() -> Iterator[tuple[Path, int, str]]:
    """Lines of prose with their file and line number; fenced blocks of pages are left out."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "overhead_lens" / "README.md"]:
        text = re.sub(r"(?ms)^```.*?^```", lambda fence: "\n" * fence[0].count("\n"), page.read_text("utf-8"))
        yield from ((page, number, line) for number, line in enumerate(text.splitlines(), 1))
    for file in [*(ROOT / "overhead_lens").rglob("*.py"), *(ROOT / "scenarios").rglob("*.py")]:
        source = file.read_text("utf-8")
        comments = ((number, re.search("# (.*)", line)) for number, line in enumerate(source.splitlines(), 1))
        yield from ((file, number, comment[1]) for number, comment in comments if comment)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield from ((file, node.lineno + extra, line) for extra, line in enumerate(node.value.splitlines()))


messages = [
    f"{file.relative_to(ROOT)}:{number}: {match[0]!r} -> {instead}"
    for file, number, line in texts()
    for habit, instead in HABITS.items()
    for match in re.finditer(habit, line.strip())
]
sys.exit("\n".join(messages) or None)
