"""Watched processes: drawn watches, stored and analyzed, and real ones where the system lets them be watched."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import overhead_lens as ol
from overhead_lens.documents.registry import json_schema
from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine import other_process
from overhead_lens.machine.guard import threads_of
from overhead_lens.studies.attach import watch as watching
from overhead_lens.studies.attach.analysis import ProcessBudget, process_of
from overhead_lens.studies.attach.delta import compare_processes
from overhead_lens.studies.attach.record import AttachRequest, default_rate_hz
from overhead_lens.studies.attach.slowdown import Reading, slowdown
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.processes import SEES, STEADY, S, draw_process, readings, thread
from tests.drawn.speedscope import speedscope
from tests.drawn.stacks import CLASSIFIER
from tests.export.trace_processor import Program
from tests.studies.looping import LOOP, running
from tests.worker.warm import COMMANDS, fork


def drawn(folder: Path, *lines: str, **changed: Any) -> ProcessBudget:
    return process_of(draw_process(folder, *lines, **changed), CLASSIFIER)


# ---------------------------------------------------------------- what watching costs
def test_cpu_seconds_that_are_missing_while_it_is_watched() -> None:
    assert slowdown(STEADY, [Reading(3 * S, 3 * S), Reading(13 * S, 3 * S + 8 * S)]) == (pytest.approx(0.2), None)
    # Four threads at once, and a process that got more than before.
    assert slowdown(readings(0, 4 * S, 8 * S), [Reading(0, 0), Reading(S, 3 * S)]) == (0.25, None)
    assert slowdown(STEADY, [Reading(0, 0), Reading(S, 2 * S)]) == (0.0, None)


@pytest.mark.parametrize(
    ("before", "during", "reason"),
    [
        (readings(0, 40_000_000, 80_000_000), [Reading(0, 0), Reading(S, 1)], "it hardly runs"),
        (readings(0, S, S, 2 * S), [Reading(0, 0), Reading(S, 1)], "its load is not steady"),
        ([], [Reading(0, 0), Reading(S, 1)], "its CPU clock could not be read"),
        (STEADY, [Reading(0, 0)], "its CPU clock could not be read"),
    ],
)
def test_when_it_cannot_be_told(before: list[Reading], during: list[Reading], reason: str) -> None:
    assert slowdown(before, during) == (None, reason)


# ---------------------------------------------------------------- a stored watch
def test_how_long_a_thread_was_there_is_said_with_its_budget(tmp_path: Path) -> None:
    found = drawn(tmp_path / "p", *thread(10, "MainThread", 1_000), *thread(11, "short", 50, 50))
    threads = validated(found.to_json())["threads"]
    assert [(each["seen_share"], each["busy_share"]) for each in threads] == [(1.0, 1.0), (0.1, 0.05)]
    assert found.to_pandas().loc["python", ["ns", "seen_share"]].to_numpy().tolist() == [[10 * S, 1.0], [5 * S, 0.1]]
    assert lens("export", "p", "--format", "speedscope", cwd=tmp_path).returncode == 0
    profiles = json.loads((tmp_path / "p" / "speedscope.json").read_text())["profiles"]
    assert [sum(each["weights"]) for each in profiles] == [10 * S, S]


def test_a_budget_a_thread_as_a_document(tmp_path: Path) -> None:
    lines = [*thread(10, "MainThread", 600, 400), *thread(11, "idle", 0, 1000), *thread(12, "busy", 900, 100)]
    document = validated(drawn(tmp_path / "p", *lines).to_json())
    assert document["schema"] == "overhead-lens/process/1"
    head = {name: document[name] for name in ("pid", "command", "python", "torch", "duration_ns", "samples")}
    assert head == {
        **{"pid": 10, "command": "python train.py", "python": "3.11.7", "torch": "2.13.0"},
        **{"duration_ns": 10 * S, "samples": 3000},
    }
    assert document["slowdown_share"] == 0.1
    assert [(each["name"], each["thread"], each["process"]) for each in document["threads"]] == [
        *(("MainThread", 10, 10), ("busy", 12, 10), ("idle", 11, 10))
    ]
    for each in document["threads"]:
        assert sum(row["ns"] for row in each["host"]) == each["wall_ns"] == 10 * S
    assert document["warnings"] == [SEES]
    assert list(json_schema("process")["$defs"]["ProcessDocument"]["properties"]) == [
        *("schema", "pid", "command", "python", "torch", "duration_ns", "samples", "slowdown_share", "threads"),
        *("warnings", "capture", "trace"),
    ]


def test_what_a_reader_must_know(tmp_path: Path) -> None:
    found = drawn(
        tmp_path / "p",
        *thread(10, "MainThread", 100),
        "thread (10): MainThread;nobody_knows (libx.so) 10",
        *(line for tid in range(11, 15) for line in thread(tid, f"short {tid}", 11)),
        errors=20,
        samples=154,
        warnings=["stopped after 3.0 s of 20 s"],
        before=readings(0, 0, 0),
    )
    assert found.slowdown_share is None
    assert found.warnings == (
        "stopped after 3.0 s of 20 s",
        "what watching cost it is unknown: it hardly runs",
        "only 110 samples of the main thread: a category of 1 % is uncertain by 1.9 points",
        "20 of 174 stacks could not be read: the shares are of the others",
        "9.1% of the first thread is unattributed: no rule claims the frames listed under it",
        (
            "not all threads were there all the time (short 11 10%, short 12 10%, short 13 10% and 1 more): theirs is the budget"
            " of that part, scaled to the whole"
        ),
        SEES,
    )


def test_time_that_few_stacks_show_awake_lacks_no_rule(tmp_path: Path) -> None:
    found = drawn(tmp_path / "p", *thread(10, "MainThread", 10, 990), running=[(10, 0.5)])
    reason = "the thread's CPU clock ran while its stacks show it waiting"
    assert f"49.0% of the first thread is unattributed: {reason}" in found.warnings


def test_a_main_thread_that_runs_no_python(tmp_path: Path) -> None:
    found = drawn(tmp_path / "p", *thread(11, "only", 1000))
    assert found.warnings[0] == "the main thread gave no stack: it runs no Python"


def test_it_loads_reports_and_tabulates(tmp_path: Path) -> None:
    folder = draw_process(tmp_path / "p", *thread(10, "MainThread", 600, 400), *thread(11, "other", 0, 1000))
    found = ol.load(folder)
    assert isinstance(found, ProcessBudget)
    table = found.to_pandas()
    assert table[table["thread"] == 10].loc["wait", "ns"] == 4 * S
    assert "MainThread" in found._repr_html_()
    done = lens("report", "p", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "process 10: python train.py"
    assert lines[1] == (
        "Python 3.11.7, torch 2.13.0, 2 threads, 2,000 samples, watched for 10.00 s, which slowed it by 10%"
    )
    assert "MainThread is busy 60% of the time, 60% in python (most of it user); it waits 40% " in done.stdout
    assert any(line.startswith("other") and "wait/io 100%" in line for line in lines)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ([], "the process p is damaged: stacks.txt.gz: it holds no thread"),
        (["a (a.py:1) 3"], "the process p is damaged: stacks.txt.gz: it holds no thread"),
    ],
)
def test_a_watch_without_threads_is_damaged(tmp_path: Path, lines: list[str], line: str) -> None:
    draw_process(tmp_path / "p", *lines)
    for command in (["report", "p"], ["open", "p"], ["export", "p", "--format", "speedscope"]):
        done = lens(*command, cwd=tmp_path)
        assert (error_line(done), done.returncode) == (line, 2)


def test_a_watch_whose_stacks_are_cut_off(tmp_path: Path) -> None:
    folder = draw_process(tmp_path / "p", *thread(10, "MainThread", 600))
    content = (folder / "stacks.txt.gz").read_bytes()
    (folder / "stacks.txt.gz").write_bytes(content[:-9])
    done = lens("report", "p", cwd=tmp_path)
    assert error_line(done).startswith("the process p is damaged: stacks.txt.gz: ")


def test_commands_for_calls_refuse_it_by_name(tmp_path: Path) -> None:
    draw_process(tmp_path / "p", *thread(10, "MainThread", 600))
    done = lens("check", "p", cwd=tmp_path)
    assert done.returncode == 2
    with pytest.raises(
        UsageError, match=r"is a watched process, not the capture of a call; `overhead-lens report` shows it"
    ):
        ol.compare(tmp_path / "p", tmp_path / "p")


# ---------------------------------------------------------------- two watches
def test_threads_are_matched_by_name_and_their_shares_compared(tmp_path: Path) -> None:
    base = drawn(
        tmp_path / "a", *thread(10, "MainThread", 600, 400), *thread(11, "w", 500, 500), *thread(12, "gone", 1000)
    )
    new = drawn(
        tmp_path / "b",
        *thread(20, "MainThread", 800, 200),
        *thread(22, "w", 505, 495),
        *thread(23, "came", 1000),
        pid=20,
        torch="2.14.0",
    )
    delta = compare_processes(base, new, 0.01)
    main, worker = delta.threads
    assert [(each.name, each.base_thread, each.new_thread) for each in delta.threads] == [
        *(("MainThread", 10, 20), ("w", 11, 22))
    ]
    python = main.host[0]
    assert (python.category, python.verdict, python.delta_share) == ("python", "more", pytest.approx(0.2))
    # Both shares have binomial errors, sqrt(0.6 * 0.4 / 1000) and sqrt(0.8 * 0.2 / 1000).
    half = 1.96 * (0.24 / 1000 + 0.16 / 1000) ** 0.5
    assert python.ci95_share == (pytest.approx(0.2 - half, abs=0.006), pytest.approx(0.2 + half, abs=0.006))
    assert {row.category: row.verdict for row in main.host if row.verdict != "same"} == {
        "python": "more",
        "wait": "less",
    }
    assert {row.verdict for row in worker.host} == {"same"}
    assert (delta.gone, delta.came) == (("gone",), ("came",))
    assert delta.sentence == ("The time of MainThread divides otherwise: python +20.0 points, wait -20.0 points.")
    assert delta.warnings[1:] == ("torch differs: 2.13.0 and 2.14.0",)
    back = compare_processes(new, base, 0.01).threads[0].host[0]
    assert (back.verdict, back.ci95_share) == ("less", (-python.ci95_share[1], -python.ci95_share[0]))


def test_differences_are_judged_among_all_categories_of_all_threads(tmp_path: Path) -> None:
    # One of 20 threads moved by 3.5 standard errors, which is rare alone and usual among 40 categories; by 6 in the second pair.
    def threads(work: int) -> list[str]:
        still = [line for tid in range(11, 30) for line in thread(tid, f"w{tid}", 500, 500)]
        return [*thread(10, "MainThread", work, 1_000 - work), *still]

    base = drawn(tmp_path / "a", *threads(500))
    for name, work, verdicts in (("b", 568, {"same"}), ("c", 640, {"more", "less"})):
        delta = compare_processes(base, drawn(tmp_path / name, *threads(work)), 0.01)
        main = delta.threads[0]
        assert main.name == "MainThread"
        low, _ = main.host[0].ci95_share
        assert low > 0
        assert {row.verdict for row in main.host if row.base_share} == verdicts
        assert {row.verdict for each in delta.threads[1:] for row in each.host} == {"same"}
    alone = (
        drawn(tmp_path / "d", *thread(10, "MainThread", 500, 500)),
        drawn(tmp_path / "e", *thread(10, "MainThread", 568, 432)),
    )
    assert {row.verdict for row in compare_processes(*alone, 0.01).threads[0].host if row.base_share} == {
        "more",
        "less",
    }


def test_a_significant_difference_within_the_margin_is_none(tmp_path: Path) -> None:
    base = drawn(tmp_path / "a", *thread(10, "MainThread", 500_000, 500_000))
    new = drawn(tmp_path / "b", *thread(10, "MainThread", 505_000, 495_000))
    for margin_share, verdict in ((0.01, "same"), (0.004, "more")):
        assert compare_processes(base, new, margin_share).threads[0].host[0].verdict == verdict


def test_threads_of_one_name_are_matched_by_how_busy_they_are(tmp_path: Path) -> None:
    base = drawn(tmp_path / "a", *thread(10, "MainThread", 9), *thread(11, "w", 1, 8), *thread(12, "w", 5, 4))
    new = drawn(tmp_path / "b", *thread(10, "MainThread", 9), *thread(21, "w", 4, 5), *thread(22, "w", 0, 9))
    pairs = [(each.base_thread, each.new_thread) for each in compare_processes(base, new, 0.01).threads]
    assert pairs == [(10, 10), (12, 21), (11, 22)]


def test_diff_of_two_watches_is_no_verdict_on_speed(tmp_path: Path) -> None:
    draw_process(tmp_path / "a", *thread(10, "MainThread", 600, 400), *thread(11, "idle", 0, 1000))
    draw_process(tmp_path / "b", *thread(10, "MainThread", 900, 100), *thread(11, "idle", 0, 1000))
    done = lens("diff", "a", "b", cwd=tmp_path)
    assert done.returncode == 0
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("python"))
    assert row[:5] + row[-1:] == ["python", "60.0%", "90.0%", "+30.0", "points", "more"]
    assert "1 other thread divides as before" in done.stdout
    assert "shares of time are compared, which say what changed and not whether it became slower" in done.stdout
    document = validated(lens("diff", "a", "b", "--json", cwd=tmp_path).stdout)
    assert document["threads"][0]["host"][0]["verdict"] == "more"
    (tmp_path / "empty").mkdir()
    mixed = lens("diff", "a", "empty", cwd=tmp_path)
    assert (
        error_line(mixed)
        == "a watched process compares with a watched process, a run with a run, a capture with a capture"
    )


# ---------------------------------------------------------------- other viewers
def test_exports(tmp_path: Path) -> None:
    draw_process(
        tmp_path / "p",
        *thread(10, "Main;Thread", 600, 400),
        'process 10:"x";process 12:"y";thread (12): MainThread;f (f.py:1) 7',
    )
    assert lens("export", "p", "--format", "collapsed", "-o", "c", cwd=tmp_path).stdout == "c\n"
    assert (tmp_path / "c").read_text().splitlines()[-1] == "MainThread (12/12);f (f.py) 7"
    assert lens("export", "p", "--format", "speedscope", cwd=tmp_path).returncode == 0
    document = json.loads((tmp_path / "p" / "speedscope.json").read_text())
    assert [(each["name"], sum(each["weights"])) for each in document["profiles"]] == [
        *(("Main (10/10)", 10 * S), ("MainThread (12/12)", 10 * S))
    ]
    refused = lens("export", "p", "--format", "chrome", cwd=tmp_path)
    assert error_line(refused) == (
        "a watched process has stacks and no events: export it with --format collapsed, perfetto or speedscope"
    )


def test_the_perfetto_trace_has_a_budget_and_the_stacks_of_each_thread(
    tmp_path: Path, trace_processor: Program
) -> None:
    draw_process(tmp_path / "p", *thread(10, "MainThread", 60, 40), *thread(11, "other", 10, 90))
    assert lens("export", "p", "--format", "perfetto", "-o", "t.pftrace", cwd=tmp_path).returncode == 0
    loaded = trace_processor.load(tmp_path / "t.pftrace")
    assert loaded.losses() == []
    assert loaded.query(
        "select t.name as name, count(*) as n from perf_sample join thread t using (utid) group by t.name order by 1"
    ) == [("MainThread", 100), ("other", 100)]
    of_a_budget = "select category, sum(dur) as dur from slice where category glob 'budget*' group by 1 order by 1"
    assert loaded.query(of_a_budget) == [("budget", 10 * S), ("budget of a thread", 10 * S)]


# ---------------------------------------------------------------- real processes
@pytest.fixture(autouse=True)
def load_is_read_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PIECE_S", 0.05)


def attach(pid: object, *options: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    # About 150 stacks, of which those of the first half second and two standard deviations more are left out.
    done = lens("attach", pid, "--duration", 1, "--rate", 100, *options, cwd=cwd)
    if done.returncode == 3 and "no permission" in done.stderr:
        pytest.skip(f"processes cannot be watched here: {done.stderr.strip()}")
    return done


@pytest.mark.measures
def test_a_process_that_knows_nothing_of_it(tmp_path: Path) -> None:
    with running("sleeper") as pid:
        done = attach(pid, "--json", "-o", "p", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        document = validated(done.stdout)
        main, sleeper = document["threads"]
        assert (document["pid"], main["thread"], main["name"], sleeper["name"]) == (pid, pid, "MainThread", "sleeper")
        assert (document["python"], document["torch"]) == (".".join(map(str, sys.version_info[:3])), None)
        shares = {row["category"]: row["share"] for row in sleeper["host"]}
        assert shares["wait"] == 1.0
        assert {row["category"]: row["share"] for row in main["host"]}["wait"] < 0.5
        assert process_of(tmp_path / "p", CLASSIFIER).to_json().replace(str(tmp_path / "p"), "p") + "\n" == done.stdout
        assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
            "meta.json",
            "stacks.txt.gz",
            "trace.pftrace",
        ]
        os.kill(pid, 0)


SHORTLY = """
from overhead_lens.__main__ import main
from overhead_lens.studies.attach import watch
watch._PIECE_S = 0.05
main()
"""


def started(*words: object, cwd: Path) -> Any:
    with open(os.devnull, "r+b") as nothing:
        return fork(("-c", SHORTLY, *words), [nothing] * 3, cwd, modules=COMMANDS)


TURNS = """
import hashlib, os, queue, threading
asked, told = queue.SimpleQueue(), queue.SimpleQueue()
def work():
    while True:
        asked.get()
        told.put(hashlib.sha256(bytes(1_000_000)))
threading.Thread(target=work, name="worker", daemon=True).start()
print(os.getpid(), flush=True)
while True:
    asked.put(1)
    told.get()
    hashlib.sha256(bytes(1_000_000))
"""


@pytest.mark.measures
def test_threads_that_take_turns_wait_no_longer_than_their_clocks_leave(tmp_path: Path) -> None:
    started("--version", cwd=tmp_path).wait()  # the first one takes seconds, for which the process would be busy
    with running(code=TURNS) as pid:
        placed = places(pid)
        watching = started("attach", pid, "--duration", 2, "-o", "turns", cwd=tmp_path)
        await_that(lambda: is_watched(pid))
        while watching.poll() is None:
            # A sampler on the core of a thread would find it waiting.
            assert places(pid) == placed
            time.sleep(0.05)
        assert watching.returncode == 0
    found = process_of(tmp_path / "turns", CLASSIFIER)
    running_shares = dict(json.loads((tmp_path / "turns" / "meta.json").read_text())["running"])
    assert [thread.name for thread in found.threads] == ["MainThread", "worker"]
    for each in found.threads:
        assert running_shares[each.thread] > 0.05
        assert each.category("wait").share <= 1 - running_shares[each.thread] + 0.02


@pytest.mark.measures
def test_killed_in_the_middle_nothing_of_it_is_left_and_the_process_goes_on(tmp_path: Path) -> None:
    with running("sleeper") as pid:
        before = places(pid)
        attach(pid, cwd=tmp_path)
        assert places(pid) == before
        killed = started("attach", pid, "--duration", 60, "-o", "killed", cwd=tmp_path)
        await_that(lambda: is_watched(pid) and (len(CORES) < 2 or places(pid) != before))
        time.sleep(0.5)
        killed.kill()
        killed.wait()
        await_that(lambda: not is_watched(pid) and places(pid) == before)
        status = Path(f"/proc/{pid}/status").read_text()
        assert "TracerPid:\t0\n" in status
        assert attach(pid, "-o", "again", cwd=tmp_path).returncode == 0
        refused = lens("report", "killed", cwd=tmp_path)
        assert error_line(refused) == "killed is not a complete capture: it has no meta.json (was it interrupted?)"


CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def places(pid: int) -> dict[int, tuple[set[int], int]]:
    """Cores and policy of a process's threads."""
    return {each: (os.sched_getaffinity(each), os.sched_getscheduler(each)) for each in threads_of(pid)}


def end_once_watched(pid: int, over: Path) -> None:
    """Create ``over``, unless it is there already, once the process has been stopped by a sampler again and again."""
    stops = 0
    while stops < 50 and not over.exists():
        stops += any(thread.tracer for thread in other_process.thread_states(pid))
        time.sleep(0.005)
    over.touch()


def is_watched(pid: int) -> bool:
    return other_process._watcher(pid, 0) is not None


def await_that(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.measures
def test_processes_that_cannot_be_watched(tmp_path: Path) -> None:
    def refused(pid: object) -> tuple[str, int]:
        done = attach(pid, "-o", "out", cwd=tmp_path)
        assert not (tmp_path / "out").exists()
        return error_line(done), done.returncode

    with running() as pid:
        attach(pid, "-o", "fine", cwd=tmp_path)
        os.kill(pid, signal.SIGSTOP)
        while "T (stopped)" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.01)
        assert refused(pid) == (f"process {pid} is stopped: resume it (`kill -CONT {pid}`), then attach", 3)
        assert "T (stopped)" in Path(f"/proc/{pid}/status").read_text()
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        assert refused(sleeping.pid) == (f"process {sleeping.pid} (sleep 60) is not a Python process", 2)
        sleeping.kill()
        while "Z (zombie)" not in Path(f"/proc/{sleeping.pid}/status").read_text():
            time.sleep(0.01)
        zombie = f"process {sleeping.pid} has ended: it is a zombie that its parent, {os.getpid()}, has to collect"
        assert refused(sleeping.pid) == (zombie, 2)
    assert refused(sleeping.pid) == (f"no process {sleeping.pid} (has it ended?)", 2)
    assert refused(os.getpid()) == (f"process {os.getpid()} is this very program: it cannot watch itself", 2)


@pytest.mark.measures
def test_a_process_that_ends_while_it_is_watched(tmp_path: Path) -> None:
    with running(code=LOOP.replace("while True:", "while not os.path.exists('over'):"), cwd=tmp_path) as pid:
        watcher = threading.Thread(target=end_once_watched, args=(pid, tmp_path / "over"))
        watcher.start()
        done = lens("attach", pid, "--duration", 60, "--json", cwd=tmp_path)
        (tmp_path / "over").touch()
        watcher.join()
        if "no permission" in done.stderr:
            pytest.skip("processes cannot be watched here")
        document = validated(done.stdout)
        assert document["warnings"][0].startswith("the process ended after ")
        assert document["duration_ns"] < 60 * S


# A process and its child in the same loop; the child ends with its parent.
FAMILY = """
import os, subprocess, sys
if "child" not in sys.argv:
    subprocess.Popen([sys.executable, "-c", sys.argv[1], "", "child"], stdout=subprocess.PIPE).stdout.readline()
parent = os.getppid()
def work():
    return sum(number * number for number in range(10_000))
print(flush=True)
while os.getppid() == parent:
    work()
"""


@pytest.mark.measures
def test_children_at_a_rate_by_rules_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[[rule]]\ncategory = "kernel"\nfunction = ["work$"]\nscope = true\nsource = "mine"\n'
    )
    with running(FAMILY, code=FAMILY) as pid:
        (child,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        # On a busy machine the sampler finds the child a second later.
        options = ["--subprocesses", "--duration", 4, "--rate", 20, "--rules", "mine.toml", "--html", "page.html"]
        done = attach(pid, *options, "--json", "-q", "-o", "p", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    document = validated(done.stdout)
    # Their command line has several lines.
    assert {(each["process"], each["thread"]) for each in document["threads"]} == {(pid, pid), (child, child)}
    for each in document["threads"]:
        shares = {row["category"]: row["share"] for row in each["host"]}
        assert shares["kernel"] > 0.7 > 0.2 > shares["python"], shares
    assert not [warning for warning in document["warnings"] if "--subprocesses" in warning]
    meta = json.loads((tmp_path / "p" / "meta.json").read_text())
    assert (meta["rate_hz"], meta["subprocesses"]) == (20, True)
    built_in = validated(lens("report", "p", "--json", cwd=tmp_path).stdout)
    assert {row["category"]: row["share"] for row in built_in["threads"][0]["host"]}["kernel"] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for process in (pid, child):
        assert re.search(rf"process {process}\b", page)
    assert re.search(r"\d+% in kernel", page)
    assert "work.&lt;genexpr&gt; (&lt;string&gt;)" in page


@pytest.mark.measures
def test_a_watch_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with running("sleeper") as pid:
        try:
            found = ol.attach(pid, 1.0)
        except MeasurementError as error:
            pytest.skip(f"processes cannot be watched here: {error}")
    main, sleeper = found.threads
    assert (found.pid, main.name, main.process, sleeper.name, sleeper.process) == (
        *(pid, "MainThread", pid, "sleeper", pid),
    )
    assert (sleeper.category("wait").share, main.category("wait").share < 0.1) == (1.0, True)
    assert sum(row.ns for row in main.host) == main.wall_ns == found.duration_ns
    (folder,) = (tmp_path / "traces").iterdir()
    assert Path(found.capture) == folder.relative_to(tmp_path)
    assert ol.load(found.capture) == found
    assert json.loads((folder / "meta.json").read_text())["command"] == f"overhead_lens.attach {pid}"


def test_what_a_terminal_is_needed_for(tmp_path: Path) -> None:
    done = lens("attach", 1, "--top", cwd=tmp_path)
    assert error_line(done) == "--top needs a terminal: run it in one, or leave out --top"
    done = lens("attach", 1, "--top", "--json", cwd=tmp_path)
    assert error_line(done) == "--json has no effect with --top, which stores nothing"
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
@pytest.mark.parametrize(
    ("chatter", "looks", "line", "code"),
    [
        ("Error: Permission denied (os error 13)", True, "no permission to watch process {pid}: do this", 3),
        (
            "Error: Failed to find python version from target process",
            True,
            "the interpreter of process {pid} is not known to py-spy: one that is static, stripped or not CPython cannot be watched",
            3,
        ),
        (
            "Error: Failed to find python version from target process",
            False,
            "process {pid} ({command}) is not a Python process",
            2,
        ),
        (
            "Sampling process\nSamples: 0 Errors: 0",
            True,
            "no sample was taken: py-spy reads symbols first, so watch for longer (--duration)",
            3,
        ),
        ("Error: Something else", True, "py-spy failed: Error: Something else", 3),
    ],
)
def test_what_py_spy_says_is_put_into_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chatter: str, looks: bool, line: str, code: int
) -> None:
    program = tmp_path / "py-spy"
    (tmp_path / "nothing").write_text(speedscope())
    copy = f'for each; do last="$each"; done; cp {tmp_path}/nothing "$last"'
    program.write_text(f"#!/bin/sh\n{copy}\necho '{chatter}'; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("overhead_lens.samplers.py_spy.find_sampler", lambda: str(program))
    monkeypatch.setattr(watching, "permission_remedy", lambda _: "do this")
    monkeypatch.setattr(watching, "looks_like_python", lambda _: looks)
    monkeypatch.setattr(watching, "_PIECE_S", 0.0)
    with subprocess.Popen(["sleep", "60"]) as target:
        done = lens("attach", target.pid, cwd=tmp_path)
        target.kill()
    assert (error_line(done), done.returncode) == (line.format(pid=target.pid, command="sleep 60"), code)


class CatchingUp:
    """A sampler that catches up at its n-th look, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, looks: list[bool | None], over: bool) -> None:  # noqa: FBT001
        self.looks, self.over, self.now_s = iter(looks), over, 100.0
        monkeypatch.setattr(watching.time, "monotonic", lambda: self.now_s)

    @property
    def caught_up(self) -> bool | None:
        return next(self.looks)

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return False

    def is_set(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("looks", "overdue", "due", "before"),
    [(1_050, 50.0, 1_000.0, 64), (40, 20.0, 20.0, 27), (27, 20.0, 20.0, 19), (22, 20.0, 2.0, 23), (25, 0.0, 20.0, 0)],
)
def test_looks_before_a_watch_are_left_out(looks: int, overdue: float, due: float, before: int) -> None:
    # Of 0.5 s at 40 Hz, after 0.5 s of reading symbols, some are left however few were taken.
    assert watching._before(looks, overdue, due) == before


@pytest.mark.parametrize(
    ("rate_hz", "looks", "over", "seconds"),
    [
        (40, [True], False, 0.5),
        (5, [True], False, 1.0),
        (40, [*(100 * [False]), True], False, 1.5),
        (40, [False, None], False, 0.0),
        (40, 9_999 * [False], False, 0.0),
        (40, [], True, 0.0),
    ],
)
def test_a_watch_begins_when_the_sampler_has_caught_up(
    rate_hz: int,
    looks: list[bool | None],
    over: bool,  # noqa: FBT001
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: Any = CatchingUp(monkeypatch, looks, over)
    assert watching._caught_up_s(drawn, rate_hz, drawn) == pytest.approx(seconds)


def test_one_child_that_was_not_watched_is_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "descendants", lambda _pid: [1])
    watch = watching.Watch(os.getpid(), 40, 60, None, subprocesses=False, bound=True)
    said = "child processes were not watched: 1 (--subprocesses watches them)"
    assert list(watching._notes(watch, 2 * S, 2.0)) == [said]


@pytest.mark.parametrize(("threads", "rate_hz"), [(1, 40), (5, 40), (6, 33), (64, 3), (1000, 1)])
def test_a_process_of_many_threads_is_looked_at_less_often(threads: int, rate_hz: int) -> None:
    assert default_rate_hz(threads) == rate_hz


@pytest.mark.parametrize("count", [0, 1, 2])
def test_processes_that_were_not_watched_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(watching, "descendants", lambda _: iter(range(count)))
    notes = watching._notes(watching.Watch(os.getpid(), 20, None, tmp_path), 10**9, 1.0)
    said = f"child processes were not watched: {count} (--subprocesses watches them)"
    assert [*notes] == [said] * (count > 0)


def test_the_rate_is_by_the_threads_of_the_process_or_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overhead_lens.studies.attach.record.threads_of", range)
    asked = AttachRequest(pid=20, seconds=1.0, parent=tmp_path, command=())
    assert asked.watch(tmp_path).rate_hz == 10
    assert replace(asked, rate_hz=77).watch(tmp_path).rate_hz == 77
