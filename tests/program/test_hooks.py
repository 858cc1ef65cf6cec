"""Hooks around imports and in torch: in the right order, told once, and gone when a compiler looks."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.program import hooks
from overhead_lens.program.hooks import Action, AroundImport
from tests.worker.warm import ended

NO_MODULES: dict[str, Any] = {}


class Watcher:
    """What a hook may use of the watcher."""

    def __init__(self) -> None:
        self.data_ns = 0
        self.collected = deque([(-1, 0)], maxlen=2)
        self.marks: list[tuple[str, object]] = []

    def marked(self, kind: str, key: object) -> None:
        self.marks.append((kind, key))

    def silence(self, profile: object) -> None:
        pass


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was done in which order; modules can be written into the current folder."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path.copy())
    modules = set(sys.modules)
    done: list[str] = []
    sys.drawn_order = done  # type: ignore[attr-defined]
    yield done
    del sys.drawn_order  # type: ignore[attr-defined]
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(name: str, text: str = "") -> None:
    Path(f"{name}.py").write_text(f"import sys\nsys.drawn_order.append('{name} begins')\n{text}\n")


def noting(order: list[str], name: str) -> Action:
    return Action(lambda module: order.append(f"after {module.__name__}"), lambda: order.append(f"before {name}"))


# ---------------------------------------------------------------- imports
def test_an_action_is_before_and_after_the_modules_own_code(order: list[str]) -> None:
    write("drawn_outer", "import drawn_inner, drawn_other\nsys.drawn_order.append('outer ends')")
    write("drawn_inner")
    write("drawn_other")
    names = ("drawn_outer", "drawn_inner")
    sys.meta_path.insert(0, AroundImport({name: noting(order, name) for name in names}, {}))
    importlib.import_module("drawn_outer")
    assert order == [
        *("before drawn_outer", "drawn_outer begins", "before drawn_inner", "drawn_inner begins", "after drawn_inner"),
        *("drawn_other begins", "outer ends", "after drawn_outer"),
    ]


def test_a_module_that_does_not_exist(order: list[str]) -> None:
    sys.meta_path.insert(0, AroundImport({"drawn_gone": noting(order, "drawn_gone")}, {}))
    with pytest.raises(ModuleNotFoundError, match="No module named 'drawn_gone'"):
        importlib.import_module("drawn_gone")
    assert order == []


def test_a_finder_as_python_3_3_had_them_is_left_out(order: list[str]) -> None:
    finder: Any = SimpleNamespace(find_module=lambda *_: None)
    sys.meta_path.append(finder)
    assert AroundImport({"drawn_gone": noting(order, "drawn_gone")}, {}).find_spec("drawn_gone", None) is None


def test_a_module_that_fails(order: list[str]) -> None:
    write("drawn_failing", "1 / 0")
    sys.meta_path.insert(0, AroundImport({"drawn_failing": noting(order, "drawn_failing")}, {}))
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("drawn_failing")
    assert order == ["before drawn_failing", "drawn_failing begins"]
    assert "drawn_failing" not in sys.modules


def test_finders_one_behind_another_all_act(order: list[str]) -> None:
    write("drawn_module")
    for number in (1, 2):
        action = Action(
            lambda _, number=number: order.append(f"after {number}"),
            lambda number=number: order.append(f"before {number}"),
        )
        sys.meta_path.insert(0, AroundImport({"drawn_module": action}, {}))
    importlib.import_module("drawn_module")
    assert order == ["before 2", "before 1", "drawn_module begins", "after 1", "after 2"]


def test_a_module_is_compiled_by_other_means(order: list[str]) -> None:
    write("drawn_module", "value = 1")
    compiled: list[tuple[bytes, str, bool]] = []

    def compiling(source: bytes, file: str, is_main: bool) -> Any:  # noqa: FBT001
        compiled.append((source, file, is_main))
        return compile(source.replace(b"= 1", b"= 2"), file, "exec")

    sys.meta_path.insert(0, AroundImport({"drawn_module": noting(order, "drawn_module")}, {"drawn_module": compiling}))
    module: Any = importlib.import_module("drawn_module")
    assert module.value == 2
    assert compiled == [(Path("drawn_module.py").read_bytes(), module.__file__, False)]
    assert order == ["before drawn_module", "drawn_module begins", "after drawn_module"]


# ---------------------------------------------------------------- counters
def test_collections_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])
    clock = iter([10, 17, 20, 21])
    monkeypatch.setattr(hooks, "_clock", lambda: next(clock))
    watcher: Any = Watcher()
    hooks.watch_collections(watcher)
    (noted,) = gc.callbacks
    for phase in ("start", "stop", "start", "stop"):
        noted(phase, {})
    assert watcher.collected[-1] == (3, 7 + 1)


def test_no_function_runs_in_a_collection_and_loses_what_a_signal_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])
    watcher: Any = Watcher()
    hooks.watch_collections(watcher)
    (noted,) = gc.callbacks
    called: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: called.append(event))
    noted("start", {})
    noted("stop", {})
    sys.setprofile(None)
    assert len(watcher.collected) == 2
    assert "call" not in called


def test_a_thread_that_asks_for_its_cores_gets_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1}, raising=False)
    watcher: Any = SimpleNamespace(cores_of=lambda pid: {0, 1, pid})
    hooks.watch_affinity(watcher)
    assert os.sched_getaffinity(7) == {0, 1, 7}
    # By its name: a worker process has its own.
    assert pickle.loads(pickle.dumps(os.sched_getaffinity)) is os.sched_getaffinity
    # Some systems have none.
    monkeypatch.delattr(os, "sched_getaffinity")
    hooks.watch_affinity(watcher)
    assert not hasattr(os, "sched_getaffinity")


def test_waiting_for_workers_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader:
        def __init__(self) -> None:
            self.left = [1]

        def _next_data(self) -> int:
            return self.left.pop()

    clock = iter([10, 17, 20, 21])
    monkeypatch.setattr(hooks, "_clock", lambda: next(clock))
    watcher: Any = Watcher()
    watcher.let_go = {}
    module = SimpleNamespace(_MultiProcessingDataLoaderIter=Loader)
    hooks._hook_loaders(module, watcher, hooks._OutermostModules(watcher))
    loader = Loader()
    assert loader._next_data() == 1
    with pytest.raises(IndexError):
        loader._next_data()
    assert watcher.data_ns == 7 + 1


def test_transforms_of_a_dataset_end_no_step() -> None:
    class Module:
        def __init__(self, loader: Any = None) -> None:
            self.loader = loader

        def __call__(self, value: int) -> int:
            return value + (self.loader._next_data() + transform(7) if self.loader else 1)

    class Loader:
        def __init__(self, *left: int) -> None:
            self.left = [*left]

        def _next_data(self) -> int:
            return transform(self.left.pop())

    transform, model, looping = Module(), Module(), Module(Loader(4))
    watcher: Any = Watcher()
    watcher.let_go = {}
    actions = hooks.hooks(watcher)
    actions["torch.nn.modules.module"].after(SimpleNamespace(Module=Module))
    actions["torch.utils.data.dataloader"].after(SimpleNamespace(_SingleProcessDataLoaderIter=Loader))
    loader = Loader(3)
    assert model(loader._next_data()) == 5
    with pytest.raises(IndexError):
        loader._next_data()
    assert watcher.marks == [("module", id(model))]
    # A module that goes through a loader is still one call.
    assert looping(0) == 5 + 8
    assert watcher.marks[1:] == [("module", id(looping))]


def test_a_step_of_the_programs_own_profiler() -> None:
    class profile:
        def __init__(self) -> None:
            self.steps = 0

        def step(self) -> None:
            self.steps += 1

    watcher: Any = Watcher()
    hooks._hook_profiler(SimpleNamespace(profile=profile), watcher)
    profiler = profile()
    profiler.step()
    assert (profiler.steps, watcher.marks) == (1, [("profiler", None)])


def test_a_torch_without_these_names_is_left_alone() -> None:
    watcher: Any = Watcher()
    module = SimpleNamespace()
    watcher.let_go = {}
    for hook in (hooks._hook_optimizers, hooks._hook_profiler):
        hook(module, watcher)
    hooks._hook_loaders(module, watcher, hooks._OutermostModules(watcher))
    hooks._hook_compilation(module, watcher, lambda: None)
    assert (vars(module), watcher.marks) == ({}, [])


def hooked(watcher: Any, module: type) -> dict[str, Action]:
    watcher.let_go = {}
    actions = hooks.hooks(watcher)
    actions["torch.nn.modules.module"].after(SimpleNamespace(Module=module))
    return actions


def test_a_call_that_the_program_has_replaced_stays_so() -> None:
    class Module:
        def __call__(self, value: int) -> int:
            return value + 1

    watcher: Any = Watcher()
    utils = hooked(watcher, Module)["torch._dynamo.utils"]
    own: Any = Module.__call__
    seen: list[int] = []

    def counting(self: Module, value: int) -> int:
        seen.append(value)
        return own(self, value)

    Module.__call__ = counting  # type: ignore[method-assign]
    utils.before()
    utils.after(None)
    model = Module()
    assert (Module.__call__, model(3), seen, watcher.marks) == (counting, 4, [3], [("module", id(model))])
    watcher.let_go["module"]()
    assert (Module.__call__, model(5), seen) == (counting, 6, [3, 5])
    assert len(watcher.marks) == 1


def test_a_model_may_take_any_keyword() -> None:
    class Module:
        def __call__(self, value: int, **named: str) -> tuple[int, dict[str, str]]:
            return value, named

    hooked(Watcher(), Module)
    assert Module()(3, module="encoder") == (3, {"module": "encoder"})


# ---------------------------------------------------------------- in torch
SCRIPT = """
import json, sys, threading
from overhead_lens.program.hooks import AroundImport, hooks

class Watcher:
    def __init__(self):
        self.let_go, self.marks, self.compilations = {}, [], []
    def marked(self, kind, key):
        self.marks.append((kind, key))
    def compiled(self, begin_ns, reason):
        self.compilations.append((begin_ns > 0, reason))

watcher = Watcher()
sys.meta_path.insert(0, AroundImport(hooks(watcher), {}))
import torch
from torch import nn

said = {}
names = {}
def say(what):
    said[what] = [(kind, names[key]) for kind, key in watcher.marks]
    watcher.marks.clear()

def own():
    return nn.Module.__call__ is nn.Module._wrapped_call_impl

model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
names.update({id(model): "model", 0: "optimizer"})
x = torch.ones(3, 4)
model(x), model(x)
say("nested")
try:
    model(torch.ones(3, 5))
except RuntimeError:
    say("raises")
model(x).sum().backward()
optimizer.step()
say("a step")
for item in torch.utils.data.DataLoader(3 * [x], batch_size=1, collate_fn=lambda items: model[0](items[0])):
    model(item)
say("a loader")
thread = threading.Thread(target=model, args=(x,))
thread.start()
thread.join()
say("a thread")

import torch._dynamo
said["the compiler knows"] = torch._dynamo.utils.unpatched_nn_module_call is nn.Module._wrapped_call_impl
model(x)
say("put back")
compiled = torch.compile(model, backend="eager", dynamic=False)
names[id(compiled)] = "compiled"
compiled(x)
say("compiling")
said["gone"] = own()
model(x)
say("afterwards")
compiled(x), compiled(x)
say("compiled")
said["compilations"] = list(watcher.compilations)
compiled(torch.ones(5, 4))
((measured, reason),) = watcher.compilations[1:]
tells = "recompile_reason" in torch._dynamo.utils.CompilationMetrics.__dataclass_fields__  # not in torch 2.6
said["again"] = [measured, ("size mismatch at index 0" in reason) == tells]
watcher.marks.clear()
watcher.let_go["module"]()
watcher.let_go["optimizer"]()
compiled(x), optimizer.step()
say("let go")
print(json.dumps(said))
"""


def test_modules_optimizers_and_compilations() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "nested": [["module", "model"]] * 2,
        "raises": [["module", "model"]],
        "a step": [["module", "model"], ["optimizer", "optimizer"]],
        "a loader": [["module", "model"]] * 3,
        "a thread": [["module", "model"]],
        "the compiler knows": True,
        "put back": [["module", "model"]],
        "compiling": [["module", "compiled"]],
        "gone": True,
        "afterwards": [],
        "compiled": [["module", "compiled"]] * 2,
        "compilations": [[True, ""]],
        "again": [True, True],
        "let go": [],
    }


OPTIMIZERS = """
import functools, json, sys
from overhead_lens.program.hooks import hooks

class Watcher:
    def __init__(self):
        self.let_go, self.marks = {}, []
    def marked(self, kind, key):
        self.marks.append(key)

import torch
from torch.optim import SGD, Adam
watcher = Watcher()
hooks(watcher)["torch.optim.optimizer"].after(sys.modules["torch.optim.optimizer"])

said = {}
def say(what):
    said[what] = [len(watcher.marks), len(set(watcher.marks))]
    watcher.marks.clear()

def parameter():
    made = torch.ones(3, requires_grad=True)
    made.grad = torch.ones(3)
    return made

first, second, third = parameter(), parameter(), parameter()
optimizer = Adam([{"params": [first, third]}, {"params": [second]}])
groups = optimizer.param_groups
for group in 3 * groups:  # as ZeRO 1 and 2 do
    optimizer.param_groups = [group]
    optimizer.step()
say("groups")
optimizer.param_groups = groups
for group in groups:
    group["params"] = []
for group, each in 3 * [(groups[0], first), (groups[0], third), (groups[1], second)]:  # as ZeRO 3 does
    group["params"] = [each]
    optimizer.step()
    group["params"] = []
say("parts of groups")

optimizer = Adam([second, first])
second.grad = None
for _ in range(3):
    optimizer.step()
say("the first without a gradient")
(group,) = optimizer.param_groups
group["params"] = [third]
optimizer.state[third] = optimizer.state.pop(first)
optimizer.step()
say("another in its place")
optimizer.load_state_dict(optimizer.state_dict())
optimizer.step()
say("loaded")
optimizer.state = {"steps": 3, **optimizer.state}
optimizer.step()
say("a state of its own")
optimizer = SGD([first], lr=0.1)
optimizer.step(), optimizer.step()
say("without a state")

optimizer = Adam([first, second, third])
for count, updated in ((3, [first, second, third]), (5, [second, third])):
    optimizer.param_groups[0]["params"] = updated
    for _ in range(count):
        optimizer.step()
say("the first is frozen")
optimizer = Adam([first])
optimizer.step()
optimizer.param_groups.clear()
optimizer.add_param_group({"params": [second, third]})
for _ in range(5):
    optimizer.step()
say("other groups")

optimizers = {each: SGD([each], lr=0.1) for each in (first, second)}
for each in optimizers:
    each.register_post_accumulate_grad_hook(lambda each: optimizers[each].step())
(first * second).sum().backward()
say("in a backward pass")
optimizers[first].step()
say("after it")

for _ in range(3):
    critic, generator = SGD([first], lr=0.1), SGD([second], lr=0.1)
    for each in (critic, generator, critic, generator):
        each.step()
first_two = watcher.marks[:2]
said["in the same order"] = watcher.marks == 6 * first_two
say("two after two")

class Clipping(SGD):
    def step(self):
        return super().step()

clipping = Clipping([first], lr=0.1)
clipping.step(), clipping.step()
say("within the step of a subclass")
def replacement(self, original=SGD.step):
    return original(self)
SGD.step = functools.wraps(SGD.step)(replacement)
optimizers[first].step()
clipping.step()
say("replaced by the program")

class Own(SGD):
    def step(self):
        pass

own = Own([first], lr=0.1)
own.state = None
own.step()
own.state, own.param_groups = {first: {}}, [{}]
own.step()
say("put together in another way")
print(json.dumps(said))
"""


def test_which_calls_of_optimizers_are_steps(tmp_path: Path) -> None:
    done = ended("-c", OPTIMIZERS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "groups": [3, 1],
        "parts of groups": [3, 1],
        "the first without a gradient": [3, 1],
        "another in its place": [1, 1],
        "loaded": [1, 1],
        "a state of its own": [1, 1],
        "without a state": [2, 1],
        "the first is frozen": [7, 1],
        "other groups": [5, 1],
        "in a backward pass": [0, 0],
        "after it": [1, 1],
        "in the same order": True,
        "two after two": [12, 2],
        "within the step of a subclass": [2, 1],
        "replaced by the program": [2, 2],
        "put together in another way": [2, 1],
    }
