"""A plain function made ready in the worker: its arguments, what it waits for, and what the metadata says of it."""

from __future__ import annotations

import importlib
import json
import random
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from overhead_lens.recorder.fresh import pickled
from overhead_lens.remedies.reached import values_of
from overhead_lens.scenario import Arguments
from overhead_lens.target import Target, parse_target
from overhead_lens.worker import workload as workloads
from overhead_lens.worker.load import VALUES
from overhead_lens.worker.workload import Workload, describe, devices_of
from tests.complaint import complaint

FILE = """
import torch
def scale(x, y):
    return x * y
def make():
    return (torch.rand(3), torch.rand(3))
def fails(x, y):
    raise ValueError(f"{len(x)} and\\nmore")
def ends(x, y):
    raise SystemExit(3)
def fails_later(x, y, calls=[]):
    calls.append(1)
    if len(calls) == 3:
        raise StopIteration
layer = torch.nn.Linear(3, 2)
def one():
    return (torch.ones(3),)
"""


class Elsewhere(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    index: int

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)


def elsewhere(index: int = 1) -> torch.Tensor:
    tensor = torch.Tensor._make_subclass(Elsewhere, torch.ones(2))
    tensor.index = index
    return tensor


WEIGHT = elsewhere()


@dataclass
class Trainer:
    weight: torch.Tensor

    def step(self) -> None:
        self.weight.add_(1)

    def other(self) -> None:
        uses_a_global()


def uses_a_global() -> None:
    WEIGHT.add_(1)


def uses_a_function() -> None:
    [uses_a_global() for _ in range(3)]


def uses_nothing() -> None:
    Trainer(torch.ones(1)).step()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def load(text: str, inputs: str | None = None) -> Workload:
    return workloads.load(parse_target(text, inputs), {}, None)


def test_its_arguments_are_made_from_the_seed() -> None:
    first, second = (load("mine.py:scale", "make") for _ in range(2))
    workloads.seed()
    assert torch.equal(first.args[0], torch.rand(3))
    assert all(map(torch.equal, first.args, second.args))
    assert first.call is first.original
    assert first.run(2) > 0


def test_what_its_file_draws_is_the_same_in_every_process(folder: Path) -> None:
    drawing = "import random, numpy\ndrawn = layer.weight.tolist(), random.random(), numpy.random.random()\n"
    (folder / "mine.py").write_text(f"{FILE}{drawing}def drew(): return drawn\n")
    first, second = (load("mine.py:drew").call() for _ in range(2))
    assert first == second


def test_what_the_metadata_says() -> None:
    assert describe(load("mine.py:scale", "make")) == {
        "kind": "function",
        "scenario": "mine",
        "variant": "scale",
        "compiles": False,
        "device": "cpu",
        "summary": "",
        "params": {},
        "work": {"units": 1, "flops": 0, "bytes": 0},
        "work_known": False,
        "notes": (),
    }
    assert describe(workloads.load(parse_target("add1"), {}, None))["kind"] == "scenario"


def test_a_module_takes_what_its_forward_takes() -> None:
    assert load("mine.py:layer", "one").call(torch.ones(3)).shape == (2,)
    assert complaint(load, "mine.py:layer") == (
        "mine.py:layer takes arguments (input): name a function that returns them in a tuple, --inputs my.py:make"
    )


def test_one_that_fails() -> None:
    assert complaint(load, "mine.py:fails", "make") == "mine:fails failed: ValueError: 3 and"


def test_one_that_ends_the_process() -> None:
    assert complaint(load, "mine.py:ends", "make") == "mine:ends failed: SystemExit: 3"


def test_one_that_fails_later() -> None:
    workload = load("mine.py:fails_later", "make")
    assert complaint(workloads.warm_up, workload) == (
        "mine:fails_later failed when it was called again with the same arguments: StopIteration"
    )


def test_one_of_c_that_does_not_say_what_it_takes() -> None:
    assert complaint(load, "torch:relu") == (
        'torch:relu failed: TypeError: relu() missing 1 required positional arguments: "input"; '
        "name a function that returns its arguments in a tuple, --inputs my.py:make"
    )
    assert load("torch:relu", "mine.py:one").variant == "relu"


@pytest.mark.parametrize(
    "function", [torch.relu, torch.no_grad()(lambda x: x + 1), torch.nn.ReLU()], ids=["builtin", "decorated", "module"]
)
def test_code_of_torch_is_compiled_for_each_workload(function: Any) -> None:
    """Dynamo compiles eight times for one code object, and then runs it as it is."""
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: object) -> Any:
        graphs.append(graph)
        return graph.forward

    for size in range(2, 12):
        given = Arguments((torch.ones(size),))
        workload = workloads.of_callable(function, given, {"backend": backend, "dynamic": False})
        assert workload.call_once(workload.call).shape == (size,)
    assert len(graphs) == 10


def test_values_that_the_calling_process_has_changed_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    (folder / "settled.py").write_text(
        "import torch\nCFG = {'n': 1, 'same': 2}\nlayer = torch.nn.Linear(2, 2)\nUNUSED = 1\n"
        "def f(): return layer.training and CFG['n']\n"
    )
    settled = importlib.import_module("settled")
    arguments = folder / "arguments.pickle"
    arguments.write_bytes(pickled(Arguments()))
    target = Target("settled:f", module="settled", name="f", arguments=arguments)

    def notes_of_another_process() -> tuple[str, ...]:
        arguments.with_suffix(VALUES).write_text(json.dumps(values_of(settled.f)))
        monkeypatch.delitem(sys.modules, "settled")
        return describe(workloads.load(target, {}, None))["notes"]

    assert notes_of_another_process() == ()
    monkeypatch.setitem(sys.modules, "settled", settled)
    settled.CFG.update(n=50, new=3)
    settled.UNUSED = 2
    settled.layer.eval().double()
    (note,) = notes_of_another_process()
    assert note == (
        "measured with CFG['n'] = 1, not 50, since fresh processes import the module again (3 more differ): set it where the"
        " module is imported, or profile a lambda, which is measured in this process"
    )


DIFFERING = """
import enum, random, torch
Mode = enum.Enum("Mode", {"A": object()})
rng, calls, mask = random.Random(), 0, None
@torch.compile(backend="eager")
def compiled(): return 1
def f():
    global calls, mask
    calls, mask = calls + 1, torch.ones(2)
    return Mode.A, rng, compiled(), __name__
"""


def test_values_that_each_process_or_the_call_itself_sets_are_not_noted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    (folder / "differing.py").write_text(DIFFERING)
    differing = importlib.import_module("differing")
    for _ in range(3):
        differing.f()
    arguments = folder / "arguments.pickle"
    arguments.write_bytes(pickled(Arguments()))
    arguments.with_suffix(VALUES).write_text(json.dumps(values_of(differing.f)))
    monkeypatch.delitem(sys.modules, "differing")
    target = Target("differing:f", module="differing", name="f", arguments=arguments)
    assert describe(workloads.load(target, {}, None))["notes"] == ()


def test_values_in_long_containers_are_not_listed() -> None:
    numbers = list(range(30_000))
    assert values_of(lambda: numbers) == {"defaults": "None", "keywords": "None"}


def test_a_module_of_a_call_from_python_is_searched_where_the_caller_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the working directory first, as on the command line."""
    (folder / "experiments").mkdir()
    for name in (".", "experiments"):
        for module in ("both_called", "both_asked"):
            (folder / name / f"{module}.py").write_text(f"def where(): return {name!r}\n")
    monkeypatch.syspath_prepend(str(folder / "experiments"))
    (arguments := folder / "arguments.pickle").write_bytes(pickled(Arguments()))
    called = Target("both_called:where", module="both_called", name="where", arguments=arguments)
    assert workloads.load(called, {}, None).call() == "experiments"
    assert load("both_asked:where").call() == "."


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        (torch.ones(1), []),
        (torch.ones(1, device="meta"), []),
        ((1, "x", None), []),
        (elsewhere(), ["cuda:1"]),
        ((torch.ones(1), {"a": [elsewhere(), elsewhere(0)]}, elsewhere()), ["cuda:1", "cuda:0"]),
        (SimpleNamespace(x=elsewhere()), ["cuda:1"]),
        (partial(print, elsewhere()), ["cuda:1"]),
        (Trainer(elsewhere()).step, ["cuda:1"]),
        (uses_a_global, ["cuda:1"]),
        (uses_a_function, ["cuda:1"]),
        (uses_nothing, []),
    ],
)
def test_where_tensors_are(value: Any, devices: list[str]) -> None:
    assert list(map(str, devices_of(value))) == devices


class Proxy:
    """As Flask's ``request`` outside a request."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError


@dataclass(slots=True)
class Unset:
    x: Any
    later: int = field(init=False)


def test_objects_that_cannot_be_looked_at_hide_no_tensors() -> None:
    assert list(map(str, devices_of([Proxy(), random.SystemRandom(), Unset(elsewhere())]))) == ["cuda:1"]
    unset = random.SystemRandom(), Unset(1)
    assert values_of(lambda: unset)["unset[1].x"] == "1"


def test_where_the_parameters_of_a_module_are() -> None:
    layer = torch.nn.Linear(2, 2)
    assert (devices_of(layer), devices_of(layer.forward)) == ((), ())
    layer.register_buffer("scale", elsewhere())
    assert devices_of(layer) == devices_of(layer.forward) == (torch.device("cuda:1"),)


def test_where_the_parameters_of_an_optimizer_are() -> None:
    weight = elsewhere()
    weight.requires_grad = True
    optimizer = torch.optim.SGD([{"params": [torch.ones(1, requires_grad=True)]}, {"params": [weight]}])
    assert devices_of([optimizer]) == devices_of(optimizer.step) == (torch.device("cuda:1"),)


def test_where_the_parameters_of_an_optimizer_with_a_scheduler_are() -> None:
    weight = elsewhere()
    weight.requires_grad = True
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    assert scheduler.optimizer is optimizer
    assert devices_of(optimizer.step) == (torch.device("cuda:1"),)


def test_where_the_tensors_are_that_a_function_takes_from_around_it() -> None:
    weight = elsewhere()

    def again(count: int) -> None:
        weight.add_(1)
        if count:
            again(count - 1)

    def unset() -> None:
        print(later)

    assert (devices_of(again), devices_of(unset)) == ((torch.device("cuda:1"),), ())
    later = 1


def test_where_the_tensor_of_a_bound_method_is() -> None:
    assert devices_of(elsewhere().backward) == devices_of(elsewhere().add_) == (torch.device("cuda:1"),)


@pytest.mark.parametrize(
    "body", ["identity = lambda x: x", "identity = lambda x: None", "identity = lambda: make()[0]"]
)
def test_a_call_waits_for_the_device_of_its_tensors(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Whether an argument is there or only the result."""
    waits: list[int] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    text = f"from {__name__} import elsewhere\ndef make():\n    return (elsewhere(),)\n{body}\n"
    (folder / "there.py").write_text(text)
    found = load("there.py:identity", None if "lambda:" in body else "make")
    assert (found.device, found.on_device) == ("cuda", True)
    found.run(3)
    assert waits == [1]


@pytest.mark.parametrize(
    ("named", "tensors", "waits_for"),
    [
        (None, "elsewhere(1)", ["cuda:1"]),
        (None, "elsewhere(1), elsewhere(0), elsewhere(1)", ["cuda:1", "cuda:0"]),
        ("cuda", "elsewhere(1)", ["cuda:1"]),
        ("cuda:1", "elsewhere(1)", ["cuda:1"]),
        ("cuda:2", "elsewhere(0)", ["cuda:0", "cuda:2"]),
        ("cuda:2", "None", ["cuda:2"]),
        ("cuda", "None", ["cuda"]),
    ],
)
def test_a_call_waits_for_every_device_of_its_tensors(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: str | None, tensors: str, waits_for: list[str]
) -> None:
    waits: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: waits.append(str(device)))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    (folder / "there.py").write_text(f"""
from dataclasses import dataclass
from overhead_lens.scenario import Scenario
from {__name__} import elsewhere

@dataclass(frozen=True)
class Params:
    device: str | None = {named!r}

SCENARIO = Scenario(
    name="there", summary="", source="", params=Params,
    inputs=lambda params: (({tensors},),), variants={{"one": lambda tensors: None}},
)
""")
    found = load("there.py:one")
    assert (found.device, found.on_device) == (named or "cuda", True)
    found.run(3)
    assert waits == waits_for


def test_a_call_on_the_cpu_waits_for_nothing() -> None:
    found = load("mine.py:scale", "make")
    assert (found.device, found.on_device, found.synchronize) == ("cpu", False, None)
