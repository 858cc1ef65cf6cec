"""Handles signals that it sends itself, then is ended by one that it does not handle."""

import os
import signal
import time


def handle(number: int, frame: object) -> None:
    print("got", signal.Signals(number).name, flush=True)


print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGTERM))
for each in (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP, signal.SIGPROF):
    print(each.name, "was", signal.getsignal(each))
    signal.signal(each, handle)
    os.kill(os.getpid(), each)
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGTERM)
