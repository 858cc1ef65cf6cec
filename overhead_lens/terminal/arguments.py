"""Arguments and options that several commands take, and what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal.command import argument, deprecated, option
from overhead_lens.terminal.completion import complete_parameter, complete_target
from overhead_lens.terminal.project import read_project

TIMEOUT_S = 300.0

_FILES = ("html", "json_file", "junit", "markdown", "pftrace")


def between(least: float, most: float) -> Callable[[float | None], float | None]:
    """A callback that refuses numbers out of a range, which help then does not show."""

    def checked(value: float | None) -> float | None:
        if value is not None and not least <= value <= most:
            raise typer.BadParameter(f"{value} is not in the range {least}<=x<={most}.")
        return value

    return checked


Target = Annotated[
    str,
    argument(
        "TARGET",
        "A scenario (built-in name or .py file, optionally with :VARIANT) or a function (my.py:f, package.module:f).",
        complete_target,
    ),
]
StoredTarget = Annotated[
    str | None, argument("TARGET", "What to profile. Default: the target stored in the baseline.", complete_target)
]
Inputs = Annotated[str | None, option("--inputs FUNCTION")]
Compile = Annotated[bool, option("-c --compile")]
Device = Annotated[str | None, option("--device DEVICE")]
Param = Annotated[list[str] | None, option("-p --param NAME=VALUE", autocompletion=complete_parameter)]
Mode = Annotated[str | None, option("--mode MODE", ", with --compile")]
Quick = Annotated[bool, option("--quick")]
Quiet = Annotated[bool, option("-q --quiet", "nothing on stderr but errors")]
Margin = Annotated[str, option("--margin PERCENT")]
Timeout = Annotated[float, option("--timeout SECONDS", callback=between(1, 1_000_000))]


Rules = Annotated[Path | None, option("--rules FILE", callback=lambda path: path or read_project().rules)]
AllowMismatch = Annotated[bool, option("--allow-mismatch")]
# Parsed before the files that it concerns.
Force = Annotated[bool, option("--force", is_eager=True)]


def check_new_file(option: str, path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before anything is measured.

    Raises:
        UsageError: It exists and ``force`` is not given, its directory does not exist, or it is ``-``.
    """
    if path.exists() and not (force and path.is_file()):
        raise UsageError(f"{path} exists: name another {option}, or overwrite it with --force")
    _check_place(path)


def _check_place(path: Path) -> None:
    if path == Path("-"):
        raise UsageError("cannot write to stdout: name a file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no directory {path.parent}")


def check_own_file(context: typer.Context, path: Path | None) -> Path | None:
    """A callback that refuses a file which another output is written to."""
    others = (context.params.get(name) for name in _FILES)
    if path is not None and any(other is not None and Path(other) == path for other in others):
        raise UsageError(f"{path} is named twice: each output needs a file of its own")
    return path


def _appended_file(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        check_own_file(context, path)
        _check_place(path)
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a directory")
    return path


def new_file(context: typer.Context, parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """A callback that refuses a file which exists without ``--force``, or which another output is written to."""
    if path is not None:
        check_own_file(context, path)
        check_new_file(max(parameter.opts, key=len), path, force=bool(context.params.get("force")))
    return path


Html = Annotated[Path | None, option("--html FILE", callback=new_file)]
Markdown = Annotated[Path | None, option("--markdown FILE", callback=_appended_file)]


def parse_share(option: str, text: str, least: float = 0.0, most: float = 1.0, bare: float = 1.0) -> float:
    """Read ``3%`` as the share 0.03; a number without a percent sign is multiplied by ``bare``, as older versions did.

    Raises:
        UsageError: The text is not a percentage, or out of range.
    """
    number, sign, rest = text.strip().removeprefix("+").partition("%")
    try:
        share = round(float(number) / 100 if sign else float(number) * bare, 12)
    except ValueError:
        share = math.nan
    if rest or not least <= share <= most:
        raise UsageError(f"{option} takes a percentage from {percent(least)} to {percent(most)}, not {text!r}")
    if not sign:
        deprecated(f"{option} {text}", f"{option} {percent(share)}")
    return share


def percent(share: float) -> str:
    """A share as it is written on the command line: ``3%``, ``0.5%``."""
    return f"{100 * share:.6g}%"


def assignments(texts: list[str], device: str | None) -> dict[str, str]:
    """Parse the assignments of ``-p NAME=VALUE`` and ``--device``.

    Raises:
        UsageError: An assignment has no name, or a name is assigned twice.
    """
    assigned = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"-p takes NAME=VALUE, not {text!r}")
        if name in assigned:
            raise UsageError(f"parameter {name} is given twice")
        assigned[name] = value
    if device is not None:
        if assigned.get("device", device) != device:
            raise UsageError(f"--device {device} and -p device={assigned['device']} disagree")
        assigned["device"] = device
    return assigned


def allows_mismatch(*, force: bool, allow_mismatch: bool, files: Iterable[Path | None]) -> bool:
    """Whether captures of different machines are compared.

    ``--force`` overwrites files; where there is none to overwrite it still means ``--allow-mismatch``, as it did before.
    """
    if allow_mismatch or not force or any(file is not None and file.exists() for file in files):
        return allow_mismatch
    deprecated("--force without a file to overwrite", "--allow-mismatch")
    return True
