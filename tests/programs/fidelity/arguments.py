"""Parses arguments, one of which the interpreter and the tool know too; ``--help`` is its own."""

import argparse
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("words", nargs="*")
parser.add_argument("--json", metavar="FILE")
parser.add_argument("-m", "--module", default="none")
parser.add_argument("--number", type=int, default=0)
options = parser.parse_args()
print(sys.argv[0], sys.argv[1:])
print(options)
print(__name__, __file__, __doc__.split()[0], __spec__, __package__, sys.modules["__main__"].options is options)
