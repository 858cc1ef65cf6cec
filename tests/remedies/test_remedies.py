"""Every remedy on calls of this process: what it changes, what it refuses, what it leaves as it was."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from overhead_lens.errors import UsageError
from overhead_lens.remedies.registry import built_in
from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy, with_own_code
from overhead_lens.scenario import Arguments
from overhead_lens.studies.advise.worker import Trials
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.worker import remedied as applied
from overhead_lens.worker.remedied import known_remedies, remedied
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


def test_channels_last_changes_copies() -> None:
    conv, image = torch.nn.Conv2d(2, 3, 1), torch.ones(1, 2, 4, 4)
    made = remedied(workload(conv, image), [REMEDIES["channels_last"]], Path()).workload
    assert made.args[0].is_contiguous(memory_format=torch.channels_last)
    assert made.original is not conv
    assert (conv.weight.is_contiguous(), image.is_contiguous()) == (True, True)


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
    calls = []

    def counting() -> int:
        calls.append(1)
        return len(calls)

    trials = Trials(workload(counting), None, Path())
    assert (trials.repeats, trials.prepare("no_grad")["output"]) == (False, "unknown")


def test_a_failure_is_a_line() -> None:
    def needs_grad(x: torch.Tensor) -> torch.Tensor:
        (gradient,) = torch.autograd.grad(x.sum(), x)
        return gradient

    found = trial("no_grad", needs_grad, torch.ones(3, requires_grad=True))
    assert (found["status"], found["output"]) == ("failed", "unknown")
    assert found["reason"].startswith("RuntimeError: element 0 of tensors does not require grad")


# ---------------------------------------------------------------- compiled calls
def test_what_needs_a_compiled_call_says_so() -> None:
    names = ("size_asserts_off", "cpp_wrapper", "guard_filter_all", "skip_guard_eval", "recursive_dict_tags", "eager")
    for name in (*names, "dynamic_on", "fullgraph"):
        with pytest.raises(NotApplicableError, match="not compiled|this torch has no"):
            remedied(workload(add, X), [REMEDIES[name]], Path())


@needs_compiler
@pytest.mark.parametrize(
    "name", ["size_asserts_off", "recursive_dict_tags", "dynamic_on", "fullgraph", "skip_guard_eval"]
)
def test_a_compiled_call_with_a_remedy_gives_the_same(name: str) -> None:
    found = trial(name, add, X, compile=True)
    assert (found["status"], found["output"], found["leaks"]) in (
        ("measured", "equal", False),
        ("not_applicable", "unknown", False),
    )


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
    with pytest.raises(NotApplicableError, match="a builtin_function_or_method cannot be compiled a second time"):
        with_own_code(torch.add)


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
        ("REMEDY = 'no'", "a str is no Remedy"),
        ("REMEDIES = 5", "REMEDIES is no list of remedies"),
        *((NAMED.format(name), "is no name of a remedy") for name in ("../elsewhere", "", None, "two words", "base")),
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
