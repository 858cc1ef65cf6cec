"""The taxonomy."""
from __future__ import annotations
HOST_CATEGORIES: tuple[str, ...] = (
    "python", "guard", "dispatcher", "allocation", "kernel", "launch", "wait", "compile", "unattributed",
)
