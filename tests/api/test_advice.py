"""``advise`` of the API, with one remedy: all others are tried in tests of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

import overhead_lens as ol
from overhead_lens import api
from overhead_lens.studies.advise import record
from overhead_lens.studies.advise.analysis import Advice
from tests.api import plain
from tests.recorder.effort import little_effort

REMEDY = """
from dataclasses import replace
from overhead_lens.remedies.remedy import Remedy

def at_once(x, *, times):
    return x + times

REMEDY = Remedy(name="at_once", summary="one addition", how="x + times", shrinks=("python", "dispatcher"), source="https://tests",
                apply=lambda call: replace(call, function=at_once))
"""


@pytest.fixture
def one_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of a file, tried with little effort."""
    file = tmp_path / "mine.py"
    file.write_text(REMEDY)
    load: Callable[..., None] = record._Recording._load

    def load_one(recording: Any, workers: Sequence[Any]) -> None:
        load(recording, workers)
        known = recording.catalog
        mine = [each for each in known.remedies if each.name == "at_once"]
        recording.catalog = msgspec.structs.replace(known, remedies=mine)

    def recorded(request: Any, _file: None, *more: Any) -> Path:
        return record.record_advice(request, file, *more)

    short = {"clock_budget_ns": 200_000_000, "samples_per_process": 1}
    monkeypatch.setattr(record._Recording, "_load", load_one)
    # With fewer processes, a neighbour on the core of one leaves the verdict open.
    monkeypatch.setattr(record, "_CONFIRMING", replace(record._CONFIRMING, processes=5, blocks=20, **short))
    monkeypatch.setattr(record, "_BRIEF", replace(record._BRIEF, **short))
    monkeypatch.setattr(record, "_SCREENING_NS", 1_000_000_000)
    monkeypatch.setattr(api, "record_advice", recorded)


@pytest.mark.measures
@pytest.mark.usefixtures("one_remedy")
def test_a_function_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with little_effort(processes=3, sampled=False):
        advice = ol.advise(plain.one_by_one, torch.ones(8), times=8, quick=True)
    assert isinstance(advice, Advice)
    (tried,) = advice.remedies
    assert (tried.remedy, tried.status, tried.output, tried.safety) == ("at_once", "measured", "equal", "safe")
    assert tried.wall is not None
    assert (tried.verdict, tried.wall.ratio < 0.5) == ("faster", True)
    assert sum(ns for _, ns in tried.host) == pytest.approx(tried.wall.delta_ns, abs=1)
    assert advice.together is not None
    assert (advice.together.remedies, advice.together.delta.verdict) == (("at_once",), "faster")
    subject = advice.base.subject
    assert (subject.kind, subject.title) == ("function", "tests.api.plain:one_by_one")
    (folder,) = (tmp_path / "traces").iterdir()
    assert (Path(advice.directory), ol.load(folder.relative_to(tmp_path))) == (folder.relative_to(tmp_path), advice)
    assert json.loads((folder / "meta.json").read_text())["command"] == (
        "overhead_lens.advise tests.api.plain:one_by_one"
    )
