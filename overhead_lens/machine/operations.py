"""Operations of every measurement (``worker/operations.py``, ``worker/runtime.py``), with the types of their replies."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from overhead_lens.scenario import Work
from overhead_lens.subject import Kind

Reply = TypeVar("Reply")


class Operation(Struct, Generic[Reply], frozen=True):
    """An operation of a worker, and the type of its reply.

    Attributes:
        name: ``MODULE:FUNCTION``, the module named from this package on.
    """

    name: str
    reply: type[Reply]

    @property
    def title(self) -> str:
        """The function in words, for messages: ``warm up``."""
        return self.name.rpartition(":")[2].replace("_", " ")


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """An empty reply."""


class Workload(Struct, frozen=True):
    """A worker's description of its workload; values of ``params`` that JSON lacks are text.

    Attributes:
        compiles: Whether torch.compile compiles it.
        notes: Warnings for the report.
    """

    kind: Kind
    scenario: str
    variant: str
    device: str
    summary: str
    params: dict[str, Any]
    work: Work
    work_known: bool
    compiles: bool
    notes: tuple[str, ...] = ()


class WarmUp(Struct, frozen=True):
    """Result of a warm-up; ``compiles`` counts frames."""

    call_ns: float
    settled: bool
    compiles: int


class Catalog(Struct, frozen=True):
    """Descriptions of scenario files."""

    scenarios: list[dict[str, Any]]


LOAD = Operation("worker.operations:load", Workload)
DESCRIBE = Operation("worker.operations:describe", Workload)
WARM_UP = Operation("worker.operations:warm_up", WarmUp)
RECOMPILE = Operation("worker.operations:recompile", WarmUp)
COMPILE_CALL = Operation("worker.operations:compile_call", Nothing)
DESCRIBE_RUNTIME: Operation[dict[str, Any]] = Operation("worker.runtime:describe_runtime", dict[str, Any])
CATALOG = Operation("worker.operations:catalog", Catalog)
