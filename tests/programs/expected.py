"""What a budget must say of each program, the bottleneck that is built in, and what it says otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

# Both name a step of operators that are too small: which of the two is larger is the machine's.
OVERHEAD = ("python", "dispatcher")

# Of the main thread's time.
_MOST_UNATTRIBUTED = 0.02


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
        program="rollouts",
        flaw="a game that is simulated in Python between the epochs of updates",
        found_by=("optimizer",),
        largest=("python",),
        at_least={"python/user": 0.4},
        frame="simulate",
    ),
    Expected(
        program="adjoint",
        flaw="an autograd function whose forward and backward pass are Python",
        found_by=("optimizer",),
        largest=("python",),
        at_least={"python/user": 0.4},
        frame="step_size",
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
        flaw="a slow kernel of your own, in C++",
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


def complaints(expected: Expected, document: Mapping[str, Any]) -> list[str]:
    """What a run's budget says otherwise than what was built into the program; none where it is right."""
    return list(_complaints(expected, document))


def _complaints(expected: Expected, document: Mapping[str, Any]) -> Iterator[str]:
    shares = shares_of(document)
    largest = largest_of(shares)
    found_by, because = document["steps"]["found_by"], because_of(document)
    if found_by not in expected.found_by:
        yield f"steps found by {found_by}, not {' or '.join(expected.found_by)}"
    if largest not in expected.largest:
        yield f"largest is {largest}, not {' or '.join(expected.largest)}"
    for name, least in expected.at_least.items():
        if shares.get(name, 0.0) < least:
            yield f"{name} is {shares.get(name, 0.0):.0%}, less than {least:.0%}"
    for name, most in expected.at_most.items():
        if shares.get(name, 0.0) > most:
            yield f"{name} is {shares[name]:.0%}, more than {most:.0%}"
    if expected.frame and not any(re.search(expected.frame, frame) for frame in frames_of(document)):
        yield f"no function like {expected.frame} is listed"
    if expected.slowest and not re.search(expected.slowest, because or ""):
        yield f"the slowest step is slow because of {because or 'nothing'}, not {expected.slowest}"
    if shares["unattributed"] > _MOST_UNATTRIBUTED:
        yield f"{shares['unattributed']:.1%} unattributed, more than {_MOST_UNATTRIBUTED:.0%}"


def shares_of(document: Mapping[str, Any]) -> dict[str, float]:
    """Shares of the main thread's time, by category and by ``category/part``."""
    wall_ns = sum(row["ns"] for row in document["host"])
    shares = {}
    for row in document["host"]:
        shares[row["category"]] = row["ns"] / wall_ns
        for part in row["parts"]:
            shares[f"{row['category']}/{part['name']}"] = part["ns"] / wall_ns
    return shares


def largest_of(shares: Mapping[str, float]) -> str:
    """The largest category."""
    return max((name for name in shares if "/" not in name), key=lambda name: shares[name])


def frames_of(document: Mapping[str, Any]) -> list[str]:
    """The costliest functions of all categories."""
    return [each["frame"] for row in document["host"] for each in row["top"]]


def because_of(document: Mapping[str, Any]) -> str | None:
    """Why the slowest step was slow; None where no step is listed."""
    slowest: Sequence[Mapping[str, Any]] = document["slowest"]
    return max(slowest, key=lambda each: each["wall_ns"])["because"] if slowest else None
