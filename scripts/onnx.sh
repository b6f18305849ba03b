#!/usr/bin/env bash
# ONNX against other programs: all node tests of the package `onnx` run here, and graphs that are saved here run in
# onnxruntime with equal results. Needs python3 with venv, and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0; then
  echo "no ONNX: pip cannot install onnx and onnxruntime here"
  exit 0
fi
"$folder/venv/bin/python" -W ignore tests/record/onnx_nodes.py "$folder/nodes.zip"
OPSMITH_ONNX_CASES=$folder/nodes.zip cargo test --quiet --workspace --test onnx -- --ignored --nocapture cases_of_an_archive |
  tee "$folder/log"
# Cases that the design page lists as not supported.
tail -n 5 "$folder/log" | grep -Eq '^[0-9]+ passed, (1?[0-9]) failed$'
mkdir "$folder/saved"
OPSMITH_ONNX_SAVED=$folder/saved cargo test --quiet --workspace --test onnx_save
"$folder/venv/bin/python" scripts/onnx_runtime.py "$folder/saved" tests/data/programs ../shared/data/programs
