"""What is measured, as a value: a scenario's variant, a plain function, a callable, a script or a region of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["scenario", "function", "callable", "script", "region"]


@dataclass(frozen=True, slots=True)
class Subject:
    """The measured subject of a budget.

    Attributes:
        kind: ``scenario``, ``function`` (a plain one, no SCENARIO), ``callable`` (from Python, in this process), ``script`` or
            ``region``.
        name: Scenario, function or script.
        variant: The scenario's variant; the name again where there are none.
        params: Parameter name to value.
        compile: Whether torch.compile is applied to it.
        device: ``cpu``, ``cuda:1``.
    """

    kind: Kind
    name: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    compile: bool = False
    device: str = "cpu"

    @property
    def title(self) -> str:
        """Name and variant, once if they are the same: ``linear_loop:batched``."""
        return self.name if self.variant in ("", self.name) else f"{self.name}:{self.variant}"

    @property
    def device_kind(self) -> str:
        """``cuda`` of ``cuda:1``."""
        return self.device.partition(":")[0]
