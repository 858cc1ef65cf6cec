"""What a worker says of its torch and its GPU."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
import torch

from overhead_lens.instruments.peaks import worker as peaks
from overhead_lens.scenario import Arguments
from overhead_lens.worker import workload
from overhead_lens.worker.runtime import describe_runtime
from overhead_lens.worker.session import Session

NAMES = {"cuda": "NVIDIA GeForce RTX 4090", "cuda:1": "NVIDIA GeForce RTX 3060"}


def session() -> Session:
    return Session(io.StringIO(), lambda _: None)


def test_the_precision_of_products_is_known() -> None:
    assert describe_runtime(session())["float32_matmul"] == "highest"
    torch.set_float32_matmul_precision("high")
    try:
        assert describe_runtime(session())["float32_matmul"] == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_settings_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    before = describe_runtime(session())["settings"]
    assert (before["cudnn_benchmark"], before["cudnn_allow_tf32"], before["deterministic_algorithms"]) == (
        *(False, True, False),
    )
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    after = describe_runtime(session())["settings"]
    assert {name: value for name, value in after.items() if value != before[name]} == {
        "cudnn_allow_tf32": False,
        "cudnn_benchmark": True,
    }


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="this torch has one precision for all of cuDNN")
def test_a_setting_that_torch_does_not_say_in_one_word_is_unknown() -> None:
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    try:
        assert describe_runtime(session())["settings"]["cudnn_allow_tf32"] is None
    finally:
        torch.backends.cudnn.conv.fp32_precision = "tf32"
    assert describe_runtime(session())["settings"]["cudnn_allow_tf32"] is True


def test_the_precision_of_products_may_differ_by_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """After ``torch.backends.cuda.matmul.fp32_precision = "tf32"`` torch refuses to say it in one word."""

    def refuse() -> str:
        raise RuntimeError("mix of the legacy and new APIs")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", refuse)
    monkeypatch.setattr(torch.backends.cuda, "matmul", SimpleNamespace(fp32_precision="tf32"))
    monkeypatch.setattr(torch.backends.mkldnn, "matmul", SimpleNamespace(fp32_precision="ieee"), raising=False)
    assert describe_runtime(session())["float32_matmul"] == "cuda tf32, mkldnn ieee"


def test_the_gpu_is_the_one_that_holds_the_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []

    class Device:
        def __init__(self, device: torch.device) -> None:
            chosen.append(str(device))

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: NAMES[str(device)])
    monkeypatch.setattr(torch.cuda, "device", Device)
    for name, drawn in {"_device_rates": dict, "_gemm_rate": lambda: 1.0, "_level": lambda *_: {}}.items():
        monkeypatch.setattr(peaks, name, drawn)
    here = session()
    assert describe_runtime(here)["gpu"] == NAMES["cuda"]
    peaks.measure_peaks(here)
    here.workload = workload.of_callable(torch.neg, Arguments((torch.ones(1),)), None)
    monkeypatch.setattr(workload, "_tensors", lambda _: [SimpleNamespace(device=torch.device("cuda:1"))])
    assert describe_runtime(here)["gpu"] == NAMES["cuda:1"]
    peaks.measure_peaks(here)
    assert chosen == ["cuda", "cuda:1"]
