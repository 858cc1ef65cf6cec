"""What a budget must say of each program: the bottleneck that is built in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

# Both name a step of operators that are too small: which of the two is larger is the machine's.
OVERHEAD = ("python", "dispatcher")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the budget of a program's step must say.

    Attributes:
        program: Name of the file, without ``.py``.
        arguments: What it is started with.
        flaw: What is wrong with it, in words.
        found_by: Ways of which one must have found its steps.
        largest: Categories of which one must be the main thread's largest.
        at_least, at_most: Shares of the main thread, by category or ``category/part``.
        frame: Pattern of a function that must be listed among the costliest of some category.
        slowest: Pattern of the reason why the slowest step was slow.
    """

    program: str
    arguments: tuple[str, ...] = ()
    flaw: str
    found_by: tuple[str, ...]
    largest: tuple[str, ...]
    at_least: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    at_most: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    frame: str | None = None
    slowest: str | None = None

    @property
    def name(self) -> str:
        """The program and its arguments."""
        return " ".join((self.program, *self.arguments))


PROGRAMS = (
    Expected(
        program="mlp_adamw",
        arguments=("--no-foreach",),
        flaw="an optimizer that visits parameters one by one",
        found_by=("optimizer",),
        largest=OVERHEAD,
        at_most={"kernel": 0.25},
        frame=r"_single_tensor_adam",
    ),
    Expected(
        program="mlp_adamw",
        arguments=("--foreach",),
        flaw="the same, by operators on lists, which are loops in C++",
        found_by=("optimizer",),
        largest=OVERHEAD,
        at_most={"kernel": 0.35},
    ),
    Expected(
        program="transformer",
        flaw="operators too small for their overhead",
        found_by=("optimizer",),
        largest=OVERHEAD,
        at_most={"kernel": 0.35},
    ),
    Expected(
        program="starved_loader",
        arguments=("--workers", "1"),
        flaw="too few workers for a slow decoder",
        found_by=("optimizer",),
        largest=("wait",),
        at_least={"wait/data": 0.4},
    ),
    Expected(
        program="starved_loader",
        arguments=("--workers", "0"),
        flaw="samples decoded in the loop, in Python",
        found_by=("optimizer",),
        largest=("python",),
        at_least={"python/user": 0.4},
        frame="__getitem__",
    ),
    Expected(
        program="decode",
        flaw="batch 1: operators too small for their overhead",
        found_by=("module", "loop"),
        largest=OVERHEAD,
        at_most={"kernel": 0.35},
    ),
    Expected(
        program="decode",
        arguments=("--compile",),
        flaw="a shape that grows, so that it compiles again",
        found_by=("module", "loop"),
        largest=("python", "guard", "kernel", "compile"),
        slowest=r"compil",
    ),
    Expected(
        program="per_node",
        flaw="a Python loop over the nodes of a graph",
        found_by=("loop",),
        largest=OVERHEAD,
        at_most={"kernel": 0.2},
    ),
    Expected(
        program="per_node",
        arguments=("--vmap", "--steps", "40000"),
        flaw="what torch.vmap costs by itself",
        found_by=("loop",),
        largest=("python",),
        frame=r"vmap|_functorch",
    ),
    Expected(
        program="items",
        flaw="a value read at a time, by .item()",
        found_by=("loop",),
        largest=OVERHEAD,
        at_most={"kernel": 0.2},
        frame=r"item|_local_scalar_dense",
    ),
    Expected(
        program="collected",
        flaw="many live objects, so that collecting garbage takes long",
        found_by=("optimizer",),
        largest=("python",),
        at_least={"python/gc": 0.25},
        slowest=r"garbage collection",
    ),
    Expected(
        program="page_faults",
        flaw="a large temporary, mapped afresh in each step",
        found_by=("loop",),
        largest=("allocation",),
        at_least={"allocation/page_fault": 0.5},
    ),
    Expected(
        program="threads",
        flaw="more threads than cores for small operators",
        found_by=("loop",),
        largest=("wait",),
        at_least={"wait/parallel": 0.6},
        frame=r"OpenMP runtime \((libgomp|libomp|libiomp5)\)",
    ),
    Expected(
        program="gil",
        flaw="another thread that holds the interpreter's lock",
        found_by=("loop",),
        largest=("wait",),
        at_least={"wait/gil": 0.5},
    ),
    Expected(
        program="custom_operator",
        flaw="a slow kernel of one's own, in C++",
        found_by=("loop",),
        largest=("kernel",),
        at_least={"kernel/extension": 0.6},
        frame=r"smoothing",
    ),
    Expected(
        program="matmul",
        flaw="none: arithmetic",
        found_by=("loop",),
        largest=("kernel",),
        at_least={"kernel": 0.8},
    ),
)
