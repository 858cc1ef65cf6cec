"""Hooks in torch and CPython that tell the watcher of steps, collections, compilations and waiting for data.

Each is put in place when the module that it belongs to is imported; a module or function that a version lacks is left out.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from overhead_lens.program.watcher import StepWatcher

_clock = time.perf_counter_ns


class AfterImport(MetaPathFinder):
    """Calls functions after modules of their names were imported, and compiles one module by other means.

    Args:
        actions: By the module's name.
        compiling: The name of a module, and what compiles its source, given its bytes and file.
    """

    def __init__(
        self,
        actions: dict[str, Callable[[ModuleType], None]],
        compiling: dict[str, Callable[[bytes, str], CodeType]],
    ) -> None:
        self._actions, self._compiling = actions, compiling

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that another finder gives, with the action behind its loader."""
        action, compiling = self._actions.pop(name, None), self._compiling.pop(name, None)
        if action is None and compiling is None:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self]
        spec = next((spec for finder in finders if (spec := finder.find_spec(name, path, target))), None)
        if spec is None or spec.loader is None:
            return spec
        if compiling is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Compiling(spec.loader.name, spec.loader.path, compiling)
        if action is not None:
            _act_after(spec.loader, action)
        return spec


class _Compiling(SourceFileLoader):
    def __init__(self, name: str, path: str, compiling: Callable[[bytes, str], CodeType]) -> None:
        super().__init__(name, path)
        self._compile = compiling

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return self._compile(self.get_data(self.path), self.path)


def _act_after(loader: Any, action: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        action(module)

    loader.exec_module = exec_module


def hooks(watcher: StepWatcher) -> dict[str, Callable[[ModuleType], None]]:
    """What is put in place after an import, by the module's name."""
    return {
        "torch.optim.optimizer": lambda module: _hook_optimizers(module, watcher),
        "torch.profiler.profiler": lambda module: _hook_profiler(module, watcher),
        "torch.utils.data.dataloader": lambda module: _hook_loader(module, watcher),
        "torch._dynamo.callback": lambda module: _hook_compilation(module, watcher),
    }


def watch_collections(watcher: StepWatcher) -> None:
    """Have the time of garbage collections counted."""
    begun_ns = 0

    def noted(phase: str, _info: dict[str, int]) -> None:
        nonlocal begun_ns
        if phase == "start":
            begun_ns = _clock()
        else:
            watcher.gc_ns += _clock() - begun_ns

    gc.callbacks.append(noted)


def _hook_optimizers(module: Any, watcher: StepWatcher) -> None:
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        handle = register(lambda optimizer, _args, _kwargs: watcher.marked("optimizer", id(optimizer)))
        watcher.let_go["optimizer"] = handle.remove


def _hook_profiler(module: Any, watcher: StepWatcher) -> None:
    profile = getattr(module, "profile", None)
    if profile is None or not hasattr(profile, "step"):
        return
    step = profile.step

    def stepped(self: Any) -> None:
        step(self)
        watcher.marked("profiler", None)

    profile.step = stepped


def _hook_loader(module: Any, watcher: StepWatcher) -> None:
    """Count the time that the main thread waits for worker processes."""
    iterator = getattr(module, "_MultiProcessingDataLoaderIter", None)
    if iterator is None or not hasattr(iterator, "_next_data"):
        return
    next_data = iterator._next_data

    def waited(self: Any) -> Any:
        begun_ns = _clock()
        try:
            return next_data(self)
        finally:
            watcher.data_ns += _clock() - begun_ns

    iterator._next_data = waited


def _hook_compilation(module: Any, watcher: StepWatcher) -> None:
    handler = getattr(module, "callback_handler", None)
    if handler is None:
        return
    begun_ns = 0

    def began(*_: Any) -> None:
        nonlocal begun_ns
        begun_ns = _clock()

    def ended(*_: Any) -> None:
        watcher.compiled(begun_ns, _reason())

    handler.register_start_callback(began)
    handler.register_end_callback(ended)


def _reason() -> str:
    """Why the last frame was compiled again; empty for its first time."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    try:
        reason = utils.get_compilation_metrics()[-1].recompile_reason
    except (AttributeError, IndexError):
        return ""
    return str(reason or "")
