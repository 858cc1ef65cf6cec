"""Errors of other people's code in a line."""

from __future__ import annotations

import pytest

from overhead_lens.errors import first_line, in_one_line, internal_error


@pytest.mark.parametrize(
    ("error", "first", "whole"),
    [
        (AssertionError(), "AssertionError", "AssertionError"),
        (RuntimeError("\n"), "RuntimeError", "RuntimeError"),
        (RuntimeError("\nno\n  way: "), "RuntimeError: no", "RuntimeError: no way:"),
    ],
)
def test_an_error_without_a_message_is_its_type(error: Exception, first: str, whole: str) -> None:
    assert (first_line(error), in_one_line(error)) == (first, whole)
    assert internal_error(error) == f"internal error (please report): {whole}"
