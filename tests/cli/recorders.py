"""Recorders that draw what they are asked for, and a folder to run commands in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from overhead_lens import api
from overhead_lens.captures.directory import write_meta
from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.tables import write_table
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder import single
from overhead_lens.studies.advise import record as advising
from overhead_lens.studies.advise.stored import ADVICE, BASE, AdviceMeta, Listed, Trial, Tried
from overhead_lens.studies.attach import record as attaching
from overhead_lens.studies.check import gate
from overhead_lens.studies.ladder import record as ladders
from overhead_lens.studies.run import record as running
from overhead_lens.studies.sweep import record as sweeps
from overhead_lens.studies.sweep.record import SweepRequest
from overhead_lens.subject import Subject
from tests.cli.run import scenario
from tests.drawn.captures import draw_capture
from tests.drawn.ladders import draw_stored
from tests.drawn.processes import draw_process, thread
from tests.drawn.runs import slow_run
from tests.drawn.sweeps import draw_sweep

RULES = """
[[rule]]
category = "kernel"
function = ["(drawn|train)$"]
scope = true
source = "mine"
"""


class Recorders:
    """Stand-ins that draw what was asked of them; ``asked`` is the last request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: Any = None
        self.environment: Mapping[str, Any] = {"torch": "2.0"}

    def record(self, request: Request, *_: object) -> Path:
        self.asked = request
        return draw_capture(request.output or self.folder / "drawn", environment=self.environment)

    def record_pair(self, base: Request, _new: Request, folder: Path, _listener: Listener) -> tuple[Path, Path]:
        """The new side takes 3 % longer."""
        self.asked = base
        base_path, new_path = (
            draw_capture(folder / name, call_ns=ns) for name, ns in (("base", 1_000), ("new", 1_030))
        )
        return base_path, new_path

    def record_ladder(self, request: Request, *_: object) -> Path:
        self.asked = request
        return draw_stored(self.folder / "drawn", {"eager": [10.0, 11.0], "compiled": [30.0, 33.0]})

    def record_sweep(self, request: SweepRequest, *_: object) -> Path:
        self.asked = request
        return draw_sweep(self.folder / "drawn")

    def record_advice(self, request: Request, *_: object) -> Path:
        """A remedy halves the call."""
        self.asked = request
        folder = self.folder / "drawn"
        folder.mkdir()
        draw_capture(folder / BASE)
        rows = [
            {"process": process, "rung": name, "block": block, "calls": 10, "wall_ns": 10 * ns, "reference_ns": 600}
            for process in range(3)
            for block in range(3)
            for name, ns in ((BASE, 1_000 + process), ("halved", 500 + process))
        ]
        write_table(folder / ABLATION, rows)
        listed = Listed("halved", "it halves", "half()", "safe", ["python", "kernel"], "https://tests")
        subject = Subject("scenario", "drawn", "drawn", {"size": 10})
        write_meta(folder, ADVICE, AdviceMeta(subject=subject, tried=[Tried(listed, Trial("measured"))]))
        return folder

    def record_process(self, request: Any, *_: object) -> Path:
        self.asked = request
        return draw_process(self.folder / "drawn", *thread(10, "MainThread", 600, 400))

    def record_run(self, *_: object) -> tuple[Path, int]:
        return slow_run(self.folder / "drawn"), 0


def folder_to_run_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario, ``tiny.py``, and rules of one's own, ``mine.toml``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    scenario(folder)
    (folder / "mine.toml").write_text(RULES)
    return folder


def replace_recorders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recorders:
    """Stand-ins in the place of all recorders."""
    stand_ins = Recorders(folder)
    modules = {
        **{"record": single, "record_pair": api, "record_ladder": ladders, "record_sweep": sweeps},
        **{"record_advice": advising, "record_process": attaching, "record_run": running},
    }
    for name, module in modules.items():
        monkeypatch.setattr(module, name, getattr(stand_ins, name))
    monkeypatch.setattr(gate, "describe_machine", lambda: stand_ins.environment)
    return stand_ins
