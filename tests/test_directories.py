"""The kinds of stored directories: what their rows name, and how one is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from overhead_lens import directories
from overhead_lens.cli.export import Format
from overhead_lens.directories import kind_of


@pytest.mark.parametrize("kind", directories._KINDS)
def test_a_row_names_functions_that_exist(kind: str) -> None:
    row = directories._KINDS[kind]
    named = [row.load, row.compare, *(row.export.format(form) for form in get_args(Format))]
    assert all(callable(directories._load(place)) for place in named if place)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("overhead-lens/capture/2", "call"),
        ("overhead-lens/run-capture/1", "run"),
        ("overhead-lens/process-capture/1", "process"),
        ("overhead-lens/ladder-capture/1", "ladder"),
        ("overhead-lens/advice-capture/1", "advice"),
        ("overhead-lens/unheard-of-capture/1", "call"),
        (None, "call"),
    ],
)
def test_the_kind_is_what_the_schema_says(tmp_path: Path, schema: object, kind: str) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"schema": schema}), encoding="utf-8")
    assert kind_of(tmp_path) == kind


def test_a_job_and_a_comparison_have_no_meta_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "rank-0").mkdir()
    (tmp_path / "rank-0" / "meta.json").write_text('{"schema": "overhead-lens/run-capture/1"}', encoding="utf-8")
    assert kind_of(tmp_path) == "job"
    (tmp_path / "delta.json").write_text("{}", encoding="utf-8")
    assert kind_of(tmp_path) == "comparison"
    assert kind_of(tmp_path / "nothing") == "call"
