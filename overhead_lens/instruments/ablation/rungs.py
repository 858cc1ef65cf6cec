"""Builds the rungs of the ablation ladder: one call, each time with one more thing left out. Runs in the worker.

Rungs that this torch or this workload cannot do are kept with the reason. Each compiled rung has a code object of its own,
because Dynamo caches per code object: rungs would otherwise search each other's entries.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch

from overhead_lens.errors import MeasurementError, first_line
from overhead_lens.instruments.ablation import generated
from overhead_lens.remedies.remedy import Context, copied, options_of, with_code
from overhead_lens.worker.workload import NO_COMPILER, Workload, compiled, lacks_compiler

# glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_NEVER = 1 << 30

_NO_GUARD_EVALUATION = partial(torch.compiler.set_stance, "default", skip_guard_eval_unsafe=True)

# Rungs of this ending are timed while malloc keeps its pages.
WARM_HEAP = "_warm_heap"


@dataclass(frozen=True, slots=True)
class RungCall:
    """One way to make the measured call.

    Attributes:
        call: None if the rung cannot be done, and ``reason`` says why.
        context: Entered around each block, outside the timing.
        returns: Whether it returns the workload's result, so that the scenario can check it.
        keywords: Names of the last arguments, which are passed by name.
    """

    name: str
    call: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    context: Context = contextlib.nullcontext
    returns: bool = True
    reason: str | None = None
    keywords: tuple[str, ...] = ()


def build_rungs(workload: Workload, names: list[str]) -> list[RungCall]:
    """Rungs by name, in the order of ``names``; each is called once."""
    builder = _Builder(workload)
    return [builder.rung(name) for name in names]


def keep_heap() -> None:
    """Make malloc keep all its pages for the rest of the process.

    Raises:
        MeasurementError: The C library has no mallopt.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None or not mallopt(_M_MMAP_MAX, 0) or not mallopt(_M_TRIM_THRESHOLD, _NEVER):
        raise MeasurementError("this C library has no mallopt that keeps freed memory")


class _Builder:
    """Builds rungs; shared parts are built once."""

    def __init__(self, workload: Workload) -> None:
        if workload.keywords:
            raise MeasurementError("the call passes arguments by name, which rungs do not")
        self._workload = workload
        self._args = workload.args

    def rung(self, name: str) -> RungCall:
        """One rung, or the reason why it cannot be done."""
        try:
            rung = self._made(name)
            assert rung.call is not None
            with rung.context():
                output = rung.call(*rung.args)
                if rung.returns:
                    self._check(rung.args, output)
        except MeasurementError as error:
            return RungCall(name, reason=str(error))
        except Exception as error:
            return RungCall(name, reason=_why(error))
        return rung

    def _made(self, name: str) -> RungCall:
        eager, args = self._workload.original, self._args
        makers: Mapping[str, Callable[[], RungCall]] = {
            "eager": lambda: RungCall(name, eager, args),
            "compiled": lambda: RungCall(name, self._once_compiled, args),
            "guards_filtered": lambda: RungCall(name, self._own(guard_filter_fn=_no_guards()), args),
            "guard_eval_skipped": lambda: RungCall(name, self._called_once(), args, _NO_GUARD_EVALUATION),
            "direct_bytecode": lambda: RungCall(name, self._direct_bytecode(), args),
            "generated_code": lambda: _bare(name, generated.direct(self._graph_calls)),
            "allocation_hoisted": lambda: _bare(name, generated.direct(generated.hoisted(self._graph_calls))),
            "kernel_binding": lambda: _bare(name, generated.bound(generated.kernel_calls(self._graph_calls))),
            "kernel_ctypes": lambda: _bare(name, generated.by_ctypes(generated.kernel_calls(self._graph_calls))),
            "cpp_wrapper": lambda: RungCall(name, self._own(cpp_wrapper=True), args),
            "cpp_wrapper_guards_filtered": lambda: RungCall(
                name, self._own(cpp_wrapper=True, guard_filter_fn=_no_guards()), args
            ),
            "eager_inference_mode": lambda: RungCall(name, eager, args, torch.inference_mode),
            "compiled_inference_mode": lambda: RungCall(name, self._own(), args, torch.inference_mode),
            "eager_requires_grad": lambda: RungCall(name, eager, self._with_grad()),
            "compiled_requires_grad": lambda: RungCall(name, self._own(), self._with_grad()),
        }
        return makers[name.removesuffix(WARM_HEAP)]()

    def _called_once(self) -> Callable[..., Any]:
        call = self._own()
        call(*self._args)
        return call

    def _direct_bytecode(self) -> Callable[..., Any]:
        try:
            from torch._dynamo.eval_frame import _debug_get_cache_entry_list as cache_entries
        except ImportError:
            raise MeasurementError("this torch does not show its cache entries") from None
        copy = _copied(self._workload.original)
        compiled(copy, self._options())(*self._args)
        entries = cache_entries(copy.__code__)
        if not entries:
            raise MeasurementError("Dynamo compiled nothing: the call runs as it is")
        if len(entries) > 1:
            raise MeasurementError(f"there are {len(entries)} cache entries: no single bytecode represents the call")
        function = with_code(copy, entries[0].code)
        self._refuse_graph_breaks(function)
        return function

    def _refuse_graph_breaks(self, bytecode: types.FunctionType) -> None:
        """Called directly, bytecode after a graph break would run eagerly: only Dynamo compiles it."""
        if any(name.startswith("__resume_at") for name in bytecode.__code__.co_names) or len(self._graph_calls) != len(
            generated.graph_calls(lambda: bytecode(*self._args))
        ):
            raise MeasurementError("the graph breaks: the bytecode goes on in functions that only Dynamo compiles")

    @cached_property
    def _once_compiled(self) -> Callable[..., Any]:
        return self._own()

    @cached_property
    def _graph_calls(self) -> list[generated.GraphCall]:
        self._once_compiled(*self._args)
        return generated.graph_calls(lambda: self._once_compiled(*self._args))

    def _own(self, **options: Any) -> Callable[..., Any]:
        """The workload compiled with a code object of its own."""
        given = self._options()
        if options:
            given["options"] = {**options_of(given.pop("mode", None)), **(given.get("options") or {}), **options}
        return compiled(_copied(self._workload.original), given)

    def _options(self) -> dict[str, Any]:
        return dict(self._workload.compile_options or {})

    def _check(self, args: tuple[Any, ...], output: Any) -> None:
        """Have the scenario check the result of a rung."""
        check = self._workload.scenario.check
        if check is None:
            return
        try:
            check(self._workload.params, _detached(args), _detached(output))
        except Exception as error:
            raise MeasurementError(f"it gives a wrong result: {first_line(error)}"[:300]) from error

    def _with_grad(self) -> tuple[Any, ...]:
        """The arguments with every floating-point tensor requiring a gradient."""
        changed = tuple(map(_requiring_grad, self._args))
        if not any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in changed):
            raise MeasurementError("no argument is a floating-point tensor")
        return changed


def _bare(name: str, call: Callable[[], object]) -> RungCall:
    """A rung with generated code only, without autograd recording, as inside the compiled call."""
    return RungCall(name, call, context=torch.no_grad, returns=False)


def _why(error: Exception) -> str:
    if lacks_compiler(error):
        return NO_COMPILER
    return f"it fails here: {first_line(error)}"[:300]


def _copied(function: Any) -> types.FunctionType:
    """The function with a code object of its own."""
    if not isinstance(function, types.FunctionType):
        raise MeasurementError(f"the variant is a {type(function).__name__}, not a plain Python function")
    return copied(function)


def _detached(value: Any) -> Any:
    """The value with its tensors detached, so that a check may ask for numbers."""
    if isinstance(value, torch.Tensor) and value.requires_grad:
        return value.detach()
    if type(value) in {tuple, list}:
        return type(value)(map(_detached, value))
    return value


def _requiring_grad(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point() and not value.requires_grad:
        return value.detach().clone().requires_grad_()
    return value


def _no_guards() -> Callable[..., Any]:
    """The filter of torch.compile that drops every guard."""
    skip_all: Callable[..., Any] | None = getattr(torch.compiler, "skip_all_guards_unsafe", None)
    if skip_all is None:
        raise MeasurementError("this torch has no torch.compiler.skip_all_guards_unsafe")
    return skip_all
