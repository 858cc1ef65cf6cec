"""The environment of the programs: the libraries of their users from the package index, and this checkout."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from overhead_lens import user_cache
from scripts.results import ROOT

_LIBRARIES = ("transformers", "lightning", "torch_geometric", "accelerate")
_PINNED = re.compile(r"^torch==\S+$", re.MULTILINE)


def default_folder() -> Path:
    """Where the environment is kept between runs of the script."""
    return user_cache.folder() / "wild"


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in ``folder``."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def make(self) -> None:
        """Install what is missing; nothing if it has been made with the same requirements.

        Raises:
            subprocess.CalledProcessError: pip failed.
        """
        expected = requirements()
        record = self.folder / "requirements.txt"
        if record.is_file() and record.read_text(encoding="utf-8").split() == expected:
            return
        subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
        command = [str(self.python), "-m", "pip", "install", "--quiet", *expected, "--editable", str(ROOT)]
        subprocess.run(command, check=True)
        record.write_text("\n".join(expected) + "\n", encoding="utf-8")

    def versions(self) -> str:
        """Names and versions of the libraries."""
        code = "from importlib.metadata import version; import sys; print(*(f'{n} {version(n)}' for n in sys.argv[1:]), sep=', ')"
        command = [str(self.python), "-c", code, "torch", *_LIBRARIES]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def requirements() -> list[str]:
    """What pip installs: torch as ``constraints.txt`` pins it, all else as the index has it."""
    pinned = _PINNED.search((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert pinned is not None
    return [pinned[0], *_LIBRARIES]
