"""Colors of slices in the Perfetto UI.

A slice's color is a hash of its correlation id where it has one, and of its name otherwise (``ui/src/components/colorizer.ts``;
versions 52 and 58 alike). These ids hash to the hues that the categories have in other pictures, so that a category has one color
on every track, whatever stands in a slice's name. Other slices have a shade of violet, which no category has: with the color that
the UI chooses by name, an operator could look like waiting.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

_NUMBER = re.compile(r" ?\d+")
_VIOLET = (5747, 16487, 5087, 23527, 15133, 15275, 599, 1204, 315, 597, 133, 421)
SHADES = tuple(f"violet {number}" for number in _VIOLET)
SEEDS = {
    "python": "python 114",
    "guard": "guard 155",
    "dispatcher": "dispatcher 217",
    "allocation": "allocation 74",
    "kernel": "kernel 1743",
    "launch": "launch 1510",
    "wait": "wait 469",
    "compile": "compile 999",
    "unattributed": "unattributed 832",
    "queue": "queue 2543",
    "busy": "busy 211",
    "text": "text 67",
}


def seed(color: str, name: str) -> str:
    """The id of a slice: that of its color, or a shade by its name without numbers."""
    return SEEDS.get(color, color) or _shade(name)


@lru_cache(maxsize=1 << 12)
def _shade(name: str) -> str:
    return SHADES[zlib.crc32(_NUMBER.sub("", name).encode(errors="replace")) % len(SHADES)]
