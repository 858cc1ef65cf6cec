"""Budgets of stored captures: what is decided from the stacks of one, and of several that are compared."""

from __future__ import annotations

from pathlib import Path

from overhead_lens.budget.make import Budget
from overhead_lens.stored import budget_of, budgets_of
from tests.drawn.captures import LOOP, ROW, complete
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER

COPY = f"main (worker.py:1);{LOOP};{USER};{BINDING};{ENTRY};at::native::copy_impl (libtorch_cpu.so)"
BUILD = f"{COPY};at::TensorIteratorBase::build (libtorch_cpu.so)"


def draw(path: Path, own: int, built: int) -> Path:
    path.mkdir()
    rows = [{**ROW, "process": process, "block": block} for process in range(3) for block in range(4)]
    return complete(path, rows, [f"{COPY} {own}\n{BUILD} {built}"] * 3)


def kernel_ns(budget: Budget) -> int:
    return budget.breakdown.category("kernel").ns


def test_captures_that_are_compared_agree_on_who_does_the_work(tmp_path: Path) -> None:
    base, new = draw(tmp_path / "base", 60, 40), draw(tmp_path / "new", 45, 55)
    assert [kernel_ns(budget_of(path, CLASSIFIER)) for path in (base, new)] == [600, 0]
    assert [kernel_ns(each) for each in budgets_of([base, new], CLASSIFIER)] == [600, 450]
