"""Reads stored advice: ``meta.json``, the timed blocks, and captures of the call as it is and with remedies."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pandas as pd
from msgspec import Struct

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.model import Recorded
from overhead_lens.instruments.ablation.record import read_rungs
from overhead_lens.subject import Subject

BASE = "base"
"""Folder of the capture of the call as it is, and its name among the timed blocks."""

TOGETHER = "together"


class Listed(Struct, frozen=True):
    """A remedy as a worker describes it; see ``remedies/remedy.py``."""

    name: str
    summary: str
    how: str
    safety: str
    shrinks: list[str]
    source: str
    group: str = ""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    own_process: bool = False


class Trial(Struct, frozen=True):
    """The outcome of a remedy's first call.

    Attributes:
        status: ``measured``, ``not_applicable`` or ``failed``.
        reason: Why it was not measured.
        output: ``equal``, ``close``, ``differs`` or ``unknown``.
        loses_gradient: What it returns cannot be differentiated, and what the call as it is returns can.
        leaks: It left the process changed.
    """

    status: str
    reason: str | None = None
    output: str = "unknown"
    loses_gradient: bool = False
    leaks: bool = False


class Tried(Struct, frozen=True):
    """A remedy and its outcome."""

    remedy: Listed
    trial: Trial


class AdviceMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of advice.

    Attributes:
        tried: All remedies.
        repeats: Whether the call as it is gave the same twice; else no output can be compared with it.
        unknown: Why outputs are unknown; empty if they are known.
        captured: Remedies with a capture of their own, in ``with-NAME``.
        together: Remedies of the pair in ``together``; empty without one.
    """

    subject: Subject
    tried: list[Tried]
    repeats: bool = True
    unknown: str = ""
    captured: list[str] = msgspec.field(default_factory=list)
    together: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)


ADVICE = Kind("advice", "overhead-lens/advice-capture/1", AdviceMeta)


def folder_of(path: Path, remedy: str) -> Path:
    """The capture of the call with a remedy."""
    return path / f"with-{remedy}"


def read_advice(path: Path) -> tuple[AdviceMeta, pd.DataFrame]:
    """Metadata and timed blocks.

    Raises:
        UsageError: The directory holds no complete, sound advice.
    """
    meta = read_meta(path, ADVICE)
    file = path / ABLATION
    if not file.exists():
        return meta, pd.DataFrame(columns=["process", "rung", "block", "calls", "wall_ns", "reference_ns"])
    try:
        return meta, read_rungs(file)
    except (OSError, ValueError) as error:
        raise damaged("advice", path, error) from error
