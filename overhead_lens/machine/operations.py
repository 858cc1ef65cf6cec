"""The operations of ``worker/operations.py`` as the recorder asks for them, with the types of their replies."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from overhead_lens.scenario import Published, Work
from overhead_lens.subject import Kind

Reply = TypeVar("Reply")


class Operation(Struct, Generic[Reply], frozen=True):
    """What a worker can be asked for.

    Attributes:
        name: ``MODULE:FUNCTION``, the module named from this package on.
        reply: Type of the reply.
    """

    name: str
    reply: type[Reply]

    @property
    def title(self) -> str:
        """The function in words, for messages: ``warm up``."""
        return self.name.rpartition(":")[2].replace("_", " ")


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """The reply of an operation that has nothing to say."""


class Workload(Struct, frozen=True):
    """What a worker says of the workload that it has loaded; ``params`` are JSON values, texts of what is none."""

    kind: Kind
    scenario: str
    variant: str
    device: str
    summary: str
    params: dict[str, Any]
    default_params: dict[str, Any]
    work: Work
    work_known: bool
    published: list[Published]


class WarmUp(Struct, frozen=True):
    """How a warm-up ended: ns of one call, whether the times had settled, frames compiled."""

    call_ns: float
    settled: bool
    compiles: int


class Catalog(Struct, frozen=True):
    """What scenario files offer: one mapping each, see ``worker/catalog.py``."""

    scenarios: list[dict[str, Any]]


LOAD = Operation("worker.operations:load", Workload)
DESCRIBE = Operation("worker.operations:describe", Workload)
WARM_UP = Operation("worker.operations:warm_up", WarmUp)
RECOMPILE = Operation("worker.operations:recompile", WarmUp)
COMPILE_CALL = Operation("worker.operations:compile_call", Nothing)
DESCRIBE_RUNTIME: Operation[dict[str, Any]] = Operation("worker.operations:describe_runtime", dict[str, Any])
CATALOG = Operation("worker.operations:catalog", Catalog)
