"""The page of a run: the budget of a step, the steps one by one, regions, threads, stacks; and the page of a job's ranks."""

from __future__ import annotations

from collections.abc import Iterator

from overhead_lens.report.page.bars import bars_chart, host_bar
from overhead_lens.report.page.model import Block, Page, Section, Table, Text
from overhead_lens.report.page.steps import run_steps
from overhead_lens.report.text import run as told
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.report.text.host import costliest_frames
from overhead_lens.report.text.plain import plain
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.studies.run.analysis import RunBudget
from overhead_lens.studies.run.job import RunJob
from overhead_lens.units import format_ns

_MOST_FRAMES = 20
_MOST_REGIONS = 24
_MOST_THREADS = 24
_MOST_RANKS = 64


def run_page(run: RunBudget) -> Page:
    """The page of a program's run."""
    return Page(told.title(run), _answer(run), list(_sections(run)), _provenance(run))


def job_page(job: RunJob) -> Page:
    """The page of a job: its ranks side by side, then the slowest of them."""
    slowest = job.slowest
    of = Section(f"{len(job.ranks)} ranks of one job", list(_ranks(job)))
    answer = f"Rank {slowest.rank} is the slowest: {format_ns(slowest.wall.ns)} per {slowest.per}. {_answer(slowest)}"
    return Page(told.title(slowest), answer, [of, *_sections(slowest)], [("job", job.capture), *_provenance(slowest)])


def _answer(run: RunBudget) -> str:
    if run.samples:
        return f"{format_ns(run.wall.ns)} per {run.per}: {told.sentence(run)}"
    return f"{format_ns(run.wall.ns)} per {run.per}; nothing says how it divides: no stack was taken."


def _sections(run: RunBudget) -> Iterator[Section]:
    yield Section(f"Where the time of a {run.per} goes", list(_budget(run)))
    if run.times is not None and run.per == "step":
        yield Section("Steps over time", [*run_steps(run.times, run.wall, run.slowest), *_slowest(run)])
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
    interval = f"{format_ns(run.wall.ns)} [{interval_text(run.wall.ci95_ns)}]"
    bar = host_bar(f"per {run.per}", interval, run.host, run.wall.ns)
    yield bars_chart([bar], f"The categories of a {run.per} of the main thread, which sum to {format_ns(run.wall.ns)}.")
    notes = [told.counts(run)] if run.per == "step" else []
    yield Text([*notes, *([told.ending(run.exit_code)] if run.exit_code else [])])


def _slowest(run: RunBudget) -> Iterator[Block]:
    if run.slowest:
        rows = [told.slow_cells(slow, run.wall.ns) for slow in run.slowest]
        yield Table(("step", "took", "because"), rows, frozenset({0, 1}), "the slowest bare steps")


def _regions(run: RunBudget) -> Iterator[Block]:
    shown = run.regions[:_MOST_REGIONS]
    bars = [
        host_bar(region.name, f"{region.count:,}x {format_ns(region.wall.ns)}", region.host, region.wall.ns)
        for region in shown
        if region.host
    ]
    if bars:
        yield bars_chart(bars, f"How the time of {len(bars)} regions divides, each as wide as the page.")
    rows = [
        (plain(region.name), f"{region.count:,}", format_ns(region.wall.ns), interval_text(region.wall.ci95_ns))
        for region in run.regions
    ]
    yield Table(
        ("region", "entered", "each time", "95 % interval"),
        rows,
        frozenset({1, 2, 3}),
        "in bare steps, costliest first",
    )


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
    if more := len(run.threads) - len(shown):
        yield Text([f"{more} threads that are less busy are left out; --json has them."])


def _ranks(job: RunJob) -> Iterator[Block]:
    slowest = job.slowest
    shown = sorted(sorted(job.ranks, key=lambda run: -run.wall.ns)[:_MOST_RANKS], key=lambda run: run.rank or 0)
    bars = [
        host_bar(
            f"rank {run.rank}" + (" (slowest)" if run is slowest else ""),
            f"{format_ns(run.wall.ns)} [{interval_text(run.wall.ci95_ns)}]",
            run.host,
            slowest.wall.ns,
        )
        for run in shown
    ]
    yield bars_chart(bars, f"The step of each of {len(bars)} ranks, to one scale.")
    if more := len(job.ranks) - len(shown):
        yield Text([f"{more} faster ranks are left out; --json has them."])


def _provenance(run: RunBudget) -> list[tuple[str, str]]:
    known = [(name, str(value)) for name, value in run.environment.items() if isinstance(value, (str, int, float))]
    return [("program", told.title(run)), *known, ("samples", PySpy.sees.sentence), ("capture", run.capture)]
