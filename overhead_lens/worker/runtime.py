"""Describes the worker's own software. Runs in the worker."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

import torch

from overhead_lens.worker.loop import REFERENCE

_VARIABLES = ("OMP_", "MKL_", "KMP_", "GOMP_", "TORCH", "PYTORCH_", "CUDA_", "MALLOC_", "LD_PRELOAD", "PYTHONHASHSEED")


def describe_runtime() -> dict[str, Any]:
    """Versions, thread counts, the reference loop and the environment variables that change how torch runs."""
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
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "reference": REFERENCE,
        "variables": environ,
    }
