"""``overhead-lens history`` over drawn captures."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from overhead_lens import __version__
from overhead_lens.cli.history import read as read_history
from overhead_lens.documents.history import history_document
from overhead_lens.studies.history import store as summary_store
from overhead_lens.studies.history.analysis import make_history, point_of_text, text_of
from overhead_lens.studies.ladder.stored import LADDER
from overhead_lens.terminal.progress import progress
from tests.cli.run import error_line, lens
from tests.comparison.budgets import budget
from tests.documents import validated
from tests.drawn.captures import META, draw_capture, typed
from tests.excerpts import assert_shows, excerpt

BEGUN = datetime(2026, 1, 1, tzinfo=timezone.utc)
MACHINE = {"host": "h", "cpu": "c", "torch": "2.13.0", "python": "3.11", "threads": 2}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "overhead-lens" / "history.parquet"


def draw(folder: Path, number: int, call_ns: int = 1_000, machine: dict[str, Any] | None = None, **meta: Any) -> Path:
    """Capture ``number`` of a history: an hour and a commit after the one before."""
    environment = {**MACHINE, "git_commit": f"{number:x}" * 40, **(machine or {})}
    path = folder / f"c{number:03d}"
    return draw_capture(
        path,
        call_ns=call_ns,
        **{"started": (BEGUN + timedelta(hours=number)).isoformat(), "environment": environment, **meta},
    )


def read(folder: Path) -> dict[str, Any]:
    with progress(quiet=True) as listener:
        return validated(history_document(read_history(folder, listener)).to_json())


def test_the_commit_that_moved_a_category(tmp_path: Path) -> None:
    for number in range(14):
        folder = tmp_path / "deep" / str(number % 2)
        folder.mkdir(parents=True, exist_ok=True)
        draw(folder, number, call_ns=1_000 + number % 3 + (310 if number >= 6 else 0))
    (series,) = read(tmp_path)["series"]
    (segment,) = series["segments"]
    assert [Path(each["capture"]).name for each in segment["captures"]] == [f"c{n:03d}" for n in range(14)]
    (change,) = segment["change_points"]
    assert (change["position"], change["moved"]) == (6, ["python"])
    assert change["sentence"] == "python +310 ns (wall +310 ns) between 5555555555 and 6666666666"
    assert (change["before"]["git_commit"], change["after"]["git_commit"]) == ("5" * 40, "6" * 40)
    printed = lens("history", tmp_path, "--json", cwd=tmp_path)
    assert (printed.returncode, printed.stderr, validated(printed.stdout)) == (0, "", read(tmp_path))
    text = lens("history", tmp_path, cwd=tmp_path).stdout
    assert "14 captures below" in text
    assert "python +310 ns (wall +310 ns) between 5555555555 and 6666666666" in text
    assert "▁▁▁▁▁▁████████" in text
    assert_shows(text, excerpt("docs/guide/history.md", "history"))


def test_another_machine_is_another_segment(tmp_path: Path) -> None:
    for number in range(14):
        draw(tmp_path, number, 1_000 if number < 7 else 1_500, {} if number < 7 else {"torch": "2.14.0"})
    (series,) = read(tmp_path)["series"]
    assert [len(segment["captures"]) for segment in series["segments"]] == [7, 7]
    assert [segment["environment"]["torch"] for segment in series["segments"]] == ["2.13.0", "2.14.0"]
    assert [segment["change_points"] for segment in series["segments"]] == [[], []]
    text = lens("history", tmp_path, cwd=tmp_path).stdout
    assert "2 segments, not compared with one another: they differ in torch" in text
    assert "torch 2.14.0: 7 captures" in text


@pytest.mark.parametrize(("device", "segments"), [("cuda", [7, 7]), ("cpu", [14])])
def test_another_card_is_another_segment_of_a_call_on_it(tmp_path: Path, device: str, segments: list[int]) -> None:
    for number in range(14):
        draw(tmp_path, number, 1_000, {"gpu": "A" if number < 7 else "B"}, device=device)
    (series,) = read(tmp_path)["series"]
    assert [len(segment["captures"]) for segment in series["segments"]] == segments


def test_stacks_and_a_trace_are_segments_of_their_own() -> None:
    sampled, traced = budget(0.001, python=1_000, kernel=1_000), budget(0.001, python=1_600, kernel=400)
    host = tuple(replace(each, evidence="trace" if each.ns else "none") for each in traced.breakdown.host)
    traced = replace(traced, breakdown=replace(traced.breakdown, host=host))
    points = []
    for number in range(14):
        meta = typed({**META, "started": (BEGUN + timedelta(hours=number)).isoformat()})
        points.append(point_of_text(text_of(meta, sampled if number < 7 else traced, 700.0), f"c{number:03d}"))
    (series,) = make_history("folder", points, (), ()).series
    assert [(len(each.points), each.changes) for each in series.segments] == [(7, ()), (7, ())]
    assert series.differing == ["evidence"]


def test_cold_calls_are_another_segment(tmp_path: Path) -> None:
    for number, caches in enumerate([{}, {"caches": "hot caches"}, {"caches": "caches displaced by 64.0 MB"}]):
        draw(tmp_path, number, machine=caches)
    (series,) = read(tmp_path)["series"]
    found = [(segment["environment"]["caches"], len(segment["captures"])) for segment in series["segments"]]
    assert found == [("hot caches", 2), ("caches displaced by 64.0 MB", 1)]


@pytest.mark.parametrize(
    "other", [{"scenario": "b"}, {"variant": "b"}, {"compile": True}, {"device": "cuda"}, {"params": {"size": 11}}]
)
def test_what_is_not_comparable_is_a_series_of_its_own(tmp_path: Path, other: dict[str, Any]) -> None:
    draw(tmp_path, 0)
    draw(tmp_path, 1)
    draw(tmp_path, 2, **other)
    assert sorted(len(segment["captures"]) for each in read(tmp_path)["series"] for segment in each["segments"]) == [
        1,
        2,
    ]


def test_the_same_commit_on_both_sides_is_said(tmp_path: Path) -> None:
    for number in range(12):
        draw(tmp_path, number, 1_000 if number < 6 else 1_200, {"git_commit": "abc"})
    (change,) = read(tmp_path)["series"][0]["segments"][0]["change_points"]
    assert change["sentence"] == "python +200 ns (wall +200 ns) within abc: no commit lies between the captures"


@pytest.mark.parametrize(
    ("loop", "share", "warning"),
    [
        ("one", 1.0, "the reference loop took +100.0% time as well: the machine may have changed"),
        ("another", 0.0, None),
    ],
)
def test_the_reference_loop_is_held_against_the_same_one_only(
    tmp_path: Path, loop: str, share: float, warning: str | None
) -> None:
    for number in range(14):
        late = number >= 7
        path = draw(tmp_path, number, 1_500 if late else 1_000, {"reference": loop if late else "one"})
        if late:
            clock = pd.read_parquet(path / "clock.parquet")
            clock.assign(reference_ns=2 * clock["reference_ns"]).to_parquet(path / "clock.parquet", index=False)
    (change,) = read(tmp_path)["series"][0]["segments"][0]["change_points"]
    assert (change["position"], change["reference_share"], change["warning"]) == (7, share, warning)


def test_everything_else_is_counted_with_a_reason(tmp_path: Path) -> None:
    draw(tmp_path, 0)
    (draw(tmp_path, 1) / "meta.json").unlink()
    (draw(tmp_path, 2) / "clock.parquet").write_text("not parquet")
    (draw(tmp_path, 3) / "meta.json").write_text("{")
    draw(tmp_path, 4, started="soon")
    ladder = draw(tmp_path, 5)
    (ladder / "meta.json").write_text(json.dumps({"schema": LADDER.schema}))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("")
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / "readme.txt").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    document = read(tmp_path)
    assert document["captures"] == 1
    found = {Path(each["path"]).name: (each["kind"], each["reason"]) for each in document["skipped"]}
    assert {name: kind for name, (kind, _) in found.items()} == {
        "c001": "incomplete", "c002": "damaged", "c003": "damaged", "c004": "damaged", "c005": "foreign", "notes": "foreign"
    }  # fmt: skip
    assert found["c001"][1] == "it has no meta.json (was it interrupted?)"
    assert found["c004"][1] == "meta.json: started is not a time: 'soon'"
    assert found["c005"][1] == f"it has schema '{LADDER.schema}'"
    text = lens("history", tmp_path, cwd=tmp_path).stdout
    assert "Skipped: 3 damaged, 2 foreign, 1 incomplete" in text
    assert "\n1 more\n" in text


def test_the_sides_of_a_comparison_are_left_out(tmp_path: Path) -> None:
    draw(tmp_path, 0)
    draw(tmp_path, 1, recorded_with="2026-01-01T01:00:00+00:00")
    document = read(tmp_path)
    assert document["captures"] == 1
    assert [(each["kind"], each["reason"]) for each in document["skipped"]] == [
        ("foreign", "it is a side of a comparison, measured in turns with the other")
    ]


HOSTILE = "[red]$\\frac{x}$\n\x1b[31m\u202e\ud800" + "x" * 5_000


def test_hostile_names(tmp_path: Path) -> None:
    for number in range(12):
        draw(
            tmp_path, number, 1_000 if number < 6 else 1_200,
            {"git_commit": f"{number}{HOSTILE}", "host": HOSTILE, "torch": {"a": [HOSTILE]}},
            scenario=HOSTILE, params={HOSTILE: 10**400, "nan": float("nan"), "inf": float("inf"), "f": 1e308},
        )  # fmt: skip
    done = lens("history", tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[red]$\\frac{x}$\\n\\x1b[31m\\u202e\\ud800" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 1_000
    document = read(tmp_path)
    assert document["series"][0]["subject"]["params"]["nan"] == "nan"
    assert len(document["series"][0]["segments"][0]["change_points"]) == 1


@pytest.mark.parametrize("started", ["9" * 400, "2026-13-01", "0001-01-01T00:00:00+23:00"], ids=range(3))
def test_a_time_that_is_none(tmp_path: Path, started: str) -> None:
    draw(tmp_path, 0)
    draw(tmp_path, 1, started=started)
    (skipped,) = read(tmp_path)["skipped"]
    assert skipped["reason"].startswith("meta.json: started is not a time: ")


@pytest.mark.parametrize("started", [10**400, None, []], ids=range(3))
def test_a_time_that_is_no_text(tmp_path: Path, started: Any) -> None:
    draw(tmp_path, 0)
    path = draw(tmp_path, 1, started=started)
    (skipped,) = read(tmp_path)["skipped"]
    assert skipped["kind"] == "damaged"
    assert skipped["reason"].startswith(f"the capture {path} is damaged: meta.json: Expected `str`, got ")
    assert skipped["reason"].endswith(" - at `$.started`")


def test_times_are_compared_across_zones(tmp_path: Path) -> None:
    draw(tmp_path, 0, started="2026-01-01T10:00:00+02:00")
    draw(tmp_path, 1, started="2026-01-01T09:00:00Z")
    draw(tmp_path, 2, started="2026-01-01T08:30:00")
    captures = read(tmp_path)["series"][0]["segments"][0]["captures"]
    assert [Path(each["capture"]).name for each in captures] == ["c000", "c002", "c001"]


def test_an_analysis_is_kept_and_a_damaged_one_is_made_again(tmp_path: Path, own_cache: Path) -> None:
    first, second = draw(tmp_path, 0), draw(tmp_path, 1, 2_000)
    before = read(tmp_path)
    kept = summary_store.load()
    assert set(kept) == {summary_store.key_of(first), summary_store.key_of(second)}
    # What is kept is what is shown ...
    changed = {key: text.replace('"wall": 1000', '"wall": 1234') for key, text in kept.items()}
    summary_store.save(changed)
    assert read(tmp_path)["series"][0]["segments"][0]["captures"][0]["ns"]["wall"] == 1_234
    # ... unless its digest is not its own, the file is no parquet, or it is gone.
    import pandas as pd

    rows = pd.read_parquet(own_cache)
    rows["text"] = rows["text"].str.replace("1234", "4321")
    rows.to_parquet(own_cache)
    assert read(tmp_path) == before
    for damage in (b"", b"PAR1 nothing PAR1", own_cache.read_bytes()[:-50]):
        own_cache.write_bytes(damage)
        assert read(tmp_path) == before
    own_cache.unlink()
    own_cache.mkdir()
    assert "the analyses cannot be kept" in read(tmp_path)["warnings"][0]


def test_a_changed_capture_is_analyzed_again(tmp_path: Path) -> None:
    path = draw(tmp_path, 0)
    key = summary_store.key_of(path)
    assert key == summary_store.key_of(path)
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "warnings": ["w"]}))
    assert summary_store.key_of(path) != key
    key = summary_store.key_of(path)
    (path / "clock.parquet").write_bytes(b"")
    assert summary_store.key_of(path) != key


def test_rows_of_another_version_go(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_store, "_VERSION", f"{__version__}/0")
    summary_store.save({"k": "old"})
    assert summary_store.load() == {"k": "old"}
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache.parents[1]))
    assert summary_store.load() == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone"], "no directory gone"),
        (["file.txt"], "no directory file.txt"),
        (["empty"], "no captures below empty"),
        (["foreign"], "no captures below foreign; 1 skipped, the first is foreign/x: it holds no capture"),
        (["empty", "--html", "there"], "there exists: name another --html, or overwrite it with --force"),
        (["empty", "--html", "no/p"], "cannot write no/p: there is no directory no"),
        ([], "Missing argument 'DIR'."),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "there").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign" / "x").mkdir(parents=True)
    done = lens("history", *arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, 2)
    assert (tmp_path / "there").read_text() == "mine"
