"""Settings of torch that hold in every thread: read where a call is made, set where it is measured.

Standard library only.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Functions of ``torch._C``: what reads a setting, and what sets it.
_SWITCHES = {
    "_get_cudnn_benchmark": "_set_cudnn_benchmark",
    "_get_cudnn_deterministic": "_set_cudnn_deterministic",
    "_get_cudnn_enabled": "_set_cudnn_enabled",
    "_get_cudnn_sdp_enabled": "_set_sdp_use_cudnn",
    "_get_flash_sdp_enabled": "_set_sdp_use_flash",
    "_get_math_sdp_enabled": "_set_sdp_use_math",
    "_get_mem_efficient_sdp_enabled": "_set_sdp_use_mem_efficient",
    "_get_mkldnn_enabled": "_set_mkldnn_enabled",
}
# An alias, such as `force_disable_caches` of Inductor, is listed only by the module of the setting that it names.
_COMPILER = (
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch.compiler.config",
    "torch.fx.experimental._config",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of torch.

    Attributes:
        switches: Functions of ``torch._C`` that set them, with the values.
        compiler: Modules of torch.compile's settings, with those that are not the defaults.
    """

    switches: Mapping[str, bool]
    compiler: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of_this_process(cls) -> Settings:
        """The settings of this process; none without torch."""
        core = sys.modules.get("torch._C")
        switches = {} if core is None else {into: getattr(core, name)() for name, into in _SWITCHES.items()}
        configs = {name: sys.modules[name] for name in _COMPILER if name in sys.modules}
        return cls(switches, {name: changed for name, config in configs.items() if (changed := _changed(config))})

    def apply(self) -> None:
        """Make them those of this process."""
        for name, value in self.switches.items():
            getattr(importlib.import_module("torch._C"), name)(value)
        for name, values in self.compiler.items():
            importlib.import_module(name).load_config(dict(values))


def _changed(config: Any) -> dict[str, Any]:
    """The settings whose values are not the defaults; after ``config.patch`` torch lists others as well."""
    changed = config._get_dict(skip_default=True)  # noqa: SLF001
    return {name: value for name, value in changed.items() if value != config._config[name].default}  # noqa: SLF001
