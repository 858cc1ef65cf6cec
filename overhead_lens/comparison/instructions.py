"""Compares two budgets in instructions, per category and function.

Counts need no statistics: a call takes the same instructions every time, up to ``SAME_SHARE`` by where its memory lies
(docs/methodology/instructions.md). A larger difference is blamed on every category that changed in the call's direction by more
than that::

                -0.2 %   0   +0.2 %            of the base's instructions per call
    same          [ ---- | ---- ]
    more                 |      ] ---->        blamed: categories to the right of +0.2 %; if there is none, the largest
    fewer   <---- [      |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from overhead_lens.budget.model import InstructionBudget, InstructionCategory
from overhead_lens.contract import Rounded, derive
from overhead_lens.errors import require
from overhead_lens.taxonomy.categories import HOST_CATEGORIES

SAME_SHARE = 0.002

_MOST = 5


@dataclass(frozen=True, slots=True)
class InstructionContributor:
    """A function whose own instructions per call in a category changed."""

    name: str
    delta_count: int


@dataclass(frozen=True, slots=True)
class InstructionChange:
    """A category's difference in instructions per call."""

    category: str
    base_count: int
    new_count: int
    moved: tuple[InstructionContributor, ...]
    delta_count: int = field(init=False)

    def __post_init__(self) -> None:
        derive(self, delta_count=self.new_count - self.base_count)


@dataclass(frozen=True, slots=True)
class InstructionDelta:
    """The difference in instructions per call."""

    base_count: int
    new_count: int
    delta_count: int = field(init=False)
    ratio: Annotated[float | None, Rounded(6)] = field(init=False)
    verdict: str  # ``more``, ``fewer`` or ``same``.
    host: tuple[InstructionChange, ...]  # Every category in the taxonomy's order.
    blame: tuple[str, ...]  # Categories that changed in the verdict's direction, largest first; empty for ``same``.
    sentence: str

    def __post_init__(self) -> None:
        ratio = self.new_count / self.base_count if self.base_count else None
        derive(self, delta_count=self.new_count - self.base_count, ratio=ratio)
        names = tuple(change.category for change in self.host)
        require(names == HOST_CATEGORIES, "a difference in instructions lists every category once, in order")
        closes = sum(change.delta_count for change in self.host) == self.delta_count
        require(closes, "the categories' differences in instructions do not sum to the call's")


def compare_instructions(base: InstructionBudget, new: InstructionBudget) -> InstructionDelta:
    """The difference of two budgets of comparable captures."""
    host = tuple(_change(before, after) for before, after in zip(base.host, new.host, strict=True))
    delta, margin = new.count - base.count, SAME_SHARE * base.count
    verdict = "same" if abs(delta) <= margin else "more" if delta > 0 else "fewer"
    blame = _blame(host, delta, margin) if verdict != "same" else ()
    return InstructionDelta(base.count, new.count, verdict, host, blame, _sentence(base.count, delta, host, blame))


def mismatches(base: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """A line for every name whose values differ."""
    names = dict.fromkeys((*base, *new))
    return [
        f"{name}: {base.get(name)!r} against {new.get(name)!r}" for name in names if base.get(name) != new.get(name)
    ]


def changed(base: Mapping[str, int], new: Mapping[str, int]) -> list[tuple[str, int]]:
    """The names whose numbers differ, each with new less base, the largest first."""
    deltas = {name: new.get(name, 0) - base.get(name, 0) for name in {**base, **new}}
    return sorted(((name, delta) for name, delta in deltas.items() if delta), key=lambda each: (-abs(each[1]), each[0]))


def signed_count(count: float) -> str:
    """``+1,200``, ``-35``, ``+0``."""
    return f"{round(count):+,}"


def signed_share(count: float, base_count: int) -> str:
    """A difference as a share of the base's instructions; empty if the base has none."""
    return f"{count / base_count:+.2%}" if base_count else ""


def _change(before: InstructionCategory, after: InstructionCategory) -> InstructionChange:
    old, recent = ({frame.frame: frame.count for frame in side.frames} for side in (before, after))
    moved = tuple(InstructionContributor(*change) for change in changed(old, recent)[:_MOST])
    return InstructionChange(before.category, before.count, after.count, moved)


def _blame(host: Sequence[InstructionChange], delta: int, margin: float) -> tuple[str, ...]:
    sign = 1 if delta > 0 else -1
    same_way = [change for change in host if sign * change.delta_count > 0]
    ranked = sorted(same_way, key=lambda change: -abs(change.delta_count))
    guilty = [change for change in ranked if abs(change.delta_count) > margin] or ranked[:1]
    return tuple(change.category for change in guilty)


def _sentence(base_count: int, delta: int, host: Sequence[InstructionChange], blame: Sequence[str]) -> str:
    whole = f"{signed_count(delta)} instructions per call ({signed_share(delta, base_count)})"
    if not blame:
        return f"no difference beyond {SAME_SHARE:.1%}: {whole}"
    by_name = {change.category: change for change in host}
    return f"{whole}: {', '.join(f'{name} {signed_count(by_name[name].delta_count)}' for name in blame)}"
