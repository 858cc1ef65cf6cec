"""Waiting for the sampler, by a drawn clock: until the recorder says that it has caught up, or long enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.program import hold
from overhead_lens.program.area import Area, Word
from overhead_lens.program.hold import hold_until_sampled

MS = 1_000_000


@pytest.fixture
def area(tmp_path: Path) -> Area:
    return Area.create(tmp_path)


def waited_ns(area: Area, monkeypatch: pytest.MonkeyPatch, after_ms: int | None = None, **words: int) -> int:
    """How long it stays when the recorder writes ``words`` after so many ms of sleep."""
    now_ns = [5 * MS]

    def sleep(seconds: float) -> None:
        now_ns[0] += round(seconds * 1e9)
        if now_ns[0] - 5 * MS == (after_ms or -1) * MS:
            for word, value in words.items():
                area.write(Word[word], value)

    monkeypatch.setattr(hold, "_clock", lambda: now_ns[0])
    monkeypatch.setattr(hold, "_sleep", sleep)
    hold_until_sampled(area)
    return now_ns[0] - 5 * MS


def test_until_the_recorder_lets_it_go_on(area: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    area.write(Word.ANSWERED, 7)
    assert waited_ns(area, monkeypatch, 40, RELEASED=7) == 40 * MS
    assert area.read(Word.HELD) == 7
    # What was said after an earlier request does not count.
    area.write(Word.ANSWERED, 9)
    assert waited_ns(area, monkeypatch, 10, RELEASED=8) == 600 * MS
    assert area.read(Word.HELD) == 9


def test_no_longer_than_600_ms_and_not_without_a_sampler(area: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    area.write(Word.ANSWERED, 1)
    assert waited_ns(area, monkeypatch) == 600 * MS
    assert waited_ns(area, monkeypatch, 20, REFUSED=1) == 20 * MS
    assert waited_ns(area, monkeypatch) == 0
