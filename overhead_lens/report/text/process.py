"""The terminal report of a watched process: the main thread's budget, one line for each other thread; and of two watches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.report.text.blocks import BAR_WIDTH, Cells, bar, cut, interval_text, print_footnotes, section
from overhead_lens.report.text.figures import figures
from overhead_lens.report.text.host import costliest_frames, frames_table
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.attach.analysis import ProcessBudget
from overhead_lens.studies.attach.delta import ProcessDelta, ShareDelta, ThreadDelta
from overhead_lens.taxonomy.categories import COLORS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns

_MOST_THREADS = 12
_MOST_FRAMES = 5
_LEAST_SHARE = 0.005
_WORTH_A_WORD_SHARE = 0.05


def print_process(console: Console, process: ProcessBudget) -> None:
    """Print the budgets of a process's threads."""
    for block in process_blocks(process):
        console.print(block)
    print_footnotes(console, process.warnings)
    if process.capture:
        console.print(Text(f"capture: {plain(process.capture)}", style="dim"), soft_wrap=True)


def process_blocks(process: ProcessBudget) -> Iterator[RenderableType]:
    """Headline, the first thread, its frames, the other threads."""
    first, others = process.threads[0], process.threads[1:]
    yield _headline(process)
    yield _budget(first)
    yield Text(sentence(first), style="bold")
    frames = _frames(first)
    if frames is not None:
        yield Text()
        yield frames
    if others:
        yield Text()
        yield _others(others, process.pid)


def sentence(thread: ThreadBudget) -> str:
    """What a thread does, in words."""
    ranked = sorted((row for row in thread.host if row.ns), key=lambda row: -row.ns)
    text = f"{name_of(thread)} is busy {thread.busy_share:.0%} of the time"
    leading = next((row for row in ranked if row.category != "wait"), None)
    if leading is not None and leading.share >= _WORTH_A_WORD_SHARE:
        text += f", {leading.share:.0%} in {leading.category}{_most_of(leading)}"
    waiting = thread.category("wait")
    if waiting.share >= _WORTH_A_WORD_SHARE:
        text += f"; it waits {waiting.share:.0%}{_most_of(waiting)}"
    return text + "."


def title(process: ProcessBudget) -> str:
    """Number and command of a process."""
    return f"process {process.pid}: {cut(plain(process.command), 80)}"


def about(process: ProcessBudget) -> str:
    """Versions, number of threads and samples, how long it was watched and what that cost it."""
    versions = [
        f"{name} {plain(version)}"
        for name, version in (("Python", process.python), ("torch", process.torch))
        if version
    ]
    threads = "1 thread" if len(process.threads) == 1 else f"{len(process.threads)} threads"
    cost = "" if process.slowdown_share is None else f", which slowed it by {process.slowdown_share:.0%}"
    watched = f"watched for {format_ns(process.duration_ns)}{cost}"
    return ", ".join((*versions, threads, f"{process.samples:,} samples", watched))


def _headline(process: ProcessBudget) -> Text:
    return Text.assemble((title(process), "bold"), (f"\n{about(process)}", "dim"))


def _budget(thread: ThreadBudget) -> Table:
    table = figures(name_of(thread), "", "share", "time", "95 % interval", left=[name_of(thread), "", "95 % interval"])
    table.columns[1].width = BAR_WIDTH
    for row in thread.host:
        if not row.ns:
            continue
        color = COLORS[row.category]
        name, line = Text(row.category, style=f"bold {color}"), Text(bar(row.share), style=color)
        table.add_row(name, line, f"{row.share:.1%}", format_ns(row.ns), interval_text(row.ci95_ns))
        for part in row.parts:
            share = part.ns / thread.wall_ns
            if part.ns:
                cells = (f"  {part.name}", bar(share), f"{share:.1%}", format_ns(part.ns))
                table.add_row(
                    *(Text(cell, style=f"dim {color}" if at == 1 else "dim") for at, cell in enumerate(cells)), ""
                )
    table.add_row(Text("sum = time watched", style="bold"), "", "100 %", format_ns(thread.wall_ns), "")
    return table


def _frames(thread: ThreadBudget) -> RenderableType | None:
    frames = costliest_frames(thread.host, _MOST_FRAMES)
    if not frames:
        return None
    return section(f"costliest frames of {name_of(thread)} (self time)", frames_table(frames, thread.wall_ns))


def _others(threads: Sequence[ThreadBudget], pid: int) -> RenderableType:
    table = figures("thread", "busy", left=["thread"])
    table.add_column("its time")
    table.add_column("most in", no_wrap=True, overflow="ellipsis")
    for thread in threads[:_MOST_THREADS]:
        child = "" if thread.process == pid else f" (process {thread.process})"
        rows = sorted((row for row in thread.host if row.share >= _LEAST_SHARE), key=lambda row: -row.ns)
        shares = Text(", ").join(
            Text(f"{row.category} {row.share:.0%}", style=COLORS[row.category]) for row in rows[:3]
        )
        top = max((frame for row in rows for frame in row.top), key=lambda frame: frame.ns, default=None)
        frame = Text(plain(top.frame) if top else "", style="dim")
        table.add_row(Text(cut(name_of(thread)) + child), f"{thread.busy_share:.0%}", shares, frame)
    if len(threads) > _MOST_THREADS:
        table.add_row(Text(f"{len(threads) - _MOST_THREADS} more", style="dim"), "", "", "")
    return section("other threads, busiest first", table)


def _most_of(row: HostCategory) -> str:
    """The part or frame that most of a category is."""
    part = max(row.parts, key=lambda part: part.ns, default=None)
    if part is not None and 2 * part.ns > row.ns:
        return f" (most of it {part.name})"
    return f" (most of it {plain(row.top[0].frame)})" if row.top and 2 * row.top[0].ns > row.ns else ""


def name_of(thread: ThreadBudget) -> str:
    """A thread's name; its number where it has none."""
    return plain(thread.name) or f"thread {thread.thread}"


def print_process_delta(console: Console, delta: ProcessDelta) -> None:
    """Print what changed between two watches."""
    console.print(Text(sides(delta), style="bold"))
    shown = changed(delta)
    for thread in shown:
        console.print(_changes(thread))
    for line in unchanged(delta, len(shown)):
        console.print(Text(line, style="dim"))
    console.print(Text(plain(delta.sentence), style="bold"))
    print_footnotes(console, delta.warnings)


def sides(delta: ProcessDelta) -> str:
    """The two watches."""
    each = (f"process {side.pid}, watched for {format_ns(side.duration_ns)}" for side in (delta.base, delta.new))
    return "  →  ".join(each)


def changed(delta: ProcessDelta) -> list[ThreadDelta]:
    """The main thread, and the others whose time divides otherwise."""
    others = [thread for thread in delta.threads[1:] if any(row.verdict != "same" for row in thread.host)]
    return [*delta.threads[:1], *others]


def unchanged(delta: ProcessDelta, shown: int) -> Iterator[str]:
    """How many threads beyond those ``shown`` divide as before, and which have no counterpart."""
    if alike := len(delta.threads) - shown:
        yield f"{alike} other {'thread divides' if alike == 1 else 'threads divide'} as before"
    for label, names in (("gone", delta.gone), ("new", delta.came)):
        if names:
            yield f"{label}: {', '.join(plain(name) or 'a thread without a name' for name in names)}"


def _changes(thread: ThreadDelta) -> Table:
    heads, rows = change_cells(thread)
    table = figures(*heads, left=(heads[0], "95 % interval", "verdict"))
    for name, *cells in rows:
        table.add_row(Text(name, style=COLORS.get(name, "bold")), *cells)
    return table


def change_cells(thread: ThreadDelta) -> Cells:
    """Shares of each category of a thread in both watches, and how busy it was."""
    rows = [_change(row) for row in thread.host if row.base_share or row.new_share]
    busy = ("busy", f"{thread.base_busy_share:.1%}", f"{thread.new_busy_share:.1%}", "", "", "")
    heads = ("base", "new", "difference", "95 % interval", "verdict")
    return (cut(plain(thread.name) or f"thread {thread.new_thread}"), *heads), [*rows, busy]


def _change(row: ShareDelta) -> Sequence[str]:
    low, high = row.ci95_share
    return (
        row.category,
        f"{row.base_share:.1%}",
        f"{row.new_share:.1%}",
        f"{100 * row.delta_share:+.1f} points",
        f"{100 * low:+.1f} .. {100 * high:+.1f}",
        row.verdict,
    )
