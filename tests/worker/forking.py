"""A process that has imported modules, its arguments, and forks into programs, as it is asked on the socket that is its stdin.

A request is one packet: what the program's arguments, environment, folder, cores and parent are to be,
and its stdin, stdout and stderr. The program is forked twice, so that the nearest subreaper (prctl(2)) becomes its parent: the
process that asked. The answer is its id. A program that may start workers gets a process like this one, forked from it before it
begins.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import runpy
import socket
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = Path(__file__).parents[2] / "overhead_lens"
SERVE = _PACKAGE / "worker" / "serve.py"
START = _PACKAGE / "program" / "start.py"
LONGEST = 1 << 17
COMPILER = "torch._inductor.compile_fx"
THREADS = "OMP_NUM_THREADS"
# Where a program finds the socket of the process that forks its workers.
FORKING = "forking"
# A variable of workers that are to warm up shortly.
SHORTLY = "TESTS_WARM_UP_SHORTLY"


def warmed_up(modules: list[str]) -> ModuleType:
    """``worker/serve.py`` as a module, once the modules are imported."""
    sys.path[:] = [each for each in sys.path if each != str(Path(__file__).parent)]
    spec = importlib.util.spec_from_file_location("serve", SERVE)
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    serve._import_package()
    sys.path.insert(0, str(_PACKAGE.parent))
    for module in modules:
        importlib.import_module(module)
    sys.path.remove(str(_PACKAGE.parent))
    tempfile.tempdir = None  # each program has its own
    # Else the end of each program would look at all that was imported here, and copy it.
    gc.freeze()
    return serve


def fork_programs(channel: socket.socket, serve: ModuleType) -> None:
    """Fork programs until nobody can ask any more."""
    while True:
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
                os._exit(1)  # it no longer waits for its program
            become(request, streams, channel)
            if COMPILER in sys.modules and sys.argv[0] != str(SERVE):
                ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                if not os.fork():
                    ours.close()
                    stay_behind(its, serve)
                    return
                its.close()
                sys._xoptions[FORKING] = ours  # type: ignore[assignment]
            begin(serve, request["parent"])
            return
        os.waitpid(between, 0)
        for each in streams:
            os.close(each)


def stay_behind(channel: socket.socket, serve: ModuleType) -> None:
    """Fork workers of the program whose child this is, out of reach of its terminal and its streams."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(quiet, stream)
    os.close(quiet)
    fork_programs(channel, serve)


def become(request: dict[str, Any], streams: list[int], channel: socket.socket) -> None:
    """Have all that a process inherits from whoever starts it."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # A file that was opened on another kind of stream takes a pipe or a terminal for one of those.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        buffering = 1 if old.line_buffering else -1
        setattr(sys, name, open(number, old.mode, buffering, old.encoding, old.errors, "\n", closefd=False))
    os.sched_setaffinity(0, request["cores"])
    os.chdir(request["folder"])
    before, after = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (os.environ, request["environment"]))
    sys.path[:] = [*filter(None, after), *(each for each in sys.path if each not in before)]
    threads = request["environment"].get(THREADS)
    if threads and threads != os.environ.get(THREADS):
        sys.modules["torch"].set_num_threads(int(threads))
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    channel.send(str(os.getpid()).encode())
    channel.close()


def begin(serve: ModuleType, parent: int) -> None:
    """Do what Python does with these arguments."""
    if sys.argv[0] == str(SERVE):
        if SHORTLY in os.environ:
            warm_up_shortly()
        serve.main(parent)
    elif sys.argv[0] == str(START):
        watched()
    elif sys.argv[0] == "-c":
        exec(sys.argv.pop(1), {"__name__": "__main__"})
    elif sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def warm_up_shortly() -> None:
    """Have the warm-up of this worker end as soon as its call has settled, which is looked at four times as often."""
    workload: Any = importlib.import_module("overhead_lens.worker.workload")
    assert workload.warm_up.__defaults__ == (workload._LEAST_WARM_UP_NS,)
    workload.warm_up.__defaults__ = (0,)
    workload._BATCH_NS //= 4


def watched() -> None:
    """Run a program under the watcher, whose hooks in modules that are here already act at once."""
    launch: Any = importlib.import_module("overhead_lens.program.launch")
    hooks = launch.hooks

    def acting(watcher: Any) -> dict[str, Any]:
        actions = hooks(watcher)
        for name in [name for name in actions if name in sys.modules]:
            action = actions.pop(name)
            action.before()
            action.after(sys.modules[name])
        return actions

    launch.hooks = acting
    sys.path.insert(0, str(START.parent))
    launch.main(frozenset(sys.modules))


if __name__ == "__main__":
    asked = socket.socket(fileno=os.dup(0))
    os.dup2(1, 0)
    fork_programs(asked, warmed_up(sys.argv[1:]))
