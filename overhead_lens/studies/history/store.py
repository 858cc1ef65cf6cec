"""What was found out about captures, kept in the user's cache folder so that it is found out once.

One parquet file: ``key``, ``version``, ``text``, ``digest``. A key is made of the contents of ``meta.json``, the sizes of the
evidence beside it, the version of this package and its rules; a row whose digest is not that of its key and text is not there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from overhead_lens import __version__
from overhead_lens.captures.files import ABLATION, CALIBRATION, CLOCK, KINETO, META, STACKS
from overhead_lens.correction.store import folder
from overhead_lens.taxonomy.rules import RULES_FILE

# Counted up whenever the kept text or the analysis that makes it changes within one version of the package.
_FORMAT = 8
_VERSION = f"{__version__}/{_FORMAT}/{hashlib.sha256(RULES_FILE.read_bytes()).hexdigest()[:16]}"
_EVIDENCE = (CLOCK, KINETO, STACKS, CALIBRATION, ABLATION)
_COLUMNS = ["key", "version", "text", "digest"]


def place() -> Path:
    """The file."""
    return folder() / "history.parquet"


def key_of(capture: Path) -> str:
    """What the text of a capture is kept under.

    Raises:
        OSError: ``meta.json`` cannot be read.
    """
    sizes = [(capture / name).stat().st_size if (capture / name).exists() else -1 for name in _EVIDENCE]
    found = hashlib.sha256(f"{_VERSION} {sizes} ".encode())
    found.update((capture / META).read_bytes())
    return found.hexdigest()


def load() -> dict[str, str]:
    """Text by key, of this version; nothing from a file that cannot be read."""
    try:
        rows = pd.read_parquet(place(), columns=_COLUMNS)
        return {
            str(row.key): str(row.text)
            for row in rows[rows["version"] == _VERSION].itertuples(index=False)
            if row.digest == _digest(str(row.key), str(row.text))
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError):
        return {}


def save(texts: Mapping[str, str]) -> str | None:
    """Keep texts by key, whole or not at all; what was kept before goes. Returns why they could not be kept."""
    rows = [(key, _VERSION, text, _digest(key, text)) for key, text in texts.items()]
    partial = place().with_name(f"{place().name}.{os.getpid()}")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows, columns=_COLUMNS).to_parquet(partial, index=False)
        os.replace(partial, place())
    except OSError as error:
        return f"the analyses cannot be kept in {place().parent}: {error.strerror or error}"
    return None


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode("utf-8", "surrogatepass")).hexdigest()
