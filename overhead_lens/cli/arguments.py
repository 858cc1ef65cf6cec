"""What several commands read from their arguments."""

from __future__ import annotations

from typing import Any

from overhead_lens.errors import UsageError


def assignments(texts: list[str], device: str | None) -> dict[str, str]:
    """What ``-p NAME=VALUE`` and ``--device`` assign.

    Raises:
        UsageError: An assignment has no name, or a name is assigned twice.
    """
    assigned = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"-p takes NAME=VALUE, not {text!r}")
        if name in assigned:
            raise UsageError(f"parameter {name} is given twice")
        assigned[name] = value
    if device is not None:
        if assigned.get("device", device) != device:
            raise UsageError(f"--device {device} and -p device={assigned['device']} disagree")
        assigned["device"] = device
    return assigned


def compile_options(*, compile_: bool, mode: str | None) -> dict[str, Any] | None:
    """Keyword arguments of torch.compile; None for eager.

    Raises:
        UsageError: A mode without ``--compile``.
    """
    if not compile_:
        if mode is not None:
            raise UsageError("--mode belongs to --compile")
        return None
    return {} if mode is None else {"mode": mode}
