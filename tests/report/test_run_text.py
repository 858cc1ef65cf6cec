"""The terminal report of drawn runs, letter by letter; a mismatch leaves a `.got` beside the golden file."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from overhead_lens.budget.model import CrossCheck, Reading
from overhead_lens.program.area import Phase
from overhead_lens.report.forms import print_text
from overhead_lens.report.outlines.host import most_of
from overhead_lens.report.outlines.run import check_lines, run_outline, sentence
from overhead_lens.studies.run.analysis import RunBudget, StepWall, run_budget
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.run.stored import Compilation, Place, StoredRegion
from overhead_lens.taxonomy.host import Frame, HostCategory, Part
from overhead_lens.taxonomy.names import GIL_HOLDER
from tests.drawn.builders import breakdown
from tests.drawn.runs import KERNEL, OUTSIDE, WAIT, WORK, bare, main, run_of, stretch
from tests.drawn.stacks import CLASSIFIER
from tests.report.goldens import expect

MS = 1_000_000


def printed(result: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, color_system=None)
    print_text(console, result)
    text: str = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def full(**meta: Any) -> RunBudget:
    """A run in which every block of the report holds something."""
    usual = {"ns": MS, "user_ns": 900_000, "system_ns": 50_000}
    rows = [
        *stretch(Phase.WARM_UP, *(10 * [3 * MS])),
        *bare(*(30 * [usual]), {**usual, "ns": 9 * MS, "gc_ns": 7 * MS}, *(10 * [usual]), {**usual, "ns": 4 * MS}),
        *stretch(Phase.SAMPLED, *(20 * [1_500_000])),
    ]
    child = 'process 10:"python train.py";process 12:"worker";thread (12): MainThread;decode (data.py:3) 300'
    turn = [
        *(main(WORK, 600), main(WAIT, 250), main(KERNEL, 150), main(OUTSIDE, 50), child),
        *("thread (11): reader;read (data.py:9) 400", "thread (11): reader;read (data.py:9);poll (libc.so.6) 600"),
    ]
    where = [Place("/home/ada/train.py", "train", 5, 5)]
    regions = [
        StoredRegion("decode", where, 42, 16.8 * MS, 16.8 * MS * 0.4 * MS),
        StoredRegion("\x1b[31mlog", [], 42, 420, 4200),
    ]
    start = [main("import_torch (<frozen importlib._bootstrap>:9)", 30), main(OUTSIDE, 10)]
    moments = {"begun_ns": 1_000 - 40 * MS, "first_ns": 1_000, "settled_ns": 1_000 + 30 * MS, "wall_ns": 200 * MS}
    drawn = run_of(*rows, turns=(turn,), start=start, regions=regions, exit_code=7, rank=1, **moments, **meta)
    return run_budget(drawn, CLASSIFIER)


def test_run() -> None:
    expect("run.txt", printed(full()))


@pytest.mark.parametrize(("agree", "verdict"), [(True, "they agree"), (False, "they DISAGREE")])
def test_checks_are_said_and_a_disagreement_first(agree: bool, verdict: str) -> None:
    samples, trace = Reading(400_000.0, (380_000.0, 420_000.0)), Reading(500_000.0, (450_000.0, 550_000.0))
    made = replace(full(), cross_checks=(CrossCheck("operators", samples, trace, None, agree),))
    assert list(check_lines(made)) == [
        (
            "time in operators 400.0 µs [380.0 µs .. 420.0 µs] by stacks, 500.0 µs [450.0 µs .. 550.0 µs] by the"
            f" trace: {verdict}"
        ),
        "sampled steps took 1.19 times as long as bare ones",
    ]
    head = printed(made).partition("category")[0]
    assert ("stacks and trace DISAGREE: see the checks below" in head) is not agree


@pytest.mark.parametrize(
    ("held", "said"),
    [([100] * 8, ""), ([500, 300], ", which thread loader 0 holds"), ([400, 400], "")],
)
def test_who_holds_the_gil_is_said_if_it_is_for_most_of_that_time(held: list[int], said: str) -> None:
    top = tuple(Frame(f"{GIL_HOLDER}thread loader {at}", ns) for at, ns in enumerate(held))
    host = breakdown({"wait": {"gil": 800}}, wait=800, python=200).host
    shown = tuple(replace(each, top=top) if each.category == "wait" else each for each in host)
    run = replace(full(), wall=StepWall(1_000, (900.0, 1_100.0)), host=shown)
    assert sentence(run) == f"wait dominates: 80% of the step, most of it gil (800 ns){said}; then python with 20%."


def test_the_thread_of_the_steps_is_said() -> None:
    made = full()
    named = replace(made, steps=replace(made.steps, thread="model"))
    assert (
        run_outline(named)
        .about[0]
        .startswith("76 steps: each optimizer.step (train.py:7) in thread model; 13 of warm-up")
    )


def test_a_narrow_terminal_cuts_no_figure() -> None:
    turn = [main(f"{WORK};{frame}", 300) for frame in ("at::native::add_kernel (libtorch_cpu.so)", "poll (libc.so.6)")]
    where = [Place("/home/ada/train.py", "train", 5, 5)]
    region = StoredRegion("postprocessing", where, 12_345, 12_345 * 68_220.0, 12_345 * 5e9)
    made = run_budget(run_of(*bare(MS, MS, MS), turns=([*turn, main(WORK, 400)],), regions=[region]), CLASSIFIER)
    text = printed(made, width=80)
    (row,) = [line for line in text.splitlines() if line.startswith("postprocessing")]
    assert row == "postprocessing  12,345x   68.22 µs  67.89 µs .. 68.55 µs  python/user 40%"


def test_a_run_of_which_little_is_known() -> None:
    made = run_budget(run_of(found_by="none", home=None, reason="Yama forbids it"), CLASSIFIER)
    expect("run_unknown.txt", printed(made))
    killed = printed(replace(made, exit_code=-9))
    assert killed.splitlines()[2] == f"it ended with signal {signal.strsignal(9)}"


def test_slow_steps_of_a_run_without_stacks_have_their_heading() -> None:
    made = run_budget(run_of(*bare(*(19 * [MS]), 9 * MS), reason="Yama forbids it"), CLASSIFIER)
    lines = printed(made).splitlines()
    at = next(at for at, line in enumerate(lines) if line.lstrip().startswith("step "))
    assert made.slowest
    assert lines[at - 1] == "Slowest bare steps"


def test_ranks_of_a_job() -> None:
    slow, fast = (
        run_budget(run_of(*bare(*(20 * [ns])), turns=([main(stack, 1_000)],), rank=rank), CLASSIFIER)
        for rank, (ns, stack) in enumerate([(2 * MS, WORK), (MS, KERNEL)])
    )
    job = RunJob((slow, fast), "traces/job")
    assert job.slowest == slow
    assert job.to_pandas().groupby("rank")["ns"].sum().to_dict() == {0: 2 * MS, 1: MS}
    expect("run_ranks.txt", printed(job))


@pytest.mark.parametrize(
    ("parts", "host", "said"),
    [
        (
            {},
            {"kernel": 800, "python": 200},
            "Not overhead: 80% of the step is the kernels' own work, led by kernel_frame (file.py) (800 ns).",
        ),
        (
            {},
            {"kernel": 799, "python": 201},
            "kernel dominates: 80% of the step, led by kernel_frame (file.py) (799 ns); then python with 20%.",
        ),
        (
            {"python": {"user": 500, "gc": 410}},
            {"python": 910, "wait": 90},
            "python dominates: 91% of the step, most of it user (500 ns).",
        ),
        (
            {"python": {"user": 300, "gc": 300, "binding": 300}},
            {"python": 900, "wait": 100},
            "python dominates: 90% of the step, led by python_frame (file.py) (900 ns); then wait with 10%.",
        ),
    ],
)
def test_what_dominates_in_a_sentence(parts: Any, host: dict[str, int], said: str) -> None:
    assert sentence(replace(full(), wall=StepWall(1_000, (900.0, 1_100.0)), host=breakdown(parts, **host).host)) == said


@pytest.mark.parametrize(
    ("found_by", "line"),
    [
        ("explicit", "as marked (train.py:7)"),
        ("profiler", "each step of its torch.profiler (train.py:7)"),
        ("module", "each call of the outermost module (train.py:7)"),
        ("loop", "each iteration of its loop (train.py:7)"),
    ],
)
def test_how_the_steps_were_found(found_by: str, line: str) -> None:
    assert line in printed(full(found_by=found_by))


def test_a_recompilation_says_why() -> None:
    steps = bare(*(10 * [MS]), {"ns": 90 * MS, "compile_ns": 80 * MS})
    compilations = [Compilation(20 * MS, 50 * MS, "L['x'] size mismatch at index 0")]
    text = printed(run_budget(run_of(*steps, compilations=compilations), CLASSIFIER))
    assert "recompilation: L['x'] size mismatch at index 0" in text


def test_the_largest_part_is_named_where_nothing_has_most_of_the_time() -> None:
    parts = (Part("dispatch", 300), Part("autograd", 260), Part("op_setup", 440))
    frames = (Frame("at::mm", 500), Frame("at::add", 90))
    made = HostCategory("dispatcher", 1_000, (900, 1_100), 0.5, "samples", parts, frames)
    assert most_of(made) == ", its largest part op_setup (440 ns)"
    assert most_of(replace(made, top=(Frame("at::mm", 501),))) == ", led by at::mm (501 ns)"
    halves = (Part("dispatch", 499), Part("op_setup", 501))
    assert most_of(replace(made, parts=halves)) == ", most of it op_setup (501 ns)"
    assert most_of(replace(made, parts=(), top=(Frame("at::mm", 1),))) == ", led by at::mm (1 ns)"
    assert most_of(replace(made, parts=(), top=())) == ""
