"""The programs, and how the truth about each is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PROGRAMS = Path(__file__).with_name("programs")

Difference = Literal["walls", "operators", "trace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program, and how to measure the truth about its step.

    Attributes:
        file: Its name in ``programs``, without the ending.
        arguments: What it is started with.
        mark: What is called once a step.
        steps: How many steps are clocked, warm-up included: some 2 s.
        smallest: Arguments by which its kernels have next to nothing to do, and all else is as before.
        operators: Functions that are clocked by themselves, where these are all of its kernels.
        waits: Whether its steps wait for other threads or ranks.
        steps_of_run: Steps that `run` sees from one mark to the next.
        function: A function of the file that does the same, for ``profile``.
        ranks: Processes that torchrun starts; 0 without it.
        repeatable: Whether it prints the same whenever it runs.
    """

    file: str
    arguments: tuple[str, ...] = ()
    mark: str = "program:step"
    steps: int
    smallest: tuple[str, ...]
    operators: tuple[str, ...] = ()
    waits: bool = False
    steps_of_run: int = 1
    function: str | None = None
    ranks: int = 0
    repeatable: bool = True

    @property
    def name(self) -> str:
        """The file and the arguments."""
        return " ".join((self.file, *self.arguments))

    @property
    def truth(self) -> tuple[Difference, ...]:
        """The differences that hold for it, see ``truth.py``."""
        if self.operators:
            return ("operators",)
        return ("trace",) if self.waits else ("walls", "trace")

    @property
    def path(self) -> Path:
        """Where the program is."""
        return PROGRAMS / f"{self.file}.py"


ALL = (
    Program(
        file="trainer",
        mark="torch.optim:AdamW.step",
        steps=240,
        smallest=("--width", "4", "--length", "2"),
        repeatable=False,
    ),
    Program(
        file="generate",
        mark="transformers:GPT2LMHeadModel.forward",
        steps=1_400,
        smallest=("--width", "4"),
        function="sentence",
    ),
    Program(file="autoencoder", mark="torch.optim:Adam.step", steps=1_000, smallest=("--width", "2")),
    Program(file="gcn", steps=1_000, smallest=("--nodes", "5", "--width", "4"), function="step"),
    Program(file="compiled_step", steps=10_000, smallest=("--rows", "2", "--width", "4"), function="step"),
    Program(file="additions", steps=20_000, smallest=("--elements", "1"), operators=("torch:add",), function="step"),
    Program(file="accelerated", mark="torch.optim:AdamW.step", steps=1_500, smallest=("--width", "2")),
    Program(file="server", mark="torch.nn:Sequential.forward", steps=9_000, smallest=("--width", "2"), waits=True),
    Program(file="ddp", mark="torch.optim:SGD.step", steps=1_200, smallest=("--width", "2"), waits=True, ranks=2),
    Program(
        file="linear_loop",
        steps=200_000,
        smallest=("--width", "1"),
        operators=("torch.nn.functional:linear",),
        function="step",
    ),
    Program(
        file="sums",
        steps=3_000,
        smallest=("--elements", "1", "--side", "1"),
        operators=("torch:sum", "numpy:sum"),
        function="step",
    ),
    Program(file="gelu", steps=45, smallest=("--elements", "1", "--steps", "1000"), function="step"),
    Program(
        file="gelu",
        arguments=("--compile",),
        mark="program:compiled_step",
        steps=90,
        smallest=("--elements", "1", "--steps", "1000"),
        function="compiled_step",
    ),
    Program(
        file="split_stack",
        steps=150,
        smallest=("--rows", "1", "--columns", "2"),
        # Its modules: sixteen normalizations and a layer.
        steps_of_run=17,
        function="step",
    ),
)
