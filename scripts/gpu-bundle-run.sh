#!/usr/bin/env bash
# Runs the programs of scripts/gpu-bundle on this machine's first CUDA device: agreement with the host (forms, gradients,
# graphs), recorded calls, compute-sanitizer if it is here, benchmarks beside PyTorch. Writes results.json; never changes the
# card's settings. Each part has a time limit, and a part that fails does not end the others.
set -uo pipefail
cd "$(dirname "$0")"
for name in cuda parity opsmith-bench; do
  [ -x "$name" ] || { gunzip --keep "$name.gz" && chmod +x "$name"; } || exit
done
export OPSMITH_ON_DEVICE=1 OPSMITH_CACHE_DIR=$PWD/cache OPSMITH_DEVICE_FALLBACK=host
export CARGO_MANIFEST_DIR=$PWD
# All parts together end in time; a part that would begin too late is not run, and a row says so.
total=${OPSMITH_BUNDLE_SECONDS:-450}
rows=()
row() { # NAME STATUS SECONDS TEXT
  rows+=("{\"part\": \"$1\", \"status\": $2, \"seconds\": $3}")
  printf '%-28s %-10s %4s s   %s\n' "$1" "$(case $2 in 0) echo ok ;; 124) echo "too long" ;; null) echo "not run" ;; *) echo "exit $2" ;; esac)" \
    "$3" "$4"
}
part() { # NAME SECONDS COMMAND...
  local name=$1 limit=$2 start=$SECONDS status left=$((total - SECONDS))
  shift 2
  if [ "$left" -lt 5 ]; then
    row "$name" null 0 "no time is left of $total s (OPSMITH_BUNDLE_SECONDS)"
    return
  fi
  timeout $((limit < left ? limit : left)) "$@" >"$name.log" 2>&1
  status=$?
  row "$name" "$status" $((SECONDS - start)) "$(grep -E 'comparisons|passed,' "$name.log" | tail -n 1)"
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
for check in forms gradients graphs; do
  OPSMITH_CUDA_PART=$check part "$check" 120 ./cuda --exact worker --nocapture --test-threads=1
done
for folder in cases/*; do
  part "parity_$(basename "$folder")" 90 ./parity "$folder" --device cuda
done
part bench 100 sh -c './opsmith-bench --device cuda --gate 0 >ours.jsonl'
if python3 -c 'import torch' 2>/dev/null; then
  part bench_torch 100 sh -c 'python3 device_torch.py >theirs.jsonl'
  python3 compare.py ours.jsonl theirs.jsonl | tee compare.txt
else
  row bench_torch null 0 "python3 has no torch"
fi
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck; do
    OPSMITH_OPERATORS=add,sum,mm,softmax,index_select,sort,conv2d OPSMITH_CUDA_PART=forms \
      part "sanitizer_$tool" 90 compute-sanitizer --tool "$tool" --error-exitcode 9 ./cuda --exact worker --nocapture --test-threads=1
  done
else
  row sanitizer null 0 "there is no compute-sanitizer"
fi
{
  echo '{"parts": ['
  (IFS=,; echo "${rows[*]}")
  echo '], "bench": ['
  cat ours.jsonl theirs.jsonl 2>/dev/null | paste -sd,
  echo ']}'
} >results.json
