"""What is measured, by name: ``add1:add1``, ``my.py:f``, ``package.module:f``; found, loaded and made a scenario.

A Python file that defines ``SCENARIO`` offers its variants. Any other file, and any importable module, offers its functions:
one becomes a scenario without parameters whose only variant it is, so that nothing that measures knows the difference.

Standard library only: the measuring worker imports this module, possibly under another interpreter that has
nothing but torch.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from overhead_lens.errors import OverheadLensError, UsageError
from overhead_lens.scenario import Arguments, NoParams, Scenario, nearest

# ``package.module``, ``Class.method``.
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class Target:
    """A variant or a function in a Python file, or a function of an importable module.

    Attributes:
        text: As the user named it.
        file: The Python file; None for a module.
        module: Dotted name of the module; empty for a file.
        name: Variant or function, of a class or object too (``Class.method``); None for the default variant.
        inputs: What makes a function's arguments; None for a variant, or for a function without.
        arguments: File that holds a function's ``Arguments`` instead, pickled.
    """

    text: str
    file: Path | None = None
    module: str = ""
    name: str | None = None
    inputs: Target | None = None
    arguments: Path | None = None

    @property
    def source(self) -> str:
        """The file without its folder and suffix, or the module."""
        return self.module if self.file is None else self.file.stem

    @property
    def label(self) -> str:
        """What directories are called after it: ``my-f``."""
        named = f"{self.source}-{self.name}" if self.name else self.source
        return re.sub(r"[^\w.-]+", "-", named).strip("-")

    @property
    def folder(self) -> Path:
        """Where imports begin: beside the file; for a module the working directory, as ``python -m`` has it."""
        return Path.cwd() if self.file is None else self.file.parent

    def to_json(self) -> dict[str, Any]:
        """JSON values of it."""
        return {
            "text": self.text,
            "file": None if self.file is None else str(self.file),
            "module": self.module,
            "name": self.name,
            "inputs": None if self.inputs is None else self.inputs.to_json(),
            "arguments": None if self.arguments is None else str(self.arguments),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Target:
        """The target of ``to_json``."""
        file, inputs, arguments = values["file"], values["inputs"], values["arguments"]
        return cls(
            text=values["text"],
            file=None if file is None else Path(file),
            module=values["module"],
            name=values["name"],
            inputs=None if inputs is None else cls.from_json(inputs),
            arguments=None if arguments is None else Path(arguments),
        )


def builtin_folder() -> Path:
    """The folder of built-in scenarios: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "scenarios"
    return installed if installed.is_dir() else package.parent / "scenarios"


def builtin_paths() -> dict[str, Path]:
    """Built-in scenario name to file, sorted by name."""
    return {path.stem: path for path in sorted(builtin_folder().glob("*.py")) if not path.stem.startswith("_")}


def parse_target(text: str, inputs: str | None = None) -> Target:
    """Read ``NAME[:VARIANT]``, ``path/to/file.py[:VARIANT or FUNCTION]`` or ``package.module:FUNCTION``.

    Args:
        text: The target.
        inputs: What makes a function's arguments, named like a function; without a colon one of the same file or module.

    Raises:
        UsageError: No such built-in name, file or module.
    """
    found = _parse(text)
    if inputs is None:
        return found
    if found.file in builtin_paths().values():
        raise UsageError(f"{text} is built in and makes its own inputs: leave --inputs out")
    if _DOTTED.fullmatch(inputs) and not inputs.endswith(".py"):
        return _with_inputs(found, Target(f"{_place(found)}:{inputs}", found.file, found.module, inputs))
    made_by = _parse(inputs)
    if made_by.name is None:
        raise UsageError(f"--inputs names a function that returns the arguments, {inputs}:make, not {inputs}")
    return _with_inputs(found, made_by)


def load(target: Target) -> Scenario:
    """Run the target's file, or import its module, and make a scenario of what it names.

    Raises:
        UsageError: The code cannot be run, it has nothing of that name, or the function does not fit its arguments.
    """
    module = _module_of(target)
    return _defined_scenario(target, module) or _scenario_of_function(target, module)


def load_scenario(target: Target) -> Scenario:
    """The scenario that the target's file defines.

    Raises:
        UsageError: The file cannot be run or defines none.
    """
    scenario = _defined_scenario(target, _module_of(target))
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


def _parse(text: str) -> Target:
    name, colon, member = text.rpartition(":")
    if not colon or name == "" or member.endswith(".py") or "/" in member or "\\" in member:
        name, member = text, ""
    builtin = builtin_paths()
    if name in builtin:
        return Target(text, builtin[name], name=member or None)
    path = Path(name)
    if path.suffix == ".py" or len(path.parts) > 1:
        if not path.is_file():
            hint = f"; did you mean the built-in {path.stem!r}?" if path.stem in builtin else ""
            raise UsageError(f"no file {name}{hint}")
        return Target(text, path.resolve(), name=member or None)
    if _DOTTED.fullmatch(name):
        # A dotted name may be one of the interpreter that measures, which will know.
        if member and ("." in name or _is_module(name)):
            return Target(text, module=name, name=member)
        if not member and _is_module(name.partition(".")[0]):
            raise UsageError(f"{name} is a module: name a function of it, {name}:f")
    close = difflib.get_close_matches(name, builtin, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"no scenario {name!r}{hint} (`overhead-lens scenarios` lists them)")


def _is_module(name: str) -> bool:
    """Whether there is a top-level module of that name; a mere folder is none."""
    found = importlib.machinery.PathFinder.find_spec(name, [str(Path.cwd()), *sys.path])
    return name in sys.builtin_module_names or (found is not None and found.origin is not None)


def _with_inputs(target: Target, inputs: Target) -> Target:
    return Target(target.text, target.file, target.module, target.name, inputs)


def _place(target: Target) -> str:
    """The target's text without the name after the colon."""
    return target.text.removesuffix(f":{target.name}")


def _module_of(target: Target) -> ModuleType:
    if target.file is not None:
        return _execute(target.file.absolute())
    with _searching(target.folder):
        try:
            return importlib.import_module(target.module)
        except (Exception, SystemExit) as error:
            raise UsageError(_why_not_imported(error, target.module)) from error


def _execute(path: Path) -> ModuleType:
    # A module name of its own: Dynamo, dataclasses and typing look a function's or class's module up in sys.modules.
    module_name = f"overhead_lens_scenario_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}"
    while getattr(sys.modules.get(module_name), "__file__", str(path)) != str(path):
        module_name += "_"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    with _searching(path.parent):
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[module_name]
            raise UsageError(_why_not_executed(error, path)) from error
    return module


@contextlib.contextmanager
def _searching(folder: Path) -> Iterator[None]:
    """Have imports look into a folder first."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


def _why_not_imported(error: BaseException, module: str) -> str:
    """One line that names the file and line at fault, or says that there is no such module."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"no module {module!r}, neither in {Path.cwd()} nor where Python finds packages: {error}"
    path = _first_file_in(error)
    if path is not None:
        return _why_not_executed(error, path)
    if isinstance(error, SyntaxError) and error.filename:
        return _why_not_executed(error, Path(error.filename))
    return f"module {module!r} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}"


def _why_not_executed(error: BaseException, path: Path) -> str:
    """One line that names the line of ``path`` at fault, also where the error is from a file that ``path`` imports."""
    line = _line_in(error, path)
    message = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and line is None:
        return f"{path}:{error.lineno or 1}: syntax error: {error.msg}"
    if isinstance(error, OSError) and line is None:
        return f"cannot read {path}: {error.strerror or message}"
    if isinstance(error, SystemExit):
        guard = 'if __name__ == "__main__":'
        return (
            f"{path}:{line or 1}: it ended the process while it was loaded: what a script runs belongs below `{guard}`"
        )
    if isinstance(error, OverheadLensError):
        return f"{path}:{line or 1}: {message}"
    return f"{path}:{line or 1}: {type(error).__name__}: {message}"


def _line_in(error: BaseException, path: Path) -> int | None:
    """The last line of ``path`` in the error's traceback, None if no frame of it is there."""
    lines = [line for file, line in _frames(error) if file == str(path)]
    return lines[-1] if lines else None


def _first_file_in(error: BaseException) -> Path | None:
    """The first file that the import ran; None if it did not come so far."""
    files = [file for file, _ in _frames(error) if file != __file__ and not _is_importlib(file)]
    return Path(files[0]) if files else None


def _is_importlib(file: str) -> bool:
    return file.startswith("<frozen") or Path(file).parent.name == "importlib"


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    """File and line of each frame of the traceback, outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


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


def name_of(function: Callable[..., Any]) -> str:
    """What a callable is called: its qualified name, else its type's."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def summary_of(function: Callable[..., Any]) -> str:
    """The first line of a function's docstring; empty without one."""
    return (inspect.getdoc(function) or "").partition("\n")[0] if isinstance(function, FunctionType) else ""


def _source_of_arguments(target: Target, module: ModuleType) -> Callable[[], Any] | None:
    """What gives a function's arguments; None of one that gets none."""
    if target.arguments is not None:
        return functools.partial(_unpickled, target.arguments)
    return None if target.inputs is None else _maker(target, module)


def _unpickled(path: Path) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301 - the recorder has just written it


def _maker(target: Target, module: ModuleType) -> Callable[..., Any]:
    """The function that makes the arguments, from the module that is loaded already where it is the same."""
    inputs = target.inputs
    assert inputs is not None
    same = (inputs.file, inputs.module) == (target.file, target.module)
    return _function(inputs, module if same else _module_of(inputs))


def _function(target: Target, module: ModuleType) -> Callable[..., Any]:
    """What the target names in its module.

    Raises:
        UsageError: There is nothing of that name, or calling it does not run it.
    """
    found: Any = module
    assert target.name is not None
    for part in target.name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{target.text}: there is no {part!r}{nearest(part, _functions_of(found))}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{target.text} is of type {type(found).__name__}, which cannot be called")
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found) or inspect.isgeneratorfunction(found):
        raise UsageError(
            f"{target.text} is a coroutine or generator function, whose call runs nothing: name one that runs it"
        )
    result: Callable[..., Any] = found
    return result


def _functions_of(owner: Any) -> list[str]:
    """Names of what can be called in a module or an object, without what a module imports."""
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
    named = "unpickling its arguments" if target.inputs is None else target.inputs.text
    try:
        made = make()
    except Exception as error:
        raise UsageError(f"{named} failed: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if isinstance(made, tuple):
        made = Arguments(made)
    if not isinstance(made, Arguments):
        raise UsageError(f"{named} must return a tuple of the arguments, not {type(made).__name__}: return (x,)")
    _check_fit(function, made, target)
    return made


def _check_fit(function: Callable[..., Any], arguments: Arguments, target: Target) -> None:
    """Refuse arguments that the function's signature does not take; one that has none is called to find out."""
    try:
        # A torch.nn.Module takes what its forward takes.
        signature = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):
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
