"""Writes bytes that are no text, past Python's buffer too, and closes its output."""

import os
import sys

sys.stdout.buffer.write(bytes(range(256)) * 4)
sys.stdout.flush()
os.write(1, b"\x00\xff\r\n")
os.write(2, b"\xfe\x00")
os.close(1)
