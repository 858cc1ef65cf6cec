"""What a user is told."""

from __future__ import annotations

from typing import Any

import pytest

from overhead_lens.errors import UsageError


def complaint(function: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(UsageError) as caught:
        function(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message
    return message
