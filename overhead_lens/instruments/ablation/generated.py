"""Calls the code that Inductor generated for a call in parts: directly, without its allocations, kernels alone.

Runs in the worker. A compiled call ends in ``call(args)`` of a generated Python module (torch/_inductor/codegen/wrapper.py).
Its statements are read as a syntax tree: ``empty_strided_*`` gets memory, ``assert_*`` checks, any other call made for its effect
is a kernel.
"""

from __future__ import annotations

import ast
import ctypes
import gc
import inspect
import itertools
import textwrap
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from overhead_lens.errors import MeasurementError

_ALLOCATORS = ("empty_strided",)
_NO_KERNELS = (
    *_ALLOCATORS,
    "alloc_from_pool",
    "args.clear",
    "assert_",
    "copy_if_misaligned",
    "get_raw_stream",
    "reinterpret_tensor",
    "torch.cuda.",
)
# The generated code in torch/_inductor/utils.py (align_inputs_from_check_idxs).
_MODEL = "model"
_PARTITIONS = "self.partitions["


@dataclass(frozen=True, slots=True)
class GraphCall:
    """One call of a generated module during one call of the workload."""

    call: Callable[[list[Any]], Any]
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One kernel as the generated module calls it."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def graph_calls(once: Callable[[], object]) -> list[GraphCall]:
    """Calls of generated modules during one call of ``once``, in order.

    Raises:
        MeasurementError: This torch does not show them, or none runs.
    """
    try:
        from torch._inductor.output_code import CompiledFxGraph
    except ImportError:
        raise MeasurementError("this torch keeps compiled graphs elsewhere (no torch._inductor.output_code)") from None
    graphs = [(graph, graph.current_callable) for graph in gc.get_objects() if type(graph) is CompiledFxGraph]
    seen: list[GraphCall] = []
    try:
        for graph, call in graphs:
            graph.current_callable = _noted(call, seen)
        once()
    finally:
        for graph, call in graphs:
            graph.current_callable = call
    if not seen:
        raise MeasurementError("the compiled call runs no module that Inductor generated")
    return seen


def direct(calls: Sequence[GraphCall]) -> Callable[[], object]:
    """A function that calls the generated modules with a fresh list each, as Inductor's wrapper does.

    Run it without grad mode, as AOTAutograd does: kernels refuse to write into an output if an argument requires a gradient.
    """
    names: dict[str, Any] = {}
    lines = []
    for at, graph in enumerate(calls):
        arguments = {f"a{at}_{place}": value for place, value in enumerate(graph.args)}
        names |= {f"call{at}": graph.call, **arguments}
        lines.append(f"call{at}([{', '.join(arguments)}])")
    return _function(lines, names)


def hoisted(calls: Sequence[GraphCall]) -> list[GraphCall]:
    """The same modules with every ``empty_strided_*`` done once, here, instead of in each call.

    Raises:
        MeasurementError: A size is known only in the call, or there is nothing to hoist.
    """
    rebuilt = [_rebuilt(graph, _Hoister()) for graph in calls]
    if not any(count for _, count in rebuilt):
        raise MeasurementError("the generated code allocates nothing by empty_strided")
    return [graph for graph, _ in rebuilt]


def kernel_calls(calls: Sequence[GraphCall]) -> list[KernelCall]:
    """The kernels that the modules call, in order, with the arguments of one real call.

    The arguments keep every buffer of that call alive, so that no two share memory that the call itself would reuse. The input
    of a kernel that works in place is written again by the kernel before it, unless the call was given it: such a buffer changes
    with every call, as in the workload.

    Raises:
        MeasurementError: The modules call none, or their code cannot be read.
    """
    kernels: list[KernelCall] = []

    def record(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        kernels.append(KernelCall(name, function, args, kwargs))
        return function(*args, **kwargs)

    for graph in calls:
        rebuilt, _ = _rebuilt(graph, _Recorder(), _record=record)
        with torch.no_grad():
            rebuilt.call(list(rebuilt.args))
    if not kernels:
        raise MeasurementError("the generated code calls no kernel")
    return kernels


def bound(kernels: Sequence[KernelCall]) -> Callable[[], object]:
    """A function that only calls the kernels, by the binding of the generated code."""
    names: dict[str, Any] = {}
    lines = []
    for at, kernel in enumerate(kernels):
        names[f"k{at}"] = kernel.function
        arguments = [f"a{at}_{place}" for place in range(len(kernel.args))]
        names.update(zip(arguments, kernel.args, strict=True))
        for key, value in kernel.kwargs.items():
            names[f"a{at}_{key}"] = value
            arguments.append(f"{key}=a{at}_{key}")
        lines.append(f"k{at}({', '.join(arguments)})")
    return _function(lines, names)


def by_ctypes(kernels: Sequence[KernelCall]) -> Callable[[], object]:
    """A function that calls the kernels through ctypes, as Inductor did before its C++ binding.

    Raises:
        MeasurementError: A kernel is not a C++ kernel of Inductor's, or takes what ctypes cannot pass.
    """
    names: dict[str, Any] = {"c_void_p": ctypes.c_void_p, "c_long": ctypes.c_long}
    lines = []
    for at, kernel in enumerate(kernels):
        library = getattr(getattr(kernel.function, "__self__", None), "__file__", None)
        if library is None or not Path(library).exists():
            raise MeasurementError(f"{kernel.name} is not a C++ kernel in a shared library")
        names[f"k{at}"] = ctypes.CDLL(library).kernel
        arguments = []
        for place, value in enumerate(kernel.args):
            names[f"a{at}_{place}"] = value
            if isinstance(value, torch.Tensor):
                arguments.append(f"c_void_p(a{at}_{place}.data_ptr())")
            elif isinstance(value, int):
                arguments.append(f"c_long(a{at}_{place})")
            else:
                raise MeasurementError(f"{kernel.name} takes a {type(value).__name__}")
        lines.append(f"k{at}({', '.join(arguments)})")
    return _function(lines, names)


def _noted(call: Callable[[list[Any]], Any], seen: list[GraphCall]) -> Callable[[list[Any]], Any]:
    def noted(args: list[Any]) -> Any:
        seen.append(GraphCall(call, tuple(args)))
        return call(args)

    return noted


class _Hoister(ast.NodeTransformer):
    """Replaces ``buf = empty_strided_cpu(...)`` by ``buf = _hoistedN`` and keeps the calls."""

    def __init__(self) -> None:
        self.hoisted: list[ast.expr] = []

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if isinstance(node.value, ast.Call) and _named(node.value).startswith(_ALLOCATORS):
            self.hoisted.append(node.value)
            node.value = ast.Name(f"_hoisted{len(self.hoisted) - 1}", ast.Load())
        return node


class _Recorder(ast.NodeTransformer):
    """Replaces ``kernel(...)``, as a statement or as an assigned value, by ``_record("kernel", kernel, ...)``."""

    hoisted: Sequence[ast.expr] = ()

    def visit_Assign(self, node: ast.Assign | ast.Expr) -> ast.Assign | ast.Expr:
        call = node.value
        if isinstance(call, ast.Call) and not _named(call).startswith(_NO_KERNELS):
            arguments = [ast.Constant(_named(call)), call.func, *call.args]
            node.value = ast.Call(ast.Name("_record", ast.Load()), arguments, call.keywords)
        return node

    visit_Expr = visit_Assign  # noqa: N815


def _rebuilt(graph: GraphCall, change: _Hoister | _Recorder, **names: Any) -> tuple[GraphCall, int]:
    """The module's ``call`` with its statements changed, and the number of hoisted allocations."""
    function: Any = getattr(graph.call, "__func__", graph.call)
    owner = getattr(graph.call, "__self__", None)
    if (wrapped := _aligned(function)) is not None:
        inner, hoisted_count = _rebuilt(GraphCall(wrapped, graph.args), change, **names)
        return GraphCall(_around(function, inner.call), graph.args), hoisted_count
    if getattr(function, "__closure__", None):
        raise MeasurementError(f"the generated code is wrapped by {function.__qualname__} (CUDA graphs)")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError) as error:
        raise MeasurementError(f"the generated code has no Python source (a C++ wrapper?): {error}") from None
    if any(isinstance(node, ast.Call) and _named(node).startswith(_PARTITIONS) for node in ast.walk(tree)):
        raise MeasurementError("the generated code is partitioned: its kernels are called elsewhere")
    changed = ast.fix_missing_locations(change.visit(tree))
    namespace = {**function.__globals__, **names}
    for at, allocation in enumerate(change.hoisted):
        namespace[f"_hoisted{at}"] = _evaluated(allocation, namespace)
    exec(compile(changed, "<generated code, changed>", "exec"), namespace)
    made = namespace[function.__name__]
    return GraphCall(made if owner is None else made.__get__(owner), graph.args), len(change.hoisted)


def _aligned(function: Any) -> Callable[[list[Any]], Any] | None:
    """What a function calls after it has copied misaligned inputs, as on a device; None for any other function."""
    if not getattr(function, "__qualname__", "").startswith("align_inputs_from_check_idxs."):
        return None
    made: Callable[[list[Any]], Any] = function.__closure__[function.__code__.co_freevars.index(_MODEL)].cell_contents
    return made


def _around(function: Any, model: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """The function, calling another model."""
    cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
    closure = tuple(types.CellType(model) if name == _MODEL else cell for name, cell in cells)
    return types.FunctionType(function.__code__, function.__globals__, function.__name__, closure=closure)


def _evaluated(allocation: ast.expr, namespace: dict[str, Any]) -> Any:
    try:
        return eval(compile(ast.Expression(allocation), "<hoisted>", "eval"), namespace)
    except NameError as error:
        raise MeasurementError(f"a size is known only in the call: {error}") from None


def _named(call: ast.Call) -> str:
    return ast.unparse(call.func)


_numbers = itertools.count()


def _function(lines: Sequence[str], names: dict[str, Any]) -> Callable[[], object]:
    body = "\n    ".join(lines)
    exec(compile(f"def run():\n    {body}\n", f"<rung {next(_numbers)}>", "exec"), names)
    made: Callable[[], object] = names["run"]
    return made
