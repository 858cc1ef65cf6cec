"""Record the reference captures under ``traces/reference``, without paths and host names of the machine that recorded them.

Run on a quiet machine; without names all of them are recorded anew::

    python -m scripts.documentation.reference_captures [NAME ...] [--releases OLD_PYTHON NEW_PYTHON]

With ``--releases`` also a compiled call under two interpreters, which have two releases of torch.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "traces" / "reference"

# What a command measures lies beside it, under the name that the documentation gives it.
_PROGRAMS = ROOT / "tests" / "programs"
FILES = {"decoding.py": _PROGRAMS / "starved_loader.py", "train.py": _PROGRAMS / "mlp_adamw.py"}
PID = "PID"
COMMANDS = {
    "eager": "profile add1 -o eager",
    "compiled": "profile add1 --compile -o compiled",
    "ladder": "ladder add1 -o ladder",
    "run": "run -o run train.py --steps 12000",
    "sweep": "sweep sum_elements:numpy sum_elements:numba -p n=100,1000,10000,100000,1000000,10000000 -o sweep",
    "watch": f"attach {PID} --duration 10 -o watch",
}
# The process whose id stands for ``PID``.
WATCHED = ["decoding.py", "--steps", "1000000"]
TRACES = {"training.json.gz": Path(__file__).with_name("training_trace.py")}

# torch.compile's cache is called after the user.
_INDUCTOR = re.compile(rb"/[^\s\";]*torchinductor_\w+/")

_STARTS_S = 15.0

# Pictures are drawn again from the rest; logs hold what the machine printed, and a run's trace is large.
_LEFT_OUT = (".pftrace", ".log")
_LEFT_OUT_OF = {
    **dict.fromkeys(("run", "gpu-loader-run"), ("kineto.json.gz", "report.txt")),
    "gpu-run": ("report.txt",),
}


def main() -> None:
    """Record the requested captures, in place of those that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*COMMANDS, *TRACES, []])
    parser.add_argument("--releases", nargs=2, metavar="PYTHON")
    options = parser.parse_args()
    names = options.names or ([] if options.releases else [*COMMANDS, *TRACES])
    with tempfile.TemporaryDirectory() as scratch:
        for file, source in FILES.items():
            shutil.copy(source, Path(scratch, file))
        for name in names:
            if name in COMMANDS:
                command = record(name, Path(scratch))
                keep(Path(scratch, name), REFERENCE / name, ["overhead-lens", *command])
            else:
                recorded = Path(scratch, "trace.json")
                subprocess.run([sys.executable, str(TRACES[name]), str(recorded)], check=True, cwd=scratch)
                text = _without_paths(recorded.read_bytes(), Path(scratch), TRACES[name].parent)
                (REFERENCE / name).write_bytes(gzip.compress(text, mtime=0))
        if options.releases:
            keep_releases(Path(scratch, "releases"), *options.releases)


def record(name: str, folder: Path) -> list[str]:
    """Record a capture in a folder; returns the command's words."""
    command = COMMANDS[name].split()
    with ExitStack() as stack:
        if PID in command:
            watched = stack.enter_context(subprocess.Popen([sys.executable, *WATCHED], cwd=folder))
            stack.callback(watched.kill)
            time.sleep(_STARTS_S)
            command = [word.replace(PID, str(watched.pid)) for word in command]
        subprocess.run([sys.executable, "-m", "overhead_lens", *command], check=True, cwd=folder)
    return command


def keep_releases(recorded: Path, old: str, new: str) -> None:
    """Compare two releases of torch; keep both sides."""
    sides = ["--python", f"base={old}", "--python", f"new={new}"]
    command = ["compare", "add1 --compile", "add1 --compile", *sides, "-o", str(recorded)]
    subprocess.run([sys.executable, "-m", "overhead_lens", *command], check=True)
    text = "overhead-lens compare 'add1 --compile' 'add1 --compile' --python base=old/bin/python --python new=new/bin/python"
    for side, name in (("base", "release-old"), ("new", "release-new")):
        keep(recorded / side, REFERENCE / name, shlex.split(text))


def keep(recorded: Path, target: Path, command: list[str], *folders: Path) -> None:
    """Copy a capture without what identifies the user, such as the names of ``folders``; the rest stays as it was recorded."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(recorded.iterdir()):
        if path.suffix in _LEFT_OUT or path.name in _LEFT_OUT_OF.get(target.name, ()):
            continue
        copy = target / path.name
        if path.name == "meta.json":
            meta = json.dumps(_scrubbed(json.loads(path.read_text()), command), indent=1) + "\n"
            copy.write_bytes(_without_paths(meta.encode(), recorded, recorded.parent, *folders))
        elif path.suffix == ".gz":
            text = _without_paths(gzip.decompress(path.read_bytes()), recorded, recorded.parent, *folders)
            copy.write_bytes(gzip.compress(text, mtime=0))
        else:
            shutil.copy(path, copy)


def _scrubbed(meta: dict[str, Any], command: list[str]) -> dict[str, Any]:
    environment = {**meta["environment"], "host": "reference", "variables": {}, "load_average": None}
    return {**meta, "command": " ".join(command), "environment": environment}


def _without_paths(text: bytes, *recorded: Path) -> bytes:
    """The text without the folders that Python's packages and the capture lie in."""
    folders = {*map(str, recorded), *sys.path, sys.prefix, sys.base_prefix}
    text = text.replace(sys.executable.encode(), b"python")
    for folder in sorted(filter(None, folders), key=len, reverse=True):
        text = text.replace(f"{folder}/".encode(), b"")
    return _INDUCTOR.sub(b"torchinductor/", text)


if __name__ == "__main__":
    main()
