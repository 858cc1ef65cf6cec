"""The documents by name, for ``overhead-lens schema`` and for whoever validates one."""

from __future__ import annotations

import importlib
import json
from typing import Any, cast

import msgspec

from overhead_lens.documents.common import Document

# Name to what it is; ``NAMEDocument`` in ``documents/NAME.py``, or as ``_HOMES`` says.
SUMMARIES = {
    "advice": "remedies tried on a call, and what came of them (`advise --json`)",
    "analysis": "exported traces: host, device, blame, ranks (`analyze --json`)",
    "breakdown": "the closed budget of one call (`profile --json`, `report --json`)",
    "calibration": "what torch.profiler's events cost here (`calibrate --json`)",
    "counts": "instructions compared with a baseline (`check --instructions --json`)",
    "delta": "the difference of two budgets (`compare --json`, `diff --json`, `check --json`)",
    "history": "captures over time (`history --json`)",
    "ladder": "a call with one thing after another left out (`ladder --json`)",
    "missed": "what a hot loop would have missed of a run (`advise RUN --json`)",
    "ranks": "the runs of a job's ranks (`report JOB --json`)",
    "run": "a user's program: the budget of its steps (`run --json-file FILE`, `report RUN --json`)",
    "process": "budgets of a running process's threads (`attach --json`)",
    "steps": "the difference of two runs of a program (`diff --json`)",
    "structure": "the difference of two traces (`diff --json`)",
    "sweep": "time over sizes (`sweep --json`)",
    "threads": "the difference of two watched processes (`diff --json`)",
}

_IN_RUN = dict.fromkeys(("missed", "ranks", "steps"), "run")
_HOMES = {**_IN_RUN, "counts": "delta", "structure": "analysis", "threads": "process"}

# Models that the schemas call by another name.
_NAMES = {
    "Batches": "AtBatches",
    "CriticalPath": "Path",
    "DeviceBudget": "Device",
    "InstructionChange": "CountCategoryDelta",
    "InstructionDelta": "CountDelta",
    "Shortfall": "Figure",
    "ModuleClass": "OfClass",
    "ModuleTime": "ModuleTimes",
    "PhaseTime": "Phase",
    "SweptPoint": "Point",
}


def document_type(name: str) -> type[Document]:
    """The type of the document of that name."""
    module = importlib.import_module(f"overhead_lens.documents.{_HOMES.get(name, name)}")
    return cast("type[Document]", getattr(module, f"{name.capitalize()}Document"))


def schema_id(name: str) -> str:
    """What the document's ``schema`` says: ``overhead-lens/breakdown/2``."""
    (default,) = (field.default for field in msgspec.structs.fields(document_type(name)) if field.name == "schema")
    return str(default)


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of the document of that name; no object has other keys than it names."""
    text = json.dumps(msgspec.json.schema(document_type(name)))
    for model, called in _NAMES.items():
        text = text.replace(f'"{model}"', f'"{called}"').replace(f'"#/$defs/{model}"', f'"#/$defs/{called}"')
    schema = json.loads(text)
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schema_id(name), **schema}
