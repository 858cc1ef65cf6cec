"""Starting a program: the user's step in a file that it imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overhead_lens.program import start
from overhead_lens.program.area import NOTES, Area


@pytest.mark.parametrize("step", ["lib.py:2", "link.py:2", "lib:work"])
def test_a_step_in_an_imported_file_is_reached(tmp_path: Path, step: str) -> None:
    (tmp_path / "lib.py").write_text("def work():\n    return 1\n", encoding="utf-8")
    (tmp_path / "link.py").symlink_to("lib.py")
    (tmp_path / "main.py").write_text("import json, lib\nfor _ in range(4):\n    lib.work()\n", encoding="utf-8")
    Area.create(tmp_path)
    settings = json.dumps({"tracer_pid": 1, "step": step})
    subprocess.run(
        [sys.executable, start.__file__, str(tmp_path), settings, "main.py"], cwd=tmp_path, timeout=120, check=True
    )
    assert '"found_by": "explicit"' in (tmp_path / NOTES).read_text(encoding="utf-8")
