"""The difference of two budgets in instructions, per category, with the functions it lies in.

Counts have no spread that a statistic could speak of: counted again, the same call takes the same instructions, but for where
its memory comes to lie, which is worth less than ``SAME_SHARE`` of the call. What a call took more than that is blamed on every
category that moved in the call's direction by more than that::

                -0.1 %   0   +0.1 %            of the base's instructions per call
    same          [ ---- | ---- ]
    more                 |      ] ---->        blamed: categories to the right of +0.1 %; if there is none, the largest
    fewer   <---- [      |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from overhead_lens.budget.model import InstructionBudget, InstructionCategory
from overhead_lens.errors import InvariantError
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES

SAME_SHARE = 0.001

_MOST = 5
_MACHINE_INDEPENDENT = ("torch", "python", "libc")


class CountedCall(Protocol):
    """What ``meta.json`` says of a call whose instructions were counted."""

    @property
    def subject(self) -> Subject:
        """What was counted."""

    @property
    def compile_options(self) -> Mapping[str, Any] | None:
        """Keyword arguments of torch.compile; None for an eager call."""

    @property
    def environment(self) -> Mapping[str, Any]:
        """The machine, the interpreter and their versions."""


@dataclass(frozen=True, slots=True)
class InstructionMove:
    """A function whose own instructions in a category became more or fewer, per call."""

    name: str
    delta_count: int


@dataclass(frozen=True, slots=True)
class InstructionChange:
    """One category in instructions per call."""

    category: str
    base_count: int
    new_count: int
    moved: tuple[InstructionMove, ...] = ()

    @property
    def delta_count(self) -> int:
        """New less base."""
        return self.new_count - self.base_count


@dataclass(frozen=True, slots=True)
class InstructionDelta:
    """The difference of two budgets in instructions per call, new less base.

    Attributes:
        base_count: Instructions of one call of the base.
        new_count: Of the new one.
        verdict: ``more``, ``fewer`` or ``same``.
        host: Every category of the taxonomy, in its order.
        blame: Categories that moved in the verdict's direction, largest first; none where nothing moved.
        sentence: What changed, in words.
    """

    base_count: int
    new_count: int
    verdict: str
    host: tuple[InstructionChange, ...]
    blame: tuple[str, ...]
    sentence: str

    def __post_init__(self) -> None:
        if tuple(change.category for change in self.host) != HOST_CATEGORIES:
            raise InvariantError("a difference in instructions lists every category once, in order")
        if sum(change.delta_count for change in self.host) != self.delta_count:
            raise InvariantError("the categories' differences in instructions do not sum to the call's")

    @property
    def delta_count(self) -> int:
        """New less base."""
        return self.new_count - self.base_count

    def change(self, category: str) -> InstructionChange:
        """That of one category."""
        return self.host[HOST_CATEGORIES.index(category)]


def compare_instructions(base: InstructionBudget, new: InstructionBudget) -> InstructionDelta:
    """The difference of two budgets of comparable captures."""
    host = tuple(_change(before, after) for before, after in zip(base.host, new.host, strict=True))
    delta, margin = new.count - base.count, SAME_SHARE * base.count
    verdict = "same" if abs(delta) <= margin else "more" if delta > 0 else "fewer"
    blame = _blame(host, delta, margin) if verdict != "same" else ()
    return InstructionDelta(base.count, new.count, verdict, host, blame, _sentence(base.count, delta, host, blame))


def instruction_differences(base: CountedCall, new: CountedCall) -> list[str]:
    """What makes the counts of two captures incomparable, one line per point.

    The machine does not: valgrind shows every program the same processor.
    """
    sides = [_about(each) for each in (base, new)]
    return [
        f"{name}: {sides[0][name]!r} against {sides[1][name]!r}"
        for name in sides[0]
        if sides[0][name] != sides[1][name]
    ]


def _about(call: CountedCall) -> dict[str, object]:
    subject = asdict(call.subject)
    kind = subject.pop("kind")
    about = {kind: subject.pop("name"), **subject, "compile_options": call.compile_options}
    return {**about, **{key: call.environment.get(key) for key in _MACHINE_INDEPENDENT}}


def signed_count(count: float) -> str:
    """``+1,200``, ``-35``, ``+0``."""
    return f"{round(count):+,}"


def signed_share(count: float, base_count: int) -> str:
    """A difference as a share of the base's instructions; empty where the base has none."""
    return f"{count / base_count:+.2%}" if base_count else ""


def _change(before: InstructionCategory, after: InstructionCategory) -> InstructionChange:
    sides = [{each.frame: each.count for each in side.frames} for side in (before, after)]
    found = [InstructionMove(name, sides[1].get(name, 0) - sides[0].get(name, 0)) for name in {*sides[0], *sides[1]}]
    moved = sorted((move for move in found if move.delta_count), key=lambda move: (-abs(move.delta_count), move.name))
    return InstructionChange(before.category, before.count, after.count, tuple(moved[:_MOST]))


def _blame(host: Sequence[InstructionChange], delta: int, margin: float) -> tuple[str, ...]:
    sign = 1 if delta > 0 else -1
    ranked = sorted(
        (change for change in host if sign * change.delta_count > 0), key=lambda each: -abs(each.delta_count)
    )
    guilty = [change for change in ranked if abs(change.delta_count) > margin] or ranked[:1]
    return tuple(change.category for change in guilty)


def _sentence(base_count: int, delta: int, host: Sequence[InstructionChange], blame: Sequence[str]) -> str:
    whole = f"{signed_count(delta)} instructions per call ({signed_share(delta, base_count)})"
    if not blame:
        return f"no difference beyond {SAME_SHARE:.1%}: {whole}"
    by_name = {change.category: change for change in host}
    return f"{whole}: {', '.join(f'{name} {signed_count(by_name[name].delta_count)}' for name in blame)}"
