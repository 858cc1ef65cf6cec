"""The kinds of stored directories: what their rows name, and how one is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from overhead_lens import directories
from overhead_lens.cli.export import Format
from overhead_lens.directories import export_directory, kind_of, load_directory
from overhead_lens.errors import UsageError
from tests.drawn.stacks import CLASSIFIER


@pytest.mark.parametrize("kind", directories._KINDS)
def test_a_row_names_functions_that_exist(kind: str) -> None:
    row = directories._KINDS[kind]
    stacks = directories._STACKS
    named = [row.load, row.compare, *stacks.values()]
    named += [row.export.format("stacks" if form in stacks else form) for form in get_args(Format)]
    assert all(callable(directories._load(place)) for place in named if place)


def test_a_kind_is_told_without_pandas(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from overhead_lens.directories import kind_of; kind_of(Path())"
    command = [sys.executable, "-c", f"{code}; print(sorted({{'pandas', 'scipy'}} & set(sys.modules)))"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_rank_of_a_later_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank-0").mkdir()
    (tmp_path / "rank-0" / "meta.json").write_text('{"schema": "overhead-lens/run-capture/2"}', encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_directory(tmp_path, CLASSIFIER)
    assert str(caught.value) == (
        f"the run {tmp_path / 'rank-0'} has schema 'overhead-lens/run-capture/2'; "
        "this version reads 'overhead-lens/run-capture/1'"
    )


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


@pytest.mark.parametrize("version", [1, 2])
def test_a_job_and_a_comparison_have_no_meta_of_their_own(tmp_path: Path, version: int) -> None:
    (tmp_path / "rank-0").mkdir()
    meta = {"schema": f"overhead-lens/run-capture/{version}"}
    (tmp_path / "rank-0" / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    assert kind_of(tmp_path) == "job"
    (tmp_path / "delta.json").write_text("{}", encoding="utf-8")
    assert kind_of(tmp_path) == "comparison"
    assert kind_of(tmp_path / "nothing") == "call"


def test_a_trace_is_not_said_to_be_missing_where_a_capture_is_asked_for(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text("{}", encoding="utf-8")
    message = f"^{trace} is a file, not a capture directory; `analyze` reads traces$"
    with pytest.raises(UsageError, match=message):
        load_directory(trace, CLASSIFIER)
    with pytest.raises(UsageError, match=message):
        export_directory(trace, tmp_path / "out", "chrome", CLASSIFIER)
