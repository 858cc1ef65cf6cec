"""Marks the loops of a program's main flow, in its syntax tree.

The main flow is the module's own code and the functions that nothing but it calls by name: what could be handed to
``torch.compile``, a decorated function, a method or anything that one of those calls, stays as it is written, since a compiler
would see the marks. A mark is a call of a builtin::

    for batch in loader:            for batch in __overhead_lens_each_0__(loader):
        train(batch)                    train(batch)
                                    __overhead_lens_left_0__()
                                    __overhead_lens_each_1__(())
    while queue:                    while queue:
        train(queue)                    __overhead_lens_tick_1__()
                                        train(queue)
                                    __overhead_lens_left_1__()

A ``for`` loop that is not that of the steps costs nothing from its next start on: the builtin returns the items. A tick costs
some 25 ns all the time, so that a ``while`` loop is marked only where its body calls something. The call before it tells that it
starts.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

EACH, TICK, LEFT = "__overhead_lens_each_{}__", "__overhead_lens_tick_{}__", "__overhead_lens_left_{}__"
STEP = "__overhead_lens_step__"

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_Function, ast.ClassDef, ast.Lambda)
_Loop = (ast.For, ast.While)
_Suspending = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


def _iterates_at_items() -> bool:
    """Whether this Python locates an error at a loop's start in the items, rather than in the whole statement."""
    loop = compile("for x in y:\n    pass", "", "exec")
    start = next(each for each in dis.get_instructions(loop) if each.opname == "GET_ITER")
    return getattr(getattr(start, "positions", None), "col_offset", 0) != 0


_ITERATES_AT_ITEMS = _iterates_at_items()


@dataclass(frozen=True)
class Loop:
    """A marked loop: its place and the lines of its body."""

    file: str
    line: int
    last_line: int


@dataclass(frozen=True)
class StepPlace:
    """The user's definition of a step: a line, or a function's entry; empty by default."""

    line: int = 0
    function: str = ""


def marked(
    source: bytes, file: str, *, loops: bool, step: StepPlace | None = None, first: int = 0
) -> tuple[CodeType, list[Loop]]:
    """Compile a program's source with its marks; returns the code and its loops, which are numbered from ``first`` on.

    Raises:
        SyntaxError: As Python's own compiler says it.
    """
    tree = ast.parse(source, file)
    if step is not None:
        _mark_step(tree, step)
    places: list[Loop] = []
    if loops:
        for body in _main_flow(tree):
            _mark_loops(body, file, places, first)
    return compile(tree, file, "exec", dont_inherit=True), places


def _main_flow(tree: ast.Module) -> list[Any]:
    """The module and the functions of its main flow: nothing else calls them, nothing hands them on."""
    functions = {node.name: node for node in tree.body if isinstance(node, _Function) and not node.decorator_list}
    while True:
        flow = [tree, *functions.values()]
        called = {id(call.func) for body in flow for call in _own(body) if isinstance(call, ast.Call)}
        elsewhere = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id in functions and id(node) not in called
        }
        if not elsewhere:
            return flow
        functions = {name: node for name, node in functions.items() if name not in elsewhere}


def _own(scope: Any) -> Iterator[ast.AST]:
    """The nodes of a module or function, except those inside nested functions, classes and lambdas."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _SCOPES):
            yield node
            waiting += ast.iter_child_nodes(node)


def _bodies(holder: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements of a node."""
    parts = (getattr(holder, name, None) for name in ("body", "orelse", "finalbody"))
    return [part for part in parts if isinstance(part, list)]


def _mark_loops(scope: Any, file: str, places: list[Loop], first: int) -> None:
    """Insert the marks of all loops of a scope."""
    for statements in [body for holder in (scope, *_own(scope)) for body in _bodies(holder)]:
        for loop in [node for node in statements if isinstance(node, _Loop) and _may_be_steps(node)]:
            number = first + len(places)
            places.append(Loop(file, loop.lineno, loop.end_lineno or loop.lineno))
            if isinstance(loop, ast.For):
                place = loop.iter if _ITERATES_AT_ITEMS else loop
                loop.iter = _call_of(EACH.format(number), place, loop.iter)
            else:
                loop.body.insert(0, _call(TICK.format(number), loop))
                start = _call(EACH.format(number), loop, ast.Tuple([], ast.Load()))
                statements.insert(statements.index(loop), start)
            statements.insert(statements.index(loop) + 1, _call(LEFT.format(number), loop))


def _mark_step(tree: ast.Module, step: StepPlace) -> None:
    """Insert the call at the user's step, if there is such a place."""
    for holder in ast.walk(tree):
        if step.function:
            if isinstance(holder, _Function) and _dotted(tree, holder) == step.function:
                at = 1 if ast.get_docstring(holder) is not None else 0
                holder.body.insert(at, _call(STEP, holder.body[-1]))
                return
            continue
        for statements in _bodies(holder):
            for at, node in enumerate(statements):
                if node.lineno == step.line:
                    statements.insert(at, _call(STEP, node))
                    return


def _dotted(tree: ast.Module, function: ast.AST) -> str:
    """``Class.method`` or ``function``; empty for one inside a function."""
    for node in tree.body:
        if node is function:
            return str(getattr(node, "name", ""))
        if isinstance(node, ast.ClassDef) and function in node.body:
            return f"{node.name}.{getattr(function, 'name', '')}"
    return ""


def _may_be_steps(loop: ast.AST) -> bool:
    """Whether a loop's iterations may be steps: not of a ``while`` loop that calls nothing, nor of one that yields or awaits.

    While the program works on what a loop yields, or does something else while it awaits, that loop is on no stack.
    """
    if any(isinstance(node, _Suspending) or getattr(node, "is_async", False) for node in _own(loop)):
        return False
    if not isinstance(loop, ast.While):
        return True
    return any(isinstance(node, (ast.Call, ast.Await, ast.MatMult)) for part in loop.body for node in ast.walk(part))


def _call(name: str, place: ast.stmt, *arguments: ast.expr) -> ast.Expr:
    call = ast.Expr(_call_of(name, place, *arguments))
    for node in ast.walk(call):
        if isinstance(node, (ast.expr, ast.stmt)):
            ast.copy_location(node, place)
            node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    return call


def _call_of(name: str, place: ast.expr | ast.stmt, *arguments: ast.expr) -> ast.Call:
    """A call of a builtin that stands where ``place`` stands."""
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, list(arguments), []), place)
