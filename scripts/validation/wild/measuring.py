"""Runs a program plainly, under the clock, by ``run`` and its function by ``profile``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scripts.command import Done, FailedError, because, printed, run
from scripts.results import ROOT
from scripts.validation.wild.listed import Program

_CLOCKED = Path(__file__).with_name("clocked.py")
_TIMEOUT_S = 300.0

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# malloc maps nothing by itself, and gives nothing back.
_KEPT_PAGES = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**27)}


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a program under the clock: what is set, whether it collects garbage, whether its sizes are the smallest."""

    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    collects: bool = True
    smallest: bool = False


# In the order of the table.
WAYS = {
    "usual": Way(),
    "one_thread": Way(_ONE_THREAD),
    "no_gc": Way(collects=False),
    "kept": Way(_KEPT_PAGES),
    "smallest": Way({**_ONE_THREAD, **_KEPT_PAGES}, smallest=True),
}


LIBRARIES = ("transformers", "lightning", "torch_geometric", "accelerate")


def requirements() -> list[str]:
    """The requirements of the environment: torch as ``constraints.txt`` pins it, the libraries as the index has them."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return [*(pin for pin in pins if pin.startswith("torch==")), *LIBRARIES]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended by itself and by ``run``."""

    exit_codes: tuple[int, int]
    same_output: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """Where programs are measured: the folder of their environment, which also holds what they write."""

    folder: Path

    def versions(self) -> str:
        """Names and versions of the libraries."""
        code = "from importlib.metadata import version; import sys; print(*(f'{n} {version(n)}' for n in sys.argv[1:]), sep=', ')"
        return printed(self._run([self._program("python"), "-c", code, "torch", *LIBRARIES])).strip()

    def clocked(self, program: Program, way: Way) -> dict[str, float]:
        """What the clock reads of a program.

        Raises:
            FailedError: It ended otherwise.
        """
        times = self.folder / "times.json"
        times.unlink(missing_ok=True)
        options: list[object] = ["--around", *program.operators] if program.operators else []
        options += ["--times", times, "--mark", program.mark, "--steps", program.steps]
        options += [] if way.collects else ["--no-gc"]
        smallest = program.smallest if way.smallest else ()
        words = [*self._launcher(program), _CLOCKED, *options, program.path, *program.arguments, *smallest]
        done = self._run(words, way.variables)
        if done.returncode or not times.is_file():
            raise FailedError(because(done))
        reading: dict[str, float] = json.loads(times.read_text(encoding="utf-8"))
        return reading

    def run(self, program: Program) -> tuple[list[dict[str, Any]], Ended]:
        """What ``run`` reports, a document for each rank, and how the program ended beside a run by itself.

        Raises:
            FailedError: There is no document.
        """
        words = [program.path, *program.arguments]
        alone = self._run([*self._launcher(program), *words])
        document = self.folder / "run.json"
        for old in self.folder.glob("run*.json"):
            old.unlink()
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            tool = [*self._tool(), "run", "--json-file", document, "--output", f"{folder}/run"]
            launcher = [*self._torchrun(program), "--no-python"] if program.ranks else []
            done = self._run([*launcher, *tool, "--", *words])
        documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.folder.glob("run*.json"))]
        if not documents:
            raise FailedError(because(done))
        return documents, Ended((alone.returncode, done.returncode), alone.stdout == done.stdout)

    def profiled(self, program: Program) -> dict[str, Any]:
        """What ``profile`` reports of the program's function.

        Raises:
            FailedError: It failed.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            inputs = ["--inputs", f"{program.path}:prepared", "--output", f"{folder}/profile"]
            target = f"{program.path}:{program.function}"
            done = self._run([*self._tool(), "profile", "--quick", "--quiet", "--json", *inputs, target])
        return dict(json.loads(printed(done)))

    def _tool(self) -> list[object]:
        return [self._program("python"), "-m", "overhead_lens"]

    def _launcher(self, program: Program) -> list[object]:
        return self._torchrun(program) if program.ranks else [self._program("python")]

    def _torchrun(self, program: Program) -> list[object]:
        return [self._program("torchrun"), "--nproc-per-node", program.ranks]

    def _program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def _run(self, words: Sequence[object], variables: Mapping[str, str] = MappingProxyType({})) -> Done:
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            fixed = {
                # This checkout is measured, whichever one the environment was made with.
                "PYTHONPATH": str(ROOT),
                # A program that is ended leaves what it has put there.
                "TMPDIR": temporary,
                "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "compiled"),
            }
            return run(words, self.folder, {**fixed, **variables}, _TIMEOUT_S)
