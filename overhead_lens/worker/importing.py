"""Loads the modules of targets, from a file or by name; errors name the line at fault.

Standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from overhead_lens.errors import OverheadLensError, UsageError, in_one_line
from overhead_lens.target import Target


def module_of(target: Target) -> ModuleType:
    """The module that a target is in.

    Raises:
        UsageError: It cannot be imported.
    """
    with _searching(target.searched_first):
        if target.file is not None:
            return _execute(target.file.absolute())
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
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise UsageError(_why_not_executed(error, path)) from error
    return module


@contextlib.contextmanager
def _searching(folders: Sequence[str]) -> Iterator[None]:
    """Make imports search folders first."""
    sys.path[:0] = folders
    try:
        yield
    finally:
        for folder in folders:
            with contextlib.suppress(ValueError):
                sys.path.remove(folder)


def _why_not_imported(error: BaseException, module: str) -> str:
    """One line that names the file and line at fault, or the missing module."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"no module {module!r}, neither in {Path.cwd()} nor where Python finds packages: {error}"
    # The first that the import ran.
    file = next((file for file, _ in _frames(error) if file != __file__ and not _is_importlib(file)), None)
    if file is not None:
        return _why_not_executed(error, Path(file))
    if isinstance(error, SyntaxError) and error.filename:
        return _why_not_executed(error, Path(error.filename))
    return f"module {module!r} cannot be imported: {in_one_line(error)}"


def _why_not_executed(error: BaseException, path: Path) -> str:
    """One line that names the line of ``path`` at fault, imports included."""
    line = next((line for file, line in reversed(_frames(error)) if file == str(path)), None)
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
    hint = (
        "; name a module of a package as imports do: package.module:f" if "no known parent package" in message else ""
    )
    return f"{path}:{line or 1}: {in_one_line(error)}{hint}"


def _is_importlib(file: str) -> bool:
    return file.startswith("<frozen") or Path(file).parent.name == "importlib"


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame of the traceback, outermost first."""
    return [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
