"""Measure what others have published on this machine, and write docs/reproduction.md with the two beside each other.

    python scripts/reproduce.py [--only NAME ...] [--folder FOLDER] [--quick]

A part is a table of the document; a part consists of units, each of which is stored as FOLDER/PART.UNIT.json once it is
measured and is not measured again unless it failed: a run can be interrupted and goes on where it was. NAME is PART or
PART.UNIT. The document is written from whatever FOLDER holds. Absolute figures are of other hardware and other versions; the
ratio is not a pass mark.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import pandas as pd

from overhead_lens.analysis.line_fit import Line, crossing, fit_line
from overhead_lens.analysis.wall import estimate_per_call, undisturbed
from overhead_lens.capture.environment import describe_machine
from overhead_lens.capture.process import Worker
from overhead_lens.errors import OverheadLensError
from overhead_lens.scenario import Published, load, parse_target
from overhead_lens.units import format_ns

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "reproduction.md"
INFERENCE = str(Path(__file__).with_name("add1_inference.py"))

# Wall time only: processes, and in each of them blocks of about so long until this much time is spent.
PROCESSES = 4
BLOCKS = 15
BLOCK_NS = 20_000_000
BUDGET_NS = 400_000_000
TIMEOUT_S = 200.0

FORUM = 'forum question "Batching Question", discuss.pytorch.org topic 102632'
NOTEBOOK = "ZOSIA 2026 talk notebook; machine not stated"
PUZZLER = "GPUPuzzlers, fusion; A100 40 GB"

# Published ratios; published times stand in the scenarios.
LINEAR_SPEED_UP = 77.0
SPLIT_SPEED_UPS = {"combined": 8.4, "split_stack-compiled": 2.5, "combined-compiled": 10.3}
ROWS_FASTER_BY = {
    "25000x25000": (3.58, 1.02),
    "10000x10000": (1.79, 0.99),
    "1000x1000": (1.13, 0.73),
    "100x100": (0.92, 1.01),
    "100000x100": (2.18, 1.04),
    "100x100000": (1.60, 0.94),
}
# Compiled add1 under torch.profiler of torch 2.13 on a 2-core machine, and RL-Scope's (MLSys 2021) corrected totals.
DISTORTION_NS = {"bare": 13_400.0, "traced": 19_200.0, "stacks": 44_600.0}
RL_SCOPE = (-0.168, 0.109)

SUM_VARIANTS = ("torch", "numpy", "numpy_numba", "numba", "builtin", "python")
SUM_SIZES = (100, 10_000, 1_000_000, 10_000_000)
ROW_COL_VARIANTS = ("torch_rows", "torch_cols", "numpy_rows", "numpy_cols")


@dataclass(frozen=True, slots=True)
class Call:
    """One measured call: a target of the command line, compiled or not, with parameters as texts."""

    name: str
    target: str
    compile: bool = False
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """Wall time of one call in ns with its 95 % interval; ``host_ns`` by category, and by category/part, where profiled.

    Attributes:
        trace_residual_share: The corrected trace's total over the wall time, less one; None without a trace.
    """

    ns: float
    low_ns: float
    high_ns: float
    processes: int
    host_ns: Mapping[str, float] = field(default_factory=dict)
    trace_residual_share: float | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.low_ns <= self.ns <= self.high_ns and self.ns > 0):
            raise ValueError(f"an interval contains its estimate: {self.low_ns} {self.ns} {self.high_ns}")

    @property
    def is_disturbed(self) -> bool:
        """Whether the interval spans more than a factor of two: nothing is to be concluded from such a figure."""
        return self.high_ns > 2 * self.low_ns

    def categories(self) -> dict[str, float]:
        """Nanoseconds of each category that has any, largest first."""
        whole = {name: ns for name, ns in self.host_ns.items() if "/" not in name and ns > 0}
        return dict(sorted(whole.items(), key=lambda item: -item[1]))


# What became of a call: its figures, or why there are none.
Outcome = Measured | str
Outcomes = Mapping[str, Outcome]
NOT_YET = "not measured yet"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{_x(self.value)} ({_x(self.low)} .. {_x(self.high)})"


@dataclass(frozen=True, slots=True)
class Unit:
    """What is measured and stored in one go: ``measure`` gives each call's outcome by name."""

    name: str
    measure: Callable[[argparse.Namespace], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the document with the units it is made of; ``render`` gets every call's outcome by ``UNIT/CALL``."""

    name: str
    title: str
    units: tuple[Unit, ...]
    render: Callable[[Outcomes], list[str]]


# --- arithmetic


def ratio(top: Measured, bottom: Measured) -> Ratio:
    """``top`` over ``bottom``, taken to be independent: their distances to the bounds add in quadrature, on a log scale."""
    value = top.ns / bottom.ns
    below = math.hypot(_log_distance(top.low_ns, top.ns), _log_distance(bottom.ns, bottom.high_ns))
    above = math.hypot(_log_distance(top.ns, top.high_ns), _log_distance(bottom.low_ns, bottom.ns))
    return Ratio(value, value * math.exp(-below), value * math.exp(above))


def _log_distance(low_ns: float, high_ns: float) -> float:
    return math.log(high_ns / low_ns) if low_ns > 0 else math.inf


# --- text


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table and the empty line after it."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in lines] + [""]


def here(outcome: Outcome) -> str:
    """A measured figure with its interval, or why there is none."""
    if isinstance(outcome, str):
        return f"not measured: {outcome}" if outcome != NOT_YET else outcome
    said = f"{format_ns(outcome.ns)} ({format_ns(outcome.low_ns)} .. {format_ns(outcome.high_ns)})"
    return f"{said} disturbed" if outcome.is_disturbed else said


def time_row(label: str, source: str, published_ns: float, outcome: Outcome) -> list[str]:
    """A row of: what, source, published, here, here / published."""
    quotient = "" if isinstance(outcome, str) else _x(outcome.ns / published_ns)
    return [label, source, format_ns(published_ns), here(outcome), quotient]


def ratio_row(label: str, source: str, published: float, slow: Outcome, fast: Outcome) -> list[str]:
    """The same for how many times faster ``fast`` is than ``slow``."""
    missing = slow if isinstance(slow, str) else fast
    if isinstance(slow, str) or isinstance(fast, str):
        return [label, source, _x(published), here(missing), ""]
    measured = ratio(slow, fast)
    said = f"{measured} disturbed" if slow.is_disturbed or fast.is_disturbed else str(measured)
    return [label, source, _x(published), said, _x(measured.value / published)]


def is_sound(outcome: Outcome) -> TypeGuard[Measured]:
    """Whether there is a figure, of a machine that was left alone."""
    return isinstance(outcome, Measured) and not outcome.is_disturbed


def budget_sentence(label: str, outcome: Outcome) -> list[str]:
    """``label`` takes so long, with every category of 5 % or more; nothing where it was not profiled."""
    if isinstance(outcome, str) or not outcome.host_ns:
        return []
    shares = {name: ns / outcome.ns for name, ns in outcome.categories().items()}
    said = [f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.05]
    return [f"{label} ({format_ns(outcome.ns)}): {', '.join(said)}."]


def difference_sentence(base_label: str, base: Outcome, new_label: str, new: Outcome) -> list[str]:
    """By how much ``new`` is slower or faster, with every category that makes 5 % or more of that."""
    if isinstance(base, str) or isinstance(new, str) or not base.host_ns or not new.host_ns:
        return []
    total = new.ns - base.ns
    moved = {
        name: new.host_ns.get(name, 0.0) - base.host_ns.get(name, 0.0)
        for name in (*base.categories(), *new.categories())
    }
    largest = sorted(moved.items(), key=lambda item: -abs(item[1]))
    said = [f"{name} {_signed(ns)}" for name, ns in largest if abs(ns) >= 0.05 * abs(total)]
    word = "more" if total >= 0 else "less"
    return [f"{new_label} takes {format_ns(abs(total))} {word} than {base_label}: {', '.join(said)}."]


def kernel_sentence(slow_label: str, slow: Outcome, fast_label: str, fast: Outcome) -> list[str]:
    """How much of a speed-up the kernels alone make, and how much lies outside them."""
    if (
        isinstance(slow, str)
        or isinstance(fast, str)
        or not slow.host_ns.get("kernel")
        or not fast.host_ns.get("kernel")
    ):
        return []
    kernels = slow.host_ns["kernel"] / fast.host_ns["kernel"]
    outside = [1 - each.host_ns["kernel"] / each.ns for each in (slow, fast)]
    sentence = (
        f"The kernels of {fast_label} alone are {_x(kernels)} as fast as those of {slow_label}; outside kernels lie "
        f"{outside[0]:.0%} of {slow_label} and {outside[1]:.0%} of {fast_label}, which together make it {_x(slow.ns / fast.ns)}."
    )
    return [sentence]


def kernel_rate_sentence(flops: int, outcomes: Mapping[str, Outcome]) -> list[str]:
    """What the kernels of calls that do ``flops`` operations reach, by label."""
    said = [
        f"{flops / outcome.host_ns['kernel']:.3g} GFLOP/s in {label}"
        for label, outcome in outcomes.items()
        if not isinstance(outcome, str) and outcome.host_ns.get("kernel")
    ]
    return [f"While a kernel runs, it does {', '.join(said)}."] if said else []


def bandwidth_sentence(
    size_bytes: int, published_ns: Mapping[str, float], outcomes: Mapping[str, Outcome]
) -> list[str]:
    """Bytes per time of calls that read ``size_bytes``, published and here, by label."""
    said = [
        f"{label} {size_bytes / ns:.3g} GB/s published, {size_bytes / outcome.ns:.3g} GB/s here"
        for label, ns in published_ns.items()
        if not isinstance(outcome := outcomes[label], str)
    ]
    return [f"Reading {size_bytes / 1e9:.3g} GB: {'; '.join(said)}."] if said else []


def _x(value: float) -> str:
    if math.isinf(value):
        return "any"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 2
    return f"{value:.{min(digits, 4)}f}x"


def _signed(ns: float) -> str:
    return f"{'+' if ns >= 0 else '−'}{format_ns(abs(ns))}"


# --- measuring


def profile(call: Call) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """A unit that measures one call with ``overhead-lens profile``."""

    def measure(options: argparse.Namespace) -> dict[str, Any]:
        command = ["profile", call.target, "--json", "--quiet", *(["--compile"] if call.compile else [])]
        command += [text for name, value in call.params.items() for text in ("-p", f"{name}={value}")]
        with tempfile.TemporaryDirectory() as folder:
            done = _run_tool(
                [*command, "--output", str(Path(folder, "capture")), *(["--quick"] if options.quick else [])]
            )
        return {call.name: done if isinstance(done, str) else from_budget(done)}

    return measure


def from_budget(budget: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form of a breakdown."""
    wall = budget["wall"]
    host = {each["category"]: each["ns"] for each in budget["host"]}
    parts = {f"{each['category']}/{part['name']}": part["ns"] for each in budget["host"] for part in each["parts"]}
    return {
        "ns": wall["ns"],
        "low_ns": wall["ci95_ns"][0],
        "high_ns": wall["ci95_ns"][1],
        "processes": wall["processes"],
        "host_ns": {**host, **parts},
        "trace_residual_share": budget["closure"]["trace_residual_share"],
    }


def clock(calls: Sequence[Call], needed_bytes: int = 0) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """A unit that times calls without profiling them: fresh processes, the calls in turn.

    Args:
        calls: What to time.
        needed_bytes: Free memory that it takes.
    """

    def measure(_options: argparse.Namespace) -> dict[str, Any]:
        available = available_bytes()
        if available is not None and available < needed_bytes:
            reason = f"it takes {needed_bytes / 1e9:.1f} GB of memory, {available / 1e9:.1f} GB are free"
            return {call.name: reason for call in calls}
        rows: dict[str, list[dict[str, int]]] = {call.name: [] for call in calls}
        failed: dict[str, str] = {}
        jobs = [(process, call) for process in range(PROCESSES) for call in calls]
        side_by_side = max(1, os.cpu_count() or 1)
        with tempfile.TemporaryDirectory() as folder:
            for at in range(0, len(jobs), side_by_side):
                batch = [job for job in jobs[at : at + side_by_side] if job[1].name not in failed]
                _time_batch(batch, Path(folder), rows, failed)
        return {call.name: failed.get(call.name) or from_rows(rows[call.name]) for call in calls}

    return measure


def _time_batch(
    batch: Sequence[tuple[int, Call]], folder: Path, rows: dict[str, list[dict[str, int]]], failed: dict[str, str]
) -> None:
    """Warm workers up side by side, then let one at a time measure."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(call.name, folder / f"{call.name}.log", TIMEOUT_S)) for _, call in batch]
        for worker, (_, call) in zip(workers, batch, strict=True):
            target = parse_target(call.target)
            compile_options: dict[str, Any] | None = {} if call.compile else None
            worker.send(
                "load",
                path=str(target.path),
                variant=target.variant,
                params=dict(call.params),
                compile_options=compile_options,
            )
            worker.send("warm_up")
        ready = [_is_warm(worker, call, failed) for worker, (_, call) in zip(workers, batch, strict=True)]
        for worker, (process, call), warm in zip(workers, batch, ready, strict=True):
            if warm:
                done = worker.ask("clock", block_ns=BLOCK_NS, blocks=BLOCKS, budget_ns=BUDGET_NS)
                rows[call.name] += [{"process": process, **row} for row in done["rows"]]


def _is_warm(worker: Worker, call: Call, failed: dict[str, str]) -> bool:
    """Wait for a worker to be warm; why it will not be goes to ``failed``."""
    try:
        worker.receive("load")
        worker.receive("warm_up")
    except OverheadLensError as error:
        failed[call.name] = str(error)
        return False
    return True


def from_rows(rows: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """The stored form of blocks: rows with ``process``, ``calls``, ``wall_ns`` and ``reference_ns``."""
    estimate = estimate_per_call(undisturbed(pd.DataFrame(rows)), "wall_ns")
    low_ns, high_ns = estimate.interval()
    processes = len({row["process"] for row in rows})
    return {"ns": estimate.value, "low_ns": low_ns, "high_ns": high_ns, "processes": processes}


def measure_ladder(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: the rungs of ``overhead-lens ladder add1``, an outcome and the title and published figure of each."""
    done = _run_tool(["ladder", "add1", "--json"])
    return {"ladder": done} if isinstance(done, str) else {"rungs": done["rungs"]}


def measure_distortion(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: compiled add1 bare, traced and with stacks."""
    rows: dict[str, list[dict[str, int]]] = {}
    for process in range(PROCESSES):
        command = [sys.executable, str(Path(__file__).with_name("profiler_distortion.py"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return dict.fromkeys(DISTORTION_NS, _last_line(done.stderr))
        for side, blocks in json.loads(done.stdout.splitlines()[-1]).items():
            rows.setdefault(side, []).extend({"process": process, **block} for block in blocks)
    return {side: from_rows(blocks) for side, blocks in rows.items()}


def available_bytes() -> int | None:
    """Memory that can be had without swapping (proc(5), MemAvailable); None where that is not known."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="utf-8")
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("MemAvailable:")), None)


def _run_tool(arguments: Sequence[str]) -> dict[str, Any] | str:
    """The JSON of an ``overhead-lens`` command, or the last line of what it complained about."""
    command = [sys.executable, "-m", "overhead_lens", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return _last_line(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip(" ╰─╯│╭╮")), "no reason was given")


# --- the parts


ADD1_CALLS = (
    Call("eager", "add1"),
    Call("compiled", "add1", compile=True),
    Call("inference-eager", INFERENCE),
    Call("inference-compiled", INFERENCE, compile=True),
    Call("grad-eager", "add1", params={"requires_grad": "true"}),
    Call("grad-compiled", "add1", compile=True, params={"requires_grad": "true"}),
)


def published_of(target: str, *, compile: bool, params: Mapping[str, str] | None = None) -> list[Published]:
    """The scenario's figures for a call; ``params`` are texts as on the command line."""
    named = parse_target(target)
    scenario = load(named.path)
    variant = scenario.variant(named.variant)
    wanted = {name: value.lower() for name, value in (params or {}).items()}
    return [
        each
        for each in scenario.published
        if (each.variant, each.compile) == (variant, compile)
        and not each.rung.endswith("_inference_mode")  # a scenario of its own measures those
        and {name: str(value).lower() for name, value in each.params.items()} == wanted
    ]


TIME_HEADER = ("call", "source", "published", "here (95 %)", "here / published")
RATIO_HEADER = ("ratio of times", "source", "published", "here (95 %)", "here / published")
ENDS_OF_THE_POST = ("compiled, before the changes", "compiled, after the changes")


def render_add1(outcomes: Outcomes) -> list[str]:
    """Eager against compiled, under inference mode and with gradients."""
    figures: dict[str, list[Published]] = {}
    for call in ADD1_CALLS:
        of_call = published_of(call.target, compile=call.compile, params=call.params)
        steps = call.name == "compiled"
        figures[call.name] = [
            each for each in of_call if not steps or "issue" in each.source or each.label in ENDS_OF_THE_POST
        ]
    found = {call.name: _get(outcomes, f"{call.name}/{call.name}") for call in ADD1_CALLS}
    pairs = [("eager", "compiled"), ("inference-eager", "inference-compiled"), ("grad-eager", "grad-compiled")]
    sentences = [difference_sentence(base, found[base], new, found[new]) for base, new in pairs]
    moved = difference_sentence("compiled", found["compiled"], "grad-compiled", found["grad-compiled"])
    times = [time_row(each.label, each.source, each.ns, found[name]) for name, of in figures.items() for each in of]
    ratios = [
        ratio_row(f"eager over {new.label}", new.source, new.ns / old.ns, found[after], found[before])
        for before, after in pairs
        for old, new in itertools.product(figures[before], figures[after])
        if old.source == new.source
    ]
    return [*table(TIME_HEADER, times), *table(RATIO_HEADER, ratios), *_paragraph(*sentences, moved)]


def render_rungs(outcomes: Outcomes) -> list[str]:
    """The ladder's rungs, or the published figures alone where it could not be climbed."""
    rungs = outcomes.get("ladder/rungs")
    if isinstance(rungs, list):
        return table(TIME_HEADER, [rung_row(rung) for rung in rungs])
    reason = _get(outcomes, "ladder/ladder")
    post = [each for each in published_of("add1", compile=True) if "issue" not in each.source]
    return table(TIME_HEADER, [time_row(each.label, each.source, each.ns, reason) for each in post])


def rung_row(rung: Mapping[str, Any]) -> list[str]:
    """A row of the ladder; a rung may have no published figure, and may have failed."""
    outcome: Outcome = rung["reason"] or "no reason was given"
    if rung["ns"] is not None:
        low_ns, high_ns = rung["ci95_ns"] or (rung["ns"], rung["ns"])
        outcome = Measured(rung["ns"], low_ns, high_ns, 0)
    if rung["published_us"] is None:
        return [rung["title"], "", "", here(outcome), ""]
    return time_row(rung["title"], POST, 1000 * rung["published_us"], outcome)


POST = "Micro-optimizations for the most micro of benchmarks; i9-11900K, 1 element"


def render_linear(outcomes: Outcomes) -> list[str]:
    """Batched against one by one, as asked (the layer's weight requires a gradient) and without gradients."""
    scenario = load(parse_target("linear_loop").path)
    assert scenario.work is not None
    flops = scenario.work(scenario.params()).flops
    rows, sentences = [], []
    for label, prefix in (("batched over loop, weight requires_grad", "grad-"), ("batched over loop, no gradient", "")):
        slow, fast = (_get(outcomes, f"{prefix}{name}/{prefix}{name}") for name in ("loop", "batched"))
        rows.append(ratio_row(label, FORUM, LINEAR_SPEED_UP, slow, fast))
        sentences += [budget_sentence(f"`{prefix}loop`", slow), budget_sentence(f"`{prefix}batched`", fast)]
        sentences.append(kernel_sentence(f"`{prefix}loop`", slow, f"`{prefix}batched`", fast))
        sentences.append(kernel_rate_sentence(flops, {f"`{prefix}loop`": slow, f"`{prefix}batched`": fast}))
    return [*table(RATIO_HEADER, rows), *_paragraph(*sentences)]


def render_sqrt(outcomes: Outcomes) -> list[str]:
    """Row by row against one call; nobody has published a figure."""
    slow, fast = (_get(outcomes, f"{name}/{name}") for name in ("loop", "whole"))
    rows = [[name, FORUM, "none", here(outcome), ""] for name, outcome in (("loop", slow), ("whole", fast))]
    if not isinstance(slow, str) and not isinstance(fast, str):
        rows.append(["whole over loop", FORUM, "none", str(ratio(slow, fast)), ""])
    sentences = [budget_sentence("`loop`", slow), budget_sentence("`whole`", fast)]
    return [*table(TIME_HEADER, rows), *_paragraph(*sentences, kernel_sentence("`loop`", slow, "`whole`", fast))]


def render_sum(outcomes: Outcomes) -> list[str]:
    """Every implementation at every size, and the lines fitted to both."""
    published = {
        (each.variant, int(each.params.get("n", 10_000))): each for each in _scenario_published("sum_elements")
    }
    measured = {
        (variant, n): _get(outcomes, f"{n}/{variant}") for n, variant in itertools.product(SUM_SIZES, SUM_VARIANTS)
    }
    rows = []
    for n, variant in itertools.product(SUM_SIZES, SUM_VARIANTS):
        label, outcome = f"{variant}, n = {n:,}", measured[variant, n]
        figure = published.get((variant, n))
        cut_off = [label, NOTEBOOK, "cut off", here(outcome), ""]
        rows.append(cut_off if figure is None else time_row(label, NOTEBOOK, figure.ns, outcome))
    theirs = {v: [(n, published[v, n].ns) for n in SUM_SIZES if (v, n) in published] for v in SUM_VARIANTS}
    ours = {v: [(n, found.ns) for n in SUM_SIZES if is_sound(found := measured[v, n])] for v in SUM_VARIANTS}
    exact = {key: Measured(each.ns, each.ns, each.ns, 0) for key, each in published.items()}
    fastest = [[f"{n:,}", fastest_at(n, exact), fastest_at(n, measured)] for n in SUM_SIZES]
    header = ("n", "fastest published", "fastest here, as far as intervals tell")
    return [*table(TIME_HEADER, rows), *table(header, fastest), *lines_of_fits(theirs, ours)]


def lines_of_fits(
    theirs: Mapping[str, Sequence[tuple[int, float]]], ours: Mapping[str, Sequence[tuple[int, float]]]
) -> list[str]:
    """Overhead and rate of each implementation, published and here, and where the lines cross."""
    lines = {
        name: (fit_line(theirs[name]), fit_line(ours[name]))
        for name in ours
        if min(len(theirs[name]), len(ours[name])) > 1
    }
    rows = []
    for name, (their, our) in lines.items():
        # Without a point at which the overhead is most of the time, a fit says little about it.
        small = [min(n for n, _ in points[name]) == SUM_SIZES[0] for points in (theirs, ours)]
        overheads = [
            format_ns(line.overhead_ns) if known else "" for line, known in zip((their, our), small, strict=True)
        ]
        rates = [f"{1 / line.element_ns:.3g}" for line in (their, our)]
        worst = [f"{line.worst_share:.0%}" for line in (their, our)]
        rows.append([name, *overheads, *rates, _x(their.element_ns / our.element_ns), *worst])
    header = (
        "fit",
        "overhead published",
        "here",
        "elements per ns published",
        "here",
        "here / published",
        "worst error",
        "here",
    )
    met = []
    for left, right in itertools.combinations(lines, 2):
        at = [crossing(lines[left][side], lines[right][side]) for side in (0, 1)]
        if any(at) and not {left, right} & {"builtin", "python"}:
            met.append([f"{left}, {right}", *(f"{n:,.0f}" if n else "none" for n in at)])
    from_small = [name for name in lines if theirs[name][0][0] == ours[name][0][0] == SUM_SIZES[0]]
    return [
        *table(header, rows),
        *table(("fitted lines cross at n", "published", "here"), met),
        *_paragraph(_fit_sentence(lines, [name for name in from_small if lines[name][0].overhead_ns > 0])),
    ]


def fastest_at(n: int, outcomes: Mapping[tuple[str, int], Outcome]) -> str:
    """The implementations whose intervals reach down to where the fastest one's ends, by ``(implementation, n)``."""
    at = {name: each for (name, size), each in outcomes.items() if size == n and isinstance(each, Measured)}
    least_ns = min((each.high_ns for each in at.values()), default=0.0)
    return ", ".join(name for name, each in at.items() if each.low_ns <= least_ns) or NOT_YET


def _fit_sentence(lines: Mapping[str, tuple[Line, Line]], with_overhead: Sequence[str]) -> list[str]:
    if not lines or not with_overhead:
        return []
    overheads = {name: lines[name][1].overhead_ns / lines[name][0].overhead_ns for name in with_overhead}
    rates = {name: their.element_ns / our.element_ns for name, (their, our) in lines.items()}
    sentence = (
        f"Where overhead decides, {_range(overheads)} of the published overhead is paid here; "
        f"where throughput decides, {_range(rates)} of the published rate is reached."
    )
    return [sentence]


def _range(values: Mapping[str, float]) -> str:
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return f"{_x(values[low])} ({low}) to {_x(values[high])} ({high})"


def render_row_col(outcomes: Outcomes) -> list[str]:
    """Rows against columns, in PyTorch and in NumPy."""
    rows, compared, here_faster, there_faster = [], 0, 0, 0
    for shape, both in ROWS_FASTER_BY.items():
        for library, published in zip(("torch", "numpy"), both, strict=True):
            fast, slow = (_get(outcomes, f"{shape}/{library}_{side}") for side in ("rows", "cols"))
            rows.append(ratio_row(f"{library} rows over columns, {shape}", NOTEBOOK, published, slow, fast))
            if library == "torch" and is_sound(fast) and is_sound(slow):
                compared += 1
                here_faster += slow.ns > fast.ns
                there_faster += published > 1
    figures = {each.variant: each.ns for each in _scenario_published("row_col_sum")}
    largest = {variant: _get(outcomes, f"25000x25000/{variant}") for variant in figures}
    times = [time_row(f"{name}, 25000x25000", NOTEBOOK, ns, largest[name]) for name, ns in figures.items()]
    profiled = [f"{side}-{shape}" for shape in ("100x100", "10000x10000") for side in ("torch_rows", "torch_cols")]
    sentences = [budget_sentence(f"`{name}`", _get(outcomes, f"profile-{name}/{name}")) for name in profiled]
    bandwidth = bandwidth_sentence(4 * 25_000**2, figures, largest)
    count = (
        f"PyTorch's rows are the faster ones in {here_faster} of {compared} undisturbed shapes here, "
        f"published in {there_faster} of them."
    )
    return [*table(RATIO_HEADER, rows), *table(TIME_HEADER, times), *_paragraph([count], bandwidth, *sentences)]


def render_gelu(outcomes: Outcomes) -> list[str]:
    """Eager against compiled."""
    eager, compiled = (_get(outcomes, f"{name}/{name}") for name in ("eager", "compiled"))
    figures = [published_of("gelu", compile=compiled_too)[0] for compiled_too in (False, True)]
    rows = [
        time_row(each.label, NOTEBOOK, each.ns, found) for each, found in zip(figures, (eager, compiled), strict=True)
    ]
    rows.append(ratio_row("compiled over eager", NOTEBOOK, figures[0].ns / figures[1].ns, eager, compiled))
    sentences = [difference_sentence("eager", eager, "compiled", compiled)]
    for label, outcome in (("eager", eager), ("compiled", compiled)):
        if not isinstance(outcome, str) and outcome.host_ns:
            faults_ns = outcome.host_ns.get("allocation/page_fault", 0.0)
            sentences.append([f"First-touch page faults are {faults_ns / outcome.ns:.0%} of {label}."])
    return [*table(TIME_HEADER, rows), *_paragraph(*sentences, kernel_sentence("eager", eager, "compiled", compiled))]


SPLIT_CALLS = (
    Call("split_stack", "split_stack:split_stack"),
    Call("combined", "split_stack:combined"),
    Call("split_stack-compiled", "split_stack:split_stack", compile=True),
    Call("combined-compiled", "split_stack:combined", compile=True),
)


def render_split(outcomes: Outcomes) -> list[str]:
    """The four variants' times here, and their speed-ups."""
    found = {call.name: _get(outcomes, f"{call.name}/{call.name}") for call in SPLIT_CALLS}
    published = {each.variant: each.ns for each in _scenario_published("split_stack")}
    times = [
        time_row(name, PUZZLER, published[name], outcome)
        if name in published
        else [name, PUZZLER, "", here(outcome), ""]
        for name, outcome in found.items()
    ]
    rows = [
        ratio_row(f"{name} over split_stack", PUZZLER, speed_up, found["split_stack"], found[name])
        for name, speed_up in SPLIT_SPEED_UPS.items()
    ]
    sentences = [budget_sentence(f"`{name}`", outcome) for name, outcome in found.items()]
    base = found["split_stack"]
    for name in SPLIT_SPEED_UPS:
        sentences.append(kernel_sentence("`split_stack`", base, f"`{name}`", found[name]))
    return [
        "Published on a GPU, measured here on the CPU: there the kernels leave the device idle between launches, here the host",
        "is what computes. What is left of a speed-up here is not a GPU's idle time.",
        "",
        *table(TIME_HEADER, times),
        *table(RATIO_HEADER, rows),
        *_paragraph(*sentences),
    ]


def render_peers(outcomes: Outcomes) -> list[str]:
    """What torch.profiler does to the wall time, and how far a corrected trace is from it."""
    found = {side: _get(outcomes, f"distortion/{side}") for side in DISTORTION_NS}
    source = "torch.profiler of torch 2.13, a 2-core VM"
    rows = [time_row(f"compiled add1, {side}", source, ns, found[side]) for side, ns in DISTORTION_NS.items()]
    ratios = [
        ratio_row(f"bare over {side}", source, DISTORTION_NS[side] / DISTORTION_NS["bare"], found[side], found["bare"])
        for side in ("traced", "stacks")
    ]
    return [
        *table(TIME_HEADER, rows),
        *table(RATIO_HEADER, ratios),
        "Figures of trace readers are in `docs/measurements.md`; GPU stacks need a GPU (`scripts/gpu_check.sh`).",
        "",
    ]


def render_residuals(profiled: Mapping[str, Measured]) -> list[str]:
    """The corrected trace's total against the unprofiled wall time of every profiled call, beside RL-Scope's range."""
    shares = {name: each.trace_residual_share for name, each in profiled.items()}
    known = dict(
        sorted(((name, share) for name, share in shares.items() if share is not None), key=lambda item: item[1])
    )
    if not known:
        return []
    rows = []
    for name, share in known.items():
        wall = profiled[name]
        rows.append([name, f"{share:+.1%}", f"{wall.low_ns / wall.ns - 1:+.1%} .. {wall.high_ns / wall.ns - 1:+.1%}"])
    sentence = (
        f"RL-Scope (MLSys 2021) corrects totals to within {RL_SCOPE[0]:+.1%} .. {RL_SCOPE[1]:+.1%} of the uninstrumented run; "
        f"here {min(known.values()):+.1%} .. {max(known.values()):+.1%} over {len(known)} calls, "
        f"half of them within {statistics.median(map(abs, known.values())):.1%}."
    )
    header = ("profiled call", "corrected trace total over unprofiled wall", "95 % interval of the wall")
    return [*table(header, rows), sentence, ""]


def _scenario_published(name: str) -> tuple[Published, ...]:
    return load(parse_target(name).path).published


def _get(outcomes: Outcomes, name: str) -> Outcome:
    return outcomes.get(name, NOT_YET)


def _paragraph(*sentences: Sequence[str]) -> list[str]:
    said = [sentence for group in sentences for sentence in group]
    return ["- " + sentence for sentence in said] + ([""] if said else [])


def _profiled(*calls: Call) -> tuple[Unit, ...]:
    return tuple(Unit(call.name, profile(call)) for call in calls)


def _sum_unit(n: int) -> Unit:
    calls = [Call(variant, f"sum_elements:{variant}", params={"n": str(n)}) for variant in SUM_VARIANTS]
    return Unit(str(n), clock(calls))


def _row_col_params(shape: str) -> dict[str, str]:
    rows, cols = shape.split("x")
    return {"rows": rows, "cols": cols}


def _row_col_unit(shape: str) -> Unit:
    calls = [Call(each, f"row_col_sum:{each}", params=_row_col_params(shape)) for each in ROW_COL_VARIANTS]
    matrix_bytes = 4 * math.prod(int(each) for each in shape.split("x"))
    return Unit(shape, clock(calls, needed_bytes=round(1.2 * matrix_bytes * (os.cpu_count() or 1))))


def _row_col_profiles() -> tuple[Unit, ...]:
    sides = itertools.product(("100x100", "10000x10000"), ("torch_rows", "torch_cols"))
    calls = [Call(f"{side}-{shape}", f"row_col_sum:{side}", params=_row_col_params(shape)) for shape, side in sides]
    return tuple(Unit(f"profile-{call.name}", profile(call)) for call in calls)


GRAD = {"requires_grad": "true"}
PARTS = (
    Part("add1", "`add1`: eager and compiled", _profiled(*ADD1_CALLS), render_add1),
    Part("rungs", "`add1`: the rungs", (Unit("ladder", measure_ladder),), render_rungs),
    Part(
        "linear_loop",
        "`linear_loop`: batched over one by one",
        _profiled(
            Call("grad-loop", "linear_loop:loop", params=GRAD),
            Call("grad-batched", "linear_loop:batched", params=GRAD),
            Call("loop", "linear_loop:loop"),
            Call("batched", "linear_loop:batched"),
        ),
        render_linear,
    ),
    Part(
        "elementwise_sqrt",
        "`elementwise_sqrt`: row by row, or whole",
        _profiled(Call("loop", "elementwise_sqrt:loop"), Call("whole", "elementwise_sqrt:whole")),
        render_sqrt,
    ),
    Part("sum_elements", "`sum_elements`: six implementations", tuple(map(_sum_unit, SUM_SIZES)), render_sum),
    Part(
        "row_col_sum",
        "`row_col_sum`: rows over columns",
        (*map(_row_col_unit, ROWS_FASTER_BY), *_row_col_profiles()),
        render_row_col,
    ),
    Part(
        "gelu",
        "`gelu`: fusion",
        _profiled(Call("eager", "gelu"), Call("compiled", "gelu", compile=True)),
        render_gelu,
    ),
    Part("split_stack", "`split_stack`: four variants", _profiled(*SPLIT_CALLS), render_split),
    Part("peers", "torch.profiler's distortion, and ours", (Unit("distortion", measure_distortion),), render_peers),
)


# --- the run


def machine() -> str:
    """The machine and versions in words, without its name."""
    about = describe_machine()
    torch, numpy = (importlib.metadata.version(package) for package in ("torch", "numpy"))
    system = f"{platform.system()} {platform.release()}"
    return f"{about['cpu']}, {about['cores']} cores, {system}; torch {torch}, NumPy {numpy}, Python {platform.python_version()}"


def measure_missing(part: Part, options: argparse.Namespace) -> None:
    """Measure and store the part's units that were asked for and are not stored."""
    for unit in part.units:
        path = options.folder / f"{part.name}.{unit.name}.json"
        wanted = not options.only or {part.name, f"{part.name}.{unit.name}"} & set(options.only)
        if not wanted or _is_complete(path):
            continue
        print(f"measuring {part.name}.{unit.name}", file=sys.stderr, flush=True)
        document = {"machine": machine(), "calls": unit.measure(options)}
        part_file = path.with_suffix(".part")
        part_file.write_text(json.dumps(document, indent=1), encoding="utf-8")
        part_file.rename(path)


def _is_complete(path: Path) -> bool:
    """Whether a unit is stored without a failure, which would be worth another try."""
    return path.exists() and not any(
        isinstance(outcome, str) for outcome in json.loads(path.read_text(encoding="utf-8"))["calls"].values()
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """What FOLDER holds of a part: outcomes by ``UNIT/CALL`` and the machines they are of."""

    outcomes: Outcomes
    machines: frozenset[str]


def read_stored(part: Part, folder: Path) -> Stored:
    """The part's stored units."""
    outcomes: dict[str, Any] = {}
    machines = set()
    for unit in part.units:
        path = folder / f"{part.name}.{unit.name}.json"
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            machines.add(document["machine"])
            for name, value in document["calls"].items():
                outcomes[f"{unit.name}/{name}"] = Measured(**value) if isinstance(value, dict) else value
    return Stored(outcomes, frozenset(machines))


INTRODUCTION = """\
# Published figures, measured again

Written by `python scripts/reproduce.py`; the figures of this text are in `docs/reproduction/`. Each is of fresh processes: the
median over processes of their median block, with a 95 % interval from a hierarchical bootstrap. Published figures are of other
hardware and mostly of older versions: a ratio is no pass mark. The sentences below a table are made from its measured numbers;
shares are those of the closed budget that `overhead-lens profile` prints. "X over Y" in a table of ratios says how many times as
fast X is.

"Disturbed" are figures whose interval spans more than a factor of two, as when the machine does other work as well and calls
that use all its cores wait for it. No fit and no count is made of them.
"""


def document_text(stored: Mapping[str, Stored]) -> str:
    """The whole document."""
    machines = sorted({name for each in stored.values() for name in each.machines})
    lines = [INTRODUCTION, *(f"Measured on: {name}." for name in machines), ""]
    profiled: dict[str, Measured] = {}
    for part in PARTS:
        outcomes = stored[part.name].outcomes
        lines += [f"## {part.title}", "", *part.render(outcomes)]
        for name, outcome in outcomes.items():
            if isinstance(outcome, Measured) and outcome.host_ns:
                profiled[f"{part.name}, {name.split('/')[1]}"] = outcome
    return "\n".join([*lines, *render_residuals(profiled)]).rstrip("\n") + "\n"


def main() -> None:
    """Measure what is missing and write the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="measure these parts or units only")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "traces" / "reproduction", help="where figures are stored"
    )
    parser.add_argument("--quick", action="store_true", help="profile with --quick: wider intervals in half the time")
    options = parser.parse_args()
    known = {name for part in PARTS for name in (part.name, *(f"{part.name}.{unit.name}" for unit in part.units))}
    if unknown := sorted(set(options.only) - known):
        parser.error(f"no part or unit {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        measure_missing(part, options)
    DOCUMENT.write_text(
        document_text({part.name: read_stored(part, options.folder) for part in PARTS}), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
