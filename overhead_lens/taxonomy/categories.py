"""The categories of host time, one row each; ``rules.toml`` says what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Category:
    """One category of the host budget.

    Attributes:
        name: As documents spell it.
        color: In a terminal, a name that rich knows.
        ink: In a picture, ``#rrggbb``.
        hatch: What tells it apart there without colors, drawn by ``report/printers/html.py``; empty for a plain area.
        parts: Its named shares and what belongs to them; empty for one that is listed by guard or frame.
        part_optional: Whether time may have none of them; beside time that has one, it is the part ``other``.
        blamed_as: What a device is idle because of while the host is in it; its own name where empty.
        blame_remark: What a report says beside that.
    """

    name: str
    summary: str
    color: str
    ink: str
    hatch: str
    parts: Mapping[str, str] = field(default_factory=dict)
    part_optional: bool = False
    blamed_as: str = ""
    blame_remark: str = ""


CATEGORIES = (
    Category(
        "python",
        "the interpreter, and crossing between Python and C++",
        "yellow",
        "#b8860b",
        "",
        {
            "user": "your own code",
            "library": "Python code of other installed packages; a frame's file begins with the package's name",
            "framework": "Python code of torch, Triton, NumPy and numba",
            "compiled_runtime": "wrappers of `torch.compile` around generated code and around functions that it leaves alone",
            "binding": "argument parsing and wrapping between Python and C++",
            "extension": "native libraries that Python calls: pybind11, Cython, ctypes, C modules",
            "gc": "garbage collection, with the finalizers that it runs",
            "import": "importing modules, with all code that runs meanwhile but garbage collection",
        },
    ),
    Category(
        "guard",
        "Dynamo's cache lookup, the backend match, the guard tree, the Python code of lambda guards",
        "magenta",
        "#b279a2",
        "x",
    ),
    Category(
        "dispatcher",
        "from an operator's C++ entry to the kernel's first instruction, and back",
        "bright_blue",
        "#4c78a8",
        "/",
        {
            "dispatch": "finding the kernel: keys, boxing",
            "autograd": "recording for the backward pass",
            "op_setup": "shapes, types, TensorIterator",
        },
    ),
    Category(
        "allocation",
        "getting and releasing tensors and their memory",
        "cyan",
        "#2b9a92",
        ".",
        {
            "tensor": "life of tensor and storage objects",
            "storage": "allocators and malloc",
            "page_fault": "first touch of fresh memory",
        },
    ),
    Category(
        "kernel",
        "the arithmetic and data movement itself",
        "green",
        "#54a24b",
        "\\",
        {"extension": "other people's native code below an operator's kernel entry: C++ extensions, what kernels call"},
        part_optional=True,
        blamed_as="dispatcher",
    ),
    Category(
        "launch",
        "putting work on a device's queue",
        "bright_cyan",
        "#1f97d0",
        "|",
        blame_remark="the launching call was running",
    ),
    Category(
        "wait",
        "being blocked: a device, a lock, other threads or ranks, I/O",
        "red",
        "#e45756",
        "-",
        {
            "device": "synchronizing with a device",
            "gil": "the interpreter's lock, held by another thread",
            "lock": "other locks, queues and threads: autograd's, a pool's next job",
            "parallel": "starting a team of threads (OpenMP, TBB) and waiting for it at its region's end",
            "collective": "other ranks: Gloo, NCCL, MPI, their store",
            "io": "files, sockets, pipes, other processes, sleeping",
            "data": "the worker processes of a DataLoader",
        },
        part_optional=True,
        blame_remark="the host was blocked",
    ),
    Category("compile", "tracing and compiling within the measured calls", "bright_magenta", "#e0708f", "+"),
    Category(
        "unattributed",
        "code that no rule matches, or time that the evidence cannot divide; listed function by function",
        "bright_black",
        "#8a827e",
        "x",
        blame_remark="no launch, no events, or the profiler's own pause",
    ),
)

HOST_CATEGORIES = tuple(category.name for category in CATEGORIES)
PARTS = {category.name: tuple(category.parts) for category in CATEGORIES if category.parts}
OPTIONAL_PARTS = frozenset(category.name for category in CATEGORIES if category.part_optional)
OTHER = "other"
"""Time of a category with optional parts that has none."""
COLORS = {category.name: category.color for category in CATEGORIES}
INKS = {category.name: category.ink for category in CATEGORIES}
HATCHES = {category.name: category.hatch for category in CATEGORIES}
BLAMED_AS = tuple(category.blamed_as or category.name for category in CATEGORIES)
"""What idle time is blamed on, by category."""

QUEUE = "queue"
BLAME = (*(name for name in HOST_CATEGORIES[:-1] if name in BLAMED_AS), QUEUE, HOST_CATEGORIES[-1])
"""What a device's idle time is blamed on; ``queue`` is time after the launch was made."""
