"""Forks a server that lives on a little after it has ended, and then writes a file."""

import os
import socket
import sys
import time
from pathlib import Path

LIVES_S = 1.0

here, there = socket.socketpair()
if os.fork() == 0:
    here.close()
    # Nobody who waits for the end of the program's output is to wait for the server.
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    there.sendall(there.recv(100).upper())
    time.sleep(LIVES_S)
    Path(sys.argv[1]).write_text("served")
    os._exit(0)
there.close()
here.sendall(b"request")
print(here.recv(100))
sys.exit(4)
