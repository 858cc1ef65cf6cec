"""Describes the machine, without torch."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from overhead_lens.machine.guard import text_of

_SYSTEM = Path("/sys")
_PACKAGES = ("numpy", "numba", "pandas", "pyarrow", "py-spy", "perfetto")


def describe_machine() -> dict[str, Any]:
    """Host, processor, frequency governor, memory policy and tool versions; None for what cannot be read."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "governor": text_of(_SYSTEM / "devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        "transparent_hugepages": text_of(_SYSTEM / "kernel/mm/transparent_hugepage/enabled").strip() or None,
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def git_commit(folder: Path) -> str | None:
    """The commit checked out in ``folder``, with ``-dirty`` where tracked files differ; None outside git."""
    try:
        command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _cpu_model() -> str | None:
    for line in text_of(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def _version(package: str) -> str | None:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None
