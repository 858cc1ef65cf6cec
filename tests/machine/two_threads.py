"""A process with two threads that can be moved about."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CODE = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); print(flush=True)"


@contextmanager
def two_threads() -> Iterator[tuple[int, int]]:
    """A process that sleeps: its main thread, which is also its number, and its other one."""
    with subprocess.Popen([sys.executable, "-c", _CODE], stdout=subprocess.PIPE) as target:
        try:
            assert target.stdout is not None
            target.stdout.readline()
            (other,) = {int(path.name) for path in Path(f"/proc/{target.pid}/task").iterdir()} - {target.pid}
            yield target.pid, other
        finally:
            target.kill()
