"""Shortens the paths in py-spy's full file names, and keeps who a file belongs to.

py-spy shortens by itself to what lies in packages: ``transformers/models/gpt2.py`` then looks like a package of the user's own.
With ``--full-filenames`` the folder of installed packages and that of the standard library tell them apart::

    /home/me/env/lib/python3.11/site-packages/transformers/models/gpt2.py   site-packages/transformers/models/gpt2.py
    /usr/lib/python3.11/json/decoder.py                                     lib/python3.11/json/decoder.py
    /home/me/project/model/layers.py, model/__init__.py exists              model/layers.py
    /home/me/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so     libtorch_cpu.so

No path of the machine is left.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")
_PYTHON = re.compile(r"\.pyc?(?::|$)")
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?P<file>.*)")
_STANDARD = re.compile(r".*/(?P<file>lib/python3(?:\.\d+)?/.*)", re.IGNORECASE)


@lru_cache(maxsize=65_536)
def shortened(path: str) -> str:
    """A frame's file without the machine's path; a relative one as it is."""
    if not _ABSOLUTE.match(path):
        return path
    path = path.replace("\\", "/")
    if _PYTHON.search(path):
        if installed := _INSTALLED.match(path):
            return f"site-packages/{installed['file']}"
        if standard := _STANDARD.match(path):
            return standard["file"]
    return _in_package(Path(path))


def _in_package(path: Path) -> str:
    """A file's path from its outermost package on."""
    outside = (folder for folder in path.parents if not (folder / "__init__.py").is_file())
    return path.relative_to(next(outside, path.anchor)).as_posix()
