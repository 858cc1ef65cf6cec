"""A mark for tests that compile: torch.compile needs a C++ compiler on the CPU."""

from __future__ import annotations

import os
import shutil

import pytest

FOUND = any(shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++") if name)

needs_compiler = pytest.mark.skipif(
    not FOUND, reason="torch.compile needs a C++ compiler (g++ or clang++), none is here"
)
