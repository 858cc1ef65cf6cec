"""Blocks in one call of the standard library or of torch, in the main thread and in a thread named ``other``.

    python blocked.py NAME

Standard library only, but for the cases of torch: it runs under any Python. A case prepares what is to be waited for, and returns
the call that never returns.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ctypes
import fcntl
import multiprocessing
import multiprocessing.connection
import multiprocessing.pool
import os
import queue
import select
import selectors
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# Longer than any watch; whatever is left behind ends then.
FOREVER_S = 120

Blocking = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A call that blocks.

    Attributes:
        name: As a user would write it.
        part: What part of ``wait`` it is.
        prepare: Makes the call that never returns; called once a thread.
        threads: Whether another thread than the main one can make it.
        torch: Whether it needs torch.
    """

    name: str
    part: str
    prepare: Callable[[], Blocking]
    threads: bool = True
    torch: bool = False


CASES: dict[str, Case] = {}


def case(
    part: str, name: str, *, threads: bool = True, torch: bool = False
) -> Callable[[Callable[[], Blocking]], Callable[[], Blocking]]:
    """Register a function that prepares a call."""

    def register(prepare: Callable[[], Blocking]) -> Callable[[], Blocking]:
        CASES[name] = Case(name, part, prepare, threads, torch)
        return prepare

    return register


def sleeping() -> None:
    """Do nothing for long, in a process or thread that is waited for."""
    time.sleep(FOREVER_S)


def sleeper() -> subprocess.Popen[bytes]:
    """A process that does nothing, and says it by a pipe that stays empty."""
    return subprocess.Popen(["sleep", str(FOREVER_S)], stdout=subprocess.PIPE)


def pair() -> socket.socket:
    """One end of a connection whose other end stays open and silent."""
    left, right = socket.socketpair()
    _KEPT.append(right)
    return left


def listening() -> socket.socket:
    """A socket that nobody connects to."""
    return socket.create_server(("127.0.0.1", 0))


def threads() -> concurrent.futures.ThreadPoolExecutor:
    """A pool that works on whatever it is given for long."""
    return concurrent.futures.ThreadPoolExecutor(1)


def taken(lock: Any) -> Any:
    """A lock that another thread has taken."""

    def take() -> None:
        lock.acquire()
        sleeping()

    threading.Thread(target=take, daemon=True).start()
    time.sleep(0.05)
    return lock


_KEPT: list[object] = []
"""What must not be collected while it is waited for."""


# ---------------------------------------------------------------- locks, queues and threads
@case("lock", "Lock.acquire()")
def _() -> Blocking:
    return taken(threading.Lock()).acquire


@case("lock", "Lock.acquire(timeout)")
def _() -> Blocking:
    return partial(taken(threading.Lock()).acquire, timeout=FOREVER_S)


@case("lock", "RLock.acquire()")
def _() -> Blocking:
    return taken(threading.RLock()).acquire


@case("lock", "Condition.wait()")
def _() -> Blocking:
    condition = threading.Condition()

    def call() -> None:
        with condition:
            condition.wait()

    return call


@case("lock", "Condition.wait(timeout)")
def _() -> Blocking:
    condition = threading.Condition()

    def call() -> None:
        with condition:
            condition.wait(FOREVER_S)

    return call


@case("lock", "Event.wait()")
def _() -> Blocking:
    return threading.Event().wait


@case("lock", "Semaphore.acquire()")
def _() -> Blocking:
    return threading.Semaphore(0).acquire


@case("lock", "Barrier.wait()")
def _() -> Blocking:
    return threading.Barrier(2).wait


@case("lock", "Thread.join()")
def _() -> Blocking:
    thread = threading.Thread(target=sleeping, daemon=True)
    thread.start()
    return thread.join


@case("lock", "queue.Queue.get()")
def _() -> Blocking:
    return queue.Queue().get


@case("lock", "queue.Queue.get(timeout)")
def _() -> Blocking:
    return partial(queue.Queue().get, timeout=FOREVER_S)


@case("lock", "queue.Queue.put()")
def _() -> Blocking:
    full: queue.Queue[int] = queue.Queue(1)
    full.put(1)
    return partial(full.put, 2)


@case("lock", "queue.Queue.join()")
def _() -> Blocking:
    unfinished: queue.Queue[int] = queue.Queue()
    unfinished.put(1)
    return unfinished.join


@case("lock", "queue.SimpleQueue.get()")
def _() -> Blocking:
    return queue.SimpleQueue().get


@case("lock", "queue.SimpleQueue.get(timeout)")
def _() -> Blocking:
    return partial(queue.SimpleQueue().get, timeout=FOREVER_S)


@case("lock", "Future.result() of a thread")
def _() -> Blocking:
    return threads().submit(sleeping).result


@case("lock", "Future.result() of a process")
def _() -> Blocking:
    return concurrent.futures.ProcessPoolExecutor(1).submit(sleeping).result


@case("lock", "futures.wait()")
def _() -> Blocking:
    return partial(concurrent.futures.wait, [threads().submit(sleeping)])


@case("lock", "futures.as_completed()")
def _() -> Blocking:
    return partial(list, concurrent.futures.as_completed([threads().submit(sleeping)]))


@case("lock", "ThreadPoolExecutor.shutdown()")
def _() -> Blocking:
    pool = threads()
    pool.submit(sleeping)
    return pool.shutdown


@case("lock", "multiprocessing.Pool.map()")
def _() -> Blocking:
    return partial(multiprocessing.Pool(1).map, time.sleep, [FOREVER_S])


@case("lock", "multiprocessing.Lock.acquire()")
def _() -> Blocking:
    lock = multiprocessing.Lock()
    lock.acquire()
    return lock.acquire


@case("lock", "multiprocessing.Event.wait()")
def _() -> Blocking:
    return multiprocessing.Event().wait


@case("lock", "multiprocessing.Semaphore.acquire(timeout)")
def _() -> Blocking:
    return partial(multiprocessing.Semaphore(0).acquire, timeout=FOREVER_S)


# ---------------------------------------------------------------- the interpreter's lock
def computing() -> None:
    """Keep the interpreter."""
    until = time.monotonic() + FOREVER_S
    while time.monotonic() < until:
        pass


def released(call: Callable[[], object]) -> Blocking:
    """A call that gives the interpreter's lock away, and waits for it then."""

    def forever() -> None:
        threading.Thread(target=computing, daemon=True).start()
        sys.setswitchinterval(FOREVER_S)
        while True:
            call()

    return forever


@case("gil", "the GIL, after time.sleep()", threads=False)
def _() -> Blocking:
    return released(partial(time.sleep, 0.001))


@case("gil", "the GIL, after os.read()", threads=False)
def _() -> Blocking:
    return released(partial(os.read, os.open("/dev/zero", os.O_RDONLY), 1))


@case("gil", "the GIL, in a callback of C", threads=False)
def _() -> Blocking:
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda _left, _right: 0)
    return released(partial(ctypes.CDLL(None).qsort, (ctypes.c_int * 64)(), 64, 4, compare))


# ---------------------------------------------------------------- sleeping, files, sockets, pipes, other processes
@case("io", "time.sleep()")
def _() -> Blocking:
    return sleeping


@case("io", "select.select()")
def _() -> Blocking:
    return partial(select.select, [pair()], [], [])


@case("io", "select.poll()")
def _() -> Blocking:
    polling = select.poll()
    polling.register(pair().detach(), select.POLLIN)
    return polling.poll


@case("io", "select.epoll()")
def _() -> Blocking:
    polling = select.epoll()
    polling.register(pair().detach(), select.EPOLLIN)
    return polling.poll


@case("io", "selectors.select()")
def _() -> Blocking:
    selector = selectors.DefaultSelector()
    selector.register(pair().detach(), selectors.EVENT_READ)
    return selector.select


@case("io", "socket.accept()")
def _() -> Blocking:
    return listening().accept


@case("io", "socket.accept() with a timeout")
def _() -> Blocking:
    waiting = listening()
    waiting.settimeout(FOREVER_S)
    return waiting.accept


@case("io", "socket.recv()")
def _() -> Blocking:
    return partial(pair().recv, 1)


@case("io", "socket.recv() with a timeout")
def _() -> Blocking:
    waiting = pair()
    waiting.settimeout(FOREVER_S)
    return partial(waiting.recv, 1)


@case("io", "socket.connect()")
def _() -> Blocking:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    _KEPT.append(full)
    for _each in range(2):
        filling = socket.socket()
        filling.setblocking(False)
        filling.connect_ex(full.getsockname())
        _KEPT.append(filling)
    time.sleep(0.05)
    return partial(socket.socket().connect, full.getsockname())


@case("io", "socket.sendall()")
def _() -> Blocking:
    return partial(pair().sendall, bytes(64 << 20))


@case("io", "socket.makefile().readline()")
def _() -> Blocking:
    return pair().makefile().readline


@case("io", "socketserver.serve_forever()")
def _() -> Blocking:
    server = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    return partial(server.serve_forever, FOREVER_S)


@case("io", "subprocess.Popen.wait()")
def _() -> Blocking:
    return sleeper().wait


@case("io", "subprocess.Popen.wait(timeout)")
def _() -> Blocking:
    return partial(sleeper().wait, FOREVER_S)


@case("io", "subprocess.Popen.communicate()")
def _() -> Blocking:
    return sleeper().communicate


@case("io", "subprocess.Popen.communicate(timeout)")
def _() -> Blocking:
    return partial(sleeper().communicate, timeout=FOREVER_S)


@case("io", "subprocess.run()")
def _() -> Blocking:
    return partial(subprocess.run, ["sleep", str(FOREVER_S)], check=True)


@case("io", "os.wait()", threads=False)
def _() -> Blocking:
    sleeper()
    return os.wait


@case("io", "os.waitpid()")
def _() -> Blocking:
    return partial(os.waitpid, sleeper().pid, 0)


@case("io", "os.waitid()")
def _() -> Blocking:
    return partial(os.waitid, os.P_PID, sleeper().pid, os.WEXITED)


@case("io", "os.system()", threads=False)
def _() -> Blocking:
    return partial(os.system, f"sleep {FOREVER_S}")


@case("io", "os.read() of a pipe")
def _() -> Blocking:
    read, write = os.pipe()
    _KEPT.append(write)
    return partial(os.read, read, 1)


@case("io", "os.write() to a full pipe")
def _() -> Blocking:
    read, write = os.pipe()
    _KEPT.append(read)
    # Full from the start: a write that has written a part returns when a sampler stops it.
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write, b"."):
            pass
    os.set_blocking(write, True)
    return partial(os.write, write, b".")


@case("io", "open() of a named pipe")
def _() -> Blocking:
    path = Path(tempfile.mkdtemp(), "pipe")
    os.mkfifo(path)
    return path.open


@case("io", "file.read() of a pipe")
def _() -> Blocking:
    read, write = os.pipe()
    _KEPT.append(write)
    return os.fdopen(read).read


@case("io", "input()", threads=False)
def _() -> Blocking:
    return input


@case("io", "sys.stdin.readline()", threads=False)
def _() -> Blocking:
    return sys.stdin.readline


@case("io", "fcntl.flock()")
def _() -> Blocking:
    path = tempfile.mkstemp()[1]
    held, wanted = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    return partial(fcntl.flock, wanted, fcntl.LOCK_EX)


@case("io", "signal.pause()")
def _() -> Blocking:
    return signal.pause


@case("io", "signal.sigwait()")
def _() -> Blocking:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    return partial(signal.sigwait, [signal.SIGUSR1])


@case("io", "signal.sigtimedwait()")
def _() -> Blocking:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    return partial(signal.sigtimedwait, [signal.SIGUSR1], FOREVER_S)


@case("io", "multiprocessing.Pipe: recv()")
def _() -> Blocking:
    ends = multiprocessing.Pipe()
    _KEPT.extend(ends)
    return ends[0].recv


@case("io", "multiprocessing.connection.wait()")
def _() -> Blocking:
    ends = multiprocessing.Pipe()
    _KEPT.extend(ends)
    return partial(multiprocessing.connection.wait, [ends[0]])


@case("io", "multiprocessing.Queue.get()")
def _() -> Blocking:
    return multiprocessing.Queue().get


@case("io", "multiprocessing.Queue.get(timeout)")
def _() -> Blocking:
    return partial(multiprocessing.Queue().get, timeout=FOREVER_S)


@case("io", "multiprocessing.SimpleQueue.get()")
def _() -> Blocking:
    return multiprocessing.SimpleQueue().get


@case("io", "multiprocessing.Process.join()")
def _() -> Blocking:
    process = multiprocessing.Process(target=sleeping, daemon=True)
    process.start()
    return process.join


@case("io", "multiprocessing.Process.join(timeout)")
def _() -> Blocking:
    process = multiprocessing.Process(target=sleeping, daemon=True)
    process.start()
    return partial(process.join, FOREVER_S)


@case("io", "asyncio.sleep()")
def _() -> Blocking:
    return lambda: asyncio.run(asyncio.sleep(FOREVER_S))


@case("io", "asyncio.Queue.get()")
def _() -> Blocking:
    async def get() -> None:
        await asyncio.Queue().get()

    return lambda: asyncio.run(get())


# ---------------------------------------------------------------- torch
class Endless:
    """Samples that never come."""

    def __len__(self) -> int:
        """One."""
        return 1

    def __getitem__(self, index: int) -> int:
        """Nothing for long."""
        sleeping()
        return index


@case("data", "DataLoader, 1 worker", torch=True)
def _() -> Blocking:
    from torch.utils.data import DataLoader

    return partial(list, DataLoader(Endless(), num_workers=1))


@case("data", "DataLoader, 1 worker, with a timeout", torch=True)
def _() -> Blocking:
    from torch.utils.data import DataLoader

    return partial(list, DataLoader(Endless(), num_workers=1, timeout=FOREVER_S))


@case("lock", "torch.futures.Future.wait()", torch=True)
def _() -> Blocking:
    import torch

    return torch.futures.Future().wait


@case("lock", "backward(), in autograd's own thread", torch=True, threads=False)
def _() -> Blocking:
    import torch

    class Late(torch.autograd.Function):
        @staticmethod
        def forward(_context: Any, value: torch.Tensor) -> torch.Tensor:
            return value.clone()

        @staticmethod
        def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:
            threading.Event().wait()
            return gradient

    return Late.apply(torch.ones(1, requires_grad=True)).sum().backward


@case("io", "torch.multiprocessing.Queue.get()", torch=True)
def _() -> Blocking:
    import torch.multiprocessing

    return torch.multiprocessing.Queue().get


def rank_and_world() -> Any:
    """Two ranks over Gloo, this process and one that only joins; a group for each thread, and ``torch.distributed``."""
    import torch.distributed as dist

    if not dist.is_initialized():
        with listening() as found:
            port = found.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        context.Process(target=join_world, args=(1, port), daemon=True).start()
        join_world(0, port, late=False)
    return dist.new_group([0, 1]), dist


def join_world(rank: int, port: int, *, late: bool = True) -> None:
    """Become a rank; a late one comes to no collective."""
    import torch.distributed as dist

    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    if late:
        for _each in range(2):
            dist.new_group([0, 1])
        sleeping()


@case("collective", "torch.distributed.barrier()", torch=True)
def _() -> Blocking:
    group, dist = rank_and_world()
    return partial(dist.barrier, group=group)


@case("collective", "torch.distributed.all_reduce()", torch=True)
def _() -> Blocking:
    import torch

    group, dist = rank_and_world()
    return partial(dist.all_reduce, torch.ones(8), group=group)


@case("collective", "torch.distributed.recv()", torch=True)
def _() -> Blocking:
    import torch

    group, dist = rank_and_world()
    return partial(dist.recv, torch.ones(8), 1, group=group)


@case("collective", "torch.distributed: Work.wait()", torch=True)
def _() -> Blocking:
    import torch

    group, dist = rank_and_world()
    return dist.all_reduce(torch.ones(8), group=group, async_op=True).wait


@case("collective", "TCPStore.get()", torch=True)
def _() -> Blocking:
    import torch.distributed as dist

    return partial(dist.TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False).get, "nothing")


@case("collective", "DistributedDataParallel: backward()", torch=True, threads=False)
def _() -> Blocking:
    import torch

    group, _ = rank_and_world()
    model = torch.nn.Linear(8, 8)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, process_group=group, init_sync=False)
    _KEPT.append(wrapped)
    return wrapped(torch.ones(8, 8)).sum().backward


# ---------------------------------------------------------------- C
def compiled(name: str, source: str, *options: str) -> ctypes.CDLL:
    """A library of the given name."""
    folder = Path(tempfile.mkdtemp())
    (folder / "source.c").write_text(source, encoding="ascii")
    library = str(folder / name)
    subprocess.run(["gcc", "-shared", "-fPIC", *options, "-o", library, str(folder / "source.c")], check=True)
    return ctypes.CDLL(library)


@case("device", "cudaStreamSynchronize(), a stub")
def _() -> Blocking:
    source = f"unsigned sleep(unsigned); int cudaStreamSynchronize(void *stream) {{ return sleep({FOREVER_S}); }}"
    return partial(compiled("libcudart.so.12", source).cudaStreamSynchronize, None)


@case("parallel", "an OpenMP region with a late thread")
def _() -> Blocking:
    source = f"""
        #include <omp.h>
        #include <unistd.h>
        void region(void) {{
            #pragma omp parallel num_threads(2)
            if (omp_get_thread_num()) sleep({FOREVER_S});
        }}
    """
    return compiled("libregion.so", source, "-fopenmp").region


def main() -> None:
    """Prepare, say ``ready`` and block."""
    chosen = CASES[sys.argv[1]]
    if chosen.torch:
        import torch  # noqa: F401
    calls = [chosen.prepare() for _ in range(1 + chosen.threads)]
    for other in calls[1:]:
        threading.Thread(target=other, name="other", daemon=True).start()
    print("ready", flush=True)
    calls[0]()


if __name__ == "__main__":
    main()
