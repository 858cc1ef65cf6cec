"""What a stored capture says of how much was measured is taken up again, and nothing that it cannot mean."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.errors import UsageError
from overhead_lens.machine.request import QUICK, STANDARD, Effort, Request
from overhead_lens.recorder.paired import paired_effort
from overhead_lens.studies.check.rerun import request_of
from overhead_lens.subject import Kind, Subject
from tests.drawn.captures import META as DRAWN
from tests.drawn.captures import draw_capture, typed

META = {**DRAWN, "scenario": "add1", "variant": "add1", "target": "add1", "assigned": {}}


def again(**meta: Any) -> Request:
    """A request to record once more a capture whose ``meta.json`` says that, too."""
    return request_of(Capture(Path("drawn"), typed({**META, **meta})), None, None, 1.0)


@pytest.mark.parametrize(
    ("stored", "effort"),
    [
        (asdict(QUICK), QUICK),
        (asdict(paired_effort(compiles=False)), paired_effort(compiles=False)),
        ({"processes": 7, "blocks": 9}, Effort(processes=7, blocks=9)),
        ({}, STANDARD),
        ({"sampled_every": 0}, STANDARD),
        ({"blocks": 9, "other": 1}, STANDARD),
    ],
)
def test_effort(stored: Any, effort: Effort) -> None:
    assert again(effort=stored).effort == effort


@pytest.mark.parametrize("stored", [[], {"processes": "7"}, {"processes": True}])
def test_an_effort_that_is_none_damages_a_capture(stored: Any, tmp_path: Path) -> None:
    path = draw_capture(tmp_path / "c", effort=stored)
    with pytest.raises(UsageError, match=r"is damaged: meta\.json: Expected `\w+`, got `\w+` - at `\$\.effort"):
        read_capture(path)


FROM_PYTHON = "overhead_lens.profile json:dumps"


@pytest.mark.parametrize(
    ("kind", "command", "has_arguments", "inputs", "repeatable"),
    [
        ("function", FROM_PYTHON, True, None, False),
        ("function", FROM_PYTHON, True, "make", True),
        ("function", FROM_PYTHON, False, None, True),
        # Stored before captures said it.
        ("function", FROM_PYTHON, None, None, False),
        ("function", "overhead-lens profile json:dumps", None, None, True),
        ("callable", FROM_PYTHON, False, None, False),
        ("callable", FROM_PYTHON, True, "make", False),
    ],
)
def test_a_call_from_python_is_measured_again_if_its_arguments_are_known(
    kind: Kind, command: str, has_arguments: bool | None, inputs: str | None, repeatable: bool
) -> None:
    subject = Subject(kind, "json", "dumps")
    meta = CaptureMeta(subject=subject, target="json:dumps", command=command, has_arguments=has_arguments)
    capture = Capture(Path("drawn"), meta)
    assert request_of(capture, "add1", None, 1.0).target.text == "add1"
    if repeatable:
        assert request_of(capture, None, None, 1.0, inputs).target.text == "json:dumps"
        return
    with pytest.raises(UsageError) as refused:
        request_of(capture, None, None, 1.0, inputs)
    assert str(refused.value) == (
        "drawn is of a call from Python, whose arguments are not stored: "
        "name the function and what makes them, my.py:f --inputs my.py:make"
    )


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
    request = again(instructions=stored)
    assert (request.instructions, request.counted_calls) == asked
