"""Drawing sampled stacks: one string a stack, frames outermost first, as py-spy prints them."""

from __future__ import annotations

from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import Classifier, default_classifier

LOOP = "measured_loop (overhead_lens/worker/loop.py:4)"
USER = "add1 (add1.py:50)"
BINDING = "torch::autograd::THPVariable_add (libtorch_python.so)"
ENTRY = "at::_ops::add_Tensor::call (libtorch_cpu.so)"

CLASSIFIER: Classifier = default_classifier()


def stack(*frames: str, count: int = 1) -> Stack:
    """A stack below the measured loop."""
    (found,) = parse_stacks([f"{';'.join((LOOP, *frames))} {count}"])
    return found


def attribution(*frames: str) -> str:
    """Category and part of a stack below the measured loop, ``python/user``."""
    return claimed(stack(*frames))


def claimed(whole: Stack) -> str:
    """Category and part of a stack."""
    found = CLASSIFIER.classify(whole).attribution
    return found.category if found.part is None else f"{found.category}/{found.part}"
