"""The environment that has HolisticTraceAnalysis, which wants another pandas than ours."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

_PACKAGES = ("HolisticTraceAnalysis==0.5.0", "pandas<3")


def hta_python(folder: Path) -> Path:
    """The interpreter of the environment with HTA in a folder; makes the environment if it is missing.

    Raises:
        subprocess.CalledProcessError: It could not be made.
    """
    python = folder / "hta" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "hta", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *_PACKAGES], check=True)
    return python
