"""Ways to compile a call, or not to: torch.compile as it comes, changes of how it is called, and packages made ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse

_DOCUMENTATION = "https://docs.pytorch.org/docs/stable"


def _ahead_of_time(call: Call) -> Call:
    import torch

    only_tensors = not call.keywords and all(isinstance(value, torch.Tensor) for value in call.args)
    refuse(not only_tensors, "an argument is not a tensor, or is passed by name")
    return replace(call, compile_options=None, build=_built)


def _built(call: Call) -> Callable[..., Any]:
    """The package of a call, compiled for the number of threads of this process unless another process has done so."""
    import torch
    from torch import _inductor as inductor

    file = call.folder / f"aot_inductor-{torch.get_num_threads()}.pt2"
    if not file.exists():
        call.folder.mkdir(parents=True, exist_ok=True)
        module = call.function if isinstance(call.function, torch.nn.Module) else _module_of(call.function)
        with torch.inference_mode(False), torch.no_grad():
            inductor.aoti_compile_and_package(torch.export.export(module, call.args), package_path=str(file))
    loaded: Callable[..., Any] = inductor.aoti_load_package(str(file))
    return loaded


def _module_of(function: Any) -> Any:
    """A function as the module that torch.export takes."""
    import torch

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return Module()


def _compiled(call: Call) -> Call:
    refuse(call.compile_options is not None, "the call is compiled")
    return call.compiled()


def _with_dynamic(call: Call, *, dynamic: bool) -> Call:
    refuse(call.check_compiled().get("dynamic") is dynamic, f"it is compiled with dynamic={dynamic}")
    return call.compiled(dynamic=dynamic)


def _eager(call: Call) -> Call:
    call.check_compiled()
    return replace(call, compile_options=None)


def _frozen(call: Call) -> Call:
    import torch

    refuse(not call.reached(torch.nn.Module), "the call has no module whose weights could be frozen")
    return call.with_options(freezing=True).inside(torch.no_grad)


def _in_one_graph(call: Call) -> Call:
    refuse(bool(call.check_compiled().get("fullgraph")), "it is already compiled with fullgraph=True")
    return call.compiled(fullgraph=True)


def _as_cuda_graph(call: Call) -> Call:
    refuse(call.device == "cpu", "CUDA graphs need a CUDA device")
    return call.compiled(mode="reduce-overhead")


_remedy = partial(Remedy, group="compile", source=f"{_DOCUMENTATION}/generated/torch.compile.html")

REMEDIES = (
    _remedy(
        name="aot_inductor",
        summary="the call is exported for these sizes and compiled ahead of time",
        how="torch._inductor.aoti_compile_and_package(torch.export.export(model, args))",
        safety="changes_semantics",
        shrinks=("guard", "python", "dispatcher", "allocation", "compile"),
        source="https://docs.pytorch.org/docs/stable/torch.compiler_aot_inductor.html",
        apply=_ahead_of_time,
    ),
    _remedy(
        name="compile",
        summary="operators are fused and launched from generated code",
        how="f = torch.compile(f)",
        shrinks=("dispatcher", "allocation", "python", "kernel", "wait"),
        apply=_compiled,
    ),
    Remedy(
        name="cpp_wrapper",
        summary="the code around the kernels is generated in C++ in place of Python",
        how='torch.compile(f, options={"cpp_wrapper": True})',
        shrinks=("python", "allocation"),
        source="https://docs.pytorch.org/tutorials/unstable/inductor_cpp_wrapper_tutorial.html",
        apply=lambda call: call.with_options(cpp_wrapper=True),
    ),
    *(
        Remedy(
            name=f"dynamic_{'on' if dynamic else 'off'}",
            summary="code for any size" if dynamic else "code for exactly these sizes; other sizes are compiled again",
            how=f"torch.compile(f, dynamic={dynamic})",
            shrinks=("guard", "python", "kernel", "compile"),
            source=f"{_DOCUMENTATION}/torch.compiler_dynamic_shapes.html",
            apply=partial(_with_dynamic, dynamic=dynamic),
            group="dynamic",
        )
        for dynamic in (False, True)
    ),
    _remedy(
        name="eager",
        summary="the call is not compiled",
        how="without torch.compile",
        shrinks=("guard", "compile", "python", "kernel"),
        source=f"{_DOCUMENTATION}/torch.compiler_faq.html",
        apply=_eager,
    ),
    Remedy(
        name="freezing",
        summary="weights become constants that are packed and folded when the call is compiled",
        how='with torch.no_grad(): torch.compile(f, options={"freezing": True})',
        safety="changes_semantics",
        shrinks=("kernel", "guard", "python"),
        source=f"{_DOCUMENTATION}/torch.compiler_inductor_profiling.html",
        apply=_frozen,
    ),
    Remedy(
        name="fullgraph",
        summary="torch.compile fails where the graph would break; it shows that there is nothing to gain from breaks",
        how="torch.compile(f, fullgraph=True)",
        shrinks=("guard", "compile"),
        source=f"{_DOCUMENTATION}/generated/torch.compile.html",
        apply=_in_one_graph,
    ),
    _remedy(
        name="max_autotune",
        summary="the compiler tries kernels for matrix products and keeps the fastest",
        how='torch.compile(f, mode="max-autotune-no-cudagraphs")',
        shrinks=("kernel", "wait"),
        apply=lambda call: call.compiled(mode="max-autotune-no-cudagraphs"),
    ),
    _remedy(
        name="reduce_overhead",
        summary="all launches of the call are replayed as one CUDA graph",
        how='torch.compile(f, mode="reduce-overhead")',
        shrinks=("dispatcher", "python", "launch", "allocation"),
        source=f"{_DOCUMENTATION}/torch.compiler_cudagraph_trees.html",
        apply=_as_cuda_graph,
    ),
    Remedy(
        name="size_asserts_off",
        summary="generated code does not check the sizes and strides of its inputs and of what operators return",
        how='torch.compile(f, options={"size_asserts": False}), or TORCHINDUCTOR_SIZE_ASSERTS=0',
        safety="changes_semantics",
        shrinks=("python", "guard"),
        source="https://github.com/pytorch/pytorch/blob/main/torch/_inductor/config.py",
        apply=lambda call: call.with_options(size_asserts=False),
    ),
)
