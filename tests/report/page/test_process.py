"""The page of a watched process, and of two watches."""

from __future__ import annotations

from pathlib import Path

from overhead_lens.report.outline import Bars
from overhead_lens.report.outlines.process import process_delta_outline, process_outline
from overhead_lens.studies.attach.analysis import ProcessBudget
from overhead_lens.studies.attach.delta import ProcessDelta, compare_processes
from tests.report.page.seen import headings, icicles, rows, section, words
from tests.studies.test_attach import drawn, thread

LINES = [*thread(10, "MainThread", 600, 400), *thread(11, "idle", 0, 1000), *thread(12, "busy", 900, 100)]


def test_a_row_a_thread_the_main_one_first(tmp_path: Path) -> None:
    page = process_outline(drawn(tmp_path / "p", *LINES))
    assert (
        page.sentence
        == "MainThread is busy 60% of the time, 60% in python (most of it user); it waits 40% (most of it io)."
    )
    ((_, *main),) = rows(page, "Where the time of MainThread goes")
    assert [row[:3] for row in main if row[0] in ("python", "wait")] == [
        *(["python", "60.0%", "6.00 s"], ["wait", "40.0%", "4.00 s"]),
    ]
    ((_, *others),) = rows(page, "Other threads, busiest first")
    assert [row[:2] for row in others] == [["busy", "90%"], ["idle", "0%"]]


def test_a_sample_alone_is_in_the_singular(tmp_path: Path) -> None:
    (about,) = process_outline(drawn(tmp_path / "p", *thread(10, "MainThread", 1))).about
    assert about.startswith("Python 3.11.7, torch 2.13.0, 1 thread, 1 sample, watched for 10.00 s")


def test_an_icicle_for_each_thread_at_work_and_only_the_main_ones_is_open(tmp_path: Path) -> None:
    page = process_outline(drawn(tmp_path / "p", *LINES))
    of = ["Stacks of MainThread", "Stacks of busy"]
    assert [heading for heading in headings(page) if heading.startswith("Stacks")] == of
    assert [section(page, heading).is_open for heading in of] == [True, False]
    (icicle,) = icicles(page, of[1])
    assert [tile.size for tile in icicle.tree.tiles] == [1_000, 1_000, 100]
    assert [tile.text for tile in icicle.tree.tiles][:2] == ["all stacks of busy", "train (train.py:3)"]


def test_a_watch_whose_directory_is_gone_says_so(tmp_path: Path) -> None:
    process = drawn(tmp_path / "p", *LINES)
    (tmp_path / "p").rename(tmp_path / "q")
    assert words(process_outline(process), "Stacks of MainThread") == [
        f"No stacks to draw: no process {tmp_path / 'p'}"
    ]


def two(folder: Path) -> ProcessDelta:
    folder.mkdir(exist_ok=True)
    before = [*thread(10, "MainThread", 500, 500), *thread(11, "even", 500, 500), *thread(12, "gone", 1, 1)]
    after = [*thread(10, "MainThread", 800, 200), *thread(11, "even", 500, 500)]
    return compare_processes(drawn(folder / "a", *before), drawn(folder / "b", *after), 0.01)


def test_two_watches(tmp_path: Path) -> None:
    page = process_delta_outline(two(tmp_path))
    assert headings(page) == ["MainThread", "Other threads"]
    (drawn_bars,) = [block for block in section(page, "MainThread").blocks if isinstance(block, Bars)]
    assert [bar.name for bar in drawn_bars.bars] == ["before", "after"]
    shares = [{piece.look: piece.size / bar.full for piece in bar.pieces} for bar in drawn_bars.bars]
    assert shares == [{"python": 0.5, "wait": 0.5}, {"python": 0.8, "wait": 0.2}]
    assert rows(page, "MainThread")[0][1][:4] == ["python", "50.0%", "80.0%", "+30.0 points"]
    assert words(page, "Other threads") == ["1 other thread divides as before", "gone: gone"]


def test_changed_threads_beyond_the_most_do_not_divide_as_before(tmp_path: Path) -> None:
    def watch(name: str, running: int) -> ProcessBudget:
        others = [thread(11 + at, f"t{at}", running, 1000 - running) for at in range(40)]
        lines = [*thread(10, "MainThread", 500, 500), *(line for each in others for line in each)]
        return drawn(tmp_path / name, *lines, *thread(99, "even", 500, 500))

    page = process_delta_outline(compare_processes(watch("a", 500), watch("b", 900), 0.01))
    count = len(headings(page)) - 1
    assert words(page, "Other threads") == [
        f"{41 - count} other threads with another division are left out; --json has them.",
        "1 other thread divides as before",
    ]
