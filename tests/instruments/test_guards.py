"""The guards of real compiled calls: each with its cause and its time, and what cannot be timed with the reason."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from overhead_lens.budget.guards import _FILTERS, guard_groups
from overhead_lens.instruments.guards import worker as listing
from overhead_lens.instruments.guards.record import LIST, Guards
from overhead_lens.machine.operations import LOAD, WARM_UP
from overhead_lens.machine.process import Worker
from overhead_lens.scenario import Arguments
from overhead_lens.target import Target, parse_target
from overhead_lens.worker.workload import Workload, compile_call, of_callable
from tests.compiler import needs_compiler
from tests.worker.answering import session_of

pytestmark = [
    pytest.mark.measures,
    needs_compiler,
    pytest.mark.skipif(sys.platform == "win32", reason="the recorder measures on Linux and macOS only"),
]

SCENARIO = """
from dataclasses import dataclass
import torch
from overhead_lens.scenario import Scenario

SCALE = 3.0

@dataclass(frozen=True)
class Params:
    size: int = 4

class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * SCALE

def plain(x, module):
    return module(x) + 1

def broken(x, module):
    y = module(x)
    print("seen")
    return y + 1

SCENARIO = Scenario(
    name="guarded", summary="", source="", params=Params,
    inputs=lambda params: (torch.ones(params.size), Doubled()),
    variants={"plain": plain, "broken": broken},
)
"""


def guards(folder: Path, variant: str) -> Guards:
    path = folder / "guarded.py"
    path.write_text(SCENARIO)
    with Worker("tracer", folder / "log", 300) as worker:
        worker.ask(LOAD, target=Target(str(path), path, name=variant).to_json(), params={}, compile_options={})
        worker.ask(WARM_UP)
        return worker.ask(LIST)


def torch_names_causes() -> bool:
    """Whether this torch writes the line that needed a guard behind a tensor's guard, as not all versions do."""
    import torch
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list as cache_entries

    def negated(x: Any) -> Any:
        return -x

    torch.compile(negated, backend="eager")(torch.ones(2))
    root = cache_entries(negated.__code__)[0].guard_manager.root
    leaves = [leaf for child in root.get_child_managers() for leaf in child.get_leaf_guards()]
    leaves += [
        leaf
        for child in root.get_child_managers()
        for next_ in child.get_child_managers()
        for leaf in next_.get_leaf_guards()
    ]
    return any("negated" in part for leaf in leaves for part in leaf.verbose_code_parts())


def test_guards_of_a_call(tmp_path: Path) -> None:
    found = guards(tmp_path, "plain")
    assert found.reason is None
    by_name = {(each.type, each.source): each for each in found.guards}
    tensor = by_name["TENSOR_MATCH", "L['x']"]
    if torch_names_causes():
        path = tmp_path / "guarded.py"
        shared = os.path.commonpath([path, sysconfig.get_paths()["platlib"]])
        shown = path if shared == "/" else path.relative_to(shared)
        assert tensor.cause == f"{shown}:14 in forward: return x * SCALE"
    else:
        assert tensor.cause is None
    scale = by_name["EQUALS_MATCH", "G['SCALE']"]
    assert scale.text.startswith("G['SCALE'] == 3.0")
    assert ("TYPE_MATCH", "L['module']") in by_name
    assert all(each.reason is None and len(each.warm_ns or ()) == 15 for each in found.guards)
    assert all(each.cold_ns is not None for each in found.guards)
    assert found.tree is not None
    assert len(found.tree.warm_ns or ()) == 15
    assert [each.name for each in found.compilations] == ["plain"]
    assert found.graph_breaks == []


def test_a_graph_that_breaks(tmp_path: Path) -> None:
    found = guards(tmp_path, "broken")
    (where,) = {each.place for each in found.graph_breaks}
    assert where is not None
    assert where.endswith("guarded.py:21")
    assert "print" in found.graph_breaks[0].reason
    names = [each.name for each in found.compilations]
    assert names[0] == "broken"
    assert names[1].startswith("torch_dynamo_resume_in_broken")


def test_a_source_without_a_value() -> None:
    assert listing._value("L['x'][1]", {"L": {"x": [5, 6]}}) == (6, None)
    assert listing._value("nowhere", {}) == (None, "its source cannot be evaluated here: NameError")
    warm, cold = listing._timed({0: (lambda _: True, 7)})
    assert (len(warm[0]), [*cold]) == (15, [0])


NESTED = """
import torch

class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

MODEL = Own().eval().requires_grad_(False)

def call(x):
    return MODEL(x)

def make():
    return (torch.ones(2, 2),)
"""


def test_guards_of_what_a_dict_holds(tmp_path: Path) -> None:
    """A module tree is guarded item by item of its dicts, by managers that are not among a manager's children."""
    path = tmp_path / "nested.py"
    path.write_text(NESTED)
    target = parse_target(f"{path}:call", "make")
    with Worker("tracer", tmp_path / "log", 300) as worker:
        worker.ask(LOAD, target=target.to_json(), params={}, compile_options={})
        worker.ask(WARM_UP)
        found = worker.ask(LIST)
    weights = [each for each in found.guards if each.type == "TENSOR_MATCH" and "_parameters['weight']" in each.source]
    assert [each.source for each in weights] == [
        f"G['MODEL']._modules['layers']._modules['{at}']._parameters['weight']" for at in range(3)
    ]
    assert {each.owner for each in weights} == {"inbuilt"}
    owners = {each.source: each.owner for each in found.guards}
    assert (owners["G['MODEL']"], owners["L['x']"]) == ("own", "")
    layers = [each for each in guard_groups(found, ()) if each.by == "layer"]
    assert [(each.name, each.layers) for each in layers] == [("MODEL.layers[*]", 3)]


class Mixed(torch.nn.Module):
    """Modules of torch, in containers and in a list, with parameters, buffers and other tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
        self.pair = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        self.norm = torch.nn.BatchNorm1d(2)
        self.listed = [torch.nn.Linear(2, 2)]
        self.scale = torch.ones(2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(self.listed[0](self.pair(x))) * self.scale + self.shift


MIXED = Mixed().eval().requires_grad_(False)
TENSOR, PARAMETER = torch.ones(2, 2), torch.nn.Parameter(torch.ones(2))
SETTINGS = {"scale": 3.0}


def of_a_global_module(x: torch.Tensor) -> Any:
    return MIXED(x)


def of_a_passed_module(x: torch.Tensor, module: Any) -> Any:
    return module(x) if not hasattr(module, "is_off") else x


def of_globals(x: torch.Tensor, module: Any) -> Any:
    return module(x) * PARAMETER * TENSOR * SETTINGS["scale"]


def of_a_global_passed(x: torch.Tensor) -> Any:
    return TENSOR + x


CALLS = {
    of_a_global_module: (torch.ones(2, 2),),
    of_a_passed_module: (torch.ones(2, 2), Mixed().eval()),
    of_globals: (torch.ones(2, 2), torch.nn.Linear(2, 2)),
    of_a_global_passed: (TENSOR,),
}


@pytest.mark.parametrize("name", _FILTERS)
@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
def test_what_filters_leave_out_is_what_torch_leaves_out(
    function: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_timed", lambda _: ({}, {}))

    def listed(**options: Any) -> Guards:
        torch.compiler.reset()
        workload = of_callable(function, Arguments(CALLS[function]), {"backend": "eager", **options})
        compile_call(workload)
        return msgspec.convert(listing.list_guards(session_of(workload)), Guards)

    whole = listed()
    left = listed(options={"guard_filter_fn": getattr(torch.compiler, name)})
    counts = {group.name: group.count for group in guard_groups(whole, ()) if group.by == "filter"}
    assert counts.get(name, 0) == len(whole.guards) - len(left.guards)


def test_guards_that_no_call_reaches_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_timed", lambda calls: ({number: [1.0] for number in calls}, {}))

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def listed(workload: Workload) -> tuple[list[str], bool]:
        found = msgspec.convert(listing.list_guards(session_of(workload)), Guards)
        return [each.source for each in found.guards if each.type == "TENSOR_MATCH"], found.tree is not None

    torch.compiler.reset()
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    workload = of_callable(doubled, Arguments((single,)), {"backend": "eager"})
    compile_call(workload)
    assert listed(workload) == (["L['x']"], True)
    workload.call(double)
    # The entry of the last call stands in front: the next call of the workload checks it before its own.
    assert listed(workload) == (["L['x']", "L['x']"], False)
    workload.call(single)
    assert listed(workload) == (["L['x']"], True)
    # A call that fits none, as after too many compilations, checks all of them.
    other = of_callable(doubled, Arguments((torch.ones(2, dtype=torch.int64),)), {"backend": "eager"})
    assert listed(other) == (["L['x']", "L['x']"], False)


class Scaled(torch.nn.Module):
    """A module as programs define it."""

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return given * 2


def negated(given: torch.Tensor) -> torch.Tensor:
    return -given


@pytest.mark.parametrize(
    ("function", "source"),
    [
        (Scaled(), "L['given']"),
        (Scaled().forward, "L['given']"),
        (torch.nn.Sequential(torch.nn.ReLU()), "L['args'][0]"),
        (torch.no_grad()(negated), "L['args'][0]"),
        (torch.relu, "L['args'][0]"),
    ],
    ids=["module", "method", "torch's module", "decorated", "builtin"],
)
def test_guards_of_what_is_no_plain_function(function: Any, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_timed", lambda calls: ({number: [1.0] for number in calls}, {}))
    workload = of_callable(function, Arguments((torch.ones(2),)), {"backend": "eager"})
    compile_call(workload)
    found = msgspec.convert(listing.list_guards(session_of(workload)), Guards)
    assert [each.source for each in found.guards if each.type == "TENSOR_MATCH"] == [source]
    assert ([each.reason for each in found.guards if each.reason], found.reason) == ([], None)
    assert found.tree is not None
