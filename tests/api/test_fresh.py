"""Which calls fresh processes can make as well, and why others cannot."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from overhead_lens.recorder.fresh import NotFreshError, check_state, pickled, target_of
from overhead_lens.scenario import Arguments
from overhead_lens.target import Target
from overhead_lens.worker import load
from overhead_lens.worker.settings import Settings
from tests.api import plain


def _nested() -> Callable[[], None]:
    def inner() -> None: ...

    return inner


def test_a_function_is_found_by_its_import() -> None:
    assert target_of(plain.total) == Target("tests.api.plain:total", module="tests.api.plain", name="total")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda: None, "a lambda has no name that can be imported"),
        (plain.renamed, "a lambda has no name that can be imported"),
        (_nested(), "_nested.<locals>.inner is defined inside a function: it cannot be imported"),
        (plain.calling, "an object of type Calling cannot be imported by a name"),
        (
            plain.calling.method,
            "tests.api.plain.Calling.method is not this function, or a method bound to an object",
        ),
        (torch.nn.Linear(1, 1), "an object of type Linear cannot be imported by a name"),
    ],
)
def test_what_has_no_import_is_refused(function: Any, reason: str) -> None:
    with pytest.raises(NotFreshError) as refused:
        target_of(function)
    assert str(refused.value) == reason


def _main_with(monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> Any:
    module = types.ModuleType("__main__")
    exec("def f(): ...", module.__dict__)
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module.f


def test_a_function_of_a_script_is_found_by_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    target = target_of(_main_with(monkeypatch, __file__=str(script)))
    assert (target.file, target.name) == (script, "f")


def test_a_function_of_a_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFreshError, match="f is defined in an interactive session"):
        target_of(_main_with(monkeypatch))


class Mine: ...


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda: None, "its arguments cannot be pickled: "),
        (torch.ones(1, requires_grad=True) * 2, "its arguments belong to an autograd graph of this process"),
        (
            [{"loss": torch.ones(1, requires_grad=True) * 2}],
            "its arguments belong to an autograd graph of this process",
        ),
        (
            types.SimpleNamespace(loss=torch.ones(1, requires_grad=True) * 2),
            "its arguments belong to an autograd graph of this process",
        ),
    ],
)
def test_arguments_that_cannot_cross_are_refused(value: Any, reason: str) -> None:
    for arguments in (Arguments((value,)), Arguments((), {"x": value})):
        with pytest.raises(NotFreshError) as refused:
            pickled(arguments)
        assert str(refused.value).startswith(reason)


def test_gradients_cross() -> None:
    layer = torch.nn.Linear(2, 1)
    for parameter in layer.parameters():
        parameter.data.fill_(1.0)
        parameter.grad = torch.full_like(parameter, 3.0)
    arguments = Arguments((layer, torch.optim.SGD(layer.parameters(), lr=1.0)))
    found, optimizer = pickle.loads(pickled(arguments)).by_position
    optimizer.step()
    assert [parameter.tolist() for parameter in found.parameters()] == [[[-2.0, -2.0]], [-2.0]]


def test_a_gradient_crosses_without_the_bucket_that_it_is_part_of() -> None:
    bucket = torch.arange(100_000.0)
    weights = [torch.nn.Parameter(torch.zeros(1_000)) for _ in range(100)]
    for weight, gradient in zip(weights, bucket.split(1_000), strict=True):
        weight.grad = gradient
    content = pickled(Arguments((weights,)))
    assert len(content) < 2_000_000
    (found,) = pickle.loads(content).by_position
    assert torch.equal(torch.cat([weight.grad for weight in found]), bucket)


def test_a_list_that_holds_itself_crosses() -> None:
    held: list[Any] = [1]
    held.append(held)
    (found,) = pickle.loads(pickled(Arguments((held,)))).by_position
    assert (found[0], found[1] is found) == (1, True)


def test_without_cuda_no_memory_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda _: pytest.fail("it would initialize CUDA"))
    (found,) = pickle.loads(pickled(Arguments((torch.ones(2),)))).by_position
    assert found.tolist() == [1.0, 1.0]


def test_pinned_memory_crosses(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)

    def pin_memory(tensor: torch.Tensor) -> torch.Tensor:
        pinned.append(tensor.tolist())
        return tensor

    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: tensor.numel() == 2)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    found = pickle.loads(pickled(Arguments((torch.ones(2), torch.ones(3))))).by_position
    assert ([tensor.tolist() for tensor in found], pinned) == ([[1.0, 1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0]])


def test_a_module_that_keeps_what_it_computed_crosses() -> None:
    layer = torch.nn.Linear(1, 1)
    layer.last, layer.scale = layer(torch.ones(1)), torch.ones(1, requires_grad=True)
    layer.scale.grad = torch.ones(1)
    (found,) = pickle.loads(pickled(Arguments((layer,)))).by_position
    assert torch.equal(found.last, layer.last)
    assert found.scale.grad.tolist() == [1.0]


def test_a_type_of_main_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("__main__")
    exec("class Mine: ...", module.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", module)
    with pytest.raises(NotFreshError, match="objects of types that __main__ defines"):
        pickled(Arguments((module.Mine(),)))


def test_arguments_cross_as_they_are() -> None:
    x = torch.arange(3.0, requires_grad=True)
    found = pickle.loads(pickled(Arguments((x, 2), {"dim": 0})))
    assert (found.by_position[0].tolist(), found.by_position[0].requires_grad) == ([0.0, 1.0, 2.0], True)
    assert (found.by_position[1:], found.by_name) == ((2,), {"dim": 0})


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (torch.no_grad, "grad mode is off here"),
        (torch.inference_mode, "inference mode is on here"),
        (lambda: torch.autocast("cpu"), "autocast is on here"),
        (lambda: torch.autograd.set_detect_anomaly(True), "anomaly detection is on here"),
        (lambda: torch.device("meta"), "the default device is meta here"),
    ],
)
def test_a_mode_of_this_thread_is_refused(mode: Callable[[], Any], reason: str) -> None:
    check_state()
    with mode(), pytest.raises(NotFreshError, match=reason):
        check_state()


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        (torch.backends.cudnn, "benchmark"),
        (torch.backends.cudnn, "deterministic"),
        (torch.backends.cudnn, "enabled"),
        (torch.backends.mkldnn, "enabled"),
    ],
)
def test_switches_of_libraries_cross(backend: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = getattr(backend, name)
    monkeypatch.setattr(backend, name, not usual)
    (file := tmp_path / "arguments.pickle").write_bytes(pickled(Arguments((1,))))
    setattr(backend, name, usual)
    assert load._unpickled(file) == Arguments((1,))
    assert getattr(backend, name) is not usual


def test_settings_of_attention_and_of_the_compiler_cross(tmp_path: Path) -> None:
    from torch._inductor import config
    from torch.nn.attention import SDPBackend, sdpa_kernel

    file, cuda = tmp_path / "arguments.pickle", torch.backends.cuda
    with sdpa_kernel(SDPBackend.MATH), config.patch(max_autotune=True):
        file.write_bytes(pickled(Arguments()))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), config.patch(max_autotune=False):
        load._unpickled(file)
        assert (config.max_autotune, cuda.math_sdp_enabled(), cuda.flash_sdp_enabled()) == (True, True, False)
    assert "max_autotune" not in Settings.of_this_process().compiler.get("torch._inductor.config", {})


def test_settings_of_the_compiler_that_have_two_names_cross(tmp_path: Path) -> None:
    from torch._inductor import config
    from torch.fx.experimental import _config as shapes

    file = tmp_path / "arguments.pickle"
    with config.patch(force_disable_caches=True), shapes.patch(use_duck_shape=False):
        file.write_bytes(pickled(Arguments()))
    with config.patch(force_disable_caches=False), shapes.patch(use_duck_shape=True):
        load._unpickled(file)
        assert (config.force_disable_caches, shapes.use_duck_shape) == (True, False)


def test_another_default_dtype_is_refused() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(NotFreshError, match="the default dtype is torch.float64 here"):
            check_state()
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_precision_that_was_set_by_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed() -> str:
        raise RuntimeError("PyTorch is checking whether allow_tf32 or fp32_precision are used together")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", mixed)
    with pytest.raises(NotFreshError, match="float32 matrix products are not of the highest precision here"):
        check_state()


def test_settings_that_choose_other_kernels_are_refused() -> None:
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(NotFreshError, match="float32 matrix products are not of the highest precision here"):
            check_state()
    finally:
        torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(NotFreshError, match="deterministic algorithms are demanded here"):
            check_state()
    finally:
        torch.use_deterministic_algorithms(False)
