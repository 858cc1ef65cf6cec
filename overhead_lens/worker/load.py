"""Loads a target: the scenario that its file defines, or one made of a plain function.

Standard library only.
"""

from __future__ import annotations

import functools
import inspect
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from overhead_lens.errors import UsageError, in_one_line
from overhead_lens.scenario import Arguments, NoParams, Scenario, nearest
from overhead_lens.target import Target, summary_of
from overhead_lens.worker.importing import module_of

VALUES = ".json"
"""Ending of the file beside a call's arguments with the values that its function reached where it was called."""


def load(target: Target) -> Scenario:
    """Load the target's module and make a scenario of what it names.

    Raises:
        UsageError: The code cannot be run, it has nothing of that name, or the function does not fit its arguments.
    """
    module = module_of(target)
    return _defined_scenario(target, module) or _scenario_of_function(target, module)


def load_scenario(target: Target) -> Scenario:
    """The scenario that the target's file defines.

    Raises:
        UsageError: The file cannot be run or defines none.
    """
    scenario = _defined_scenario(target, module_of(target))
    if scenario is None:
        raise UsageError(f"{target.file} defines no SCENARIO = Scenario(...) (import it from overhead_lens.scenario)")
    return scenario


def _defined_scenario(target: Target, module: ModuleType) -> Scenario | None:
    scenario = None if target.file is None else getattr(module, "SCENARIO", None)
    if scenario is None:
        return None
    if not isinstance(scenario, Scenario):
        raise UsageError(
            f"{target.file}: SCENARIO is of type {type(scenario).__name__}, not a Scenario (from overhead_lens.scenario)"
        )
    if target.inputs is not None:
        raise UsageError(f"{target.file} defines SCENARIO, which makes its own inputs: leave --inputs out")
    return scenario


def _scenario_of_function(target: Target, module: ModuleType) -> Scenario:
    """A scenario whose only variant is the function that ``target`` names."""
    if target.name is None:
        raise UsageError(
            f"{target.file} defines no SCENARIO = Scenario(...): name one of its functions, "
            f"{target.text}:f{nearest('', _functions_of(module))}"
        )
    function = _function(target, module)
    arguments = _source_of_arguments(target, module)
    if arguments is None:
        _check_fit(function, Arguments(), target)
    return Scenario(
        name=target.source,
        summary=summary_of(function),
        source=target.text,
        params=NoParams,
        inputs=functools.partial(_arguments, target, function, arguments),
        variants={target.name: function},
        kind="function",
    )


def _source_of_arguments(target: Target, module: ModuleType) -> Callable[[], Any] | None:
    """The source of a function's arguments; None without arguments."""
    if target.arguments is not None:
        return functools.partial(_unpickled, target.arguments)
    inputs = target.inputs
    if inputs is None:
        return None
    same = (inputs.file, inputs.module) == (target.file, target.module)
    return _function(inputs, module if same else module_of(inputs))


def _unpickled(path: Path) -> Any:
    with path.open("rb") as file:
        arguments, settings = pickle.load(file), pickle.load(file)  # noqa: S301 - the recorder has just written them
    settings.apply()
    return arguments


def rebuilt(make: Callable[..., Any], parts: tuple[Any, ...], gradient: Any, is_pinned: bool) -> Any:
    """A tensor with what torch's own pickling leaves out."""
    tensor = make(*parts)
    if is_pinned:
        tensor.data = tensor.data.pin_memory()
    tensor.grad = gradient
    return tensor


def _function(target: Target, module: ModuleType) -> Callable[..., Any]:
    """The callable that the target names in its module.

    Raises:
        UsageError: There is nothing of that name, or calling it does not run it.
    """
    value: Any = module
    assert target.name is not None
    for part in target.name.split("."):
        if not hasattr(value, part):
            raise UsageError(f"{target.text}: there is no {part!r}{nearest(part, _functions_of(value))}")
        value = getattr(value, part)
    if not callable(value):
        raise UsageError(f"{target.text} is of type {type(value).__name__}, which cannot be called")
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value) or inspect.isgeneratorfunction(value):
        raise UsageError(
            f"{target.text} is a coroutine or generator function, and calling it runs nothing: name a function that runs it"
        )
    function: Callable[..., Any] = value
    return function


def _functions_of(owner: Any) -> list[str]:
    """Names of public callables in a module or an object, imported ones excluded."""
    public = {name: value for name, value in getattr(owner, "__dict__", {}).items() if not name.startswith("_")}
    return [name for name, value in public.items() if callable(value) and _is_own(value, owner)]


def _is_own(value: Any, owner: Any) -> bool:
    return not isinstance(owner, ModuleType) or getattr(value, "__module__", None) in (None, owner.__name__)


def _arguments(
    target: Target, function: Callable[..., Any], make: Callable[[], Any] | None, _params: object
) -> Arguments:
    """The arguments of one call.

    Raises:
        UsageError: Making them failed, or the function does not take them.
    """
    if make is None:
        return Arguments()
    label = "unpickling its arguments" if target.inputs is None else target.inputs.text
    try:
        arguments = make()
    except Exception as error:
        raise UsageError(f"{label} failed: {in_one_line(error)}") from error
    if isinstance(arguments, (tuple, dict)):
        arguments = Arguments(arguments) if isinstance(arguments, tuple) else Arguments(by_name=arguments)
    if not isinstance(arguments, Arguments):
        a_tuple = "a tuple of the arguments, or a dict by name"
        raise UsageError(f"{label} must return {a_tuple}, not {type(arguments).__name__}: return (x,)")
    _check_fit(function, arguments, target)
    values = None if target.arguments is None else target.arguments.with_suffix(VALUES)
    if values is None or not values.is_file():
        return arguments
    return replace(arguments, reached=json.loads(values.read_text(encoding="utf-8")))


def _check_fit(function: Callable[..., Any], arguments: Arguments, target: Target) -> None:
    """Refuse arguments that the function's signature, if it has one, does not take."""
    try:
        # A torch.nn.Module takes what its forward takes.
        signature = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):
        # A function of C that does not say what it takes.
        return
    try:
        signature.bind(*arguments.by_position, **arguments.by_name)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        if target.arguments is not None:
            line = f"{target.text} takes ({names}): {error}"
        elif target.inputs is None:
            line = f"{target.text} takes arguments ({names}): name a function that returns them in a tuple, --inputs my.py:make"
        else:
            line = f"{target.text} takes ({names}), not the {len(arguments.values)} that {target.inputs.text} returns: {error}"
        raise UsageError(line) from None
