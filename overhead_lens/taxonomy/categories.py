"""The categories of host time, one row each; ``rules.toml`` says what belongs to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Category:
    """One category of the host budget.

    Attributes:
        name: Name in documents.
        parts: Named shares; empty for a category that is listed by kernel, guard or frame.
        color: Color in a terminal, as rich names it.
        ink: Color in a picture, ``#rrggbb``.
        summary: Its content in words.
        blamed_as: The cause of a device's idle time while the host is in this category.
        blame_remark: A report's remark on that cause.
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

HOST_CATEGORIES = tuple(category.name for category in CATEGORIES)
PARTS = {category.name: category.parts for category in CATEGORIES if category.parts}
COLORS = {category.name: category.color for category in CATEGORIES}

QUEUE = "queue"
BLAME = (*(row.name for row in CATEGORIES[:-1] if row.blamed_as == row.name), QUEUE, CATEGORIES[-1].name)
"""Causes of a device's idle time; ``queue`` is time after the launch."""
