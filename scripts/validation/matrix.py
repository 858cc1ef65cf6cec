"""Which Pythons and which torches does it work with? An environment for each pair, in which every command is tried.

    python -m scripts.validation.matrix [CELL ...] [--folder build/matrix] [--quick]

A cell is PYTHON-TORCH, as 3.10-2.6 or 3.14-newest; 3.10-lowest has the lowest release of every dependency. Interpreters are those
of pyenv and PATH; with debootstrap, root gets a missing one of Debian's unstable release and works inside of it. Environments,
output and answers stay in the folder: a cell with answers is measured again only by name. ``--quick`` leaves the tests out.
"""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from scripts.command import FailedError, printed, run
from scripts.results import ROOT, Cell, Claim, Origin, Table, columns_of

CLAIM = Claim(
    claim="matrix",
    question="Which Pythons and which torches does it work with?",
    method=(
        "Each pair has an environment of its own, in which the tests that do not measure run, and each command is tried once. "
        "A command works if it prints a budget; otherwise its own words say why not. "
        "Unattributed is the largest share that no rule claims, in these budgets and those of other built-in calls."
    ),
    command="python -m scripts.validation.matrix",
    columns=columns_of(
        "Python | torch | tests passed | failed | skipped | `profile` | `profile --compile` | `run` | `attach` | "
        "unattributed [share] | what it lacks"
    ),
    about=("overhead_lens", "constraints.txt", "pyproject.toml"),
)

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TORCHES = ("2.6", "2.9", "2.13", "newest")

_PROJECT = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]

# Other releases of torch than the pinned one want other releases of these.
_WITH_TORCH = ("torch", "sympy")

# For the rules: with kernels and without, with gradients and without.
_CALLS = ("gelu", "sum_elements:torch")
_STEPS, _WATCH_S, _TIMEOUT_S = 10_000, 10, 3600

# Runs a command in another root with this machine's files; its mounts go with it.
_INSIDE = """
root=$1; here=$2; shift 2
for each in /proc /dev /etc/ssl "$here" "$MATRIX"; do mkdir -p "$root$each"; mount --rbind "$each" "$root$each" || exit 1; done
exec chroot "$root" env -C "$here" "$@"
"""


@dataclass(frozen=True)
class Environment:
    """A Python with a torch, below a folder; "lowest" is a torch, and every other dependency, of the lowest release."""

    python: str
    torch: str
    folder: Path

    @property
    def place(self) -> Path:
        """Where the environment, its output and its answers are."""
        return self.folder / f"{self.python}-{self.torch}"

    @cached_property
    def interpreter(self) -> list[str]:
        """What starts this Python."""
        name = f"python{self.python}"
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
        if interpreters := [*map(str, pyenv.glob(f"{self.python}.*/bin/{name}")), *filter(None, [shutil.which(name)])]:
            return interpreters[:1]
        root = self.folder / f"debian-{self.python}"
        if not (root / "usr" / "bin" / name).exists():
            if os.geteuid() or not shutil.which("debootstrap"):
                raise FailedError(f"{name} is not installed, and only root with debootstrap can get it")
            packages = f"{name},{name}-venv,{name}-dev,g++,make,git,procps,ca-certificates"
            ran("debootstrap", "--variant=minbase", f"--include={packages}", "sid", root, log=self.place / "debian.log")
            shutil.copy("/etc/resolv.conf", root / "etc")
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _INSIDE, "sh"]
        return [*unshare, str(root), str(ROOT), f"/usr/bin/{name}"]

    def command(self, *words: object) -> list[str]:
        """A command line of this environment's Python."""
        return [*self.interpreter[:-1], str(self.place / "bin" / "python"), *map(str, words)]

    @property
    def variables(self) -> dict[str, str]:
        """Its programs are found first, and its cache is its own."""
        own = {"PATH": f"{self.place / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.place / "cache")}
        return {**os.environ, **own, "MATRIX": str(self.folder)}

    def ran(self, name: str, *words: object) -> str:
        """What its Python prints with these arguments; all of the output is kept as ``NAME.log``."""
        return ran(*self.command(*words), log=self.place / f"{name}.log", variables=self.variables)

    def install(self) -> None:
        """Make the environment, with the checkout and what its tests need."""
        if not (self.place / "bin" / "python").is_symlink():
            ran(*self.interpreter, "-m", "venv", self.place, log=self.place / "venv.log", variables=self.variables)
        pins = self.place / "constraints.txt"
        pins.write_text("\n".join(self.constraints()), encoding="utf-8")
        torch = f"torch=={self.torch}.*" if self.torch[0].isdigit() else "torch"
        requirements = [torch, "--editable", f"{ROOT}[cluster,docs,ui]", *self.tools()]
        self.ran("install", "-m", "pip", "install", "--constraint", pins, *requirements)

    def tools(self) -> list[str]:
        """What the tests need; import-linter wants a newer Rich than the lowest."""
        own = ("overhead-lens", "import-linter" if self.torch == "lowest" else "overhead-lens")
        return [each for each in _PROJECT["optional-dependencies"]["dev"] if not each.startswith(own)]

    def constraints(self) -> list[str]:
        """Which releases of the other packages it has."""
        if self.torch == "lowest":
            extras = _PROJECT["optional-dependencies"]
            return [each.replace(">=", "==") for each in (*_PROJECT["dependencies"], *extras["cluster"], *extras["ui"])]
        pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        pinned = any(pin.startswith(f"torch=={self.torch}.") for pin in pins)
        return [pin for pin in pins if pinned or pin.partition("==")[0] not in _WITH_TORCH]

    def tests(self) -> list[Cell]:
        """How many tests passed, failed and were skipped."""
        with contextlib.suppress(FailedError):
            self.ran("tests", "-m", "pytest", "-q", "-n", 2, "-m", "not measures and not quiet")
        end = (self.place / "tests.log").read_text(encoding="utf-8").strip().rpartition("\n")[2]
        counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|skipped|error)", end)}
        return [counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0), counts.get("skipped", 0)]

    def documents(self) -> Iterator[dict[str, Any] | str]:
        """The JSON that each command prints, or the reason why there is none."""
        for name, target in (("profile", ["add1"]), ("compile", ["add1", "--compile"])):
            words = ("profile", *target, "--quick", "--quiet", "--json", "--output", self.fresh(name))
            yield self.document(name, "-m", "overhead_lens", *words)
        program = (ROOT / "tests" / "programs" / "mlp_adamw.py", "--steps", _STEPS)
        written = self.fresh("run.json")
        yield self.document(
            "run", "-m", "overhead_lens", "run", "--json-file", written, "--", *program, written=written
        )
        loop = self.command("scripts/validation/laboratory/agreeing.py", "--steps", 10**12)
        with subprocess.Popen(loop, cwd=ROOT, env=self.variables, stdout=subprocess.PIPE) as process:
            process.stdout.readline()  # type: ignore[union-attr]
            options = (f"--duration={_WATCH_S}", "--quiet", "--json", "--output", self.fresh("watch"))
            yield self.document("attach", "-m", "overhead_lens", "attach", process.pid, *options)
            process.kill()

    def document(self, name: str, *words: object, written: Path | None = None) -> dict[str, Any] | str:
        """The JSON that a command prints or writes, or why it does not."""
        try:
            text = self.ran(name, *words)
            return dict(json.loads(written.read_bytes() if written else text))
        except (FailedError, OSError, ValueError) as error:
            return str(error)

    def fresh(self, name: str) -> Path:
        """A path in its folder where nothing is."""
        path = self.place / "out" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        return path

    def rules(self) -> float:
        """The largest share of other built-in calls that no rule claims."""
        result = self.fresh("rules.json")
        words = (self.fresh("rules"), "--only", *_CALLS, "--result", result)
        self.ran("rules", "-m", "scripts.validation.rules", *words)
        return max(float(row[2]) for row in json.loads(result.read_bytes())["rows"])

    def row(self, *, quick: bool) -> list[Cell]:
        """Its row of the table."""
        try:
            self.install()
            code = "import platform, torch; print(platform.python_version(), torch.__version__)"
            row: list[Cell] = [*self.ran("versions", "-c", code).split(), *([None] * 3 if quick else self.tests())]
        except FailedError as error:
            return [self.python, self.torch, *[None] * 8, str(error)]
        results = list(self.documents())
        documents = [each for each in results if isinstance(each, dict)]
        warnings = [warning for each in documents for warning in each["warnings"] if warning.startswith("no ")]
        budgets = [budget for each in documents for budget in (each, *each.get("threads", ()))]
        hosts = [host for budget in budgets for host in budget.get("host") or ()]
        shares = [host["share"] for host in hosts if host["category"] == "unattributed"]
        try:
            shares.append(self.rules())
        except (FailedError, OSError, ValueError) as error:
            warnings.append(f"rules: {error}")
        row += ["works" if isinstance(each, dict) else each for each in results]
        return [*row, max(shares, default=None), "; ".join(dict.fromkeys(warnings))]


def main() -> None:
    """Measure every cell that has no answers, or the named ones; print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", help="default: all without answers")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "matrix")
    parser.add_argument("--quick", action="store_true", help="without the tests")
    options = parser.parse_args()
    usual = [*(f"{python}-{torch}" for python in PYTHONS for torch in TORCHES), f"{PYTHONS[0]}-lowest"]
    table = Table(CLAIM)
    for name in dict.fromkeys([*usual, *options.cells]):
        python, torch = name.split("-", 1)
        environment = Environment(python, torch, options.folder.resolve())
        row_file = environment.place / "row.json"
        if name in options.cells or not (options.cells or row_file.exists()):
            environment.place.mkdir(parents=True, exist_ok=True)
            row_file.write_text(json.dumps(environment.row(quick=options.quick)), encoding="utf-8")
            share_libraries(options.folder)
        if row_file.exists():
            table.add(json.loads(row_file.read_bytes()))
    origin = replace(Origin.here(), python=f"{PYTHONS[0]} to {PYTHONS[-1]}", torch=f"{TORCHES[0]} to {TORCHES[-1]}")
    table.write(options.result, origin=origin)


def share_libraries(folder: Path) -> None:
    """Make equal libraries of all environments one file: a torch for GPUs has gigabytes of them."""
    first: dict[tuple[str, int], Path] = {}
    for path in sorted(folder.glob("*/lib/python*/site-packages/**/*.so*")):
        size = path.stat().st_size
        other = first.setdefault((path.name, size), path)
        if size > 1e6 and not other.samefile(path) and filecmp.cmp(other, path, shallow=False):
            path.unlink()
            path.hardlink_to(other)


def ran(*command: object, log: Path, variables: dict[str, str] | None = None) -> str:
    """What a command prints; all of its output is kept in a file."""
    done = run(["timeout", _TIMEOUT_S, *command], ROOT, variables, 2 * _TIMEOUT_S)
    log.write_bytes(done.stdout + done.stderr)
    return printed(done)


if __name__ == "__main__":
    main()
