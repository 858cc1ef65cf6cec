"""How long the kernels of a step take, with the threads that they wait for: by clocks, without stacks (pure).

A program is clocked at its own sizes and at sizes at which kernels have next to nothing to do and all else is as before. What a
step takes longer at its own sizes is the time of its kernels::

    own sizes, threads as usual    |--Python--|--dispatcher--|--allocation--|=======kernels=======|~threads~|
    smallest sizes, one thread     |--Python--|--dispatcher--|--allocation--|=|

Both keep malloc's pages, so that page faults, which are no kernel's time, are in neither; where the step is shorter with fresh
pages, that counts. Three differences are taken:

=============  ==============================================================================================
``walls``      of the steps: bounds the truth from above, since kernels on much data displace the caches, and
               what runs after them takes longer; says nothing of programs that wait for other threads or ranks
``trace``      of the operators' own time in a trace: what they displace outside of themselves is not in it
``operators``  of the time in functions that are clocked by themselves, each of them a kernel in a step: exact
=============  ==============================================================================================

The truth lies between those that hold for a program. What a kernel takes at the smallest sizes is in no difference: up to
``KERNEL_NS`` for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from scripts.validation.wild.listed import Difference

# A softmax of one element takes 230 ns longer than of none, an addition 60 ns; of a product of 2 x 2 numbers nothing can be seen.
KERNEL_NS = 230

# A budget may be so far off, in shares of a step.
TOLERATED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Reading:
    """What ``clocked.py`` reads of a step.

    Attributes:
        step_ns: Its time.
        around_ns: Time in functions that are clocked by themselves.
        operators_ns: Own time of a trace's operators.
        kernels: How many kernels there are.
    """

    step_ns: float
    around_ns: float
    operators_ns: float
    kernels: float


Readings = Mapping[str, Reading]
"""A program's readings by the ways in which it was run, see ``measuring.WAYS``."""


def least(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> Readings:
    """The least of each reading over rounds: what else runs only adds to it."""
    return {
        way: Reading(**{key: min(each[way][key] for each in rounds) for key in Reading.__slots__}) for way in rounds[0]
    }


@dataclass(frozen=True, slots=True)
class Bounds:
    """The share of a step that kernels and waiting for their threads take."""

    low: float
    high: float

    def off(self, share: float) -> float:
        """How far a share lies outside, negative below."""
        return min(share - self.low, 0.0) + max(share - self.high, 0.0)


def share(readings: Readings, by: Difference) -> float:
    """What a step takes longer at its own sizes by one of the differences, as a share of the step."""
    value = attrgetter({"walls": "step_ns", "operators": "around_ns", "trace": "operators_ns"}[by])
    longer_ns = min(value(readings["usual"]), value(readings["kept"])) - value(readings["smallest"])
    return float(max(longer_ns, 0.0) / readings["usual"].step_ns)


def bounds(readings: Readings, by: Sequence[Difference]) -> Bounds:
    """The truth about a step, by the differences that hold for the program."""
    shares = [share(readings, each) for each in by]
    fixed = readings["smallest"].kernels * KERNEL_NS / readings["usual"].step_ns
    return Bounds(min(shares), min(max(shares) + fixed, 1.0))
