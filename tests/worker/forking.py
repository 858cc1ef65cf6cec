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

# So many workers may do without the compiler. All others have it: torch.profiler imports most of it when it first starts.
_SEVERAL = 5


def warmed_up() -> ModuleType:
    """``worker/serve.py`` as a module, once all is imported that any worker needs."""
    del sys.path[0]
    spec = importlib.util.spec_from_file_location("serve", SERVE)
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    serve._import_package()
    importlib.import_module("overhead_lens.worker.operations")
    return serve


def main(channel: socket.socket) -> None:
    """Fork workers until nobody can ask any more."""
    serve = warmed_up()
    for number in itertools.count():
        packet, streams, _, _ = socket.recv_fds(channel, LONGEST, 3)
        if not packet:
            return
        if number == _SEVERAL:
            importlib.import_module("torch._inductor.compile_fx")
            gc.freeze()
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
