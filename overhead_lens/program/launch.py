"""Runs a script or a module as Python would, watched.

``python start.py FOLDER OPTIONS SCRIPT ARGS...`` or ``... -m MODULE ARGS...``.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from pkgutil import get_importer
from types import CodeType, TracebackType
from typing import Any

from overhead_lens import marks
from overhead_lens.program.area import Area, Word
from overhead_lens.program.hooks import AroundImport, Compiling, hooks, watch_affinity, watch_collections
from overhead_lens.program.loops import StepPlace, marked
from overhead_lens.program.watcher import KINDS, StepWatcher

_OURS = os.path.dirname(os.path.abspath(__file__))


def main(before: frozenset[str]) -> None:
    """Run the program that the command line names; ``before`` are the modules that Python had imported by itself."""
    folder, options, *command = sys.argv[1:]
    settings = json.loads(options)
    _let_trace(settings["tracer_pid"])
    area = Area.open(Path(folder))
    watcher = StepWatcher(area, Path(folder), ("explicit",) if settings["step"] else KINDS)
    marks.watcher = watcher
    compiling = _Compiling(watcher, settings["step"])
    actions = hooks(watcher)
    watch_collections(watcher)
    watch_affinity(watcher)
    run = _prepare(command, compiling)
    _forget_hidden(before)
    sys.meta_path.insert(0, AroundImport(actions, compiling.modules))
    area.write(Word.STARTED_NS, time.perf_counter_ns())
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        watcher.finish()
        _report(error)
    finally:
        # First at exit, when the program's other threads have ended.
        atexit.register(watcher.finish)


class _Compiling:
    """Compiles the program's own source, marked; ``step`` is the user's ``FILE:LINE`` or ``MODULE:FUNCTION``.

    Attributes:
        modules: What compiles which modules, by their names or files.
    """

    def __init__(self, watcher: StepWatcher, step: str) -> None:
        self._watcher = watcher
        place, _, at = step.rpartition(":")
        self._step = StepPlace(line=int(at)) if at.isdigit() else StepPlace(function=at)
        self._place = os.path.realpath(place) if self._step.line else place
        self.modules: dict[str, Compiling] = {self._place: self._marked} if place else {}

    def main(self, source: bytes, file: str, is_main: bool = True) -> CodeType:
        """The main program's code with the user's step, if it is there; without one anywhere, with marked loops.

        The loops of another copy, which the program imports, are not: it may hand its functions to a compiler.
        """
        path = os.path.realpath(file)
        # A file's name is looked for in all imports.
        self.modules.pop(path, None)
        return self._marked(source, file, is_main, has_step=self._place in (path, "__main__", Path(file).stem))

    def _marked(self, source: bytes, file: str, is_main: bool, *, has_step: bool = True) -> CodeType:
        step = self._step if has_step else None
        has_loops = is_main and not self._place
        code, loops = marked(source, file, loops=has_loops, step=step, first=self._watcher.loop_count)
        self._watcher.watch_loops(loops)
        return code


def _prepare(command: list[str], compiling: _Compiling) -> Callable[[], Any]:
    """A function that runs the program with ``sys`` as Python would set it."""
    main = sys.modules["__main__"]
    vars(main).clear()
    vars(main).update(__name__="__main__", __doc__=None, __package__=None, __spec__=None, __annotations__={},
                      __builtins__=sys.modules["builtins"])  # fmt: skip
    # Some programs start themselves again by it.
    sys.orig_argv[1:] = command
    if command[0] == "-m":
        name = command[1]
        sys.argv = ["-m", *command[2:]]
        _set_first_path(os.getcwd())
        for module in (name, f"{name}.__main__"):
            compiling.modules.setdefault(module, compiling.main)
        return lambda: runpy._run_module_as_main(name)  # type: ignore[attr-defined]
    script = command[0]
    sys.argv = command
    if get_importer(script) is not None:  # of a directory or an archive
        _set_first_path(script, always=True)
        compiling.modules["__main__"] = compiling.main
        return lambda: runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
    _set_first_path(os.path.dirname(os.path.realpath(script)))
    file = script if os.path.isabs(script) else os.path.join(os.getcwd(), script)
    vars(main).update(__file__=file, __cached__=None, __loader__=SourceFileLoader("__main__", file))

    def run() -> None:
        with io.open_code(file) as source:
            text = source.read()
        try:
            code = compiling.main(text, file)
        except SyntaxError as error:
            # Of the program, not of who compiled it.
            raise error.with_traceback(None) from None
        exec(code, vars(main))

    return run


def _set_first_path(path: str, *, always: bool = False) -> None:
    """Replace our own start folder in ``sys.path`` by ``path``, if Python would have an entry there."""
    if always or not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [path] if not getattr(sys.flags, "safe_path", False) else [path, *sys.path[:1]]


def _forget_hidden(before: frozenset[str]) -> None:
    """Let the program import modules of its own whose names are those of others that only we have imported."""
    library = os.path.dirname(os.__file__)
    folders = [library, os.path.join(library, "lib-dynload")]
    for name in set(sys.modules) - before:
        package = name.partition(".")[0]
        own, found = PathFinder.find_spec(package, folders), PathFinder.find_spec(package)
        if own is not None and found is not None and found.origin != own.origin:
            del sys.modules[name]


def _report(error: BaseException) -> None:
    """End as Python does after an exception, without our own frames in its traceback."""
    error.__traceback__ = _without_ours(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        # Python ends by the signal, after what is to be done at exit.
        sys.excepthook = lambda *_: None
        raise error.with_traceback(None)
    raise SystemExit(1)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package; a long one has thousands."""
    remaining = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_OURS):
            remaining.append(traceback)
        traceback = traceback.tb_next
    for one, following in zip(remaining, [*remaining, None][1:], strict=True):
        one.tb_next = following
    return remaining[0] if remaining else None


def _let_trace(pid: int) -> None:
    """Let the recorder's sampler attach where Yama forbids tracing anything but a child."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(pid), 0, 0, 0)
