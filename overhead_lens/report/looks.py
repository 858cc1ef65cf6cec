"""The color and the pattern of everything that has one, by its name: the same on pages, in notebooks and on terminals."""

from __future__ import annotations

from overhead_lens.taxonomy.categories import COLORS, HATCHES, INKS, QUEUE

LONGER, SHORTER = "longer", "shorter"
"""Looks of a difference: where the new side takes longer, and where it does not."""
TIME = "time"
"""The color of time without a category."""
IDLE = "idle: "
"""Before the look of what a device idles for."""

_OTHERS = {
    "compute": ("#54a24b", "green"),
    "communication": ("#b5478a", "magenta"),
    "copy": ("#0f9bb8", "cyan"),
    "both at once": ("#7a7a3d", "bright_black"),
    TIME: ("#4477aa", "bright_blue"),
    QUEUE: ("#808080", "bright_black"),
    LONGER: ("#e45756", "red"),
    SHORTER: ("#4c78a8", "bright_blue"),
}
_NONE = "#8a9199"


def ink(look: str) -> str:
    """``#rrggbb``; visible on both white and black."""
    name = look.removeprefix(IDLE)
    return INKS.get(name) or _OTHERS.get(name, (_NONE, ""))[0]


def letters_on(color: str) -> str:
    """Black or white, whichever is read better on a color ``#rrggbb``: the contrast is 4.5 or more."""
    red, green, blue = ((int(color[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5))
    return "#000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#fff"


def hatch(look: str) -> str:
    """The name of the pattern; empty for a plain area."""
    return HATCHES.get(look.removeprefix(IDLE), "")


def color(look: str) -> str:
    """The nearest of a terminal's 16 colors, as rich names them."""
    name = look.removeprefix(IDLE)
    return COLORS.get(name) or _OTHERS.get(name, ("", ""))[1]
