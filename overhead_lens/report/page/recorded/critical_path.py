"""The critical path of a recorded trace, on its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Block, Section, Table, Text
from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain
from overhead_lens.report.text.recorded import critical_path as told
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.critical_path.model import CriticalPath, PathOverRanks, WindowPath
from overhead_lens.units import format_ns

_MOST_WINDOWS = 50
_MOST_SLACK = 25
_MOST_KINDS = 3
_MOST_RANKS = 64
_LONGEST_NAME = 120
_EXPLAINED = (
    "The longest chain of work and waiting from the start of each step to its end; its parts sum to the step. "
    "'If it were free' is the graph evaluated again, not a difference: another chain decides then."
)
_OVER_RANKS = (
    "From the end of each step on the rank that ends it last back to its start. Where that rank waited in a collective, the path "
    "goes on in the rank that came last: with its kernel, and what led to that. The parts sum to the step."
)


def path_sections(path: CriticalPath | None) -> Iterator[Section]:
    """One section; none if it was not asked for, or the trace holds nothing."""
    if path is not None and path.windows:
        blocks = [Text([_EXPLAINED]), *_shares(path), *_windows(path), *_slack(path)]
        yield Section(f"Critical path of {told.headline(path)}", blocks)


_CAPTIONS = (
    ("kinds", "by kind"),
    ("operators", "the costliest operators, with the calls in them and the device work that these launched"),
    ("kernels", "the costliest kernels and copies"),
    ("modules", "by innermost nn.Module around the work or its launch"),
)


def _shares(path: CriticalPath) -> Iterator[Block]:
    for which, caption in _CAPTIONS:
        if shares := told.summed(path.windows, which):
            heads, rows = told.cells(shares, path.windows)
            yield Table(heads, rows, frozenset({0, 1, 3, 4}), caption)


def _windows(path: CriticalPath) -> Iterator[Block]:
    if len(path.windows) > 1:
        rows = [(str(each.step), format_ns(each.wall_ns), _made_of(each)) for each in path.windows[:_MOST_WINDOWS]]
        yield Table(("step", "time", "its path"), rows, frozenset({0, 1}), "each step")
        if more := len(path.windows) - len(rows):
            yield Text([f"{more} further steps are left out; --json has them."])


def _made_of(window: WindowPath) -> str:
    ranked = sorted(window.kinds, key=lambda share: -share.ns)[:_MOST_KINDS]
    return ", ".join(f"{share.name.replace('_', ' ')} {share.ns / window.wall_ns:.1%}" for share in ranked if share.ns)


def _slack(path: CriticalPath) -> Iterator[Block]:
    """For all steps together."""
    sums: dict[tuple[str, str], list[int]] = {}
    for slack in (slack for window in path.windows for slack in window.slack):
        least_ns, total_ns, count, on_path = sums.get((slack.kernel, slack.device), [slack.least_ns, 0, 0, 0])
        sums[slack.kernel, slack.device] = [
            min(least_ns, slack.least_ns), total_ns + slack.total_ns, count + slack.count, on_path + slack.on_path
        ]  # fmt: skip
    rows = [
        (
            format_ns(least_ns),
            format_ns(total_ns / count),
            f"{count:,}",
            f"{on_path:,}",
            device,
            cut(plain(kernel_name(name)), _LONGEST_NAME),
        )
        for (name, device), (least_ns, total_ns, count, on_path) in sorted(
            sums.items(), key=lambda item: (item[1], item[0])
        )
    ]
    if rows:
        heads = ("least slack", "mean slack", "beside the path", "on the path", "device", "kernel")
        caption = "device events beside the path: by how much one could be longer without making the path longer"
        yield Table(heads, rows[:_MOST_SLACK], frozenset(range(4)), caption)


def over_ranks_sections(path: PathOverRanks | None) -> Iterator[Section]:
    """One section of a path over ranks; none if it was not asked for."""
    if path is None or not (path.steps or path.notes):
        return
    blocks: list[Block] = [Text([_OVER_RANKS]), *_over_ranks(path), *_steps_over_ranks(path)] if path.steps else []
    if path.notes:
        blocks.append(Text([plain(note) for note in path.notes]))
    of = f", of {told.over_ranks_headline(path)}" if path.steps else ""
    yield Section(f"Critical path over ranks{of}", blocks)


def _over_ranks(path: PathOverRanks) -> Iterator[Block]:
    whole_ns = sum(step.wall_ns for step in path.steps)
    ranks = [(told.rank_name(label), ns) for label, ns in told.time_by_rank(path)]
    yield _times("rank", ranks[:_MOST_RANKS], whole_ns, "by rank")
    for which, caption in _CAPTIONS:
        named = [(_name(name, which), ns) for name, ns in told.time_by_name(path, which)]
        if named:
            yield _times("what", named, whole_ns, caption)


def _name(name: str, which: str) -> str:
    return name.replace("_", " ") if which == "kinds" else cut(plain(kernel_name(name)), _LONGEST_NAME)


def _times(what: str, times: Sequence[tuple[str, int]], whole_ns: int, caption: str) -> Table:
    rows = [(format_ns(ns), f"{ns / whole_ns:.1%}", name) for name, ns in times]
    return Table(("on the path", "share", what), rows, frozenset({0, 1}), caption)


def _steps_over_ranks(path: PathOverRanks) -> Iterator[Block]:
    rows = [
        (
            "" if step.step is None else str(step.step),
            format_ns(step.wall_ns),
            told.rank_name(step.last),
            f"{step.changes:,}",
            ", ".join(f"{told.rank_name(rank.rank)} {rank.ns / step.wall_ns:.1%}" for rank in step.ranks[:_MOST_KINDS]),
        )
        for step in path.steps[:_MOST_WINDOWS]
    ]
    yield Table(
        ("step", "time", "ended last by", "changes of rank", "most on its path"),
        rows,
        frozenset({0, 1, 3}),
        "each step",
    )
    if more := len(path.steps) - len(rows):
        yield Text([f"{more} further steps are left out; --json has them."])
