"""The folder of this program in the user's cache: what can be made again, and takes long to."""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """``$XDG_CACHE_HOME/overhead-lens``, ``~/.cache/overhead-lens`` by default; it need not exist.

    Without a home directory it is a path that cannot exist: machine code is never read from a place that others may write to.
    """
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache_home) if cache_home else _home() / ".cache") / "overhead-lens"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def replace(path: Path, data: bytes) -> None:
    """Write a file of the cache, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
