"""Reads standard input to its end: a line by ``input``, the rest as text."""

import sys

print("name:", input("who? "))
rest = sys.stdin.read()
print(len(rest), rest.split(), sys.stdin.isatty())
