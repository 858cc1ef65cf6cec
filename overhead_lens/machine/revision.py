"""Checks out a target's file from another git revision."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from overhead_lens.errors import UsageError
from overhead_lens.target import Target, builtin_paths


@contextmanager
def checked_out(target: Target, revision: str) -> Iterator[Target]:
    """The target in a checkout of a git revision, which is removed at the end.

    Raises:
        UsageError: The file is not in a git repository, or the revision or the file in it does not exist.
    """
    if target.file is None or target.file in builtin_paths().values():
        raise UsageError(f"--rev is for a .py file of your own, not for {target.text}")
    top = Path(_git(target.file.parent, f"{target.file} is not in a git repository", "rev-parse", "--show-toplevel"))
    commit = _git(
        top, f"no revision {revision!r} in {top}", "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"
    )
    inside = target.file.relative_to(top.resolve())
    _git(top, f"{inside} does not exist in revision {revision}", "cat-file", "-e", f"{commit}:{inside.as_posix()}")
    with tempfile.TemporaryDirectory(prefix="overhead-lens-") as folder:
        tree = Path(folder) / top.name
        quiet = ("-c", "core.hooksPath=/dev/null", "worktree")
        try:
            _git(top, f"git cannot check out {revision}", *quiet, "add", "--detach", str(tree), commit)
            yield _moved(target, tree / inside)
        finally:
            subprocess.run(
                ["git", "-C", str(top), "worktree", "remove", "--force", str(tree)], capture_output=True, check=False
            )


def _moved(target: Target, file: Path) -> Target:
    """The target in another file, its inputs too where they were in the same file."""
    inputs = target.inputs
    if inputs is not None and inputs.file == target.file:
        inputs = replace(inputs, file=file)
    return replace(target, file=file, inputs=inputs)


def _git(folder: Path, fault: str, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror or error}") from error
    if done.returncode:
        raise UsageError(fault)
    return done.stdout.strip()
