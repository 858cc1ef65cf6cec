"""The categories of host time. A category is one row here; ``rules.toml`` says what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Category:
    """One category of the host budget.

    Attributes:
        name: As documents spell it.
        parts: Its named shares; empty for one that is listed by kernel, guard or frame.
        color: In a terminal, a name that rich knows.
        ink: In a picture, ``#rrggbb``.
        summary: What belongs to it.
        blamed_as: What a device is idle because of while the host is in it.
        blame_remark: What a report says beside that.
    """

    name: str
    parts: tuple[str, ...]
    color: str
    ink: str
    summary: str
    blamed_as: str
    blame_remark: str = ""


CATEGORIES = (
    Category(
        "python",
        ("user", "framework", "compiled_runtime", "binding"),
        "yellow",
        "#d4a017",
        "interpreter, and crossing between Python and C++",
        "python",
    ),
    Category("guard", (), "magenta", "#b279a2", "Dynamo's cache lookup and guard tree", "guard"),
    Category(
        "dispatcher",
        ("dispatch", "autograd", "op_setup"),
        "blue",
        "#4c78a8",
        "from an operator's entry to its kernel and back",
        "dispatcher",
    ),
    Category(
        "allocation",
        ("tensor", "storage", "page_fault"),
        "cyan",
        "#72b7b2",
        "getting and releasing tensors and storage",
        "allocation",
    ),
    Category("kernel", (), "green", "#54a24b", "the arithmetic and data movement itself", "dispatcher"),
    Category(
        "launch",
        (),
        "bright_blue",
        "#9ecae9",
        "putting work on a device's queue",
        "launch",
        "the launching call was running",
    ),
    Category(
        "wait", (), "red", "#e45756", "blocked: device, lock, GIL, input and output", "wait", "the host was blocked"
    ),
    Category("compile", (), "bright_magenta", "#ff9da6", "tracing and compiling inside the window", "compile"),
    Category(
        "unattributed",
        (),
        "bright_black",
        "#bab0ac",
        "what no rule claims, listed by frame",
        "unattributed",
        "nobody knows: no launch, or no events",
    ),
)

HOST_CATEGORIES = tuple(each.name for each in CATEGORIES)
PARTS = {each.name: each.parts for each in CATEGORIES if each.parts}
COLORS = {each.name: each.color for each in CATEGORIES}

QUEUE = "queue"
BLAME = (*(each.name for each in CATEGORIES[:-1] if each.blamed_as == each.name), QUEUE, CATEGORIES[-1].name)
"""What a device's idle time is blamed on; ``queue`` is time after the launch was made."""
