"""The cache folder of a session of tests: what is measured belongs to the session, what is only made again is shared."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from overhead_lens import user_cache

try:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
except ImportError:  # on Windows, where no test makes what is shared
    flock = None  # type: ignore[assignment]

_OWN = "overhead-lens"
_SHARED = ("torch_extensions",)


@contextlib.contextmanager
def of_a_session(build: Path) -> Iterator[Path]:
    """A folder for ``XDG_CACHE_HOME``.

    Calibrations and histories start empty. Machine code and extensions are those of all sessions of the checkout, which may
    run at once; the first of them removes what a killed one left.
    """
    kept = build / "cache"
    for name in (_OWN, *_SHARED):
        (kept / name).mkdir(parents=True, exist_ok=True)
    with (kept / "in-use").open("w") as users:
        if flock is not None:
            with contextlib.suppress(BlockingIOError):
                flock(users, LOCK_EX | LOCK_NB)
                _clean(build)
            flock(users, LOCK_SH)
        folder = Path(tempfile.mkdtemp(prefix="session-", dir=build))
        _fill(folder, kept)
        try:
            yield folder
        finally:
            for code in (folder / _OWN).glob("*.code"):
                if not (kept / _OWN / code.name).exists():
                    user_cache.replace(kept / _OWN / code.name, code.read_bytes())
            shutil.rmtree(folder, ignore_errors=True)


def _clean(build: Path) -> None:
    """Remove the folders and locks of sessions that were killed."""
    for folder in build.glob("session-*"):
        shutil.rmtree(folder, ignore_errors=True)
    for lock in (build / "cache").glob("torch_extensions/*/*/lock"):
        lock.unlink(missing_ok=True)


def _fill(folder: Path, kept: Path) -> None:
    shutil.copytree(kept / _OWN, folder / _OWN, ignore=lambda _, names: {each for each in names if ".code" not in each})
    if flock is not None:
        for name in _SHARED:
            (folder / name).symlink_to(kept / name)
