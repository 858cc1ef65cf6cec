"""Budgets in instructions of drawn call graphs, with exact counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.budget.instructions import instruction_budget, native_symbol
from overhead_lens.budget.model import InstructionBudget, InstructionCategory, InstructionPart
from overhead_lens.errors import InvariantError, MeasurementError
from overhead_lens.readers.callgrind import TRUNCATED, CallGraph, Edge, Function
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier

CLASSIFIER = default_classifier()

EVALUATE = Function("_PyEval_EvalFrameDefault", "libpython3.11.so.1.0")
ADD = Function("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)", "libtorch_cpu.so")
EMPTY = Function("at::detail::empty_cpu(c10::ArrayRef<long>)", "libtorch_cpu.so")
NEUTRAL = Function("helper(int)", "libtorch_cpu.so")
DEEPER = Function("deeper(int)", "libtorch_cpu.so")
GUARD = Function("torch::dynamo::run_root_guard_manager(void*, _frame*)", "libtorch_python.so")
LOOP = Function("at::native::AVX2::vectorized_loop(char**)", "libtorch_cpu.so")


def graph(functions: Sequence[tuple[Function, int]], *edges: tuple[int, int, int], **issues: int) -> CallGraph:
    """Functions with their own instructions; edges of caller, callee, inclusive instructions."""
    drawn = tuple(Edge(caller, callee, 1, inclusive) for caller, callee, inclusive in edges)
    return CallGraph(tuple(each for each, _ in functions), tuple(own for _, own in functions), drawn, issues)


def counts(budget: InstructionBudget) -> dict[str, int]:
    return {each.category: each.count for each in budget.host if each.count}


def parts(budget: InstructionBudget, category: str) -> dict[str, int]:
    return {part.name: part.count for part in budget.category(category).parts if part.count}


def test_a_chain_carries_its_claims_down() -> None:
    drawn = graph([(EVALUATE, 10), (ADD, 20), (EMPTY, 30), (NEUTRAL, 40)], (0, 1, 90), (1, 2, 70), (2, 3, 40))
    budget = instruction_budget(drawn, 1, CLASSIFIER)
    assert counts(budget) == {"python": 10, "dispatcher": 20, "allocation": 70}
    assert parts(budget, "python") == {"interpreter": 10}
    assert [(top.frame, top.count) for top in budget.category("allocation").frames] == [
        ("helper (libtorch_cpu.so)", 40),
        ("at::detail::empty_cpu (libtorch_cpu.so)", 30),
    ]


def test_a_shared_callee_is_split_by_what_each_caller_spent_in_it() -> None:
    # add -70-> helper, empty -30-> helper; helper itself 60, deeper 40.
    drawn = graph([(ADD, 10), (EMPTY, 10), (NEUTRAL, 60), (DEEPER, 40)], (0, 2, 70), (0, 1, 40), (1, 2, 30), (2, 3, 40))
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"dispatcher": 10 + 70, "allocation": 10 + 30}


def test_a_claimed_callee_is_its_own_whoever_calls_it() -> None:
    drawn = graph([(ADD, 10), (GUARD, 10), (LOOP, 100)], (0, 2, 60), (1, 2, 40))
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"dispatcher": 10, "guard": 10 + 40, "kernel": 60}


def test_python_code_inside_a_guard_is_the_guards() -> None:
    drawn = graph([(GUARD, 10), (EVALUATE, 100)], (0, 1, 60), (1, 0, 5))
    # The interpreter's other 40 have no caller: the measured loop's. It calls the guard manager, a cycle.
    budget = instruction_budget(drawn, 1, CLASSIFIER)
    assert sum(counts(budget).values()) == 110
    assert set(counts(budget)) == {"guard", "python"}
    assert budget.category("python").count < 50 < budget.category("guard").count


COPY = Function("at::native::copy_impl(at::Tensor&, at::Tensor const&, bool)", "libtorch_cpu.so")
COPY_ELSEWHERE = Function(
    "at::native::copy_impl(at::Tensor&, at::Tensor const&, bool)", "libtorch_cpu.so", ("elsewhere",)
)
BUILD = Function("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", "libtorch_cpu.so")


@pytest.mark.parametrize(
    ("own", "served", "built", "expected"),
    [
        (60, 0, 59, {"kernel": 60, "dispatcher": 69}),
        (30, 30, 59, {"kernel": 60, "dispatcher": 69}),
        (60, 0, 60, {"dispatcher": 130}),
    ],
)
def test_what_may_work_itself_does_where_most_instructions_under_it_are_its_own(
    own: int, served: int, built: int, expected: dict[str, int]
) -> None:
    # The copy was met in two contexts; what it does in both counts.
    drawn = graph(
        [(ADD, 10), (COPY, own - 10), (COPY_ELSEWHERE, 10), (NEUTRAL, served), (BUILD, built)],
        *((0, 1, own - 10 + served), (0, 2, 10 + built), (1, 3, served), (2, 4, built)),
    )
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == expected


def test_a_cycle_settles_at_the_shares_of_those_who_enter_it() -> None:
    # Two neutral functions call each other; 3 of 4 instructions enter them from the operator, 1 of 4 from the allocation.
    drawn = graph(
        [(ADD, 0), (EMPTY, 0), (NEUTRAL, 100), (DEEPER, 60)],
        (0, 2, 120),
        (1, 2, 40),
        (2, 3, 100),
        (3, 2, 40),
    )
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"dispatcher": 120, "allocation": 40}


def test_a_function_that_calls_itself() -> None:
    drawn = graph([(ADD, 10), (NEUTRAL, 50)], (0, 1, 50), (1, 1, 400))
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"dispatcher": 60}


def test_a_cycle_that_nothing_enters_is_the_loops() -> None:
    drawn = graph([(NEUTRAL, 10), (DEEPER, 10)], (0, 1, 100), (1, 0, 100))
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"python": 20}


def test_what_has_no_caller_was_called_by_the_loop() -> None:
    assert counts(instruction_budget(graph([(NEUTRAL, 7)]), 1, CLASSIFIER)) == {"python": 7}


def test_jump_stubs_belong_to_whoever_jumps_and_code_made_at_run_time_is_a_kernel() -> None:
    stub, compiled = Function("", "", ("a",)), Function("", "", ("b",))
    drawn = graph([(ADD, 10), (stub, 2), (compiled, 900), (NEUTRAL, 20)], (0, 1, 22), (0, 2, 900), (1, 3, 20))
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"dispatcher": 32, "kernel": 900}


def test_what_no_rule_knows_is_unattributed() -> None:
    mystery = Function("mystery", "libunknown.so")
    drawn = graph([(ADD, 10), (mystery, 9)], (0, 1, 9))
    assert counts(instruction_budget(drawn, 1, CLASSIFIER)) == {"dispatcher": 10, "unattributed": 9}
    called_by_the_loop = instruction_budget(graph([(mystery, 9)]), 1, CLASSIFIER)
    assert [(part.name, part.count) for part in called_by_the_loop.host[0].parts if part.count] == [("extension", 9)]


def test_counts_are_per_call_and_close() -> None:
    drawn = graph([(EVALUATE, 1_000), (ADD, 1_001), (EMPTY, 1_001)])
    budget = instruction_budget(drawn, 10, CLASSIFIER)
    assert (budget.count, budget.counted, budget.calls) == (300, 3_002, 10)
    assert counts(budget) == {"python": 100, "dispatcher": 100, "allocation": 100}


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 10**9)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 10**9)), max_size=20),
    st.integers(1, 1_000),
)
def test_any_graph_closes(drawn: list[tuple[int, int]], edges: list[tuple[int, int, int]], calls: int) -> None:
    kinds = (EVALUATE, ADD, EMPTY, NEUTRAL, GUARD, LOOP, Function("", ""))
    functions = [
        (Function(kinds[kind].symbol, kinds[kind].module, (str(i),)), own) for i, (kind, own) in enumerate(drawn)
    ]
    inside = [edge for edge in edges if edge[0] < len(functions) and edge[1] < len(functions)]
    whole = graph(functions, *inside)
    if whole.total_count == 0:
        return
    budget = instruction_budget(whole, calls, CLASSIFIER)
    assert sum(each.count for each in budget.host) == budget.count
    assert abs(budget.count - whole.total_count / calls) <= 0.5
    assert budget == instruction_budget(whole, calls, CLASSIFIER)


def test_cut_off_or_empty_counts_make_no_budget() -> None:
    with pytest.raises(MeasurementError, match="cut off"):
        instruction_budget(graph([(ADD, 1)], **{TRUNCATED: 1}), 1, CLASSIFIER)
    with pytest.raises(MeasurementError, match="no instruction"):
        instruction_budget(graph([(ADD, 0)]), 1, CLASSIFIER)


def test_a_budget_that_does_not_close_cannot_be_made() -> None:
    host = tuple(InstructionCategory(name, 1) for name in HOST_CATEGORIES)
    with pytest.raises(InvariantError, match="do not sum"):
        InstructionBudget(10, 10, 1, host)
    with pytest.raises(InvariantError, match="is not"):
        InstructionBudget(9, 10, 1, host)
    with pytest.raises(InvariantError, match="categories"):
        InstructionBudget(8, 8, 1, host[1:])
    with pytest.raises(InvariantError, match="parts of python"):
        InstructionCategory("python", 3, (InstructionPart("interpreter", 2),))
    with pytest.raises(InvariantError, match="negative"):
        InstructionCategory("python", -1)


@pytest.mark.parametrize(
    ("symbol", "bare"),
    [
        ("malloc", "malloc"),
        ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
        ("lookup(ExtraState*, _frame*)", "lookup"),
        ("at::native::copy_impl(at::Tensor&, bool) [clone .isra.0]", "at::native::copy_impl"),
        ("c10::impl::OperatorEntry::lookup(c10::DispatchKeySet) const", "c10::impl::OperatorEntry::lookup"),
        ("f(int)::{lambda(char**)#1}::operator()(char**) const", "f(int)::{lambda(char**)#1}::operator()"),
        ("(anonymous namespace)::f(void (*)(int))", "(anonymous namespace)::f"),
        ("(below main)", "(below main)"),
        ("a::operator()", "a::operator()"),
        ("", ""),
    ],
)
def test_symbols_are_written_as_the_sampler_writes_them(symbol: str, bare: str) -> None:
    assert native_symbol(symbol) == bare
