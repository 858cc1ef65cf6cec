"""Imports its neighbour by a relative name."""

import sys
from pathlib import Path

from . import neighbour
from .neighbour import greeting

print(greeting("package"), neighbour.__name__)
print(__name__, __package__, __spec__.name, Path(sys.argv[0]).name, sys.argv[1:], sys.path[0] == str(Path.cwd()))
