"""What is measured, by name: ``add1:add1``, ``my.py:f``, ``package.module:f``. ``worker/load.py`` loads it.

A Python file that defines ``SCENARIO`` offers its variants. Any other file, and any importable module, offers its functions:
one becomes a scenario without parameters whose only variant it is, so that nothing that measures knows the difference.

Standard library only: the measuring worker imports this module, possibly under another interpreter that has
nothing but torch.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

from overhead_lens.errors import UsageError

# ``package.module``, ``Class.method``.
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class Target:
    """A variant or a function in a Python file, or a function of an importable module.

    Attributes:
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
        """The name for directories: ``my-f``."""
        text = f"{self.source}-{self.name}" if self.name else self.source
        return re.sub(r"[^\w.-]+", "-", text).strip("-")

    @property
    def folder(self) -> Path:
        """The folder for imports: the file's; for a module the working directory, as with ``python -m``."""
        return Path.cwd() if self.file is None else self.file.parent

    @property
    def searched_first(self) -> list[str]:
        """Where imports search first; for a call from Python nowhere, as a process has the ``sys.path`` of the call."""
        return [str(self.folder.absolute())] if self.arguments is None else []

    def to_json(self) -> dict[str, Any]:
        """The target as JSON values."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Target:
        """The target of ``to_json``."""
        kinds: dict[str, Callable[[Any], Any]] = {"file": Path, "arguments": Path, "inputs": cls.from_json}
        return cls(**{name: kinds[name](value) if name in kinds and value else value for name, value in values.items()})


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
        inputs: What makes a function's arguments, named like a function; without a colon one of the same file or module.

    Raises:
        UsageError: No such built-in name, file or module.
    """
    target = _parse(text)
    if inputs is None:
        return target
    if target.file in builtin_paths().values():
        raise UsageError(f"{text} is built in and makes its own inputs: leave --inputs out")
    if _DOTTED.fullmatch(inputs) and not inputs.endswith(".py"):
        text = f"{target.text.removesuffix(f':{target.name}')}:{inputs}"
        return replace(target, inputs=Target(text, target.file, target.module, inputs))
    name = inputs.rpartition(":")[2]
    if not _DOTTED.fullmatch(name) or name.endswith(".py"):
        raise UsageError(
            f"--inputs names a function that returns the arguments, as make or my.py:make do, not {inputs}"
        )
    return replace(target, inputs=_parse(inputs))


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
    spec = importlib.machinery.PathFinder.find_spec(name, [str(Path.cwd()), *sys.path])
    return name in sys.builtin_module_names or (spec is not None and spec.origin is not None)


def name_of(function: Callable[..., Any]) -> str:
    """The name of a callable: its qualified name, else its type's."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def summary_of(function: Callable[..., Any]) -> str:
    """The first line of a function's docstring; empty without one."""
    return (inspect.getdoc(function) or "").partition("\n")[0] if isinstance(function, FunctionType) else ""
