"""The critical path of recorded traces in words: its parts, what the steps would take without it, its slack."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from overhead_lens.report.cells import heads, row, share, time
from overhead_lens.report.outline import Notes, Row, Section, Table
from overhead_lens.report.text.blocks import counted, cut, cut_front, left_out
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.collectives.stragglers import rank_name
from overhead_lens.traces.critical_path.model import GAP, LATENCY, CriticalPath, PathOverRanks, Share, Slack, WindowPath
from overhead_lens.units import format_ns

_TOP = 4
_TOP_NAMES = {"operators": 2, "kernels": 1}
_LEAST_SHARE = 0.001
_SHORT_NAME = 28
_MOST_WINDOWS, _MOST_SLACK, _MOST_KINDS, _MOST_RANKS = 50, 25, 3, 64
_SPACED = {kind: kind.replace("_", " ") for kind in (LATENCY, GAP)}
_EXPLAINED = (
    "The longest chain of work and waiting from the start of each step to its end; its parts sum to the step. "
    "'If it were free' is the graph evaluated again, not a difference: another chain decides then."
)
_OVER_RANKS = (
    "From the end of each step on the rank that ends it last back to its start. Where that rank waited in a collective, the path "
    "goes on in the rank that came last: with its kernel, and what led to that. The parts sum to the step."
)
_CAPTIONS = {
    "kinds": "by kind",
    "operators": "the costliest operators, with the calls in them and the device work that these launched",
    "kernels": "the costliest kernels and copies",
    "modules": "by innermost nn.Module around the work or its launch",
}


def path_sections(path: CriticalPath | None) -> Iterator[Section]:
    """The kinds with most time on the path, and the costliest names; then all of it. None if it was not requested."""
    if path is None or not path.windows:
        return
    summed = {which: _summed(path.windows, which) for which in _CAPTIONS}
    whole_ns = sum(each.wall_ns for each in path.windows)
    tables = {which: _shares(summed[which], whole_ns, _CAPTIONS[which]) for which in _CAPTIONS}
    heading = f"{_steps(each.step for each in path.windows)}: {format_ns(whole_ns)}"
    if unexplained_ns := sum(each.unexplained_ns for each in path.windows):
        heading += f", {unexplained_ns / whole_ns:.1%} of it unexplained"
    costliest = Notes(list(_costliest(summed, whole_ns)), tone="dim")
    yield Section(f"Critical path of {heading}", [tables.pop("kinds"), costliest], reach="everywhere")
    yield Section.folded(
        "Critical path: operators, kernels, modules, steps",
        Notes([_EXPLAINED]),
        *tables.values(),
        _windows(path),
        Notes(left_out(len(path.windows) - _MOST_WINDOWS, "further step")),
        _slack(path),
    )


def _steps(numbered: Iterable[int | None]) -> str:
    steps = sum(step is not None for step in numbered)
    return counted(steps, "step") if steps else "the window"


def _summed(windows: Sequence[WindowPath], which: str) -> list[Share]:
    """Shares of all windows together, most time on the path first; what a window lacks changes nothing there if it is free."""
    shares = []
    for name in dict.fromkeys(each.name for window in windows for each in getattr(window, which)):
        there = [
            next((each for each in getattr(window, which) if each.name == name), Share(name, 0, 0, window.wall_ns))
            for window in windows
        ]
        free = [share.if_free_ns for share in there]
        known = [ns for ns in free if ns is not None]
        if_free_ns = sum(known) if len(known) == len(free) else None
        ns, total_ns = sum(share.ns for share in there), sum(share.total_ns for share in there)
        shares.append(Share(name, ns, total_ns, if_free_ns))
    return sorted(shares, key=lambda share: (-share.ns, -share.total_ns, share.name))


def _shares(shares: Sequence[Share], whole_ns: int, caption: str) -> Table:
    """A row for each: time on the path, in the window, and what is left if it took no time."""
    rows = []
    for each in shares:
        cells = (time(each.ns), share(each.ns / whole_ns), _name(each.name), time(each.total_ns))
        rows.append(row(*cells, _left(each, whole_ns), is_minor=not each.ns))
    columns = heads(">on the path | >share | what | >in the window ~1 | >if it were free")
    return Table(columns, rows, caption, brief=_TOP, more="")


def _name(name: str) -> str:
    return _SPACED.get(name) or kernel_name(name)


def _left(share: Share, whole_ns: int) -> str:
    """What is left if it took no time, and how much that saves; nothing where that was not evaluated."""
    left_ns = share.if_free_ns
    return "" if left_ns is None else f"{format_ns(left_ns)} (-{1 - left_ns / whole_ns:.1%})"


def _costliest(summed: dict[str, list[Share]], whole_ns: int) -> Iterator[str]:
    """Operators and kernels whose removal would save most."""
    parts = []
    for which, most in _TOP_NAMES.items():
        ranked = sorted(summed[which], key=lambda each: (each.if_free_ns or 0, each.name))
        named = [
            f"{cut(kernel_name(each.name), _SHORT_NAME)} {_left(each, whole_ns)}"
            for each in ranked[:most]
            if (each.if_free_ns or 0) <= (1 - _LEAST_SHARE) * whole_ns
        ]
        parts += [f"{which}: {', '.join(named)}"] if named else []
    if parts:
        yield f"time left if free, {'; '.join(parts)}"


def _windows(path: CriticalPath) -> Table:
    rows = []
    for each in path.windows[:_MOST_WINDOWS]:
        ranked = sorted(each.kinds, key=lambda kind: -kind.ns)[:_MOST_KINDS]
        kinds = ", ".join(f"{_name(kind.name)} {kind.ns / each.wall_ns:.1%}" for kind in ranked if kind.ns)
        rows.append(row(str(each.step), time(each.wall_ns), kinds))
    return Table(heads(">step | >time | its path"), rows if len(path.windows) > 1 else [], "each step")


def _slack(path: CriticalPath) -> Table:
    """For all steps together."""
    alike: defaultdict[tuple[str, str], list[Slack]] = defaultdict(list)
    for slack in (slack for window in path.windows for slack in window.slack):
        alike[slack.kernel, slack.device].append(slack)
    sums = []
    for key, slacks in alike.items():
        if beside := sum(slack.count for slack in slacks):
            least_ns = min(slack.least_ns for slack in slacks if slack.count)
            total_ns, on_path = sum(slack.total_ns for slack in slacks), sum(slack.on_path for slack in slacks)
            sums.append((least_ns, total_ns, beside, on_path, *key))
    rows = [
        row(time(least_ns), time(total_ns / beside), beside, on_path, device, kernel_name(name))
        for least_ns, total_ns, beside, on_path, name, device in sorted(sums)[:_MOST_SLACK]
    ]
    columns = heads(">least slack | >mean slack | >beside the path ~1 | >on the path ~1 | device ~2 | kernel")
    caption = "device events beside the path: by how much one could at most be longer without making the path longer"
    return Table(columns, rows, caption)


def path_notes(path: CriticalPath | None) -> list[str]:
    """What the paths assume, as sentences."""
    return [] if path is None else [f"critical path: {each}" for each in path.assumptions]


# ---------------------------------------------------------------- over ranks
def over_ranks_sections(path: PathOverRanks | None) -> Iterator[Section]:
    """The ranks and kinds with most time on the path, in a few lines; then all of it. None if it was not requested."""
    if path is None or not path.steps:
        return
    whole_ns = sum(step.wall_ns for step in path.steps)
    changes = sum(each.changes for each in path.steps)
    heading = f"{_steps(step.step for step in path.steps)}: {format_ns(whole_ns)}, {counted(changes, 'change')} of rank"
    ranks = [(rank_name(label), ns) for label, ns in _by_name(path, "ranks", "rank")]
    lines = Notes(_over_ranks(path, ranks, whole_ns))
    yield Section(f"Critical path over ranks, of {heading}", [lines], reach="everywhere")
    named = {which: [(_name(name), ns) for name, ns in _by_name(path, which)] for which in _CAPTIONS}
    yield Section.folded(
        "Critical path over ranks: by rank, kind and name",
        Notes([_OVER_RANKS]),
        _times("rank", ranks[:_MOST_RANKS], whole_ns, "by rank"),
        *(_times("what", named[which], whole_ns, _CAPTIONS[which]) for which in named),
        _steps_over_ranks(path),
        Notes(left_out(len(path.steps) - _MOST_WINDOWS, "further step")),
    )


def _over_ranks(path: PathOverRanks, ranks: Sequence[tuple[str, int]], whole_ns: int) -> list[str]:
    more = f" and {counted(len(ranks) - _TOP, 'more rank')}" if len(ranks) > _TOP else ""
    first = ", ".join(f"{cut_front(name, _SHORT_NAME)} {ns / whole_ns:.1%}" for name, ns in ranks[:_TOP])
    kinds = [
        f"{_SPACED.get(name, name)} {ns / whole_ns:.1%}"
        for name, ns in _by_name(path, "kinds")[:_TOP]
        if ns >= _LEAST_SHARE * whole_ns
    ]
    named = [
        f"{which}: {', '.join(f'{cut(kernel_name(name), _SHORT_NAME)} {format_ns(ns)}' for name, ns in times[:most])}"
        for which, most in _TOP_NAMES.items()
        if (times := _by_name(path, which))
    ]
    return [line for line in (first + more, ", ".join(kinds), "; ".join(named)) if line]


def _by_name(path: PathOverRanks, which: str, name: str = "name") -> list[tuple[str, int]]:
    """Each of the ``which`` of steps and its time on the paths of all, most first."""
    sums: Counter[str] = Counter()
    for step in path.steps:
        sums.update({getattr(each, name): each.ns for each in getattr(step, which)})
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def _times(what: str, times: Sequence[tuple[str, int]], whole_ns: int, caption: str) -> Table:
    rows = [row(time(ns), share(ns / whole_ns), name) for name, ns in times]
    return Table(heads(f">on the path | >share | {what}"), rows, caption)


def _steps_over_ranks(path: PathOverRanks) -> Table:
    rows: list[Row] = []
    for step in path.steps[:_MOST_WINDOWS]:
        ranks = ", ".join(f"{rank_name(rank.rank)} {rank.ns / step.wall_ns:.1%}" for rank in step.ranks[:_MOST_KINDS])
        number = "" if step.step is None else str(step.step)
        rows.append(row(number, time(step.wall_ns), rank_name(step.last), step.changes, ranks))
    return Table(heads(">step | >time | ended last by | >changes of rank | most on its path"), rows, "each step")


def over_ranks_notes(path: PathOverRanks | None) -> list[str]:
    """What is assumed and what cannot be said, as sentences."""
    return [] if path is None else [f"critical path over ranks: {each}" for each in path.notes]
