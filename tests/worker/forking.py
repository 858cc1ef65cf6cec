"""A process that has imported torch and forks into workers, as it is asked on the socket whose number is its argument.

A request is one packet: what the worker's environment, folder, cores and parent are to be, and its stdin, stdout and stderr. The
worker is forked twice, so that the nearest subreaper (prctl(2)) becomes its parent: the process that asked. The answer is its id.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import json
import os
import socket
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

SERVE = Path(__file__).parents[2] / "overhead_lens" / "worker" / "serve.py"
LONGEST = 1 << 17

# Of more workers than this some compile, whose first call would import the compiler.
_SOME_COMPILE = 6


def warmed_up() -> ModuleType:
    """``worker/serve.py`` as a module, once all is imported that any worker needs."""
    del sys.path[0]
    spec = importlib.util.spec_from_file_location("serve", SERVE)
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    serve._import_package()
    _import("overhead_lens.worker.operations")
    # torch.profiler does so when it first starts.
    _import("torch._inductor.config")
    return serve


def _import(name: str) -> None:
    """Import a module for all processes that will be forked, whose garbage collectors leave it alone."""
    importlib.import_module(name)
    gc.freeze()


def main(channel: socket.socket) -> None:
    """Fork workers until nobody can ask any more."""
    serve = warmed_up()
    for number in itertools.count():
        if number == _SOME_COMPILE:
            _import("torch._inductor.compile_fx")
        packet, streams, _, _ = socket.recv_fds(channel, LONGEST, 3)
        if not packet:
            return
        with warnings.catch_warnings():
            # OpenBLAS has a thread, which it ends before a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            between = os.fork()
        if not between:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            request = json.loads(packet)
            while os.getppid() == between:
                time.sleep(0.001)
            if os.getppid() != request["parent"]:
                os._exit(1)  # it no longer waits for its worker
            become(request, streams, channel)
            serve.main(request["parent"])
            return
        os.waitpid(between, 0)
        for each in streams:
            os.close(each)


def become(request: dict[str, Any], streams: list[int], channel: socket.socket) -> None:
    """Have all that a process inherits from whoever starts it."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.sched_setaffinity(0, request["cores"])
    os.chdir(request["folder"])
    before, after = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (os.environ, request["environment"]))
    sys.path[:] = [*filter(None, after), *(each for each in sys.path if each not in before)]
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [str(SERVE), str(request["parent"])]
    channel.send(str(os.getpid()).encode())
    channel.close()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
