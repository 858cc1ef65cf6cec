"""All remedies: a module of this package that defines ``REMEDY`` or ``REMEDIES`` is one, and so is a user's file."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from overhead_lens import remedies
from overhead_lens.errors import UsageError
from overhead_lens.remedies.remedy import Remedy

# Folders and files are called after it; ``base`` is the call as it is.
_NAME = re.compile(r"(?!base$)\w[\w.+-]{0,99}")


def built_in() -> Iterator[Remedy]:
    """The remedies of this package, by folder and file."""
    for module_info in pkgutil.walk_packages(remedies.__path__, f"{remedies.__name__}."):
        yield from _defined(importlib.import_module(module_info.name))


def defined_in(module: ModuleType, path: Path) -> Sequence[Remedy]:
    """The remedies of a user's file.

    Raises:
        UsageError: It defines none, or something that is none.
    """
    if not isinstance(getattr(module, "REMEDIES", ()), Iterable):
        raise UsageError(f"{path}: REMEDIES is not a list of remedies (overhead_lens.remedies.remedy.Remedy)")
    entries = list(_defined(module))
    if not entries:
        raise UsageError(f"{path} defines no REMEDY or REMEDIES (overhead_lens.remedies.remedy.Remedy)")
    wrong = next((each for each in entries if not isinstance(each, Remedy)), None)
    if wrong is not None:
        kind = type(wrong).__name__
        raise UsageError(f"{path}: an object of type {kind} is not a Remedy (overhead_lens.remedies.remedy)")
    if unnamed := [each.name for each in entries if not isinstance(each.name, str) or not _NAME.fullmatch(each.name)]:
        raise UsageError(
            f"{path}: {unnamed[0]!r} is not a valid name of a remedy: use letters, digits and _ . + -, and not base"
        )
    return entries


def _defined(module: ModuleType) -> Iterator[Remedy]:
    one = getattr(module, "REMEDY", None)
    yield from () if one is None else (one,)
    yield from getattr(module, "REMEDIES", ())
