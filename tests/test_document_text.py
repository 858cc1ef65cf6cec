"""The text of a document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.documents.common import Document

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


class _Any(Document, frozen=True):
    """A document of one value."""

    value: Any


@given(st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_text_has_one_space_for_each_level(value: object) -> None:
    assert _Any(value).to_json() == json.dumps({"value": value}, indent=1)


@pytest.mark.parametrize("name", ["\ud800", "\udcb4"])
def test_the_text_keeps_half_of_a_character(name: str) -> None:
    assert (
        _Any({name: [name]}).to_json()
        == f'{{\n "value": {{\n  "\\u{ord(name):x}": [\n   "\\u{ord(name):x}"\n  ]\n }}\n}}'
    )
