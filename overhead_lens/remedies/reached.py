"""What a call can reach and change: the modules, tensors, containers and objects behind its function and its arguments.

Standard library only at import: a measuring process imports this module.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import sys
import sysconfig
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

Parts = Mapping[Any, Any]

PLAIN = (int, float, complex, str, bytes, type(None), Enum)
"""Values that never change."""

_MOST_VALUES, _MOST_LETTERS = 20_000, 60

_LIBRARY, _INSTALLED, _OWN = "library", "installed", "own"
_LIBRARIES = ("builtins", "torch", "numpy", "overhead_lens")


@dataclass(frozen=True, slots=True)
class Holder:
    """What an object refers to, by key, and how to make it refer to something else; ``write`` is None if it cannot."""

    parts: Parts
    write: Callable[[Parts], object] | None = None


@dataclass(frozen=True, slots=True)
class _Named:
    """The variables of a module that some code names."""

    space: dict[str, Any]
    names: frozenset[str]


def walk(
    value: Any, path: str, seen: dict[int, Any], most: int = sys.maxsize
) -> Iterator[tuple[str, Any, Holder | None]]:
    """Everything that a value reaches: path, object, and what this refers to.

    Objects that libraries keep for themselves are not entered. Tensors, lists, tuples and dicts appear once for each path,
    all other objects once.

    Args:
        seen: Objects that have been entered, by identity.
        most: Containers with more items are not entered.
    """
    if isinstance(value, PLAIN):
        yield path, value, None
        return
    is_new = id(value) not in seen
    is_short = not isinstance(value, (list, dict, tuple, set, deque)) or len(value) <= most
    holder = holder_of(value) if is_new and is_short else None
    if is_new or _is_tensor(value):
        yield path, value, holder
    if holder is None:
        return
    seen[id(value)] = value
    for number, (key, part) in enumerate(holder.parts.items()):
        yield from walk(part, path + _step(value, key, number), seen, most)
    if type(value) in {list, tuple, dict}:
        del seen[id(value)]


def values_of(function: Any) -> dict[str, str]:
    """Numbers, texts and kinds of tensors that a function reaches, by path, as text; none if they cannot be walked through.

    Without what differs from process to process: names of modules, states of random numbers, and marks of torch.compile.
    """
    found, drawn = {}, " "
    with suppress(Exception):
        for path, value, _ in itertools.islice(walk(function, "", {}, _MOST_VALUES), _MOST_VALUES):
            if isinstance(value, random.Random):
                drawn = f"{path}.state"
            elif path.startswith(drawn) or path.rpartition(".")[2].startswith("__") or "'_torchdynamo_" in path:
                continue
            elif isinstance(value, PLAIN):
                # A member of an enumeration may be an object without a text of its own.
                text = f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)
                found[path.removeprefix(".")] = text[:_MOST_LETTERS]
            elif _is_tensor(value):
                graded = ", requires_grad" if value.requires_grad else ""
                found[path.removeprefix(".")] = f"{value.dtype} {tuple(value.shape)} on {value.device}{graded}"
    return found


def _step(value: Any, key: Any, number: int) -> str:
    if not isinstance(value, (dict, list, tuple, deque)):
        return f".{key}" if key else ""
    return f"[{key!r}]" if isinstance(key, PLAIN) else f"[#{number}]"


def holder_of(value: Any) -> Holder | None:
    """What an object refers to; None for one that refers to nothing or is a library's own."""
    torch: Any = sys.modules.get("torch")
    if _is_tensor(value):
        return (
            Holder({"grad": value.grad}, lambda parts: setattr(value, "grad", parts["grad"])) if value.is_leaf else None
        )
    if torch is not None and isinstance(value, torch.Generator):
        return Holder({"state": value.get_state()}, lambda parts: value.set_state(parts["state"]))
    for kind, holder in _HOLDERS.items():
        if isinstance(value, kind):
            return holder(value)
    return _of_object(value)


def _is_tensor(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _of_dict(value: dict[Any, Any]) -> Holder:
    # A subclass may refuse to be cleared or updated.
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict

    def write(parts: Parts) -> None:
        kind.clear(value)
        kind.update(value, parts)

    return Holder(dict(value), write)


def _of_list(value: Any) -> Holder:
    def write(parts: Parts) -> None:
        value.clear()
        value.extend(parts.values())

    return Holder(dict(enumerate(value)), write)


def _of_set(value: set[Any]) -> Holder:
    def write(parts: Parts) -> None:
        value.clear()
        value.update(parts[""])

    return Holder({"": frozenset(value)}, write)


def _of_cell(cell: types.CellType) -> Holder:
    try:
        return Holder({"": cell.cell_contents}, lambda parts: setattr(cell, "cell_contents", parts[""]))
    except ValueError:
        return Holder({})


def _of_function(function: types.FunctionType) -> Holder | None:
    if _origin(function.__module__) != _OWN:
        return None
    code, known = function.__code__, function.__globals__
    names = frozenset(_names(code))
    modules = [known[name] for name in sorted(names) if isinstance(known.get(name), types.ModuleType)]
    spaces = {each.__name__: vars(each) for each in modules if _origin(each.__name__) == _OWN}
    # A library's wrapper is named after the user's function that it wraps.
    if _origin(known.get("__name__")) == _OWN:
        spaces[""] = known
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    given = {"defaults": function.__defaults__, "keywords": function.__kwdefaults__, "attributes": vars(function)}
    return Holder({**cells, **{name: _Named(space, names) for name, space in spaces.items()}, **given})


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that code and the code inside it look up: variables of its module and attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _of_named(named: _Named) -> Holder:
    def variables() -> Parts:
        return {name: named.space[name] for name in sorted(named.names & named.space.keys())}

    def write(parts: Parts) -> None:
        for name in variables().keys() - parts.keys():
            del named.space[name]
        named.space.update(parts)

    return Holder(variables(), write)


def _of_class(kind: type) -> Holder | None:
    if _origin(kind.__module__) != _OWN:
        return None

    def attributes() -> dict[str, Any]:
        return {name: value for name, value in vars(kind).items() if not name.startswith("__") or callable(value)}

    def write(parts: Parts) -> None:
        for name in attributes().keys() - parts.keys():
            delattr(kind, name)
        for name in attributes().keys() & parts.keys():
            setattr(kind, name, parts[name])

    return Holder({**attributes(), "__bases__": kind.__bases__}, write)


def _of_object(value: Any) -> Holder | None:
    kind = type(value)
    origin = _origin(kind.__module__)
    # Modules, optimizers, schedulers and scalers are libraries' classes, and their state is the user's.
    is_users = origin != _LIBRARY or hasattr(kind, "state_dict") or kind in {types.SimpleNamespace, argparse.Namespace}
    if not is_users:
        return None
    code = {"__class__": kind} if origin == _OWN else {}
    if hasattr(value, "__dict__"):
        space = vars(value)

        def write(parts: Parts) -> None:
            space.clear()
            space.update({name: part for name, part in parts.items() if name != "__class__"})

        return Holder({**space, **code}, write)
    if not is_dataclass(value):
        return None

    def assign(parts: Parts) -> None:
        for name in parts.keys() - code.keys():
            object.__setattr__(value, name, parts[name])

    return Holder(
        {**{each.name: getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)}, **code},
        assign,
    )


@functools.cache
def _origin(module: str | None) -> str:
    """Whose a module is: a library's whose objects are not entered, another installed package's, or the user's own."""
    name = module or ""
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    if name.partition(".")[0] in _LIBRARIES:
        return _LIBRARY
    if "site-packages" in file or "dist-packages" in file:
        return _INSTALLED
    is_standard = file.startswith(sysconfig.get_path("stdlib")) or name in sys.builtin_module_names
    return _LIBRARY if is_standard else _OWN


_HOLDERS: Mapping[type, Callable[[Any], Holder | None]] = {
    dict: _of_dict,
    list: _of_list,
    deque: _of_list,
    tuple: lambda value: Holder(dict(enumerate(value))),
    set: _of_set,
    types.CellType: _of_cell,
    types.FunctionType: _of_function,
    types.MethodType: lambda method: Holder({"self": method.__self__, "": method.__func__}),
    functools.partial: lambda part: Holder({"": part.func, "args": part.args, "keywords": part.keywords}),
    staticmethod: lambda method: Holder({"": method.__func__}),
    classmethod: lambda method: Holder({"": method.__func__}),
    property: lambda attribute: Holder({"": attribute.fget}),
    random.SystemRandom: lambda _: None,
    random.Random: lambda draw: Holder({"state": draw.getstate()}, lambda parts: draw.setstate(parts["state"])),
    _Named: _of_named,
    type: _of_class,
    types.ModuleType: lambda _: None,
}
