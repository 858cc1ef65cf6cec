"""Where does every microsecond of a PyTorch call go: a closed budget of real measurements.

::

    import overhead_lens as ol

    ol.profile(torch.add, x, 1).print()

Importing this loads neither torch nor pandas; the first call of a function does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overhead_lens.api import advise, analyze, attach, compare, load, profile
    from overhead_lens.marks import region, step

__all__ = ["advise", "analyze", "attach", "compare", "load", "profile", "region", "step"]

_MODULES = {"region": "overhead_lens.marks", "step": "overhead_lens.marks"}

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        value = globals()[name] = getattr(importlib.import_module(_MODULES.get(name, "overhead_lens.api")), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Give IPython ``%overhead`` and ``%%overhead`` (``%load_ext overhead_lens``)."""
    shell.register_magics(importlib.import_module("overhead_lens.notebook").OverheadMagics)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
