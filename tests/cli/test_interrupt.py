"""Ctrl-C at a bad moment."""

from __future__ import annotations

import importlib
import signal
import time
from pathlib import Path

import pytest

from overhead_lens import __main__ as program
from overhead_lens.errors import Interrupted

# As a C extension does whose initialization clears any error.
SWALLOWS = """
import signal, time

try:
    signal.raise_signal(signal.SIGTERM)
    time.sleep(0.2)
except BaseException:
    pass
loaded = True
"""


def test_an_import_swallows_no_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "swallowing.py").write_text(SWALLOWS)
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    program._listen_for_the_end()
    try:
        module = importlib.import_module("swallowing")
        with pytest.raises(Interrupted):
            time.sleep(60)
        assert module.loaded
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
