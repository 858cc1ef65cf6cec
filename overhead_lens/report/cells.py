"""Columns, rows and cells of an outline's tables: a function for each kind of value."""

from __future__ import annotations

from overhead_lens.report.looks import LONGER, SHORTER
from overhead_lens.report.outline import Cell, Column, Length, Row, Tone
from overhead_lens.report.text.blocks import interval_text, signed_interval_text
from overhead_lens.stats.estimate import Measured
from overhead_lens.stats.values import Interval
from overhead_lens.units import format_ns, format_signed_ns, unit_of

_DIRECTIONS = {"slower": LONGER, "more": LONGER, "faster": SHORTER, "less": SHORTER}


def heads(line: str) -> list[Column]:
    """Columns, as in ``where | >time | how! | 95 % interval ~1``.

    Figures have ``>`` before their name; ``!`` behind a name is ``is_whole``, ``~1`` is ``gives_way=1``.
    """
    parts = [part.partition("~") for part in line.split("|")]
    named = [(name.strip(), int(gives_way or 0)) for name, _, gives_way in parts]
    return [Column(name.strip(">!"), name[:1] == ">", gives_way, name[-1:] == "!") for name, gives_way in named]


def row(*cells: Cell | str | int, depth: int = 0, tone: Tone = "", is_sum: bool = False, is_minor: bool = False) -> Row:
    """A row; a text or a whole number is a cell without a look."""
    made = [cell if isinstance(cell, Cell) else Cell(cell if isinstance(cell, str) else f"{cell:,}") for cell in cells]
    return Row(made, depth, tone, is_sum, is_minor)


def sum_row(*cells: Cell | str | int) -> Row:
    """The row that the others add up to."""
    return row(*cells, tone="bold", is_sum=True)


def text(value: str, look: str = "", tone: Tone = "") -> Cell:
    """Words."""
    return Cell(value, look=look, tone=tone)


def verdict(value: str, mark: str = "") -> Cell:
    """A verdict in the color of its direction; behind it the mark of a footnote."""
    return Cell(f"{value}{mark}", look=_DIRECTIONS.get(value, ""))


def time(ns: float | None) -> Cell:
    """A duration; nothing for None."""
    return Cell("" if ns is None else format_ns(ns))


def signed(ns: float | None) -> Cell:
    """A difference of durations; nothing for None."""
    return Cell("" if ns is None else format_signed_ns(ns))


def share(value: float) -> Cell:
    """A share in percent."""
    return Cell(f"{value:.1%}")


def bounds(interval: Interval | None) -> Cell:
    """An interval of a duration; nothing for None."""
    return Cell() if interval is None else Cell(interval_text(interval), _one_unit(interval, ""))


def signed_bounds(interval: Interval | None) -> Cell:
    """An interval of a difference; nothing for None."""
    return Cell() if interval is None else Cell(signed_interval_text(interval), _one_unit(interval, "+"))


def measured_bounds(measured: Measured) -> Cell:
    """The interval of a measured time; if it is not a 95 % interval, with its kind."""
    if measured.has_level:
        return bounds(measured.ci95_ns)
    return Cell(f"{interval_text(measured.ci95_ns)} (range)" if measured.is_range else "no interval")


def length(value: float, whole: float, interval: Interval | None = None, look: str = "", begin: float = 0.0) -> Cell:
    """A bar of ``value``, to the left of ``begin`` where it is negative; the full width is ``whole``."""
    ends = (min(0.0, value), max(0.0, value), *(interval or (0.0, 0.0)))
    places = [min(1.0, max(0.0, (begin + end) / whole)) if whole else 0.0 for end in ends]
    return Cell(look=look, length=Length(*places))


def _one_unit(interval: Interval, sign: str) -> str:
    """``LOW .. HIGH`` with the larger end's unit once."""
    most = max(map(abs, interval))
    unit_ns, unit = unit_of(most)
    scaled = most / unit_ns
    decimals = 0 if (unit == "ns" and scaled >= 9.95) or scaled >= 999.5 else 2 if scaled < 99.995 else 1
    low, high = (f"{end / unit_ns:{sign}.{decimals}f}" for end in interval)
    return f"{low} .. {high} {unit}"
