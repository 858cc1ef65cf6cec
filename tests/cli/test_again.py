"""What a stored capture says of how much was measured is taken up again, and nothing that it cannot mean."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from overhead_lens.recorder.paired import PAIRED
from overhead_lens.recorder.single import QUICK, STANDARD, Effort
from overhead_lens.studies.check.rerun import request_of

META = {"target": "add1", "scenario": "add1", "variant": "add1", "compile": False, "compile_options": None}


@pytest.mark.parametrize(
    ("stored", "effort"),
    [
        (asdict(QUICK), QUICK),
        (asdict(PAIRED), PAIRED),
        ({"processes": 7, "blocks": 9}, Effort(processes=7, blocks=9)),
        (None, STANDARD),
        ([], STANDARD),
        ({"sampled_every": 0}, STANDARD),
        ({"processes": "7"}, STANDARD),
        ({"processes": True}, STANDARD),
        ({"blocks": 9, "other": 1}, STANDARD),
    ],
)
def test_effort(stored: Any, effort: Effort) -> None:
    meta = {**META, "assigned": {}, "params": {}, "device": "cpu", "effort": stored}
    assert request_of(meta, None, None, 1.0).effort == effort


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ({"calls": 20, "reason": None}, (True, 20)),
        # What could not be counted then is tried again.
        ({"calls": 7, "reason": "valgrind is not installed"}, (True, 7)),
        ({}, (False, None)),
        (None, (False, None)),
    ],
)
def test_instructions_are_counted_again_in_as_many_calls(stored: Any, asked: tuple[bool, int | None]) -> None:
    meta = {**META, "assigned": {}, "params": {}, "device": "cpu", "instructions": stored}
    request = request_of(meta, None, None, 1.0)
    assert (request.instructions, request.counted_calls) == asked
