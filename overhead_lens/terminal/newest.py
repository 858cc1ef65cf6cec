"""The capture that a command takes where none is named."""

from __future__ import annotations

import sys
from pathlib import Path

from overhead_lens.captures.files import DELTA, META, RANK
from overhead_lens.errors import UsageError
from overhead_lens.machine.request import CAPTURES

# Written last, by a recording or a rank of a job.
_COMPLETE = (META, DELTA, f"{RANK}*/{META}")


def newest_or(path: Path | None) -> Path:
    """The path, or the newest capture in ``./traces``, whose name is printed on stderr.

    Raises:
        UsageError: There is no capture.
    """
    if path is not None:
        return path
    ends = [file for name in _COMPLETE for file in CAPTURES.glob(f"*/{name}")]
    if not ends:
        raise UsageError(f"no capture in ./{CAPTURES}: name one")
    last = max(ends, key=lambda file: (file.stat().st_mtime_ns, str(file)))
    newest = CAPTURES / last.relative_to(CAPTURES).parts[0]
    print(f"overhead-lens: newest capture: {newest}", file=sys.stderr)
    return newest
