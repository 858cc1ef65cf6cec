"""Drawn steps of a program: a host and a device whose times follow from what is done, so that a cause can be taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.drawn.memory import memory
from tests.drawn.timelines import MAIN, timed

LAUNCH_NS = 5_000
_DRIVER = "cuda_runtime"
_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a step does.

    Attributes:
        what: ``launch`` (a kernel of ``ns``), ``python``, ``data``, ``compile``, ``communicate``, ``download`` (a copy that waits
            for the device), ``upload`` (a pageable copy), ``allocate``, ``grow`` (the same, for memory that is never released),
            ``synchronize``.
        is_cause: Whether the cause is in it, and it is not there once that is removed.
    """

    what: str
    ns: int
    is_cause: bool = False


@dataclass(slots=True)
class Drawing:
    """The host runs one act after the other; the device runs what was launched in order, on one stream."""

    events: list[dict[str, Any]] = field(default_factory=list)
    now_ns: int = 0
    device_ns: int = 0
    correlation: int = 0
    live: int = 0

    def step(self, number: int, acts: Sequence[Act]) -> None:
        """Draw one step."""
        start_ns = self.now_ns
        for act in acts:
            getattr(self, f"_{act.what}")(act.ns)
        self._add("user_annotation", f"ProfilerStep#{number}", start_ns, self.now_ns - start_ns)

    def end(self) -> int:
        """Wait for the device; how long all took."""
        self._synchronize(0)
        return max(self.now_ns, self.device_ns)

    def _launch(self, ns: int, name: str = "gemm", cat: str = "kernel") -> None:
        self._call("cudaLaunchKernel", LAUNCH_NS)
        self._work(ns, name, cat)

    def _communicate(self, ns: int) -> None:
        self._launch(ns, "ncclDevKernel_AllReduce_Sum_f32")

    def _python(self, ns: int) -> None:
        self._host("python_function", "train.py(7): augment", ns)

    def _data(self, ns: int) -> None:
        self._host("user_annotation", _LOADER, ns)

    def _compile(self, ns: int) -> None:
        self._host("cpu_op", "_compile.compile_inner (dynamo_timed)", ns)

    def _allocate(self, ns: int) -> None:
        self._call("cudaMalloc", ns)

    def _grow(self, ns: int) -> None:
        self._allocate(ns)
        self.live += 1 << 20
        self.events.append(memory(self.now_ns - 1, 1 << 20, self.live, self.live, self.live))

    def _synchronize(self, ns: int) -> None:
        self._call("cudaDeviceSynchronize", max(ns, self.device_ns - self.now_ns, 1))

    def _download(self, ns: int) -> None:
        start_ns = max(self.device_ns, self.now_ns + LAUNCH_NS)
        self._call("cudaMemcpyAsync", start_ns + ns - self.now_ns)
        self._work(ns, "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", start_ns)

    def _upload(self, ns: int) -> None:
        start_ns = max(self.device_ns, self.now_ns + LAUNCH_NS)
        self._call("cudaMemcpyAsync", start_ns + ns - self.now_ns)
        self._work(ns, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", start_ns)

    def _host(self, cat: str, name: str, ns: int) -> None:
        self._add(cat, name, self.now_ns, ns)
        self.now_ns += ns

    def _call(self, name: str, ns: int) -> None:
        self.correlation += 1
        self._add(_DRIVER, name, self.now_ns, ns, correlation=self.correlation)
        self.now_ns += ns

    def _work(self, ns: int, name: str, cat: str, start_ns: int | None = None) -> None:
        start_ns = max(self.device_ns, self.now_ns) if start_ns is None else start_ns
        self.events.append(timed(start_ns, ns, name, cat, (0, 7), device=0, stream=7, correlation=self.correlation))
        self.device_ns = start_ns + ns

    def _add(self, cat: str, name: str, start_ns: int, ns: int, **args: Any) -> None:
        self.events.append(timed(start_ns, ns, name, cat, MAIN, **args))


def drawing(steps: Sequence[Sequence[Act]]) -> tuple[list[dict[str, Any]], int]:
    """The events of some steps and how long all take."""
    drawn = Drawing()
    for number, acts in enumerate(steps, 1):
        drawn.step(number, acts)
    return drawn.events, drawn.end()


def without_cause(steps: Sequence[Sequence[Act]]) -> list[list[Act]]:
    """The same steps without the cause."""
    return [[act for act in acts if not act.is_cause] for acts in steps]
