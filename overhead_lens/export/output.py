"""Files that appear complete or not at all."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from overhead_lens.errors import UsageError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that replaces ``path`` at the end, and is removed on any error.

    Raises:
        UsageError: The file cannot be written (no such directory, no permission, a full disk).
    """
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        # Where the place itself is bad (a file for a directory), there is nothing to take away either.
        with suppress(OSError):
            part.unlink()


@contextmanager
def replacing_text(path: Path) -> Iterator[TextIO]:
    """The same for UTF-8 text, compressed where the name ends in ``.gz`` (same text, same bytes)."""
    with replacing(path) as file, ExitStack() as stack:
        into: Any = file
        if path.name.endswith(".gz"):
            into = stack.enter_context(gzip.GzipFile(filename="", mode="wb", compresslevel=5, fileobj=file, mtime=0))
        yield stack.enter_context(TextIOWrapper(into, encoding="utf-8", newline="\n"))
