"""The critical path of a recorded trace in the terminal: what it is made of, and what the steps would take without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section, table_of
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.critical_path.model import GAP, LATENCY, CriticalPath, Share, WindowPath
from overhead_lens.units import format_ns

_TOP = 4
_TOP_NAMES = {"operators": 2, "kernels": 1}
_LEAST_SHARE = 0.001
_MOST_NAME = 60
_SHORT_NAME = 28


def path_blocks(path: CriticalPath | None) -> Iterator[RenderableType]:
    """What is printed: the kinds with most time on the path, and the costliest names."""
    if path is None or not path.windows:
        return
    kinds = [share for share in summed(path.windows, "kinds") if share.ns][:_TOP]
    rows = table_of(cells(kinds, path.windows), left=("what",))
    told = [Text(line, style="dim") for line in _costliest(path)]
    yield section(f"critical path of {headline(path)}", Group(rows, *told))


def headline(path: CriticalPath) -> str:
    """Of how many steps, how long, and how much of it is known."""
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
    """Of operators and kernels those whose being free would spare most."""
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
    """What the paths assume, as sentences."""
    return [] if path is None else [f"critical path: {each}" for each in path.assumptions]
