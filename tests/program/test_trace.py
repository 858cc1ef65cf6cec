"""The recording of steps ends with the program, whatever the program does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overhead_lens.program import start
from overhead_lens.program.area import Area, Phase, Word
from overhead_lens.program.trace import TRACE

HEAD = f"""
import time, torch
from overhead_lens import marks
from overhead_lens.program import watcher
watcher._SCOUTING_NS = watcher._LONG_SCOUTING_NS = 100_000_000
def is_traced():
    return marks.watcher is not None and marks.watcher._phase == {int(Phase.TRACED)}
def work():
    x = torch.ones(8)
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        x = x + 1
"""
ENDS = "while not is_traced():\n    work()\nwork()\nprint('over')\n"
PROFILES_ITSELF = """
while not is_traced():
    work()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
    torch.ones(8) + 1
print('over', any(event.name == 'aten::add' for event in own.events()))
"""


# libkineto tells of the program's own recording on stderr, in two lines; that of torch 2.9 does not.
@pytest.mark.parametrize(("body", "said", "lines"), [(ENDS, "over\n", {0}), (PROFILES_ITSELF, "over True\n", {0, 2})])
def test_the_program_ends_while_it_is_recorded(tmp_path: Path, body: str, said: str, lines: set[int]) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + body, encoding="utf-8")
    Area.create(tmp_path).write(Word.REFUSED, 1)
    settings = json.dumps({"tracer_pid": 1, "step": ""})
    done = subprocess.run(
        [sys.executable, start.__file__, str(tmp_path), settings, str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert len(done.stderr.splitlines()) in lines, done.stderr
    events = json.loads((tmp_path / TRACE).read_text(encoding="utf-8"))["traceEvents"]
    assert "ProfilerStep#0" in {event["name"] for event in events}
