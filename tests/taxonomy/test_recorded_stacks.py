"""Stacks that py-spy recorded (``--native --idle --threads``), each of a program that does one thing.

A block of ``recorded_stacks.txt`` says what it does, its category and part, and the frame that a report names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.taxonomy.names import display_name
from tests.drawn.stacks import CLASSIFIER, claimed

BLOCKS = [
    block.splitlines() for block in Path(__file__).with_name("recorded_stacks.txt").read_text("utf-8").split("\n\n")
]


@pytest.mark.parametrize(
    ("expected", "shown", "folded"),
    [block[1:] for block in BLOCKS],
    ids=[block[0].removeprefix("# ") for block in BLOCKS],
)
def test_recorded_stacks(expected: str, shown: str, folded: str) -> None:
    (stack,) = parse_stacks([folded])
    assert claimed(stack) == expected
    assert display_name(CLASSIFIER.classify(stack).frame) == shown
