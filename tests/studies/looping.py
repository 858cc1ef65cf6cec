"""A process that was started without the program, in a loop whose busy function is known."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

LOOP = """
import hashlib, os, sys, threading, time
def work():
    return hashlib.sha256(b"x" * 20_000).hexdigest()
def loop():
    while True:
        work()
if len(sys.argv) > 1:
    threading.Thread(target=time.sleep, args=(600,), name="sleeper", daemon=True).start()
print(os.getpid(), flush=True)
loop()
"""


@contextlib.contextmanager
def running(*arguments: str, code: str = LOOP, **options: Any) -> Iterator[int]:
    """The process, in its loop."""
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, **options) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()
