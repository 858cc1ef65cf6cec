"""The critical path of a recorded trace in the terminal: its parts, and what the steps would take without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section, table_of
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.critical_path.model import GAP, LATENCY, CriticalPath, PathOverRanks, Share, WindowPath
from overhead_lens.units import format_ns

_TOP = 4
_TOP_NAMES = {"operators": 2, "kernels": 1}
_LEAST_SHARE = 0.001
_MOST_NAME = 60
_SHORT_NAME = 28


def path_blocks(path: CriticalPath | None) -> Iterator[RenderableType]:
    """The printed blocks: the kinds with most time on the path, and the costliest names."""
    if path is None or not path.windows:
        return
    kinds = [share for share in summed(path.windows, "kinds") if share.ns][:_TOP]
    rows = table_of(cells(kinds, path.windows), left=("what",))
    told = [Text(line, style="dim") for line in _costliest(path)]
    yield section(f"critical path of {headline(path)}", Group(rows, *told))


def headline(path: CriticalPath) -> str:
    """The number of steps, the length, and how much of it is known."""
    whole_ns = sum(each.wall_ns for each in path.windows)
    unexplained_ns = sum(each.unexplained_ns for each in path.windows)
    steps = [each for each in path.windows if each.step is not None]
    of = "the window" if not steps else f"{len(steps)} step{'' if len(steps) == 1 else 's'}"
    text = f"{of}: {format_ns(whole_ns)}"
    return text + (f", {unexplained_ns / whole_ns:.1%} of it unexplained" if unexplained_ns else "")


def summed(windows: Sequence[WindowPath], which: str) -> list[Share]:
    """Shares of all windows together, most time on the path first; what a window lacks changes nothing there if it is free."""
    names = dict.fromkeys(share.name for window in windows for share in getattr(window, which))
    found = []
    for name in names:
        there = [
            next((share for share in getattr(window, which) if share.name == name), Share(name, 0, 0, window.wall_ns))
            for window in windows
        ]
        free = [share.if_free_ns for share in there]
        known = [ns for ns in free if ns is not None]
        if_free_ns = sum(known) if len(known) == len(free) else None
        ns, total_ns = sum(share.ns for share in there), sum(share.total_ns for share in there)
        found.append(Share(name, ns, total_ns, if_free_ns))
    return sorted(found, key=lambda share: (-share.ns, -share.total_ns, share.name))


def cells(shares: Sequence[Share], windows: Sequence[WindowPath]) -> Cells:
    """A row for each: time on the path, in the window, and what is left if it took no time."""
    whole_ns = sum(window.wall_ns for window in windows)
    heads = ("on the path", "share", "what", "in the window", "if it were free")
    return heads, [
        (
            format_ns(share.ns),
            f"{share.ns / whole_ns:.1%}",
            _SPACED.get(share.name) or cut(plain(kernel_name(share.name)), _MOST_NAME),
            format_ns(share.total_ns),
            "" if share.if_free_ns is None else f"{format_ns(share.if_free_ns)} (-{_saved(share, whole_ns):.1%})",
        )
        for share in shares
    ]


_SPACED = {kind: kind.replace("_", " ") for kind in (LATENCY, GAP)}


def _saved(share: Share, whole_ns: int) -> float:
    return 1 - (whole_ns if share.if_free_ns is None else share.if_free_ns) / whole_ns


def _costliest(path: CriticalPath) -> Iterator[str]:
    """Operators and kernels whose removal would save most."""
    whole_ns = sum(window.wall_ns for window in path.windows)
    shares = {which: summed(path.windows, which) for which in ("operators", "kernels")}
    told = []
    for which, found in shares.items():
        able = [share for share in found if _saved(share, whole_ns) >= _LEAST_SHARE]
        able.sort(key=lambda share: (share.if_free_ns or 0, share.name))
        named = [
            f"{cut(plain(kernel_name(share.name)), _SHORT_NAME)} {format_ns(share.if_free_ns or 0)}"
            for share in able[: _TOP_NAMES[which]]
        ]
        told += [f"{which}: {', '.join(named)}"] if named else []
    if told:
        yield f"if free, of {'; '.join(told)}"


def path_notes(path: CriticalPath | None) -> list[str]:
    """Assumptions of the paths, as sentences."""
    return [] if path is None else [f"critical path: {each}" for each in path.assumptions]


def over_ranks_blocks(path: PathOverRanks | None) -> Iterator[RenderableType]:
    """A path over ranks in a few lines."""
    if path is None or not path.steps:
        return
    whole_ns = sum(step.wall_ns for step in path.steps)
    ranks = [f"{_tail(rank_name(rank))} {ns / whole_ns:.1%}" for rank, ns in time_by_rank(path)]
    more = f" and {len(ranks) - _TOP} more ranks" if len(ranks) > _TOP else ""
    kinds = [
        f"{_SPACED.get(name, name)} {ns / whole_ns:.1%}"
        for name, ns in time_by_name(path, "kinds")[:_TOP]
        if ns >= _LEAST_SHARE * whole_ns
    ]
    named = [
        f"{which}: {', '.join(f'{cut(plain(kernel_name(name)), _SHORT_NAME)} {format_ns(ns)}' for name, ns in times[:most])}"
        for which, most in _TOP_NAMES.items()
        if (times := time_by_name(path, which))
    ]
    lines = [Text(", ".join(ranks[:_TOP]) + more), Text(", ".join(kinds)), Text("; ".join(named), style="dim")]
    yield section(f"critical path over ranks, of {over_ranks_headline(path)}", Group(*(line for line in lines if line)))


def over_ranks_headline(path: PathOverRanks) -> str:
    """The number of steps, the length, and how often it goes to another rank."""
    steps = [each for each in path.steps if each.step is not None]
    of = "the window" if not steps else f"{len(steps):,} step{'' if len(steps) == 1 else 's'}"
    changes = sum(each.changes for each in path.steps)
    whole_ns = sum(each.wall_ns for each in path.steps)
    return f"{of}: {format_ns(whole_ns)}, {changes:,} change{'' if changes == 1 else 's'} of rank"


def time_by_rank(path: PathOverRanks) -> list[tuple[str, int]]:
    """Label of each rank and its time on the paths of all steps, most first."""
    sums: Counter[str] = Counter()
    for step in path.steps:
        sums.update({rank.rank: rank.ns for rank in step.ranks})
    return _ranked(sums)


def time_by_name(path: PathOverRanks, which: str) -> list[tuple[str, int]]:
    """Each of the ``which`` of steps and its time on the paths of all, most first."""
    sums: Counter[str] = Counter()
    for step in path.steps:
        sums.update({time.name: time.ns for time in getattr(step, which)})
    return _ranked(sums)


def rank_name(label: str) -> str:
    """A rank in words; a path where the trace does not say which it is."""
    return f"rank {label}" if label.isdecimal() else plain(label)


def over_ranks_notes(path: PathOverRanks | None) -> list[str]:
    """Assumptions and missing information, as sentences."""
    return [] if path is None else [f"critical path over ranks: {each}" for each in path.notes]


def _ranked(sums: Counter[str]) -> list[tuple[str, int]]:
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def _tail(text: str) -> str:
    """The end of a long name: paths of ranks differ there."""
    return text if len(text) <= _SHORT_NAME else f"…{text[1 - _SHORT_NAME :]}"
