"""Nanoseconds as integers: reading them from decimal text and printing them for people.

Timestamps of torch.profiler are decimal microseconds, absolute since 1970 and with nanosecond digits. A float64
cannot hold them (1.8e15 us with three decimals needs 61 bits), so they are read as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation, Overflow

from overhead_lens.errors import UsageError

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_INT64_MAX = 2**63 - 1
_US_DIGITS = 16
_SIZE = re.compile(r"(?P<number>\d{1,10}(\.\d{1,6})?) ?(?P<unit>([kmg]i?)?b|)", re.IGNORECASE)
_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def ns_from_us_text(text: str) -> int:
    """Decimal microseconds (``"1700000000000000.123"``) as integer nanoseconds, truncated towards zero.

    Raises:
        ValueError: Not a finite decimal number, or outside int64 nanoseconds.
    """
    whole, point, fraction = text.partition(".")
    digits = whole + fraction
    if digits.isascii() and digits.isdigit() and len(whole) <= _US_DIGITS and bool(fraction) == bool(point) and whole:
        ns = int(whole) * NS_PER_US + int(f"{fraction}000"[:3])
        if ns <= _INT64_MAX:
            return ns
    try:
        scaled = Decimal(text).scaleb(3)
    except InvalidOperation:
        raise ValueError(f"not a decimal number: {text!r}") from None
    except Overflow:
        raise ValueError(f"outside the range of int64 nanoseconds: {text!r}") from None
    if not scaled.is_finite() or abs(scaled) > _INT64_MAX:
        raise ValueError(f"outside the range of int64 nanoseconds: {text!r}")
    return int(scaled)


def format_ns(ns: float) -> str:
    """A duration with a unit that leaves one to four digits before the point: ``12.48 µs``, ``950 ns``, ``1.20 s``."""
    size, (unit_ns, unit) = abs(ns), unit_of(ns)
    if unit_ns == 1:
        return f"{ns:.0f} ns" if size >= 9.95 or ns == int(ns) else f"{ns:.{1 if size >= 0.95 else 2}f} ns"
    return f"{ns / unit_ns:.{_decimals(size / unit_ns)}f} {unit}"


def unit_of(ns: float) -> tuple[int, str]:
    """The unit that a duration is written in: its length in ns, and its name."""
    for limit_ns, unit_ns, unit in ((NS_PER_US, 1, "ns"), (NS_PER_MS, NS_PER_US, "µs"), (NS_PER_S, NS_PER_MS, "ms")):
        if abs(ns) < 0.9995 * limit_ns:
            return unit_ns, unit
    return NS_PER_S, "s"


def format_signed_ns(ns: float) -> str:
    """A difference in ns as ``format_ns`` writes it, always with its sign: ``+1.20 µs``, ``-35 ns``."""
    return f"{'+' if ns >= 0 else '-'}{format_ns(abs(ns))}"


def format_bytes(size: float) -> str:
    """A size with a decimal unit and three digits: ``263 kB``, ``1.05 MB``."""
    return f"{_scaled(size)}B"


def parse_bytes(text: str) -> int:
    """A size in bytes: ``512kB``, ``2MB``, ``1MiB``, ``4096``.

    Raises:
        UsageError: It is not a size between 1 kB and 1 GB.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match["number"]) * _SIZES[match["unit"].lower()]) if match else 0
    if not 1_000 <= size <= 1_000_000_000:
        raise UsageError(f"invalid size {text!r}: give 1kB to 1GB, e.g. 512kB, 2MB, 1MiB")
    return size


def format_rate(per_s: float, unit: str = "B") -> str:
    """A rate with a decimal unit and three digits: ``85.0 GB/s``; ``44.1 GFLOP/s`` for ``unit`` FLOP."""
    return f"{_scaled(per_s)}{unit}/s"


def _scaled(value: float) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * factor:
            scaled = value / factor
            return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f} {prefix}"
    return f"{value:.0f} "


def _decimals(value: float) -> int:
    return 2 if value < 99.995 else 1 if value < 999.95 else 0


def round_to_sum(values: Sequence[float], total: int) -> list[int]:
    """Integers nearest to ``values`` that sum to ``total`` exactly (largest remainder method).

    Args:
        values: Non-negative quantities, in the unit of ``total``, that sum to it up to rounding.
        total: The integer they must sum to.

    Raises:
        ValueError: The values do not sum to the total within one unit per value.
    """
    floors = [int(value // 1) for value in values]
    missing = total - sum(floors)
    if not 0 <= missing <= len(floors):
        raise ValueError(f"{sum(values)} cannot be rounded to {total}")
    if missing:
        by_remainder = sorted(range(len(floors)), key=lambda index: floors[index] - values[index])
        for index in by_remainder[:missing]:
            floors[index] += 1
    return floors


def proportional(weights: Sequence[float], total: int) -> list[int]:
    """Integers in proportion to ``weights`` that sum to ``total``; zeros where no weight is above 0."""
    weight = sum(weights)
    if weight == 0:
        return [0] * len(weights)
    # Integers that sum to it already stay exact beyond 2**53.
    return round_to_sum(weights if weight == total else [value * total / weight for value in weights], total)
