#!/usr/bin/env bash
# One command for any CUDA machine: profiles the published workloads on the GPU, analyzes their traces, prints a table beside the
# published figures, keeps small reference captures. Writes under one folder only and ends within eight minutes.
#
#     scripts/gpu_check.sh OUT
#
# A torch that is installed already is used (a virtual environment that sees it); what is missing is installed from the package
# index where one can be reached, and said where not. PYTHON names the interpreter. A part that fails is a row with its reason.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:?usage: scripts/gpu_check.sh OUT}
python=${PYTHON:-python3}
budget_s=${GPU_CHECK_BUDGET_S:-460}
part_s=${GPU_CHECK_PART_S:-75}
began=$SECONDS
mkdir -p "$out/captures" "$out/analyses" "$out/reference" || exit 2
out=$(cd "$out" && pwd)

if [ -z "${OVERHEAD_LENS:-}" ]; then
  if ! [ -x "$out/venv/bin/overhead-lens" ]; then
    "$python" -m venv --system-site-packages "$out/venv" || exit 3
    "$out/venv/bin/python" -m pip install --quiet --editable . >"$out/install.log" 2>&1 ||
      { echo "gpu_check: the installation failed: $(tail -n 1 "$out/install.log")" >&2; exit 3; }
  fi
  OVERHEAD_LENS=$out/venv/bin/overhead-lens
  python=$out/venv/bin/python
  if ! "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>"$out/torch.log"; then
    echo "gpu_check: torch finds no CUDA device here" >&2
    exit 3
  fi
fi
export OVERHEAD_LENS TORCHINDUCTOR_CACHE_DIR="$out/inductor"

# name, target, options
profile() {
  local name=$1 left=$((budget_s - (SECONDS - began)))
  shift
  if [ "$left" -lt 10 ]; then
    echo "not run: the time was up" >"$out/captures/$name.error"
    return
  fi
  timeout "$((left < part_s ? left : part_s))" "$OVERHEAD_LENS" profile "$@" --device cuda --quick --quiet --json \
    --output "$out/captures/$name" >"$out/captures/$name.json" 2>"$out/captures/$name.error" ||
    { [ -s "$out/captures/$name.error" ] || echo "it took longer than $part_s s" >"$out/captures/$name.error"; return; }
  rm -f "$out/captures/$name.error"
  "$OVERHEAD_LENS" analyze "$out/captures/$name/kineto.json.gz" >"$out/analyses/$name.txt" 2>&1
  "$OVERHEAD_LENS" analyze --json "$out/captures/$name/kineto.json.gz" >"$out/analyses/$name.json" 2>>"$out/analyses/$name.txt"
}

for target in split_stack:split_stack split_stack:combined gelu add1; do
  name=${target##*:}
  profile "$name-eager" "$target"
  profile "$name-compiled" "$target" --compile
  profile "$name-reduce-overhead" "$target" --compile --mode reduce-overhead
done

"$python" scripts/gpu_table.py "$out" | tee "$out/table.md"
