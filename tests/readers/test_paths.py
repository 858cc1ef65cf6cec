from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.readers.py_spy.paths import shortened


@pytest.mark.parametrize(
    ("path", "short"),
    [
        (
            "/opt/env/lib/python3.11/site-packages/transformers/models/gpt2.py",
            "site-packages/transformers/models/gpt2.py",
        ),
        ("/usr/lib/python3/dist-packages/six.py", "site-packages/six.py"),
        ("/usr/lib/python3.11/json/decoder.py", "lib/python3.11/json/decoder.py"),
        ("/usr/lib/python3/apt/cache.py", "lib/python3/apt/cache.py"),
        ("/opt/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "libtorch_cpu.so"),
        ("/opt/build/Python-3.11.7/Modules/_pickle.c", "_pickle.c"),
        ("/opt/site-packages/torch/aot/codegen.py:codegen(x)", "site-packages/torch/aot/codegen.py:codegen(x)"),
        ("C:\\Python311\\Lib\\site-packages\\six.py", "site-packages/six.py"),
        ("/nowhere/project/train.py", "train.py"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
        ("<string>", "<string>"),
        ("libc.so.6", "libc.so.6"),
        ("", ""),
    ],
)
def test_the_folder_tells_whose_file_it_is(path: str, short: str) -> None:
    assert shortened(path) == short


def test_a_users_own_package_keeps_its_name(tmp_path: Path) -> None:
    package = tmp_path / "model" / "parts"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert shortened(f"{package}/layers.py") == "model/parts/layers.py"
    assert shortened(f"{package}/fast.so") == "model/parts/fast.so"


@pytest.mark.parametrize("path", ["/app/train.py", "/train.py"])
def test_a_package_may_be_the_root_folder(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """As in a container into which a repository was copied; there is no folder above it."""
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    assert shortened.__wrapped__(path) == path[1:]
