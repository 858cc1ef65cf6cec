"""Memory that a program and its recorder share: what one writes the other reads, whatever becomes of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from overhead_lens.program import area as shared
from overhead_lens.program.area import FILE, Area, Phase, StepRecord, Word

FIRST = StepRecord(1, 2**62, Phase.BARE, 3, 4, 5, 6, 7, 8, -9)
SECOND = StepRecord(10, 20, Phase.TRACED, 0, 0, 0, 0, 0, 0, 0)


def test_rows_and_words_are_read_by_the_other_side(tmp_path: Path) -> None:
    recorder = Area.create(tmp_path)
    program = Area.open(tmp_path)
    assert ([recorder.read(word) for word in Word], recorder.rows()) == ([0] * len(Word), [])
    program.add(*FIRST)
    program.add(*SECOND)
    program.write(Word.REQUESTED, 3)
    recorder.write(Word.ANSWERED, -1)
    assert recorder.rows() == [FIRST, SECOND]
    assert (recorder.read(Word.REQUESTED), recorder.read(Word.ROWS), program.read(Word.ANSWERED)) == (3, 2, -1)


def test_a_restart_drops_rows_and_no_word(tmp_path: Path) -> None:
    recorder, program = Area.create(tmp_path), Area.open(tmp_path)
    program.write(Word.FOUND, 1)
    program.add(*FIRST)
    program.add(*FIRST)
    program.restart()
    program.add(*SECOND)
    assert (recorder.rows(), recorder.read(Word.FOUND)) == ([SECOND], 1)


def test_rows_beyond_the_end_are_lost_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_MOST_ROWS", 2)
    monkeypatch.setattr(shared, "_BYTES", shared._FIRST + 2 * shared._ROW_BYTES)
    recorder, program = Area.create(tmp_path), Area.open(tmp_path)
    program.add(*FIRST)
    program.add(*SECOND)
    assert [recorder.read(word) for word in (Word.LOST, Word.LAST_NS)] == [0, 0]
    program.add(*SECOND)
    program.add(*FIRST)
    assert recorder.rows() == [FIRST, SECOND]
    assert [recorder.read(word) for word in (Word.LOST, Word.LAST_NS)] == [2, FIRST.end_ns]
    program.restart()
    assert [recorder.read(word) for word in (Word.LOST, Word.LAST_NS)] == [0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot reserve room in a file")
def test_the_room_of_all_rows_is_taken_at_once(tmp_path: Path) -> None:
    Area.create(tmp_path)
    assert (tmp_path / FILE).stat().st_blocks * 512 >= 1_000_000 * 80


def test_rows_outlive_a_program_that_ends_at_once(tmp_path: Path) -> None:
    recorder = Area.create(tmp_path)
    code = (
        "import os, sys; from pathlib import Path; from overhead_lens.program.area import Area, Word;"
        f"area = Area.open(Path(sys.argv[1])); area.add(*{[*map(int, SECOND)]}); area.write(Word.THREAD, 7); os._exit(5)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (done.returncode, recorder.rows(), recorder.read(Word.THREAD)) == (5, [SECOND], 7)
