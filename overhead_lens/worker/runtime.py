"""Describes the worker's own software. Runs in the worker."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from typing import Any

import torch

from overhead_lens.worker.loop import REFERENCE
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.settings import Settings
from overhead_lens.worker.workload import devices_of

_VARIABLES = ("OMP_", "MKL_", "KMP_", "GOMP_", "TORCH", "PYTORCH_", "CUDA_", "MALLOC_", "LD_PRELOAD", "PYTHONHASHSEED")


def cuda_device(session: Session) -> torch.device:
    """The first CUDA device that holds a tensor of the workload; the current one if none does."""
    used: tuple[torch.device, ...] = ()
    with contextlib.suppress(LookupError):
        used = devices_of((session.workload.original, session.workload.args))
    return next((device for device in used if device.type == "cuda"), torch.device("cuda"))


@operation
def describe_runtime(session: Session) -> dict[str, Any]:
    """Versions, thread counts, settings, the reference loop and the environment variables that change how torch runs."""
    environ = {name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)}
    return {
        "python": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "torch": torch.__version__,
        "torch_git": getattr(torch.version, "git_version", None),
        "torch_debug": bool(getattr(torch.version, "debug", False)),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "numpy": getattr(sys.modules.get("numpy"), "__version__", None),
        "numba": getattr(sys.modules.get("numba"), "__version__", None),
        "gpu": torch.cuda.get_device_name(cuda_device(session)) if torch.cuda.is_available() else None,
        "float32_matmul": float32_products(),
        "settings": _settings(),
        "reference": REFERENCE,
        "variables": environ,
    }


def _settings() -> dict[str, bool | None]:
    """Settings of torch that choose kernels."""
    switches = {name.removeprefix("_set_"): value for name, value in Settings.of_this_process().switches.items()}
    allow_tf32: bool | None = None
    with contextlib.suppress(RuntimeError):  # it differs between convolutions and recurrent layers
        allow_tf32 = torch.backends.cudnn.allow_tf32
    deterministic = torch.are_deterministic_algorithms_enabled()
    return {**switches, "cudnn_allow_tf32": allow_tf32, "deterministic_algorithms": deterministic}


def float32_products() -> str:
    """The precision of float32 matrix products; by backend after a program has set it by backend."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        cuda, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
        return f"cuda {cuda.fp32_precision}, mkldnn {mkldnn.fp32_precision}"
