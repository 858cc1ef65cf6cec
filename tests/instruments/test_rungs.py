"""The rungs of a call: each does the same work, or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.ablation import worker as ablation
from overhead_lens.instruments.ablation.rungs import RungCall, build_rungs
from overhead_lens.scenario import Scenario
from overhead_lens.studies.ladder.analysis import RUNGS
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.workload import Workload
from tests.compiler import needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]

GENERATED = ("generated_code", "allocation_hoisted", "kernel_binding", "kernel_ctypes")
X, W = torch.linspace(-3, 3, 12), torch.linspace(1, 2, 12)
FACTOR = 2.0


@dataclass(frozen=True)
class Params:
    """None."""


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * FACTOR + w


def breaks(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def _inner(y: torch.Tensor) -> torch.Tensor:
    z = y + 1
    torch._dynamo.graph_break()
    return z * 2


def breaks_in_a_tail_call(x: torch.Tensor) -> torch.Tensor:
    """Its own bytecode resumes nowhere: Dynamo compiles what it calls."""
    y = x * 3
    return _inner(y)


def in_place(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


def keyword(x: torch.Tensor, *, factor: float = 3.0) -> torch.Tensor:
    return x * factor


def forward(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return layer(x).relu()


def of_integers(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def of_numbers(x: int) -> int:
    return x + 1


FILTERED = ("guards_filtered", "cpp_wrapper_guards_filtered")
NO_FILTER = (
    {}
    if hasattr(torch.compiler, "skip_all_guards_unsafe")
    else dict.fromkeys(FILTERED, "this torch has no torch.compiler.skip_all_guards_unsafe")
)
needs_filter = pytest.mark.skipif(bool(NO_FILTER), reason="this torch has no torch.compiler.skip_all_guards_unsafe")


def workload(call: Any, *args: Any, check: Callable[..., None] | None = None, **options: Any) -> Workload:
    scenario = Scenario("t", "t", "t", Params, lambda _: args, {"t": call}, check)
    return Workload(scenario, "t", Params(), call, call, args, "cpu", make_measured_loop(len(args)), None, options)


def built(work: Workload, *names: str) -> dict[str, RungCall]:
    return {rung.name: rung for rung in build_rungs(work, list(names or RUNGS))}


def reasons(rungs: dict[str, RungCall]) -> dict[str, str]:
    return {name: rung.reason for name, rung in rungs.items() if rung.reason is not None}


def output(rung: RungCall) -> Any:
    assert rung.call is not None, rung.reason
    with rung.context():
        return rung.call(*rung.args)


def code_of(rung: RungCall) -> Any:
    """The code object under which Dynamo keeps a compiled rung's entries."""
    return rung.call._torchdynamo_orig_callable.__code__  # type: ignore[union-attr]


def entries(code: Any) -> list[Any]:
    found: list[Any] = torch._dynamo.eval_frame._debug_get_cache_entry_list(code)
    return found


@pytest.fixture(scope="module")
def usual() -> dict[str, RungCall]:
    """All rungs of a call that every rung can do."""
    return built(workload(scaled, X, W))


def test_every_rung_can_be_done_and_returns_what_the_eager_call_does(usual: dict[str, RungCall]) -> None:
    assert reasons(usual) == NO_FILTER
    assert list(usual) == list(RUNGS)
    for name, rung in usual.items():
        if name in NO_FILTER:
            assert rung.call is None, name
        elif name not in GENERATED:
            assert rung.returns, name
            assert torch.equal(output(rung), scaled(X, W)), name
        else:
            assert (rung.returns, rung.args, output(rung)) == (False, (), None), name


def test_compiled_rungs_have_code_objects_and_so_entries_of_their_own(usual: dict[str, RungCall]) -> None:
    compiled = [
        "compiled",
        "guards_filtered",
        "guard_eval_skipped",
        "cpp_wrapper",
        "cpp_wrapper_guards_filtered",
        "compiled_inference_mode",
        "compiled_requires_grad",
    ]
    codes = [code_of(usual[name]) for name in compiled if name not in NO_FILTER]
    assert len({id(code) for code in codes}) == len(set(codes)) == len(compiled) - len(NO_FILTER)
    assert [len(entries(code)) for code in codes] == [1] * len(codes)
    assert entries(scaled.__code__) == []


def test_rungs_of_a_function_under_no_grad_have_code_objects_of_their_own() -> None:
    """Dynamo takes the wrapper of no_grad for torch's own code, and calls it by a function."""
    found = built(workload(torch.no_grad()(scaled), X, W), "compiled", "compiled_inference_mode")
    assert len({id(code_of(rung)) for rung in found.values()}) == 2


@needs_filter
def test_guards_filtered_has_no_guard_left(usual: dict[str, RungCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves(name: str) -> int:
        (entry,) = entries(code_of(usual[name]))
        root = entry.guard_manager.root
        return len(root.get_leaf_guards()) + len(root.get_accessors())

    assert leaves("compiled") > 0
    assert (leaves("guards_filtered"), leaves("cpp_wrapper_guards_filtered")) == (0, 0)
    monkeypatch.setitem(globals(), "FACTOR", 100.0)
    assert torch.equal(output(usual["guards_filtered"]), X * 2.0 + W)


def test_skipping_guards_applies_when_the_call_is_made(
    usual: dict[str, RungCall], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed global is what a guard would see: inside the rung's context the old entry runs, outside it is compiled anew."""
    rung = built(workload(scaled, X, W), "guard_eval_skipped")["guard_eval_skipped"]
    monkeypatch.setitem(globals(), "FACTOR", 50.0)
    assert torch.equal(output(rung), X * 2.0 + W)
    assert rung.call is not None
    assert torch.equal(rung.call(X, W), X * 50.0 + W)


def test_direct_bytecode_runs_the_compiled_graph_without_dynamo(usual: dict[str, RungCall]) -> None:
    call: Any = usual["direct_bytecode"].call
    assert any(name.startswith("__compiled_fn") for name in call.__code__.co_names)
    assert not hasattr(call, "_torchdynamo_orig_callable")
    assert torch.equal(call(X + 1, W), scaled(X + 1, W))


def test_contexts_are_entered_around_the_calls(usual: dict[str, RungCall]) -> None:
    assert output(usual["compiled_inference_mode"]).is_inference()
    assert output(usual["eager_inference_mode"]).is_inference()
    assert not output(usual["compiled"]).is_inference()
    assert output(usual["compiled_requires_grad"]).requires_grad
    assert output(usual["eager_requires_grad"]).requires_grad
    assert not X.requires_grad
    for name in GENERATED:
        with usual[name].context():
            assert not torch.is_grad_enabled(), name


@pytest.mark.parametrize("call", [breaks, breaks_in_a_tail_call])
def test_a_graph_break_refuses_the_bytecode_alone(call: Any) -> None:
    rungs = built(workload(call, X), "compiled", "direct_bytecode", "generated_code", "kernel_ctypes")
    assert reasons(rungs) == {
        "direct_bytecode": "the graph breaks: the bytecode goes on in functions that only Dynamo compiles"
    }
    assert torch.equal(output(rungs["compiled"]), call(X))


def test_nothing_to_compile() -> None:
    found = reasons(built(workload(of_numbers, 1), "eager", "compiled", "direct_bytecode", "generated_code"))
    assert found == {
        "direct_bytecode": "Dynamo compiled nothing: the call runs as it is",
        "generated_code": "the compiled call runs no module that Inductor generated",
    }


def test_what_is_no_function_has_eager_rungs_only() -> None:
    found = reasons(built(workload(torch.nn.ReLU(), X)))
    assert set(found) == {name for name in RUNGS if not name.startswith("eager")}
    why = {name: "the variant is a ReLU, not a plain Python function" for name in found}
    assert found == {**why, **NO_FILTER}


def test_integers_require_no_gradient() -> None:
    found = reasons(
        built(workload(of_integers, torch.arange(4)), "compiled", "eager_requires_grad", "compiled_requires_grad")
    )
    assert found == dict.fromkeys(
        ("eager_requires_grad", "compiled_requires_grad"), "no argument is a floating-point tensor"
    )


def test_arguments_that_are_written_and_modules_and_keyword_defaults() -> None:
    found = reasons(built(workload(in_place, torch.zeros(4))))
    assert set(found) == {"compiled_requires_grad", "eager_requires_grad", *NO_FILTER}
    layer = torch.nn.Linear(12, 12)
    names = ("compiled", "direct_bytecode", *GENERATED)
    rungs = built(workload(forward, layer, X.expand(5, 12)), *names)
    assert reasons(rungs) == {"kernel_ctypes": "extern_kernels.addmm is not a C++ kernel in a shared library"}
    torch.testing.assert_close(output(rungs["direct_bytecode"]), forward(layer, X.expand(5, 12)))
    assert torch.equal(output(built(workload(keyword, X), "direct_bytecode")["direct_bytecode"]), X * 3)


def test_a_wrong_result_is_not_timed() -> None:
    def check(_params: Params, _args: Any, result: torch.Tensor) -> None:
        if result.requires_grad or result.is_inference():
            raise ValueError("seven\nand more")

    found = reasons(built(workload(scaled, X, W, check=check), "eager", "eager_inference_mode", "eager_requires_grad"))
    assert found == {"eager_inference_mode": "it gives a wrong result: ValueError: seven"}


@needs_filter
def test_a_mode_goes_with_the_rungs_that_need_options() -> None:
    rungs = built(workload(scaled, X, W, mode="max-autotune-no-cudagraphs"), "guards_filtered", "cpp_wrapper")
    assert reasons(rungs) == {}
    assert torch.equal(output(rungs["guards_filtered"]), scaled(X, W))


def test_rungs_are_timed_in_rounds_and_one_that_fails_later_gets_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "_WARM_UP_NS", 1_000)
    monkeypatch.setattr(ablation, "keep_heap", lambda: None)
    calls = []

    def fragile(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        if len(calls) > 2:
            raise RuntimeError("worn out\nfor good")
        return x

    made = ablation.RungTimer.of(workload(fragile, X), ["eager", "eager_inference_mode", "eager_warm_heap"])
    found = made.measure(1_000, 4, 10**9, 7)
    assert set(found["reasons"].values()) == {
        "it fails here: RuntimeError: worn out",
        "it fails when repeated: RuntimeError: worn out",
    }
    assert found["rows"] == []

    made = ablation.RungTimer.of(
        workload(of_integers, X), ["eager", "kernel_of_nothing", "eager_inference_mode", "eager_warm_heap"]
    )
    found = made.measure(20_000, 4, 10**9, 7)
    assert [name for name, reason in found["reasons"].items() if reason] == ["kernel_of_nothing"]
    rounds = [sorted(row["rung"] for row in found["rows"] if row["block"] == number) for number in range(4)]
    assert rounds == [["eager", "eager_inference_mode", "eager_warm_heap"]] * 4
    assert [row["rung"] for row in found["rows"][8:]] == ["eager_warm_heap"] * 4
    assert {type(value) for row in found["rows"] for name, value in row.items() if name != "rung"} == {int}


def test_a_rung_that_fails_between_rounds_is_left_out_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation.RungTimer, "_settled_calls", lambda *_: 1)
    left = [3]

    def fragile(x: torch.Tensor) -> torch.Tensor:
        left[0] -= torch.is_inference_mode_enabled()
        if left[0] < 0 and torch.is_inference_mode_enabled():
            raise RuntimeError("worn out")
        return x

    found = ablation.RungTimer.of(workload(fragile, X), ["eager", "eager_inference_mode"]).measure(1, 4, 10**9, 7)
    assert found["reasons"] == {
        "eager": None,
        "eager_inference_mode": "it fails when repeated: RuntimeError: worn out",
    }
    assert [(row["rung"], row["block"]) for row in found["rows"]] == [("eager", number) for number in range(4)]


def test_rungs_take_no_arguments_by_name() -> None:
    with pytest.raises(MeasurementError, match="^the call passes arguments by name, which rungs do not$"):
        built(replace(workload(scaled, X, W), keywords=("w",)))


def test_what_a_torch_lacks_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    work = workload(scaled, X, W)
    monkeypatch.delattr(torch.compiler, "skip_all_guards_unsafe", raising=False)
    monkeypatch.delattr(torch._dynamo.eval_frame, "_debug_get_cache_entry_list")
    assert reasons(built(work, "guards_filtered", "direct_bytecode")) == {
        "guards_filtered": "this torch has no torch.compiler.skip_all_guards_unsafe",
        "direct_bytecode": "this torch does not show its cache entries",
    }
