"""The state of a measuring process between requests, and the operations that it offers.

Standard library only: the module of an operation imports torch.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, TypeVar

from overhead_lens.errors import MeasurementError, UsageError, first_line
from overhead_lens.worker.collector import collecting_rarely

if TYPE_CHECKING:
    from overhead_lens.worker.workload import Workload

_Operation = TypeVar("_Operation", bound=Callable[..., Any])

_PACKAGE = "overhead_lens"


def operation(function: _Operation) -> _Operation:
    """Mark a function of a session and JSON values, returning JSON values, as an operation."""
    function.is_operation = True  # type: ignore[attr-defined]
    return function


def method(key: str, act: Callable[..., Any]) -> Callable[..., Any]:
    """The operation that calls a method of what an earlier one left in ``Session.state`` by that key."""
    return operation(lambda session, **arguments: act(session.state[key], **arguments))


def find_operation(name: str) -> Callable[..., Any]:
    """The operation ``MODULE:FUNCTION``, the module named from this package on.

    Raises:
        LookupError: There is none of that name.
    """
    module, _, function = name.partition(":")
    with collecting_rarely():
        imported = importlib.import_module(f"{_PACKAGE}.{module}")
    candidate: Any = getattr(imported, function, None)
    if not getattr(candidate, "is_operation", False):
        raise LookupError(f"no operation {name}")
    marked: Callable[..., Any] = candidate
    return marked


class Session:
    """The state of one measuring process.

    Attributes:
        announce: Sends a reply while an operation goes on.
        call_ns: Expected time of a call; 0 before the warm-up.
        state: What operations leave for later ones, by their own keys.
    """

    def __init__(self, requests: IO[str], announce: Callable[[dict[str, Any]], None]) -> None:
        self.requests = requests
        self.announce = announce
        self.call_ns = 0.0
        self.state: dict[str, Any] = {}
        self._workload: Workload | None = None

    @property
    def workload(self) -> Workload:
        """The measured workload.

        Raises:
            LookupError: Nothing has been loaded.
        """
        if self._workload is None:
            raise LookupError("nothing is loaded")
        return self._workload

    @workload.setter
    def workload(self, workload: Workload) -> None:
        self._workload = workload


def answer(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks for; returns the reply or error, in the protocol of ``serve.py``."""
    name = request.pop("do")
    try:
        return {"ok": find_operation(name)(session, **request)}
    except UsageError as error:
        return {"error": {"kind": "usage", "message": str(error)}}
    except (MeasurementError, OSError, MemoryError) as error:
        return {"error": {"kind": "measurement", "message": str(error) or type(error).__name__}}
    except Exception as error:
        traceback.print_exc()
        step = name.rpartition(":")[2].replace("_", " ")
        return {"error": {"kind": "measurement", "message": f"{step} failed: {first_line(error)}"}}
