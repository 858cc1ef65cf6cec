"""``attach --top`` on a terminal: watch after watch in the same place, until q or Ctrl-C."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.studies.looping import running
from tests.terminal.pseudo import CTRL_C, forked_terminal
from tests.worker.warm import COMMANDS

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OTHER_SCREEN, _BACK = "\x1b[?1049h", "\x1b[?1049l"
BUSY = """
import threading, time
def work():
    return sum(number * number for number in range(10_000))
threading.Thread(target=time.sleep, args=(600,), name="sleeper", daemon=True).start()
print(flush=True)
while True:
    work()
"""
TOP = """
from overhead_lens.__main__ import main
try:
    main()
except SystemExit as end:
    print("ended with", end.code or 0, flush=True)
os.execvp("stty", ["stty", "-a"])
"""

pytestmark = pytest.mark.measures


# A key that is typed together with another one counts, too.
@pytest.mark.parametrize(("keys", "frames"), [("xq", 2), (CTRL_C, 1)], ids=["q", "Ctrl-C"])
def test_watches_follow_each_other_until_a_key(tmp_path: Path, keys: str, frames: int) -> None:
    with running(code=BUSY) as pid:
        words = ["attach", pid, "--top", "--duration", "0.5"]
        with forked_terminal(TOP, words, tmp_path, size=(60, 120), modules=COMMANDS) as seen:
            seen.wait_for(f"watching process {pid}; q ends")
            shown = [seen.wait_for("time watched") + seen.wait_for("q ends") for _ in range(frames)]
            seen.type(keys)
            seen.ended()
        os.kill(pid, 0)
    for frame in (_CONTROL.sub("", each) for each in shown):
        assert f"process {pid}: {sys.executable} -c " in frame
        assert "MainThread is busy 100% of the time, 100% in python (most of it user)." in frame
        assert re.search(r"python  work\S* \(<string>\)", frame)
        assert re.search(r"sleeper +0% +wait\S* 100%", frame)
    # Back on the screen where it was started, with the terminal as it was.
    assert (seen.text.count(_OTHER_SCREEN), seen.text.count(_BACK)) == (1, 1)
    after = seen.text[seen.text.index(_BACK) :]
    assert "ended with 0\r\n" in after
    assert re.search(r"[^-]icanon\b", after) and re.search(r"[^-]echo\b", after)
    assert list(tmp_path.iterdir()) == []
