"""Types of a capture's ``meta.json``.

An instrument defines the type of its own entry under ``instruments``; nothing here knows the instruments.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec
from msgspec import Struct

from overhead_lens import __version__
from overhead_lens.scenario import Work
from overhead_lens.subject import Subject

HOT_CACHES = "hot caches"


class Recorded(Struct, frozen=True, kw_only=True):
    """Provenance of a recording.

    Attributes:
        environment: The machine, the interpreter and their versions, by name.
        started: ISO 8601 with its offset.
    """

    version: str = ""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    command: str = ""
    started: str = ""
    seconds: float = 0.0


def recorded(environment: Mapping[str, Any], command: Sequence[str], started: datetime) -> dict[str, Any]:
    """The fields of ``Recorded`` for a recording that ends now."""
    return {
        "version": __version__,
        "environment": dict(environment),
        "command": shlex.join(command),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(timezone.utc) - started).total_seconds(), 1),
    }


class CaptureMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of the capture of one call.

    Attributes:
        work: The work of one call; None if the scenario does not say.
        units: Units of work of one call; 1 where the scenario does not say.
        compile_options: Keyword arguments of torch.compile; None for an eager call.
        target, inputs: The subject and the source of its arguments as the user named them.
        assigned: Assigned parameters, name to text; None in a capture that does not say.
        has_arguments: Whether a call from Python had arguments, which are not stored; None in a capture that does not say.
        instruments: Entries of the instruments, by name.
        warnings: Warnings of the recorder.
        recorded_with: Identity of a recording in turns; None for a capture recorded alone.
    """

    subject: Subject
    summary: str = ""
    work: Work | None = None
    units: int = 1
    compile_options: dict[str, Any] | None = None
    target: str = ""
    inputs: str | None = None
    assigned: dict[str, str] | None = None
    has_arguments: bool | None = None
    effort: dict[str, int] = msgspec.field(default_factory=dict)
    instruments: dict[str, Any] = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)
    recorded_with: str | None = None

    @property
    def caches(self) -> str:
        """The state of the caches before each call; hot unless the environment says otherwise."""
        return str(self.environment.get("caches", HOT_CACHES))

    @property
    def gpu(self) -> Any:
        """Name of the card that a call on a device runs on; None for a call on the processor, whatever card is there."""
        return None if self.subject.device_kind == "cpu" else self.environment.get("gpu")
