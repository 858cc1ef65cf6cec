"""The measuring worker: a fresh process that does what the recorder requests, one operation at a time.

Started as a script, possibly by an interpreter that lacks this package's dependencies: only the standard library, torch and
modules of this package that need no more are imported.

Protocol: one JSON object per line. Requests come on stdin (``{"do": "MODULE:OPERATION", ...}``); replies go to what was stdout
(``{"ok": {...}}`` or ``{"error": {"kind": "usage" | "measurement", "message": line}}``). The process's own stdout and stderr
go to a log, so that neither a scenario nor torch can write into the protocol.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any


def _import_package() -> None:
    """Make ``overhead_lens`` importable from where this file lies, without the rest of that site-packages folder."""
    if "overhead_lens" in sys.modules:
        return
    package = Path(__file__).resolve().parent.parent
    if sys.path and Path(sys.path[0]).resolve() == package / "worker":
        del sys.path[0]
    spec = importlib.util.spec_from_file_location(
        "overhead_lens", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["overhead_lens"] = module
    spec.loader.exec_module(module)


def _die_with_parent(parent_pid: int) -> None:
    """End this process when the recorder is killed (prctl(2), PR_SET_PDEATHSIG), even in the middle of a loop."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:
            sys.exit(1)


def _fix_layout() -> None:
    """Start over without address-space randomization (personality(2)), where the recorder requests it and it is allowed.

    Otherwise two processes of the same call differ by 2 % where it is small. Where it is refused, intervals are wider.
    """
    if sys.platform != "linux" or os.environ.pop("OVERHEAD_LENS_LAYOUT", None) != "fixed":
        return
    import ctypes

    address_no_randomize, query = 0x0040000, 0xFFFFFFFF
    personality = ctypes.CDLL(None).personality
    personality.argtypes = [ctypes.c_ulong]
    before = personality(query)
    if before != -1 and personality(before | address_no_randomize) != -1:
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606


def free_children() -> None:
    """Let the processes that a call forks, as those of a DataLoader, run where this one may now.

    The recorder keeps this one on a core of its own while it is timed, which they would inherit.
    """
    if not hasattr(os, "sched_getaffinity"):
        return
    cores = os.sched_getaffinity(0)

    def spread() -> None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)

    os.register_at_fork(after_in_child=spread)


def main(parent_pid: int) -> None:
    """Serve requests until stdin closes."""
    _die_with_parent(parent_pid)
    _fix_layout()
    free_children()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", buffering=1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    _import_package()

    def reply(message: dict[str, Any]) -> None:
        # The worker is ended by a signal, which would lose the buffer.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stdout.flush()
        # Parameters of other types, as torch.dtype, are written as text.
        replies.write(json.dumps(message, default=str) + "\n")
        replies.flush()

    from overhead_lens.worker.session import Session, answer

    session = Session(requests, lambda result: reply({"ok": result}))
    while line := requests.readline():
        reply(answer(session, json.loads(line)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
