"""Compiled ahead of time: no Dynamo, no guards, no Python between the kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse


def _apply(call: Call) -> Call:
    import torch
    from torch import _inductor as inductor

    has_packages = hasattr(inductor, "aoti_compile_and_package")
    refuse(not has_packages, "this torch has no torch._inductor.aoti_compile_and_package")
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


REMEDY = Remedy(
    name="aot_inductor",
    summary="the call is exported for these sizes and compiled ahead of time",
    how="torch._inductor.aoti_compile_and_package(torch.export.export(model, args))",
    safety="changes_semantics",
    shrinks=("guard", "python", "dispatcher", "allocation", "compile"),
    source="https://docs.pytorch.org/docs/stable/torch.compiler_aot_inductor.html",
    apply=_apply,
    group="compile",
)
