"""What device work says of itself in its arguments: size of a copy, node of a graph, occupancy of a kernel.

Written by libkineto/src/CuptiActivity.h (names: libkineto/include/MetadataFieldCatalog.h) and, of AMD's devices, RocprofActivity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from overhead_lens.readers.kineto.event import ABSENT, integer

WHOLE = {"bytes": "bytes", "graph id": "graph", "graph node id": "graph_node"}
"""Arguments that are integers, and their columns."""

DECIMAL = {
    "est. achieved occupancy %": "occupancy_millionths",
    "blocks per SM": "blocks_per_sm_millionths",
    "warps per SM": "warps_per_sm_millionths",
}
"""Arguments that are decimals, and their columns; cut off after six digits."""

COLUMNS = (*WHOLE.values(), *DECIMAL.values())

Numbers = tuple[int, ...]

NONE: Numbers = (ABSENT,) * len(COLUMNS)
_MILLION = 1_000_000
_MOST_DIGITS = 12
_PLAIN = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_EXPONENT = re.compile(r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}")


def work_numbers(arguments: Mapping[str, Any]) -> Numbers:
    """Values of ``COLUMNS``, -1 where absent or unreadable; decimals are given as text."""
    sizes = [whole(arguments.get(name)) for name in WHOLE]
    return (*sizes, *(millionths(arguments.get(name)) for name in DECIMAL))


def whole(value: Any) -> int:
    """An integer >= 0, or -1."""
    return max(ABSENT, integer(value))


def millionths(value: Any) -> int:
    """A decimal >= 0, an int or a text, in whole millionths; -1 for what is none or has over twelve digits before the point."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return ABSENT
    text = str(value)
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        whole, places = plain[1], (plain[2] or "")[:6]
        return int(whole) * _MILLION + int(places.ljust(6, "0")) if len(whole) <= _MOST_DIGITS else ABSENT
    if _EXPONENT.fullmatch(text) is None:
        return ABSENT
    number = Decimal(text)
    return int(number * _MILLION) if number < 10**_MOST_DIGITS else ABSENT


MOST_PRODUCTS = 20_000
"""So many of them keep their arguments; reading more would cost as much as the rest of an analysis."""
