"""Output held letter by letter against a file."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).with_name("golden")


def expect(name: str, text: str) -> None:
    """Assert that the golden file holds this text; a mismatch leaves a ``.got`` beside it."""
    golden = GOLDEN / name
    if not golden.exists() or golden.read_text(encoding="utf-8") != text:
        golden.with_name(f"{name}.got").write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text
