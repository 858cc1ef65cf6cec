"""Ends by ``os._exit``: nothing is flushed, no exit handler runs."""

import atexit
import os
import sys

atexit.register(print, "never printed")
print("flushed", flush=True)
sys.stdout.write("lost")
os._exit(5)
