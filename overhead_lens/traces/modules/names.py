"""How traces name modules.

``nn.Module: Linear_3`` is the fourth instance of a class that the profiler saw called (``with_stack=True``,
torch/csrc/autograd/profiler_python.cpp). Programs mark modules themselves: ``DistributedDataParallel.forward``
(torch/nn/parallel/distributed.py), ``## forward:bottom_mlp ##``, ``<class 'models.Tower'>``.
"""

from __future__ import annotations

import re

from overhead_lens.taxonomy import torch_names

_MARKS = (
    re.compile(r"## forward:(?P<name>.*\S) ##$", re.DOTALL),
    re.compile(r"(?P<name>[A-Z]\w*)\.forward$"),
    re.compile(r"<class '(?:.*\.)?(?P<name>[^.']+)'>$", re.DOTALL),
)


def called_module(event: str) -> str | None:
    """Class and number of the module whose call an event is: ``Linear_3``; None for other events."""
    return event.removeprefix(torch_names.MODULE_PREFIX) if event.startswith(torch_names.MODULE_PREFIX) else None


def marked_module(event: str) -> str | None:
    """What an annotation calls the module that it marks; None for other events."""
    matches = (pattern.match(event) for pattern in _MARKS)
    return next((match["name"] for match in matches if match is not None), None)


def class_and_number(name: str) -> tuple[str, int | None]:
    """``Linear`` and 3 of ``Linear_3``; None for a name without a number."""
    class_name, _, number = name.rpartition("_")
    is_numbered = bool(class_name) and number.isdecimal() and number.isascii() and len(number) <= 18
    return (class_name, int(number)) if is_numbered else (name, None)
