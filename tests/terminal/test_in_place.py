"""``profile`` on a terminal: budgets in place, and Ctrl-C; on a pipe the last budget alone."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from overhead_lens.errors import EXIT_INTERRUPTED, EXIT_USAGE
from tests.cli.run import TINY, lens, scenario
from tests.recorder.effort import little_effort
from tests.terminal.pseudo import CTRL_C, Terminal, forked_terminal

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 4

# The program as it is, but that each process measures for moments.
_SHORT = """
from overhead_lens.__main__ import main
from tests.recorder.effort import little_effort
with little_effort(PROCESSES, sampled=SAMPLED):
    main()
"""
_UP_AND_ERASE = "\x1b[1A\x1b[2K"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

pytestmark = pytest.mark.measures


def profiling(folder: Path, head: str = "", *, sampled: bool = False, **env: str) -> AbstractContextManager[Terminal]:
    """A profile in a terminal of its own, of a file that begins with ``head``; unless ``sampled``, its stacks are drawn."""
    short = _SHORT.replace("PROCESSES", str(PROCESSES)).replace("SAMPLED", str(sampled))
    words = ["profile", str(scenario(folder, text=head + TINY)), "-o", "capture"]
    return forked_terminal(short, words, folder, {"PYTHONPATH": str(ROOT), **env}, size=(30, 100))


def budgets(text: str) -> list[str]:
    """The headings of what was shown, in order, without repetitions."""
    seen = re.findall(r"size=50 · (\d+) process(?:es)?, \d+ blocks", _CONTROL.sub("", text))
    return [each for number, each in enumerate(seen) if number == 0 or seen[number - 1] != each]


def test_budgets_are_refined_in_place(tmp_path: Path) -> None:
    with profiling(tmp_path) as seen:
        first = seen.wait_for("Ctrl-C ends with what there is")
        assert seen.ended() == 0
    counts = [int(count) for count in budgets(seen.text)]
    # As many as are sampled at once, by the cores that are idle, then more and more.
    assert f"{counts[0]} of {PROCESSES} processes; " in " ".join(first.split())
    assert counts[0] < PROCESSES
    assert counts == sorted(set(counts))
    assert counts[-1] == PROCESSES
    # The last one stands where the others were, which are gone.
    between = seen.text[len(first) : seen.text.rindex("size=50")]
    assert between.count(_UP_AND_ERASE) >= 2 * first.count("\n") - 4
    assert f"size=50 · {PROCESSES} processes" in lens("report", "capture", cwd=tmp_path).stdout


def test_ctrl_c_ends_with_what_there_is(tmp_path: Path) -> None:
    with profiling(tmp_path, sampled=True) as seen:
        seen.wait_for("Ctrl-C ends with what there is")
        seen.type(CTRL_C)
        assert seen.ended() == EXIT_INTERRUPTED
    count = int(budgets(seen.text)[-1])
    assert count < PROCESSES
    interrupted = re.compile(r"interrupted after (\d) timed process")
    assert interrupted.findall(seen.text)[-1] == str(count)
    reported = lens("report", "capture", cwd=tmp_path)
    assert (reported.returncode, reported.stderr) == (0, "")
    assert budgets(reported.stdout) == [str(count)]
    assert interrupted.findall(reported.stdout) == [str(count)]
    assert not list((tmp_path / "capture").glob(".*"))
    assert json.loads(lens("report", "capture", "--json", cwd=tmp_path).stdout)["wall"]["processes"] == count


def test_ctrl_c_before_there_is_anything(tmp_path: Path) -> None:
    with profiling(tmp_path, "import time\ntime.sleep(1)") as seen:
        seen.wait_for("warming up")
        seen.type(CTRL_C)
        assert seen.ended() == EXIT_INTERRUPTED
    assert seen.text.splitlines()[-1].endswith("overhead-lens: interrupted")
    refused = lens("report", "capture", cwd=tmp_path)
    assert refused.returncode == EXIT_USAGE


def test_ctrl_c_again_and_again_ends_at_once(tmp_path: Path) -> None:
    with profiling(tmp_path) as seen:
        seen.wait_for("Ctrl-C ends with what there is")
        for _ in range(20):
            seen.type(CTRL_C)
            seen.pause(0.02)
        assert seen.ended() == EXIT_INTERRUPTED
    assert seen.text.replace("^C", "").splitlines()[-1].endswith("overhead-lens: interrupted")
    assert budgets(seen.text)[1:] == []
    # Complete is what was written to its end before the second time.
    complete = (tmp_path / "capture" / "meta.json").exists()
    assert lens("report", "capture", cwd=tmp_path).returncode == (0 if complete else EXIT_USAGE)


def test_a_termination_keeps_nothing(tmp_path: Path) -> None:
    with profiling(tmp_path) as seen:
        seen.wait_for("Ctrl-C ends with what there is")
        seen.process.terminate()
        assert seen.ended() == EXIT_INTERRUPTED
    assert not (tmp_path / "capture" / "meta.json").exists()


def test_a_pipe_gets_the_last_budget_alone(tmp_path: Path) -> None:
    with little_effort(PROCESSES, sampled=False):
        path = scenario(tmp_path)
        done = lens("profile", path, cwd=tmp_path)
    assert done.stderr == f"measuring {path}, about 20 s\n"
    assert budgets(done.stdout) == [str(PROCESSES)]
    assert "\x1b" not in done.stdout
    assert "Ctrl-C" not in done.stdout


def test_a_terminal_that_cannot_go_back_gets_the_last_budget_alone(tmp_path: Path) -> None:
    with profiling(tmp_path, TERM="dumb") as seen:
        assert seen.ended() == 0
    assert budgets(seen.text) == [str(PROCESSES)]
    assert "\x1b" not in seen.text
