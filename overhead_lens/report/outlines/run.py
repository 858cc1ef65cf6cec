"""A program's run in words: the budget of a step, slow steps, regions, threads; the ranks of a job; what a hot loop misses."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from overhead_lens.budget.model import DeviceShare
from overhead_lens.errors import UsageError
from overhead_lens.report.cells import heads, measured_bounds, row, share, text, time
from overhead_lens.report.outline import Block, Drawing, Notes, Outline, Picture, Reach, Section, Table
from overhead_lens.report.outlines.host import (
    device_section,
    divided,
    frames_section,
    host_blocks,
    largest_part,
    most_of,
)
from overhead_lens.report.outlines.recorded.collectives import collective_section
from overhead_lens.report.outlines.recorded.findings import finding_sections
from overhead_lens.report.outlines.recorded.launches import launch_sections
from overhead_lens.report.outlines.stacks import stacks_of_others
from overhead_lens.report.outlines.trace import issue_lines, threads_beside
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.steps import run_steps
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.text.blocks import bounds_text, counted, left_out, measured_text, origin
from overhead_lens.studies.run.analysis import RegionBudget, RunBudget, other_threads, step_stacks
from overhead_lens.studies.run.device import RunDevice
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.run.missed import EndToEnd
from overhead_lens.studies.run.stored import read_run
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.taxonomy.names import GIL_HOLDER
from overhead_lens.units import format_ns

_TOP = 6
_MOST_FRAMES, _MOST_THREADS, _BRIEF_THREADS, _MOST_RANKS, _BRIEF_RANKS = 20, 24, 8, 64, 16
# Kernels beyond this share of a step: making anything else faster gains little.
_WORK_SHARE = 0.8
_BRIEF_DEVICES, _MOST_DEVICES = 2, 16

_FOUND_BY = {
    "explicit": "as marked",
    "profiler": "each step of its torch.profiler",
    "optimizer": "each optimizer.step",
    "module": "each call of the outermost module",
    "loop": "each iteration of its loop",
}


def run_outline(run: RunBudget) -> Outline:
    """A run."""
    stored = run.capture
    where = host_blocks(run.host, run.wall, f"per {run.per}") if run.samples else []
    has_steps = run.times is not None and run.per == "step"
    return Outline(
        title(run),
        sentence(run),
        Section.filled(
            Section(f"Where the time of a {run.per} goes", where, reach="everywhere"),
            *([] if run.device is None else _devices(run.device, run)),
            _slowest(run),
            frames_section(run.host, run.wall.ns, _MOST_FRAMES, _TOP),
            Section("Steps over time", [Drawing(partial(_steps, run))] if has_steps else [], reach="page"),
            Section("Sampled stacks", [Drawing(partial(_stacks, run))], reach="page"),
            _regions(run.regions),
            _threads(run),
            *stacks_of_others(run.threads, lambda: other_threads(read_run(Path(run.capture))), run.per),
            Section("Checks", [Notes(list(check_lines(run)), tone="dim")], is_open=False),
        ),
        figure=f"{format_ns(run.wall.ns)} per {run.per} [{bounds_text(run.wall)}]",
        about=list(_about(run)),
        warnings=run.warnings,
        ends=[f"capture: {stored}", f"try: overhead-lens advise {shlex.quote(stored)}"] if stored else [],
        origin=partial(origin, stored, run.environment, [("program", title(run))]),
        has_answer=bool(run.samples),
    )


def end_to_end_outline(comparison: EndToEnd) -> Outline:
    """A run compared with a hot loop: what that would have missed, then, on its page, the run."""
    run, outline = comparison.run, run_outline(comparison.run)
    columns = heads(f"missed by a hot loop | >per {run.per} | >share | because ~1")
    rows = [row(each.figure, time(each.ns), share(each.share), each.because) for each in comparison.missed]
    apart = ["not to be added up: a slow step may be slow by one of the others"] if rows else []
    tries = [f"try against {each.figure}: {each.how} ({each.remedy})" for each in comparison.missed if each.remedy]
    blocks: list[Block] = [Table(columns, rows), Notes(apart, tone="dim"), Notes(tries)]
    missed = Section("What a hot loop would have missed", blocks, reach="everywhere")
    rest = [replace(section, reach="page") for section in outline.sections]
    return replace(
        outline,
        sentence=f"{comparison.sentence}.",
        sections=Section.filled(missed, *rest),
        warnings=(*run.warnings, *comparison.notes),
        ends=(),
        has_answer=True,
    )


def job_outline(job: RunJob) -> Outline:
    """A job: its ranks side by side, then the slowest of them. A rank alone is a run."""
    slowest, own_ns, usual_ns = job.slowest, max(job.own_ns), median(job.own_ns)
    outline = run_outline(slowest)
    if len(job.ranks) == 1:
        return outline
    besides = " besides waiting in collectives" if own_ns < slowest.wall.ns else ""
    beyond = f", {own_ns / usual_ns - 1:.0%} above the median of {len(job.ranks)} ranks" if usual_ns else ""
    why = f" {sentence(slowest)}" if slowest.samples else ""
    return replace(
        outline,
        title=f"{len(job.ranks)} ranks of one job: {shlex.join(slowest.command)}",
        sentence=f"Rank {slowest.rank} is the slowest: {format_ns(own_ns)} per {slowest.per}{besides}{beyond}.{why}",
        sections=Section.filled(_ranks(job), *outline.sections),
        has_answer=True,
    )


def _ranks(job: RunJob) -> Section:
    slowest = job.slowest
    by_own = [run for _, run in sorted(zip(job.own_ns, job.ranks, strict=True), key=lambda each: -each[0])]
    shown, brief = ({run.rank for run in (*by_own[: most - 1], by_own[-1])} for most in (_MOST_RANKS, _BRIEF_RANKS))
    columns = heads(f"rank | >per {slowest.per} | 95 % interval ~1 | where")
    rows = []
    for run in (run for run in job.ranks if run.rank in shown):
        name = f"{run.rank}{' (slowest)' if run is slowest else ''}"
        figures = (time(run.wall.ns), measured_bounds(run.wall), divided(run.host))
        rows.append(row(name, *figures, is_minor=run.rank not in brief))
    notes = Notes(left_out(len(job.ranks) - len(rows), "rank", " in between"))
    return Section("Ranks", [Table(columns, rows, more="more in between"), notes], reach="everywhere")


def title(run: RunBudget) -> str:
    """The program, and its rank."""
    rank = "" if run.rank is None else f"rank {run.rank}: "
    return f"{rank}{shlex.join(run.command)}"


def sentence(run: RunBudget) -> str:
    """The dominant category in a sentence; kernels are reported as good."""
    if not run.samples:
        return "Nothing says how the time divides: no stack was taken."
    first, second = sorted(run.host, key=lambda category: -category.ns)[:2]
    if first.category == "kernel" and first.share >= _WORK_SHARE:
        led = f", led by {first.top[0].frame} ({format_ns(first.top[0].ns)})" if first.top else ""
        return f"Not overhead: {first.share:.0%} of the {run.per} is the kernels' own work{led}."
    words = f"{first.category} dominates: {first.share:.0%} of the {run.per}{most_of(first)}{_holder(first)}"
    return words + (f"; then {second.category} with {second.share:.0%}." if second.share >= 0.1 else ".")


def _holder(category: HostCategory) -> str:
    """If most of a category is waiting for the GIL, the thread that held it for most of that time."""
    part = largest_part(category)
    most = (each.frame for each in category.top if each.frame.startswith(GIL_HOLDER) and 2 * each.ns > part.ns)
    name = next(most, "").removeprefix(GIL_HOLDER) if part.name == "gil" else ""
    return f", which {name} holds" if name else ""


def _about(run: RunBudget) -> Iterator[str]:
    """The number of steps and their source, the phases of the whole run, and how it ended."""
    steps = run.steps
    if run.per == "step":
        source = f"{_FOUND_BY[steps.found_by]}{f' ({steps.where})' if steps.where else ''}"
        thread = f" in thread {steps.thread}" if steps.thread else ""
        measured = f"{steps.warm_up:,} of warm-up, {steps.measured:,} bare"
        yield f"{counted(steps.count, 'step')}: {source}{thread}; {measured}, {counted(run.samples, 'stack')}"
    if run.phases:
        phases = {"warm_up": "warm-up", "steps": counted(steps.count - steps.warm_up, "step")}
        times = ", ".join(f"{phases.get(phase.name, phase.name)} {format_ns(phase.wall_ns)}" for phase in run.phases)
        yield f"{format_ns(run.run_ns)} in all" + (f": {times}" if len(run.phases) > 1 else "")
    if run.device is not None:
        shown = run.device.devices[:_BRIEF_DEVICES]
        yield from (f"device {device.device} of the same step: {_busy(device, run.wall.ns)}" for device in shown)
    if not all(check.agree for check in run.cross_checks):
        yield "stacks and trace DISAGREE: see the checks below"
    if run.exit_code:
        how = f"exit code {run.exit_code}"
        if run.exit_code < 0:
            how = f"signal {signal.strsignal(-run.exit_code) or -run.exit_code}"
        yield f"it ended with {how}"


def _busy(device: DeviceShare, wall_ns: int) -> str:
    """How busy a device is, and the largest cause of its idle time."""
    cause, ns = max(device.idle_blame.items(), key=lambda item: item[1])
    idle = ""
    if ns:
        due = "mostly due to" if 2 * ns > device.idle_ns else "led by"
        idle = f", idle {due} {cause} ({ns / max(1, wall_ns):.0%})"
    return f"busy {device.busy_ns / max(1, wall_ns):.0%}{idle}"


def _devices(run_device: RunDevice, run: RunBudget) -> Iterator[Section]:
    """Each device beside the host, by step and by region, then what the traced steps show together."""
    for at, device in enumerate(run_device.devices[:_MOST_DEVICES]):
        reach: Reach = "everywhere" if at < _BRIEF_DEVICES else "page"
        yield replace(device_section(device, run.wall.ns, "per step"), reach=reach)
    columns = heads("region | >traced | >each time | >device | >busy | ~1")
    walls_ns = {region.name: region.wall.ns for region in run.regions}
    rows = []
    for region in run_device.regions:
        wall_ns = walls_ns[region.name]
        for device in region.devices[:_MOST_DEVICES]:
            busy = (device.device, time(device.busy_ns), _busy(device, wall_ns))
            rows.append(row(region.name, f"{region.count:,}x", time(wall_ns), *busy))
    yield Section("Devices in regions: busy + idle = each time", [Table(columns, rows, brief=_BRIEF_THREADS)])
    how = (
        f"{counted(run_device.steps, 'traced step')} took {run_device.step_ratio:.2f} times as long as bare ones: "
        "busy time is that of the traced steps, idle time the rest of a bare step. "
        "Later steps are not measured: what recorded the devices slows launches."
    )
    yield Section("How the devices were recorded", [Notes([how, *issue_lines(run_device.analysis)], tone="dim")])
    analysis = run_device.analysis
    together = [
        *finding_sections(analysis.findings),
        collective_section(analysis.collectives, analysis.collective_costs),
        replace(threads_beside(analysis), reach="everywhere"),
        *launch_sections(analysis.devices[:_MOST_DEVICES], analysis.launch_figures),
    ]
    for section in Section.filled(*together):
        yield replace(section, heading=f"{section.heading}; {counted(run_device.steps, 'traced step')} together")


def check_lines(run: RunBudget) -> Iterator[str]:
    """Checks of the stacks against other evidence."""
    for check in run.cross_checks:
        assert check.samples is not None
        assert check.trace is not None
        stacks, trace = measured_text(check.samples), measured_text(check.trace)
        verdict = "they agree" if check.agree else "they DISAGREE"
        yield f"time in {check.category} {stacks} by stacks, {trace} by the trace: {verdict}"
    if ratio := run.sampling.step_ratio:
        yield f"sampled steps took {ratio:.2f} times as long as bare ones"


def _slowest(run: RunBudget) -> Section:
    rows = [
        row(slow.step, time(slow.wall_ns), f"{slow.wall_ns / max(1, run.wall.ns):.1f}x", slow.because)
        for slow in run.slowest
    ]
    return Section(f"Slowest {_bare(run)}steps", [Table(heads(">step | >took | >of the mean | because"), rows)])


def _bare(run: RunBudget) -> str:
    """What the steps that set the wall are: bare, unless too few were."""
    return "bare " if run.steps.measured else ""


def _steps(run: RunBudget, _classifier: Classifier) -> Iterator[Picture]:
    assert run.times is not None
    yield from run_steps(run, run.times)
    if not run.slowest:
        yield Notes([f"No {_bare(run)}step took more than twice the median."])


def _stacks(run: RunBudget, classifier: Classifier) -> Iterator[Picture]:
    """The stacks of the budget, read again from its directory."""
    try:
        stored = read_run(Path(run.capture))
        stacks = step_stacks(stored, classifier)
    except UsageError as error:
        yield Notes([f"No stacks to draw: {error}"])
        return
    tree = tree_of(stacks, classifier.fitted(stacks), f"all stacks of the {run.per}")
    yield from icicle(tree, run.divided_ns, run.per, run.host)
    if left_out_ns := run.wall.ns - run.divided_ns:
        yield Notes([f"{format_ns(left_out_ns)} of compilations are left out: the compiler's own clock times them."])
    if any(block.weight > 1 for block in stored.blocks):
        yield Notes(["Stacks of times in which fewer were taken count several times."])
    if not tree:
        yield Notes(["No stack was taken."])


def _regions(regions: Sequence[RegionBudget]) -> Section:
    columns = heads("region | >entered | >each time | 95 % interval ~2 | where ~1")
    rows = []
    for region in regions:
        where = divided(region.host) if region.host else text("no stack was taken inside", tone="dim")
        rows.append(row(region.name, f"{region.count:,}x", time(region.wall.ns), measured_bounds(region.wall), where))
    return Section("Regions, in bare steps", [Table(columns, rows)])


def _threads(run: RunBudget) -> Section:
    columns = heads("thread | >process ~1 | >busy | where ~2")
    rows = [
        row(thread.name or str(thread.thread), str(thread.process), f"{thread.busy_share:.0%}", divided(thread.host))
        for thread in run.threads[:_MOST_THREADS]
    ]
    notes = Notes(left_out(len(run.threads) - len(rows), "less busy thread"))
    return Section("Other threads and processes", [Table(columns, rows, brief=_BRIEF_THREADS), notes])
