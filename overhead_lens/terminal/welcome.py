"""The first commands to try, printed by the program's bare name."""

from __future__ import annotations

_FIRST = {
    "profile add1 --compile": "a built-in call, in under a minute",
    "profile my.py:f": "a function of yours",
    "run train.py": "a program of yours, step by step",
    "attach PID": "a process that runs already",
    "analyze trace.json": "a trace that torch.profiler recorded",
    "compare BASE NEW": "two of them: which is slower, and why",
    "doctor": "what this machine can measure",
}
_PROGRAM = "overhead-lens"


def welcome(columns: int) -> str:
    """The first commands, each with what it measures: beside it, or below it on a terminal too narrow for both."""
    typed = [f"  {_PROGRAM} {command}" for command in _FIRST]
    width = max(map(len, typed))
    beside = [f"{command:{width}}  {what}" for command, what in zip(typed, _FIRST.values(), strict=True)]
    below = [f"{command}\n      {what}" for command, what in zip(typed, _FIRST.values(), strict=True)]
    lines = [
        "Where does every microsecond of a PyTorch call go?",
        "",
        *(beside if max(map(len, beside)) <= columns else below),
        "",
        "--html FILE also writes an HTML report.",
        f"{_PROGRAM} --help lists all commands.",
    ]
    return "\n".join(lines)
