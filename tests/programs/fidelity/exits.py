"""Ends with a code of its own, by way of exit handlers and a line without an end."""

import atexit
import sys

atexit.register(print, "at exit")
print("working", end="")
print("a warning", file=sys.stderr)
sys.exit(7)
