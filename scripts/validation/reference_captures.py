"""Record the reference captures under ``traces/reference``, without paths and host names of the machine that recorded them.

Run on a quiet machine::

    python -m scripts.validation.reference_captures
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"

COMMANDS = {
    "eager": ["profile", "add1"],
    "compiled": ["profile", "add1", "--compile"],
    "ladder": ["ladder", "add1"],
}

# torch.compile's cache is called after the user.
_INDUCTOR = re.compile(rb"/[^\s\";]*torchinductor_\w+/")

# Pictures are drawn again from the rest; logs say what the machine printed.
_LEFT_OUT = (".pftrace", ".svg", ".log")


def main() -> None:
    """Record all of them, in place of those that are there."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, command in COMMANDS.items():
            recorded = Path(scratch, name)
            subprocess.run(
                [sys.executable, "-m", "overhead_lens", *command, "-o", str(recorded)], check=True, cwd=scratch
            )
            keep(recorded, REFERENCE / name, ["overhead-lens", *command])


def keep(recorded: Path, target: Path, command: list[str]) -> None:
    """Copy a capture without what tells of the machine's user; the rest stays as it was recorded."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(recorded.iterdir()):
        if path.suffix in _LEFT_OUT:
            continue
        copy = target / path.name
        if path.name == "meta.json":
            text = json.dumps(_scrubbed(json.loads(path.read_text()), command), indent=1) + "\n"
            copy.write_bytes(_without_paths(text.encode(), recorded))
        elif path.suffix == ".gz":
            copy.write_bytes(gzip.compress(_without_paths(gzip.decompress(path.read_bytes()), recorded), mtime=0))
        else:
            shutil.copy(path, copy)


def _scrubbed(meta: dict[str, Any], command: list[str]) -> dict[str, Any]:
    environment = {**meta["environment"], "host": "reference", "variables": {}, "load_average": None}
    return {**meta, "command": " ".join(command), "environment": environment}


def _without_paths(text: bytes, recorded: Path) -> bytes:
    """The text without the folders that Python's packages and the capture lie in."""
    folders = {str(recorded), *sys.path, sys.prefix, sys.base_prefix}
    for folder in sorted(filter(None, folders), key=len, reverse=True):
        text = text.replace(f"{folder}/".encode(), b"")
    return _INDUCTOR.sub(b"torchinductor/", text)


if __name__ == "__main__":
    main()
