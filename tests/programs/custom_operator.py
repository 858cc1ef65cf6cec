"""Smooths a signal with an operator of its own in C++, which is built at the first start: one slow kernel."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from torch.utils import cpp_extension

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace smoothing {

float mean_around(const float* values, int64_t count, int64_t center, int64_t radius) {
  const int64_t first = std::max<int64_t>(0, center - radius), last = std::min(count - 1, center + radius);
  float sum = 0;
  for (int64_t at = first; at <= last; ++at) sum += values[at];
  return sum / static_cast<float>(last - first + 1);
}

at::Tensor smooth(const at::Tensor& signal, int64_t radius) {
  const at::Tensor values = signal.contiguous();
  at::Tensor smoothed = at::empty_like(values);
  float* out = smoothed.data_ptr<float>();
  for (int64_t center = 0; center < values.numel(); ++center)
    out[center] = mean_around(values.data_ptr<float>(), values.numel(), center, radius);
  return smoothed;
}

}  // namespace smoothing

TORCH_LIBRARY(smoothing, library) { library.def("smooth(Tensor signal, int radius) -> Tensor"); }
TORCH_LIBRARY_IMPL(smoothing, CPU, library) { library.impl("smooth", &smoothing::smooth); }
"""

SAMPLES = 4000
RADIUS = 150


def built() -> Path:
    """The operator's shared library, compiled once for this torch; no build tool but a C++ compiler is needed."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX") or "c++", "g++", "clang++"))), None)
    if compiler is None:
        sys.exit("custom_operator.py: skipped, a C++ compiler is needed (g++ or clang++)")
    name = hashlib.sha256(f"{torch.__version__}{SOURCE}".encode()).hexdigest()[:12]
    folder = Path(cpp_extension.get_default_build_root()) / "smoothing"
    library = folder / f"smoothing-{name}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source, partial = folder / f"{name}.cpp", folder / f"{name}.{os.getpid()}.partial"
        source.write_text(SOURCE)
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
        command = [compiler, "-shared", "-fPIC", "-std=c++17", "-O2", abi, str(source), "-o", str(partial)]
        command += [f"-I{path}" for path in cpp_extension.include_paths()]
        command += [f"-L{path}" for path in cpp_extension.library_paths()]
        subprocess.run([*command, "-ltorch", "-ltorch_cpu", "-lc10"], check=True)
        partial.replace(library)
    return library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--radius", type=int, default=RADIUS)
    options = parser.parse_args()
    torch.ops.load_library(str(built()))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    signal = torch.randn(SAMPLES)
    for _ in range(options.steps):
        signal = torch.ops.smoothing.smooth(signal, options.radius) * 1.001
    print(f"signal sums to {signal.double().sum().item():.2f}")


if __name__ == "__main__":
    main()
