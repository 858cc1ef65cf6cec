"""The page of a watched process: a bar a thread, the stacks of each; and of two watches: what divides otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.errors import UsageError
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.report.page.charts.bars import Bar, bars_chart, bars_table, host_bar
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.page.model import Block, Page, Section, Table, Text
from overhead_lens.report.text import process as told
from overhead_lens.report.text.host import costliest_frames
from overhead_lens.studies.attach.analysis import ProcessBudget
from overhead_lens.studies.attach.delta import ProcessDelta
from overhead_lens.studies.attach.stored import read_process
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns

_MOST_THREADS = 32
_MOST_FRAMES = 20
_MOST_ICICLES = 8
_AT_WORK_SHARE = 0.01


def process_page(process: ProcessBudget, classifier: Classifier) -> Page:
    """The page of a watch."""
    first = process.threads[0]
    sections = [Section("Threads", list(_threads(process))), *_stacks(process, classifier)]
    if frames := costliest_frames(first.host, _MOST_FRAMES):
        rows = [(format_ns(ns), f"{ns / first.wall_ns:.1%}", category, frame) for ns, category, frame in frames]
        table = Table(("self time", "share", "category", "frame"), rows, frozenset({0, 1}))
        sections.append(Section(f"Costliest frames of {told.name_of(first)}", [table], is_open=False))
    if process.warnings:
        sections.append(Section("Warnings", [Text(process.warnings)]))
    return Page(told.title(process), told.sentence(first), sections, _provenance(process))


def _stacks(process: ProcessBudget, classifier: Classifier) -> Iterator[Section]:
    """An icicle for each thread that did anything but wait, the main thread's in any case."""
    try:
        _, threads = read_process(Path(process.capture))
    except UsageError as error:
        yield Section("Stacks", [Text([f"No stacks to draw: {error}"])])
        return
    groups = completed([thread.stacks for thread in threads])
    fitted = classifier.fitted(stack for group in groups for stack in group)
    stacks = {(thread.process, thread.thread): group for thread, group in zip(threads, groups, strict=True)}
    at_work = [thread for thread in process.threads[1:] if thread.busy_share >= _AT_WORK_SHARE]
    for thread in (process.threads[0], *at_work[: _MOST_ICICLES - 1]):
        name = told.name_of(thread)
        tree = tree_of(stacks[thread.process, thread.thread], fitted, f"all stacks of {name}")
        blocks = icicle(tree, thread.wall_ns * thread.seen_share, "watch")
        yield Section(f"Stacks of {name}", blocks, is_open=thread is process.threads[0])


def process_delta_page(delta: ProcessDelta, _classifier: Classifier) -> Page:
    """The page of two watches."""
    shown = told.changed(delta)[:_MOST_THREADS]
    sections = []
    for thread in shown:
        heads, rows = told.change_cells(thread)
        pair = [
            _of(side, number) for side, number in ((delta.base, thread.base_thread), (delta.new, thread.new_thread))
        ]
        bars = [_bar(each, side, "") for each, side in zip(pair, ("before", "after"), strict=True)]
        name = told.name_of(pair[1])
        chart = bars_chart(bars, f"How the time of {name} divided before and divides now.")
        sections.append(Section(name, [chart, Table(heads, rows, frozenset(range(1, 5)))]))
    if lines := list(told.unchanged(delta, len(shown))):
        sections.append(Section("Other threads", [Text(lines)]))
    if delta.warnings:
        sections.append(Section("Warnings", [Text(delta.warnings)]))
    return Page(
        told.sides(delta), delta.sentence, sections, [("before", delta.base.capture), ("after", delta.new.capture)]
    )


def _of(process: ProcessBudget, number: int) -> ThreadBudget:
    return next(thread for thread in process.threads if thread.thread == number)


def _threads(process: ProcessBudget) -> Iterator[Block]:
    shown = process.threads[:_MOST_THREADS]
    several = len({thread.process for thread in process.threads}) > 1
    bars = [_bar(thread, told.name_of(thread), f"process {thread.process}" if several else "") for thread in shown]
    yield bars_chart(bars, f"How the time of {len(bars)} threads divides, the main thread first, then the busiest.")
    yield bars_table(bars, "thread", "")
    more = len(process.threads) - len(shown)
    left_out = [f"{more} threads that are less busy are left out; --json has them."] if more else []
    yield Text([told.about(process), *left_out])


def _bar(thread: ThreadBudget, name: str, remark: str) -> Bar:
    busy = f"busy {thread.busy_share:.0%} of {format_ns(thread.wall_ns)}"
    return host_bar(name, f"{busy}, {remark}" if remark else busy, thread.host, thread.wall_ns)


def _provenance(process: ProcessBudget) -> list[tuple[str, str]]:
    versions = [(name, version) for name, version in (("Python", process.python), ("torch", process.torch)) if version]
    return [("process", f"{process.pid}: {process.command}"), *versions, ("capture", process.capture)]
