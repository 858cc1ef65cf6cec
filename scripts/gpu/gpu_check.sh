#!/usr/bin/env bash
# One command for any CUDA machine: runs a training script and profiles the published workloads on the GPU, analyzes their traces,
# prints a table beside published figures, keeps small reference captures. Writes under one folder only, ends within fifteen minutes.
#
#     scripts/gpu/gpu_check.sh OUT
#
# PYTHON names the interpreter; what it has installed, torch above all, is used (a virtual environment that sees it). What is
# missing is installed from the package index where one can be reached; where not, that is said and the rest is tried. A part that
# fails is a row with its reason. Without a CUDA device: one line, exit 3, and nothing is installed.
set -uo pipefail
if [ "${1:-}" = --help ]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0"
  exit 0
fi
cd "$(dirname "$0")/../.." || exit 2

out=${1:?usage: scripts/gpu/gpu_check.sh OUT}
python=${PYTHON:-python3}
budget_s=${GPU_CHECK_BUDGET_S:-840}
part_s=${GPU_CHECK_PART_S:-120}
install_s=${GPU_CHECK_INSTALL_S:-200}
began=$SECONDS

give_up() {
  echo "gpu_check: $1" >&2
  exit 3
}

# Seconds left of the budget, at most $1.
left() {
  local left=$((budget_s - (SECONDS - began)))
  echo $((left < $1 ? left : $1))
}

has_torch() { "$1" -c 'import torch' 2>/dev/null; }
has_cuda() { "$1" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; }

# The requirements in pyproject.toml that are not installed, or too old.
missing() {
  "$1" - <<'PYTHON'
import re, sys
from importlib import metadata
from pathlib import Path

block = re.search(r"^dependencies = \[(.*?)^\]", Path("pyproject.toml").read_text(), re.M | re.S)[1]
for name, least, marker in re.findall(r'"([\w-]+)>=([\d.]+)(;[^"]*)?"', block):
    if "python_version < '3.11'" in marker and sys.version_info >= (3, 11):
        continue
    numbers = [int(each) for each in least.split(".")]
    try:
        have = [int(each) for each in re.findall(r"\d+", metadata.version(name))[: len(numbers)]]
    except metadata.PackageNotFoundError:
        have = []
    if have < numbers:
        print(f"{name}>={least}")
PYTHON
}

set_up() {
  command -v "$python" >/dev/null || give_up "there is no $python; name an interpreter in PYTHON"
  if has_torch "$python"; then
    has_cuda "$python" || give_up "torch finds no CUDA device here"
  elif ! command -v nvidia-smi >/dev/null && ! [ -e /dev/nvidiactl ]; then
    give_up "there is no CUDA device here"
  fi
  local venv=$out/venv found
  "$python" -m venv --system-site-packages "$venv" >"$out/install.log" 2>&1 ||
    "$python" -m venv --system-site-packages --without-pip "$venv" >>"$out/install.log" 2>&1 ||
    give_up "no virtual environment can be made: $(tail -n 1 "$out/install.log")"
  # Where the interpreter is itself that of a virtual environment, --system-site-packages would pass it over.
  for found in "$venv"/lib/python*/site-packages; do
    "$python" -c 'import site; print("\n".join(site.getsitepackages()))' >"$found/of_the_machine.pth"
  done
  PATH=$("$python" -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
  python=$venv/bin/python
  mapfile -t found < <(missing "$python")
  if [ "${#found[@]}" -gt 0 ]; then
    timeout -k 5 "$(left "$install_s")" "$python" -m pip install --quiet --retries 1 --timeout 15 "${found[@]}" \
      >>"$out/install.log" 2>&1
    mapfile -t found < <(missing "$python")
    [ "${#found[@]}" -eq 0 ] || echo "gpu_check: missing, and could not be installed: ${found[*]} (see install.log)" >&2
  fi
  has_torch "$python" || give_up "torch is not installed and could not be installed"
  has_cuda "$python" || give_up "torch finds no CUDA device here"
  printf '#!/bin/sh\nexec "%s" -m overhead_lens "$@"\n' "$python" >"$venv/bin/overhead-lens" || exit 2
  chmod +x "$venv/bin/overhead-lens"
  OVERHEAD_LENS=$venv/bin/overhead-lens
}

mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
if [ -e "$out/captures" ]; then
  echo "gpu_check: $out holds a check already; name another folder" >&2
  exit 2
fi
# Everything that torch, Triton, numba and the driver would keep elsewhere.
mkdir -p "$out/tmp" || exit 2
export TORCHINDUCTOR_CACHE_DIR=$out/inductor TRITON_CACHE_DIR=$out/triton NUMBA_CACHE_DIR=$out/numba CUDA_CACHE_PATH=$out/driver
export PYTHONPYCACHEPREFIX=$out/bytecode TMPDIR=$out/tmp PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PIP_NO_CACHE_DIR=1
[ -n "${OVERHEAD_LENS:-}" ] || set_up
mkdir -p "$out/captures" "$out/analyses" "$out/reference" || exit 2

# name, file for stdout, command
measure() {
  local name=$1 stdout=$2 limit rc
  shift 2
  limit=$(left "$part_s")
  if [ "$limit" -lt 10 ]; then
    echo "not run: the time was up" >"$out/captures/$name.error"
    return
  fi
  timeout -k 5 "$limit" "$OVERHEAD_LENS" "$@" >"$stdout" 2>"$out/captures/$name.error"
  rc=$?
  if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
    echo "it took longer than $limit s" >>"$out/captures/$name.error"
  elif [ "$rc" -ne 0 ]; then
    [ -s "$out/captures/$name.error" ] || echo "it failed with exit status $rc" >"$out/captures/$name.error"
  else
    rm -f "$out/captures/$name.error"
  fi
}

# name, target, options
profile() {
  local name=$1
  shift
  measure "$name" "$out/captures/$name.json" profile "$@" --device cuda --quick --quiet --json --output "$out/captures/$name"
}

# The trace of a capture, as text and as JSON.
analyze() {
  local name=$1 trace=$out/captures/$1/kineto.json.gz
  timeout -k 5 60 "$OVERHEAD_LENS" analyze "$trace" >"$out/analyses/$name.txt" 2>"$out/analyses/$name.error"
  timeout -k 5 60 "$OVERHEAD_LENS" analyze "$trace" --json >"$out/analyses/$name.json" 2>>"$out/analyses/$name.error"
  [ -s "$out/analyses/$name.error" ] || rm -f "$out/analyses/$name.error"
}

cat >"$out/training.py" <<'PYTHON'
import time

import torch

import overhead_lens as ol

model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(8))).cuda()
optimizer, inputs = torch.optim.AdamW(model.parameters()), torch.randn(256, 512, device="cuda")
end = time.monotonic() + 16
while time.monotonic() < end:
    with ol.region("forward"):
        loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
PYTHON
measure training-run /dev/null run \
  --output "$out/captures/training-run" --json-file "$out/captures/training-run.json" "$out/training.py"

# The quick ones first; compiling takes minutes where nothing is in Inductor's cache.
for mode in eager compiled reduce-overhead; do
  case $mode in
    eager) options=() ;;
    compiled) options=(--compile) ;;
    reduce-overhead) options=(--compile --mode reduce-overhead) ;;
  esac
  for target in add1 split_stack:split_stack gelu split_stack:combined; do
    profile "${target##*:}-$mode" "$target" "${options[@]}"
  done
done

"$python" scripts/gpu/gpu_table.py "$out" | tee "$out/table.md"
status=$?

# Side by side: nothing is measured any more.
for meta in "$out"/captures/*/meta.json; do
  [ -e "$meta" ] || break
  analyze "$(basename "$(dirname "$meta")")" &
done
wait
exit $status
