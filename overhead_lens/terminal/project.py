"""Settings of a project: ``[tool.overhead-lens]`` in the nearest ``pyproject.toml`` that has it, here or in a parent directory.

[tool.overhead-lens]
rules = "rules.toml"                   # of every command with --rules
max = ["total=3%", "guard=100ns"]      # of `check` without --max
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from overhead_lens.errors import UsageError

_FILE = "pyproject.toml"
_TABLE = "overhead-lens"


@dataclass(frozen=True, slots=True)
class Project:
    """Defaults of ``--rules``, whose path is relative to the file, and of ``check --max``."""

    rules: Path | None = None
    max: tuple[str, ...] = ()


def read_project() -> Project:
    """The settings for the current directory.

    Raises:
        UsageError: The file is not TOML, or the table has an unknown key or a value of a wrong type.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / _FILE
        if file.is_file() and (table := _table(file)) is not None:
            return _project(file, table)
    return Project()


def _table(file: Path) -> Any:
    try:
        return msgspec.toml.decode(file.read_bytes()).get("tool", {}).get(_TABLE)
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error


def _project(file: Path, table: Any) -> Project:
    where = f"[tool.{_TABLE}] of {file}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table")
    known = [field.name for field in fields(Project)]
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes {' and '.join(known)}"
            raise UsageError(f"{where} has an unknown key {key!r}: {hint}")
    rules, limits = table.get("rules"), table.get("max", [])
    if rules is not None and not isinstance(rules, str):
        raise UsageError(f"{where}: rules must be a file name")
    if not isinstance(limits, list) or not all(isinstance(limit, str) for limit in limits):
        raise UsageError(f'{where}: max must be a list of limits, e.g. ["total=3%"]')
    return Project(None if rules is None else file.parent / rules, tuple(limits))
