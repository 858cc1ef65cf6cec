"""Types of what a capture's ``meta.json`` says.

A directory is complete once its ``meta.json`` is there. What one instrument has to say stands under ``instruments`` by the
instrument's name, in a type that the instrument defines: nothing here knows what instruments there are.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from overhead_lens.scenario import Published, Work
from overhead_lens.subject import Subject


class Recorded(Struct, frozen=True, kw_only=True):
    """Where figures come from.

    Attributes:
        version: Of this package.
        environment: The machine, the interpreter and their versions, by name.
        command: The command line.
        started: When, ISO 8601 with its offset.
        seconds: How long it took.
    """

    version: str = ""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    command: str = ""
    started: str = ""
    seconds: float = 0.0


class CaptureMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of the capture of one call.

    Attributes:
        subject: What was measured.
        summary: The scenario's own line.
        default_params: The scenario's parameters where none is assigned.
        work: The work of one call; None where the scenario does not say.
        units: Units of work of one call, 1 where the scenario does not say.
        published: Reference figures of this variant, mode and size.
        compile_options: Keyword arguments of torch.compile; None for an eager call.
        target, inputs: The subject as the user named it, and what makes its arguments; None where nothing is named.
        assigned: Parameters that were assigned, name to text; None in a capture that does not say.
        effort: How much was measured, by the names of ``Effort``.
        instruments: What each instrument says, by its name.
        warnings: What the recorder has to say.
        recorded_with: The same in captures that were recorded in turns; None for one by itself.
    """

    subject: Subject
    summary: str = ""
    default_params: dict[str, Any] = msgspec.field(default_factory=dict)
    work: Work | None = None
    units: int = 1
    published: list[Published] = msgspec.field(default_factory=list)
    compile_options: dict[str, Any] | None = None
    target: str = ""
    inputs: str | None = None
    assigned: dict[str, str] | None = None
    effort: dict[str, int] = msgspec.field(default_factory=dict)
    instruments: dict[str, Any] = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)
    recorded_with: str | None = None
