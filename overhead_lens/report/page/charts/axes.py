"""Parts of several plots: axes with their ticks, colors for what is not a category."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from overhead_lens.report.page.model import Axis, Symbol
from overhead_lens.units import format_ns, unit_of

# Paul Tol's bright scheme, distinct with any color vision, on white and on black.
INKS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999")
SYMBOLS: Sequence[Symbol] = ("circle", "square", "diamond", "triangle", "cross", "x", "ring")
_TICKS, _FEWEST_TICKS = 5, 3


def linear_axis(low: float, high: float, format_tick: Callable[[float], str], title: str = "") -> Axis:
    """An axis with about five round ticks."""
    # Rounding may tell values apart that are the same.
    high = high if high - low > 1e-12 * abs(low) else low + max(1, 0.001 * abs(low))
    rough = (high - low) / _TICKS
    decade = 10.0 ** math.floor(math.log10(rough))
    step = next(step * decade for step in (1, 2, 5, 10) if step * decade >= rough)
    ticks = [at * step for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return Axis(low, high, [(tick, format_tick(tick)) for tick in ticks], title)


def close_time_axis(low: float, high: float, title: str = "") -> Axis:
    """A linear axis of ns whose ticks have as many decimals as it takes to tell them apart."""
    axis = linear_axis(low, high, round_time, title)
    unit_ns, unit = unit_of(max(abs(low), abs(high)))
    if len({text for _, text in axis.ticks}) == len(axis.ticks):
        return axis
    step = (axis.ticks[1][0] - axis.ticks[0][0]) / unit_ns
    decimals = max(0, math.ceil(-math.log10(step) - 1e-9))
    return replace(axis, ticks=[(tick, f"{tick / unit_ns:.{decimals}f} {unit}") for tick, _ in axis.ticks])


def time_axis(values_ns: Iterable[float], title: str = "") -> Axis:
    """A linear axis of ns from 0 on that holds all values."""
    return linear_axis(0, 1.06 * max(values_ns), round_time, title)


def log_axis(values: Iterable[float], format_tick: Callable[[float], str], title: str = "") -> Axis:
    """A logarithmic axis that holds all positive values, with powers of ten, 1 2 5 or, on a short one, other round ticks."""
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    room = 0.06 * max(high - low, 0.5)
    ends = 10 ** (low - room), 10 ** (high + room)
    decades = range(math.floor(low) - 1, math.ceil(high) + 1)
    for steps in ((1,), (1, 2, 5)):
        ticks = [tick for decade in decades for step in steps if ends[0] <= (tick := step * 10.0**decade) <= ends[1]]
        if len(ticks) >= _FEWEST_TICKS:
            return Axis(*ends, [(tick, format_tick(tick)) for tick in ticks], title, is_log=True)
    return replace(linear_axis(*ends, format_tick, title), is_log=True)


def numbered_axis(names: Sequence[str], most: int, title: str = "") -> Axis:
    """An axis with a place for each name, of which at most ``most`` stand below it."""
    every = max(1, -(-len(names) // most))
    return Axis(-0.6, len(names) - 0.4, list(enumerate(names))[::every], title)


def round_time(ns: float) -> str:
    """A round time without the decimals that ``format_ns`` gives it."""
    return round_number(format_ns(ns))


def round_number(text: str) -> str:
    """A number and its unit without decimals that are 0."""
    number, _, unit = text.partition(" ")
    value = float(number.replace(",", ""))
    return f"{value:g} {unit}" if value else "0"
