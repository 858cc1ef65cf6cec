from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.readers.py_spy.paths import shortened


@pytest.mark.parametrize(
    ("location", "short"),
    [
        (
            "/opt/env/lib/python3.11/site-packages/transformers/models/gpt2.py:7",
            "site-packages/transformers/models/gpt2.py:7",
        ),
        ("/usr/lib/python3/dist-packages/six.py:7", "site-packages/six.py:7"),
        ("/usr/lib/python3.11/json/decoder.py:353", "lib/python3.11/json/decoder.py:353"),
        ("/usr/lib/python3/apt/cache.py:3", "lib/python3/apt/cache.py:3"),
        ("/opt/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "libtorch_cpu.so"),
        ("/opt/build/Python-3.11.7/Modules/_pickle.c:7938", "_pickle.c:7938"),
        ("/opt/site-packages/torch/aot/codegen.py:codegen(x):3", "site-packages/torch/aot/codegen.py:codegen(x):3"),
        ("C:\\Python311\\Lib\\site-packages\\six.py:7", "site-packages/six.py:7"),
        ("/nowhere/project/train.py:9", "train.py:9"),
        ("<frozen importlib._bootstrap>:1176", "<frozen importlib._bootstrap>:1176"),
        ("<string>:1", "<string>:1"),
        ("libc.so.6", "libc.so.6"),
    ],
)
def test_the_folder_tells_whose_file_it_is(location: str, short: str) -> None:
    frames = "thread (7): main;a ({0});at::f<int> const& (libx.so);b ({0}) 12\nc ({0}) 3\n"
    assert shortened(frames.format(location)) == frames.format(short)


def test_a_users_own_package_keeps_its_name(tmp_path: Path) -> None:
    package = tmp_path / "model" / "parts"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert shortened(f"f ({package}/layers.py:3) 1") == "f (model/parts/layers.py:3) 1"
    assert shortened(f"f ({package}/fast.so) 1") == "f (model/parts/fast.so) 1"
