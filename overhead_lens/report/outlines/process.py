"""A watched process in words: the main thread's budget, a row for each other thread; and what changed between two watches."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.report.cells import heads, row, share, sum_row, text, verdict
from overhead_lens.report.outline import Bars, Drawing, Notes, Outline, Row, Section, Table
from overhead_lens.report.outlines.host import divided, frames_section, host_bar, host_blocks, largest_part
from overhead_lens.report.outlines.stacks import name_of, stacks_of_others, thread_stacks
from overhead_lens.report.text.blocks import counted, left_out, origin
from overhead_lens.stats.estimate import NO_INTERVAL, Measured
from overhead_lens.studies.attach.analysis import ProcessBudget, TracedMoment
from overhead_lens.studies.attach.delta import ProcessDelta, ShareDelta, ThreadDelta
from overhead_lens.studies.attach.stored import read_process
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns

_MOST_THREADS, _BRIEF_THREADS, _MOST_FRAMES, _TOP = 32, 12, 20, 5
_WORTH_A_WORD_SHARE = 0.05


def process_outline(process: ProcessBudget) -> Outline:
    """A watch."""
    first, others = process.threads[0], process.threads[1:]
    wall = Measured(first.wall_ns, (first.wall_ns, first.wall_ns), interval=NO_INTERVAL)
    where = host_blocks(first.host, wall, "time", total="sum = time watched")
    stored, of = process.capture, f" of {name_of(first)}"

    def stacks() -> Sequence[SampledThread]:
        return read_process(Path(stored))[1]

    return Outline(
        f"process {process.pid}: {process.command}",
        sentence(first),
        Section.filled(
            Section(f"Where the time{of} goes", where, reach="everywhere"),
            _others(others, process.pid),
            *(_traced(first, process.traced, stored) if process.traced is not None else ()),
            frames_section(first.host, first.wall_ns, _MOST_FRAMES, _TOP, of),
            Section(f"Stacks{of}", [Drawing(partial(thread_stacks, stacks, first, "watch"))], "page"),
            *stacks_of_others(others, stacks, "watch"),
        ),
        about=[_about(process)],
        warnings=process.warnings,
        ends=[f"capture: {stored}"] if stored else [],
        origin=partial(_origin, process, ""),
    )


def sentence(thread: ThreadBudget) -> str:
    """A thread's activity in a sentence."""
    words = f"{name_of(thread)} is busy {thread.busy_share:.0%} of the time"
    leading = max((row for row in thread.host if row.category != "wait"), key=lambda row: row.ns)
    if leading.share >= _WORTH_A_WORD_SHARE:
        words += f", {leading.share:.0%} in {leading.category}{_most_of(leading)}"
    waiting = thread.category("wait")
    if waiting.share >= _WORTH_A_WORD_SHARE:
        words += f"; it waits {waiting.share:.0%}{_most_of(waiting)}"
    return words + "."


def _most_of(row: HostCategory) -> str:
    part = largest_part(row)
    if 2 * part.ns > row.ns:
        return f" (most of it {part.name})"
    return f" (most of it {row.top[0].frame})" if row.top and 2 * row.top[0].ns > row.ns else ""


def _about(process: ProcessBudget) -> str:
    """Versions, number of threads and samples, how long it was watched and what that cost it."""
    known = [f"{name} {version}" for name, version in _versions(process)]
    threads = counted(len(process.threads), "thread")
    cost = "" if process.slowdown_share is None else f", which slowed it by {process.slowdown_share:.0%}"
    watched = f"watched for {format_ns(process.duration_ns)}{cost}"
    return ", ".join((*known, threads, counted(process.samples, "sample"), watched))


def _versions(process: ProcessBudget) -> Iterator[tuple[str, str]]:
    return ((name, version) for name, version in (("Python", process.python), ("torch", process.torch)) if version)


def _origin(process: ProcessBudget, side: str) -> list[tuple[str, str]]:
    versions = {name.lower(): version for name, version in _versions(process)}
    return origin(process.capture, versions, [("process", f"{process.pid}: {process.command}")], side)


def _others(threads: Sequence[ThreadBudget], pid: int) -> Section:
    rows = []
    for thread in threads[:_MOST_THREADS]:
        child = "" if thread.process == pid else f" (process {thread.process})"
        top = max((frame for row in thread.host for frame in row.top), key=lambda frame: frame.ns, default=None)
        most = text(top.frame if top else "", tone="dim")
        rows.append(row(name_of(thread) + child, f"{thread.busy_share:.0%}", divided(thread.host), most))
    notes = Notes(left_out(len(threads) - len(rows), "less busy thread"))
    table = Table(heads("thread | >busy | its time ~1 | most in ~2"), rows, brief=_BRIEF_THREADS)
    return Section("Other threads, busiest first", [table, notes], reach="everywhere")


def _traced(thread: ThreadBudget, trace: TracedMoment, capture: str) -> Iterator[Section]:
    """The main thread as it was sampled and as it traced itself."""
    columns = heads("where | >sampled | 95 % interval ~1 | >traced | ")
    rows = []
    for sampled, traced in zip(thread.host, trace.host, strict=True):
        if not (sampled.ns or traced.ns):
            continue
        low, high = (end / max(1, thread.wall_ns) for end in sampled.ci95_ns)
        differs = text("" if low <= traced.share <= high else "differs", tone="dim")
        label = text(sampled.category, sampled.category)
        rows.append(row(label, share(sampled.share), f"{low:.1%} .. {high:.1%}", share(traced.share), differs))
    steps = f" ({counted(trace.steps, 'step')})" if trace.steps else ""
    note = "The trace is of a later moment, torch.profiler lengthens operators, and their kernels are estimated."
    notes = Notes([note, f"all of it: overhead-lens analyze {shlex.quote(f'{capture}/{trace.file}')}"])
    heading = f"{name_of(thread)} sampled, and traced for {format_ns(trace.wall_ns)}{steps}"
    yield Section(heading, [Table(columns, rows), notes], reach="everywhere")


def process_delta_outline(delta: ProcessDelta) -> Outline:
    """Two watches: the main thread, and the others whose time divides otherwise."""
    others = [thread for thread in delta.threads[1:] if any(row.verdict != "same" for row in thread.host)]
    changed = [*delta.threads[:1], *others]
    more = left_out(len(changed) - _MOST_THREADS, "other thread", " with another division")
    alike = len(delta.threads) - len(changed)
    sides = (f"process {side.pid}, watched for {format_ns(side.duration_ns)}" for side in (delta.base, delta.new))
    return Outline(
        " → ".join(sides),
        delta.sentence,
        Section.filled(
            *(_changes(delta, thread) for thread in changed[:_MOST_THREADS]),
            Section("Other threads", [Notes([*more, *_unchanged(delta, alike)], tone="dim")]),
        ),
        warnings=delta.warnings,
        origin=lambda: [*_origin(delta.base, "before"), *_origin(delta.new, "after")],
    )


def _unchanged(delta: ProcessDelta, alike: int) -> list[str]:
    lines = [f"{alike} other {'thread divides' if alike == 1 else 'threads divide'} as before"] if alike else []
    for label, threads in (("gone", delta.gone), ("new", delta.came)):
        named = ", ".join(name or "a thread without a name" for name in threads)
        lines += [f"{label}: {named}"] if named else []
    return lines


def _changes(delta: ProcessDelta, thread: ThreadDelta) -> Section:
    """Shares of each category of a thread in both watches, and how busy it was."""
    pair = [_of(delta.base, thread.base_thread), _of(delta.new, thread.new_thread)]
    name = thread.name or f"thread {thread.new_thread}"
    bars = [
        host_bar(when, f"busy {side.busy_share:.0%} of {format_ns(side.wall_ns)}", side.host, side.wall_ns)
        for when, side in zip(("before", "after"), pair, strict=True)
    ]
    columns = heads("category | >base | >new | >difference | 95 % interval ~1 | verdict")
    rows = [_change(share) for share in thread.host if share.base_share or share.new_share]
    busy = ("busy", f"{thread.base_busy_share:.1%}", f"{thread.new_busy_share:.1%}")
    rows.append(sum_row(*busy, "", "", ""))
    drawn = Bars(bars, f"How the time of {name} divided before and divides now.")
    return Section(name, [drawn, Table(columns, rows)], reach="everywhere")


def _of(process: ProcessBudget, number: int) -> ThreadBudget:
    return next(thread for thread in process.threads if thread.thread == number)


def _change(share: ShareDelta) -> Row:
    low, high = share.ci95_share
    return row(
        text(share.category, share.category),
        *(f"{share.base_share:.1%}", f"{share.new_share:.1%}"),
        f"{100 * share.delta_share:+.1f} points",
        f"{100 * low:+.1f} .. {100 * high:+.1f}",
        verdict(share.verdict),
    )
