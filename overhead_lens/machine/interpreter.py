"""Finds another Python interpreter for workers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from overhead_lens.errors import UsageError

_PROBE = "import importlib.util as u, sys; print(sys.version_info >= (3, 10), u.find_spec('torch') is not None)"
_LONGEST_S = 60


def find_interpreter(path: str) -> str:
    """Absolute path of an interpreter that a worker can run under.

    Raises:
        UsageError: There is none, it is older than Python 3.10, or it has no torch.
    """
    executable = shutil.which(path)
    if executable is None:
        raise UsageError(f"no interpreter {path}")
    # Not resolved: a virtual environment is known by the link it is started through.
    executable = str(Path(executable).absolute())
    try:
        done = subprocess.run(
            [executable, "-c", _PROBE], capture_output=True, text=True, timeout=_LONGEST_S, check=True
        )
        recent, torch = done.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        raise UsageError(f"{path} is not a Python interpreter that works") from None
    if recent != "True":
        raise UsageError(f"{path} is older than Python 3.10")
    if torch != "True":
        raise UsageError(f"{path} has no torch; install it there or name another interpreter")
    return executable
