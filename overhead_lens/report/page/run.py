"""The page of a run: the budget of a step, the steps one by one, regions, threads, stacks; and the page of a job's ranks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from overhead_lens.errors import UsageError
from overhead_lens.report.page.charts.bars import bars_chart, bars_table, host_bar
from overhead_lens.report.page.charts.host import host_blocks
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.steps import run_steps
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.page.model import Block, Page, Section, Table, Text
from overhead_lens.report.text import run as told
from overhead_lens.report.text.blocks import measured_text
from overhead_lens.report.text.host import costliest_frames
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.studies.run.analysis import RegionBudget, RunBudget, step_stacks
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.run.missed import RealLife
from overhead_lens.studies.run.stored import read_run
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns

_MOST_FRAMES = 20
_MOST_REGIONS = 24
_MOST_THREADS = 24
_MOST_RANKS = 64


def run_page(run: RunBudget, classifier: Classifier) -> Page:
    """The page of a program's run."""
    return Page(told.title(run), _answer(run), list(_sections(run, classifier)), _provenance(run))


def real_life_page(found: RealLife, classifier: Classifier) -> Page:
    """The page of a run held against a hot loop: what that would have missed, then the run."""
    run = found.run
    rows = [(row.figure, format_ns(row.ns), f"{row.share:.1%}", row.because, row.how) for row in found.missed]
    heads = ("figure", f"per {run.per}", "share", "why a hot loop lacks it", "what to try")
    caption = "Not to be added up: a slow step may be slow by one of the others."
    tables = [Table(heads, rows, frozenset({1, 2}), caption)] if rows else []
    missed = Section("What a hot loop would have missed", [*tables, Text(found.notes)])
    return Page(told.title(run), f"{found.sentence}.", [missed, *_sections(run, classifier)], _provenance(run))


def job_page(job: RunJob, classifier: Classifier) -> Page:
    """The page of a job: its ranks side by side, then the slowest of them."""
    slowest = job.slowest
    of = Section(f"{len(job.ranks)} ranks of one job", list(_ranks(job)))
    sections = [of, *_sections(slowest, classifier)]
    return Page(told.title(slowest), _late(job), sections, [("job", job.capture), *_provenance(slowest)])


def _late(job: RunJob) -> str:
    """Which rank the others wait for, and what it does."""
    slowest = job.slowest
    usual_ns = median(run.wall.ns for run in job.ranks)
    beyond = f", {slowest.wall.ns / usual_ns - 1:.0%} above the median of {len(job.ranks)} ranks" if usual_ns else ""
    why = f" {told.sentence(slowest)}" if slowest.samples else ""
    return f"Rank {slowest.rank} is the slowest: {format_ns(slowest.wall.ns)} per {slowest.per}{beyond}.{why}"


def _answer(run: RunBudget) -> str:
    if run.samples:
        return f"{format_ns(run.wall.ns)} per {run.per}: {told.sentence(run)}"
    return f"{format_ns(run.wall.ns)} per {run.per}; nothing says how it divides: no stack was taken."


def _sections(run: RunBudget, classifier: Classifier) -> Iterator[Section]:
    yield Section(f"Where the time of a {run.per} goes", list(_budget(run)))
    if run.times is not None and run.per == "step":
        yield Section("Steps over time", [*run_steps(run.times, run.wall, run.slowest), *_slowest(run)])
    yield Section("Sampled stacks", list(_stacks(run, classifier)))
    if run.regions:
        yield Section("Regions", list(_regions(run)))
    if run.threads:
        yield Section("Other threads and processes", list(_threads(run)))
    if frames := costliest_frames(run.host, _MOST_FRAMES):
        rows = [(format_ns(ns), f"{ns / max(1, run.wall.ns):.1%}", category, frame) for ns, category, frame in frames]
        table = Table(("self time", "share", "category", "frame"), rows, frozenset({0, 1}))
        yield Section("Costliest frames", [table], is_open=False)
    if run.warnings:
        yield Section("Warnings", [Text(run.warnings)])


def _budget(run: RunBudget) -> Iterator[Block]:
    if run.samples:
        yield from host_blocks(f"per {run.per}", run.host, run.wall, run.per)
    notes = [*([told.counts(run)] if run.per == "step" else []), told.phases_line(run), *told.check_lines(run)]
    yield Text([*notes, *([told.ending(run.exit_code)] if run.exit_code else [])])


def _stacks(run: RunBudget, classifier: Classifier) -> Iterator[Block]:
    """The stacks of the budget, read again from its directory."""
    try:
        stacks = step_stacks(read_run(Path(run.capture)))
    except UsageError as error:
        yield Text([f"No stacks to draw: {error}"])
        return
    tree = tree_of(stacks, classifier.fitted(stacks), f"all stacks of the {run.per}")
    yield from icicle(tree, run.wall.ns, run.per)
    missing = [] if tree else ["No stack was taken."]
    yield Text([*missing, f"Samples: {PySpy.sees.sentence}"])


def _slowest(run: RunBudget) -> Iterator[Block]:
    if run.slowest:
        rows = [told.slow_cells(slow, run.wall.ns) for slow in run.slowest]
        yield Table(("step", "took", "because"), rows, frozenset({0, 1}), "the slowest bare steps")
    else:
        yield Text(["No bare step took more than twice the median."])


def _regions(run: RunBudget) -> Iterator[Block]:
    shown = run.regions[:_MOST_REGIONS]
    bars = [host_bar(region.name, _each(region), region.host, region.wall.ns) for region in shown if region.host]
    if bars:
        yield bars_chart(bars, f"How the time of {len(bars)} regions divides, each as wide as the page.")
        yield bars_table(bars, "region", "each time it was entered, in bare steps")
    unseen = [f"No stack was taken inside {region.name}: {_each(region)}." for region in shown if not region.host]
    more = len(run.regions) - len(shown)
    yield Text([*unseen, *([f"{more} regions with less are left out; --json has them."] if more else [])])


def _each(region: RegionBudget) -> str:
    return f"{region.count:,}x {measured_text(region.wall)}"


def _threads(run: RunBudget) -> Iterator[Block]:
    shown = run.threads[:_MOST_THREADS]
    bars = [
        host_bar(
            thread.name or f"thread {thread.thread}",
            f"busy {thread.busy_share:.0%}, process {thread.process}",
            thread.host,
            thread.wall_ns,
        )
        for thread in shown
    ]
    yield bars_chart(bars, f"How the time of {len(bars)} threads divides while the main thread makes its steps.")
    yield bars_table(bars, "thread", "")
    if more := len(run.threads) - len(shown):
        yield Text([f"{more} threads that are less busy are left out; --json has them."])


def _ranks(job: RunJob) -> Iterator[Block]:
    slowest = job.slowest
    shown = sorted(sorted(job.ranks, key=lambda run: -run.wall.ns)[:_MOST_RANKS], key=lambda run: run.rank or 0)
    bars = [
        host_bar(
            f"rank {run.rank}" + (" (slowest)" if run is slowest else ""),
            measured_text(run.wall),
            run.host,
            slowest.wall.ns,
        )
        for run in shown
    ]
    yield bars_chart(bars, f"The step of each of {len(bars)} ranks, to one scale.")
    yield bars_table(bars, "", f"per {slowest.per}")
    if more := len(job.ranks) - len(shown):
        yield Text([f"{more} faster ranks are left out; --json has them."])


def _provenance(run: RunBudget) -> list[tuple[str, str]]:
    known = [(name, str(value)) for name, value in run.environment.items() if isinstance(value, (str, int, float))]
    return [("program", told.title(run)), *known, ("capture", run.capture)]
