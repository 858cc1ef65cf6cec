"""The terminal report of a user's program."""

from __future__ import annotations

import shlex
import signal

from rich.console import Console, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import bounds_cell, bounds_text, cut, interval_text, print_footnotes, section
from overhead_lens.report.text.figures import figures
from overhead_lens.report.text.host import costliest_frames, frames_table, host_table
from overhead_lens.report.text.plain import plain
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.studies.run.analysis import RunBudget
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.run.missed import RealLife
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.taxonomy.categories import COLORS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.taxonomy.names import GIL_HOLDER
from overhead_lens.units import format_ns

_TOP = 6
_MOST_THREADS = 8
_LARGEST = 3
# A part that is told by its name.
_MOST = 0.4
# Kernels beyond this share of a step: making anything else faster gains little.
_WORK_SHARE = 0.8

_FOUND_BY = {
    "explicit": "as marked",
    "profiler": "each step of its torch.profiler",
    "optimizer": "each optimizer.step",
    "module": "each call of the outermost module",
    "loop": "each iteration of its loop",
}


def print_run(console: Console, run: RunBudget) -> None:
    """Print a run: headline, categories, sentence, frames, regions, threads, slow steps, warnings."""
    console.print(_headline(run))
    if run.samples:
        console.print(host_table(run.host, run.wall, per=run.per))
        console.print(Text(sentence(run), style="bold"))
    for block in (_frames(run), _regions(run), _threads(run), _slowest(run)):
        if block is not None:
            console.print()
            console.print(block)
    print_footnotes(console, run.warnings)
    for line in check_lines(run):
        console.print(Text(line, style="dim"), soft_wrap=True)
    if run.samples:
        console.print(Text(f"samples: {PySpy.sees.sentence}", style="dim"), soft_wrap=True)
    if run.capture:
        console.print(Text(f"capture: {plain(run.capture)}", style="dim"), soft_wrap=True)


def print_real_life(console: Console, found: RealLife) -> None:
    """Print which figures of a run a hot loop would have missed, and what to try against them."""
    console.print(_headline(found.run))
    console.print(Text(f"{found.sentence}.", style="bold"))
    if found.missed:
        table = figures("missed by a hot loop", f"per {found.run.per}", "share", left=["missed by a hot loop"])
        table.add_column("because")
        for row in found.missed:
            table.add_row(plain(row.figure), format_ns(row.ns), f"{row.share:.1%}", Text(plain(row.because)))
        console.print()
        console.print(table)
        console.print(Text("not to be added up: a slow step may be slow by one of the others", style="dim"))
    for row in found.missed:
        if row.remedy:
            console.print(Text(f"try against {row.figure}: {row.how} ({row.remedy})"))
    print_footnotes(console, (*found.run.warnings, *found.notes))


def print_job(console: Console, job: RunJob) -> None:
    """Print a job: a row for each rank, then the budget of the slowest."""
    table = figures("rank", "per step", "95 % interval", left=["95 % interval"])
    table.add_column("where")
    for run in job.ranks:
        table.add_row(str(run.rank), format_ns(run.wall.ns), bounds_cell(run.wall), _largest(run.host))
    console.print(section(f"{len(job.ranks)} ranks of one job", table))
    console.print(Text("\nthe slowest of them", style="dim"))
    print_run(console, job.slowest)


def sentence(run: RunBudget) -> str:
    """What dominates, in words; that nothing is wrong where kernels do."""
    first, second = sorted(run.host, key=lambda category: -category.ns)[:2]
    if first.category == "kernel" and first.share >= _WORK_SHARE:
        return f"Not overhead: {first.share:.0%} of the {run.per} is the kernels' own work{_led_by(first)}."
    text = f"{first.category} dominates: {first.share:.0%} of the {run.per}"
    part = max(first.parts, key=lambda part: part.ns, default=None)
    if part is not None and part.ns > _MOST * first.ns:
        text += f", most of it {part.name} ({format_ns(part.ns)}){_holder(first) if part.name == 'gil' else ''}"
    else:
        text += _led_by(first)
    return text + (f"; then {second.category} with {second.share:.0%}." if second.share >= 0.1 else ".")


def _holder(category: HostCategory) -> str:
    """The thread that holds the GIL for most of the time that others wait for it."""
    names = (frame.frame.removeprefix(GIL_HOLDER) for frame in category.top if frame.frame.startswith(GIL_HOLDER))
    name = next(names, "")
    return f", which {plain(name)} holds" if name else ""


def _led_by(category: HostCategory) -> str:
    return f", led by {plain(category.top[0].frame)} ({format_ns(category.top[0].ns)})" if category.top else ""


def title(run: RunBudget) -> str:
    """The program, and its rank."""
    rank = "" if run.rank is None else f"rank {run.rank}: "
    return f"{rank}{plain(shlex.join(run.command))}"


def counts(run: RunBudget) -> str:
    """How many steps there were and how they were found."""
    steps = run.steps
    found = f"{_FOUND_BY[steps.found_by]}{f' ({plain(steps.where)})' if steps.where else ''}"
    measured = f"{steps.warm_up:,} of warm-up, {steps.measured:,} bare"
    thread = f" in thread {plain(steps.thread)}" if steps.thread else ""
    return f"{steps.count:,} steps: {found}{thread}; {measured}, {run.samples:,} stacks"


def phases_line(run: RunBudget) -> str:
    """What the whole run was spent on."""
    names = {"warm_up": "warm-up", "steps": f"{run.steps.count - run.steps.warm_up:,} steps"}
    times = ", ".join(f"{names.get(phase.name, phase.name)} {format_ns(phase.wall_ns)}" for phase in run.phases)
    return f"{format_ns(run.run_ns)} in all: {times}"


def check_lines(run: RunBudget) -> list[str]:
    """What other evidence says of the stacks."""
    lines = []
    for check in run.cross_checks:
        assert check.samples is not None
        assert check.trace is not None
        stacks, trace = (
            f"{format_ns(each.ns)} [{interval_text(each.ci95_ns)}]" for each in (check.samples, check.trace)
        )
        verdict = "they agree" if check.agree else "they DISAGREE"
        lines.append(f"checks: time in {check.category} {stacks} by stacks, {trace} by the trace: {verdict}")
    ratio = run.sampling.step_ratio
    return [*lines, *([f"checks: sampled steps took {ratio:.2f} times as long as bare ones"] if ratio else [])]


def ending(exit_code: int) -> str:
    """How a program ended that did not end well."""
    how = f"exit code {exit_code}" if exit_code > 0 else f"signal {signal.strsignal(-exit_code) or -exit_code}"
    return f"it ended with {how}"


def _headline(run: RunBudget) -> Text:
    text = Text(title(run), style="bold")
    text.append(f"   {format_ns(run.wall.ns)} per {run.per}", style="bold")
    text.append(f"  [{bounds_text(run.wall)}]")
    if run.per == "step":
        text.append(f"\n{counts(run)}", style="dim")
    if run.phases:
        text.append(f"\n{phases_line(run)}", style="dim")
    if not all(check.agree for check in run.cross_checks):
        text.append("\nstacks and trace DISAGREE: see the checks below", style="red")
    if run.exit_code:
        text.append(f"\n{ending(run.exit_code)}", style="yellow")
    return text


def _frames(run: RunBudget) -> RenderableType | None:
    frames = costliest_frames(run.host, _TOP)
    return section("costliest frames (self time)", frames_table(frames, run.wall.ns)) if frames else None


def _regions(run: RunBudget) -> RenderableType | None:
    if not run.regions:
        return None
    table = figures("region", "entered", "each time", "95 % interval", left=["region", "95 % interval"])
    table.add_column("where")
    for region in run.regions:
        times = f"{region.count:,}x", format_ns(region.wall.ns), bounds_cell(region.wall)
        table.add_row(Text(cut(plain(region.name))), *times, _largest(region.host))
    return section("regions, in bare steps", table)


def _threads(run: RunBudget) -> RenderableType | None:
    if not run.threads:
        return None
    table = figures("thread", "process", "busy", left=["thread"])
    table.add_column("where")
    for thread in run.threads[:_MOST_THREADS]:
        name = Text(cut(plain(thread.name or str(thread.thread))))
        table.add_row(name, str(thread.process), f"{thread.busy_share:.0%}", _largest(thread.host))
    more = len(run.threads) - _MOST_THREADS
    if more > 0:
        table.add_row(Text(f"{more} more", style="dim"), "", "", "")
    return section("beside it, other threads and processes", table)


def _largest(host: tuple[HostCategory, ...]) -> Text:
    """The largest categories in one line, which alone is cut where the terminal is narrow."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for category in sorted(host, key=lambda category: -category.ns)[:_LARGEST]:
        if category.share >= 0.01:
            part = max(category.parts, key=lambda part: part.ns, default=None)
            name = category.category if part is None or not part.ns else f"{category.category}/{part.name}"
            text.append(f"{name} {category.share:.0%}  ", style=COLORS[category.category])
    return text


def _slowest(run: RunBudget) -> RenderableType | None:
    if not run.slowest:
        return None
    table = figures("step", "took", "", left=[""])
    for slow in run.slowest:
        table.add_row(*map(Text, slow_cells(slow, run.wall.ns)))
    return section("slowest steps", table)


def slow_cells(slow: Slow, mean_ns: int) -> tuple[str, str, str]:
    """Number, time and cause of a slow step."""
    times = f"{slow.wall_ns / max(1, mean_ns):.1f}x the mean: "
    return f"{slow.step:,}", format_ns(slow.wall_ns), times + plain(slow.because)
