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
    from overhead_lens.api import analyze, compare, load, profile

__all__ = ["analyze", "compare", "load", "profile"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("overhead_lens.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Give IPython ``%overhead`` and ``%%overhead`` (``%load_ext overhead_lens``)."""
    importlib.import_module("overhead_lens.notebook").register(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
