"""Operations that every measurement begins with: load, compile, warm up, describe. Runs in the worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead_lens.errors import UsageError
from overhead_lens.target import Target
from overhead_lens.worker import workload
from overhead_lens.worker.displaced import displaced
from overhead_lens.worker.load import load_scenario
from overhead_lens.worker.session import Session, operation


@operation
def load(
    session: Session,
    target: Mapping[str, Any],
    params: Mapping[str, str],
    compile_options: Any,
    remedies: Mapping[str, Any] | None = None,
    displaced_bytes: int = 0,
) -> dict[str, Any]:
    """Load and check; replies with the description of the workload.

    ``remedies`` are the names to apply, the user's file of further ones, and a folder that all processes share.
    ``displaced_bytes`` of memory are read before every call.
    """
    session.workload = workload.load(Target.from_json(target), params, compile_options)
    if remedies is not None:
        from overhead_lens.worker.remedied import for_good

        names, file, folder = remedies["names"], remedies["file"], Path(remedies["folder"])
        session.workload = for_good(session.workload, names, file, folder)
    session.workload = displaced(session.workload, displaced_bytes)
    return describe(session)


@operation
def describe(session: Session) -> dict[str, Any]:
    """Describe the workload."""
    return workload.describe(session.workload)


@operation
def compile_call(session: Session) -> dict[str, Any]:
    """Compile and check."""
    workload.compile_call(session.workload)
    return {}


@operation
def warm_up(session: Session) -> dict[str, Any]:
    """Compile and call until settled; replies with the result of ``workload.warm_up``."""
    warm = workload.warm_up(session.workload)
    session.call_ns = warm["call_ns"]
    return warm


@operation
def recompile(session: Session) -> dict[str, Any]:
    """Compile once more and call until settled; all but the compiled code is warm."""
    compiled = workload.recompiled(session.workload)
    warm = workload.warm_up(compiled, least_ns=0)
    session.workload, session.call_ns = compiled, warm["call_ns"]
    return warm


@operation
def catalog(_session: Session, paths: Mapping[str, str]) -> dict[str, Any]:
    """Describe scenario files."""
    return {"scenarios": [_described(name, Path(path)) for name, path in paths.items()]}


def _described(name: str, path: Path) -> dict[str, Any]:
    """A scenario's ``name``, ``summary``, ``source``, ``variants`` and ``params`` (defaults); or ``name`` and ``error``."""
    try:
        scenario = load_scenario(Target(str(path), path))
    except UsageError as error:
        return {"name": name, "error": str(error)}
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "source": scenario.source,
        "variants": list(scenario.variants),
        "params": dataclasses.asdict(scenario.params()),
    }
