"""The tutorial: every cell runs in a kernel, and what it stores is what the cells are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.provisioning import local_provisioner

from scripts.documentation.tutorial import TUTORIAL, execute
from tests.worker.warm import WORKERS, fork

LITTLE = "from tests.recorder.effort import little_effort\nlittle = little_effort(processes=1, sampled=False)\nlittle.__enter__()"


def test_what_is_stored_was_run_from_the_top() -> None:
    cells = [cell for cell in nbformat.read(TUTORIAL, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)


def launch(command: Sequence[str], *, cwd: str, env: Mapping[str, str], **_: object) -> Any:
    """Fork a kernel from a process that has imported what its workers need."""
    with open(os.devnull, "r+b") as nothing:
        return fork(command[command.index("-m") :], [nothing] * 3, Path(cwd), env, WORKERS)


@pytest.mark.measures
def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])))
    monkeypatch.setattr(local_provisioner, "launch_kernel", launch)
    notebook = nbformat.read(TUTORIAL, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(LITTLE))
    execute(notebook, str(tmp_path))
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
    assert " times\n" in said
    assert "cross at" in said or "at every size" in said
