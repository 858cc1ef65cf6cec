"""Every remedy on calls of this process: what it changes, what it refuses, what it leaves as it was."""

from __future__ import annotations

import gc
import io
import itertools
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from overhead_lens.errors import UsageError
from overhead_lens.remedies import malloc, threads
from overhead_lens.remedies.registry import built_in
from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy, updated, with_own_code
from overhead_lens.scenario import Arguments
from overhead_lens.studies.advise.worker import Trials, compare_outcome
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.worker import remedied as applied
from overhead_lens.worker.remedied import known_remedies, remedied
from overhead_lens.worker.session import Session
from overhead_lens.worker.workload import Workload, of_callable
from tests.compiler import needs_compiler

REMEDIES = {remedy.name: remedy for remedy in built_in()}
X = torch.ones(3)


def workload(function: Callable[..., Any], *args: Any, compile: bool = False) -> Workload:
    return of_callable(function, Arguments(args), {} if compile else None)


def trial(name: str, function: Callable[..., Any], *args: Any, compile: bool = False) -> dict[str, Any]:
    return Trials(workload(function, *args, compile=compile), None, Path()).prepare(name)


def add(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def inside(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """What the function gives inside a remedy's contexts."""
    made = remedied(workload(function, *args), [REMEDIES[name]], Path())
    with made.entered():
        return made.workload.call_once(made.workload.call)


# ---------------------------------------------------------------- all of them
@pytest.mark.parametrize("remedy", REMEDIES.values(), ids=REMEDIES.keys())
def test_a_remedy_says_what_it_is(remedy: Remedy) -> None:
    assert remedy.name.isidentifier()
    assert remedy.source.startswith("https://")
    assert set(remedy.shrinks) <= set(HOST_CATEGORIES)
    assert remedy.summary
    assert remedy.how
    assert remedy.safety in ("safe", "changes_semantics", "unsafe")


def test_the_guard_filters_are_unsafe_as_torch_says() -> None:
    assert {name for name, remedy in REMEDIES.items() if remedy.safety == "unsafe"} == {
        *(
            f"guard_filter_{what}"
            for what in ("all", "inbuilt_modules", "modules", "but_tensors", "globals", "not_portable")
        ),
        "skip_guard_eval",
        "free_tensors",
    }


def test_names_are_taken_once() -> None:
    assert len(REMEDIES) == len(list(built_in()))


# ---------------------------------------------------------------- what a function sees of them
def test_contexts_are_entered_and_left() -> None:
    assert inside("inference_mode", torch.is_inference_mode_enabled) is True
    assert inside("no_grad", torch.is_grad_enabled) is False
    assert inside("gc_rarely", gc.get_threshold)[0] == 100 * gc.get_threshold()[0]
    assert (torch.is_inference_mode_enabled(), torch.is_grad_enabled()) == (False, True)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Of torch, which has as many as before in the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_threads_are_put_back(two_threads: None) -> None:
    assert inside("threads_1", torch.get_num_threads) == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    with pytest.raises(NotApplicableError, match="torch has 1 thread already"):
        remedied(workload(add, X), [REMEDIES["threads_1"]], Path())


def test_code_is_generated_for_these_threads(two_threads: None) -> None:
    from torch._inductor import config

    def generated_for() -> int:
        return int(config.cpp.threads)

    assert (generated_for(), inside("threads_1", generated_for), generated_for()) == (-1, 1, -1)


def test_channels_last_trains_the_parameters_themselves() -> None:
    conv, image = torch.nn.Conv2d(2, 3, 2), torch.ones(1, 2, 4, 4)
    optimizer = torch.optim.SGD(conv.parameters(), lr=0.1, momentum=0.9)
    stored, channels_first, before = conv.weight.data_ptr(), conv.weight.stride(), conv.weight.detach().clone()

    def trained() -> list[Any]:
        return [conv.weight, conv.weight.grad, optimizer.state[conv.weight]["momentum_buffer"]]

    def step(x: torch.Tensor) -> list[bool]:
        conv(x).sum().backward()
        optimizer.step()
        return [each.is_contiguous(memory_format=torch.channels_last) for each in (x, *trained())]

    assert inside("channels_last", step, image) == 4 * [True]
    assert image.is_contiguous()
    assert (conv.weight.data_ptr(), [each.stride() for each in trained()]) == (stored, 3 * [channels_first])
    assert not conv.weight.equal(before)


def test_channels_last_goes_with_inference_mode() -> None:
    conv, image = torch.nn.Conv2d(2, 3, 2), torch.ones(1, 2, 4, 4)
    made = remedied(workload(conv, image), [REMEDIES["inference_mode"], REMEDIES["channels_last"]], Path())
    with made.entered():
        assert conv.weight.is_contiguous(memory_format=torch.channels_last)
        assert made.workload.call_once(made.workload.call).is_contiguous(memory_format=torch.channels_last)
    assert (conv.weight.is_contiguous(), conv.weight.is_inference()) == (True, False)


@needs_compiler
def test_channels_last_of_a_compiled_call_gives_the_same() -> None:
    conv = torch.nn.Conv2d(2, 3, 2)
    found = trial("channels_last", conv, torch.ones(1, 2, 4, 4), compile=True)
    assert (found["status"], found["output"] in ("equal", "close"), conv.weight.is_contiguous()) == (
        "measured",
        True,
        True,
    )


@pytest.mark.parametrize("name", ["foreach", "fused"])
def test_optimizers_are_set_and_put_back(name: str) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False, fused=False)
    seen = []

    def step(x: torch.Tensor) -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append(dict(optimizer.param_groups[0]))

    inside(f"{name}_optimizer", step, torch.ones(1, 2))
    assert (seen[-1]["foreach"], seen[-1]["fused"]) == (name == "foreach", name == "fused")
    assert (optimizer.param_groups[0]["foreach"], optimizer.param_groups[0]["fused"]) == (False, False)


def test_a_fused_optimizer_counts_steps_where_its_parameters_are() -> None:
    weight = torch.nn.Parameter(torch.ones(2, device="meta"))
    optimizer = torch.optim.AdamW([weight])
    state = optimizer.state[weight]
    state["step"] = torch.tensor(3.0, dtype=torch.float64)
    (context,) = applied_to("fused_optimizer", optimizer).contexts
    with context():
        assert (state["step"].device.type, state["step"].dtype) == ("meta", torch.float32)
        # A counter of a real device has a value to come back with.
        state["step"] = torch.tensor(4.0)
    assert (state["step"].device.type, state["step"].item(), optimizer.param_groups[0]["fused"]) == ("cpu", 4, None)

    optimizer.param_groups[0]["fused"], state["step"] = True, torch.tensor(4.0)
    (context,) = applied_to("foreach_optimizer", optimizer).contexts
    with context():
        assert state["step"].device.type == "cpu"
    assert state["step"].device.type == "meta"


def test_gradients_are_dropped() -> None:
    model = torch.nn.Linear(2, 2)

    def step(x: torch.Tensor) -> object:
        model(x).sum().backward()
        model.zero_grad(set_to_none=False)
        return model.weight.grad

    assert inside("set_to_none", step, torch.ones(1, 2)) is None
    assert isinstance(workload(step, torch.ones(1, 2)).call(torch.ones(1, 2)), torch.Tensor)

    def dropping(x: torch.Tensor) -> object:
        model.zero_grad()
        return model(x)[0]

    for function, argument in ((add, X), (dropping, torch.ones(1, 2))):
        with pytest.raises(NotApplicableError, match="does not call zero_grad"):
            remedied(workload(function, argument), [REMEDIES["set_to_none"]], Path())


def test_data_loaders_get_workers() -> None:
    loader = torch.utils.data.DataLoader(list(range(8)), batch_size=4)

    def batches() -> int:
        return loader.num_workers

    assert (inside("loader_workers", batches) > 0, loader.num_workers) == (True, 0)
    with pytest.raises(NotApplicableError, match="there are no workers"):
        remedied(workload(batches), [REMEDIES["no_loader_workers"]], Path())


def test_a_loader_gets_a_worker_for_each_core_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    loader = torch.utils.data.DataLoader([1, 2])
    with applied_to("loader_workers", loader).contexts[0]():
        assert loader.num_workers == 3


class Pids(torch.utils.data.Dataset[int]):
    """Eight samples, each the process that makes it."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        return os.getpid()


def test_data_loaders_do_without_workers_and_get_them_back() -> None:
    loader = torch.utils.data.DataLoader(Pids(), batch_size=4, num_workers=1, persistent_workers=True)

    def epoch() -> list[int]:
        return torch.cat(list(loader)).tolist()

    makers, iterator = epoch(), loader._iterator
    assert os.getpid() not in makers
    assert inside("no_loader_workers", epoch) == [os.getpid()] * 8
    assert (loader._iterator, loader.num_workers, loader.persistent_workers) == (iterator, 1, True)
    assert epoch() == makers


def test_a_process_can_have_a_remedy_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    with ExitStack() as entered:
        monkeypatch.setattr(applied, "_entered", entered)
        applied.for_good(workload(add, X), ["gc_rarely", "threads_1"], None, Path())
        gc.collect()
        assert (gc.get_threshold()[0], torch.get_num_threads()) == (100 * before[0], 1)
    assert gc.get_threshold() == before


def test_a_call_with_other_arguments_is_measured_with_them() -> None:
    seen: list[tuple[Any, ...]] = []

    def noted(*args: Any, **keywords: Any) -> None:
        seen.append((args, keywords))

    other = replace(REMEDIES["no_grad"], apply=lambda call: replace(call, args=(1, 2, 3), keywords=("alpha", "beta")))
    remedied(workload(noted, X), [other], Path()).workload.run(2)
    assert seen[1:] == 2 * [((1,), {"alpha": 2, "beta": 3})]


# ---------------------------------------------------------------- outputs
def test_a_remedy_that_changes_the_output_is_found(two_threads: None) -> None:
    assert trial("inference_mode", torch.is_inference_mode_enabled)["output"] == "differs"
    assert trial("no_grad", torch.is_grad_enabled)["output"] == "differs"
    assert trial("threads_1", torch.get_num_threads)["output"] == "differs"


def test_what_is_lost_is_the_gradient() -> None:
    found = trial("no_grad", add, torch.ones(3, requires_grad=True))
    assert (found["status"], found["output"], found["loses_gradient"]) == ("measured", "equal", True)
    assert trial("no_grad", add, X)["loses_gradient"] is False


def test_a_call_that_gives_another_answer_each_time_has_unknown_outputs() -> None:
    numbers = itertools.count()
    trials = Trials(workload(lambda: next(numbers)), None, Path())
    assert (trials.repeats, trials.reason, trials.prepare("no_grad")["output"]) == (False, "", "unknown")

    started = SimpleNamespace(at=0)

    def timing(x: torch.Tensor) -> torch.Tensor:
        started.at = next(numbers)
        return x + 1

    assert Trials(workload(timing, X), None, Path()).reason == "called twice, it leaves another function.started.at"


class Trainer:
    """A training step as programs have it."""

    def __init__(self) -> None:
        self.model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self, x: torch.Tensor) -> torch.Tensor:
        return training_step(self.model, self.optimizer, x)


def training_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad(set_to_none=False)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def halved(optimizer: torch.optim.Optimizer) -> Any:
    """A context in which every step is half as long: the loss of a single step is the same."""
    rates = [group["lr"] / 2 for group in optimizer.param_groups]
    return updated(optimizer.param_groups, {"lr": rates[0]})


@pytest.mark.parametrize("kind", ["arguments", "closure", "partial", "method"])
def test_a_remedy_that_breaks_the_training_is_found_wherever_its_state_is(kind: str) -> None:
    trainer, x = Trainer(), torch.ones(3, 2)
    model, optimizer = trainer.model, trainer.optimizer
    function, args = {
        "arguments": (training_step, (model, optimizer, x)),
        "closure": (lambda x: training_step(model, optimizer, x), (x,)),
        "partial": (partial(training_step, model, optimizer), (x,)),
        "method": (trainer.step, (x,)),
    }[kind]
    trials = Trials(workload(function, *args), None, Path())
    wrong = replace(REMEDIES["no_grad"], apply=lambda call: call.inside(lambda: halved(optimizer)))
    trials.known = {**trials.known, "wrong": wrong}
    names = ("foreach_optimizer", "fused_optimizer", "set_to_none", "gc_rarely", "wrong")
    found = {name: trials.prepare(name) for name in names}
    assert {name: each["status"] for name, each in found.items()} == dict.fromkeys(names, "measured")
    outputs = {name: each["output"] for name, each in found.items()}
    assert outputs["fused_optimizer"] in ("equal", "close")
    assert outputs | {"fused_optimizer": ""} == {
        "foreach_optimizer": "equal",
        "fused_optimizer": "",
        "set_to_none": "equal",
        "gc_rarely": "equal",
        "wrong": "differs",
    }


def test_an_outcome_is_compared_in_another_process(tmp_path: Path) -> None:
    def loaded(rate: float) -> Workload:
        torch.manual_seed(0)
        trainer = Trainer()
        trainer.optimizer.param_groups[0]["lr"] *= rate
        made = workload(trainer.step, torch.ones(3, 2))
        trainer.optimizer.param_groups[0]["lr"] = 1e-3
        return made

    Trials(loaded(1.0), None, tmp_path).save()
    session = Session(io.StringIO(), lambda _: None)
    outputs = []
    for rate in (1.0, 3.0):
        session.workload = loaded(rate)
        outputs.append(compare_outcome(session, str(tmp_path))["output"])
    assert outputs == ["equal", "differs"]


def test_a_module_compiled_a_second_time_keeps_its_state() -> None:
    module = Counting()
    with_own_code(module)(X)
    assert module.calls == 1
    trials = Trials(workload(module, X), None, Path())
    trials.known = {
        **trials.known,
        "compile": replace(REMEDIES["compile"], apply=lambda call: call.compiled(backend="eager")),
    }
    assert [trials.prepare(name)["output"] for name in ("compile", "no_grad")] == ["equal", "equal"]


class Counting(torch.nn.Module):
    """A module that counts its calls."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + self.calls


def test_a_result_that_the_scenario_rejects_is_a_failure(tmp_path: Path) -> None:
    def check(_params: Any, args: tuple[Any, ...], output: torch.Tensor) -> None:
        assert output.equal(args[0] + 1), "not one more"

    def two_more(x: torch.Tensor) -> torch.Tensor:
        return x + 2

    made = workload(add, X)
    made = replace(made, scenario=replace(made.scenario, check=check))
    trials = Trials(made, None, tmp_path)
    trials.known = {"wrong": replace(REMEDIES["no_grad"], apply=lambda call: replace(call, function=two_more))}
    trials.repeats = False
    rejected = {"status": "failed", "reason": "it gives a wrong result: AssertionError: not one more"}
    rejected["output"] = "unknown"
    assert rejected.items() <= trials.prepare("wrong").items()

    trials.save()
    session = Session(io.StringIO(), lambda _: None)
    session.workload = replace(made, call=two_more)
    assert rejected.items() <= compare_outcome(session, str(tmp_path)).items()


def test_a_failure_is_a_line() -> None:
    def needs_grad(x: torch.Tensor) -> torch.Tensor:
        (gradient,) = torch.autograd.grad(x.sum(), x)
        return gradient

    found = trial("no_grad", needs_grad, torch.ones(3, requires_grad=True))
    assert (found["status"], found["output"]) == ("failed", "unknown")
    assert found["reason"].startswith("RuntimeError: element 0 of tensors does not require grad")


# ---------------------------------------------------------------- several at once
def test_remedies_that_undo_each_other_are_not_combined() -> None:
    def one_more(x: torch.Tensor) -> torch.Tensor:
        return 1 + x

    trials = Trials(workload(add, X), None, Path())
    ways = {"wrapped": lambda x: add(x), "other": one_more}
    trials.known = {
        "no_grad": REMEDIES["no_grad"],
        **{
            name: replace(REMEDIES["no_grad"], apply=lambda call, way=way: replace(call, function=way))
            for name, way in ways.items()
        },
    }
    undone = trials.combine(["wrapped", "other"])
    assert (undone["status"], undone["reason"]) == ("not_applicable", "one remedy undoes another")
    fits = trials.combine(["wrapped", "no_grad"])
    assert (fits["status"], fits["output"]) == ("measured", "equal")


@needs_compiler
def test_what_is_for_compiled_calls_is_not_combined_with_eager() -> None:
    trials = Trials(workload(add, X, compile=True), None, Path())
    assert trials.combine(["size_asserts_off", "eager"])["reason"] == "the call is not compiled"


def test_what_changes_the_output_only_together_is_found() -> None:
    def twice() -> bool:
        return torch.is_inference_mode_enabled() and gc.get_threshold()[0] > threshold

    threshold = gc.get_threshold()[0]
    trials = Trials(workload(twice), None, Path())
    names = ["inference_mode", "gc_rarely"]
    assert [trials.prepare(name)["output"] for name in names] == ["equal", "equal"]
    assert trials.combine(names)["output"] == "differs"


# ---------------------------------------------------------------- compiled calls
def test_what_needs_a_compiled_call_says_so() -> None:
    names = ("size_asserts_off", "cpp_wrapper", "guard_filter_all", "skip_guard_eval", "recursive_dict_tags", "eager")
    for name in (*names, "dynamic_on", "fullgraph"):
        with pytest.raises(NotApplicableError, match="not compiled|this torch has no"):
            remedied(workload(add, X), [REMEDIES[name]], Path())


@needs_compiler
@pytest.mark.parametrize("name", ["size_asserts_off", "dynamic_on", "dynamic_off", "fullgraph", "skip_guard_eval"])
def test_a_compiled_call_with_a_remedy_gives_the_same(name: str) -> None:
    found = trial(name, add, X, compile=True)
    assert (found["status"], found["reason"], found["output"], found["leaks"]) == ("measured", None, "equal", False)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_call_is_compiled_ahead_of_time_once_for_all_processes_with_the_same_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_threads: None
) -> None:
    from torch._inductor import config

    packaged, loaded = [], []

    def package(exported: Any, *, package_path: str) -> None:
        assert not torch.is_inference_mode_enabled()
        packaged.append((exported.module()(2 * X).tolist(), torch.get_num_threads(), config.cpp.threads))
        Path(package_path).touch()

    def load(path: str) -> Callable[..., Any]:
        loaded.append(path)
        return add

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", package)
    monkeypatch.setattr(torch._inductor, "aoti_load_package", load)
    work = workload(add, X, compile=True)
    for names in (
        ["aot_inductor"],
        ["aot_inductor"],
        ["aot_inductor", "threads_1"],
        ["inference_mode", "threads_1", "aot_inductor"],
    ):
        made = remedied(work, [REMEDIES[name] for name in names], tmp_path).workload
        assert (made.call, made.compile_options) == (add, None)
    assert packaged == [([3.0] * 3, 2, -1), ([3.0] * 3, 1, 1), ([3.0] * 3, 1, 1)]
    assert (loaded[0], len({*loaded})) == (loaded[1], 3)
    assert all(Path(path).exists() for path in loaded)


def test_where_a_compiler_keeps_its_code_is_no_trace_of_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    trials = Trials(workload(add, X), None, Path())

    def setting(name: str) -> Remedy:
        def apply(call: Call) -> Call:
            monkeypatch.setenv(name, "set")
            return call

        return replace(REMEDIES["no_grad"], apply=apply)

    trials.known = {name: setting(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "OTHER")}
    assert {name: trials.prepare(name)["leaks"] for name in trials.known} == {
        "TORCHINDUCTOR_CACHE_DIR": False,
        "OTHER": True,
    }


@needs_compiler
def test_compiling_is_seen_by_a_function_that_asks() -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if torch.compiler.is_compiling() else x

    assert trial("compile", asks, X)["output"] == "differs"
    assert trial("eager", asks, X, compile=True)["output"] == "differs"


def test_options_join_a_mode() -> None:
    call = Call(add, (X,), compile_options={"mode": "max-autotune-no-cudagraphs", "fullgraph": True})
    options = call.with_options(size_asserts=False).compile_options
    assert options is not None
    assert (options["fullgraph"], options["options"]["size_asserts"], "mode" in options) == (True, False, False)
    assert options["options"]["max_autotune"] is True


def test_code_objects_of_their_own() -> None:
    module = torch.nn.Linear(2, 2)
    copy = with_own_code(module)
    assert type(copy).forward.__code__ is not torch.nn.Linear.forward.__code__
    assert isinstance(copy, torch.nn.Linear)
    assert copy.weight is module.weight
    assert with_own_code(add).__code__ is not add.__code__
    assert with_own_code(module.forward)(torch.zeros(2)).tolist() == module.bias.tolist()
    assert with_own_code(torch.add) is torch.add


@pytest.mark.parametrize(
    "function",
    [torch.nn.Sequential(torch.nn.ReLU()), torch.no_grad()(add), torch.relu, partial(torch.sum, dim=0)],
    ids=["module", "decorated", "builtin", "partial"],
)
def test_every_way_to_compile_code_of_torch_is_compiled(function: Callable[..., Any]) -> None:
    """Dynamo compiles eight times for one code object, then runs it as it is."""
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    trials = Trials(workload(function, X), None, Path())
    names = [f"compile_{number}" for number in range(10)]
    compiled = replace(REMEDIES["compile"], apply=lambda call: call.compiled(backend=backend))
    trials.known = {**trials.known, **dict.fromkeys(names, compiled)}
    assert [trials.prepare(name)["output"] for name in names] == ["equal"] * 10
    assert len(graphs) == 10


# ---------------------------------------------------------------- what they change
def applied_to(name: str, *args: Any, function: Callable[..., Any] = add, **fields: Any) -> Call:
    return REMEDIES[name].apply(Call(function, args, **fields))


def test_denormal_numbers_are_zero_inside() -> None:
    small = torch.full((64,), 1e-310, dtype=torch.float64)

    def halved(x: torch.Tensor) -> int:
        return int((x * 0.5).count_nonzero())

    assert (halved(small), inside("flush_denormal", halved, small), halved(small)) == (64, 0, 64)


def test_denormal_numbers_that_are_zero_already_stay_so() -> None:
    torch.set_flush_denormal(True)
    try:
        with pytest.raises(NotApplicableError, match="it is on"):
            applied_to("flush_denormal", X)
        assert (torch.tensor(1e-310, dtype=torch.float64) * 1).item() == 0
    finally:
        torch.set_flush_denormal(False)


def test_an_answer_of_an_unknown_type_is_not_called_another_answer() -> None:
    made = workload(lambda x: (x, object()), X)
    assert (Trials(made, None, Path()).repeats, Trials(made, None, Path()).reason) == (False, "it cannot be compared")


def test_a_thread_for_each_physical_core(monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    monkeypatch.setattr(threads, "physical_cores", lambda: 3)
    assert (inside("threads_physical", torch.get_num_threads), torch.get_num_threads()) == (3, 2)


def test_a_core_whose_threads_cannot_be_read_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, _: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(threads, "cores", lambda: range(3))
    monkeypatch.setattr(Path, "exists", lambda _: True)
    monkeypatch.setattr(Path, "read_text", refused)
    assert threads.physical_cores() == 3


def test_pinned_memory_is_for_devices() -> None:
    loader = torch.utils.data.DataLoader([1, 2])
    call = applied_to("pin_memory", loader, device="cuda")
    assert loader.pin_memory is False
    with call.contexts[0]():
        assert loader.pin_memory is True
        with pytest.raises(NotApplicableError, match="^it is on$"):
            applied_to("pin_memory", loader, device="cuda")
    assert loader.pin_memory is False


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("malloc_huge_pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("malloc_keeps_pages", {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}),
        ("omp_wait_active", {"OMP_WAIT_POLICY": "active"}),
    ],
)
def test_variables_change_a_process_and_not_the_call(
    monkeypatch: pytest.MonkeyPatch, two_threads: None, name: str, variables: dict[str, str]
) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert (applied_to(name, X), REMEDIES[name].variables()) == (Call(add, (X,)), variables)


def test_variables_that_are_set_already_are_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malloc, "find_library", lambda name: f"lib{name}.so.2")
    for preloaded, joined in (("", "libjemalloc.so.2"), ("mine.so other.so", "libjemalloc.so.2:mine.so other.so")):
        monkeypatch.setenv("LD_PRELOAD", preloaded)
        assert REMEDIES["jemalloc"].variables() == {"LD_PRELOAD": joined}
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=1")
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.check=1:glibc.malloc.hugetlb=1"}
    assert REMEDIES["malloc_huge_pages"].variables() == tunables


def test_a_library_is_named_as_it_is_installed_without_headers() -> None:
    hows = [REMEDIES[name].how for name in ("jemalloc", "tcmalloc")]
    assert hows == ["LD_PRELOAD=libjemalloc.so.2", "LD_PRELOAD=libtcmalloc_minimal.so.4"]


def test_options_of_a_compiled_call() -> None:
    options = {"fullgraph": True}
    assert applied_to("dynamic_off", X, compile_options=options).compile_options == {**options, "dynamic": False}
    on_device = applied_to("reduce_overhead", X, device="cuda", compile_options=options)
    assert on_device.compile_options == {**options, "mode": "reduce-overhead"}
    frozen = applied_to("freezing", X, function=torch.nn.Linear(3, 3), compile_options=options)
    assert (frozen.compile_options, frozen.contexts) == ({**options, "options": {"freezing": True}}, (torch.no_grad,))


# ---------------------------------------------------------------- what they are not for
def drops(x: torch.Tensor) -> None:
    x.zero_grad(set_to_none=False)


ON_CPU, ON_CUDA, COMPILED = {"device": "cpu"}, {"device": "cuda"}, {"compile_options": {}}


@pytest.mark.parametrize(
    ("name", "args", "fields", "reason"),
    [
        ("aot_inductor", (1,), {}, "an argument is not a tensor, or is passed by name"),
        ("aot_inductor", (X,), {"keywords": ("x",)}, "an argument is not a tensor, or is passed by name"),
        ("compile", (X,), COMPILED, "the call is compiled"),
        ("dynamic_off", (X,), {"compile_options": {"dynamic": False}}, "it is compiled with dynamic=False"),
        ("dynamic_on", (X,), {"compile_options": {"dynamic": True}}, "it is compiled with dynamic=True"),
        ("dynamic_on", (X,), {}, "the call is not compiled"),
        ("freezing", (X,), COMPILED, "the call has no module whose weights could be frozen"),
        ("fullgraph", (X,), {"compile_options": {"fullgraph": True}}, "it is already compiled with fullgraph=True"),
        ("reduce_overhead", (X,), ON_CPU, "CUDA graphs need a CUDA device"),
        ("channels_last", (X,), {}, "no argument is a tensor of four dimensions"),
        ("flush_denormal", (X,), ON_CUDA, "the call runs on a device"),
        ("threads_1", (X,), ON_CUDA, "the call runs on a device"),
        ("omp_wait_active", (X,), ON_CUDA, "no other thread works for the call"),
        ("pin_memory", (torch.utils.data.DataLoader([1]),), ON_CPU, "pinned memory serves copies to a device"),
        ("pin_memory", (X,), ON_CUDA, "the function reaches no DataLoader by its arguments, closure or globals"),
        (
            "no_loader_workers",
            (torch.utils.data.DataLoader([1], num_workers=1, timeout=5),),
            {},
            "the loader has a timeout of its own",
        ),
        ("fused_optimizer", (X,), {}, "the function reaches no optimizer by its arguments, closure or globals"),
        ("set_to_none", (X,), {}, "the function does not call zero_grad(set_to_none=False)"),
        ("set_to_none", (X,), {"function": drops}, "the function reaches no optimizer and no module"),
    ],
)  # fmt: skip
def test_what_a_remedy_is_not_for(name: str, args: tuple[Any, ...], fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotApplicableError) as refused:
        applied_to(name, *args, **fields)
    assert str(refused.value) == reason


def test_what_holds_already_needs_no_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    with torch.no_grad(), pytest.raises(NotApplicableError, match="^gradients are off$"):
        applied_to("no_grad", X)
    with torch.inference_mode(), pytest.raises(NotApplicableError, match="^inference mode is on$"):
        applied_to("inference_mode", X)
    with pytest.raises(NotApplicableError, match="^the garbage collector is off$"):
        applied_to("gc_rarely", X)


def test_what_this_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(torch, "set_flush_denormal", lambda _: False)
    for name, reason in {
        "malloc_huge_pages": "the C library is not glibc",
        "flush_denormal": "this processor cannot flush denormal numbers",
    }.items():
        with pytest.raises(NotApplicableError) as refused:
            applied_to(name, X, **COMPILED)
        assert str(refused.value) == reason


# ---------------------------------------------------------------- a user's file
NAMED = """from overhead_lens.remedies.remedy import Remedy
REMEDY = Remedy(name={!r}, summary='s', how='h', shrinks=(), source='')
"""


def test_a_users_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import replace\n"
        "from overhead_lens.remedies.remedy import Remedy\n"
        "REMEDY = Remedy(name='twice', summary='s', how='h', shrinks=('python',), source='https://x',\n"
        "                apply=lambda call: replace(call, function=lambda x: x * 2))\n"
    )
    work = workload(add, X)
    assert "twice" in known_remedies(work, str(file))
    assert Trials(work, str(file), Path()).prepare("twice")["output"] == "equal"
    assert Trials(workload(add, 2 * X), str(file), Path()).prepare("twice")["output"] == "differs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "defines no REMEDY or REMEDIES"),
        ("REMEDY = 'no'", "an object of type str is not a Remedy"),
        ("REMEDIES = 5", "REMEDIES is not a list of remedies"),
        *(
            (NAMED.format(name), "is not a valid name of a remedy")
            for name in ("../elsewhere", "", None, "two words", "base")
        ),
        ("def (", "invalid syntax"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
        (
            """from overhead_lens.remedies.remedy import Remedy
REMEDIES = 2 * [Remedy(name='a', summary='s', how='h', shrinks=(), source='')]""",
            "there is a remedy a already",
        ),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        known_remedies(workload(add, X), str(file))
