"""The two sides of ``compare``: a target with options of its own, an interpreter, a revision."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from overhead_lens.errors import UsageError
from overhead_lens.target import Target, builtin_paths
from overhead_lens.terminal.arguments import assignments, compile_options

_NAMES = ("old", "new")
_PROBE = "import importlib.util as u, sys; print(sys.version_info >= (3, 10), u.find_spec('torch') is not None)"
_LONGEST_S = 60


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and ends nothing."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"in {self.prog!r}: {message}")


def parse_side(text: str) -> argparse.Namespace:
    """Read ``add1 --compile -p size=3``: a target with options of ``profile``.

    Raises:
        UsageError: It is not one.
    """
    parser = _Parser(prog=text, add_help=False, allow_abbrev=False)
    parser.add_argument("target")
    parser.add_argument("--inputs")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--mode")
    parser.add_argument("--device")
    parser.add_argument("-p", "--param", action="append", default=[])
    try:
        return parser.parse_args(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"in {text!r}: {error}") from error


def workload_of(side: argparse.Namespace, common: argparse.Namespace) -> tuple[dict[str, str], dict[str, Any] | None]:
    """Parameters and options of torch.compile of a side: its own, else those given for both."""
    own = assignments(side.param, side.device)
    both = assignments(common.param, common.device)
    return {**both, **own}, compile_options(compile_=side.compile or common.compile, mode=side.mode or common.mode)


def by_side(option: str, texts: Sequence[str]) -> dict[str, str]:
    """``old=X`` and ``new=Y`` of an option that names a side.

    Raises:
        UsageError: Another name, none, or one twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in _NAMES or not equals or not value:
            raise UsageError(f"{option} takes old=... or new=..., not {text!r}")
        if name in found:
            raise UsageError(f"{option} {name}=... is given twice")
        found[name] = value
    return found


def interpreter(path: str) -> str:
    """An interpreter that a worker can run under.

    Raises:
        UsageError: There is none, it is older than Python 3.10, or it has no torch.
    """
    found = shutil.which(path)
    if found is None:
        raise UsageError(f"no interpreter {path}")
    # Not resolved: a virtual environment is known by the link it is started through.
    found = str(Path(found).absolute())
    try:
        done = subprocess.run([found, "-c", _PROBE], capture_output=True, text=True, timeout=_LONGEST_S, check=True)
        recent, torch = done.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        raise UsageError(f"{path} is not a Python interpreter that works") from None
    if recent != "True":
        raise UsageError(f"{path} is older than Python 3.10")
    if torch != "True":
        raise UsageError(f"{path} has no torch; install it there or name another interpreter")
    return found


@contextmanager
def revisions(targets: Sequence[Target], wanted: Mapping[str, str]) -> Iterator[list[Target]]:
    """The targets, those of a side with a revision in a checkout of it that is removed at the end.

    Raises:
        UsageError: The file is not in a git repository, or the revision or the file in it does not exist.
    """
    with ExitStack() as stack:
        yield [
            stack.enter_context(_checked_out(target, wanted[name])) if name in wanted else target
            for name, target in zip(_NAMES, targets, strict=True)
        ]


@contextmanager
def _checked_out(target: Target, revision: str) -> Iterator[Target]:
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
    """The target in another file; what makes its arguments goes with it where it is in the same one."""
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
