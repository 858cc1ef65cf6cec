"""What reports say of a call, of its origin, of intervals and of counts; names cut to the room that they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead_lens.report.text.plain import plain
from overhead_lens.stats.estimate import Measured
from overhead_lens.units import format_ns, format_signed_ns

if TYPE_CHECKING:
    from overhead_lens.budget.model import Breakdown

# Longer names would take the width of the figures beside them.
_NAME_WIDTH = 40


def call_title(breakdown: Breakdown) -> str:
    """The title of a call: scenario, variant, mode, device."""
    subject = breakdown.subject
    return plain(f"{subject.title}, {breakdown.mode}, {subject.device}")


# What tells two sides of one call apart, in the order in which it is looked for, and the words before it.
_PREFIXES = {
    "caches": "",
    "torch": "torch ",
    "torch_git": "torch at ",
    "python": "Python ",
    "git_commit": "",
    "host": "on ",
    "cpu": "on ",
}


def side_titles(base: Breakdown, new: Breakdown) -> tuple[str, str]:
    """The titles of a comparison's sides; for two measurements of one call, with the first property that differs."""
    titles = call_title(base), call_title(new)
    if titles[0] != titles[1]:
        return titles
    old, recent = base.environment, new.environment
    for name, prefix in _PREFIXES.items():
        if old.get(name) != recent.get(name) and old.get(name) and recent.get(name):
            return plain(f"{titles[0]}, {prefix}{old[name]}"), plain(f"{titles[1]}, {prefix}{recent[name]}")
    return titles


def interval_text(interval: tuple[float, float]) -> str:
    """``LOW .. HIGH`` of an interval in ns."""
    return f"{format_ns(interval[0])} .. {format_ns(interval[1])}"


def bounds_text(measured: Measured) -> str:
    """The interval of a measured time and, where it is none of 95 %, in words what it is."""
    if measured.has_level:
        return interval_text(measured.ci95_ns)
    return f"{interval_text(measured.ci95_ns)}, the {measured.interval}" if measured.is_range else "no interval"


def measured_text(measured: Measured) -> str:
    """``TIME [LOW .. HIGH]``."""
    return f"{format_ns(measured.ns)} [{bounds_text(measured)}]"


def signed_interval_text(interval: tuple[float, float]) -> str:
    """``+LOW .. +HIGH`` of an interval of differences in ns."""
    return f"{format_signed_ns(interval[0])} .. {format_signed_ns(interval[1])}"


def counted(count: int, noun: str) -> str:
    """``1 step``, ``2 steps``, ``2 launches``, ``2 series``."""
    plural = "" if noun.endswith("series") else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def three_digits(number: float) -> str:
    """A number without a unit of its own with three digits, or all of its whole ones."""
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.3g}"


def share_text(part: float, whole: float, digits: int = 0) -> str:
    """A share in percent; a dash of nothing."""
    return f"{part / whole:.{digits}%}" if whole else "-"


def left_out(count: int, noun: str, which: str = "") -> list[str]:
    """That something is left out which the JSON has; nothing for none. ``which`` stands behind its noun."""
    verb, them = ("is", "it") if count == 1 else ("are", "them")
    return [f"{counted(count, noun)}{which} {verb} left out; --json has {them}."] if count > 0 else []


def capitalized(text: str) -> str:
    """A text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def cut(text: str, width: int = _NAME_WIDTH) -> str:
    """At most so much of a name that the figures beside it keep their places."""
    return text if len(text) <= width else f"{text[: max(1, width - 1)]}…"


def cut_front(place: str, width: int) -> str:
    """At most so much of a place in a program, of which the end tells most."""
    return place if len(place) <= width else f"…{place[1 - width :]}"


def origin(
    directory: str, environment: Mapping[str, Any], named: Iterable[tuple[str, str]] = (), side: str = ""
) -> list[tuple[str, str]]:
    """Where a result comes from: names and texts, the ``named`` first; of a comparison with its ``side`` before each name."""
    from overhead_lens.captures.directory import fields_of

    meta = fields_of(Path(directory))
    recorded = [(name, str(meta.get(name) or "")) for name in ("version", "command")]
    started = str(meta.get("started") or "").replace("T", " ", 1).removesuffix("+00:00")
    known = [(name, str(value)) for name, value in environment.items() if isinstance(value, (str, int, float))]
    pairs = [*named, ("started", started), *recorded, *known, ("stored in", directory)]
    return [(f"{side} {name}".strip(), text) for name, text in pairs if text]
