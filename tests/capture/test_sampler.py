from __future__ import annotations

import pytest

from overhead_lens.capture.sampler import explain_failure

NO_PERMISSION = (
    "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
)


@pytest.mark.parametrize(
    ("chatter", "line"),
    [
        ("Permission Denied: Try running again with elevated permissions by going 'sudo env ...'", NO_PERMISSION),
        ("Error: Operation not permitted (os error 1)\n", NO_PERMISSION),
        (
            "py-spy> Sampling\nError: Failed to find python version\n\nStack backtrace:",
            "py-spy failed: Error: Failed to find python version",
        ),
        ("", "py-spy failed: it said nothing"),
    ],
)
def test_why_it_could_not_sample(chatter: str, line: str) -> None:
    assert explain_failure(chatter) == line
