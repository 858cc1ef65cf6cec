"""Inductor's generated code taken apart, on functions whose kernels are known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.ablation import generated
from overhead_lens.instruments.ablation.generated import GraphCall, KernelCall
from tests.compiler import needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]

X = torch.arange(64.0).reshape(8, 8)
W = torch.linspace(-1, 1, 64).reshape(8, 8)


def fused(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One matrix product and one fused kernel that works in place on its result: three allocations or fewer."""
    y = x @ w
    return torch.relu(y).sum(1), y + 1


def broken(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Two graphs."""
    y = x + w
    torch._dynamo.graph_break()
    return y * 3


def scaled(x: torch.Tensor) -> torch.Tensor:
    """One C++ kernel; its size is an argument when it is dynamic."""
    return x * x.shape[0] + 1


def graphs(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[list[GraphCall], Any]:
    """The generated modules of a call and what the compiled call returns."""
    compiled = torch.compile(function, **options)
    output = compiled(*args)
    return generated.graph_calls(lambda: compiled(*args)), output


@pytest.fixture(scope="module")
def one() -> tuple[list[GraphCall], Any]:
    return graphs(fused, X, W)


@pytest.fixture(scope="module")
def two() -> tuple[list[GraphCall], Any]:
    return graphs(broken, X, W)


@pytest.fixture(scope="module")
def plain() -> tuple[list[GraphCall], Any]:
    return graphs(scaled, X)


def run(call: GraphCall) -> Any:
    return call.call(list(call.args))


def written(kernel: KernelCall) -> list[torch.Tensor]:
    return [value for value in (*kernel.args, *kernel.kwargs.values()) if isinstance(value, torch.Tensor)]


def count_allocations(call: GraphCall, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often one run asks the allocator of its module for memory."""
    function: Any = getattr(call.call, "__func__", call.call)
    asked = []
    for name, value in list(function.__globals__.items()):
        if name.startswith("empty_strided"):

            def counting(*args: Any, _allocate: Any = value) -> Any:
                asked.append(args)
                return _allocate(*args)

            monkeypatch.setitem(function.__globals__, name, counting)
    run(call)
    return len(asked)


def test_the_modules_of_a_call_with_their_arguments(one: Any, two: Any) -> None:
    (call,), output = one
    assert [each.data_ptr() for each in call.args] == [X.data_ptr(), W.data_ptr()]
    assert all(map(torch.equal, run(call), output))
    (first, second), _ = two
    (middle,) = run(first)
    assert torch.equal(middle, X + W)
    assert torch.equal(second.args[0], middle)


def test_recording_is_undone() -> None:
    compiled = torch.compile(scaled)
    compiled(X)
    counts = [len(generated.graph_calls(lambda: compiled(X))) for _ in range(2)]
    assert counts == [1, 1]
    seen = generated.graph_calls(lambda: compiled(X))
    compiled(X)
    assert len(seen) == 1


def test_direct_calls_every_module_each_time(two: Any) -> None:
    calls, _ = two
    seen = []
    noted = [GraphCall(lambda args, at=at: seen.append((at, len(args))), call.args) for at, call in enumerate(calls)]
    call = generated.direct(noted)
    call()
    call()
    assert seen == [(0, 2), (1, 1)] * 2


def test_hoisting_removes_every_allocation(one: Any, two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for calls, _ in (one, two):
        for call, hoisted in zip(calls, generated.hoisted(calls), strict=True):
            assert count_allocations(call, monkeypatch) > 0
            assert count_allocations(hoisted, monkeypatch) == 0


def test_hoisted_code_computes_the_same_into_the_same_memory(one: Any) -> None:
    calls, output = one
    (hoisted,) = generated.hoisted(calls)
    first = run(hoisted)
    places = [each.data_ptr() for each in first]
    for each in first:
        each.fill_(-5.0)
    again = run(hoisted)
    assert all(map(torch.equal, again, output))
    assert [each.data_ptr() for each in again] == places


def test_every_kernel_in_order(one: Any, two: Any, plain: Any) -> None:
    names = [kernel.name for kernel in generated.kernel_calls(one[0])]
    assert (names[0], len(names)) == ("extern_kernels.mm", 2)
    assert names[1].startswith("cpp_fused_")
    assert len(generated.kernel_calls(two[0])) == 2
    (kernel,) = generated.kernel_calls(plain[0])
    assert kernel.name.startswith("cpp_fused_")
    assert kernel.kwargs == {}


def test_an_extern_kernel_keeps_its_output_argument(one: Any) -> None:
    product, fused_ = generated.kernel_calls(one[0])
    assert set(product.kwargs) == {"out"}
    assert product.kwargs["out"].data_ptr() in [each.data_ptr() for each in written(fused_)]


@pytest.mark.parametrize("binding", [generated.bound, generated.by_ctypes])
def test_the_kernels_alone_write_what_the_compiled_call_returns(plain: Any, binding: Any) -> None:
    calls, output = plain
    (kernel,) = kernels = generated.kernel_calls(calls)
    target = kernel.args[-1]
    call = binding(kernels)
    for _ in range(2):
        target.fill_(float("nan"))
        call()
        assert torch.equal(target, output)


def test_in_place_kernels_repeat_exactly(one: Any) -> None:
    calls, output = one
    product, fused_ = kernels = generated.kernel_calls(calls)
    call = generated.bound(kernels)
    for _ in range(3):
        call()
    results = [each for each in written(fused_) for wanted in output if torch.equal(each, wanted)]
    assert len(results) == 2


def test_several_graphs_are_chained_by_their_kernels(two: Any) -> None:
    calls, output = two
    last = generated.kernel_calls(calls)[-1].args[-1]
    kernels = generated.kernel_calls(calls)
    generated.by_ctypes(kernels)()
    assert torch.equal(kernels[-1].args[-1], output)
    assert torch.equal(last, output)


def test_ctypes_takes_c_kernels_only(one: Any) -> None:
    with pytest.raises(MeasurementError, match=r"^extern_kernels\.mm is not a C\+\+ kernel in a shared library$"):
        generated.by_ctypes(generated.kernel_calls(one[0]))


def test_dynamic_sizes_can_be_called_and_not_hoisted() -> None:
    calls, output = graphs(scaled, X[:5], dynamic=True)
    with pytest.raises(MeasurementError, match="^a size is known only in the call: name 's"):
        generated.hoisted(calls)
    (kernel,) = kernels = generated.kernel_calls(calls)
    # Inductor hands them over in an order of its own.
    assert sorted(value for value in kernel.args if isinstance(value, int)) == [5, 8]
    (target,) = [each for each in written(kernel) if torch.equal(each, output)]
    target.fill_(0.0)
    generated.by_ctypes(kernels)()
    assert torch.equal(target, output)


def test_arguments_that_require_a_gradient() -> None:
    """Kernels that write into ``out`` refuse them unless autograd is off, as it is inside the compiled call."""
    calls, output = graphs(lambda x, w: (x @ w).relu(), X.clone().requires_grad_(), W)
    kernels = generated.kernel_calls(calls)
    with torch.no_grad():
        generated.bound(kernels)()
        generated.direct(calls)()
        generated.direct(generated.hoisted(calls))()
    assert any(torch.equal(each, output) for each in written(kernels[-1]))


def test_a_cpp_wrapper_has_no_python_to_take_apart() -> None:
    compiled = torch.compile(scaled, options={"cpp_wrapper": True})
    compiled(W)
    calls = generated.graph_calls(lambda: compiled(W))
    for change in (generated.hoisted, generated.kernel_calls):
        with pytest.raises(MeasurementError, match=r"^the generated code "):
            change(calls)


def test_what_inductor_did_not_generate() -> None:
    with pytest.raises(MeasurementError, match="^the compiled call runs no module that Inductor generated$"):
        generated.graph_calls(lambda: scaled(X))


def partitioned(self: Any, args: list[Any]) -> Any:
    (kept,) = args
    args.clear()
    (output,) = self.partitions[0]([kept])
    return (output,)


def test_code_that_calls_its_kernels_elsewhere_is_refused() -> None:
    with pytest.raises(MeasurementError, match="^the generated code is partitioned"):
        generated.kernel_calls([GraphCall(partitioned.__get__(object()), (X,))])

    def wrapped(args: list[Any]) -> Any:
        return partitioned(X, args)

    def make(model: Any) -> Any:
        return lambda args: model(args)

    with pytest.raises(MeasurementError, match="^the generated code is wrapped by "):
        generated.kernel_calls([GraphCall(make(wrapped), (X,))])


def test_inputs_are_aligned_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device, Inductor copies misaligned inputs before the generated code; here its wrapper is put around code for the CPU."""
    from torch._inductor import utils

    aligned: list[tuple[Any, ...]] = []
    given = ([0], set())[: len(inspect.signature(utils.align_inputs_from_check_idxs).parameters) - 1]
    calls, output = graphs(lambda x, w: (x @ w).relu(), X, W)
    wrapped = [GraphCall(utils.align_inputs_from_check_idxs(call.call, *given), call.args) for call in calls]
    monkeypatch.setattr(utils, "copy_misaligned_inputs", lambda *passed: aligned.append(passed[1:]) or ([], []))
    (hoisted,) = generated.hoisted(wrapped)
    assert torch.equal(hoisted.call(list(hoisted.args))[0], output)
    kernels = generated.kernel_calls(wrapped)
    assert aligned == 2 * [given]
    assert [kernel.name for kernel in kernels] == [kernel.name for kernel in generated.kernel_calls(calls)]


def no_allocation(args: list[Any]) -> Any:
    (kept,) = args
    kept.add_(1)
    return (kept,)


def test_code_that_allocates_nothing() -> None:
    with pytest.raises(MeasurementError, match="^the generated code allocates nothing by empty_strided$"):
        generated.hoisted([GraphCall(no_allocation, (X.clone(),))])


def nothing(args: list[Any]) -> Any:
    args.clear()
    return ()


def test_code_without_kernels() -> None:
    with pytest.raises(MeasurementError, match="^the generated code calls no kernel$"):
        generated.kernel_calls([GraphCall(nothing, ())])
