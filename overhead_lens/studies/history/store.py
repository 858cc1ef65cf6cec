"""Caches the analyses of captures in the user's cache folder.

One parquet file: ``key``, ``version``, ``text``, ``digest``. A key covers ``meta.json``, the sizes of the evidence, the version
of this package and its rules. A row with a wrong digest is ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from overhead_lens import __version__, user_cache
from overhead_lens.captures.files import ABLATION, CALIBRATION, CLOCK, KINETO, META, STACKS
from overhead_lens.taxonomy.rules import RULES_FILE

# Increased when the cached text or its analysis changes within one version of the package.
_FORMAT = 13
_VERSION = f"{__version__}/{_FORMAT}/{hashlib.sha256(RULES_FILE.read_bytes()).hexdigest()[:16]}"
_EVIDENCE = (CLOCK, KINETO, STACKS, CALIBRATION, ABLATION)
_COLUMNS = ["key", "version", "text", "digest"]


def place() -> Path:
    """The cache file."""
    return user_cache.folder() / "history.parquet"


def key_of(capture: Path, own_rules: bytes = b"") -> str:
    """The cache key of a capture that is analyzed by the user's rules, the content of their file.

    Raises:
        OSError: ``meta.json`` cannot be read.
    """
    sizes = [(capture / name).stat().st_size if (capture / name).exists() else -1 for name in _EVIDENCE]
    return hashlib.sha256(f"{_VERSION} {sizes} ".encode() + own_rules + (capture / META).read_bytes()).hexdigest()


def load() -> dict[str, str]:
    """Texts of this version by key; empty for an unreadable file."""
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
    """Replace the cached texts, all or none; returns the reason if they cannot be written."""
    rows = [(key, _VERSION, text, _digest(key, text)) for key, text in texts.items()]
    try:
        user_cache.replace(place(), pd.DataFrame(rows, columns=_COLUMNS).to_parquet(index=False))
    except OSError as error:
        return f"the analyses cannot be kept in {place().parent}: {error.strerror or error}"
    return None


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode("utf-8", "surrogatepass")).hexdigest()
