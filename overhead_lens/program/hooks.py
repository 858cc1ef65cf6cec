"""Hooks in torch and CPython that report steps, collections, compilations and waiting for data to the watcher.

Each is put in place when the module that it belongs to is imported; a module or function that a version lacks is left out.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import accumulate
from types import CodeType, FrameType, ModuleType
from typing import Any

from overhead_lens.program.watcher import StepWatcher

_clock = time.perf_counter_ns


@dataclass(frozen=True)
class Action:
    """An action before and after the import of a module."""

    after: Callable[[Any], None]
    before: Callable[[], object] = lambda: None


Compiling = Callable[[bytes, str, bool], CodeType]
"""Compiles a module's source, given its bytes, its file and whether it is to run as the main program."""


class AroundImport(MetaPathFinder):
    """Acts around the imports of modules by their names, and compiles some by other means.

    Args:
        actions: By the module's name.
        compiling: By a module's name or its file's real path.
    """

    def __init__(self, actions: dict[str, Action], compiling: dict[str, Compiling]) -> None:
        self._actions, self._compiling = actions, compiling

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that another finder gives, with the action behind its loader."""
        # A program may find a module twice, and import it the second time.
        action, compiling = self._actions.pop(name, None), self._compiling.get(name)
        if action is None and compiling is None and not any(map(os.path.isabs, self._compiling)):
            return None
        finders = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        spec = next((spec for finder in finders if (spec := finder.find_spec(name, path, target))), None)
        if spec is None or spec.loader is None:
            return spec
        if compiling is None and spec.origin:
            compiling = self._compiling.get(os.path.realpath(spec.origin))
        if compiling is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Compiling(spec.loader.name, spec.loader.path, compiling)
        if action is not None:
            _act_around(spec.loader, action)
        return spec


class _Compiling(SourceFileLoader):
    def __init__(self, name: str, path: str, compiling: Compiling) -> None:
        super().__init__(name, path)
        self._compile, self._is_main = compiling, True

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002
        """Only an import begins with it, and asks for the code next."""
        self._is_main = False

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        is_main, self._is_main = self._is_main, True
        return self._compile(self.get_data(self.path), self.path, is_main)


def _act_around(loader: Any, action: Action) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        action.before()
        execute(module)
        action.after(module)

    loader.exec_module = exec_module


def hooks(watcher: StepWatcher) -> dict[str, Action]:
    """Actions around imports, by the module's name."""
    modules = _OutermostModules(watcher)
    return {
        "torch.optim.optimizer": Action(lambda module: _hook_optimizers(module, watcher)),
        # A schedule reaches it from ``torch.profiler.profile.step``.
        "torch.autograd.profiler": Action(
            lambda module: _make_way_before("_prepare_trace", getattr(module, "profile", None), watcher)
        ),
        "torch.profiler.profiler": Action(lambda module: _hook_profiler(module, watcher)),
        "torch.utils.data.dataloader": Action(lambda module: _hook_loaders(module, watcher, modules)),
        "torch.nn.modules.module": Action(modules.watch),
        # Dynamo records the current Module.__call__ as the original.
        "torch._dynamo.utils": Action(lambda _: modules.put_back(), modules.leave),
        "torch._dynamo.callback": Action(lambda module: _hook_compilation(module, watcher, modules.leave_to_compiler)),
    }


class _OutermostModules:
    """Marks calls of modules that are not inside another module's.

    ``Module.__call__`` is replaced until something is compiled: the compiler would look into the replacement. From then on only
    calls of compiled modules are marks.
    """

    def __init__(self, watcher: StepWatcher) -> None:
        self._watcher = watcher
        self._class: Any = None
        self._own: Any = None
        # It stands in place of that; the program may put a function around it.
        self._ours: Any = None
        self._inside: set[int] = set()
        self._over = False
        watcher.let_go["module"] = self._end

    def watch(self, module: Any) -> None:
        """Replace ``Module.__call__``."""
        if not self._over:
            self._class = module.Module
            self._own = self._class.__call__
            self._class.__call__ = self._ours = self._marking(self._own)

    def leave(self) -> None:
        """Restore the class's own method."""
        if self._class is not None and self._class.__call__ is self._ours:
            self._class.__call__ = self._own

    def put_back(self) -> None:
        """Replace the method again."""
        if self._class is not None and self._class.__call__ is self._own:
            self._class.__call__ = self._ours

    def leave_to_compiler(self) -> None:
        """Called before anything is compiled: from now on only compiled modules mark steps."""
        if self._over:
            return
        self._end()
        frames: Any = sys.modules.get("torch._dynamo.eval_frame")
        compiled = getattr(frames, "OptimizedModule", None)
        if compiled is not None:
            self._class, self._own = compiled, compiled.__call__
            compiled.__call__ = self._ours = self._marking(self._own)

    def leave_out_items(self, iterator: Any) -> None:
        """Mark no call within a DataLoader that has no workers: an item's transforms are modules as well."""
        if iterator is None or not hasattr(iterator, "_next_data"):
            return
        own, inside, this_thread = iterator._next_data, self._inside, threading.get_ident

        def next_data(self: Any) -> Any:
            thread = this_thread()
            is_inside = thread in inside
            inside.add(thread)
            try:
                return own(self)
            finally:
                # A module may itself go through a DataLoader.
                if not is_inside:
                    inside.discard(thread)

        iterator._next_data = next_data

    def _end(self) -> None:
        self.leave()
        self._over, self._class, self._ours = True, None, None

    def _marking(self, own: Any) -> Any:
        watcher, inside, this_thread = self._watcher, self._inside, threading.get_ident

        def __call__(module: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if self._ours is not __call__:  # within a function of the program's, which a compiler looks into
                return own(module, *args, **kwargs)
            thread = this_thread()
            if thread in inside:
                return own(module, *args, **kwargs)
            inside.add(thread)
            try:
                return own(module, *args, **kwargs)
            finally:
                inside.discard(thread)
                watcher.marked("module", id(module))

        return __call__


class _Collections(map):  # type: ignore[type-arg]
    """An iterator that goes on to its next item when its attribute ``start`` or ``stop`` is set."""

    start = stop = property(None, next)


def watch_collections(watcher: StepWatcher) -> None:
    """Count the time of garbage collections.

    The callback runs no Python function: after a signal, the first Python function raises what the program's handler raises, such
    as KeyboardInterrupt, and the collector would drop it. From clock readings c1, c2, ... it makes c1, c2 - c1,
    c3 - (c2 - c1), ...; every second of these is the time of all collections so far, in ns.
    """
    sums = enumerate(accumulate(iter(_clock, None), int.__rsub__))
    gc.callbacks.append(partial(setattr, _Collections(watcher.collected.append, sums)))


def watch_affinity(watcher: StepWatcher) -> None:
    """Hide from a thread that counts its cores, perhaps for good, that it is kept on one while it is sampled."""
    if not hasattr(os, "sched_getaffinity"):
        return

    def sched_getaffinity(pid: int, /) -> set[int]:
        return watcher.cores_of(pid)

    # Pickled by its name, as Python's own is.
    sched_getaffinity.__module__, sched_getaffinity.__qualname__ = "os", "sched_getaffinity"
    os.sched_getaffinity = sched_getaffinity


def _hook_optimizers(module: Any, watcher: StepWatcher) -> None:
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        return
    backward_pass = getattr(sys.modules.get("torch._C"), "_current_graph_task_id", lambda: -1)
    numbers: dict[int, int] = {}

    def number(optimizer: Any) -> int:
        """Its number among the optimizers that are alive: the next one goes on with the steps of one that is gone."""
        own = id(optimizer)
        if own not in numbers:
            numbers[own] = min({*range(len(numbers) + 1)} - {*numbers.values()})
            weakref.finalize(optimizer, numbers.pop, own).atexit = False
        return numbers[own]

    # The first parameter of each optimizer's last call. An optimizer that always begins with the same one is called once a step.
    begun_with: dict[int, int] = {}

    def is_step(optimizer: Any, key: int, caller: FrameType) -> bool:
        try:
            if _is_of_superclass(optimizer, caller):
                return False
            before, begun_with[key] = begun_with.get(key), id(next(_updated(optimizer), None))
            return before == begun_with[key] or _updates_first(optimizer)
        except Exception:  # a subclass may have another kind of `state` or `param_groups`
            return True

    def stepped(optimizer: Any, _args: object, _kwargs: object) -> None:
        # In a backward pass, each parameter may have an optimizer of its own, in a thread of autograd's.
        if backward_pass() < 0 and is_step(optimizer, key := number(optimizer), sys._getframe(1)):
            watcher.marked("optimizer", key)

    watcher.let_go["optimizer"] = register(stepped).remove


def _is_of_superclass(optimizer: Any, caller: FrameType) -> bool:
    """Whether torch's wrapper of ``step`` runs that of a superclass, within a step of the optimizer's own class."""
    steps = (vars(each).get("step") for each in type(optimizer).__mro__)
    hooked = [step for step in steps if getattr(step, "hooked", False)]
    if len(hooked) < 2 or "func" not in caller.f_locals:
        return False
    own = hooked[0]
    while own is not None and own is not caller.f_locals["func"]:
        own = getattr(own, "__wrapped__", None)
    return own is None


def _updates_first(optimizer: Any) -> bool:
    """Whether an optimizer updates, in this call, the first parameter for which it has a state; True without a state.

    DeepSpeed calls an optimizer once for each part of the parameters. Only the call for the first part ends a step.
    """
    tensor = getattr(sys.modules.get("torch"), "Tensor", ())
    first = next((each for each in getattr(optimizer, "state", ()) if isinstance(each, tensor)), None)
    if first is None:
        return True
    return any(each is first for each in _updated(optimizer))


def _updated(optimizer: Any) -> Iterator[Any]:
    return (each for group in optimizer.param_groups for each in group["params"])


def _hook_profiler(module: Any, watcher: StepWatcher) -> None:
    profile = getattr(module, "profile", None)
    if profile is None or not hasattr(profile, "step"):
        return
    step = profile.step

    def stepped(self: Any) -> None:
        watcher.silence(self)
        step(self)
        watcher.marked("profiler", None)

    profile.step = stepped
    _make_way_before("start", profile, watcher)


def _make_way_before(name: str, profile: Any, watcher: StepWatcher) -> None:
    """Notify the watcher before a method of a profiler."""
    own = getattr(profile, name, None)
    if own is None:
        return

    def making_way(self: Any) -> Any:
        watcher.make_way(self)
        return own(self)

    setattr(profile, name, making_way)


def _hook_loaders(module: Any, watcher: StepWatcher, modules: _OutermostModules) -> None:
    """Count the time that the main thread waits for worker processes, and leave out the modules that make items."""
    modules.leave_out_items(getattr(module, "_SingleProcessDataLoaderIter", None))
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


def _hook_compilation(module: Any, watcher: StepWatcher, first: Callable[[], None]) -> None:
    handler = getattr(module, "callback_handler", None)
    if handler is None:
        return
    begun_ns = 0

    def began(*_: Any) -> None:
        nonlocal begun_ns
        first()
        begun_ns = _clock()

    def ended(*_: Any) -> None:
        watcher.compiled(begun_ns, _reason())

    handler.register_start_callback(began)
    handler.register_end_callback(ended)


def _reason() -> str:
    """Why the frame at hand was compiled again; empty for its first time."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    try:
        # Its metrics join ``get_compilation_metrics()`` only after the callbacks.
        reason = utils.get_metrics_context()._metrics.get("recompile_reason")
    except AttributeError:
        return ""
    return str(reason or "")
