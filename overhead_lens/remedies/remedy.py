"""What a remedy is: a change of a call, with the line of code that does it and what it may break.

Standard library only at import: a measuring process imports this module.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from overhead_lens.remedies.reached import walk

Safety = Literal["safe", "changes_semantics", "unsafe"]
Context = Callable[[], AbstractContextManager[Any]]


class NotApplicableError(Exception):
    """Why a remedy cannot be tried on a call, in a line."""


def refuse(when: bool, reason: str) -> None:
    """Do not try a remedy.

    Raises:
        NotApplicableError: ``when`` holds.
    """
    if when:
        raise NotApplicableError(reason)


@contextmanager
def updated(mappings: Sequence[MutableMapping[str, Any]], changes: Mapping[str, Any]) -> Iterator[None]:
    """Mappings with other values, which get their own back in the end."""
    before = [{name: each.get(name) for name in changes} for each in mappings]
    for each in mappings:
        each.update(changes)
    try:
        yield
    finally:
        for each, values in zip(mappings, before, strict=True):
            each.update(values)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a remedy sees it; a remedy returns a changed copy.

    Attributes:
        function: What is called, before torch.compile.
        args: Its arguments, those passed by name last.
        keywords: Names of these.
        compile_options: Keyword arguments of torch.compile; None for an eager call.
        contexts: Entered around many calls, outside the measured loop.
        late_contexts: Those that are entered when the call has been made once, and so is compiled.
        device: ``cpu``, ``cuda``.
        folder: Shared by all processes that make the call with the same remedies; a remedy creates it before use.
        build: Returns what to call, given the call with all remedies, inside its contexts; None to call ``function``.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: tuple[str, ...] = ()
    compile_options: Mapping[str, Any] | None = None
    contexts: tuple[Context, ...] = ()
    late_contexts: tuple[Context, ...] = ()
    device: str = "cpu"
    folder: Path = field(default_factory=Path)
    build: Callable[[Call], Callable[..., Any]] | None = None

    def inside(self, context: Context) -> Call:
        """The call inside one more context."""
        return replace(self, contexts=(*self.contexts, context))

    def later_inside(self, context: Context) -> Call:
        """The call inside one more context, entered when it has been made once."""
        return replace(self, late_contexts=(*self.late_contexts, context))

    def compiled(self, **keywords: Any) -> Call:
        """The call under torch.compile, with additional keyword arguments."""
        given = dict(self.compile_options or {})
        options = {**(given.pop("options", None) or {}), **(keywords.pop("options", None) or {})}
        if options and "mode" in {**given, **keywords}:
            options = {**options_of(keywords.pop("mode", None) or given.get("mode")), **options}
            given.pop("mode", None)
        return replace(self, compile_options={**given, **keywords, **({"options": options} if options else {})})

    def with_options(self, **options: Any) -> Call:
        """The compiled call with these options of Inductor."""
        self.check_compiled()
        return self.compiled(options=options)

    def check_compiled(self) -> Mapping[str, Any]:
        """Keyword arguments of torch.compile.

        Raises:
            NotApplicableError: The call is not compiled.
        """
        if self.compile_options is None:
            raise NotApplicableError("the call is not compiled")
        return self.compile_options

    def reached(self, *kinds: type) -> list[Any]:
        """Objects of these types that the arguments and the function reach, each once."""
        reachable = walk((*self.args, self.function), "", {})
        return list({id(each): each for _, each, _ in reachable if isinstance(each, kinds)}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A way to make a call faster.

    Attributes:
        safety: ``safe``; ``changes_semantics``: more than the time may change; ``unsafe``: PyTorch says that it may be wrong.
        shrinks: Categories that it can make smaller.
        apply: Returns the changed call; raises ``NotApplicableError``.
        group: Remedies of one group exclude each other; empty for one that goes with all others.
        variables: Environment variables that do it; such a remedy needs a process of its own.
        own_process: Whether it needs one without any, since what it does to the process outlasts a call.
    """

    name: str
    summary: str
    how: str
    shrinks: tuple[str, ...]
    source: str
    safety: Safety = "safe"
    apply: Callable[[Call], Call] = lambda call: call
    group: str = ""
    variables: Callable[[], Mapping[str, str]] = dict
    own_process: bool = False


_numbers = itertools.count(1)


def with_own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy with its own code object, if it has one: Dynamo searches all that was compiled for a code object."""
    if isinstance(function, types.FunctionType):
        return copied(function)
    if isinstance(function, types.MethodType):
        return types.MethodType(with_own_code(function.__func__), function.__self__)
    forward = getattr(type(function), "forward", None)
    if isinstance(forward, types.FunctionType) and hasattr(function, "_parameters"):
        kind: Any = type(function)
        # Both have the same attributes: what one sets, the other has.
        module: Callable[..., Any] = object.__new__(kind)
        module.__dict__ = function.__dict__
        module.__class__ = type(kind.__name__, (kind,), {"forward": copied(forward), "__module__": kind.__module__})
        return module
    return function


def copied(function: types.FunctionType) -> types.FunctionType:
    """A plain function with a code object of its own."""
    return with_code(function, function.__code__.replace(co_name=f"{function.__name__}_{next(_numbers)}"))


def with_code(like: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """A function like ``like``, but with another code object."""
    made = types.FunctionType(code, like.__globals__, like.__name__, like.__defaults__, like.__closure__)
    made.__kwdefaults__ = like.__kwdefaults__
    return made


def options_of(mode: str | None) -> Mapping[str, Any]:
    """Inductor's options of a mode, since torch.compile takes a mode or options."""
    if mode is None:
        return {}
    from torch._inductor import list_mode_options

    options: Mapping[str, Any] = list_mode_options(mode)
    return options
