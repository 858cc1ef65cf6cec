"""A sampler for recordings of which no stack is looked at: real ones read symbols for two seconds before their first stack."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from overhead_lens.samplers import py_spy
from tests.drawn.speedscope import speedscope
from tests.drawn.stacks import LOOP

_STACKS = [f"{LOOP};work (my.py:1)"] * 100

# Until it is interrupted it sleeps, as py-spy does between stacks; what is asked but a recording, it refuses.
_PROGRAM = f"""#!{sys.executable} -SE
import signal, sys, time

def end(*_):
    with open(sys.argv[-1], "w") as output:
        output.write({speedscope(_STACKS)!r})
    print("Samples: 100 Errors: 0", flush=True)
    sys.exit()

if sys.argv[1] != "record":
    sys.exit(1)
signal.signal(signal.SIGINT, end)
print("py-spy> Sampling process 300 times a second", flush=True)
while True:
    time.sleep(0.003)
"""


@contextlib.contextmanager
def drawn_stacks() -> Iterator[None]:
    """Every recording's stacks are a hundred of a Python function in the measured loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "py-spy")
        path.write_text(_PROGRAM)
        path.chmod(0o755)
        with mock.patch.object(py_spy, "find_sampler", lambda: str(path)):
            yield
